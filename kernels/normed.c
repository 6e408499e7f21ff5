#include "normed.h"

#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "reference/reference.h"

double *normed_new(const float *x, const float *norm_w, uint32_t in_dim, float eps) {
    double *made = array_new(1, 2 * size_multiply(in_dim, sizeof *made));
    reference_rmsnorm(x, norm_w, 1, in_dim, (double)eps, made, made + in_dim);
    return made;
}

void normed_multiply(const weight_format *f, const void *w, const double *normed, uint32_t rows,
                     uint32_t in_dim, double *value, double *scale) {
    for (size_t i = 0; i < rows; i++)
        value[i] = scale[i] = 0;
    reference_matvec_fused(f, w, normed, normed + in_dim, rows, in_dim, 1, value, scale);
}
