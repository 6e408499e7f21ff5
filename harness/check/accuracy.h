/* accuracy: how far Metal's functions may be off under relaxed and fast math.
 *
 * Table 8.2 of the Metal Shading Language Specification ("single-precision operations and functions
 * with fast math enabled"), in roundings: one is the error of one f32 operation, u = 2^-24 of the
 * result, half an ULP. So an ULP counts 2. Oracles allow for these among their roundings; where a
 * precise function is much better (sin, cos, pow), only under a math mode that is not safe.
 *
 * What the table gives as a composition follows from its parts:
 *   pow(x, y)  exp2(y * log2(x)): a relative error of the exponent e becomes one of the result,
 *              times e and ln 2: (log2's 2 ULP and the product's rounding) * |e| * ln 2 + exp2(e)
 *   sqrt(x)    x * rsqrt(x)
 *   tanh(x)    (t - 1) / (t + 1) with t = exp(2 x)
 * Relaxed math calls the same functions: it only keeps infinity and NaN. */
#pragma once

#include <math.h>

#define FAST_RECIPROCAL 2.0 /* 1 / x: 1 ULP, x within 2^-126 to 2^126 */
#define FAST_DIVIDE 5.0     /* x / y: 2.5 ULP, y within the same */
#define FAST_RSQRT 4.0      /* 2 ULP */
#define FAST_LOG 6.0        /* 3 ULP outside 0.5 to 2; inside 2^-21 absolute: 8 of the scale 1 */
#define FAST_LOG2 4.0       /* 2 ULP outside 0.5 to 2; inside 2^-22 absolute: 4 of the scale 1 */
#define FAST_SINE 2048.0    /* sin, cos: 2^-13 absolute within -pi to pi, "larger otherwise" */

/* exp and exp2: 3 + floor(|2 x|) ULP */
static inline double fast_exp(double x) {
    return 2 * (3 + floor(fabs(2 * x)));
}

/* pow with the result 2^exponent. */
static inline double fast_pow(double exponent) {
    return (FAST_LOG2 + 1) * fabs(exponent) * 0.6931471805599453 + fast_exp(exponent);
}
