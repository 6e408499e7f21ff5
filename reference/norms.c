/* The oracles of rmsnorm, of layer_norm, group_norm and l2_norm, and of softmax. */
#include <float.h>
#include <math.h>

#include "reference.h"

void reference_rmsnorm(const float *x, const float *w, size_t rows, size_t dim, double eps,
                       double *y, double *magnitude) {
    for (size_t r = 0; r < rows; r++) {
        double squares = 0;
        for (size_t i = 0; i < dim; i++)
            squares += (double)x[r * dim + i] * (double)x[r * dim + i];
        double inverse = 1 / sqrt(squares / (double)dim + eps);
        for (size_t i = 0; i < dim; i++) {
            double normal = (double)x[r * dim + i] * inverse;
            y[r * dim + i] = normal * (double)w[i];
            /* Squares do not cancel, so the error is relative to y; what a denormal x / rms loses
             * in an f32 is then multiplied by w. */
            magnitude[r * dim + i] = fmax(fabs(normal), (double)FLT_MIN) * fabs((double)w[i]);
        }
    }
}

/* The error of x - mean is relative to the values and their mean, not to the difference. The
 * variance, a sum of squares of such differences, errs in proportion to itself and by that error,
 * which all values share in. */
static void normalise(const float *x, const float *w, const float *b, size_t dim, double eps,
                      double *y, double *magnitude) {
    double sum = 0, size = 0, squares = 0;
    for (size_t i = 0; i < dim; i++) {
        sum += (double)x[i];
        size += fabs((double)x[i]);
    }
    double mean = sum / (double)dim, mean_size = size / (double)dim;
    for (size_t i = 0; i < dim; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    double inverse = 1 / sqrt(squares / (double)dim + eps);
    for (size_t i = 0; i < dim; i++) {
        double normal = ((double)x[i] - mean) * inverse, weight = fabs((double)w[i]);
        double parts = (fabs((double)x[i]) + mean_size) * inverse;
        double shared = fabs(normal) * (1 + mean_size * inverse / sqrt((double)dim));
        y[i] = normal * (double)w[i] + (double)b[i];
        magnitude[i] = fmax(parts + shared, (double)FLT_MIN) * weight + fabs((double)b[i]);
    }
}

void reference_group_norm(const float *x, const float *w, const float *b, size_t rows,
                          size_t groups, size_t dim, double eps, double *y, double *magnitude) {
    for (size_t r = 0; r < rows * groups; r++) {
        size_t weights = r % groups * dim;
        normalise(x + r * dim, w + weights, b + weights, dim, eps, y + r * dim,
                  magnitude + r * dim);
    }
}

void reference_l2_norm(const float *x, size_t rows, size_t dim, double eps, double *y,
                       double *magnitude) {
    for (size_t r = 0; r < rows; r++) {
        double squares = 0;
        for (size_t i = 0; i < dim; i++)
            squares += (double)x[r * dim + i] * (double)x[r * dim + i];
        double length = fmax(sqrt(squares), eps);
        for (size_t i = 0; i < dim; i++) {
            y[r * dim + i] = (double)x[r * dim + i] / length;
            magnitude[r * dim + i] = fabs(y[r * dim + i]);
        }
    }
}

/* The distance from the largest is rounded, and an exponential errs in proportion to it: hence the
 * 1 + distance. What leaves the normal floats may be lost. So may terms of the sum that are below its
 * roundoff: adding many of them one by one is not off by a random walk, but by all of them. */
void reference_softmax(const float *x, size_t rows, size_t n, double roundings, double *y,
                       double *magnitude) {
    const double roundoff = (double)FLT_EPSILON / 2;
    for (size_t r = 0; r < rows; r++, x += n, y += n, magnitude += n) {
        double largest = -INFINITY, sum = 0, lost = 0;
        for (size_t i = 0; i < n; i++)
            largest = fmax(largest, (double)x[i]);
        for (size_t i = 0; i < n; i++)
            sum += exp((double)x[i] - largest);
        for (size_t i = 0; i < n; i++) {
            double weight = exp((double)x[i] - largest) / sum;
            lost += weight <= roundoff ? weight / roundoff : 0;
        }
        for (size_t i = 0; i < n; i++) {
            double distance = largest - (double)x[i];
            y[i] = exp(-distance) / sum;
            magnitude[i] = y[i] * (1 + distance + lost / roundings);
            if (exp(-distance) < 2 * (double)FLT_MIN)
                magnitude[i] = y[i] / (double)FLT_EPSILON;
        }
    }
}
