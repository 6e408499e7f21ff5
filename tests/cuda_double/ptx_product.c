/* ptx_product: the product of two small matrices that the lanes of a warp make together (mma). */
#include <string.h>

#include "double.h"

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 32, LANES = 32, SUMS = 4 };

/* The nth element of a register, from its lowest bits. Of a tf32, a tensor core takes the upper 19
 * bits. */
static double read_element(uint64_t v, ptx_type t, uint32_t n) {
    uint32_t bits = (uint32_t)(v >> n * t.bits);
    if (t.kind == 's')
        return t.bits == 8 ? (double)(int8_t)bits : (double)(int32_t)bits;
    if (t.kind == 't')
        return ptx_to_float(bits & 0xFFFFE000u, (ptx_type){'f', 32});
    return ptx_to_float(bits, t);
}

/* Integers wrap at 32 bits; a float is rounded here and nowhere else. */
static uint32_t write_sum(double sum, ptx_type t) {
    float rounded = (float)sum;
    uint32_t bits;
    if (t.kind == 's')
        return (uint32_t)(int64_t)sum;
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

/* d = a b + c with operands d, a, b, c; a has 16 rows, b 8 columns, and both a depth of i->width.
 * A register has 32 bits: `each` neighbours in the depth. Registers of a lane: of a, row lane / 4
 * and that 8 below it, then both again 4 * each further in the depth; of b, column lane / 4 at the
 * same depths; of c and d, columns 2 * (lane % 4) and the next of the same two rows. A double
 * holds every sum of integers exactly. */
void ptx_multiply(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i) {
    double a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
    const uint32_t each = 32u / i->from.bits, step = 4 * each, steps = i->width / step;
    const ptx_arg *first = &i->args[SUMS], *second = first + 2 * steps, *third = second + steps;
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t k = 0; k < steps * step / 4; k++) {
            uint32_t at = k / each, depth = at * step + n % 4 * each + k % each;
            for (uint32_t half = 0; half < 2; half++)
                a[n / 4 + 8 * half][depth] = read_element(
                    ptx_read(block, &lanes[n], &first[2 * at + half]), i->from, k % each);
            b[depth][n / 4] =
                read_element(ptx_read(block, &lanes[n], &second[at]), i->from, k % each);
        }
    for (uint32_t n = 0; n < LANES; n++) {
        uint32_t made[SUMS];
        for (uint32_t k = 0; k < SUMS; k++) {
            uint32_t row = n / 4 + k / 2 * 8, column = n % 4 * 2 + k % 2;
            double sum = read_element(ptx_read(block, &lanes[n], &third[k]), i->type, 0);
            for (uint32_t m = 0; m < i->width; m++)
                sum += a[row][m] * b[m][column];
            made[k] = write_sum(sum, i->type);
        }
        for (uint32_t k = 0; k < SUMS; k++) /* after all reads: d may be c */
            lanes[n].registers[i->args[k].index] = made[k];
    }
}
