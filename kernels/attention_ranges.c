/* attention_ranges and attention_merge: launches, oracles and cases of the attention of one query to a
 * long cache, range by range. */
#include "kernels.h"

#include <float.h>
#include <math.h>

#include "attention_case.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static const float no_score = -0.5f * FLT_MAX; /* NO_SCORE of attention.h */

/* --- attention_ranges --- */

/* The logarithm of the sum of exp(score) over `count` keys; *magnitude: of the largest score's
 * terms, as that score's error is the error of the result. */
static double sum_scores(const float *q, const float *keys, size_t stride, size_t head_dim,
                         size_t count, double scale, double *magnitude) {
    double largest = -INFINITY, sum = 0;
    *magnitude = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            double score = 0, terms = 0;
            for (size_t d = 0; d < head_dim; d++) {
                double term = scale * q[d] * keys[i * stride + d];
                score += term;
                terms += fabs(term);
            }
            if (pass == 0)
                largest = fmax(largest, score);
            else
                sum += exp(score - largest);
            *magnitude = fmax(*magnitude, terms);
        }
    return largest + log(sum);
}

static void expect_range(oracle_io *io, const attention_sizes *n, size_t range, size_t first,
                         size_t count, const attention_roundings *roundings) {
    size_t stride = n->n_kv_heads * n->head_dim, width = n->n_heads * n->head_dim;
    const float *q = io->in[0], *keys = (const float *)io->in[1] + first * stride,
                *values = (const float *)io->in[2] + first * stride;
    double *value = io->out[3].value + range * width, *scale = io->out[3].scale + range * width,
           *logs = io->out[9].value + range * n->n_heads,
           *log_scales = io->out[9].scale + range * n->n_heads, factor = (double)oracle_f32(io, 8);
    if (count == 0) {
        for (size_t i = 0; i < width; i++)
            value[i] = scale[i] = 0;
        for (size_t h = 0; h < n->n_heads; h++)
            log_scales[h] = fabs(logs[h] = no_score);
        return;
    }
    reference_attention(q, keys, values, n, 1, count - 1, factor, roundings, value, scale);
    for (size_t h = 0; h < n->n_heads; h++) {
        size_t shared = h / (n->n_heads / n->n_kv_heads) * n->head_dim;
        double magnitude;
        logs[h] = sum_scores(q + h * n->head_dim, keys + shared, stride, n->head_dim, count, factor,
                             &magnitude);
        log_scales[h] = magnitude + fabs(logs[h]) + log((double)count) + 1;
    }
}

static void judge(const launch *l, oracle_io *io) {
    (void)l;
    attention_sizes n = {oracle_u32(io, 4), oracle_u32(io, 5), oracle_u32(io, 6)};
    size_t kv_len = oracle_u32(io, 7), ranges = oracle_u32(io, 10);
    size_t rows = io->bytes[1] / (n.n_kv_heads * n.head_dim * sizeof(float));
    for (int k = 3; k <= 9; k += 6)
        for (size_t i = 0; i < io->out[k].count; i++)
            io->out[k].value[i] = io->out[k].scale[i] = NAN; /* undefined outside of the caches */
    if (kv_len == 0 || kv_len > rows)
        return;
    size_t each = (kv_len + ranges - 1) / ranges;
    io->out[3].terms = (double)each;
    io->out[9].terms = (double)n.head_dim;
    io->out[3].roundings = io->out[9].roundings = 24;
    attention_roundings roundings = {6 + 2 * sqrt((double)n.head_dim), 24 + 2 * sqrt((double)each)};
    for (size_t r = 0; r < ranges; r++) {
        size_t first = r * each, count = first >= kv_len ? 0 : kv_len - first;
        expect_range(io, &n, r, first, count < each ? count : each, &roundings);
    }
}

static void attention_ranges_oracle(const launch *l, oracle_io *io) {
    attention_widen(l, io, judge);
}

/* Of heads of 64 and 128: parts of a turn of a warp, of a threadgroup, and more; 1, 3, 7, 8, 9 and 16 heads per
 * head of the cache; ranges without keys. */
static const shape of_mma[] = {
    {{1, 1, 1, 64, 1}},     {{1, 8, 1, 128, 3}},    {{17, 9, 3, 64, 16}},   {{255, 4, 2, 64, 4}},
    {{257, 3, 1, 128, 3}},  {{130, 7, 1, 128, 2}},  {{1900, 9, 3, 64, 16}}, {{513, 9, 1, 64, 2}},
    {{300, 16, 1, 128, 2}}, {{1500, 16, 2, 64, 2}},
};
static const shape_list mma_shapes = SHAPE_LIST(of_mma, 40, 4, 2, 64, 3);

