/* lookup: launches, oracles and cases of embedding_lookup and dequantize, which decode blocks to floats. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "formats/formats.h"
#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/shapes.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

/* embedding_lookup ------------------------------------------------------------------------------ */

/* An id past the end has no row: NaN. In every format a value is a product of small integers and
 * halves that an f32 holds exactly, and at most one sum: the only rounding is that of the store. */
static void embedding_lookup_oracle(const launch *l, oracle_io *io) {
    const weight_format *f = l->kernel->format;
    const uint32_t *ids = io->in[1];
    expected *out = &io->out[2];
    uint32_t hidden = oracle_u32(io, 3), n = oracle_u32(io, 4), vocab = oracle_u32(io, 5);
    for (size_t t = 0; t < n; t++)
        if (ids[t] < vocab)
            reference_decode_row(f, io->in[0], ids[t], hidden, out->value + t * hidden);
        else
            for (size_t i = 0; i < hidden; i++)
                out->value[t * hidden + i] = NAN;
    out->exact = f == &format_f32;
    out->terms = out->roundings = 0;
}

bool embedding_lookup_record(tape *t, const kernel *k, slice table, slice ids, slice out,
                             uint32_t n, uint32_t hidden, uint32_t vocab, err *e) {
    if (!RECORD_TAKES(&embedding_lookup_op, k, e, n, hidden, vocab))
        return false;
    const weight_format *f = k->format;
    size_t count = size_multiply(n, hidden);
    size_t alignment = f == &format_f32 ? sizeof(float) : sizeof(uint16_t); /* halves and bytes */
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u rows of %u overflow a 32-bit index", k->name, n,
                       hidden);
    const launch_work w = {.threads = (uint32_t)count,
                           .unmoved = table.bytes - size_multiply(n, hidden / f->values * f->bytes),
                           .oracle = embedding_lookup_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_WEIGHTS("table", table, f, vocab, hidden, alignment),
                       ARG_WORDS("ids", ids, n, ACCESS_READ), ARG_OUT("out", out, count),
                       ARG_U32(hidden), ARG_U32(n), ARG_U32(vocab));
}

/* The edges of the table; of the ids from the fourth on, one in eight past the end, by one or by far. */
static bool make_ids(kernel_case *c, uint32_t n, uint32_t vocab, slice *out, err *e) {
    uint32_t *ids = array_new(n, sizeof *ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = shapes_get_index(&c->random, i, vocab);
    for (uint32_t i = 3; i < n; i += 8)
        ids[i] = i % 16 == 3 ? vocab : UINT32_MAX;
    bool ok = case_input_bytes(c, "ids", ids, n * sizeof *ids, out, e);
    free(ids);
    return ok;
}

/* The table has one row more than the launch knows of: an id that is too large by one must not read
 * it, and reading the NaN of a guard zone would look correct. */
static bool embedding_lookup_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], hidden = c->shape.dim[1], vocab = c->shape.dim[2];
    const weight_format *f = c->kernel->format;
    slice table, ids, out;
    if (!case_input_weights(c, "table", f, vocab + 1, hidden, &table, e) ||
        !make_ids(c, n, vocab, &ids, e) ||
        !case_output(c, "out", size_multiply(size_multiply(n, hidden), sizeof(float)), &out, e))
        return false;
    table = slice_part(table.buffer, table.offset, format_get_bytes(f, vocab, hidden));
    return embedding_lookup_record(c->tape, c->kernel, table, ids, out, n, hidden, vocab, e);
}

/* Rows of any length for plain floats, of whole blocks of 32 and of 256; the models' rows; more rows
 * than 16 bits count. */
static const shape lookup_shapes[] = {
    {{1, 1, 1}},   {{5, 33, 7}},   {{1, 576, 100}}, {{40, 32, 65537}}, {{1, 256, 1}},
    {{3, 256, 2}}, {{9, 512, 40}}, {{33, 768, 90}}, {{4, 4096, 32}},
};

#define KERNEL(type, ...)                                                                          \
    OP_KERNEL("embedding_lookup_" #type, NULL, "one thread per value", "embedding_lookup.metal",   \
              .format = &format_##type, .group = 256),
static const kernel lookup_kernels[] = {FORMATS(KERNEL)};

OP(embedding_lookup, "rows of a table, decoded; ids are read from device memory",
   "n x hidden x vocab", lookup_kernels, SHAPE_LIST(lookup_shapes, 5, 256, 11), .inner = "hidden",
   .sizes = "n hidden vocab", .build = embedding_lookup_build);

/* dequantize ------------------------------------------------------------------------------------ */

static void dequantize_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    reference_decode_row(l->kernel->format, io->in[0], 0, out->count, out->value);
    out->terms = out->roundings = 0; /* an f32 holds the product */
}

static bool dequantize_record(tape *t, const kernel *k, slice blocks, slice floats, uint32_t count,
                              err *e) {
    const weight_format *f = k->format;
    size_t bytes = size_multiply(count, f->bytes);
    size_t out_bytes = size_multiply(count, f->values * sizeof(float));
    if (!record_trim(k, "blocks", bytes, 2, &blocks, e) ||
        !record_trim(k, "floats", out_bytes, 16, &floats, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, blocks, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, floats, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){count, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = f->values * (uint64_t)count;
    l->oracle = dequantize_oracle;
    return true;
}

static bool dequantize_build(kernel_case *c, err *e) {
    const weight_format *f = c->kernel->format;
    uint32_t count = c->shape.dim[0];
    slice blocks, floats;
    return case_input_weights(c, "blocks", f, count, (uint32_t)f->values, &blocks, e) &&
           case_output(c, "floats", size_multiply(count, f->values * sizeof(float)), &floats, e) &&
           dequantize_record(c->tape, c->kernel, blocks, floats, count, e);
}

static const shape decode_shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{255}}, {{256}}, {{257}}, {{10007}},
};

#define DECODE(type)                                                                               \
    OP_KERNEL("dequantize_" #type, NULL, "one thread per block", "dequantize.metal",               \
              .format = &format_##type, .group = 256)
static const kernel decode_kernels[] = {DECODE(q4_0), DECODE(q8_0)};

OP(dequantize, "decode blocks to floats", "blocks", decode_kernels, SHAPE_LIST(decode_shapes, 77),
   .sizes = "blocks", .build = dequantize_build);
