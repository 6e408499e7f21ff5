#include "attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

elem cache_get_elem(const kernel *k) {
    return k->format ? ELEM_F16 : ELEM_F32;
}

bool attention_accepts_heads(uint32_t heads, uint32_t kv_heads, err *e) {
    return (kv_heads != 0 && heads % kv_heads == 0) ||
           err_set(e, EXIT_CANNOT,
                   "needs heads that share those of the cache equally, not %u of %u", heads,
                   kv_heads);
}

static bool check_caches(const kernel *k, attention_plan *p, size_t row_bytes, slice k_cache,
                         slice v_cache, err *e) {
    p->rows = k_cache.bytes / row_bytes;
    if (k_cache.bytes % row_bytes || v_cache.bytes != k_cache.bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, k_cache.bytes, v_cache.bytes, row_bytes);
    if (p->rows_seen == 0 || p->rows_seen > p->rows)
        return err_set(e, EXIT_CANNOT, "%s: cannot attend to %llu rows of caches of %zu", k->name,
                       (unsigned long long)p->rows_seen, p->rows);
    return true;
}

bool attention_check(const kernel *k, attention_plan *p, slice *q, slice k_cache, slice v_cache,
                     slice *out, err *e) {
    p->cache = cache_get_elem(k);
    size_t each = elem_get_bytes(p->cache), fours = p->head_dim % 4 == 0 ? 4 : 1; /* of a load */
    size_t bytes = size_multiply(size_multiply(p->n_tokens, p->n_heads),
                                 size_multiply(p->head_dim, sizeof(float)));
    size_t row_bytes = size_multiply(size_multiply(p->n_kv_heads, p->head_dim), each);
    size_t aligned = k->needs ? 16 : fours * each; /* loads of tensor cores */
    return record_trim(k, "q", bytes, fours * sizeof(float), q, e) &&
           check_caches(k, p, row_bytes, k_cache, v_cache, e) &&
           record_trim(k, "k_cache", k_cache.bytes, aligned, &k_cache, e) &&
           record_trim(k, "v_cache", v_cache.bytes, aligned, &v_cache, e) &&
           record_trim(k, "out", bytes, k->needs ? 16 : sizeof(float), out, e);
}

void attention_bind(launch *l, slice q, slice k_cache, slice v_cache, slice out,
                    const attention_plan *p) {
    launch_bind(l, 0, q, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, k_cache, ACCESS_READ, p->cache);
    launch_bind(l, 2, v_cache, ACCESS_READ, p->cache);
    launch_bind(l, 3, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 4, p->n_heads);
    launch_set_u32(l, 5, p->n_kv_heads);
    launch_set_u32(l, 6, p->head_dim);
}

uint64_t attention_count_bytes(const attention_plan *p, uint64_t rows) {
    return 2 * elem_get_bytes(p->cache) * rows * p->n_kv_heads * p->head_dim;
}

void attention_widen(const launch *l, oracle_io *io, oracle_fn judge) {
    const void *halves[3] = {NULL, io->in[1], io->in[2]};
    float *floats[3] = {NULL};
    for (int i = 1; i <= 2 && l->args[i].type == ELEM_F16; i++) {
        size_t count = io->bytes[i] / sizeof(uint16_t);
        floats[i] = array_new(count, sizeof **floats);
        for (size_t j = 0; j < count; j++)
            floats[i][j] = half_to_float(((const uint16_t *)halves[i])[j]);
        io->in[i] = floats[i];
        io->bytes[i] = count * sizeof **floats;
    }
    judge(l, io);
    for (int i = 1; i <= 2 && floats[i]; i++) {
        io->bytes[i] = io->bytes[i] / sizeof **floats * sizeof(uint16_t);
        io->in[i] = halves[i];
        free(floats[i]);
    }
}

/* The outer sum has one term per key; its other roundings are exp and division to a few ULP, the
 * product, and the few steps in which an online softmax scales its sums down. A score is a sum of
 * head_dim products that is scaled, reduced by the largest one and, in a fast exp, off by twice
 * its magnitude in ULP.
 *
 * No inputs need special care, not even large ones: scores of 1e24 are off by 1e18, but the largest
 * exceeds the next by about 1e22, so that one key has all the weight in the kernel and here. Only a
 * tie to one part in a million would be undecided, and drawn values do not tie. */
void attention_judge(oracle_io *io, uint32_t n_tokens, uint32_t start) {
    attention_sizes n = {oracle_u32(io, 4), oracle_u32(io, 5), oracle_u32(io, 6)};
    expected *out = &io->out[3];
    size_t rows = io->bytes[1] / (n.n_kv_heads * n.head_dim * sizeof(float));
    for (size_t i = 0; i < out->count; i++)
        out->value[i] = out->scale[i] = NAN; /* undefined for a position outside the caches */
    if (start >= rows || n_tokens > rows - start)
        return;
    out->terms = (double)start + n_tokens;
    out->roundings = 24;
    attention_roundings roundings = {6 + 2 * sqrt((double)n.head_dim),
                                     out->roundings + 2 * sqrt(out->terms)};
    reference_attention(io->in[0], io->in[1], io->in[2], &n, n_tokens, start,
                        (double)oracle_f32(io, 8), &roundings, out->value, out->scale);
}

float attention_get_scale(uint32_t head_dim) {
    return (float)(1 / sqrt((double)head_dim));
}

/* All of them smaller if the largest does not fit; the caller frees them. */
static uint16_t *round_to_halves(const float *values, size_t count) {
    const float most = 60000;
    uint16_t *halves = array_new(count, sizeof *halves);
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i])); /* skips NaN */
    for (size_t i = 0; i < count; i++)
        halves[i] = half_from_float(largest > most ? values[i] / largest * most : values[i]);
    return halves;
}

bool case_input_cache(kernel_case *c, const char *label, uint32_t rows, uint32_t row_dim,
                      slice *out, err *e) {
    size_t count = size_multiply(rows, row_dim);
    /* One input has no extra row: then a load past the last row is also outside the buffer. */
    size_t more = c->inputs == INPUT_LARGE ? 0 : row_dim;
    float *values = array_new(count + more, sizeof *values);
    fill_f32(&c->random, c->inputs, values, count);
    if (c->inputs == INPUT_NEGATIVE && strcmp(label, "k_cache") == 0)
        for (size_t i = 0; i < count; i++)
            values[i] *= -1e8f;
    for (size_t i = 0; i < more; i++)
        values[count + i] = NAN;
    elem type = cache_get_elem(c->kernel);
    uint16_t *halves = type == ELEM_F16 ? round_to_halves(values, count + more) : NULL;
    bool ok = case_input_bytes(c, label, halves ? (const void *)halves : values,
                               (count + more) * elem_get_bytes(type), out, e);
    free(halves);
    free(values);
    return ok;
}
