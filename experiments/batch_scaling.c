/* batch_scaling: Q4_0 products of 1 to 32 tokens by the published kernel (token outer: it goes
 * through the weights once per token) and by one that decodes each weight once for 8 tokens
 * (reuse). What was published was measured with a wall clock around submit and wait, where most of
 * the time is the submit. Here the submit is the part that only separate submission has, the launch
 * that of an empty kernel, and the rest that does not grow with the batch the stream of weights,
 * from memory when cold and from the caches when warm. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/measure/fit.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

EXPERIMENT(
    batch_scaling, .order = 70,
    .question = "Does a batch of B tokens cost less than B tokens, and which part of the time is "
                "saved?",
    .claim = "3.9x per token at 4, 7.1x at 8: weights cached in the system-level cache after token "
             "1",
    .finding = "Cold, a batch of 8 is {batch_speedup_8_single_cold_token_outer} times as fast "
               "per token where each is submitted alone, and "
               "{batch_speedup_8_chained_cold_token_outer} times in a chain, without the submit",
    .how = "medians, by the wall clock where each batch is submitted alone and by the GPU clock "
           "where chained; speed-up is B T(1) / T(B) in the same state; T(B) = submit + launch + "
           "stream + B compute fitted to all states of a kernel and shape by non-negative least "
           "squares, the launch measured");

enum { SUBMIT, COLD, WARM, COMPUTE, PARTS, MOST = 256, VARIANTS = 2 };
static const char *const part_names[PARTS] = {"submit", "stream_cold", "stream_warm", "compute"};
static const char *const variant_names[VARIANTS] = {"token_outer", "reuse"};
static const char *const kernel_names[VARIANTS] = {"multi_token_matvec_q4_0",
                                                   "multi_token_matvec_q4_0_reuse"};

typedef struct {
    uint32_t out, in;
} dims;
static const dims shapes[] = {{576, 576}, {1536, 576}, {4096, 4096}};
static const uint32_t batches[] = {1, 4, 8, 16, 2, 32}; /* the first are those of a quick run */

static bool run_point(lab *l, sheet *s, dims d, timing_regime regime, timing_cache cache,
                      uint32_t batch, err *e) {
    measurement cases[VARIANTS] = {{.regime = regime}};
    shape full = {{d.out, d.in, batch}};
    char text[32];
    snprintf(text, sizeof text, "%ux%u", d.out, d.in);
    bool ok = true;
    for (size_t i = 0; ok && i < VARIANTS; i++)
        ok = lab_open_case(l, &cases[i], &matvec_op, op_find_kernel(&matvec_op, kernel_names[i]),
                           full, regime, cache, e);
    ok = ok && lab_time(l, cases, VARIANTS, e);
    for (size_t i = 0; ok && i < VARIANTS; i++) {
        bool is_single = regime == TIMING_SINGLE;
        sheet_add_variant(s, variant_names[i]);
        sheet_put_text(s, "matrix", text);
        sheet_put(s, "batch", batch);
        lab_put(l, s, &cases[i]);
        /* Submitted alone: the wall clock, as published; chained: the GPU's. */
        size_t row = sheet_count_rows(s) - 1;
        sheet_put_text(s, "clock", is_single ? "wall" : "gpu");
        sheet_put(s, "time_ns", sheet_get(s, row, is_single ? "wall_ns" : "gpu_ns"));
        sheet_put(s, "time_q1_ns", sheet_get(s, row, is_single ? "wall_q1_ns" : "gpu_q1_ns"));
        sheet_put(s, "time_q3_ns", sheet_get(s, row, is_single ? "wall_q3_ns" : "gpu_q3_ns"));
    }
    lab_close_cases(cases, VARIANTS);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    static const timing_regime regimes[] = {TIMING_SINGLE, TIMING_CHAINED};
    size_t shape_count = lab_choose(l, COUNT_OF(shapes), 1);
    size_t batch_count = lab_choose(l, COUNT_OF(batches), 3);
    bool ok = true;
    for (size_t d = 0; d < shape_count; d++)
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < TIMING_CACHES; c++)
                for (size_t b = 0; ok && b < batch_count; b++)
                    ok = run_point(l, s, shapes[d], regimes[r], (timing_cache)c, batches[b], e);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

