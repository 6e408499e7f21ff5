/* described: what the C text of a described op (describe.h) calls. Not for files written by hand.
 *
 * An oracle that is one expression derives how exact its elements must be while it computes them.
 * Each operator rounds once. A function adds the error that Metal allows it, and what it makes of
 * the rounding of its argument. A sum whose terms cancel is less exact by the ratio of the sum of
 * their magnitudes to the sum. */
#pragma once

#include <math.h>

#include "harness/check/accuracy.h"
#include "harness/check/kernel_case.h"

typedef struct {
    const char *name;
    elem type;
    access_mode access;
    size_t axes;
    int64_t sizes[4];
    int64_t below; /* whole numbers below this; 0: values of the case's distribution */
} described_spec;

/* A buffer of a case, with its contents. folder is NULL, or the contents (the expected ones, of an
 * output) are in a file below it; the rest is its name, as for printf. */
bool described_buffer(kernel_case *c, const described_spec *s, slice *out, err *e,
                      const char *folder, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void described_bind(launch *l, int index, slice at, access_mode access, elem type);
void described_set_value(launch *l, int index, elem type, double value);
/* kind: 't' threads, rounded up to whole groups; 'g' groups; 'd' exactly these threads. */
bool described_set_grid(launch *l, char kind, const int64_t grid[3], const int64_t group[3],
                        int64_t threadgroup_bytes, err *e);

double *described_read(const oracle_io *io, int index, elem type); /* to be freed */
/* The expected values of an output from a file; NaN, which nothing equals, if it cannot be read. */
void described_expect(expected *out, elem type, const char *folder, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The element that is being computed. */
typedef struct {
    bool fast;        /* not safe math */
    double operators; /* visible in the expression */
    double roundings; /* these and those of functions */
    double condition; /* of its worst sum */
    double magnitude; /* of the terms of a sum that is 0 */
    double terms;     /* of its longest sum */
    double factor;    /* what the rounding of a denormal on the way may be multiplied with */
} described_element;

extern described_element described_now;

void described_begin(const launch *l, int operators);
void described_note_factor(double value); /* a value of the launch */
void described_end(expected *out, size_t i, double value);
void described_set_scale(expected *out, size_t i, double value);
double described_note_sum(double sum, double magnitude, int64_t terms);

/* relative: half ULPs of the result; argument: what a relative error of the argument is multiplied
 * with in the result. */
static inline double described_note(double value, double relative, double argument) {
    described_now.roundings += relative + fmin(fabs(argument), 128);
    return value;
}

static inline double described_exp(double x) {
    return described_note(exp(x), described_now.fast ? fast_exp(fmin(fabs(x), 90)) : 8, x);
}
static inline double described_exp2(double x) {
    return described_note(exp2(x), described_now.fast ? fast_exp(fmin(fabs(x), 130)) : 8, x);
}
static inline double described_log(double x) {
    double y = log(x);
    return described_note(y, described_now.fast ? FAST_LOG + 8 / fmax(fabs(y), 1e-3) : 8, 1 / y);
}
static inline double described_log2(double x) {
    double y = log2(x);
    return described_note(y, described_now.fast ? FAST_LOG2 + 4 / fmax(fabs(y), 1e-3) : 8, 1.5 / y);
}
/* Fast math computes (t - 1) / (t + 1) with t = exp(2 x): near 0 it loses an absolute error. */
static inline double described_tanh(double x) {
    double y = tanh(x);
    double fast = 16 + fast_exp(fmin(fabs(2 * x), 20)) / fmax(fabs(y), 1e-6);
    return described_note(y, described_now.fast ? fast : 10, 1);
}
static inline double described_sin(double x) {
    double y = sin(x);
    return described_note(y, (described_now.fast ? FAST_SINE : 8) / fmax(fabs(y), 1e-3), x / y);
}
static inline double described_cos(double x) {
    double y = cos(x);
    return described_note(y, (described_now.fast ? FAST_SINE : 8) / fmax(fabs(y), 1e-3), x / y);
}
static inline double described_sqrt(double x) {
    return described_note(sqrt(x), described_now.fast ? FAST_RSQRT + 1 : 1, 0.5);
}
static inline double rsqrt(double x) {
    return described_note(1 / sqrt(x), described_now.fast ? FAST_RSQRT : 4, 0.5);
}
static inline double described_pow(double x, double y) {
    double exponent = y * log2(fabs(x));
    double fast = isfinite(exponent) ? fast_pow(fmin(fabs(exponent), 130)) : 0;
    return described_note(pow(x, y), described_now.fast ? fast : 32, y);
}
static inline double described_erf(double x) {
    return described_note(erf(x), 32, 1);
}

#define exp described_exp
#define exp2 described_exp2
#define log described_log
#define log2 described_log2
#define tanh described_tanh
#define sin described_sin
#define cos described_cos
#define sqrt described_sqrt
#define pow described_pow
#define erf described_erf
