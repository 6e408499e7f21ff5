/* The oracle of kv_cache_copy. */
#include "reference.h"

void reference_kv_cache_copy(const float *k, const float *v, size_t kv_dim, size_t row,
                             double *k_cache, double *v_cache) {
    for (size_t i = 0; i < kv_dim; i++) {
        k_cache[row * kv_dim + i] = (double)k[i];
        v_cache[row * kv_dim + i] = (double)v[i];
    }
}
