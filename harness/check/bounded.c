/* bounded: see bounded.h. Owns the bounds of arithmetic, of sums and of functions. */
#include "bounded.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "accuracy.h"
#include "harness/device/elem.h"

#define U 0x1p-24       /* one rounding of f32 */
#define SAFE_DIVISION 2 /* roundings under safe math: a kernel may multiply with 1 / x */

/* Arithmetic ---------------------------------------------------------------------------------- */

double bounded_get_rounding(double value) {
    return isfinite(value) && (double)(float)value != value ? U * fabs(value) : 0;
}

bounded bounded_make(arithmetic how, double value, double carried, double roundings) {
    double size = fabs(value);
    if (!isfinite(value))
        return (bounded){.value = value};
    double error = carried + roundings * U * size;
    if (size < 2 * (double)FLT_MIN && size > 0)
        error += how.flushes ? (double)FLT_MIN : U * (double)FLT_MIN;
    return (bounded){.value = value, .error = error};
}

bounded bounded_add(arithmetic how, bounded a, bounded b, bool is_loose) {
    double carried = a.error + b.error;
    if (carried == 0 && !is_loose)
        return bounded_make(how, a.value + b.value, 0, 1);
    return bounded_make(how, a.value + b.value, carried + U * (fabs(a.value) + fabs(b.value)), 0);
}

bounded bounded_multiply(arithmetic how, bounded a, bounded b) {
    double carried = fabs(a.value) * b.error + (fabs(b.value) + b.error) * a.error;
    return bounded_make(how, a.value * b.value, carried, 1);
}

bounded bounded_divide(arithmetic how, bounded a, bounded b) {
    double value = a.value / b.value, carried = 0, size = fabs(b.value);
    if (a.error > 0 || b.error > 0)
        carried = (a.error + fabs(value) * b.error) / fmax(size - b.error, size / 2);
    return bounded_make(how, value, carried, how.fast ? FAST_DIVIDE : SAFE_DIVISION);
}

bool bounded_is_close(bounded a, bounded b) {
    double room = a.error + b.error;
    return room > 0 && fabs(a.value - b.value) <= room;
}

bounded bounded_choose(bounded a, bounded b, bool larger) {
    bounded best = (larger ? b.value > a.value : b.value < a.value) || isnan(a.value) ? b : a;
    if (bounded_is_close(a, b))
        best.error = fmax(a.error, b.error);
    return best;
}

/* Sums ---------------------------------------------------------------------------------------- */

/* The roundings of a sum that a kernel makes in an order of its own. Each is relative to a partial
 * sum, their signs are random, and in the worst order partial sums come to the sum of magnitudes:
 * 2 sqrt(n) of it. Where many terms cancel that is far too much. Two orders tell how large partial
 * sums really are: one after the other, and 32 lanes as a simdgroup adds them; 8 is six standard
 * deviations for an order whose partial sums are three times as large. */
enum { SHORT_SUM = 64 };
#define SPREAD 8.0

static double bound_roundings(const bounded_sum *s) {
    double worst = 2 * sqrt((double)s->count) * s->magnitude, in_lanes = s->in_lanes, across = 0;
    for (int i = 0; i < SUM_LANES; i++) {
        across += s->lanes[i];
        in_lanes += across * across;
    }
    return s->count <= SHORT_SUM ? worst : fmin(worst, SPREAD * sqrt(fmax(s->in_turn, in_lanes)));
}

void bounded_sum_add(bounded_sum *s, bounded term) {
    double *lane = &s->lanes[s->count++ % SUM_LANES];
    s->value += term.value;
    *lane += term.value;
    s->in_turn += s->value * s->value;
    s->in_lanes += *lane * *lane;
    s->magnitude += fabs(term.value);
    s->error += term.error;
}

bounded bounded_sum_end(const bounded_sum *s, arithmetic how) {
    bounded sum = {.value = s->value, .error = s->error};
    const double tiny = (double)s->count * (double)FLT_MIN;
    if (!isfinite(sum.value))
        return (bounded){.value = sum.value};
    if (s->count > 1)
        sum.error += U * bound_roundings(s);
    if (s->magnitude > 0 && s->magnitude * U < tiny)
        sum.error += tiny * (how.flushes ? 1 : U);
    return sum;
}

/* Functions ----------------------------------------------------------------------------------- */

/* What fast math adds, in roundings of 1, where it is more than safe math does: of f(a, b) = y. Within 0.5
 * to 2 its logarithms have an absolute error. Its tanh is (t - 1) / (t + 1) with t = exp(2 x), which
 * has one near 0. */
static double fast_log(double a, double y, double relative, double absolute) {
    return relative * fabs(y) + (a > 0.5 && a < 2 ? absolute : 0);
}

#define FAST(name, roundings)                                                                      \
    static double fast_of_##name(double a, double b, double y) {                                   \
        (void)a, (void)b;                                                                          \
        return roundings;                                                                          \
    }
FAST(exp, fast_exp(fmin(fabs(a), 90)) * fabs(y))
FAST(exp2, fast_exp(fmin(fabs(a), 130)) * fabs(y))
FAST(log, fast_log(a, y, FAST_LOG, 8))
FAST(log2, fast_log(a, y, FAST_LOG2, 4))
FAST(log10, fast_log(a, y, FAST_LOG + 2, 8))
FAST(sine, 8 * fabs(y) + FAST_SINE)
FAST(tan, 12 * fabs(y) + FAST_SINE * (1 + y * y))
FAST(sinh, fast_of_exp(a, b, y) + 8)
FAST(tanh, 16 * fabs(y) + fast_exp(fmin(fabs(2 * a), 20)))
FAST(sqrt, (FAST_RSQRT + 1) * fabs(y))
FAST(pow, fast_pow(fmin(fabs(b *log2(fabs(a))), 130)) * fabs(y))

