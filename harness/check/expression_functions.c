/* expression_functions: the functions of expressions, each with its error: what it makes of that of
 * its argument, and what the Metal specification allows it to add (accuracy.h). */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "accuracy.h"
#include "expression_parts.h"

#define U 0x1p-24 /* one rounding of f32 */

/* relative and absolute: its own error in roundings, of its value and of 1. */
static bounded make(arithmetic how, double value, double carried, double relative,
                    double absolute) {
    double size = fabs(value);
    if (!isfinite(value))
        return (bounded){value, 0};
    double tiny = size == 0 || size >= 2 * (double)FLT_MIN ? 0
                  : how.flushes                            ? (double)FLT_MIN
                                                           : U * (double)FLT_MIN;
    return (bounded){value, carried + U * (relative * size + absolute) + tiny};
}

#define FUNCTION(name) static bounded apply_##name(arithmetic how, bounded a, bounded b)

FUNCTION(exp) {
    (void)b;
    double y = exp(a.value), carried = a.error == 0 ? 0 : exp(a.value + a.error) - y;
    return make(how, y, carried, how.fast ? fast_exp(fmin(fabs(a.value), 90)) : 8, 0);
}

FUNCTION(exp2) {
    (void)b;
    double y = exp2(a.value), carried = a.error == 0 ? 0 : exp2(a.value + a.error) - y;
    return make(how, y, carried, how.fast ? fast_exp(fmin(fabs(a.value), 130)) : 8, 0);
}

/* Within 0.5 to 2 the fast logarithms have an absolute error. */
static bounded take_log(arithmetic how, double y, bounded a, double slope, double fast,
                        double fast_near_1) {
    bool is_near_1 = a.value > 0.5 && a.value < 2;
    return make(how, y, a.error * slope / fabs(a.value), how.fast ? fast : 8,
                how.fast && is_near_1 ? fast_near_1 : 0);
}

FUNCTION(log) {
    (void)b;
    return take_log(how, log(a.value), a, 1, FAST_LOG, 8);
}

FUNCTION(log2) {
    (void)b;
    return take_log(how, log2(a.value), a, 1.442695040888963, FAST_LOG2, 4);
}

FUNCTION(log10) {
    (void)b;
    return take_log(how, log10(a.value), a, 0.4342944819032518, FAST_LOG + 2, 8);
}

/* Fast math computes (t - 1) / (t + 1) with t = exp(2 x): near 0 it has an absolute error. */
FUNCTION(tanh) {
    (void)b;
    double y = tanh(a.value);
    return make(how, y, a.error * (1 - y * y), how.fast ? 16 : 10,
                how.fast ? fast_exp(fmin(fabs(2 * a.value), 20)) : 0);
}

FUNCTION(sinh) {
    (void)b;
    double own = fast_exp(fmin(fabs(a.value), 90));
    return make(how, sinh(a.value), a.error * cosh(a.value), how.fast ? own : 8, how.fast ? 8 : 0);
}

FUNCTION(cosh) {
    (void)b;
    double own = fast_exp(fmin(fabs(a.value), 90));
    return make(how, cosh(a.value), a.error * fabs(sinh(a.value)), how.fast ? own : 8, 0);
}

FUNCTION(sin) {
    (void)b;
    return make(how, sin(a.value), fmin(a.error * (fabs(cos(a.value)) + a.error), 2), 8,
                how.fast ? FAST_SINE : 0);
}

FUNCTION(cos) {
    (void)b;
    return make(how, cos(a.value), fmin(a.error * (fabs(sin(a.value)) + a.error), 2), 8,
                how.fast ? FAST_SINE : 0);
}

FUNCTION(tan) {
    (void)b;
    double y = tan(a.value), slope = 1 + y * y;
    return make(how, y, a.error * slope, 12, how.fast ? FAST_SINE * slope : 0);
}

FUNCTION(asin) {
    (void)b;
    double slope = 1 / sqrt(fmax(1 - a.value * a.value, U));
    return make(how, asin(a.value), a.error * slope, 10, 0);
}

FUNCTION(acos) {
    (void)b;
    double slope = 1 / sqrt(fmax(1 - a.value * a.value, U));
    return make(how, acos(a.value), a.error * slope, 10, 0);
}

FUNCTION(atan) {
    (void)b;
    return make(how, atan(a.value), a.error / (1 + a.value * a.value), 10, 0);
}

