/* kv_cache_copy: launches, oracle and cases of appending one row to the key and value caches, or
 * many (kv_cache_copy_tokens, whose number of rows is one more argument). */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

#define KERNELS(name)                                                                              \
    OP_KERNEL(name, NULL, "one thread per float of k and of v", "kv_cache_copy.metal",             \
              .group = 256),                                                                       \
        OP_KERNEL(name "_f16", NULL, "the same to caches of halves", "kv_cache_copy.metal",        \
                  .group = 256, .format = &format_f16)
static const kernel row_kernels[] = {KERNELS("kv_cache_copy")},
                    tokens_kernels[] = {KERNELS("kv_cache_copy_tokens")};

/* Only a float that becomes a half is rounded: once, by the store. */
static void kv_cache_copy_oracle(const launch *l, oracle_io *io) {
    uint32_t kv_dim = oracle_u32(io, 4), row = oracle_u32(io, 5);
    uint32_t n_tokens = io->in[6] ? oracle_u32(io, 6) : 1;
    for (size_t t = 0; t < n_tokens; t++)
        reference_kv_cache_copy((const float *)io->in[0] + t * kv_dim,
                                (const float *)io->in[1] + t * kv_dim, kv_dim, row + t,
                                io->out[2].value, io->out[3].value);
    for (int i = 2; i <= 3; i++) {
        io->out[i].terms = io->out[i].roundings = 0;
        io->out[i].exact = cache_get_elem(l->kernel) == ELEM_F32;
    }
}

bool kv_cache_copy_tokens_record(tape *t, const kernel *k, slice k_src, slice v_src, slice k_cache,
                                 slice v_cache, uint32_t n_tokens, uint32_t kv_dim, param row_idx,
                                 err *e) {
    elem type = cache_get_elem(k);
    size_t each = elem_get_bytes(type), row_bytes = size_multiply(kv_dim, each),
           count = size_multiply(n_tokens, kv_dim);
    if (row_bytes == 0 || k_cache.bytes % row_bytes || v_cache.bytes != k_cache.bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, k_cache.bytes, v_cache.bytes, row_bytes);
    size_t rows = k_cache.bytes / row_bytes, first = row_idx.at.buffer ? 0 : row_idx.bits;
    if (first > rows || n_tokens > rows - first || count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT, "%s: %u rows from row %zu on do not fit caches of %zu rows",
                       k->name, n_tokens, first, rows);
    size_t cells = rows * kv_dim; /* all rows but those that are appended must survive */
    const launch_arg args[] = {ARG_IN("k_src", k_src, count),
                               ARG_IN("v_src", v_src, count),
                               ARG_BUFFER("k_cache", k_cache, cells, ACCESS_BOTH, type, each),
                               ARG_BUFFER("v_cache", v_cache, cells, ACCESS_BOTH, type, each),
                               ARG_U32(kv_dim),
                               ARG_PARAM(row_idx),
                               ARG_U32(n_tokens)};
    const launch_work w = {.threads = (uint32_t)count,
                           .unmoved = (4 * cells - 2 * count) * each,
                           .oracle = kv_cache_copy_oracle};
    bool has_tokens = k >= tokens_kernels && k < tokens_kernels + COUNT_OF(tokens_kernels);
    if (!record_args(t, k, args, COUNT_OF(args) - !has_tokens, &w, e))
        return false;
    t->launches[t->count - 1].appends = n_tokens == 1 ? 1u << 2 | 1u << 3 : 0;
    return true;
}

bool kv_cache_copy_record(tape *t, const kernel *k, slice k_src, slice v_src, slice k_cache,
                          slice v_cache, uint32_t kv_dim, param row_idx, err *e) {
    return kv_cache_copy_tokens_record(t, k, k_src, v_src, k_cache, v_cache, 1, kv_dim, row_idx, e);
}

/* Appends `row` and then the next one, the first given by value and the second in device memory;
 * one more row is never written. */
static bool kv_cache_copy_build(kernel_case *c, err *e) {
    uint32_t row = c->shape.dim[0], kv_dim = c->shape.dim[1], second = row + 1;
    size_t cells = size_multiply(row + 3, kv_dim);
    slice k_src, v_src, k_cache, v_cache, place;
    return case_input_f32(c, "k_src", kv_dim, &k_src, e) &&
           case_input_f32(c, "v_src", kv_dim, &v_src, e) &&
           case_input_elem(c, "k_cache", cache_get_elem(c->kernel), cells, &k_cache, e) &&
           case_input_elem(c, "v_cache", cache_get_elem(c->kernel), cells, &v_cache, e) &&
           case_input_bytes(c, "row_idx", &second, sizeof second, &place, e) &&
           kv_cache_copy_record(c->tape, c->kernel, k_src, v_src, k_cache, v_cache, kv_dim,
                                param_u32(row), e) &&
           kv_cache_copy_record(c->tape, c->kernel, v_src, k_src, k_cache, v_cache, kv_dim,
                                param_at(place), e);
}

/* The row comes from device memory, as it does in a model. The caches have one row more than is
 * written, and so do the sources. */
static bool kv_cache_copy_tokens_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t row = dim[0], n_tokens = dim[1], kv_dim = dim[2];
    size_t count = size_multiply(n_tokens + 1, kv_dim);
    size_t cells = size_multiply(row + n_tokens + 1, kv_dim);
    slice k_src, v_src, k_cache, v_cache, place;
    return case_input_f32(c, "k_src", count, &k_src, e) &&
           case_input_f32(c, "v_src", count, &v_src, e) &&
           case_input_elem(c, "k_cache", cache_get_elem(c->kernel), cells, &k_cache, e) &&
           case_input_elem(c, "v_cache", cache_get_elem(c->kernel), cells, &v_cache, e) &&
           case_input_bytes(c, "row_idx", &row, sizeof row, &place, e) &&
           kv_cache_copy_tokens_record(c->tape, c->kernel, k_src, v_src, k_cache, v_cache, n_tokens,
                                       kv_dim, param_at(place), e);
}

static const shape kv_cache_copy_shapes[] = {{{0, 1}}, {{0, 576}}, {{7, 1024}}, {{2045, 192}}};
static const shape kv_cache_copy_tokens_shapes[] = {
    {{0, 1, 1}}, {{0, 8, 32}}, {{5, 7, 192}}, {{9, 4, 1024}}};

OP(kv_cache_copy, "append one row to the key and value caches", "row x kv_dim", row_kernels,
   SHAPE_LIST(kv_cache_copy_shapes, 1, 77), .sizes = "kv_dim", .places = "row",
   .build = kv_cache_copy_build);
OP(kv_cache_copy_tokens, "append many rows to the key and value caches", "row x tokens x kv_dim",
   tokens_kernels, SHAPE_LIST(kv_cache_copy_tokens_shapes, 1, 3, 77), .sizes = "tokens kv_dim",
   .places = "row", .build = kv_cache_copy_tokens_build);
