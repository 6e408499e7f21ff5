/* fusion: rmsnorm and a Q4_0 product in two launches, fused per row (each row computes the norm)
 * and per group (8 rows share it), by width and by number of rows. All of them divide the product
 * in the same way: one simdgroup per row. Then the norms of a whole layer of SmolLM-135M and the
 * products that follow them; and whole tokens of a model whose norms are separate launches or fused
 * into the five products after them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoding.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

EXPERIMENT(
    fusion, .order = 60,
    .question = "Does it pay to compute RMSNorm inside the product that follows it, and from which "
                "size on?",
    .claim = "fused per row is 5 % slower end to end: 4032 norms per layer instead of 2",
    .finding = "RMSNorm fused into the products of a SmolLM layer takes "
               "{fused_row_slowdown_pct|more} time per row, {fused_group_slowdown_pct|more} per "
               "group of 8; whole tokens, fused per row: {tok_s_fused} instead of "
               "{tok_s_separate} per second",
    .how = "median GPU time of norm and Q4_0 product, chained, warm; the three variants of a shape "
           "interleaved; every launch checked against its oracle; tokens by the wall clock",
    .has_model = true);

enum { SEPARATE, FUSED_ROW, FUSED_GROUP, WAYS };
static const char *const names[WAYS] = {"separate", "fused_row", "fused_group"};

static const uint32_t full_ins[] = {256, 576, 1024, 2048, 4096, 8160};
static const uint32_t full_outs[] = {192, 576, 1536, 4096, 16384, 49152};
static const uint32_t quick_ins[] = {256, 576, 2048}, quick_outs[] = {192, 1536};

/* Everything that a norm and the product after it need. */
typedef struct {
    kernel_case built; /* its buffers; its own tape is not used */
    buffer *normed;
    uint32_t out, in;
} stage;

static bool open_stage(lab *l, stage *t, uint32_t out, uint32_t in, err *e) {
    shape dims = {{out, in}};
    const op *o = &rmsnorm_matvec_op;
    *t = (stage){case_new(o, &o->kernels[0], &dims, INPUT_NORMAL), .out = out, .in = in};
    if (!case_open(&t->built, lab_get_library(l), lab_get_seed(l), e))
        return false;
    t->normed = device_new_buffer(library_get_device(lab_get_library(l)), in * sizeof(float),
                                  STORAGE_PRIVATE, "normed", e);
    return t->normed != NULL;
}

static void close_stage(stage *t) {
    case_close(&t->built);
    buffer_free(t->normed);
}

static slice get_at(const stage *t, int index) {
    return t->built.tape->launches[0].args[index].at;
}

static bool record_norm(tape *to, const stage *t, err *e) {
    return rmsnorm_record(to, op_find_kernel(&rmsnorm_op, "rmsnorm_rows"), get_at(t, 0),
                          get_at(t, 1), slice_whole(t->normed), 1, t->in, 1e-5f, e);
}

static bool record_product(tape *to, const stage *t, slice normed, err *e) {
    return matvec_record(to, op_find_kernel(&matvec_op, "matvec_q4_0"), get_at(t, 2), normed,
                         get_at(t, 3), t->out, t->in, 1, e);
}

static bool record_fused(tape *to, const stage *t, int way, slice x, slice norm_w, err *e) {
    const kernel *k = &rmsnorm_matvec_op.kernels[way == FUSED_ROW ? 0 : 1];
    const product p = {
        {{.w = get_at(t, 2), .x = x, .y = get_at(t, 3), .rows = t->out, .columns = t->in}},
        .tokens = 1,
        .norm_w = norm_w,
        .eps = 1e-5f};
    return product_record(to, k, &p, e);
}

/* The products of the stages; group[i] is the stage whose x stage i uses, and the first of a group
 * computes the norm. */
static bool record(tape *to, stage *stages, const size_t *group, size_t count, int way, err *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const stage *first = &stages[group[i]];
        if (way != SEPARATE)
            ok = record_fused(to, &stages[i], way, get_at(first, 0), get_at(first, 1), e);
        else
            ok = (group[i] != i || record_norm(to, &stages[i], e)) &&
                 record_product(to, &stages[i], slice_whole(first->normed), e);
    }
    return ok;
}

