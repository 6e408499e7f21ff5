/* options: a strict reader of command lines.
 *
 * `--name value` and `--name=value`, and `-n value` for those that have a letter too; `--` ends the
 * options. Anything else is an error that says what is valid: an unknown option, a number that is
 * malformed or out of range, a value given twice (lists take many). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

typedef enum {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char *, not empty */
    OPTION_ANY_TEXT, /* const char *, may be empty */
    OPTION_MAYBE,    /* const char *: "" if nothing or another option follows */
    OPTION_NUMBER,   /* uint64_t */
    OPTION_SEED,     /* uint64_t; "random" draws one */
    OPTION_SECONDS,  /* double, above 0 */
    OPTION_PERCENT,  /* double, above 0 */
    OPTION_REAL,     /* double, from min to max */
    OPTION_NUMBERS,  /* option_numbers: 1,4,8 */
    OPTION_LIST,     /* option_list: may be given many times */
    OPTION_FOREIGN,  /* of another program; refused, and `argument` says what to do here */
    OPTION_SPLIT     /* size_t: how many names stand before `--`; 0 without it. Has no name */
} option_kind;

enum { OPTION_LIST_MAX = 64, OPTIONS_MAX = 48 };

typedef struct {
    const char *items[OPTION_LIST_MAX];
    size_t count;
} option_list;

typedef struct {
    uint64_t items[OPTION_LIST_MAX];
    size_t count;
} option_numbers;

typedef struct {
    const char *name; /* "seed" for --seed, "m|model" for --model and -m */
    option_kind kind;
    void *value;          /* where the value goes; holds the default before */
    const char *argument; /* "N", for the help */
    const char *about;    /* for the help, with the default; NULL: not shown, as another name is */
    uint64_t min, max;    /* of a number or a real */
} option;

/* For tables of options: what those without a range need. */
#define PLAIN_OPTION(name, kind, value, argument, about)                                           \
    { name, kind, value, argument, about, 0, 0 }
#define FLAG_OPTION(name, value, about) PLAIN_OPTION(name, OPTION_FLAG, value, NULL, about)
#define TEXT_OPTION(name, value, arg, about) PLAIN_OPTION(name, OPTION_TEXT, value, arg, about)
#define ANY_TEXT_OPTION(name, value, arg, about)                                                   \
    PLAIN_OPTION(name, OPTION_ANY_TEXT, value, arg, about)
#define LIST_OPTION(name, value, arg, about) PLAIN_OPTION(name, OPTION_LIST, value, arg, about)
#define SECONDS_OPTION(name, value, arg, about)                                                    \
    PLAIN_OPTION(name, OPTION_SECONDS, value, arg, about)
#define PERCENT_OPTION(name, value, arg, about)                                                    \
    PLAIN_OPTION(name, OPTION_PERCENT, value, arg, about)

/* Names of one option of another program, with or without dashes: "ngl|n-gpu-layers". */
#define FOREIGN_OPTION(names, advice) PLAIN_OPTION(names, OPTION_FOREIGN, NULL, advice, NULL)

/* Options that several verbs have. */
#define THREADS_OPTION(value)                                                                      \
    {                                                                                              \
        "t|threads", OPTION_NUMBER, value, "N",                                                    \
            "CPU threads of the software device (default ASSAY_THREADS, else all cores)", 1, 256   \
    }
#define KV_OPTION(value)                                                                           \
    TEXT_OPTION("kv", value, "T", "keep keys and values in f32 or f16 (default f32)")
#define MODEL_OPTION(value)                                                                        \
    TEXT_OPTION("m|model", value, "FILE", "GGUF file (default: the model that comes with Assay)")
#define LAB_MODEL_OPTION(value)                                                                    \
    TEXT_OPTION("m|model", value, "FILE",                                                          \
                "GGUF file (default: SmolLM2-135M if `make model` fetched it, else the one "       \
                "included)")
#define AGX_OPTION(value)                                                                          \
    FLAG_OPTION("agx", value,                                                                      \
                "ask Mesa's compiler (`assay agx`) whether threadgroups are too large for an M1, " \
                "also if that takes a second per kernel")
/* What people type who know llama.cpp. */
#define LLAMA_CPP_OPTIONS                                                                          \
    FOREIGN_OPTION("ngl|gpu-layers|n-gpu-layers",                                                  \
                   "is how many layers llama.cpp puts on the GPU; here all of them run on the "    \
                   "device that --device chooses"),                                                \
        FOREIGN_OPTION("fa|flash-attn", "chooses llama.cpp's attention kernel; here `assay tune` " \
                                        "measures which one is fastest"),                          \
        FOREIGN_OPTION("b|batch-size|ub|ubatch-size",                                              \
                       "is how many tokens of a prompt llama.cpp takes at once; here the device "  \
                       "decides"),                                                                 \
        FOREIGN_OPTION("ctk|ctv|cache-type-k|cache-type-v",                                        \
                       "is the type of llama.cpp's keys or values; here --kv f16 is for both")
#define DEVICE_OPTION(value)                                                                       \
    TEXT_OPTION("device", value, "D", "soft, metal, cuda or auto (default ASSAY_DEVICE, else auto)")
#define SEED_OPTION(value, of)                                                                     \
    { "seed", OPTION_NUMBER, value, "N", "seed of " of " (default 1)", 0, UINT64_MAX }
#define RANDOM_SEED_OPTION(value, of)                                                              \
    { "seed", OPTION_SEED, value, "N", "seed of " of ", or 'random' (default 1)", 0, UINT64_MAX }
#define MATH_OPTION(value, default_name)                                                           \
    TEXT_OPTION("math", value, "M",                                                                \
                "math mode of kernels: safe, relaxed or fast (default " default_name ")")

/* Reads argv[0..*argc), sets the values and moves everything that is not an option to the front of
 * argv, with its count in *argc. *help is set by --help and -h, which end the reading. */
bool options_parse(const option *options, size_t count, int *argc, const char **argv, bool *help,
                   err *e);

/* The command line of a worker: the verb, every option with the value that it has now, --worker
 * among them, and the names (NULL, or a list that ends in NULL). It stays for the rest of the
 * process. */
const char *const *options_list_values(const char *verb, const option *options, size_t count,
                                       const char *const *names);
#define LIST_VALUES(verb, options)                                                                 \
    options_list_values(verb, options, sizeof(options) / sizeof *(options), NULL)

/* Was it on the command line? */
bool options_is_given(const char *name);
/* Those that were and decide what becomes of a case, each after a blank, for a shell: " -C DIR --seed 7". */
void options_print_given(FILE *out);
/* In quotes if a shell needs them. */
void options_print_word(FILE *out, const char *text);

/* "m|model" is --model and -m; 0: it has no letter. */
const char *option_get_name(const option *o);
char option_get_letter(const option *o);

void options_print_help(FILE *out, const option *options, size_t count);

/* Which of the names it is; count, and a sentence with the nearest one, if it is none. what: "kernel"; where:
 * "assay list shows them all" */
size_t options_find_name(const char *what, const char *text, const char *const *names, size_t count,
                         const char *where, err *e);
