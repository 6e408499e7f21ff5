#include "weight_scan.h"

#include <math.h>
#include <string.h>

static bool is_finite_half(const uint8_t *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return (bits & 0x7C00) != 0x7C00;
}

static size_t find_bad_half(const uint8_t *block, size_t count, size_t step, size_t at) {
    size_t i = 0;
    while (i < count && is_finite_half(block + i * step + at))
        i++;
    return i;
}

static size_t find_bad_float(const uint8_t *values, size_t count) {
    size_t i = 0;
    for (float value; i < count; i++) {
        memcpy(&value, values + i * sizeof value, sizeof value);
        if (!isfinite(value))
            break;
    }
    return i;
}

static size_t find_bad_decoded(const weight_format *f, const uint8_t *blocks, size_t count) {
    double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES];
    for (size_t i = 0; i < count; i++) {
        f->decode(blocks + i * f->bytes, values, magnitudes);
        for (size_t j = 0; j < f->values; j++)
            if (!isfinite(values[j]))
                return i;
    }
    return count;
}

/* The first block with a number that is not finite; count: none. */
static size_t find_bad_block(const weight_format *f, const uint8_t *blocks, size_t count) {
    if (f == &format_f32)
        return find_bad_float(blocks, count);
    if (f->halves == 0)
        return find_bad_decoded(f, blocks, count);
    size_t bad = count;
    for (size_t k = 0; k < f->halves; k++)
        bad = find_bad_half(blocks, bad, f->bytes, f->half_at[k]);
    return bad;
}

bool weight_scan(const gguf *g, err *e) {
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        const weight_format *f = t->type->format;
        if (!f)
            continue;
        size_t count = (size_t)(t->elements / f->values), per_row = t->dim[0] / f->values;
        size_t bad = find_bad_block(f, t->data, count);
        if (bad < count)
            return err_set(
                e, EXIT_WRONG,
                "the weights are not finite: tensor %s (%s), row %zu, block %zu, at byte "
                "%zu of the file",
                t->name, t->type->name, bad / per_row, bad % per_row,
                (size_t)((const uint8_t *)t->data - (const uint8_t *)g->map) + bad * f->bytes);
    }
    return true;
}
