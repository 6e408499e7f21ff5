/* bandwidth: kernels that read all of a buffer and prove it by a sum, copy and triad: as they are
 * warm, the size of the buffer alone says which cache or memory it comes from. Then the same reads
 * by fewer and fewer threads. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/array.h"
#include "harness/measure/roof.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "reference/quant.h"

EXPERIMENT(
    bandwidth, .order = 10,
    .question = "How fast can memory be read, by size, format and occupancy, and where do the "
                "caches end?",
    .claim = "200+ GB/s against 120 nominal from the system-level cache",
    .finding = "Reads reach {read_best_gb_s} GB/s at {read_best_at_mb} MB, and "
               "{read_memory_gb_s} GB/s from the largest buffer; one simdgroup alone reads "
               "{read_f32_one_simdgroup_gb_s} GB/s",
    .how = "bytes that the kernel must move over the median GPU time of a launch in a chain, the "
           "same buffers each time (warm); kernels of one size interleaved; sums checked against "
           "the oracle");

enum { READ, COPY, TRIAD };

typedef struct {
    const char *variant, *kernel;
    int kind;
    uint32_t unit_bytes; /* that a kernel's n counts, in one buffer */
} mover_kind;

static const mover_kind kinds[] = {
    {"read_f32", "bandwidth_read_f32", READ, 16},
    {"read_f16", "bandwidth_read_f16", READ, 8},
    {"read_q4_0", "bandwidth_read_q4_0", READ, sizeof(block_q4_0)},
    {"copy", "bandwidth_copy", COPY, 16},
    {"triad", "bandwidth_triad", TRIAD, 16},
    {"read_high_occupancy", "bandwidth_read_high_occupancy", READ, 16},
};
enum { KINDS = COUNT_OF(kinds), BUFFERS = 3 };

typedef struct {
    measurement timed;
    buffer *buffers[BUFFERS];
    double bytes;  /* moved, about */
    kernel kernel; /* maybe with another group size: the tape refers to it */
    uint32_t groups;
} mover;

static void close_movers(mover *m, size_t count) {
    for (size_t i = 0; i < count; i++) {
        lab_close_cases(&m[i].timed, 1);
        tape_free(m[i].timed.tape);
        for (int b = 0; b < BUFFERS; b++)
            buffer_free(m[i].buffers[b]);
    }
}

/* Whole numbers from -8 to 7 in the format that is read: their sums are exact in any order, so a
 * missing or repeated read shows, and a long sum has no rounding error. */
static void draw_units(lab *l, uint32_t unit_bytes, uint8_t *units, size_t count) {
    rng r = rng_new(lab_get_seed(l), "bandwidth");
    for (size_t i = 0; i < count; i++, units += unit_bytes) {
        for (uint32_t k = 0; k < unit_bytes; k++)
            units[k] = (uint8_t)rng_next(&r);
        if (unit_bytes == sizeof(block_q4_0))
            elem_write(ELEM_F16, units, 0, 1); /* the scale of a block */
        else
            for (uint32_t k = 0; k < 4; k++)
                elem_write(unit_bytes == 8 ? ELEM_F16 : ELEM_F32, units, k,
                           (double)rng_below(&r, 16) - 8);
    }
}

/* The same units repeated. */
static bool fill(lab *l, buffer *b, uint32_t unit_bytes, err *e) {
    enum { UNITS = 16384 };
    size_t bytes = (size_t)UNITS * unit_bytes;
    uint8_t *units = array_new(1, bytes);
    draw_units(l, unit_bytes, units, UNITS);
    bool ok = true;
    for (size_t at = 0; ok && at < b->bytes; at += bytes)
        ok = buffer_upload(b, at, units, b->bytes - at < bytes ? b->bytes - at : bytes, e);
    free(units);
    return ok;
}

