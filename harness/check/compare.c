/* compare: the part of check.h that compares an output with the oracle. Owns the verdict of an element and its tolerance; knows nothing of
 * devices or of how the output was made.
 *
 * Infinity is right where the oracle's finite double is too large for the output type, because
 * rounding it gives that infinity. Where the magnitudes that were added, or multiplied with each other,
 * are too large for a float together, what is in between may be infinite, and the result infinite or NaN:
 * such an element says nothing. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "expression.h"
#include "harness/device/device.h"

/* Exponent of the smallest normal value. */
static int get_min_exponent(elem type) {
    return type == ELEM_F16 ? -14 : -126;
}

/* Distance between neighbours of the type at this magnitude: one ULP. */
static double get_spacing(elem type, double value) {
    if (!elem_is_float(type))
        return 1;
    int exponent = get_min_exponent(type);
    if (fabs(value) >= ldexp(1, exponent))
        exponent = ilogb(value);
    return ldexp(2 * elem_get_roundoff(type), exponent);
}

static double get_store_tolerance(elem type, double value) {
    return elem_is_float(type)
               ? elem_get_roundoff(type) * fmax(fabs(value), ldexp(1, get_min_exponent(type)))
               : 0;
}

/* Kernels compute in f32, whatever they store, and each operation rounds: a relative error of at
 * most u = 2^-24. Three things add up.
 *
 * 1. Operations. An element is made of a sum of `terms` terms and of `roundings` other operations
 *    (products, exp, a division). The others err by u each. A sum of n terms errs by (n - 1) u in
 *    the worst case, but signs of roundings are as good as random and the error grows as sqrt(n) u;
 *    twice that leaves room for the unlucky element among millions, and no room for a lost term.
 *    These errors are relative to the magnitude of what was added, not to the result, which
 *    cancellation may have made small: hence `scale`, the sum of the magnitudes of the terms.
 * 2. The store rounds once more, to the output type, relative to the value itself.
 * 3. Below the smallest normal value the spacing stops shrinking, so both magnitudes above are at
 *    least that value. A device that flushes denormals may lose instead
 *    - every denormal among its inputs. How much of the result that is follows from what the lost
 *      inputs are multiplied with, and only the oracle knows: it is asked a second time with zeros
 *      in their place, and what lies between its two answers is right (get_error below). The loss
 *      is as large as its factors make it, and it is nothing where no input is denormal;
 *    - every result of an operation that is below FLT_MIN: less than FLT_MIN for each term, each
 *      other operation, and the store. What such a result is multiplied with afterwards is not
 *      known here and taken as 1: results that small come from cancellation or from a few small
 *      terms, so the number of operations is far above the number of losses.
 *
 * Under relaxed and fast math sums may be made in any order, which 1 allows for, products and sums
 * may be fused, which leaves out a rounding, and functions are less accurate, which the oracle
 * counts among its roundings (accuracy.h).
 *
 * A result that must agree in every bit has no tolerance, and neither has NaN or infinity. */
double compare_get_tolerance(elem type, const expected *want, size_t i, bool flushes_denormals) {
    double value = fabs(want->value[i]);
    if (want->exact || !isfinite(value))
        return 0;
    double scale = want->scale ? fabs(want->scale[i]) : value;
    if (!isfinite(scale))
        scale = value;
    double operations = want->roundings + 2 * sqrt(want->terms);
    double tolerance = elem_get_roundoff(ELEM_F32) * operations * fmax(scale, FLT_MIN);
    tolerance += get_store_tolerance(type, value);
    if (flushes_denormals)
        tolerance += (want->roundings + want->terms + 1) * (double)FLT_MIN;
    return tolerance;
}

static bool is_poison(elem type, const void *array, size_t i) {
    size_t bytes = elem_get_bytes(type);
    const unsigned char *p = (const unsigned char *)array + i * bytes;
    for (size_t b = 0; b < bytes; b++) {
        unsigned expected_byte = (i * bytes + b) % 2 ? POISON_PATTERN >> 8 : POISON_PATTERN & 255;
        if (p[b] != expected_byte)
            return false;
    }
    return true;
}

/* What storing the oracle's value would leave in memory, compared bit by bit: -0 is not +0. Any NaN
 * is as good as another. */
static bool has_same_bits(elem type, double want, const void *array, size_t i) {
    if (elem_is_float(type) && isnan(want))
        return isnan(elem_read(type, array, i));
    unsigned char stored[8];
    elem_write(type, stored, 0, want);
    size_t bytes = elem_get_bytes(type);
    return memcmp(stored, (const unsigned char *)array + i * bytes, bytes) == 0;
}

static double get_distance(elem type, double want, double got) {
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(want))
        return got == want ? 0 : INFINITY;
    if (isinf(got) && elem_is_float(type) && got == number_get_stored(type, want))
        return 0;
    return fabs(got - want);
}

/* A bit pattern that is right. On a device that flushes, the answer for flushed inputs is right as
 * well; among results of comparisons, all denormals are equal to 0. */
static bool has_right_bits(elem type, const expected *want, const void *got, size_t i) {
    if (has_same_bits(type, want->value[i], got, i))
        return true;
    if (!want->flushed || (elem_is_float(type) && !want->chosen))
        return false;
    double flushed = want->flushed[i], g = elem_read(type, got, i);
    return has_same_bits(type, flushed, got, i) ||
           (elem_is_float(type) && fabs(flushed) < (double)FLT_MIN && fabs(g) < (double)FLT_MIN);
}

/* The error of an element as the verdict sees it; tolerances are finite, so none covers infinity.
 */
