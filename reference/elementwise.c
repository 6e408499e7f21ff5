/* The oracles of activations (tanh is the library's), ffn_silu and token_shift. */
#include <float.h>
#include <math.h>

#include "reference.h"

double reference_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

double reference_squared_relu(double x) {
    return x < 0 ? 0 : x * x;
}

double reference_silu(double x) {
    return x * reference_sigmoid(x);
}

double reference_decay(double x) {
    return exp(-0.606531 * reference_sigmoid(x));
}

/* An f32 exp of g has a relative error that grows with |g|, since g itself is only known to a
 * relative 2^-24: hence the 1 + |g|. Where e^g leaves the normal f32 range (|g| above 87) a kernel
 * may have nothing left of a negative g's silu, and 0 is as good as the 1e-37 that is right. */
void reference_ffn_silu(const float *gate, const float *up, size_t count, double *out,
                        double *magnitude) {
    const double last_normal = 87.0;
    for (size_t i = 0; i < count; i++) {
        double g = (double)gate[i], u = (double)up[i];
        out[i] = g / (1 + exp(-g)) * u;
        magnitude[i] = fabs(out[i]) * (1 + fabs(g));
        if (g < -last_normal)
            magnitude[i] = fabs(out[i]) / (double)FLT_EPSILON;
        else if (g > last_normal)
            magnitude[i] = fabs(out[i]);
    }
}

void reference_token_shift(const float *x, const float *state, const float *mu, size_t tokens,
                           size_t dim, size_t mixes, double *out, double *magnitude) {
    for (size_t m = 0; m < mixes; m++)
        for (size_t i = 0; i < tokens * dim; i++) {
            double value = (double)x[i], share = (double)mu[m * dim + i % dim];
            double previous = (double)(i < dim ? state[i] : x[i - dim]);
            size_t at = m * tokens * dim + i;
            out[at] = value + (previous - value) * share;
            magnitude[at] = fabs(value) + (fabs(previous) + fabs(value)) * fabs(share);
        }
}
