/* ptx_product: what the lanes of a warp, or of four, make of small matrices together (mma, movmatrix,
 * wgmma). */
#include <string.h>

#include "double.h"

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 32, LANES = 32, SUMS = 4 };

/* The nth element of a register, from its lowest bits. Of a tf32, a tensor core takes the upper 19
 * bits. */
static double read_element(uint64_t v, ptx_type t, uint32_t n) {
    uint32_t bits = (uint32_t)(v >> n * t.bits);
    if (t.kind == 'u')
        return (double)(uint8_t)bits;
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
 * same depths, always with a sign; of c and d, columns 2 * (lane % 4) and the next of the same two rows. A double
 * holds every sum of integers exactly. */
void ptx_multiply(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i) {
    double a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
    const uint32_t each = 32u / i->from.bits, step = 4 * each, steps = i->width / step;
    const ptx_type other = {i->from.kind == 'u' ? 's' : i->from.kind, i->from.bits};
    const ptx_arg *first = &i->args[SUMS], *second = first + 2 * steps, *third = second + steps;
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t k = 0; k < steps * step / 4; k++) {
            uint32_t at = k / each, depth = at * step + n % 4 * each + k % each;
            for (uint32_t half = 0; half < 2; half++)
                a[n / 4 + 8 * half][depth] = read_element(
                    ptx_read(block, &lanes[n], &first[2 * at + half]), i->from, k % each);
            b[depth][n / 4] =
                read_element(ptx_read(block, &lanes[n], &second[at]), other, k % each);
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

/* An 8 x 8 of 16 bits each: a lane has columns 2 * (lane % 4) and the next of row lane / 4. */
void ptx_transpose(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i) {
    uint32_t from[LANES];
    for (uint32_t n = 0; n < LANES; n++)
        from[n] = (uint32_t)ptx_read(block, &lanes[n], &i->args[1]);
    for (uint32_t n = 0; n < LANES; n++) {
        const uint32_t *row = &from[n % 4 * 8 + n / 8], shift = n / 4 % 2 * 16;
        lanes[n].registers[i->args[0].index] =
            (row[0] >> shift & 0xFFFF) | (row[4] >> shift & 0xFFFF) << 16;
    }
}

/* Where a descriptor's matrix has byte `byte` of row `row`: rows of 128 or 32 bytes, swizzled by the bits of
 * the address, and groups of eight that are a stride apart. The address of shared memory that it has are
 * the lower bits of one here. */
static const uint8_t *find_element(const ptx_block *b, uint64_t descriptor, uint32_t row,
                                   uint32_t byte, CUresult *fault) {
    enum { SWIZZLE_128 = 1, SWIZZLE_32 = 3, KNOWN = 0x3FFFF };
    const uint64_t swizzle = descriptor >> 62;
    const size_t row_bytes = swizzle == SWIZZLE_32 ? 32 : 128;
    size_t first = (descriptor & 0x3FFF) << 4, stride = (descriptor >> 32 & 0x3FFF) << 4,
           base = (uintptr_t)b->shared;
    if (swizzle != SWIZZLE_128 && swizzle != SWIZZLE_32)
        *fault = CUDA_ERROR_LAUNCH_FAILED;
    size_t at = base + ((first - base) & KNOWN) + row / 8 * stride + row % 8 * row_bytes + byte;
    at ^= (at >> 7 & (row_bytes / 16 - 1)) << 4;
    if (at < base || at + 2 > base + ptx_get_shared_bytes(b->launch))
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return (const uint8_t *)at;
}

/* The 16 rows of a warp of d = a b, or d += a b if the predicate is set; operands d, four registers of
 * a as in mma, the descriptor of b and the predicate. */
void ptx_multiply_group(const ptx_block *block, ptx_thread *lanes, const ptx_insn *i,
                        CUresult *fault) {
    enum { DEPTH = 16, MOST_COLUMNS = 128 };
    static double a[ROWS][DEPTH], b[DEPTH][MOST_COLUMNS];
    const ptx_type half = {'f', 16}, sum_type = {'f', 32};
    const uint32_t count = i->width / 2u;
    const ptx_arg *first = &i->args[count];
    for (uint32_t n = 0; n < LANES; n++)
        for (uint32_t k = 0; k < 8; k++)
            a[n / 4 + k / 2 % 2 * 8][k / 4 * 8 + n % 4 * 2 + k % 2] =
                read_element(ptx_read(block, &lanes[n], &first[k / 2]), half, k % 2);
    for (uint32_t k = 0; k < DEPTH && !*fault; k++)
        for (uint32_t n = 0; n < i->width && !*fault; n++) {
            uint16_t bits = 0;
            const uint8_t *at =
                find_element(block, ptx_read(block, lanes, &first[4]), n, 2 * k, fault);
            if (!*fault)
                memcpy(&bits, at, sizeof bits);
            b[k][n] = ptx_to_float(bits, half);
        }
    for (uint32_t n = 0; n < LANES && !*fault; n++)
        for (uint32_t k = 0; k < count; k++) {
            uint32_t row = n / 4 + k / 2 % 2 * 8, column = k / 4 * 8 + n % 4 * 2 + k % 2;
            bool adds = ptx_read(block, &lanes[n], &first[5]) & 1;
            double sum = adds ? read_element(ptx_read(block, &lanes[n], &i->args[k]), sum_type, 0) : 0;
            for (uint32_t m = 0; m < DEPTH; m++)
                sum += a[row][m] * b[m][column];
            lanes[n].registers[i->args[k].index] = write_sum(sum, sum_type);
        }
}