static double get_error(elem type, const expected *want, const void *got, size_t i) {
    if (want->exact)
        return has_right_bits(type, want, got, i) ? 0 : INFINITY;
    double value = want->value[i], g = elem_read(type, got, i);
    double error = get_distance(type, value, g);
    if (!want->flushed)
        return error;
    double flushed = want->flushed[i];
    if (isfinite(value) && isfinite(flushed) && fmin(value, flushed) <= g &&
        g <= fmax(value, flushed))
        return 0;
    return fmin(error, get_distance(type, flushed, g));
}

/* Kernels may come across an infinity on the way to a finite result. */
static bool may_overflow(const expected *want, size_t i) {
    return !want->exact && want->scale && isfinite(want->value[i]) &&
           want->scale[i] > (double)FLT_MAX;
}

/* The same finite number, down to the sign of 0: right by every measure, and no poison, which is NaN
 * or, among integers, has to be looked at. */
static bool is_equal(double a, double b) {
    return a == b && signbit(a) == signbit(b) && isfinite(a);
}

typedef struct {
    double errors, values; /* sums of squares */
} energy;

static void add_statistics(comparison *c, energy *sum, elem type, double want, double got) {
    if (!isfinite(want))
        return;
    if (!isfinite(got)) {
        c->nonfinite++;
        return;
    }
    double error = fabs(got - want);
    c->max_abs = fmax(c->max_abs, error);
    c->max_ulp = fmax(c->max_ulp, error / get_spacing(type, want));
    if (want != 0)
        c->max_rel = fmax(c->max_rel, error / fabs(want));
    sum->errors += error * error;
    sum->values += want * want;
}

/* All elements together: the root of the mean square of error / tolerance, both without the store.
 *
 * The partial sums of n terms of one sign, added one by one, grow to the result, and each step rounds it by
 * at most u, 0.4 u on average: errors have a deviation of 0.24 sqrt(n) u, an eighth of the tolerance, and
 * less in any other order. Over many sums their root mean square is that, and half as much again is allowed.
 * A row may share one sum in all its elements, as in a norm, and then it is as far off as one sum may be, four
 * deviations. Less precision than a float's, where it is within the tolerance of each element, is not within
 * this. Short sums, and few elements, say nothing. */
double compare_get_most_together(const expected *want) {
    enum { FEWEST_TERMS = 8, FEWEST_ELEMENTS = 64 };
    const double sums = fmax((double)want->count / want->terms, 1);
    return want->exact || !(want->terms >= (double)FEWEST_TERMS) || want->count < FEWEST_ELEMENTS
               ? INFINITY
               : 0.1875 + 0.3125 / sqrt(sums);
}

/* Elements of a row that share one sum (want->row) err by one factor, whatever that sum is off by, and each by
 * what is its own. So the ranges of factors that explain them have one in common. A simdgroup may have added the
 * sum up for itself, in an order of its own: that is off by the square root of its steps at most, as in
 * get_most_together. Where denormals may have been lost, an element says nothing. */
static bool has_one_factor(elem type, const expected *want, const void *got, size_t first) {
    const double least = ldexp((double)FLT_MIN, 24), sums = sqrt(want->terms / 32);
    double low = -INFINITY, high = INFINITY, top = 0;
    for (size_t i = first; i < first + want->row; i++)
        top = fmax(top, fabs(want->value[i]));
    for (size_t i = first; i < first + want->row; i++) {
        const double w = want->value[i], factor = elem_read(type, got, i) / w;
        const double own = want->apart + 9 * log(top / fabs(w)) + sums;
        const double room =
            elem_get_roundoff(ELEM_F32) * own + get_store_tolerance(type, w) / fabs(w);
        if (!(fabs(w) > least) || !isfinite(factor))
            continue;
        low = fmax(low, factor - room);
        high = fmin(high, factor + room);
    }
    return low <= high;
}

static double get_margin(double error, double tolerance) {
    if (error == 0)
        return 0;
    double margin = error / tolerance;
    return isnan(margin) ? INFINITY : margin;
}

void compare_output(elem type, const expected *want, const void *got, bool poisoned,
                    bool flushes_denormals, comparison *out) {
    *out = (comparison){.count = want->count};
    energy sum = {0, 0};
    double shares = 0; /* squares of error / tolerance */
    for (size_t i = 0; i < want->count; i++) {
        double w = want->value[i], g = elem_read(type, got, i);
        if (is_equal(w, g)) { /* most elements of large outputs */
            sum.values += w * w;
            continue;
        }
        double tolerance = compare_get_tolerance(type, want, i, flushes_denormals);
        double error = !isfinite(g) && may_overflow(want, i) ? 0 : get_error(type, want, got, i);
        bool is_stale = is_poison(type, got, i);
        if (poisoned && is_stale && isnan(g))
            error = INFINITY;
        add_statistics(out, &sum, type, w, g);
        double margin = get_margin(error, tolerance);
        const double stored = get_store_tolerance(type, w);
        const double share = error > stored ? (error - stored) / (tolerance - stored) : 0;
        shares += share * share;
        if (margin > out->margin) {
            out->margin = margin;
            out->worst = i;
        }
        if (!(error <= tolerance)) {
            out->bad++;
            out->unwritten += is_stale;
            if (out->shown < COMPARE_SHOWN)
                out->first[out->shown++] = (bad_element){i, w, g, tolerance, is_stale};
        }
    }
    for (size_t i = 0; want->row > 0 && i + want->row <= want->count; i += want->row)
        if (!has_one_factor(type, want, got, i) && out->apart++ == 0)
            out->apart_row = i / want->row;
    out->together = sqrt(shares / (double)(want->count + !want->count));
    out->most_together = compare_get_most_together(want);
    out->nmse = sum.errors == 0 ? 0 : sum.errors / sum.values;
}
