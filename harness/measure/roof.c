
#include "roof.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/stats.h"

#define SMALLEST ((size_t)256 << 10)
#define LARGEST ((size_t)512 << 20)
#define LEAST_CACHE ((size_t)8 << 20) /* cold is never less than twice this */
#define MOST_CHECKED                                                                               \
    ((size_t)16 << 20) /* the same kernel on more bytes shows nothing new, in seconds */

enum { READ, COPY, TRIAD, KINDS, COMPUTE = KINDS, GROUP = 256 };

/* One bandwidth kernel over a given number of bytes. */
typedef struct {
    size_t bytes; /* moved by a play */
    tape *tape;
    buffer *buffers[3];
    double gb_s; /* when it was last measured; 0: never */
} mover;

struct roof {
    library *lib;
    const roof_kernels *kernels;
    double budget_s;
    roof_facts facts;
    mover movers[ROOF_SIZES][KINDS];
    tape *empty;
    buffer *counter;
    mover scrub, compute;
};

static timing_plan make_plan(double budget_s) {
    timing_plan p = timing_plan_new();
    p.target = 0.01;
    p.budget_s = budget_s;
    p.warm_up_s = budget_s / 10;
    p.min_samples = 5;
    p.max_samples = 25;
    return p;
}

static void mover_close(mover *m) {
    tape_free(m->tape);
    for (int i = 0; i < KINDS; i++)
        buffer_free(m->buffers[i]);
    *m = (mover){0};
}

static buffer *new_buffer(device *d, const char *label, size_t bytes, err *e) {
    buffer *b = device_new_buffer(d, bytes, STORAGE_SHARED, label, e);
    /* 0x3F80 twice is a little more than 1.0f. */
    if (b && !buffer_fill_pattern(b, 0, bytes, 0x3F80, e)) {
        buffer_free(b);
        return NULL;
    }
    return b;
}

/* `bytes` are those that it moves: a copy of half of them in and half out. */
static bool mover_open(mover *m, const roof *r, int kind, size_t bytes, uint32_t groups, err *e) {
    static const char *const labels[KINDS] = {"a", "b", "c"};
    device *d = library_get_device(r->lib);
    size_t vectors = bytes / 16 / (size_t)(kind == COPY ? 2 : kind == TRIAD ? 3 : 1);
    if (groups > vectors / GROUP)
        groups = (uint32_t)(vectors / GROUP);
    size_t out = kind == READ ? groups * sizeof(float) : vectors * 16;
    *m = (mover){.bytes = bytes, .tape = tape_new(r->lib)};
    for (int i = 0; i < (kind == TRIAD ? 3 : 2); i++) {
        bool is_output = i == (kind == TRIAD ? 2 : 1);
        if (!(m->buffers[i] = new_buffer(d, labels[i], is_output ? out : vectors * 16, e)))
            return false;
    }
    slice a = slice_whole(m->buffers[0]), b = slice_whole(m->buffers[1]);
    uint32_t n = (uint32_t)vectors;
    if (kind == READ)
        return r->kernels->read(m->tape, a, b, n, groups, e);
    if (kind == COPY)
        return r->kernels->copy(m->tape, a, b, n, groups, e);
    if (kind == COMPUTE) /* rounds enough that nothing else matters */
        return r->kernels->compute(m->tape, a, b, n, device_get_facts(d)->emulated ? 32 : 1024, e);
    return r->kernels->triad(m->tape, a, b, slice_whole(m->buffers[2]), n, groups, e);
}

/* A tape's median in a regime, on one clock. */
static bool measure(tape *t, timing_regime regime, double budget_s, bool check, timing_clock clock,
                    double *ns, err *e) {
    subject_options o = {.regime = regime, .cache = TIMING_WARM, .sample_s = budget_s / 20};
    timing_plan plan = make_plan(budget_s);
    timing_result result = {0};
    subject *s = subject_new(t, &o, e);
    bool ok = s && (!check || subject_check(s, e));
    if (ok) {
        timing_source source = subject_get_source(s);
        ok = timing_run(&plan, &source, 1, &result, e);
        *ns = ok ? timing_compute_stats(&result, clock).median : NAN;
    }
    timing_result_free(&result);
    subject_free(s);
    return ok;
}

