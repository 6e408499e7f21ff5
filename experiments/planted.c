/* planted: see planted.h. */
#include "planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/measure/bench.h"
#include "kernels/kernels.h"

enum { THREADS = 1024, ROUNDS = 400, SAMPLES = 61 };

static bool open_sides(lab *l, uint32_t rounds, lab_case cases[2], err *e) {
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
static double find_ratio(const lab_case cases[2]) {
    double *base = timing_list_clock(&cases[0].result, CLOCK_GPU),
           *now = timing_list_clock(&cases[1].result, CLOCK_GPU);
    double ratio = significance_find_ratio(base, cases[0].result.count, now, cases[1].result.count,
                                           true, 1, 0.05, 1)
                       .ratio;
    free(base);
    free(now);
    return ratio;
}

bool planted_calibrate(lab *l, planted *out, err *e) {
    lab_case cases[2] = {{.regime = TIMING_CHAINED}};
    bool ok = open_sides(l, 2 * ROUNDS, cases, e);
    for (int i = 0; ok && i < 2; i++)
        cases[i].samples = 4 * SAMPLES;
    ok = ok && lab_time(l, cases, 2, e);
    if (ok) {
        double ratio = find_ratio(cases);
        out->base_ns = timing_compute_stats(&cases[0].result, CLOCK_GPU).median;
        out->round = (ratio - 1) / ROUNDS;
        ok = out->round > 0 || err_set(e, EXIT_INCONCLUSIVE,
                                       "twice the rounds take no longer: nothing can be planted");
    }
    lab_close_cases(cases, 2);
    return ok;
}

static void decide(const lab_case cases[2], const planted_options *o, uint64_t seed,
                   verdict_case *out) {
    double *base = timing_list_clock(&cases[0].result, CLOCK_GPU),
           *now = timing_list_clock(&cases[1].result, CLOCK_GPU);
    *out = (verdict_case){.base = base,
                          .now = now,
                          .base_count = cases[0].result.count,
                          .now_count = cases[1].result.count,
                          .paired = true,
                          .looks = BENCH_LOOKS};
    verdict_decide(out, 1, o->min_effect, seed);
    free(base);
    free(now);
    out->base = out->now = NULL;
}

bool planted_compare(lab *l, const planted *p, double share, const planted_options *o,
                     lab_case cases[2], verdict_case *out, double *size, err *e) {
    uint32_t more = (uint32_t)fmin(100.0 * ROUNDS, share / p->round + 0.5);
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