/* `groups` threadgroups of `group` threads; 0: the kernel's own number. */
static bool open_mover(lab *l, mover *m, const mover_kind *k, const char *sweep, double bytes,
                       uint32_t groups, uint32_t group, err *e) {
    static const char *const labels[BUFFERS] = {"a", "b", "c"};
    library *lib = lab_get_library(l);
    kernel mine = *registry_find_kernel(k->kernel, NULL);
    uint32_t asked = groups; /* names the case: the clamped number may be that of another */
    uint32_t streams = k->kind == READ ? 1 : k->kind == COPY ? 2 : 3;
    uint32_t n = (uint32_t)(bytes / streams / k->unit_bytes);
    if (groups > n / mine.group + 1) /* the rest would have nothing to do */
        groups = n / mine.group + 1;
    if (mine.groups)
        groups = mine.groups;
    if (group)
        mine.group = group;
    *m = (mover){.bytes = bytes, .kernel = mine, .groups = groups};
    m->timed.tape = tape_new(lib);
    m->timed.regime = TIMING_CHAINED;
    snprintf(m->timed.key, sizeof m->timed.key, "%s/%s/%.0f/%ux%u", sweep, k->variant, bytes, asked,
             mine.group);
    for (uint32_t i = 0; i < (streams < 2 ? 2 : streams); i++) {
        bool is_sums = k->kind == READ && i == 1;
        size_t size = is_sums ? groups * sizeof(float) : (size_t)n * k->unit_bytes;
        m->buffers[i] =
            device_new_buffer(library_get_device(lib), size, STORAGE_SHARED, labels[i], e);
        if (!m->buffers[i] || (!is_sums && !fill(l, m->buffers[i], k->unit_bytes, e)))
            return false;
    }
    slice a = slice_whole(m->buffers[0]), b = slice_whole(m->buffers[1]);
    if (k->kind == READ)
        return bandwidth_read_record(m->timed.tape, &m->kernel, a, b, n, groups, e);
    if (k->kind == COPY)
        return bandwidth_copy_record(m->timed.tape, &m->kernel, a, b, n, groups, e);
    return bandwidth_triad_record(m->timed.tape, &m->kernel, a, b, slice_whole(m->buffers[2]), n,
                                  0.5f, groups, e);
}

static bool time_movers(lab *l, sheet *s, mover *m, const mover_kind *const *which, size_t count,
                        const char *sweep, err *e) {
    measurement cases[KINDS * 2];
    for (size_t i = 0; i < count; i++)
        cases[i] = m[i].timed;
    bool ok = lab_time(l, cases, count, e);
    for (size_t i = 0; i < count; i++) {
        m[i].timed = cases[i];
        if (!ok)
            continue;
        sheet_add_row(s);
        sheet_put_text(s, "sweep", sweep);
        sheet_put_text(s, "variant", which[i]->variant);
        sheet_put(s, "size_mb", m[i].bytes * 1e-6);
        sheet_put(s, "threads", (double)m[i].groups * m[i].kernel.group);
        lab_put(l, s, &m[i].timed);
    }
    return ok;
}

static bool run_size(lab *l, sheet *s, double bytes, uint32_t groups, err *e) {
    mover m[KINDS] = {{.bytes = 0}};
    const mover_kind *which[KINDS];
    size_t count = lab_choose(l, KINDS, KINDS - 1); /* the last only in full */
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        which[i] = &kinds[i];
        ok = open_mover(l, &m[i], which[i], "size", bytes, groups, 0, e);
    }
    ok = ok && time_movers(l, s, m, which, count, "size", e);
    close_movers(m, count);
    return ok;
}

/* The same bytes by 32 threads (one simdgroup), 256, and more. */
static bool run_occupancy(lab *l, sheet *s, double bytes, err *e) {
    static const uint32_t groups[] = {1, 1, 4, 16, 64, 256, 1024};
    static const mover_kind *const which[] = {&kinds[0], &kinds[2]};
    size_t step = lab_get_level(l) == LEVEL_FULL ? 1 : 2;
    bool ok = true;
    for (size_t i = 0; ok && i < COUNT_OF(groups); i += step) {
        mover m[2] = {{.bytes = 0}};
        for (size_t k = 0; ok && k < 2; k++)
            ok =
                open_mover(l, &m[k], which[k], "occupancy", bytes, groups[i], i == 0 ? 32 : 256, e);
        ok = ok && time_movers(l, s, m, which, 2, "occupancy", e);
        close_movers(m, 2);
    }
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    size_t cache;
    roof *r;
    if (!lab_find_cache(l, &cache, e) || !lab_find_roof(l, &r, e))
        return false;
    uint32_t groups = r ? roof_get_facts(r)->groups : 8;
    bool is_full = lab_get_level(l) == LEVEL_FULL, is_smoke = lab_get_level(l) == LEVEL_SMOKE;
    /* All kernels of a size are open at once, and what they read is kept a second time. */
    double most = (double)lab_get_facts(l)->memory_bytes / (8 * KINDS);
    /* Beyond 4 times the cache everything comes from memory; on a GPU go as far as possible. The caches
     * of a CPU say nothing about a GPU. */
    bool is_emulated = lab_get_facts(l)->emulated, is_far = is_full && !is_emulated;
    double last = is_smoke                  ? 0.3e6
                  : is_far                  ? 1.1e9
                  : is_full || !is_emulated ? (is_full ? 4 : 2) * (double)cache
                                            : 16e6;
    bool ok = true;
    for (double bytes = 0.25e6; ok && bytes <= fmin(last, most); bytes *= is_full ? 2 : 4)
        ok = run_size(l, s, bytes, groups, e);
    return ok && run_occupancy(l, s, is_smoke ? 0.1e6 : is_full ? 64e6 : 4e6, e);
}

