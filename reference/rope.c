/* The oracle of rope_apply and rope_apply_dual, and that of rope_apply_table. */
#include <math.h>

#include "reference.h"

static void turn_pair(const float *x, double angle, double *y, double *magnitude) {
    double a = (double)x[0], b = (double)x[1];
    y[0] = a * cos(angle) - b * sin(angle);
    y[1] = a * sin(angle) + b * cos(angle);
    /* An f32 angle is off by a part of itself, and so are the sine and cosine. */
    magnitude[0] = magnitude[1] = (fabs(a) + fabs(b)) * (1 + fabs(angle));
}

void reference_rope(const float *x, size_t heads, size_t head_dim, uint32_t pos, double theta,
                    double *y, double *magnitude) {
    for (size_t h = 0; h < heads; h++)
        for (size_t p = 0; p < head_dim / 2; p++) {
            size_t i = h * head_dim + 2 * p;
            double angle = pos * pow(theta, -2.0 * (double)p / (double)head_dim);
            turn_pair(x + i, angle, y + i, magnitude + i);
        }
}

void reference_rope_table(const float *x, size_t heads, size_t head_dim, uint32_t pos,
                          const float *freqs, double *y, double *magnitude) {
    for (size_t h = 0; h < heads; h++)
        for (size_t p = 0; p < head_dim / 2; p++) {
            size_t i = h * head_dim + 2 * p;
            turn_pair(x + i, pos * (double)freqs[p], y + i, magnitude + i);
        }
}

void reference_rope_fused(double angle, double sine, double *pair, double *magnitude) {
    double a = pair[0], b = pair[1];
    pair[0] = a * cos(angle) - b * sin(angle);
    pair[1] = a * sin(angle) + b * cos(angle);
    double spread = (fabs(a) + fabs(b)) * (1 + fabs(angle) + sine);
    magnitude[0] = magnitude[1] = magnitude[0] + magnitude[1] + spread;
}