static bool time_ways(lab *l, sheet *s, stage *stages, const size_t *group, size_t count,
                      const char *shape_text, err *e) {
    measurement cases[WAYS] = {{.regime = TIMING_CHAINED}};
    bool ok = true;
    int norms = 0;
    for (int w = 0; ok && w < WAYS; w++) {
        cases[w].regime = TIMING_CHAINED;
        cases[w].tape = tape_new(lab_get_library(l));
        snprintf(cases[w].key, sizeof cases[w].key, "%s/%s", names[w], shape_text);
        ok = record(cases[w].tape, stages, group, count, w, e);
    }
    ok = ok && lab_time(l, cases, WAYS, e);
    for (int w = 0; w < WAYS; w++) {
        norms = 0;
        for (size_t i = 0; i < count; i++)
            norms += w == SEPARATE    ? group[i] == i
                     : w == FUSED_ROW ? (int)stages[i].out
                                      : (int)divide_up(stages[i].out, 8);
        if (ok) {
            sheet_add_variant(s, names[w]);
            sheet_put_text(s, "shape", shape_text);
            sheet_put(s, "out", count == 1 ? (double)stages[0].out : NAN);
            sheet_put(s, "in", count == 1 ? (double)stages[0].in : NAN);
            sheet_put(s, "norms", norms);
            lab_put(l, s, &cases[w]);
        }
        lab_close_cases(&cases[w], 1);
        tape_free(cases[w].tape);
    }
    return ok;
}

static bool run_shape(lab *l, sheet *s, uint32_t out, uint32_t in, err *e) {
    stage t;
    char text[32];
    snprintf(text, sizeof text, "%ux%u", out, in);
    bool ok = open_stage(l, &t, out, in, e) && time_ways(l, s, &t, (size_t[]){0}, 1, text, e);
    close_stage(&t);
    return ok;
}

/* q, k and v after one norm, gate and up after another. */
static bool run_layer(lab *l, sheet *s, err *e) {
    static const uint32_t outs[] = {576, 192, 192, 1536, 1536};
    static const size_t group[] = {0, 0, 0, 3, 3};
    enum { COUNT = COUNT_OF(outs) };
    stage stages[COUNT] = {{.out = 0}};
    bool ok = true;
    for (size_t i = 0; ok && i < COUNT; i++)
        ok = open_stage(l, &stages[i], outs[i], 576, e);
    ok = ok && time_ways(l, s, stages, group, COUNT, "layer", e);
    for (size_t i = 0; i < COUNT; i++)
        close_stage(&stages[i]);
    return ok;
}

/* End to end, as published. */
static bool run_tokens(lab *l, sheet *s, err *e) {
    lab_decoder d[2] = {{.model = NULL}};
    const model_options how[2] = {{.context = 64, .fusion = FUSION_NONE},
                                  {.context = 64, .fusion = FUSION_ROWS}};
    bool ok =
        lab_open_decoder(l, &how[0], 0, &d[0], e) && lab_open_decoder(l, &how[1], 0, &d[1], e);
    const decoding_way ways[] = {{"tokens, separate", &d[0], PLAY_WHOLE, true, NULL, 0},
                                 {"tokens, fused_row", &d[1], PLAY_WHOLE, true, NULL, 0}};
    ok = ok && decoding_time(l, s, ways, COUNT_OF(ways), e);
    lab_close_decoder(&d[0]);
    lab_close_decoder(&d[1]);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    bool is_full = lab_get_level(l) == LEVEL_FULL, ok = true;
    size_t ins = is_full ? COUNT_OF(full_ins) : lab_choose(l, COUNT_OF(quick_ins), 3);
    size_t outs = is_full ? COUNT_OF(full_outs) : lab_choose(l, COUNT_OF(quick_outs), 2);
    if (lab_get_level(l) == LEVEL_SMOKE)
        ins = outs = 1;
    for (size_t i = 0; ok && i < ins; i++)
        for (size_t o = 0; ok && o < outs; o++)
            ok = run_shape(l, s, (is_full ? full_outs : quick_outs)[o],
                           (is_full ? full_ins : quick_ins)[i], e);
    return ok && run_layer(l, s, e) && run_tokens(l, s, e);
}

