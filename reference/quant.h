/* quant: the block formats of quantised weights, decoded and encoded the plain way. */
#ifndef ASSAY_QUANT_H
#define ASSAY_QUANT_H

#include <stddef.h>
#include <stdint.h>

/* Q4_0: 32 values in 18 bytes: an fp16 scale d, then 16 bytes. The low nibble of byte j is value j,
 * the high nibble is value j + 16; a nibble n stands for (n - 8) * d. */
enum { Q4_0_VALUES = 32 };

typedef struct {
    uint16_t d; /* fp16 bits */
    uint8_t nibbles[16];
} block_q4_0;

_Static_assert(sizeof(block_q4_0) == 18, "Q4_0 blocks are packed");

double q4_0_get_scale(const block_q4_0 *b);
uint32_t q4_0_get_nibble(const block_q4_0 *b, size_t i); /* of value i: 0 to 15 */

/* values has room for 32. */
void q4_0_decode(const block_q4_0 *b, double *values);

/* The value of largest magnitude becomes nibble 0 (-8 d), so its sign sets the sign of d. A scale
 * beyond fp16 saturates at 65504. */
void q4_0_encode(const float *values, block_q4_0 *b);

/* Bytes of a (rows, columns) matrix. Columns must be a multiple of 32. */
size_t q4_0_get_bytes(size_t rows, size_t columns);

#endif
