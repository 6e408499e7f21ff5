/* The oracle of embedding_lookup, dequantize_q4_0 and dequantize_q8_0. */
#include <assert.h>

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
