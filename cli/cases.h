/* cases: every case that can be run, from the registry: kernel x shape that it takes, and every input
 * distribution for one shape of each op ("kernel/shape/input"); those that `assay bench` times, which have a
 * regime and a cache state too; and the axes of the command line that choose among them. */
#pragma once

#include "harness/check/op.h"
#include "harness/measure/bench.h"
#include "options.h"

/* A comma-separated list, cut into words. */
enum { WORDS_MAX = 64, WORD_SIZE = 96 };
typedef struct {
    char words[WORDS_MAX][WORD_SIZE];
    bool used[WORDS_MAX]; /* for callers that track which words matched something */
    size_t count;
} word_list;

/* As on the command line, or NULL. */
typedef struct {
    const char *formats, *accumulate, *variants, *batches;
} axes_query;

/* For tables of options. */
/* clang-format off */
#define AXES_KERNEL_OPTIONS(query) \
    TEXT_OPTION("format", &(query).formats, "F,...", "only kernels that read these weight formats, such as q4_0,q8_0"), \
    TEXT_OPTION("accumulate", &(query).accumulate, "yes|no", "only kernels that add to their output, or only those that do not"), \
    TEXT_OPTION("variant", &(query).variants, "V,...", "only these kernels or variants of an op, such as rowblock")
#define AXES_OPTIONS(query) \
    AXES_KERNEL_OPTIONS(query), \
    TEXT_OPTION("batch", &(query).batches, "N,...", "tokens, for ops that take many (default: those of the shapes)")
/* clang-format on */

typedef struct {
    word_list formats, variants;
    bool has_accumulate, accumulates;
    uint32_t batches[WORDS_MAX];
    size_t batch_count;
} axes;

bool axes_parse(const axes_query *q, axes *out, err *e);
bool axes_take_kernel(const axes *a, const kernel *k);

/* "q4_0", or "" for a kernel without weights. */
void axes_get_format(const kernel *k, char *text, size_t size);

/* Says that no op, kernel or case (`what`) is called like the filter, and which is most alike; or, if it is
 * known, that the axes leave nothing of it. False. */
bool axes_refuse_filter(const char *what, const char *filter, bool is_known, err *e);

/* Cases that are checked: those that any of the filters matches (all without filters), of these axes, shapes
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
/* A case with the k-th kind of held-out inputs, of which there are KINDS. */
enum { CASES_KINDS = 12 };
kernel_case cases_make_held_out(const kernel_case *like, const shape *s, size_t k);
/* Drops those of kernels that the device does not offer; an error if none is left. */
bool cases_keep_offered(case_list *l, const device_facts *d, err *e);
/* Keeps one case of each kernel: the largest of its edge shapes. */
void cases_keep_one(case_list *l);
/* Drops kernels that are a template of their op in yet another format or accumulation; each template, format,
 * file and accumulation of an op stays in at least one kernel. Returns how many kernels that were. */
size_t cases_drop_repeated(case_list *l);
/* The case named by "kernel/shape/input", whether or not the registry lists its shape. */
bool cases_parse(const char *name, kernel_case *out);
/* A name that no op has; returns false. */
bool cases_refuse_op(const char *name, err *e);
void cases_free(case_list *l);

/* Cases that are timed. Shapes need not be those of the registry: any that the kernel takes will do.
 *
 * Lists with commas, or NULL: the last (largest) shape of each kernel, the batch of the shape,
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
