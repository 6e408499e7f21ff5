/* bench_print: what people and programs read about times: rows of `bench` as they come, or all of them as
 * JSON or Markdown; what a run comes to, in sentences; verdicts, at the end of `compare`, `bench
 * --baseline` and `model bench --baseline`. */
#pragma once

#include "bench_cases.h"
#include "harness/base/record.h"
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
/* The rows, which have been decided, as a list. */
void comparison_add_json(json *j, const char *key, const comparison_list *l,
                         const comparison_options *o);

void bench_print_head(FILE *out, const results_meta *m); /* as comments */
/* A table as wide as these cases need, to which rows are added as they come. */
void bench_print_start(sink *s, FILE *out, const bench_list *cases, const bench_settings *settings);
void bench_print_row(sink *s, const result_row *r);

void bench_print_json(FILE *out, const results_meta *m, const result_row *rows, size_t count,
                      comparison_list *compared, const comparison_options *o);
void bench_print_markdown(FILE *out, const results_meta *m, const result_row *rows, size_t count);
/* Which kernel is how many times as fast as the others of the same op, format, shape, input, regime and
 * cache, and what is above a roof. */
void bench_print_summary(FILE *out, const result_row *rows, size_t count, const bench_list *cases);
