/* import: Metal kernels that live in strings of Python files, as .metal files.
 *
 * Finds what a file gives to mx.fast.metal_kernel and torch.mps.compile_shader, and how their kernels
 * are launched. No Python is needed: the file's own statements are followed, with the
 * values that are known (strings, numbers, lists, functions of the file). A size that only the
 * running program would know is assumed, by its name, and every assumption is reported. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/base/err.h"

typedef struct {
    const char *out;           /* the folder to write to */
    const char *mlx;           /* a checkout of MLX whose own header is included; NULL: ours */
    const char *torch;         /* a checkout of PyTorch, for its headers; NULL: none */
    const char *const *values; /* NAME=VALUE: sizes and types that the file does not say */
    size_t value_count;
} import_settings;

typedef struct {
    size_t found, imported; /* calls */
    size_t kernels;         /* files written: a call that is reached twice may be two of them */
} import_counts;

typedef struct importer importer;
importer *importer_new(const import_settings *s, err *e);
void importer_free(importer *im);

/* Reads a .py file and writes what it has. What was written goes to `out`, one line per kernel;
 * calls that could not be imported, and why, to `talk`. */
bool importer_take(importer *im, const char *path, FILE *out, FILE *talk, err *e);
import_counts importer_get_counts(const importer *im);
