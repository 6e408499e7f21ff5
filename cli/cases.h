/* cases: every case that can be run, from the registry: kernel x shape that it takes, and every
 * input distribution for one shape of each op. Names are "kernel/shape/input". */
#pragma once

#include "axes.h"
#include "harness/check/kernel_case.h"

/* Which ones: those that any of the filters matches (all without filters), of these axes, shapes
 * and distribution (any if NULL). A filter is the name of an op or of a kernel, or else a glob or a
 * part of a case's name. Shapes are a comma-separated list, with or without the batch. `quick`
 * keeps the first shapes of each kernel, which are the edges, and the one with every
 * distribution. */
typedef struct {
    const char *const *filters;
    size_t filter_count;
    const char *shapes, *input;
    axes_query axes;
    bool quick;
    const char *extra; /* NULL, or "random:N": also N shapes per kernel that are not listed */
    uint64_t seed;     /* that those are drawn from */
    bool with_skips;   /* also those that their kernel does not take, to be counted as skipped */
} case_query;

/* A query or a filter that matches nothing is an error that lists what exists. */
bool cases_find(const case_query *q, case_list *out, err *e);
/* Those of the kernel of this name; an op may have the name of one of its kernels. extra and seed: as in
 * a query. */
bool cases_find_kernel(const char *name, const char *extra, uint64_t seed, case_list *out, err *e);
/* Drops those of kernels that the device does not offer; an error if none is left. */
bool cases_keep_offered(case_list *l, const device_facts *d, err *e);
/* Keeps one case of each kernel: the largest of its edge shapes. */
void cases_keep_one(case_list *l);
/* Drops kernels that are a template of their op in yet another format or accumulation; each template, format,
 * file and accumulation of an op stays in at least one kernel. Returns how many kernels that were. */
size_t cases_drop_repeated(case_list *l);
/* The case named by "kernel/shape/input", whether or not the registry lists its shape. */
bool cases_parse(const char *name, kernel_case *out);
/* Does this filter match this case? */
bool cases_match(const char *filter, const kernel_case *c);
void cases_free(case_list *l);
