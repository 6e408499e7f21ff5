/* record: see record.h. */
#include "record.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/os.h"
#include "reference/quant.h"

uint32_t divide_up(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

bool record_trim(const kernel_row *k, const char *what, size_t bytes, size_t alignment, slice *s,
                 err *e) {
    if (bytes == 0)
        return err_set(e, EXIT_CANNOT, "%s: %s is empty; give it at least one element", k->name,
                       what);
    if (s->bytes < bytes)
        return err_set(e, EXIT_CANNOT, "%s: %s has %zu bytes and needs %zu; check the shape",
                       k->name, what, s->bytes, bytes);
    if (s->offset % alignment != 0)
        return err_set(e, EXIT_CANNOT, "%s: %s starts at byte %zu, which must be a multiple of %zu",
                       k->name, what, s->offset, alignment);
    *s = slice_part(s->buffer, s->offset, bytes);
    return true;
}

bool record_check_q4_0(const kernel_row *k, slice w, uint32_t rows, uint32_t columns, err *e) {
    if (columns % Q4_0_VALUES != 0)
        return err_set(e, EXIT_CANNOT,
                       "%s: in_dim is %u, and Q4_0 rows are whole blocks of %d; pad the matrix",
                       k->name, columns, Q4_0_VALUES);
    size_t bytes = q4_0_get_bytes(rows, columns);
    if (w.bytes != bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: w has %zu bytes, a %ux%u Q4_0 matrix has %zu; is it of another type?",
                       k->name, w.bytes, rows, columns, bytes);
    return record_trim(k, "w", bytes, 2, &w, e);
}

static block_q4_0 draw_encoded_block(kernel_case *c) {
    float values[Q4_0_VALUES];
    block_q4_0 b;
    fill_f32(&c->random, c->inputs, values, Q4_0_VALUES);
    q4_0_encode(values, &b);
    return b;
}

/* Any nibbles; the scale is zero, denormal or below 0.125, of either sign. */
static block_q4_0 draw_raw_block(rng *r) {
    block_q4_0 b;
    uint64_t bits = 0;
    for (size_t j = 0; j < 16; j++, bits >>= 8) {
        if (j % 8 == 0)
            bits = rng_next(r);
        b.nibbles[j] = (uint8_t)bits;
    }
    static const uint32_t limits[] = {1, 0x400, 0x3000, 0x3000};
    b.d = (uint16_t)(rng_below(r, limits[rng_below(r, 4)]) | rng_below(r, 2) << 15);
    return b;
}

/* Encoding is slow and the largest matrix has a million blocks, so encoded blocks are drawn from a
 * pool; raw ones are all new. */
bool case_input_q4_0(kernel_case *c, const char *label, uint32_t rows, uint32_t columns, slice *out,
                     err *e) {
    enum { POOL = 1024 };
    size_t bytes = q4_0_get_bytes(rows, columns), count = bytes / sizeof(block_q4_0);
    block_q4_0 *blocks = malloc(bytes), pool[POOL];
    assert(blocks);
    uint32_t pooled = count < POOL ? (uint32_t)count : POOL;
    for (uint32_t i = 0; i < pooled; i++)
        pool[i] = draw_encoded_block(c);
    for (size_t i = 0; i < count; i++)
        blocks[i] = rng_below(&c->random, 4) == 0 ? draw_raw_block(&c->random)
                                                  : pool[rng_below(&c->random, pooled)];
    bool ok = case_input_bytes(c, label, blocks, bytes, out, e);
    free(blocks);
    return ok;
}
