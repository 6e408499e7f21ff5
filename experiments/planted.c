#include "planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/measure/bench.h"
#include "kernels/kernels.h"

enum { THREADS = 1024, ROUNDS = 400, SAMPLES = 61 };
/* Of the calibration: far above the noise, and not so long that other programs interrupt it more
 * often than what is compared later. */
enum { STEP = ROUNDS / 4, TRIES = 5 };
#define CALIBRATE_S 2.0 /* for each try */
#define CERTAIN 0.06    /* its interval, as a part of what the step costs */

static bool open_sides(lab *l, uint32_t rounds, measurement cases[2], err *e) {
    const kernel *k = &compute_fma_op.kernels[0];
    for (int i = 0; i < 2; i++) {
        shape s = {{THREADS, i == 0 ? ROUNDS : rounds}};
        if (!lab_open_case(l, &cases[i], &compute_fma_op, k, s, TIMING_CHAINED, TIMING_WARM, e))
            return false;
        cases[i].samples = SAMPLES;
    }
    /* The same memory and the same number of plays per sample. */
    for (int j = 0; j < 2; j++)
        cases[1].tape->launches[0].args[j].at = cases[0].tape->launches[0].args[j].at;
    cases[1].like = &cases[0];
    return true;
}

/* Pair by pair, because what slows a pair down cancels. */
static ratio_interval find_ratio(const measurement cases[2], uint64_t seed) {
    double *base = timing_list_clock(&cases[0].result, CLOCK_GPU),
           *now = timing_list_clock(&cases[1].result, CLOCK_GPU);
    ratio_interval r = significance_find_ratio(base, cases[0].result.count, now,
                                               cases[1].result.count, true, 200, 0.05, seed);
    free(base);
    free(now);
    return r;
}

static bool is_certain(const ratio_interval *r) {
    return r->high - r->low <= CERTAIN * (r->ratio - 1);
}

bool planted_calibrate(lab *l, planted *out, err *e) {
    measurement cases[2] = {{.regime = TIMING_CHAINED}};
    ratio_interval r = {0};
    bool ok = open_sides(l, ROUNDS + STEP, cases, e) && lab_time(l, cases, 2, e);
    for (int i = 0; ok; i++) {
        r = find_ratio(cases, lab_get_seed(l));
        if (is_certain(&r) || i == TRIES || lab_get_level(l) == LEVEL_SMOKE)
            break;
        ok = lab_time_again(l, cases, 2, CALIBRATE_S, e);
    }
    if (ok) {
        out->base_ns = timing_compute_stats(&cases[0].result, CLOCK_GPU).median;
        /* A smoke run measures nothing: then a round is its part of the loop. */
        out->round =
            lab_get_level(l) == LEVEL_SMOKE ? 1.0 / (double)ROUNDS : (r.ratio - 1) / (double)STEP;
        ok = out->round > 0 ||
             err_set(e, EXIT_INCONCLUSIVE, "more rounds take no longer: nothing can be planted");
    }
    lab_close_cases(cases, 2);
    return ok;
}

static void decide(const measurement cases[2], const planted_options *o, uint64_t seed,
                   verdict_case *out) {
    double *base = timing_list_clock(&cases[0].result, CLOCK_GPU),
           *now = timing_list_clock(&cases[1].result, CLOCK_GPU);
    *out = (verdict_case){.base = series_new(base, cases[0].result.count),
                          .now = series_new(now, cases[1].result.count),
                          .paired = true,
                          .looks = BENCH_LOOKS};
    verdict_decide(out, 1, o->min_effect, seed);
    free(base);
    free(now);
    out->base.samples = out->now.samples = NULL;
}

bool planted_compare(lab *l, const planted *p, double share, const planted_options *o,
                     measurement cases[2], verdict_case *out, double *size, err *e) {
    uint32_t more = (uint32_t)fmin(100.0 * (double)ROUNDS, share / p->round + 0.5);
    *size = more * p->round;
    bool ok = open_sides(l, ROUNDS + more, cases, e) && lab_time(l, cases, 2, e);
    if (ok)
        decide(cases, o, lab_get_seed(l), out);
    for (int look = 1; ok && look < BENCH_LOOKS && out->verdict == VERDICT_AMBIGUOUS; look++) {
        ok = lab_time_again(l, cases, 2, o->again_s / (BENCH_LOOKS - 1), e);
        decide(cases, o, lab_get_seed(l), out);
    }
    return ok;
}
