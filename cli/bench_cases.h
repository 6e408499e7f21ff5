/* bench_cases: what `assay bench` times: kernels x shapes x batch x regime x cache state, from the
 * axes on the command line.
 *
 * Shapes need not be those of the registry. Any that has the right number of sizes and that the
 * kernel takes will do. */
#pragma once

#include "cases.h"
#include "harness/measure/bench.h"
#include "options.h"

/* Lists with commas, or NULL: the last (largest) shape of each kernel, the batch of the shape,
 * every kernel, normal inputs, chained, warm. "all" is every shape of the registry, every regime,
 * both cache states. What a kernel does not take is counted. */
typedef struct {
    const char *const *filters;
    size_t filter_count;
    axes_query axes;
    const char *shapes, *input, *regimes, *caches;
} bench_query;

bool bench_cases_find(const bench_query *q, bench_list *out, err *e);
/* A case from its name. */
bool bench_cases_parse(const char *name, bench_case *out, err *e);
bench_case bench_cases_new(const kernel_case *t, timing_regime r, timing_cache c);
void bench_cases_add(bench_list *l, const bench_case *c);
/* Workers of s are those of `assay bench` with its values, on this device, for this many cases. */
void bench_set_workers(bench_settings *s, const device_facts *f, size_t cases);
/* And they also time this kernel of others, as with --against; how is a launch file, or NULL: as ours. */
bool bench_set_rival(bench_settings *s, const char *given, const char *how, err *e);

void bench_cases_free(bench_list *l);

/* The kernels of others that `bench --against` times beside ours: sets rivals and launches of the settings,
 * which stay until the program ends. */
bool bench_against_open(const option_list *against, const option_list *launches, bench_settings *s,
                        err *e);
/* Marks the cases that a rival computes too (same op, weight format, and = or +=) and drops the
 * others. None left is an error. */
bool bench_against_choose(const bench_settings *s, bench_list *cases, err *e);
