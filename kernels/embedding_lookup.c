/* embedding_lookup: launches, oracle and cases.
 *
 * The one surprise: the kernels are not rungs of a ladder, each reads a table of another format.
 * Formats and rows are the same list. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/os.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

static const kernel rows[] = {
    {.name = "embedding_lookup_f32", .about = "a thread a value, table in F32", .group = 256},
    {.name = "embedding_lookup_f16", .about = "table in F16", .group = 256},
    {.name = "embedding_lookup_bf16", .about = "table in BF16", .group = 256},
    {.name = "embedding_lookup_q8_0", .about = "table in Q8_0", .group = 256},
    {.name = "embedding_lookup_q4_0", .about = "table in Q4_0", .group = 256},
    {.name = "embedding_lookup_q4_1", .about = "table in Q4_1", .group = 256},
    {.name = "embedding_lookup_q5_0", .about = "table in Q5_0", .group = 256},
    {.name = "embedding_lookup_q5_1", .about = "table in Q5_1", .group = 256},
    {.name = "embedding_lookup_q4_k", .about = "table in Q4_K", .group = 256},
    {.name = "embedding_lookup_q5_k", .about = "table in Q5_K", .group = 256},
    {.name = "embedding_lookup_q6_k", .about = "table in Q6_K", .group = 256},
};
static const weight_format *const formats[] = {
    &format_f32,  &format_f16,  &format_bf16, &format_q8_0, &format_q4_0, &format_q4_1,
    &format_q5_0, &format_q5_1, &format_q4_k, &format_q5_k, &format_q6_k,
};
_Static_assert(COUNT_OF(rows) == COUNT_OF(formats), "a kernel a format");

static const weight_format *get_format(const kernel *k) {
    assert(k >= rows && k < rows + COUNT_OF(rows));
    return formats[k - rows];
}

/* An id past the end has no row: NaN. In every format a value is a product of small integers and
 * halves that an f32 holds exactly, and at most one sum: what the store rounds is all there is. */
static void embedding_lookup_oracle(const launch *l, oracle_io *io) {
    const weight_format *f = get_format(op_find_kernel(&embedding_lookup_op, l->pipeline->kernel));
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
    size_t ids_bytes = os_multiply(n, sizeof(uint32_t));
    size_t count = os_multiply(n, hidden), out_bytes = os_multiply(count, sizeof(float));
    const weight_format *f = get_format(k);
    size_t alignment = f == &format_f32 ? sizeof(float) : sizeof(uint16_t); /* halves and bytes */
    if (!record_check_weights(k, "table", f, table, vocab, hidden, alignment, e) ||
        !record_trim(k, "ids", ids_bytes, sizeof(uint32_t), &ids, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u rows of %u overflow a 32-bit index", k->name, n,
                       hidden);
    launch *l = tape_add(t, "embedding_lookup.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, table, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, ids, ACCESS_READ, ELEM_U32);
    launch_bind(l, 2, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 3, hidden);
    launch_set_u32(l, 4, n);
    launch_set_u32(l, 5, vocab);
    launch_set_threads_rounded(l, (uint32_t)count, k->group);
    l->bytes = format_get_bytes(f, n, hidden) + ids_bytes + out_bytes;
    l->oracle = embedding_lookup_oracle;
    return true;
}

static bool embedding_lookup_accepts(const kernel *k, const shape *s, err *e) {
    const weight_format *f = get_format(k);
    return s->dim[1] % f->values == 0 ||
           err_set(e, EXIT_CANNOT, "rows are whole blocks of %zu values", f->values);
}

/* The last row of the table and then the first; others at random; from the fourth on, one in eight
 * past the end, by one or by far. */
static bool make_ids(kernel_case *c, uint32_t n, uint32_t vocab, slice *out, err *e) {
    uint32_t *ids = malloc(os_multiply(n, sizeof *ids));
    assert(ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i == 0 ? vocab - 1 : i == 1 ? 0 : rng_below(&c->random, vocab);
    for (uint32_t i = 3; i < n; i += 8)
        ids[i] = i % 16 == 3 ? vocab : UINT32_MAX;
    bool ok = case_input_bytes(c, "ids", ids, n * sizeof *ids, out, e);
    free(ids);
    return ok;
}

/* The table has a row more than the launch is told of: an id that is too large by one must not find
 * it, and would not be told from NaN in a guard zone. */
static bool embedding_lookup_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], hidden = c->shape.dim[1], vocab = c->shape.dim[2];
    const weight_format *f = get_format(c->kernel);
    slice table, ids, out;
    if (!case_input_weights(c, "table", f, vocab + 1, hidden, &table, e) ||
        !make_ids(c, n, vocab, &ids, e) ||
        !case_output(c, "out", os_multiply(os_multiply(n, hidden), sizeof(float)), &out, e))
        return false;
    table = slice_part(table.buffer, table.offset, format_get_bytes(f, vocab, hidden));
    return embedding_lookup_record(c->tape, c->kernel, table, ids, out, n, hidden, vocab, e);
}

/* Rows of any length for plain floats, of whole blocks of 32 and of 256; the models' rows. */
static const shape shapes[] = {
    {{1, 1, 1}},     {{5, 33, 7}},     {{2, 32, 3}},    {{1, 576, 100}},
    {{8, 576, 300}}, {{1, 256, 1}},    {{3, 256, 2}},   {{9, 512, 40}},
    {{33, 768, 90}}, {{17, 2048, 64}}, {{4, 4096, 32}},
};

const op embedding_lookup_op = {
    .name = "embedding_lookup",
    .about = "rows of a table, decoded; the ids are in device memory",
    .dims = "n x hidden x vocab",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{5, 256, 11}},
    .accepts = embedding_lookup_accepts,
    .build = embedding_lookup_build,
};