/* Conclusions --------------------------------------------------------------------------------- */

enum { MOST = 64 };

typedef struct {
    size_t sizes[MOST], count, best, last;
    double gb_s[MOST];
} curve;

static curve read_curve(const sheet *s, const char *variant) {
    curve c = {.count = 0};
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_is(s, r, "sweep", "size", "variant", variant, NULL)) {
            assert(c.count < MOST);
            c.sizes[c.count] = (size_t)(sheet_get(s, r, "size_mb") * 1e6);
            c.gb_s[c.count] = sheet_get(s, r, "gb_s");
            if (c.gb_s[c.count] > c.gb_s[c.best])
                c.best = c.count;
            c.last = c.count++;
        }
    return c;
}

static double get_memory(const sheet *s, const char *variant) {
    curve c = read_curve(s, variant);
    return c.count ? c.gb_s[c.last] : NAN;
}

/* Bandwidth by number of threads: of one simdgroup, and the best and the worst of all. */
typedef struct {
    double alone, best, best_threads, worst, worst_threads;
} occupancy;

static occupancy read_occupancy(const sheet *s, const char *variant) {
    occupancy o = {.alone = NAN, .best = NAN, .worst = NAN};
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        if (!sheet_is(s, r, "sweep", "occupancy", "variant", variant, NULL))
            continue;
        double gb_s = sheet_get(s, r, "gb_s"), threads = sheet_get(s, r, "threads");
        if (threads == 32)
            o.alone = gb_s;
        if (!(gb_s <= o.best)) {
            o.best = gb_s;
            o.best_threads = threads;
        }
        if (!(gb_s >= o.worst)) {
            o.worst = gb_s;
            o.worst_threads = threads;
        }
    }
    return o;
}

static void conclude(sheet *s) {
    curve read = read_curve(s, "read_f32");
    if (read.count == 0)
        return;
    double best = read.gb_s[read.best], memory = read.gb_s[read.last];
    double f16 = get_memory(s, "read_f16"), q4_0 = get_memory(s, "read_q4_0");
    occupancy wide = read_occupancy(s, "read_f32"), packed = read_occupancy(s, "read_q4_0");
    size_t step = caches_find_last(read.sizes, read.gb_s, read.count);
    sheet_add_metric(s, "read_best_gb_s", best, "GB/s");
    sheet_add_metric(s, "read_best_at_mb", (double)read.sizes[read.best] * 1e-6, "MB");
    sheet_add_metric(s, "read_memory_gb_s", memory, "GB/s");
    sheet_add_metric(s, "read_f16_memory_gb_s", f16, "GB/s");
    sheet_add_metric(s, "read_q4_0_memory_gb_s", q4_0, "GB/s");
    sheet_add_metric(s, "copy_memory_gb_s", get_memory(s, "copy"), "GB/s");
    sheet_add_metric(s, "triad_memory_gb_s", get_memory(s, "triad"), "GB/s");
    sheet_add_metric(s, "read_f32_one_simdgroup_gb_s", wide.alone, "GB/s");
    sheet_add_metric(s, "read_q4_0_one_simdgroup_gb_s", packed.alone, "GB/s");
    sheet_add_metric(s, "threads_f32_best_over_worst", wide.best / wide.worst, "x");
    sheet_add_metric(s, "threads_q4_0_best_over_worst", packed.best / packed.worst, "x");
    if (step)
        sheet_add_metric(s, "cache_step_mb", (double)step * 1e-6, "MB");
    char where[64] = "no cache boundary is visible";
    if (step)
        snprintf(where, sizeof where, "the last cache ends after %.3g MB", (double)step * 1e-6);
    sheet_conclude(s,
                   "f32 is read at up to %.4g GB/s (%.3g MB), and at %.4g GB/s from the largest "
                   "buffer (%.4g MB); %s.",
                   best, (double)read.sizes[read.best] * 1e-6, memory,
                   (double)read.sizes[read.last] * 1e-6, where);
    sheet_conclude(
        s,
        "From the largest buffer f16 is read at %.4g GB/s and Q4_0 at %.4g GB/s. By number of "
        "threads f32 goes from %.4g (%.0f threads) to %.4g GB/s (%.0f), %.3g-fold, and "
        "Q4_0 from %.4g to %.4g, %.3g-fold: %s.",
        f16, q4_0, wide.worst, wide.worst_threads, wide.best, wide.best_threads,
        wide.best / wide.worst, packed.worst, packed.best, packed.best / packed.worst,
        wide.best > 2 * wide.worst || packed.best > 2 * packed.worst
            ? "how many threads read matters more than the format"
            : "the number of threads hardly matters here");
}