FUNCTION(erf) {
    (void)b;
    double slope = 1.1283791670955126 * exp(-a.value * a.value);
    return make(how, erf(a.value), a.error * slope, 32, 0);
}

FUNCTION(sqrt) {
    (void)b;
    double y = sqrt(a.value);
    double carried =
        a.error == 0 ? 0 : fmax(y - sqrt(fmax(a.value - a.error, 0)), sqrt(a.value + a.error) - y);
    return make(how, y, carried, how.fast ? FAST_RSQRT + 1 : 1, 0);
}

FUNCTION(rsqrt) {
    (void)b;
    double y = 1 / sqrt(a.value);
    return make(how, y, a.error == 0 ? 0 : y * a.error / (2 * a.value), 4, 0);
}

FUNCTION(pow) {
    double y = pow(a.value, b.value), exponent = b.value * log2(fabs(a.value));
    double fast = isfinite(exponent) ? fast_pow(fmin(fabs(exponent), 130)) : 0, carried = 0;
    if (a.error > 0 && a.value != 0)
        carried += fabs(y * b.value / a.value) * a.error;
    if (b.error > 0 && a.value != 0)
        carried += fabs(y * log(fabs(a.value))) * b.error;
    return make(how, y, carried, how.fast ? fast : 32, 0);
}

FUNCTION(abs) {
    (void)how, (void)b;
    return (bounded){fabs(a.value), a.error};
}

/* A value close to a step may be on its other side. */
static bounded take_step(double (*step)(double), bounded a) {
    double y = step(a.value);
    bool is_close = a.error > 0 && step(a.value - a.error) != step(a.value + a.error);
    return (bounded){y, is_close ? fmax(1, ceil(2 * a.error)) : 0};
}

FUNCTION(floor) {
    (void)how, (void)b;
    return take_step(floor, a);
}

FUNCTION(ceil) {
    (void)how, (void)b;
    return take_step(ceil, a);
}

FUNCTION(round) {
    (void)how, (void)b;
    return take_step(round, a);
}

FUNCTION(rint) {
    (void)how, (void)b;
    return take_step(rint, a);
}

FUNCTION(trunc) {
    (void)how, (void)b;
    return take_step(trunc, a);
}

/* The kernel rounds to the type here. A value close to the middle of two numbers may go to either,
 * so the error is up to the distance between them. */
static bounded round_to(elem type, bounded a) {
    unsigned char stored[8];
    elem_write(type, stored, 0, a.value);
    double y = elem_read(type, stored, 0), unit = elem_get_roundoff(type);
    if (a.error == 0)
        return (bounded){y, 0};
    return (bounded){a.value, a.error + unit * fabs(a.value)};
}

FUNCTION(f32) {
    (void)how, (void)b;
    return round_to(ELEM_F32, a);
}

FUNCTION(f16) {
    (void)how, (void)b;
    return round_to(ELEM_F16, a);
}

FUNCTION(bf16) {
    (void)how, (void)b;
    return round_to(ELEM_BF16, a);
}

const function_row expression_functions[] = {
    {"exp", 1, apply_exp},     {"exp2", 1, apply_exp2},   {"log", 1, apply_log},
    {"log2", 1, apply_log2},   {"log10", 1, apply_log10}, {"sin", 1, apply_sin},
    {"cos", 1, apply_cos},     {"tan", 1, apply_tan},     {"asin", 1, apply_asin},
    {"acos", 1, apply_acos},   {"atan", 1, apply_atan},   {"sinh", 1, apply_sinh},
    {"cosh", 1, apply_cosh},   {"tanh", 1, apply_tanh},   {"erf", 1, apply_erf},
    {"sqrt", 1, apply_sqrt},   {"rsqrt", 1, apply_rsqrt}, {"pow", 2, apply_pow},
    {"abs", 1, apply_abs},     {"floor", 1, apply_floor}, {"ceil", 1, apply_ceil},
    {"round", 1, apply_round}, {"rint", 1, apply_rint},   {"trunc", 1, apply_trunc},
    {"f32", 1, apply_f32},     {"f16", 1, apply_f16},     {"bf16", 1, apply_bf16},
};
const size_t expression_function_count = sizeof expression_functions / sizeof *expression_functions;

const char *expression_list_functions(void) {
    static char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "min max divide_up int");
    for (size_t i = 0; i < expression_function_count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %s", expression_functions[i].name);
    return text;
}
