/* quant: see quant.h. */
#include "quant.h"

#include <assert.h>
#include <math.h>

#include "harness/elem.h"

double q4_0_get_scale(const block_q4_0 *b) {
    return (double)half_to_float(b->d);
}

uint32_t q4_0_get_nibble(const block_q4_0 *b, size_t i) {
    assert(i < Q4_0_VALUES);
    return i < 16 ? b->nibbles[i] & 15u : (uint32_t)b->nibbles[i - 16] >> 4;
}

void q4_0_decode(const block_q4_0 *b, double *values) {
    double d = q4_0_get_scale(b);
    for (size_t i = 0; i < Q4_0_VALUES; i++)
        values[i] = ((double)q4_0_get_nibble(b, i) - 8) * d;
}

static uint8_t quantise(double value, double d) {
    double n = d == 0 ? 8 : floor(value / d + 8.5);
    return (uint8_t)(n < 0 ? 0 : n > 15 ? 15 : n);
}

void q4_0_encode(const float *values, block_q4_0 *b) {
    double extreme = 0;
    for (size_t i = 0; i < Q4_0_VALUES; i++)
        if (fabs((double)values[i]) > fabs(extreme))
            extreme = (double)values[i];
    const double limit = 65504;
    double d = fmin(fmax(extreme / -8, -limit), limit);
    elem_write(ELEM_F16, &b->d, 0, d);
    d = q4_0_get_scale(b); /* nibbles are chosen for the scale that is stored */
    for (size_t j = 0; j < 16; j++)
        b->nibbles[j] =
            (uint8_t)(quantise((double)values[j], d) | quantise((double)values[j + 16], d) << 4);
}

size_t q4_0_get_bytes(size_t rows, size_t columns) {
    assert(columns % Q4_0_VALUES == 0);
    return rows * (columns / Q4_0_VALUES) * sizeof(block_q4_0);
}