/* The parts of a row's time besides the launch, in order. */
static void describe(const sheet *s, size_t row, double parts[PARTS]) {
    bool is_cold = sheet_is(s, row, "cache", "cold", NULL);
    parts[SUBMIT] = sheet_is(s, row, "regime", "single", NULL);
    parts[COLD] = is_cold;
    parts[WARM] = !is_cold;
    parts[COMPUTE] = sheet_get(s, row, "batch");
}

static double get_launch(const sheet *s, size_t row) {
    double ns = sheet_get(s, row, "launch_ns");
    return ns > 0 ? fmin(ns, sheet_get(s, row, "time_ns") / 2) : 0;
}

static void put_fit(sheet *s, size_t row, const fit *f) {
    double parts[PARTS];
    describe(s, row, parts);
    sheet_put_at(s, row, "fit_submit_ns", parts[SUBMIT] * f->value[SUBMIT]);
    sheet_put_at(s, row, "fit_launch_ns", get_launch(s, row));
    sheet_put_at(s, row, "fit_stream_ns",
                 parts[COLD] * f->value[COLD] + parts[WARM] * f->value[WARM]);
    sheet_put_at(s, row, "fit_compute_ns", parts[COMPUTE] * f->value[COMPUTE]);
    sheet_put_at(s, row, "fit_ns", get_launch(s, row) + fit_predict(f, parts));
}

static bool fit_variant(sheet *s, const char *matrix, const char *variant, fit *f) {
    double rows[MOST * PARTS], times[MOST];
    size_t count = 0;
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_is(s, r, "matrix", matrix, "variant", variant, NULL)) {
            assert(count < MOST);
            describe(s, r, rows + count * PARTS);
            times[count++] = sheet_get(s, r, "time_ns") - get_launch(s, r);
        }
    if (!fit_parts(rows, times, count, PARTS, f, NULL))
        return false;
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_is(s, r, "matrix", matrix, "variant", variant, NULL))
            put_fit(s, r, f);
    return true;
}

/* B * T(1) / T(B): what a token gains by being in a batch. */
static double find_speedup(const sheet *s, const char *matrix, const char *variant,
                           const char *regime, const char *cache, const char *batch) {
    double one = sheet_find(s, "time_ns", "matrix", matrix, "variant", variant, "regime", regime,
                            "cache", cache, "batch", "1", NULL);
    double many = sheet_find(s, "time_ns", "matrix", matrix, "variant", variant, "regime", regime,
                             "cache", cache, "batch", batch, NULL);
    return strtod(batch, NULL) * one / many;
}

static void add_fit_metrics(sheet *s, const char *matrix, const char *variant, const fit *f) {
    char name[64];
    for (int p = 0; p < PARTS; p++) {
        snprintf(name, sizeof name, "%s_us_%s_%s", part_names[p], matrix, variant);
        sheet_add_metric(s, name, 1e-3 * f->value[p], "us");
    }
    snprintf(name, sizeof name, "fit_rms_pct_%s_%s", matrix, variant);
    sheet_add_metric(s, name, 100 * f->relative_rms, "%");
}