/* The first time a mover is measured, it is checked, unless that takes longer than to measure it. */
static bool measure_mover(roof *r, size_t size, int kind, err *e) {
    mover *m = &r->movers[size][kind];
    double ns;
    bool is_first = !m->tape;
    if (is_first && !mover_open(m, r, kind, r->facts.size[size], r->facts.groups, e))
        return false;
    bool checks = is_first && m->bytes <= MOST_CHECKED;
    if (!measure(m->tape, TIMING_CHAINED, r->budget_s, checks, CLOCK_GPU, &ns, e))
        return false;
    m->gb_s = (double)tape_sum_bytes(m->tape) / ns;
    return true;
}

/* How many threadgroups saturate memory: depends on the device, so several are tried. What the best of them
 * computes is checked later, with less of it. */
static bool choose_groups(roof *r, size_t bytes, err *e) {
    static const uint32_t candidates[] = {32, 128, 512, 2048};
    double best = INFINITY, ns;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        mover m;
        bool ok = mover_open(&m, r, READ, bytes, candidates[i], e) &&
                  measure(m.tape, TIMING_CHAINED, r->budget_s, false, CLOCK_GPU, &ns, e);
        mover_close(&m);
        if (!ok)
            return false;
        if (ns < best) {
            best = ns;
            r->facts.groups = candidates[i];
        }
    }
    return true;
}

/* ASSAY_CACHE_BYTES overrides any measurement. *given is 0 without it. */
static bool find_given(size_t *given, err *e) {
    const char *text = getenv("ASSAY_CACHE_BYTES");
    char *end;
    *given = 0;
    if (!text || !*text)
        return true;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || bytes < SMALLEST || bytes > LARGEST)
        return err_set(e, EXIT_USAGE,
                       "ASSAY_CACHE_BYTES is '%.40s'; it takes a number of bytes from %zu to %zu",
                       text, SMALLEST, LARGEST);
    *given = (size_t)bytes;
    return true;
}

/* Sizes up to twice the cache if it is known, else up to the size of any cache. */
static void list_sizes(roof *r, const device_facts *d, size_t known) {
    size_t last = known ? 2 * SMALLEST : LARGEST;
    while (last < 2 * known)
        last *= 2;
    while (last > SMALLEST && last > d->memory_bytes / 16)
        last /= 2;
    for (size_t bytes = SMALLEST; bytes <= last && r->facts.sizes < ROOF_SIZES; bytes *= 2)
        r->facts.size[r->facts.sizes++] = bytes;
}

/* The CPU's caches as the system reports them count only if the device shares them and reports none
 * of its own. An emulated device's loads are too slow for a cache to show: it has the least. */
static bool find_caches(roof *r, const device_facts *d, err *e) {
    roof_facts *f = &r->facts;
    size_t given, told = (size_t)d->cache_bytes;
    if (told == 0 && d->unified && !d->emulated)
        told = host_find_cache();
    if (!find_given(&given, e))
        return false;
    told = told > LEAST_CACHE ? told : LEAST_CACHE;
    list_sizes(r, d, given ? given : d->emulated ? told : 0);
    f->is_swept = !given && !d->emulated;
    for (size_t i = 0; i < f->sizes && f->is_swept; i++) {
        if (!measure_mover(r, i, READ, e))
            return false;
        f->read_gb_s[i] = r->movers[i][READ].gb_s;
    }
    f->seen_bytes = f->is_swept ? caches_find_last(f->size, f->read_gb_s, f->sizes) : 0;
    f->cache_bytes = given ? given : f->seen_bytes > told ? f->seen_bytes : told;
    const char *source = given                             ? "as ASSAY_CACHE_BYTES says"
                         : f->seen_bytes == f->cache_bytes ? "measured"
                         : f->cache_bytes > LEAST_CACHE    ? "as the system says"
                                                           : "assumed: no step was seen";
    snprintf(f->source, sizeof f->source, "%s", source);
    return true;
}

