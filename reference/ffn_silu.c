/* The oracle of ffn_silu. */
#include <float.h>
#include <math.h>

#include "reference.h"

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
