/* bench: what the tests of the Metal device start from: a device, and a tape of launches on it. */
#ifndef ASSAY_METAL_DOUBLE_BENCH_H
#define ASSAY_METAL_DOUBLE_BENCH_H

#include "harness/device/tape.h"

enum { N = 64 }; /* floats of x */

/* A tape of launches of `advance` of tests/kernels/tape.metal, each after the one before. */
typedef struct {
    device *device;
    library *library;
    tape *tape;
    buffer *x, *step;
    err e;
} bench;

bool bench_set_up(bench *b, int launches); /* false: b->e says why */
void bench_tear_down(bench *b);            /* also forgets METAL_DOUBLE and faults */

/* Sets b up, or fails the test with the reason. */
#define SET_UP(b, launches)                                                                        \
    do {                                                                                           \
        if (!bench_set_up(&b, launches))                                                           \
            FAILm(b.e.text);                                                                       \
    } while (0)

#endif
