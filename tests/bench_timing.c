/* bench_timing: tests the timing instrument with real clocks (`make test-timing`).
 *
 * A kernel against itself must be called the same in 19 of 20 comparisons; with 5 percent more work
 * it must be called slower in 9 of 10, with 30 percent in all. What the planted work costs is
 * measured in the same run and printed beside each verdict. Exit status 5 if something is not so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/planted.h"
#include "harness/base/os.h"

typedef struct {
    double share;
    int runs, needed;
    verdict_kind wanted;
} trial;

static const trial trials[] = {
    {0, 20, 19, VERDICT_SAME}, {0.05, 10, 9, VERDICT_SLOWER}, {0.3, 10, 10, VERDICT_SLOWER}};

static bool run_trial(lab *l, const planted *p, const trial *t, bool *is_met, err *e) {
    const planted_options o = {.again_s = 12, .min_effect = 0.03};
    size_t counts[VERDICT_COUNT] = {0};
    bool ok = true;
    for (int i = 0; ok && i < t->runs; i++) {
        measurement cases[2] = {{.regime = TIMING_CHAINED}};
        verdict_case c;
        double size;
        if ((ok = planted_compare(l, p, t->share, &o, cases, &c, &size, e))) {
            counts[c.verdict]++;
            printf("planted %4.1f %%  %2d  %-9s ratio %.4f (%.4f to %.4f), %zu samples each%s\n",
                   100 * size, i + 1, verdict_get_name(c.verdict), c.interval.ratio, c.interval.low,
                   c.interval.high, c.now.count,
                   cases[0].result.labels & LABEL_BUSY ? ", busy" : "");
            fflush(stdout);
        }
        lab_close_cases(cases, 2);
    }
    bool met = counts[t->wanted] >= (size_t)t->needed;
    if (ok)
        printf("planted %g %%: %zu of %d are %s, %d are needed: %s\n", 100 * t->share,
               counts[t->wanted], t->runs, verdict_get_name(t->wanted), t->needed,
               met ? "good" : "NOT MET");
    *is_met = *is_met && met;
    return ok;
}

int main(void) {
    err e = {.code = EXIT_OK};
    setenv("ASSAY_MATH", "fast", 0); /* as what is timed elsewhere */
    lab *l = lab_new(&(lab_options){.seed = 1}, &e);
    planted p;
    bool ok = l && planted_calibrate(l, &p, &e), is_met = true;
    double load = 0;
    if (ok && getloadavg(&load, 1) == 1)
        printf("%s, load %.1f on %d cores; the kernel takes %.4g us, one more round of its loop "
               "%.3g %% of that\n",
               lab_get_facts(l)->name, load, os_count_cpus(), 1e-3 * p.base_ns, 100 * p.round);
    for (size_t i = 0; ok && i < sizeof trials / sizeof *trials; i++)
        ok = run_trial(l, &p, &trials[i], &is_met, &e);
    if (!ok)
        fprintf(stderr, "%s\n%s", e.text, e.detail);
    lab_free(l);
    return !ok ? (int)e.code : is_met ? EXIT_OK : EXIT_INCONCLUSIVE;
}
