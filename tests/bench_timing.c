/* bench_timing: tests the timing instrument with real clocks (`make test-timing`).
 *
 * A kernel against itself must be called the same in 19 of 20 runs; with a planted loop of 5
 * percent more rounds it must be called slower in most, with 30 percent in all. Prints what it
 * found; exit status 5 if that is not so, which on a busy machine need not be the instrument's
 * fault: the load is printed too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/measure/subject.h"
#include "harness/measure/verdict.h"
#include "kernels/kernels.h"

typedef struct {
    const char *name; /* of the folder of kernels, from the project's root */
    int runs, needed;
    verdict_kind wanted;
} trial;

static const trial trials[] = {
    {"kernels", 20, 19, VERDICT_SAME},
    {"tests/planted/slow_5", 10, 9, VERDICT_SLOWER},
    {"tests/planted/slow_30", 10, 10, VERDICT_SLOWER},
};

static library *open_library(device *d, const char *folder, err *e) {
    char home[2048], path[4096];
    if (!os_find_home(home, sizeof home, e))
        return NULL;
    snprintf(path, sizeof path, "%s/%s", home, folder);
    return library_new(d, path, e);
}

/* One comparison of the kernel with itself or its slower twin, both checked before and after. */
static bool compare(library *base, library *now, uint64_t seed, verdict_case *out, err *e) {
    /* Long loops over data that fits a cache: the planted rounds cost as much as the others. */
    const shape sizes = {{60000, 1}};
    const op *o = &bandwidth_read_op;
    subject_options options = {
        .regime = TIMING_CHAINED, .cache = TIMING_WARM, .sample_s = TIMING_SAMPLE_S};
    timing_plan plan = timing_plan_new();
    plan.budget_s = 2;
    plan.min_samples = 61;
    plan.max_samples = 2000;
    library *libs[2] = {base, now};
    kernel_case cases[2] = {{0}};
    subject *subjects[2] = {NULL, NULL};
    timing_source sources[2];
    timing_result results[2] = {{0}};
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        cases[i] = case_new(o, &o->kernels[0], &sizes, INPUT_NORMAL);
        ok = case_open(&cases[i], libs[i], seed, e);
        for (int j = 0; ok && j < 2; j++) /* the same memory for both */
            cases[i].tape->launches[0].args[j].at = cases[0].tape->launches[0].args[j].at;
        ok = ok && (subjects[i] = subject_new(cases[i].tape, &options, e)) &&
             subject_check(subjects[i], e);
        if (!ok)
            break;
        sources[i] = subject_get_source(subjects[i]);
        options.repeats = subject_get_repeats(subjects[0]);
    }
    ok = ok && timing_run(&plan, sources, 2, results, e) && subject_check(subjects[0], e) &&
         subject_check(subjects[1], e);
    if (ok) {
        double *a = timing_list_clock(&results[0], CLOCK_GPU);
        double *b = timing_list_clock(&results[1], CLOCK_GPU);
        *out = (verdict_case){.base = a,
                              .now = b,
                              .base_count = results[0].count,
                              .now_count = results[1].count,
                              .paired = true};
        verdict_decide(out, 1, 0.03, seed);
        free(a);
        free(b);
    }
    for (int i = 1; i >= 0; i--) {
        timing_result_free(&results[i]);
        subject_free(subjects[i]);
        if (cases[i].tape)
            case_close(&cases[i]);
    }
    return ok;
}

static bool run_trial(device *d, const trial *t, bool *is_met, err *e) {
    library *base = open_library(d, "kernels", e), *now = base ? open_library(d, t->name, e) : NULL;
    size_t counts[VERDICT_COUNT] = {0};
    bool ok = now != NULL;
    for (int i = 0; ok && i < t->runs; i++) {
        verdict_case c;
        if (!(ok = compare(base, now, (uint64_t)i + 1, &c, e)))
            break;
        counts[c.verdict]++;
        printf("%-22s %2d  %-9s ratio %.4f (%.4f to %.4f), %zu samples each\n", t->name, i + 1,
               verdict_get_name(c.verdict), c.interval.ratio, c.interval.low, c.interval.high,
               c.now_count);
        fflush(stdout);
    }
    bool met = counts[t->wanted] >= (size_t)t->needed;
    if (ok)
        printf("%-22s %zu of %d are %s, %d are needed: %s\n", t->name, counts[t->wanted], t->runs,
               verdict_get_name(t->wanted), t->needed, met ? "good" : "NOT MET");
    *is_met = *is_met && met;
    library_free(now);
    library_free(base);
    return ok;
}

int main(void) {
    err e = {.code = EXIT_OK};
    device *d = device_open(NULL, &e);
    bool ok = d != NULL, is_met = true;
    if (ok)
        printf("%s, load %.1f on %d cores\n", device_get_facts(d)->name, host_get_load(),
               os_count_cpus());
    for (size_t i = 0; ok && i < sizeof trials / sizeof *trials; i++)
        ok = run_trial(d, &trials[i], &is_met, &e);
    if (!ok)
        fprintf(stderr, "%s\n%s", e.text, e.detail);
    device_close(d);
    return !ok ? (int)e.code : is_met ? EXIT_OK : EXIT_INCONCLUSIVE;
}
