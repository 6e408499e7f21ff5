/* embedding_lookup: launches, oracle and cases. There is one kernel per format. */
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

/* The table has one row more than the launch is told: an id that is too large by one must not read
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
static const shape shapes[] = {
    {{1, 1, 1}},   {{5, 33, 7}},   {{1, 576, 100}}, {{40, 32, 65537}}, {{1, 256, 1}},
    {{3, 256, 2}}, {{9, 512, 40}}, {{33, 768, 90}}, {{4, 4096, 32}},
};

#define KERNEL(type, ...)                                                                          \
    OP_KERNEL("embedding_lookup_" #type, NULL, "one thread per value", "embedding_lookup.metal",   \
              .format = &format_##type, .group = 256),
static const kernel kernels[] = {FORMATS(KERNEL)};

OP(embedding_lookup, "rows of a table, decoded; ids are read from device memory",
   "n x hidden x vocab", kernels, SHAPE_LIST(shapes, 5, 256, 11), .inner = "hidden",
   .sizes = "n hidden vocab", .build = embedding_lookup_build);
