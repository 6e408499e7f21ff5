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

extern bench b;                      /* of the test that runs */
bool bench_set_up(int launches);     /* false: b.e says why */
void bench_tear_down(void *unused);  /* after each test; also forgets METAL_DOUBLE and faults */

#define SET_UP(launches) ASSERTm(b.e.text, bench_set_up(launches))

#endif
