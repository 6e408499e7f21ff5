/* model_bench_output: results of `assay model bench` in the forms that llama-bench has, with its names,
 * so that the same programs can read both. The median and quartiles are ours and come last. */
#pragma once

#include <stdio.h>

#include "open_model.h"
#include "runner/model/bench.h"

typedef enum { BENCH_MD, BENCH_CSV, BENCH_JSON, BENCH_JSONL, BENCH_SQL } bench_format;

bool bench_format_find(const char *name, bench_format *out);

typedef struct {
    FILE *out;
    bench_format format;
    const open_model *model;
    size_t rows;
    bool has_filled;     /* a row of a depth that no prompt was run for */
    char model_type[96]; /* "llama 256M Q4_0" */
    uint64_t parameters, model_bytes;
} bench_output;

void bench_output_begin(bench_output *o, FILE *out, bench_format format, const open_model *s);
void bench_output_add(bench_output *o, const bench_result *r);
void bench_output_end(bench_output *o);
