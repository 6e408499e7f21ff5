/* roofline: kernels of every kind that a token uses, each at its largest shape, warm or cold
 * according to its size: the frame in which the other numbers are read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

EXPERIMENT(
    roofline, .order = 80,
    .question =
        "How far are the kernels from what the device can do at their arithmetic intensity?",
    .claim = "none was published",
    .finding = "Kernels reach {farthest_pct_roof} to {nearest_pct_roof} % of the measured roof "
               "of their size; the most arithmetic is {best_gflop_s} GFLOP/s",
    .how = "flops and bytes that the launch must do and move, over the median GPU time in a chain; "
           "the roofs are the fastest read, copy or triad and a kernel of multiply-adds alone, of "
           "the same minute; a percentage is of the nearer one");

typedef struct {
    const char *kernel;
    shape shape;
    timing_cache cache;
} point;

/* The first are those of a quick run. */
static const point points[] = {
    {"residual_add", {{1048576}}, TIMING_WARM},
    {"ffn_silu", {{1048576}}, TIMING_WARM},
    {"rmsnorm_rows", {{512, 576}}, TIMING_WARM},
    {"matvec_q4_0_rowblock", {{2048, 2048}}, TIMING_COLD},
    {"matvec_q8_0_vec16", {{2048, 2048}}, TIMING_COLD},
    {"matvec_f16", {{2048, 2048}}, TIMING_COLD},
    {"matvec_f32", {{2048, 2048}}, TIMING_COLD},
    {"multi_token_matvec_q4_0_reuse", {{1536, 576, 8}}, TIMING_WARM},
    {"multi_token_matvec_q4_0_reuse", {{1536, 576, 32}}, TIMING_WARM},
    {"multi_token_matvec_q4_0", {{1536, 576, 8}}, TIMING_WARM},
    {"compute_fma", {{65536, 256}}, TIMING_WARM},
    {"bandwidth_triad", {{1048576, 64}}, TIMING_WARM},
    {"matvec_q4_k_vec16", {{2048, 2048}}, TIMING_COLD},
    {"matvec_q6_k_vec16", {{2048, 2048}}, TIMING_COLD},
    {"matvec_q4_1", {{4096, 4096}}, TIMING_COLD},
    {"matvec_q4_0_rowblock", {{4096, 4096}}, TIMING_COLD},
    {"multi_token_matvec_q4_0_reuse", {{4096, 4096, 32}}, TIMING_COLD},
    {"multi_token_matvec_q8_0_reuse", {{4096, 4096, 32}}, TIMING_COLD},
    {"multi_token_matvec_f16_reuse", {{2048, 2048, 32}}, TIMING_COLD},
};
enum { POINTS = COUNT_OF(points), QUICK_POINTS = 11 };

static bool run_point(lab *l, sheet *s, const point *p, err *e) {
    const op *owner = NULL;
    const kernel *k = registry_find_kernel(p->kernel, &owner);
    if (!k)
        return err_set(e, EXIT_WRONG, "roofline: unknown kernel '%s'", p->kernel);
    measurement c = {.regime = TIMING_CHAINED};
    char text[64];
    shape_get_text(&p->shape, text, sizeof text);
    bool ok = lab_open_case(l, &c, owner, k, p->shape, TIMING_CHAINED, p->cache, e) &&
              lab_time(l, &c, 1, e);
    if (ok) {
        sheet_add_variant(s, p->kernel);
        sheet_put_text(s, "shape", text);
        lab_put(l, s, &c);
        size_t row = sheet_count_rows(s) - 1;
        sheet_put(s, "flop_per_byte", sheet_get(s, row, "flops") / sheet_get(s, row, "bytes"));
    }
    lab_close_cases(&c, 1);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    size_t count = lab_choose(l, POINTS, QUICK_POINTS);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = run_point(l, s, &points[i], e);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static void conclude(sheet *s) {
    double slope = 0, memory = 0, flops = 0, ceiling = 0;
    size_t best = 0, nearest = 0, farthest = 0;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        double pct = sheet_get(s, r, "pct_roof");
        slope = fmax(slope, sheet_get(s, r, "roof_gb_s"));
        if (sheet_is(s, r, "cache", "cold", NULL))
            memory = fmax(memory, sheet_get(s, r, "roof_gb_s"));
        ceiling = fmax(ceiling, sheet_get(s, r, "roof_gflop_s"));
        if (sheet_get(s, r, "gflop_s") > flops) {
            flops = sheet_get(s, r, "gflop_s");
            best = r;
        }
        nearest = pct > sheet_get(s, nearest, "pct_roof") ? r : nearest;
        farthest = pct < sheet_get(s, farthest, "pct_roof") ? r : farthest;
    }
    if (sheet_count_rows(s) == 0)
        return;
    sheet_add_metric(s, "roof_gb_s", slope, "GB/s");
    sheet_add_metric(s, "roof_memory_gb_s", memory, "GB/s");
    sheet_add_metric(s, "roof_gflop_s", ceiling > 0 ? ceiling : NAN, "GFLOP/s");
    sheet_add_metric(s, "best_gflop_s", flops, "GFLOP/s");
    sheet_add_metric(s, "nearest_pct_roof", sheet_get(s, nearest, "pct_roof"), "%");
    sheet_add_metric(s, "farthest_pct_roof", sheet_get(s, farthest, "pct_roof"), "%");
    sheet_conclude(
        s,
        "Closest to the measured roof of its size is %s %s with %.3g %%%s, furthest is %s %s "
        "with %.3g %%.",
        sheet_get_text(s, nearest, "variant"), sheet_get_text(s, nearest, "shape"),
        sheet_get(s, nearest, "pct_roof"),
        sheet_get(s, nearest, "pct_roof") > 105
            ? " (above it: its data came from a cache, or the roof was disturbed)"
            : "",
        sheet_get_text(s, farthest, "variant"), sheet_get_text(s, farthest, "shape"),
        sheet_get(s, farthest, "pct_roof"));
    sheet_conclude(s, "Most arithmetic: %s %s with %.3g GFLOP/s at %.3g flops per byte.",
                   sheet_get_text(s, best, "variant"), sheet_get_text(s, best, "shape"), flops,
                   sheet_get(s, best, "flop_per_byte"));
}
