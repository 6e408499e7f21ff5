/* bench_against: the kernels of others that `bench --against` times beside ours, and which cases of
 * ours they are for. */
#pragma once

#include "harness/measure/bench.h"
#include "options.h"

/* Sets rivals and launches of the settings, which stay until the program ends. */
bool bench_against_open(const option_list *against, const option_list *launches, bench_settings *s,
                        err *e);
/* Marks the cases that a rival computes too (same op, weight format, and = or +=) and drops the
 * others. None left is an error. */
bool bench_against_choose(const bench_settings *s, bench_list *cases, err *e);
