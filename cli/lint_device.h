/* lint_device: `assay lint --device D`. Every kernel of a file, compiled by the device's own
 * compiler, with its messages and what the device says of each pipeline.
 *
 * Files are compiled in workers, which are this verb again with the hidden option --worker: one at
 * which a compiler crashes or hangs fails alone. */
#pragma once

#include "harness/base/err.h"
#include "harness/device/device.h"

typedef struct {
    const char *device;           /* as --device gives it */
    const char *const *arguments; /* that workers are started with */
    bool brief;                   /* only files and messages, no line per kernel */
} lint_device_settings;

/* 1 for each function constant of the file, so that whatever it switches on is compiled. The caller
 * frees them. */
constant_value *lint_make_ones(const msl_unit *u);

/* *errors: kernels and files that do not compile. */
bool lint_device_run(const lint_device_settings *s, const char *const *paths, size_t count,
                     size_t *errors, err *e);
/* The worker's side. */
exit_code lint_device_serve(const lint_device_settings *s, const msl_extras *extras, err *e);
