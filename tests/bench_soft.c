/* bench_soft: how fast the software device runs matvec and attention, in multiply-adds per second
 * and core, and how many times slower checked mode is.
 *
 * It reports and never fails: times on a shared machine prove nothing. All variants run interleaved
 * in one run, so that they can be compared with each other. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/stats.h"
#include "harness/check/check.h"
#include "kernels/kernels.h"
#include "reference/quant.h"

enum { ROUNDS = 40, CHECKED_ROUNDS = 3, KERNELS = 16 };

static const struct {
    const op *op;
    shape shape;
} work[] = {
    {&matvec_op, {{1536, 576}}},
    {&matvec_op, {{576, 1536}}},
    {&matvec_op, {{4096, 4096}}},
    {&decode_attention_op, {{512, 9, 3, 64}}},
};

/* Of weights those in Q4_0 that replace y, for one token. */
static size_t choose(const op *o, const kernel *out[KERNELS]) {
    size_t count = 0;
    for (size_t i = 0; i < o->kernel_count && count < KERNELS; i++) {
        const kernel *k = &o->kernels[i];
        if (!k->format || (k->format == &format_q4_0 && !k->accumulates))
            out[count++] = k;
    }
    return count;
}

/* Case i is kernel i. Rounds are interleaved; two rounds before warm caches and clocks. */
static bool time_kernels(kernel_case *cases, size_t count, int rounds,
                         double samples[KERNELS][ROUNDS], err *e) {
    for (int round = -2; round < rounds; round++)
        for (size_t i = 0; i < count; i++) {
            play_times times;
            if (!tape_play(cases[i].tape, PLAY_WHOLE, &times, NULL, e))
                return false;
            if (round >= 0)
                samples[i][round] = (double)times.gpu_ns;
        }
    return true;
}

/* Median and best time of every kernel, and the multiply-adds of one play. */
static bool measure(library *lib, const op *o, const shape *s, int rounds, stats *out, double *macs,
                    err *e) {
    const kernel *all[KERNELS];
    size_t count = choose(o, all);
    static double samples[KERNELS][ROUNDS];
    kernel_case cases[KERNELS] = {{0}};
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        cases[i] = case_new(o, all[i], s, INPUT_NORMAL);
        ok = case_open(&cases[i], lib, 1, e);
    }
    *macs = ok ? (double)cases[0].tape->launches[0].flops / 2 : 0;
    ok = ok && time_kernels(cases, count, rounds, samples, e);
    for (size_t i = 0; i < count; i++) {
        out[i] = stats_compute(samples[i], ok ? (size_t)rounds : 0);
        case_close(&cases[i]);
    }
    return ok;
}

/* Ratios are of the best times: other load slows long runs more than short ones. */
static bool run_work(library *fast, library *checked, const op *o, const shape *s, err *e) {
    stats plain[KERNELS], slow[KERNELS];
    const kernel *all[KERNELS];
    size_t count = choose(o, all);
    double macs;
    char shape_text[64];
    shape_get_text(s, shape_text, sizeof shape_text);
    if (!measure(fast, o, s, ROUNDS, plain, &macs, e) ||
        !measure(checked, o, s, CHECKED_ROUNDS, slow, &macs, e))
        return false;
    for (size_t i = 0; i < count; i++)
        printf("%-30s %-12s %8.3f ms (best %7.3f) %6.2f GMAC/s   checked %8.1f ms, %5.1f times\n",
               all[i]->name, shape_text, plain[i].median / 1e6, plain[i].min / 1e6,
               macs / plain[i].median, slow[i].min / 1e6, slow[i].min / plain[i].min);
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
    for (size_t i = 0; ok && i < sizeof work / sizeof *work; i++)
        ok = run_work(fast, checked, work[i].op, &work[i].shape, &e);
    if (!ok)
        fprintf(stderr, "%s\n%s", e.text, e.detail);
    library_free(checked);
    library_free(fast);
    device_close(checked_device);
    device_close(fast_device);
    return ok ? 0 : (int)e.code;
}
