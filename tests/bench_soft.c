/* bench_soft: how fast the software device runs a Q4_0 matvec, in multiply-adds a second and core,
 * and how many times slower checked mode is.
 *
 * Reports, never fails: times on a shared machine are no test. Every rung of the ladder in one run,
 * interleaved, so that they can be compared with each other. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/check.h"
#include "harness/stats.h"
#include "kernels/kernels.h"

enum { ROUNDS = 60, CHECKED_ROUNDS = 3, RUNGS = 16 };

static const shape sizes[] = {{{1536, 576}}, {{576, 1536}}, {{4096, 4096}}};

/* Case i is rung i. A round for each in turn; two rounds before warm caches and clocks. */
static bool time_rungs(kernel_case *cases, int rounds, double samples[RUNGS][ROUNDS], err *e) {
    for (int round = -2; round < rounds; round++)
        for (size_t i = 0; i < matvec_q4_0_op.kernel_count; i++) {
            play_times times;
            if (!tape_play(cases[i].tape, PLAY_WHOLE, &times, NULL, e))
                return false;
            if (round >= 0)
                samples[i][round] = (double)times.gpu_ns;
        }
    return true;
}

/* Median and best time of every rung. */
static bool measure(library *lib, const shape *s, int rounds, stats *out, err *e) {
    static double samples[RUNGS][ROUNDS];
    kernel_case cases[RUNGS] = {{0}};
    bool ok = true;
    for (size_t i = 0; ok && i < matvec_q4_0_op.kernel_count; i++)
        ok = case_open(&cases[i], lib, &matvec_q4_0_op, &matvec_q4_0_op.kernels[i], s, INPUT_NORMAL,
                       1, e);
    ok = ok && time_rungs(cases, rounds, samples, e);
    for (size_t i = 0; i < matvec_q4_0_op.kernel_count; i++) {
        out[i] = stats_compute(samples[i], ok ? (size_t)rounds : 0);
        if (cases[i].tape)
            case_close(&cases[i]);
    }
    return ok;
}

static bool run_size(library *fast, library *checked, const shape *s, err *e) {
    stats plain[RUNGS], slow[RUNGS];
    if (!measure(fast, s, ROUNDS, plain, e) || !measure(checked, s, CHECKED_ROUNDS, slow, e))
        return false;
    for (size_t i = 0; i < matvec_q4_0_op.kernel_count; i++) {
        double work = (double)s->dim[0] * s->dim[1];
        printf("%-24s %5ux%-5u %8.3f ms (best %.3f) %6.2f GMAC/s   checked %8.1f ms, %5.1f times\n",
               matvec_q4_0_op.kernels[i].name, s->dim[0], s->dim[1], plain[i].median / 1e6,
               plain[i].min / 1e6, work / plain[i].median, slow[i].median / 1e6,
               slow[i].median / plain[i].median);
    }
    return true;
}

static library *open_library(device **d, err *e) {
    *d = device_open("soft", e);
    return *d ? library_new(*d, NULL, e) : NULL;
}

int main(void) {
    setenv("ASSAY_THREADS", "1", 1);
    err e;
    device *fast_device, *checked_device = NULL;
    library *fast = open_library(&fast_device, &e);
    setenv("MTL_SHADER_VALIDATION", "1", 1);
    library *checked = fast ? open_library(&checked_device, &e) : NULL;
    bool ok = checked != NULL;
    if (ok)
        printf("one core of this machine, %s\n", device_get_facts(fast_device)->compiler);
    for (size_t i = 0; ok && i < sizeof sizes / sizeof *sizes; i++)
        ok = run_size(fast, checked, &sizes[i], &e);
    if (!ok)
        fprintf(stderr, "%s\n%s", e.text, e.detail);
    library_free(checked);
    library_free(fast);
    device_close(checked_device);
    device_close(fast_device);
    return ok ? 0 : (int)e.code;
}