/* rows: the heads of a threadgroup, at most; end: of the name */
#define RANGES(end, format_)                                                                       \
    OP_KERNEL("attention_ranges" end, "plain", "sixteen simdgroups per head and range",            \
              "decode_attention.metal", .format = format_, .group = 512, .rows = 1,                \
              .multiple_of = 32, .most = ATTENTION_MAX_HEAD_DIM),                                  \
        OP_KERNEL("attention_ranges_shared" end, "shared",                                         \
                  "sixteen simdgroups per range and up to eight heads that share a head of "       \
                  "the cache",                                                                     \
                  "decode_attention.metal", .format = format_, .group = 512, .rows = 8,            \
                  .multiple_of = 64, .most = 128),                                                 \
        OP_KERNEL("attention_ranges_mma" end, "mma",                                               \
                  "tensor cores, per range and up to eight heads that share a head of the cache",  \
                  "cuda/attention_mma.metal", .format = format_, .group = 256, .rows = 8,          \
                  .multiple_of = 64, .most = 128, .needs = FEATURE_BULK_COPIES,                    \
                  .shapes = &mma_shapes)
static const kernel ranges_kernels[] = {RANGES("", NULL), RANGES("_f16", &format_f16)};

static bool ranges_record(tape *t, const kernel *k, const attention_ranges_slices *a,
                          const attention_ranges_sizes *s, param kv_len, float scale, err *e) {
    attention_plan plan = {.n_tokens = 1,
                           .n_heads = s->heads,
                           .n_kv_heads = s->kv_heads,
                           .head_dim = s->head_dim,
                           .rows_seen = kv_len.at.buffer ? 1 : kv_len.bits};
    slice q = a->q, first = a->parts, parts = a->parts, logs = a->log_sums;
    size_t outputs = size_multiply(size_multiply(s->ranges, s->heads), s->head_dim);
    if (!RECORD_TAKES(&attention_ranges_op, k, e, (uint32_t)plan.rows_seen, s->heads, s->kv_heads,
                      s->head_dim, s->ranges) ||
        !attention_check(k, &plan, &q, a->k_cache, a->v_cache, &first, e) ||
        !record_trim(k, "out", outputs * sizeof(float), k->needs ? 16 : sizeof(float), &parts, e) ||
        !record_trim(k, "log_sums", size_multiply(s->ranges, s->heads) * sizeof(float),
                     sizeof(float), &logs, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    attention_bind(l, q, a->k_cache, a->v_cache, parts, &plan);
    launch_set_param(l, 7, kv_len, ELEM_U32);
    launch_set_f32(l, 8, scale);
    launch_bind(l, 9, logs, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 10, s->ranges);
    uint32_t sets = s->kv_heads * divide_up(s->heads / s->kv_heads, k->rows);
    launch_set_groups(l, (size3){sets, s->ranges, 1}, (size3){k->group, 1, 1});
    uint64_t keys = kv_len.at.buffer ? plan.rows : kv_len.bits;
    l->bytes = q.bytes + parts.bytes + logs.bytes + attention_count_bytes(&plan, keys);
    l->flops = s->heads * keys * (4 * (uint64_t)s->head_dim + 2);
    l->oracle = attention_ranges_oracle;
    return true;
}

static bool attention_ranges_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return attention_accepts_heads(s->dim[1], s->dim[2], e);
}

static bool attention_ranges_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    attention_ranges_sizes s = {dim[1], dim[2], dim[3], dim[4]};
    uint32_t kv_len = dim[0], row = s.kv_heads * s.head_dim;
    size_t heads = size_multiply(s.ranges, s.heads);
    attention_ranges_slices a;
    slice place;
    return case_input_f32(c, "q", size_multiply(s.heads, s.head_dim), &a.q, e) &&
           case_input_cache(c, "k_cache", kv_len, row, &a.k_cache, e) &&
           case_input_cache(c, "v_cache", kv_len, row, &a.v_cache, e) &&
           case_input_bytes(c, "kv_len", &kv_len, sizeof kv_len, &place, e) &&
           case_output(c, "out", size_multiply(heads, s.head_dim) * sizeof(float), &a.parts, e) &&
           case_output(c, "log_sums", heads * sizeof(float), &a.log_sums, e) &&
           ranges_record(c->tape, c->kernel, &a, &s, param_at(place),
                         attention_get_scale(s.head_dim), e);
}