static bool make_empty(roof *r, err *e) {
    uint32_t zero = 0;
    r->empty = tape_new(r->lib);
    r->counter =
        device_new_buffer(library_get_device(r->lib), sizeof zero, STORAGE_SHARED, "counter", e);
    return r->counter && buffer_upload(r->counter, 0, &zero, sizeof zero, e) &&
           r->kernels->empty(r->empty, slice_whole(r->counter), e);
}

roof *roof_new(library *lib, const roof_kernels *k, double budget_s, err *e) {
    roof *r = array_new(1, sizeof *r);
    r->lib = lib;
    r->kernels = k;
    r->budget_s = budget_s;
    const device_facts *d = device_get_facts(library_get_device(lib));
    if (choose_groups(r, d->emulated ? (size_t)1 << 20 : (size_t)64 << 20, e) &&
        find_caches(r, d, e) && make_empty(r, e))
        return r;
    roof_free(r);
    return NULL;
}

void roof_free(roof *r) {
    if (!r)
        return;
    for (size_t i = 0; i < ROOF_SIZES; i++)
        for (int k = 0; k < KINDS; k++)
            mover_close(&r->movers[i][k]);
    mover_close(&r->scrub);
    mover_close(&r->compute);
    tape_free(r->empty);
    buffer_free(r->counter);
    free(r);
}

const roof_facts *roof_get_facts(const roof *r) {
    return &r->facts;
}

tape *roof_get_scrub(roof *r, err *e) {
    mover *m = &r->scrub;
    if (!m->tape &&
        !mover_open(m, r, READ, 2 * r->facts.cache_bytes + SMALLEST, r->facts.groups, e)) {
        mover_close(m);
        return NULL;
    }
    return m->tape;
}

/* As many threads as read fastest. */
static bool measure_compute(roof *r, double *gflop_s, err *e) {
    mover *m = &r->compute;
    const bool is_first = !m->tape;
    const uint32_t groups = r->facts.groups;
    double ns;
    if (is_first && !mover_open(m, r, COMPUTE, (size_t)GROUP * groups * 16, groups, e))
        return false;
    if (!measure(m->tape, TIMING_CHAINED, r->budget_s, is_first, CLOCK_GPU, &ns, e))
        return false;
    *gflop_s = (double)tape_sum_flops(m->tape) / ns;
    return true;
}

/* The smallest size of the sweep that is at least as large, or the largest. */
static size_t find_size(const roof_facts *f, size_t bytes) {
    size_t i = 0;
    while (i + 1 < f->sizes && f->size[i] < bytes)
        i++;
    return i;
}

bool roof_measure(roof *r, size_t bytes, timing_cache cache, roof_window *out, err *e) {
    const roof_facts *f = &r->facts;
    size_t at = find_size(f, cache == TIMING_COLD ? 2 * f->cache_bytes : bytes);
    for (int k = 0; k < KINDS; k++)
        if (!measure_mover(r, at, k, e))
            return false;
    *out = (roof_window){.best_gb_s = 0};
    for (size_t i = at; i < f->sizes; i++)
        for (int k = 0; k < KINDS; k++)
            out->best_gb_s = fmax(out->best_gb_s, r->movers[i][k].gb_s);
    return measure_compute(r, &out->gflop_s, e) &&
           measure(r->empty, TIMING_CHAINED, r->budget_s / 2, false, CLOCK_GPU, &out->launch_ns,
                   e) &&
           measure(r->empty, TIMING_SINGLE, r->budget_s / 2, false, CLOCK_WALL, &out->submit_ns, e);
}

size_t caches_find_last(const size_t *sizes, const double *gb_s, size_t count) {
    const double step = 1.2; /* times the bandwidth of memory */
    if (count < 4)
        return 0;
    /* Bandwidth of memory: the two largest sizes, which exceed any cache or there is no step. */
    double memory = stats_compute(gb_s + count - 2, 2).mean;
    for (size_t i = count - 2; i-- > 0;)
        /* One size alone may be noise; the one below it must be fast as well. */
        if (gb_s[i] >= step * memory && (i == 0 || gb_s[i - 1] >= step * memory))
            return sizes[i];
    return 0;
}
