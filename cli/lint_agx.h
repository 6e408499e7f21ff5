/* lint_agx: `assay lint --agx`. What Mesa's compiler for Apple GPUs makes of each kernel of a file
 * (harness/agx/agx.h), with a warning for each that uses scratch memory. Also for the cases
 * of `profile --agx`. */
#pragma once

#include "cases.h"
#include "harness/agx/agx.h"

/* 1 for each function constant of the file, so that whatever it switches on is compiled. The caller
 * frees them. */
constant_value *lint_make_ones(const msl_unit *u);

typedef struct {
    const char *compare; /* a file with other versions of the same kernels, or NULL */
    const char *code;    /* a kernel whose machine code alone is printed, or NULL */
    const char *csv;     /* a file for the rows, or NULL */
    bool brief, json;
} lint_agx_settings;

bool lint_agx_run(const lint_agx_settings *s, const char *const *paths, size_t count,
                  const msl_extras *extras, err *e);

typedef struct {
    const char *csv;      /* a file for the rows, or NULL */
    const char *baseline; /* such a file, with which they are compared, or NULL */
    double threshold;     /* by how much they may grow since, in percent */
    bool annotate;        /* also all lines of the files, with how many instructions each became */
    bool code;            /* also the lines with the most instructions, and these */
    size_t top;           /* how many lines */
} agx_case_settings;

/* The same facts of each kernel of these cases, in their order. EXIT_REGRESSION if instructions, registers,
 * scratch memory, spills or fills grew. */
exit_code agx_print_cases(const case_list *cases, const agx_case_settings *s, err *e);
