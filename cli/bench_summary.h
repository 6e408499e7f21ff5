/* bench_summary: what a run of `bench` comes to, in sentences: which kernel is how many times as fast as
 * the others of the same op, format, shape, input, regime and cache, and what is above a roof. */
#pragma once

#include <stdio.h>

#include "bench_cases.h"
#include "harness/measure/results.h"

/* "memory", or "FMA" if arithmetic is nearer to its roof; "-" if neither is known. */
const char *bench_get_roof(const result_row *r);

void bench_print_summary(FILE *out, const result_row *rows, size_t count, const bench_list *cases);
