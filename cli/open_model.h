/* open_model: a model opened for a verb: the file, the device with its kernels, and the model on
 * it; and the verbs of `assay model`. */
#pragma once

#include <stdio.h>

#include "runner/choice/tuned.h"
#include "runner/model/model.h"
#include "verb.h"

typedef struct {
    char path[512];
    gguf *file;
    device *device;
    library *lib;
    model *model;
    tuned *tuned;                   /* NULL: the device has no table */
    size_t kernels;                 /* that are ready */
    bool tells_of_kernels;          /* as some had to be compiled */
    bool (*goes_on)(void *context); /* asked before a kernel is compiled; NULL: always */
} open_model;

/* The file alone, which must be one that runs; NULL is the model that ships with the project. */
bool open_model_file(open_model *s, const char *path, err *e);
/* Then, after goes_on was set, the device with its kernels (NULL: ASSAY_DEVICE, else auto); and that,
 * unless it is open, and the model. */
bool open_model_device(open_model *s, const char *kind, err *e);
bool open_model_on(open_model *s, const char *kind, const model_options *o, err *e);
void open_model_close(open_model *s);

/* What --kv says, for model_options.cache: "f16", "f32" or NULL. */
bool open_model_find_cache(const char *kv, const weight_format **out, err *e);

/* How many threads the software device takes; 0: as it is. Before it is opened. */
bool open_model_set_threads(uint64_t count, err *e);

/* Kernels are compiled when a tape needs them first. While that takes long, stderr says so: a line that
 * changes on a terminal, otherwise one sentence. This ends it, before other output. */
void open_model_end_compiling(open_model *s);

/* If the device's validation is on, prints what it found. False if it found anything. */
bool open_model_print_findings(const open_model *s, FILE *out);

/* "SmolLM2 135M Instruct, Q4_0": the name in the file, or the file's own, and the format of most
 * weights. */
void open_model_get_title(const open_model *s, char *text, size_t size);

/* Those of `assay model` that cmd_model.c does not have itself. */
extern const verb model_info_verb, model_check_verb, model_bench_verb;
/* What a file holds, as one object. */
bool model_info_print_json(FILE *out, const gguf *g, bool tensors, bool metadata);