/* Conclusions --------------------------------------------------------------------------------- */

static double get_ratio(const sheet *s, const char *shape_text, const char *variant) {
    return sheet_find(s, "gpu_ns", "variant", variant, "shape", shape_text, NULL) /
           sheet_find(s, "gpu_ns", "variant", "separate", "shape", shape_text, NULL);
}

/* The measured shapes on which a fused variant is faster than two launches. */
static void count_wins(const sheet *s, const char *variant, int *wins, int *all, char *best,
                       size_t size, double *best_ratio) {
    *wins = *all = 0;
    *best_ratio = INFINITY;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        const char *text = sheet_get_text(s, r, "shape");
        if (!sheet_is(s, r, "variant", variant, NULL) || strcmp(text, "layer") == 0)
            continue;
        double ratio = get_ratio(s, text, variant);
        *wins += ratio < 1;
        ++*all;
        if (ratio < *best_ratio) {
            *best_ratio = ratio;
            snprintf(best, size, "%s", text);
        }
    }
}

static void conclude(sheet *s) {
    double row = get_ratio(s, "layer", "fused_row"), group = get_ratio(s, "layer", "fused_group");
    double row_ratio, group_ratio;
    int row_wins, group_wins, all;
    char metric[64], row_best[32] = "?", group_best[32] = "?";
    count_wins(s, "fused_row", &row_wins, &all, row_best, sizeof row_best, &row_ratio);
    count_wins(s, "fused_group", &group_wins, &all, group_best, sizeof group_best, &group_ratio);
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        sheet_put_at(s, r, "ratio_to_separate",
                     get_ratio(s, sheet_get_text(s, r, "shape"), sheet_get_text(s, r, "variant")));
    sheet_add_metric(s, "fused_row_slowdown_pct", 100 * (row - 1), "%");
    sheet_add_metric(s, "fused_group_slowdown_pct", 100 * (group - 1), "%");
    for (int w = 0; w < WAYS; w++) {
        snprintf(metric, sizeof metric, "norms_a_layer_%s", names[w]);
        sheet_add_metric(s, metric,
                         sheet_find(s, "norms", "variant", names[w], "shape", "layer", NULL),
                         "count");
    }
    decoding_add_rate(s, "tok_s_separate", "tokens, separate");
    decoding_add_rate(s, "tok_s_fused", "tokens, fused_row");
    sheet_add_metric(s, "fused_row_wins", row_wins, "count");
    sheet_add_metric(s, "fused_group_wins", group_wins, "count");
    sheet_conclude(s,
                   "Norms and products of a SmolLM layer take %.3g %% of the time of separate "
                   "launches if they are fused per row (%.0f norms), and %.3g %% fused per group "
                   "(%.0f); separate ones have %.0f. Whole tokens go from %.4g to %.4g tok/s, in "
                   "%.0f launches instead of %.0f.",
                   100 * row, sheet_get_metric(s, "norms_a_layer_fused_row"), 100 * group,
                   sheet_get_metric(s, "norms_a_layer_fused_group"),
                   sheet_get_metric(s, "norms_a_layer_separate"),
                   sheet_get_metric(s, "tok_s_separate"), sheet_get_metric(s, "tok_s_fused"),
                   sheet_find(s, "launches", "variant", "tokens, fused_row", NULL),
                   sheet_find(s, "launches", "variant", "tokens, separate", NULL));
    sheet_conclude(
        s,
        "Fusing per row is faster on %d of %d shapes (best %s: %.3g of the time), fusing "
        "per group on %d (best %s: %.3g).",
        row_wins, all, row_best, row_ratio, group_wins, group_best, group_ratio);
}
