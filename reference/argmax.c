/* The oracle of argmax_reduce and argmax_final. */
#include <math.h>

#include "reference.h"

maximum reference_maximum(const float *values, const uint32_t *indices, size_t count) {
    maximum best = {-INFINITY, UINT32_MAX};
    for (size_t i = 0; i < count; i++) {
        double value = (double)values[i];
        if (!isnan(value) &&
            (value > best.value || (value == best.value && indices[i] < best.index)))
            best = (maximum){value, indices[i]};
    }
    return best;
}
