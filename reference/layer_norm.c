/* The oracles of layer_norm, group_norm and l2_norm. */
#include <float.h>
#include <math.h>

#include "reference.h"

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
