/* split_dispatch: the same rows of the same Q4_0 matrix in 1 to 72 launches, one after the other
 * and free to overlap (they write different rows). It is the reason for fused and batched
 * kernels. */
#include <math.h>
#include <stdio.h>

#include "experiment.h"
#include "kernels/kernels.h"
#include "runner/choice/rules.h"

EXPERIMENT(
    split_dispatch, .order = 30,
    .question = "What does it cost to do one 576x576 product in 1 to 72 launches?",
    .claim = "none was published",
    .finding = "Each additional launch costs {launch_serial_us} µs: {max:launches} launches take "
               "{most_launches_ratio} times as long as one",
    .how = "median GPU time of the whole product, many products in a command buffer (chained), "
           "warm; all splits interleaved; each launch checked against its oracle");

enum { DIM = 576, MOST = 7 };
static const uint32_t splits[MOST] = {1, 2, 4, 8, 16, 32, 72};

static bool record(tape *t, const kernel *k, slice w, slice x, slice y, uint32_t n, bool overlaps,
                   err *e) {
    uint32_t rows = DIM / n;
    size_t bytes = w.bytes / n;
    t->order = overlaps ? ORDER_CONCURRENT : ORDER_SERIAL;
    for (uint32_t i = 0; i < n; i++) {
        slice part = slice_part(w.buffer, w.offset + i * bytes, bytes);
        slice out = slice_part(y.buffer, y.offset + i * rows * sizeof(float), rows * sizeof(float));
        if (!matvec_record(t, k, part, x, out, rows, DIM, 1, e))
            return false;
    }
    return true;
}

static bool run_order(lab *l, sheet *s, const kernel_case *base, bool overlaps, err *e) {
    const binding *args = base->tape->launches[0].args;
    measurement cases[MOST] = {{.regime = TIMING_CHAINED}};
    size_t count = lab_choose(l, MOST, MOST);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        cases[i].regime = TIMING_CHAINED;
        cases[i].tape = tape_new(lab_get_library(l));
        snprintf(cases[i].key, sizeof cases[i].key, "%s/%u", overlaps ? "overlapping" : "serial",
                 splits[i]);
        ok = record(cases[i].tape, base->kernel, args[0].at, args[1].at, args[2].at, splits[i],
                    overlaps, e);
    }
    ok = ok && lab_time(l, cases, count, e);
    for (size_t i = 0; i < count; i++) {
        if (ok) {
            sheet_add_variant(s, overlaps ? "overlapping" : "serial");
            sheet_put_text(s, "kernel", base->kernel->name);
            sheet_put(s, "launches", splits[i]);
            lab_put(l, s, &cases[i]);
        }
        lab_close_cases(&cases[i], 1);
        tape_free(cases[i].tape);
    }
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    const kernel *k =
        variants_pick_matvec(lab_get_variants(l), &format_q4_0, false, 0, DIM, DIM, 1, e);
    const op *owner = NULL;
    if (!k || !registry_find_kernel(k->name, &owner))
        return false;
    shape dims = {{DIM, DIM, k->tokens ? 1 : 0}};
    kernel_case base = case_new(owner, k, &dims, INPUT_NORMAL);
    bool ok = case_open(&base, lab_get_library(l), lab_get_seed(l), e) &&
              run_order(l, s, &base, false, e) && run_order(l, s, &base, true, e);
    case_close(&base);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static double find_slope(const sheet *s, const char *variant) {
    double start, slope;
    sheet_fit_line(s, variant, "launches", "gpu_ns", &start, &slope);
    return slope;
}

static void conclude(sheet *s) {
    double one = 1e-3 * sheet_find(s, "gpu_ns", "variant", "serial", "launches", "1", NULL);
    double serial = NAN, overlapping = NAN, most = NAN;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        double *to = sheet_is(s, r, "variant", "serial", NULL) ? &serial : &overlapping;
        *to = 1e-3 * sheet_get(s, r, "gpu_ns") / one;
        most = sheet_get(s, r, "launches");
    }
    double slope = find_slope(s, "serial"), free_slope = find_slope(s, "overlapping");
    sheet_add_metric(s, "one_launch_us", one, "us");
    sheet_add_metric(s, "most_launches_ratio", serial, "x");
    sheet_add_metric(s, "launch_serial_us", slope, "us");
    sheet_add_metric(s, "launch_overlapping_us", free_slope, "us");
    sheet_conclude(s,
                   "A 576x576 product takes %.3g µs in one launch and %.3g times that in %.0f, one "
                   "after the other; each additional launch costs %.3g µs.",
                   one, serial, most, slope);
    sheet_conclude(s,
                   "If launches may overlap, %.0f of them take %.3g times as long as one: %.3g µs "
                   "each.",
                   most, overlapping, free_slope);
}
