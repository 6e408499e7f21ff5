/* small_matrix: Q4_0 products with 192 to 49152 rows of 576, cold: weights come from memory, as
 * they do in a token. The published time is the same for all sizes: it is that of the submit. */
#include <math.h>
#include <stdio.h>

#include "experiment.h"
#include "kernels/kernels.h"
#include "runner/choice/rules.h"

EXPERIMENT(
    small_matrix, .order = 40,
    .question = "Is a small matrix read slowly, or is a fixed cost mistaken for low bandwidth?",
    .claim = "0.6 GB/s at 60 KB to 5.1 GB/s at 486 KB (about 100 µs for each)",
    .finding = "8 times the bytes take {time_ratio_1536_192} times as long where each is "
               "submitted alone, with a fixed cost of {fixed_us} µs",
    .how = "bytes of weights, x and y over the median: alone by the wall clock around submit and "
           "wait, chained by the GPU clock; cold; checked against the oracle");

enum { IN = 576, MOST = 5 };
static const uint32_t rows[MOST] = {192, 1536, 576, 3072, 49152};

static bool run_size(lab *l, sheet *s, const op *owner, const kernel *k, uint32_t out, err *e) {
    measurement cases[2] = {{.regime = TIMING_SINGLE}};
    shape dims = {{out, IN, k->tokens ? 1 : 0}};
    bool ok = lab_open_case(l, &cases[0], owner, k, dims, TIMING_SINGLE, TIMING_COLD, e) &&
              lab_open_case(l, &cases[1], owner, k, dims, TIMING_CHAINED, TIMING_COLD, e) &&
              lab_time(l, cases, 2, e);
    for (size_t i = 0; ok && i < 2; i++) {
        char text[32];
        sheet_add_variant(s, i == 0 ? "alone" : "chained");
        sheet_put_text(s, "kernel", k->name);
        snprintf(text, sizeof text, "%ux%d", out, IN);
        sheet_put_text(s, "matrix", text);
        lab_put(l, s, &cases[i]);
        size_t row = sheet_count_rows(s) - 1;
        sheet_put(s, "gb_s_wall", sheet_get(s, row, "bytes") / sheet_get(s, row, "wall_ns"));
    }
    lab_close_cases(cases, 2);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    const op *owner = NULL;
    const kernel *k =
        variants_pick_matvec(lab_get_variants(l), &format_q4_0, false, 0, IN, IN, 1, e);
    if (!k || !registry_find_kernel(k->name, &owner))
        return false;
    bool ok = true;
    size_t count = lab_choose(l, MOST, MOST);
    for (size_t i = 0; ok && i < count; i++)
        ok = run_size(l, s, owner, k, rows[i], e);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

/* time = fixed + bytes / bandwidth. Under noise no part of the time may grow with the bytes: then there
 * is no bandwidth. */
static void find_line(const sheet *s, const char *variant, const char *column, double *fixed_us,
                      double *gb_s) {
    double slope;
    sheet_fit_line(s, variant, "bytes", column, fixed_us, &slope);
    *gb_s = slope > 0 ? 1e-3 / slope : NAN;
}

static void conclude(sheet *s) {
    double fixed, through, chained_fixed, chained_through;
    find_line(s, "alone", "wall_ns", &fixed, &through);
    find_line(s, "chained", "gpu_ns", &chained_fixed, &chained_through);
    double small = 1e-3 * sheet_find(s, "wall_ns", "variant", "alone", "matrix", "192x576", NULL);
    double large = 1e-3 * sheet_find(s, "wall_ns", "variant", "alone", "matrix", "1536x576", NULL);
    double small_gb_s = sheet_find(s, "gb_s_wall", "variant", "alone", "matrix", "192x576", NULL);
    double large_gb_s = sheet_find(s, "gb_s_wall", "variant", "alone", "matrix", "1536x576", NULL);
    double chained = sheet_find(s, "gb_s", "variant", "chained", "matrix", "192x576", NULL);
    sheet_add_metric(s, "gb_s_192x576", small_gb_s, "GB/s");
    sheet_add_metric(s, "gb_s_1536x576", large_gb_s, "GB/s");
    sheet_add_metric(s, "gb_s_192x576_chained", chained, "GB/s");
    sheet_add_metric(s, "time_ratio_1536_192", large / small, "x");
    sheet_add_metric(s, "fixed_us", fixed, "us");
    sheet_add_metric(s, "fixed_share_192_pct", 100 * fixed / small, "%");
    sheet_add_metric(s, "fixed_chained_us", chained_fixed, "us");
    sheet_add_metric(s, "gb_s_without_fixed", through, "GB/s");
    char beyond[64] = "the times do not grow with the bytes: too noisy to say more";
    if (!isnan(through))
        snprintf(beyond, sizeof beyond, "every matrix reaches %.3g GB/s", through);
    sheet_conclude(
        s,
        "Submitted alone, 192x576 appears to be read at %.3g GB/s and 1536x576 at %.3g: a "
        "fixed cost of %.3g µs is %.0f %% of the smaller one's time; without it %s.",
        small_gb_s, large_gb_s, fixed, fmin(100, 100 * fixed / small), beyond);
    sheet_conclude(s,
                   "8 times the bytes take %.3g times as long; in a chain, without the submit, "
                   "192x576 is read at %.3g GB/s.",
                   large / small, chained);
}
