/* The oracle of rope_apply and rope_apply_dual. */
#include <math.h>

#include "reference.h"

void reference_rope(const float *x, size_t heads, size_t head_dim, uint32_t pos, double theta,
                    double *y, double *magnitude) {
    for (size_t h = 0; h < heads; h++)
        for (size_t p = 0; p < head_dim / 2; p++) {
            size_t i = h * head_dim + 2 * p;
            double angle = pos * pow(theta, -2.0 * (double)p / (double)head_dim);
            double a = (double)x[i], b = (double)x[i + 1];
            y[i] = a * cos(angle) - b * sin(angle);
            y[i + 1] = a * sin(angle) + b * cos(angle);
            /* An f32 angle is off by a part of itself, and so are the sine and cosine. */
            magnitude[i] = magnitude[i + 1] = (fabs(a) + fabs(b)) * (1 + angle);
        }
}
