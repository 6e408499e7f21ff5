/* The oracles of what comes before and after the layers: embedding_lookup and dequantize (decode_row),
 * kv_cache_copy, repetition_penalty, argmax_reduce and argmax_final, decode_advance. */
#include <assert.h>
#include <math.h>

#include "quant.h"
#include "reference.h"

void reference_decode_row(const weight_format *f, const void *table, size_t row, size_t columns,
                          double *out) {
    double magnitudes[BLOCK_MAX_VALUES];
    assert(columns % f->values == 0);
    size_t blocks = columns / f->values;
    for (size_t b = 0; b < blocks; b++)
        f->decode((const char *)table + (row * blocks + b) * f->bytes, out + b * f->values,
                  magnitudes);
}

void reference_kv_cache_copy(const float *k, const float *v, size_t kv_dim, size_t row,
                             double *k_cache, double *v_cache) {
    for (size_t i = 0; i < kv_dim; i++) {
        k_cache[row * kv_dim + i] = (double)k[i];
        v_cache[row * kv_dim + i] = (double)v[i];
    }
}

static bool is_among(const uint32_t *ids, size_t n, uint32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

void reference_repetition_penalty(const uint32_t *ids, size_t n, size_t vocab, double penalty,
                                  double *logits, double *magnitude) {
    for (size_t i = 0; i < vocab; i++)
        magnitude[i] = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = ids[i];
        if (id >= vocab || is_among(ids, i, id))
            continue;
        logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
        magnitude[id] = fabs(logits[id]);
    }
}

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

void reference_decode_advance(uint32_t next, const uint32_t before[4], uint32_t ring,
                              double after[4], double *history) {
    history[before[3] % ring] = next;
    after[0] = next;
    for (int i = 1; i < 4; i++) /* pos, kv_len, step: each wraps at 32 bits */
        after[i] = before[i] + 1u;
}
