/* kv_cache_copy: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void kv_cache_copy_oracle(const launch *l, oracle_io *io) {
    (void)l;
    reference_kv_cache_copy(io->in[0], io->in[1], oracle_u32(io, 4), oracle_u32(io, 5),
                            io->out[2].value, io->out[3].value);
    io->out[2].exact = io->out[3].exact = true;
}

bool kv_cache_copy_record(tape *t, const kernel *k, slice k_src, slice v_src, slice k_cache,
                          slice v_cache, uint32_t kv_dim, param row_idx, err *e) {
    size_t bytes = os_multiply(kv_dim, sizeof(float));
    if (!record_trim(k, "k_src", bytes, sizeof(float), &k_src, e) ||
        !record_trim(k, "v_src", bytes, sizeof(float), &v_src, e))
        return false;
    size_t rows = k_cache.bytes / bytes;
    if (rows == 0 || k_cache.bytes % bytes || v_cache.bytes != k_cache.bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, k_cache.bytes, v_cache.bytes, bytes);
    if (!row_idx.at.buffer && row_idx.bits >= rows)
        return err_set(e, EXIT_CANNOT, "%s: row %u of a cache of %zu rows", k->name, row_idx.bits,
                       rows);
    launch *l = tape_add(t, "kv_cache_copy.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, k_src, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, v_src, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, k_cache, ACCESS_BOTH, ELEM_F32); /* all rows but one must survive */
    launch_bind(l, 3, v_cache, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 4, kv_dim);
    launch_set_param(l, 5, row_idx, ELEM_U32);
    launch_set_threads_rounded(l, kv_dim, k->group);
    l->bytes = 4 * bytes;
    l->oracle = kv_cache_copy_oracle;
    return true;
}

/* Appends `row` and then the row behind it, the first by value and the second from device memory;
 * there is one more row that nobody writes. */
static bool kv_cache_copy_build(kernel_case *c, err *e) {
    uint32_t row = c->shape.dim[0], kv_dim = c->shape.dim[1], second = row + 1;
    size_t cells = os_multiply(row + 3, kv_dim);
    slice k_src, v_src, k_cache, v_cache, place;
    return case_input_f32(c, "k_src", kv_dim, &k_src, e) &&
           case_input_f32(c, "v_src", kv_dim, &v_src, e) &&
           case_input_f32(c, "k_cache", cells, &k_cache, e) &&
           case_input_f32(c, "v_cache", cells, &v_cache, e) &&
           case_input_bytes(c, "row_idx", &second, sizeof second, &place, e) &&
           kv_cache_copy_record(c->tape, c->kernel, k_src, v_src, k_cache, v_cache, kv_dim,
                                param_u32(row), e) &&
           kv_cache_copy_record(c->tape, c->kernel, v_src, k_src, k_cache, v_cache, kv_dim,
                                param_at(place), e);
}

static const shape shapes[] = {
    {{0, 1}},   {{0, 31}},  {{1, 33}},   {{0, 192}}, {{5, 192}}, {{0, 255}},    {{3, 256}},
    {{2, 257}}, {{0, 576}}, {{7, 1024}}, {{9, 999}}, {{1, 1}},   {{2045, 192}},
};

static const kernel rows[] = {
    {.name = "kv_cache_copy", .about = "a thread a float of k and of v", .group = 256},
};

const op kv_cache_copy_op = {
    .name = "kv_cache_copy",
    .about = "append one row to the key and value caches",
    .dims = "row x kv_dim",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{1, 77}},
    .build = kv_cache_copy_build,
};
