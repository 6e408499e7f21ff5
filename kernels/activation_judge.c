/* activation_judge: see activation_judge.h. What an activation does to the error of its argument. */
#include "activation_judge.h"

#include <float.h>
#include <math.h>

#include "harness/check/accuracy.h"
#include "reference/reference.h"

static double keep(double x) {
    return x;
}

static double (*const list[ACTIVATION_COUNT])(double x) = {
    [ACTIVATION_NONE] = keep,
    [ACTIVATION_TANH] = tanh,
    [ACTIVATION_SIGMOID] = reference_sigmoid,
    [ACTIVATION_SQUARED_RELU] = reference_squared_relu,
    [ACTIVATION_SILU] = reference_silu,
    [ACTIVATION_DECAY] = reference_decay,
};

bool activation_check(uint32_t kind, err *e) {
    return kind < ACTIVATION_COUNT ||
           err_set(e, EXIT_CANNOT, "needs an activation below %d, not %u", ACTIVATION_COUNT, kind);
}

/* Roundings of the function itself, relative to its result: exp to 4 ULP (under fast math to what
 * its table says), a division to 2.5, tanh to 5, one for each product and sum. An error of e^-z
 * reaches sigmoid in proportion to 1 - sigmoid, an error of sigmoid reaches decay in proportion to
 * the exponent. */
static double count_roundings(uint32_t kind, double z, bool is_fast) {
    double s = reference_sigmoid(z);
    double sigmoid = FAST_DIVIDE + 1 + (1 - s) * (is_fast ? fast_exp(z) : 8);
    switch (kind) {
    case ACTIVATION_TANH:
        return 10;
    case ACTIVATION_SIGMOID:
        return sigmoid;
    case ACTIVATION_SQUARED_RELU:
        return 1;
    case ACTIVATION_SILU:
        return sigmoid + 1;
    case ACTIVATION_DECAY:
        return (double)DECAY_RATE * s * (sigmoid + 2) + (is_fast ? fast_exp(1) : 8);
    default:
        return 0;
    }
}

/* e^-z leaves the normal floats: a kernel may return 0 for what is left. */
static bool may_vanish(uint32_t kind, double z) {
    return z < -86.9 && (kind == ACTIVATION_SIGMOID || kind == ACTIVATION_SILU);
}

static double get_own_error(uint32_t kind, double z, bool is_fast) {
    return count_roundings(kind, z, is_fast) * fabs(list[kind](z));
}

/* The argument may be off by `delta`; all these functions are monotonous over such a distance, so
 * their ends are the extremes. The curvature counts too: at z = 0 a squared relu has no slope. The
 * function's own roundings are relative to what the kernel computed, which may be at either end: where
 * the sigmoid of z is 0 and that of z + delta is 1, it is a rounded 1. */
void activation_judge(uint32_t kind, bool is_fast, expected *out) {
    if (kind == ACTIVATION_NONE)
        return;
    double operations = out->roundings + 2 * sqrt(out->terms);
    double unit = elem_get_roundoff(ELEM_F32) * operations;
    for (size_t i = 0; i < out->count; i++) {
        double z = out->value[i], delta = unit * fmax(out->scale[i], (double)FLT_MIN);
        double f = list[kind](z);
        double change = fmax(fabs(list[kind](z + delta) - f), fabs(list[kind](z - delta) - f));
        double at_ends =
            fmax(get_own_error(kind, z - delta, is_fast), get_own_error(kind, z + delta, is_fast));
        double own = fmax(get_own_error(kind, z, is_fast), at_ends) / operations;
        out->value[i] = f;
        out->scale[i] = change / unit + own;
        if (may_vanish(kind, z - delta))
            out->scale[i] += fabs(f) / (double)FLT_EPSILON;
    }
}