static double reciprocal_sqrt(double x) {
    return 1 / sqrt(x);
}

struct bounded_function {
    const char *name;
    double (*of_one)(double);
    double (*of_two)(double, double);
    elem rounds_to;                               /* ELEM_COUNT if it is no type */
    double safe;                                  /* roundings of its value under safe math */
    double (*fast)(double a, double b, double y); /* NULL: the same */
    double least, most;                           /* where it is defined */
    double period_most; /* how far it can be off if its argument is off by more than 1; 0: far */
};

#define EVERYWHERE .rounds_to = ELEM_COUNT, .least = -HUGE_VAL, .most = HUGE_VAL
#define FROM_0 .rounds_to = ELEM_COUNT, .least = 0, .most = HUGE_VAL
#define TO_1 .rounds_to = ELEM_COUNT, .least = -1, .most = 1
static const bounded_function functions[] = {
    {"exp", exp, .safe = 8, .fast = fast_of_exp, EVERYWHERE},
    {"exp2", exp2, .safe = 8, .fast = fast_of_exp2, EVERYWHERE},
    {"log", log, .safe = 8, .fast = fast_of_log, FROM_0},
    {"log2", log2, .safe = 8, .fast = fast_of_log2, FROM_0},
    {"log10", log10, .safe = 8, .fast = fast_of_log10, FROM_0},
    {"sin", sin, .safe = 8, .fast = fast_of_sine, EVERYWHERE, .period_most = 2},
    {"cos", cos, .safe = 8, .fast = fast_of_sine, EVERYWHERE, .period_most = 2},
    {"tan", tan, .safe = 12, .fast = fast_of_tan, EVERYWHERE, .period_most = HUGE_VAL},
    {"asin", asin, .safe = 10, TO_1},
    {"acos", acos, .safe = 10, TO_1},
    {"atan", atan, .safe = 10, EVERYWHERE},
    {"sinh", sinh, .safe = 8, .fast = fast_of_sinh, EVERYWHERE},
    {"cosh", cosh, .safe = 8, .fast = fast_of_exp, EVERYWHERE},
    {"tanh", tanh, .safe = 10, .fast = fast_of_tanh, EVERYWHERE},
    {"erf", erf, .safe = 32, EVERYWHERE},
    {"sqrt", sqrt, .safe = 1, .fast = fast_of_sqrt, FROM_0},
    {"rsqrt", reciprocal_sqrt, .safe = 4, FROM_0},
    {"pow", .of_two = pow, .safe = 32, .fast = fast_of_pow, EVERYWHERE},
    {"abs", fabs, EVERYWHERE},
    {"floor", floor, EVERYWHERE},
    {"ceil", ceil, EVERYWHERE},
    {"round", round, EVERYWHERE},
    {"rint", rint, EVERYWHERE},
    {"trunc", trunc, EVERYWHERE},
    {"f32", .rounds_to = ELEM_F32},
    {"f16", .rounds_to = ELEM_F16},
    {"bf16", .rounds_to = ELEM_BF16},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* How far f may be from y where its arguments are off by da and db. */
static double carry(const bounded_function *f, double a, double b, double da, double db, double y) {
    double most = 0;
    if (da == 0 && db == 0)
        return 0;
    if (da > 1 && f->period_most > 0)
        return f->period_most;
    for (int sign = -1; sign <= 1; sign += 2) {
        double x = fmin(fmax(a + sign * da, f->least), f->most);
        most = fmax(most, fabs((f->of_two ? f->of_two(x, b + sign * db) : f->of_one(x)) - y));
    }
    return most;
}

/* The kernel rounds to the type here. A value close to the middle of two numbers may go to either,
 * so the error is up to the distance between them. */
static bounded round_to(elem type, bounded a) {
    unsigned char stored[8];
    elem_write(type, stored, 0, a.value);
    if (a.error == 0)
        return (bounded){.value = elem_read(type, stored, 0)};
    return (bounded){.value = a.value, .error = a.error + elem_get_roundoff(type) * fabs(a.value)};
}

bounded bounded_apply(const bounded_function *f, arithmetic how, bounded a, bounded b) {
    if (f->rounds_to != ELEM_COUNT)
        return round_to(f->rounds_to, a);
    double y = f->of_two ? f->of_two(a.value, b.value) : f->of_one(a.value);
    if (!isfinite(y))
        return (bounded){.value = y};
    double carried = carry(f, a.value, b.value, a.error, 0, y);
    carried += f->of_two ? carry(f, a.value, b.value, 0, b.error, y) : 0;
    if (how.fast && f->fast)
        return bounded_make(how, y, carried + U * f->fast(a.value, b.value, y), 0);
    return bounded_make(how, y, carried, f->safe);
}

const bounded_function *bounded_find_function(const char *name) {
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

int bounded_count_arguments(const bounded_function *f) {
    return f->of_two ? 2 : 1;
}

const char *bounded_list_functions(void) {
    static char text[256];
    size_t used = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", functions[i].name);
    return text;
}