/* Ranges of 1 key, of more than a turn of the simdgroups, and some without any. */
static const shape ranges_shapes[] = {
    {{1, 1, 1, 32, 1}},     {{1, 9, 3, 64, 16}},    {{17, 9, 3, 64, 16}},  {{255, 4, 2, 64, 4}},
    {{257, 3, 1, 96, 3}},   {{1025, 9, 3, 64, 16}}, {{70, 2, 2, 256, 5}},  {{130, 4, 1, 128, 2}},
    {{1900, 9, 3, 64, 16}}, {{513, 9, 1, 64, 2}},   {{300, 8, 1, 128, 2}}, {{1500, 8, 1, 64, 2}},
};

OP(attention_ranges, "attention of one query to each of several ranges of the cache",
   "kv_len x heads x kv_heads x head_dim x ranges", ranges_kernels,
   SHAPE_LIST(ranges_shapes, 40, 4, 2, 64, 3), .inner = "head_dim",
   .accepts = attention_ranges_accepts, .sizes = "heads kv_heads head_dim ranges",
   .places = "kv_len", .build = attention_ranges_build);

/* --- attention_merge --- */

/* A weight exp(l - top) is off by the rounding of l - top, and in a fast exp by twice its magnitude
 * in ULP. */
static void attention_merge_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const float *parts = io->in[0], *logs = io->in[1];
    size_t heads = oracle_u32(io, 3), head_dim = oracle_u32(io, 4), ranges = oracle_u32(io, 5);
    expected *out = &io->out[2];
    for (size_t h = 0; h < heads; h++) {
        double top = -INFINITY, total = 0, spread = 0;
        for (size_t r = 0; r < ranges; r++)
            top = fmax(top, logs[r * heads + h]);
        for (size_t r = 0; r < ranges; r++) {
            double below = top - logs[r * heads + h], weight = exp(-below);
            total += weight;
            spread += weight * (1 + 3 * below);
        }
        for (size_t d = 0; d < head_dim; d++) {
            double value = 0, scale = 0;
            for (size_t r = 0; r < ranges; r++) {
                double below = top - logs[r * heads + h], weight = exp(-below),
                       part = parts[(r * heads + h) * head_dim + d];
                value += weight * part;
                scale += weight * (1 + 3 * below) * fabs(part);
            }
            out->value[h * head_dim + d] = value / total;
            out->scale[h * head_dim + d] = scale / total + fabs(value / total) * spread / total;
        }
    }
    out->terms = (double)ranges;
    out->roundings = 16;
}

static const kernel merge_kernels[] = {OP_KERNEL(
    "attention_merge", "plain", "one thread per dimension", "decode_attention.metal", .group = 64)};

static bool merge_record(tape *t, const kernel *k, slice parts, slice log_sums, slice out,
                         uint32_t heads, uint32_t head_dim, uint32_t ranges, err *e) {
    size_t outputs = size_multiply(heads, head_dim);
    const launch_work w = {.groups = {heads, 1, 1},
                           .flops =
                               (uint64_t)ranges * heads * (2 * (uint64_t)head_dim + 3) + outputs,
                           .oracle = attention_merge_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("parts", parts, size_multiply(ranges, outputs)),
                       ARG_IN("log_sums", log_sums, size_multiply(ranges, heads)),
                       ARG_OUT("out", out, outputs), ARG_U32(heads), ARG_U32(head_dim),
                       ARG_U32(ranges));
}

static bool attention_merge_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t heads = dim[0], head_dim = dim[1], ranges = dim[2];
    size_t outputs = size_multiply(heads, head_dim);
    slice parts, logs, out;
    return case_input_f32(c, "parts", size_multiply(ranges, outputs), &parts, e) &&
           case_input_f32(c, "log_sums", size_multiply(ranges, heads), &logs, e) &&
           case_output(c, "out", outputs * sizeof(float), &out, e) &&
           merge_record(c->tape, c->kernel, parts, logs, out, heads, head_dim, ranges, e);
}

static const shape merge_shapes[] = {
    {{1, 1, 1}},   {{1, 63, 2}},  {{3, 64, 5}},  {{2, 65, 16}}, {{9, 64, 16}},
    {{4, 256, 3}}, {{3, 64, 37}}, {{2, 96, 32}}, {{2, 64, 70}},
};

OP(attention_merge, "attention to all keys from that to several ranges",
   "heads x head_dim x ranges", merge_kernels, SHAPE_LIST(merge_shapes, 3, 33, 4),
   .sizes = "heads head_dim ranges", .build = attention_merge_build);

/* --- both --- */

bool attention_ranges_record(tape *t, const kernel *k, const attention_ranges_slices *a,
                             const attention_ranges_sizes *s, param kv_len, float scale, err *e) {
    if (!ranges_record(t, k, a, s, kv_len, scale, e))
        return false;
    tape_barrier(t);
    return merge_record(t, &merge_kernels[0], a->parts, a->log_sums, a->out, s->heads, s->head_dim,
                        s->ranges, e);
}
