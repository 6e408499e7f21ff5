/* comparison_print: verdicts, at the end of `compare` and `bench --baseline`. */
#pragma once

#include <stdio.h>

#include "harness/measure/comparison.h"

typedef struct {
    double min_effect; /* 0.03 */
    bool explain, markdown, json;
    bool against; /* the base is a kernel of others, which the note names */
    uint64_t seed;
} comparison_options;

/* Decides, prints one row per case and a summary; EXIT_REGRESSION if one is slower, else
 * EXIT_INCONCLUSIVE if one is ambiguous or missing, else EXIT_OK. */
exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out);

/* The rows as JSON, `[{...}, ...]`; they are decided first. */
void comparison_print_json_rows(comparison_list *l, const comparison_options *o, FILE *out);
