/* bench_soft: how fast the software device runs a Q4_0 matvec, in multiply-adds a second and core.
 *
 * Reports, never fails: times on a shared machine are no test. Every rung of the ladder in one run,
 * interleaved, so that they can be compared with each other. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/check.h"
#include "harness/stats.h"
#include "kernels/kernels.h"

enum { ROUNDS = 60, RUNGS = 16 };

static const shape sizes[] = {{{1536, 576}}, {{576, 1536}}, {{4096, 4096}}};

static int complain(const err *e) {
    fprintf(stderr, "%s\n%s", e->text, e->detail);
    return e->code;
}

/* A round for each rung in turn; the first two warm caches and clocks. */
static bool time_rungs(kernel_case *cases, double samples[RUNGS][ROUNDS], err *e) {
    for (int round = -2; round < ROUNDS; round++)
        for (size_t i = 0; i < matvec_q4_0_op.kernel_count; i++) {
            play_times times;
            if (!tape_play(cases[i].tape, PLAY_WHOLE, &times, NULL, e))
                return false;
            if (round >= 0)
                samples[i][round] = (double)times.gpu_ns;
        }
    return true;
}

static bool run_size(library *lib, const shape *s, err *e) {
    static double samples[RUNGS][ROUNDS];
    kernel_case cases[RUNGS] = {{0}};
    bool ok = true;
    for (size_t i = 0; ok && i < matvec_q4_0_op.kernel_count; i++)
        ok = case_open(&cases[i], lib, &matvec_q4_0_op, &matvec_q4_0_op.kernels[i], s,
                       INPUT_NORMAL, 1, e);
    ok = ok && time_rungs(cases, samples, e);
    for (size_t i = 0; i < matvec_q4_0_op.kernel_count; i++) {
        if (ok) {
            stats t = stats_compute(samples[i], ROUNDS);
            double work = (double)s->dim[0] * s->dim[1];
            printf("%-24s %5ux%-5u %8.3f ms (best %.3f) %6.2f GMAC/s (best %.2f)\n",
                   matvec_q4_0_op.kernels[i].name, s->dim[0], s->dim[1], t.median / 1e6,
                   t.min / 1e6, work / t.median, work / t.min);
        }
        if (cases[i].tape)
            case_close(&cases[i]);
    }
    return ok;
}

int main(void) {
    setenv("ASSAY_THREADS", "1", 1);
    err e;
    device *d = device_open("soft", &e);
    library *lib = d ? library_new(d, NULL, &e) : NULL;
    if (!lib)
        return complain(&e);
    printf("one core of this machine, %s\n", device_get_facts(d)->compiler);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!run_size(lib, &sizes[i], &e))
            return complain(&e);
    library_free(lib);
    device_close(d);
    return 0;
}
