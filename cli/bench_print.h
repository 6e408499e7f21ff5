/* bench_print: rows of `bench` for people as they come, or all of them as JSON or Markdown. */
#pragma once

#include "bench_cases.h"
#include "comparison_print.h"
#include "harness/base/table.h"

enum { BENCH_COLUMNS = 13 };

typedef struct {
    table_column columns[BENCH_COLUMNS];
    table rows;
} bench_table;

void bench_table_start(bench_table *t, FILE *out, const bench_list *cases, const bench_settings *s);
void bench_table_add(bench_table *t, const result_row *r);

void bench_print_head(FILE *out, const results_meta *m); /* as comments */
void bench_print_json(FILE *out, const results_meta *m, const result_row *rows, size_t count,
                      comparison_list *compared, const comparison_options *o);
void bench_print_markdown(FILE *out, const results_meta *m, const result_row *rows, size_t count);