static void add_speedups(sheet *s, const char *matrix) {
    static const char *const regimes[] = {"single", "chained"}, *const caches[] = {"cold", "warm"};
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        sheet_put_at(s, r, "speedup",
                     find_speedup(s, sheet_get_text(s, r, "matrix"),
                                  sheet_get_text(s, r, "variant"), sheet_get_text(s, r, "regime"),
                                  sheet_get_text(s, r, "cache"), sheet_get_text(s, r, "batch")));
    for (int v = 0; v < VARIANTS; v++)
        for (int i = 0; i < 4; i++)
            for (int b = 4; b <= 8; b += 4) {
                char name[64], batch[8];
                snprintf(batch, sizeof batch, "%d", b);
                snprintf(name, sizeof name, "batch_speedup_%d_%s_%s_%s", b, regimes[i / 2],
                         caches[i % 2], variant_names[v]);
                sheet_add_metric(
                    s, name,
                    find_speedup(s, matrix, variant_names[v], regimes[i / 2], caches[i % 2], batch),
                    "x");
            }
}

/* The published case is warm: the same buffers again and again. */
static void conclude(sheet *s) {
    fit f[VARIANTS];
    bool known[VARIANTS] = {false};
    const char *first = sheet_count_rows(s) ? sheet_get_text(s, 0, "matrix") : "";
    for (size_t d = 0; d < COUNT_OF(shapes); d++)
        for (int v = VARIANTS - 1; v >= 0; v--) {
            char text[32];
            fit one;
            snprintf(text, sizeof text, "%ux%u", shapes[d].out, shapes[d].in);
            if (!fit_variant(s, text, variant_names[v], &one))
                continue;
            add_fit_metrics(s, text, variant_names[v], &one);
            if (strcmp(text, first) == 0) {
                f[v] = one;
                known[v] = true;
            }
        }
    add_speedups(s, first);
    double four = find_speedup(s, first, "token_outer", "single", "warm", "4");
    double eight = find_speedup(s, first, "token_outer", "single", "warm", "8");
    double chained = find_speedup(s, first, "token_outer", "chained", "cold", "4");
    sheet_add_metric(s, "speedup_4", four, "x");
    sheet_add_metric(s, "speedup_8", eight, "x");
    sheet_add_metric(s, "speedup_4_chained", chained, "x");
    sheet_add_metric(s, "speedup_4_chained_reuse",
                     find_speedup(s, first, "reuse", "chained", "cold", "4"), "x");
    if (!known[0] || !known[1])
        return;
    /* Of B * T(1) - T(B), each fixed part is saved B - 1 times: shares do not depend on B. */
    double saved[] = {f[0].value[SUBMIT], get_launch(s, 0), f[0].value[WARM]};
    double fixed = saved[0] + saved[1] + saved[2];
    for (int p = 0; p < 3; p++) {
        static const char *const names[] = {"submit", "launch", "stream"};
        char name[64];
        snprintf(name, sizeof name, "saved_by_%s_pct", names[p]);
        sheet_add_metric(s, name, fixed > 0 ? 100 * saved[p] / fixed : 0, "%");
    }
    sheet_conclude(
        s,
        "%s, token outer, each submitted alone, warm: %.3g times as fast per token at 4, %.3g at "
        "8. "
        "Of the saving, %.0f %% is submit, %.0f %% launch and %.0f %% weights that are read once; "
        "%.0f %% of a single token is compute, which a batch does not save (fit within %.2g %%%s).",
        first, four, eight, sheet_get_metric(s, "saved_by_submit_pct"),
        sheet_get_metric(s, "saved_by_launch_pct"), sheet_get_metric(s, "saved_by_stream_pct"),
        100 * f[0].value[COMPUTE] / (fixed + f[0].value[COMPUTE]), 100 * f[0].relative_rms,
        f[0].relative_rms > 0.1 ? ": noisy" : "");
    sheet_conclude(
        s,
        "Chained and cold, without the submit: %.3g times as fast at 4 with token outer, "
        "%.3g with weights decoded once for 8 tokens, which computes for %.3g instead of "
        "%.3g µs per token; reading the weights takes %.3g µs from memory, %.3g from "
        "caches.",
        chained, sheet_get_metric(s, "speedup_4_chained_reuse"), 1e-3 * f[1].value[COMPUTE],
        1e-3 * f[0].value[COMPUTE], 1e-3 * f[0].value[COLD], 1e-3 * f[0].value[WARM]);
}
