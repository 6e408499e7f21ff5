/* kv_cache_copy_tokens: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void kv_cache_copy_tokens_oracle(const launch *l, oracle_io *io) {
    (void)l;
    uint32_t kv_dim = oracle_u32(io, 4), row = oracle_u32(io, 5);
    for (size_t t = 0; t < oracle_u32(io, 6); t++)
        reference_kv_cache_copy((const float *)io->in[0] + t * kv_dim,
                                (const float *)io->in[1] + t * kv_dim, kv_dim, row + t,
                                io->out[2].value, io->out[3].value);
    io->out[2].exact = io->out[3].exact = true;
}

bool kv_cache_copy_tokens_record(tape *t, const kernel *k, slice k_src, slice v_src,
                                 slice k_cache, slice v_cache, uint32_t n_tokens, uint32_t kv_dim,
                                 param row_idx, err *e) {
    size_t row_bytes = os_multiply(kv_dim, sizeof(float));
    size_t bytes = os_multiply(n_tokens, row_bytes);
    if (!record_trim(k, "k_src", bytes, sizeof(float), &k_src, e) ||
        !record_trim(k, "v_src", bytes, sizeof(float), &v_src, e))
        return false;
    size_t rows = k_cache.bytes / row_bytes;
    if (k_cache.bytes % row_bytes || v_cache.bytes != k_cache.bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, k_cache.bytes, v_cache.bytes, row_bytes);
    size_t first = row_idx.at.buffer ? 0 : row_idx.bits;
    if (first > rows || n_tokens > rows - first || bytes > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u rows from row %zu on do not fit caches of %zu",
                       k->name, n_tokens, first, rows);
    launch *l = tape_add(t, "kv_cache_copy_tokens.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, k_src, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, v_src, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, k_cache, ACCESS_BOTH, ELEM_F32); /* all other rows must survive */
    launch_bind(l, 3, v_cache, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 4, kv_dim);
    launch_set_param(l, 5, row_idx, ELEM_U32);
    launch_set_u32(l, 6, n_tokens);
    launch_set_threads_rounded(l, n_tokens * kv_dim, k->group);
    l->bytes = 4 * bytes;
    l->oracle = kv_cache_copy_tokens_oracle;
    return true;
}

/* The row comes from device memory, as it does in a model. The caches have a row more than is
 * written, and so have the sources. */
static bool kv_cache_copy_tokens_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t row = dim[0], n_tokens = dim[1], kv_dim = dim[2];
    size_t count = os_multiply(n_tokens + 1, kv_dim);
    size_t cells = os_multiply(row + n_tokens + 1, kv_dim);
    slice k_src, v_src, k_cache, v_cache, place;
    return case_input_f32(c, "k_src", count, &k_src, e) &&
           case_input_f32(c, "v_src", count, &v_src, e) &&
           case_input_f32(c, "k_cache", cells, &k_cache, e) &&
           case_input_f32(c, "v_cache", cells, &v_cache, e) &&
           case_input_bytes(c, "row_idx", &row, sizeof row, &place, e) &&
           kv_cache_copy_tokens_record(c->tape, c->kernel, k_src, v_src, k_cache, v_cache, n_tokens,
                                       kv_dim, param_at(place), e);
}

static const shape shapes[] = {
    {{0, 1, 1}},   {{0, 2, 1}},  {{1, 3, 33}},  {{0, 1, 192}},    {{5, 7, 192}},
    {{3, 1, 256}}, {{0, 8, 32}}, {{2, 257, 1}}, {{100, 33, 192}}, {{9, 4, 1024}},
};

static const kernel rows_of_op[] = {
    {.name = "kv_cache_copy_tokens", .about = "a thread a float of k and of v", .group = 256},
};

const op kv_cache_copy_tokens_op = {
    .name = "kv_cache_copy_tokens",
    .about = "append many rows to the key and value caches",
    .dims = "row x tokens x kv_dim",
    .kernels = rows_of_op,
    .kernel_count = COUNT_OF(rows_of_op),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{1, 3, 77}},
    .build = kv_cache_copy_tokens_build,
};
