#include "rope.h"

#include <math.h>

#include "harness/check/accuracy.h"

/* Precise sin and cos may be off by 4 ULP and pow by 16: twice that in roundings. The angle's own
 * error is in the scale, which reference_rope multiplies by it.
 *
 * Under fast math the error of pow grows with its exponent, that of a fast division of the exponent
 * by head_dim is multiplied by ln(theta), and sin and cos are off by 2^-13 of the values they are
 * multiplied with, whatever the angle: where a fast sin is off by more, far from 0, a kernel has to
 * use the precise one. */
void rope_judge(const launch *l, const float *x, size_t count, double theta, expected *out) {
    bool has_pow = theta > 0;
    out->terms = 2;
    out->roundings = has_pow ? 40 : 10;
    if (l->pipeline->math == MATH_SAFE)
        return;
    if (has_pow)
        out->roundings = 8 + fast_pow(log2(theta)) + FAST_DIVIDE * fabs(log(theta));
    double operations = out->roundings + 2 * sqrt(out->terms);
    for (size_t i = 0; i < count; i++) {
        double pair = fabs((double)x[i]) + fabs((double)x[i ^ 1]);
        out->scale[i] += pair * FAST_SINE / operations;
    }
}
