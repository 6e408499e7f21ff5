#include "record.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "kernels/activations.h"
#include "reference/reference.h"

uint32_t divide_up(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

bool record_trim(const kernel *k, const char *what, size_t bytes, size_t alignment, slice *s,
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

bool record_takes(const op *o, const kernel *k, const shape *s, err *e) {
    err why;
    return op_takes(o, k, s, &why) || err_set(e, why.code, "%s %s", k->name, why.text);
}

launch *record_launch(tape *t, const kernel *k, err *e) {
    err why;
    if (!device_offers(device_get_facts(library_get_device(t->lib)), k->needs, &why)) {
        err_set(e, why.code, "%s %s", k->name, why.text);
        return NULL;
    }
    launch *l = tape_add(t, k->file, k->name, e);
    if (l)
        l->kernel = k;
    return l;
}

/* Cuts the buffer down to what the launch uses. */
static bool fit(const kernel *k, const launch_arg *a, slice *at, err *e) {
    *at = a->at;
    if (a->format)
        return record_check_weights(k, a->name, a->format, a->at, a->rows, a->columns, a->alignment,
                                    e);
    size_t bytes = size_multiply(a->count, elem_get_bytes(a->type));
    return !a->name || record_trim(k, a->name, bytes, a->alignment, at, e);
}

size3 record_tiles(const kernel *k, uint32_t rows, uint32_t tokens) {
    return (size3){divide_up(rows, k->rows), k->tokens ? divide_up(tokens, k->tokens) : 1, 1};
}

bool record_args(tape *t, const kernel *k, const launch_arg *args, size_t count,
                 const launch_work *w, err *e) {
    slice at[LAUNCH_BUFFERS];
    assert(count <= LAUNCH_BUFFERS);
    for (size_t i = 0; i < count; i++)
        if (!fit(k, &args[i], &at[i], e))
            return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    for (size_t i = 0; i < count; i++)
        if (args[i].name) {
            launch_bind(l, (int)i, at[i], args[i].access, args[i].type);
            if (!args[i].is_unread)
                l->bytes += (args[i].access == ACCESS_BOTH ? 2 : 1) * at[i].bytes;
        } else if (args[i].bytes) {
            launch_set_bytes(l, (int)i, args[i].bytes, args[i].byte_count);
        } else if (!args[i].is_absent) {
            launch_set_param(l, (int)i, args[i].value, args[i].type);
        }
    l->threadgroup_bytes[0] = w->threadgroup_bytes;
    l->bytes -= w->unmoved;
    l->appends = w->appends;
    l->flops = w->flops;
    l->oracle = w->oracle;
    l->context = w->context;
    uint32_t group = w->group ? w->group : k->group;
    if (w->threads)
        launch_set_threads_rounded(l, w->threads, group);
    else
        launch_set_groups(l, w->groups, (size3){group, 1, 1});
    return true;
}

static bool check_blocks(const kernel *k, const weight_format *f, uint32_t columns, err *e) {
    return columns % f->values == 0 ||
           err_set(e, EXIT_CANNOT,
                   "%s: in_dim is %u, and %s rows are whole blocks of %zu; pad the matrix", k->name,
                   columns, f->name, f->values);
}

bool record_check_weights(const kernel *k, const char *what, const weight_format *f, slice w,
                          uint32_t rows, uint32_t columns, size_t alignment, err *e) {
    if (!check_blocks(k, f, columns, e))
        return false;
    size_t row_bytes = size_multiply(columns / f->values, f->bytes),
           bytes = size_multiply(rows, row_bytes);
    if (w.bytes != bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: %s has %zu bytes, a %ux%u %s matrix has %zu; is it in another format?",
                       k->name, what, w.bytes, rows, columns, f->name, bytes);
    return record_trim(k, what, bytes, alignment, &w, e);
}

static void draw_encoded_block(kernel_case *c, const weight_format *f, uint8_t *block) {
    float values[BLOCK_MAX_VALUES];
    fill_f32(&c->random, c->inputs, values, f->values);
    f->encode(values, block);
}

/* Any bits; scales are zero, denormal or below 0.125, of either sign. */
static void draw_raw_block(rng *r, const weight_format *f, uint8_t *block) {
    uint64_t bits = 0;
    for (size_t j = 0; j < f->bytes; j++, bits >>= 8) {
        if (j % 8 == 0)
            bits = rng_next(r);
        block[j] = (uint8_t)bits;
    }
    static const uint32_t limits[] = {1, 0x400, 0x3000, 0x3000};
    for (size_t h = 0; h < f->halves; h++) {
        uint32_t d = rng_below(r, limits[rng_below(r, 4)]) | rng_below(r, 2) << 15;
        block[f->half_at[h]] = (uint8_t)d;
        block[f->half_at[h] + 1] = (uint8_t)(d >> 8);
    }
}

/* Encoding is slow and the largest matrix has a million blocks, so encoded blocks are drawn from a
 * pool; raw ones are all new. Plain floats are drawn as values: random bits could be NaN. */
bool case_input_weights(kernel_case *c, const char *label, const weight_format *f, uint32_t rows,
                        uint32_t columns, slice *out, err *e) {
    enum { POOL = 1024 };
    static uint8_t pool[POOL][BLOCK_MAX_BYTES];
    if (!check_blocks(c->kernel, f, columns, e)) /* shapes also come from the command line */
        return false;
    size_t bytes = format_get_bytes(f, rows, columns), count = bytes / f->bytes;
    uint8_t *blocks = array_new(1, bytes);
    uint32_t pooled = f->values == 1 ? 0 : count < POOL ? (uint32_t)count : POOL;
    for (uint32_t i = 0; i < pooled; i++)
        draw_encoded_block(c, f, pool[i]);
    for (size_t i = 0; i < count; i++)
        if (pooled == 0)
            draw_encoded_block(c, f, blocks + i * f->bytes);
        else if (rng_below(&c->random, 4) == 0)
            draw_raw_block(&c->random, f, blocks + i * f->bytes);
        else
            memcpy(blocks + i * f->bytes, pool[rng_below(&c->random, pooled)], f->bytes);
    bool ok = case_input_bytes(c, label, blocks, bytes, out, e);
    if (ok)
        out->buffer->block_bytes = (uint16_t)f->bytes;
    free(blocks);
    return ok;
}

bool case_input_elem(kernel_case *c, const char *label, elem type, size_t count, slice *out,
                     err *e) {
    if (type == ELEM_F32)
        return case_input_f32(c, label, count, out, e);
    float *values = array_new(count, sizeof *values);
    uint16_t *halves = array_new(count, sizeof *halves);
    fill_f32(&c->random, c->inputs, values, count);
    for (size_t i = 0; i < count; i++)
        halves[i] = half_from_float(values[i]);
    bool ok = case_input_bytes(c, label, halves, count * sizeof *halves, out, e);
    free(values);
    free(halves);
    return ok;
}

/* What an activation does to the error of its argument ------------------------------------------- */

static double keep(double x) {
    return x;
}

static double (*const list[ACTIVATION_COUNT])(double x) = {
    [ACTIVATION_NONE] = keep,
    [ACTIVATION_TANH] = tanh,
    [ACTIVATION_SIGMOID] = reference_sigmoid,
    [ACTIVATION_SQUARED_RELU] = reference_squared_relu,
    [ACTIVATION_SILU] = reference_silu,
    [ACTIVATION_DECAY] = reference_decay,
};

bool activation_check(uint32_t kind, err *e) {
    return kind < ACTIVATION_COUNT ||
           err_set(e, EXIT_CANNOT, "needs an activation below %d, not %u", ACTIVATION_COUNT, kind);
}

/* Roundings of the function itself, relative to its result: exp to 4 ULP (under fast math to what
 * its table says), a division to 2.5, tanh to 5, one for each product and sum. An error of e^-z
 * reaches sigmoid in proportion to 1 - sigmoid, an error of sigmoid reaches decay in proportion to
 * the exponent. */
static double count_roundings(uint32_t kind, double z, bool is_fast) {
    double s = reference_sigmoid(z);
    double sigmoid = FAST_DIVIDE + 1 + (1 - s) * (is_fast ? fast_exp(z) : 8);
    switch (kind) {
    case ACTIVATION_TANH:
        return 10;
    case ACTIVATION_SIGMOID:
        return sigmoid;
    case ACTIVATION_SQUARED_RELU:
        return 1;
    case ACTIVATION_SILU:
        return sigmoid + 1;
    case ACTIVATION_DECAY:
        return (double)DECAY_RATE * s * (sigmoid + 2) + (is_fast ? fast_exp(1) : 8);
    default:
        return 0;
    }
}

/* e^-z leaves the normal floats: a kernel may return 0 for what is left. */
static bool may_vanish(uint32_t kind, double z) {
    return z < -86.9 && (kind == ACTIVATION_SIGMOID || kind == ACTIVATION_SILU);
}

static double get_own_error(uint32_t kind, double z, bool is_fast) {
    return count_roundings(kind, z, is_fast) * fabs(list[kind](z));
}

/* The argument may be off by `delta`; all these functions are monotonous over such a distance, so
 * their ends are the extremes. The curvature counts too: at z = 0 a squared relu has no slope. The
 * function's own roundings are relative to what the kernel computed, which may be at either end: where
 * the sigmoid of z is 0 and that of z + delta is 1, it is a rounded 1. */
void activation_judge(uint32_t kind, bool is_fast, expected *out) {
    if (kind == ACTIVATION_NONE)
        return;
    double operations = out->roundings + 2 * sqrt(out->terms);
    double unit = elem_get_roundoff(ELEM_F32) * operations;
    for (size_t i = 0; i < out->count; i++) {
        double z = out->value[i], delta = unit * fmax(out->scale[i], (double)FLT_MIN);
        double f = list[kind](z);
        double change = fmax(fabs(list[kind](z + delta) - f), fabs(list[kind](z - delta) - f));
        double at_ends =
            fmax(get_own_error(kind, z - delta, is_fast), get_own_error(kind, z + delta, is_fast));
        double own = fmax(get_own_error(kind, z, is_fast), at_ends) / operations;
        out->value[i] = f;
        out->scale[i] = change / unit + own;
        if (may_vanish(kind, z - delta))
            out->scale[i] += fabs(f) / (double)FLT_EPSILON;
    }
}
