/* verb: what a command of assay is. Each cmd_<name>.c defines one, and main.c lists them. */
#pragma once

#include "harness/base/json.h"
#include "harness/device/device.h"
#include "options.h"

#define ASSAY_VERSION "0.1.0"

typedef struct verb verb;

struct verb {
    const char *name;
    const char *names; /* arguments of the verb besides options: "[FILTER...]", or NULL */
    const char *about; /* one line */
    const char *notes; /* the rest of its help, or NULL */
    const option *options;
    size_t option_count;
    /* Of kernels, unless --math says otherwise: "safe", or, of what is timed, "fast", Metal's
     * default and so what llama.cpp and MLX run with. NULL: it has no --math. */
    const char *math;
    bool runs_ops;      /* works on ops of the registry: those of the project, if there is one */
    bool reads_kernels; /* has --kernels, without ops */
    bool reads_tuned;   /* takes kernels as the table of `assay tune` says, unless --no-tuned */
    bool reads_results; /* judges stored numbers by the kernels there are now */
    /* Returns the exit status; e is printed if it has a text. The second is that of a verb without names. */
    exit_code (*run)(const char *const *names, size_t count, err *e);
    exit_code (*run_alone)(err *e);
    /* A family has verbs of its own in place of all that: `assay model info`. */
    const verb *const *verbs;
    size_t verb_count;
};

/* A verb: its name, its function and the other fields. */
#define VERB(symbol, name_, run_, ...) const verb symbol = {.name = name_, .run = run_, __VA_ARGS__}
#define VERB_ALONE(symbol, name_, run_, ...)                                                       \
    const verb symbol = {.name = name_, .run_alone = run_, __VA_ARGS__}
/* For a verb: its table of options. */
#define VERB_OPTIONS(list) .options = list, .option_count = sizeof list / sizeof *list

/* The options of a verb and those that all verbs have, or all that run ops. Returns how many. */
size_t verb_list_options(const verb *v, option out[OPTIONS_MAX]);
/* Acts on the options that all verbs have, and loads the ops of the project. */
bool verb_prepare(const verb *v, err *e);

/* For this process and those that it starts. */
bool verb_set_environment(const char *name, const char *value, err *e);

/* A sentence to stderr, broken between words on a terminal. */
void verb_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Lines, broken between words where the terminal is narrower. Those that are not indented are running text if it
 * `fills`; what follows two blanks in an indented one is a column. */
void verb_print_lines(FILE *out, const char *text, bool fills);
/* Says what was compiled since the verb began, once. */
void verb_end_compiling(void);
/* Flushes stdout. A reader that hung up is EXIT_CLOSED, which main leaves without a word, as every
 * tool in a pipe does; anything else is EXIT_CANNOT with a sentence. */
bool verb_flush(err *e);
/* The beginning of the one JSON object that a verb prints: the program, the name of the verb, the
 * device (f may be NULL) and the seed. */
json verb_open_json(FILE *out, const char *name, const device_facts *f, uint64_t seed);

/* A verb of a family; NULL if it has none of this name. All verbs are the family `assay`. */
const verb *verb_find(const verb *family, const char *name);

/* What follows from the verbs' tables besides their help texts: assay.1 and assay-VERB.1 for each verb, in a folder
 * that is made; and what a shell may complete. */
bool manual_write_all(const verb *all, const char *folder, err *e);
/* Makes the shell (bash, zsh or fish) ask this program: `assay --complete WORD...`. */
bool completion_print(FILE *out, const char *shell, err *e);
/* What the last word may become, one per line: verbs, options, their values, ops and kernels of the
 * project, experiments. Files are the shell's own. */
bool completion_answer(FILE *out, const verb *all, const char *const *words, size_t word_count,
                       err *e);

/* clang-format off */
/* All verbs, in the order of the help. */
#define VERBS(X) \
    X(init) X(import) X(info) X(doctor) X(list) X(check) X(validate) X(mutants) X(launch) X(lint) X(agx) \
    X(judge) X(changes) X(bench) X(compare) X(tune) X(experiment) X(plot) X(claims) X(report) X(results) X(profile) \
    X(run) X(model) X(trace) X(cache) X(tokenize)
#define DECLARE_VERB(name) extern const verb verb_##name;
VERBS(DECLARE_VERB)
/* clang-format on */
