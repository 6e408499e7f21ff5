/* attention: launches, oracles and cases of decode_attention, of attention_ranges and attention_merge (one query to a
 * long cache, range by range), and of prefill_attention. All but attention_merge bind q, the caches, out and
 * the three sizes to buffers 0 to 6, where the tokens stand to buffer 7, and the scale to buffer 8. */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

/* Oracles -------------------------------------------------------------------------------------- */

typedef struct {
    void (*expect)(oracle_io *io);
} judge;

/* The oracle of all: a judge, with caches of halves as the floats that they are equal to. */
static void oracle(const launch *l, oracle_io *io) {
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
    ((const judge *)l->context)->expect(io);
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
 * tie to one part in a million would be undecided, and drawn values do not tie. The first of n_tokens
 * queries stands at `first`. */
static void expect_attention(oracle_io *io, uint32_t n_tokens, uint32_t first) {
    attention_sizes n = {oracle_u32(io, 4), oracle_u32(io, 5), oracle_u32(io, 6)};
    expected *out = &io->out[3];
    size_t rows = io->bytes[1] / (n.n_kv_heads * n.head_dim * sizeof(float));
    for (size_t i = 0; i < out->count; i++)
        out->value[i] = out->scale[i] = NAN; /* undefined for a position outside the caches */
    if (first >= rows || n_tokens > rows - first)
        return;
    out->terms = (double)first + n_tokens;
    out->roundings = 24;
    attention_roundings roundings = {6 + 2 * sqrt((double)n.head_dim),
                                     out->roundings + 2 * sqrt(out->terms)};
    reference_attention(io->in[0], io->in[1], io->in[2], &n, n_tokens, first,
                        (double)oracle_f32(io, 8), &roundings, out->value, out->scale);
}

static void expect_decode(oracle_io *io) {
    expect_attention(io, 1, oracle_u32(io, 7) - 1); /* a kv_len of 0 is also a position outside */
}

static void expect_prefill(oracle_io *io) {
    expect_attention(io, oracle_u32(io, 9), oracle_u32(io, 7));
}

static const float no_score = -0.5f * FLT_MAX; /* NO_SCORE of attention.h */

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

static void expect_ranges(oracle_io *io) {
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

static const judge decode_judge = {expect_decode}, prefill_judge = {expect_prefill},
                   ranges_judge = {expect_ranges};

/* Launches ------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t n_tokens;
    attention_ranges_sizes sizes;   /* ranges: 1 if there is one launch */
    attention_ranges_slices slices; /* parts: what is written */
    param at;                       /* known now, or in device memory */
    uint64_t rows_seen;             /* by the last token, as far as known at recording */
    float scale;
} attention_plan;

elem cache_get_elem(const kernel *k) {
    return k->format ? ELEM_F16 : ELEM_F32;
}

static bool accepts_heads(uint32_t heads, uint32_t kv_heads, err *e) {
    return (kv_heads != 0 && heads % kv_heads == 0) ||
           err_set(e, EXIT_CANNOT,
                   "needs heads that share those of the cache equally, not %u of %u", heads,
                   kv_heads);
}

static bool accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return accepts_heads(s->dim[1], s->dim[2], e);
}

static bool check_caches(const kernel *k, const attention_plan *p, size_t row_bytes, err *e) {
    const attention_ranges_slices *a = &p->slices;
    size_t bytes = a->k_cache.bytes, rows = row_bytes ? bytes / row_bytes : 0;
    if (row_bytes == 0 || bytes % row_bytes || a->v_cache.bytes != bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, bytes, a->v_cache.bytes, row_bytes);
    if (p->rows_seen == 0 || p->rows_seen > rows)
        return err_set(e, EXIT_CANNOT, "%s: cannot attend to %llu rows of caches of %zu", k->name,
                       (unsigned long long)p->rows_seen, rows);
    return true;
}

/* A launch whose last arguments are `more`. Both caches are read as far as the last token sees; there are
 * two products, exp and its sum for each pair of a query and a key. */
static bool record(tape *t, const kernel *k, const attention_plan *p, const launch_arg more[],
                   size_t more_count, size3 groups, const judge *j, err *e) {
    const attention_ranges_sizes *n = &p->sizes;
    const attention_ranges_slices *a = &p->slices;
    elem type = cache_get_elem(k);
    size_t each = elem_get_bytes(type), fours = n->head_dim % 4 == 0 ? 4 : 1; /* of a load */
    size_t aligned = k->needs ? 16 : fours * each;                            /* of tensor cores */
    size_t width = size_multiply(n->heads, n->head_dim),
           row = size_multiply(n->kv_heads, n->head_dim), cells = a->k_cache.bytes / each,
           results = size_multiply(p->n_tokens, n->ranges);
    if (!check_caches(k, p, size_multiply(row, each), e))
        return false;
    launch_arg args[LAUNCH_BUFFERS] = {
        ARG_BUFFER("q", a->q, size_multiply(p->n_tokens, width), ACCESS_READ, ELEM_F32,
                   fours * sizeof(float)),
        ARG_BUFFER("k_cache", a->k_cache, cells, ACCESS_READ, type, aligned),
        ARG_BUFFER("v_cache", a->v_cache, cells, ACCESS_READ, type, aligned),
        ARG_BUFFER("out", a->parts, size_multiply(results, width), ACCESS_WRITE, ELEM_F32,
                   k->needs ? 16 : sizeof(float)),
        ARG_U32(n->heads),
        ARG_U32(n->kv_heads),
        ARG_U32(n->head_dim),
        ARG_PARAM(p->at),
        ARG_F32(p->scale)};
    enum { OWN = 9 };
    for (size_t i = 0; i < more_count; i++)
        args[OWN + i] = more[i];
    uint64_t tokens = p->n_tokens, rows = p->at.at.buffer ? cells / row : p->rows_seen,
             pairs = tokens * (rows - tokens) + tokens * (tokens + 1) / 2;
    const launch_work w = {.groups = groups,
                           .flops = n->heads * pairs * (4 * (uint64_t)n->head_dim + 2),
                           .unmoved = 2 * each * (cells - rows * row),
                           .oracle = oracle,
                           .context = j};
    return record_args(t, k, args, OWN + more_count, &w, e);
}

bool decode_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                             slice out, uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim,
                             param kv_len, float scale, err *e) {
    const attention_plan p = {
        .n_tokens = 1,
        .sizes = {n_heads, n_kv_heads, head_dim, 1},
        .slices = {.q = q, .k_cache = k_cache, .v_cache = v_cache, .parts = out},
        .at = kv_len,
        .rows_seen = kv_len.at.buffer ? 1 : kv_len.bits,
        .scale = scale};
    return RECORD_TAKES(&decode_attention_op, k, e, (uint32_t)p.rows_seen, n_heads, n_kv_heads,
                        head_dim) &&
           record(t, k, &p, NULL, 0, (size3){n_heads, 1, 1}, &decode_judge, e);
}

/* Geometry: one threadgroup per head and k->rows tokens. */
bool prefill_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                              slice out, uint32_t n_tokens, uint32_t n_heads, uint32_t n_kv_heads,
                              uint32_t head_dim, param from, float scale, err *e) {
    uint64_t first = from.at.buffer ? 0 : from.bits;
    const attention_plan p = {
        .n_tokens = n_tokens,
        .sizes = {n_heads, n_kv_heads, head_dim, 1},
        .slices = {.q = q, .k_cache = k_cache, .v_cache = v_cache, .parts = out},
        .at = from,
        .rows_seen = first + n_tokens,
        .scale = scale};
    const launch_arg more[] = {ARG_U32(n_tokens)};
    return RECORD_TAKES(&prefill_attention_op, k, e, n_tokens, (uint32_t)first, n_heads, n_kv_heads,
                        head_dim) &&
           record(t, k, &p, more, COUNT_OF(more), (size3){n_heads, divide_up(n_tokens, k->rows), 1},
                  &prefill_judge, e);
}

static bool ranges_record(tape *t, const kernel *k, const attention_ranges_slices *a,
                          const attention_ranges_sizes *s, param kv_len, float scale, err *e) {
    const attention_plan p = {.n_tokens = 1,
                              .sizes = *s,
                              .slices = *a,
                              .at = kv_len,
                              .rows_seen = kv_len.at.buffer ? 1 : kv_len.bits,
                              .scale = scale};
    const launch_arg more[] = {ARG_OUT("log_sums", a->log_sums, size_multiply(s->ranges, s->heads)),
                               ARG_U32(s->ranges)};
    if (!RECORD_TAKES(&attention_ranges_op, k, e, (uint32_t)p.rows_seen, s->heads, s->kv_heads,
                      s->head_dim, s->ranges))
        return false;
    uint32_t sets = s->kv_heads * divide_up(s->heads / s->kv_heads, k->rows);
    return record(t, k, &p, more, COUNT_OF(more), (size3){sets, s->ranges, 1}, &ranges_judge, e);
}

/* Inputs --------------------------------------------------------------------------------------- */

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

/* A cache of `rows` rows drawn from the case's distribution, followed by one of NaN: a kernel that
 * merely multiplies it by zero is caught. From negative numbers, those in "k_cache" are positive and
 * larger: every score is below -1e30. Halves are drawn likewise, and scaled to what they can hold. */
static bool make_cache(kernel_case *c, const char *label, uint32_t rows, uint32_t row_dim,
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

/* Queries, both caches of `rows` rows, the word in device memory that says where the tokens stand, as in a
 * model, and room for the results. */
static bool make_inputs(kernel_case *c, attention_plan *p, uint32_t rows, const char *word,
                        uint32_t value, err *e) {
    const attention_ranges_sizes *n = &p->sizes;
    attention_ranges_slices *a = &p->slices;
    size_t queries = size_multiply(p->n_tokens, size_multiply(n->heads, n->head_dim));
    uint32_t row = n->kv_heads * n->head_dim;
    slice place;
    if (!case_input_f32(c, "q", queries, &a->q, e) ||
        !make_cache(c, "k_cache", rows, row, &a->k_cache, e) ||
        !make_cache(c, "v_cache", rows, row, &a->v_cache, e) ||
        !case_input_bytes(c, word, &value, sizeof value, &place, e))
        return false;
    p->at = param_at(place);
    p->scale = (float)(1 / sqrt((double)n->head_dim)); /* as in models */
    return case_output(c, "out", size_multiply(n->ranges, queries) * sizeof(float), &a->parts, e);
}

/* decode_attention ----------------------------------------------------------------------------- */

static bool decode_attention_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    attention_plan p = {.n_tokens = 1, .sizes = {dim[1], dim[2], dim[3], 1}};
    const attention_ranges_slices *a = &p.slices;
    return make_inputs(c, &p, dim[0], "kv_len", dim[0], e) &&
           decode_attention_record(c->tape, c->kernel, a->q, a->k_cache, a->v_cache, a->parts,
                                   dim[1], dim[2], dim[3], p.at, p.scale, e);
}

/* Keys: 1, and around the 32 that a simdgroup and the 256 that a threadgroup takes at a time; a
 * third turn of few values; more than the 2048 that a fixed array of scores once held. Heads of 1 to 256 dimensions, whole
 * float4s or not, whole simdgroups or not; 1, 3 and 4 query heads per head of the cache. */
static const shape decode_shapes[] = {
    {{1, 1, 1, 1}},    {{1, 9, 3, 64}},   {{3, 9, 3, 64}},   {{5, 9, 3, 64}},
    {{32, 9, 3, 64}},  {{256, 9, 3, 64}}, {{512, 9, 3, 64}}, {{2049, 9, 3, 64}},
    {{7, 3, 3, 1}},    {{290, 4, 2, 3}},  {{33, 4, 2, 33}},  {{65, 6, 2, 80}},
    {{257, 3, 1, 96}}, {{40, 4, 4, 100}}, {{70, 2, 2, 255}}, {{512, 32, 8, 128}},
    {{530, 2, 1, 4}},
};

static const kernel decode_kernels[] = {
    OP_KERNEL("decode_attention", "plain", "one simdgroup per head", "decode_attention.metal",
              .group = 32, .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("decode_attention_threadgroup", "threadgroup",
              "eight simdgroups share the keys of a head", "decode_attention.metal", .group = 256,
              .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("decode_attention_spread", "spread", "sixteen simdgroups, eight lanes per key",
              "decode_attention.metal", .group = 512, .multiple_of = 32,
              .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("decode_attention_spread_f16", "spread", "the same to a cache of halves",
              "decode_attention.metal", .format = &format_f16, .group = 512, .multiple_of = 32,
              .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("decode_attention_per_thread", "per_thread", "one thread per head",
              "decode_attention.metal", .group = 1, .multiple_of = 16,
              .most = ATTENTION_MAX_HEAD_DIM),
};

OP(decode_attention, "attention of one query to the cache", "kv_len x heads x kv_heads x head_dim",
   decode_kernels, SHAPE_LIST(decode_shapes, 300, 4, 2, 32), .inner = "head_dim",
   .accepts = accepts, .sizes = "heads kv_heads head_dim", .places = "kv_len",
   .build = decode_attention_build);

/* attention_ranges ----------------------------------------------------------------------------- */

/* Of heads of 64 and 128: parts of a turn of a warp, of a threadgroup, and more; 1, 3, 7, 8, 9 and 16 heads per
 * head of the cache; ranges without keys. */
SHAPES_OF(ranges_mma_shapes, ANY_INPUT(40, 4, 2, 64, 3), {{1, 1, 1, 64, 1}}, {{1, 8, 1, 128, 3}},
          {{17, 9, 3, 64, 16}}, {{255, 4, 2, 64, 4}}, {{257, 3, 1, 128, 3}}, {{130, 7, 1, 128, 2}},
          {{1900, 9, 3, 64, 16}}, {{513, 9, 1, 64, 2}}, {{300, 16, 1, 128, 2}},
          {{1500, 16, 2, 64, 2}});

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
                  .shapes = &ranges_mma_shapes)
static const kernel ranges_kernels[] = {RANGES("", NULL), RANGES("_f16", &format_f16)};

static bool attention_ranges_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    attention_plan p = {.n_tokens = 1, .sizes = {dim[1], dim[2], dim[3], dim[4]}};
    size_t heads = size_multiply(dim[4], dim[1]);
    return make_inputs(c, &p, dim[0], "kv_len", dim[0], e) &&
           case_output(c, "log_sums", heads * sizeof(float), &p.slices.log_sums, e) &&
           ranges_record(c->tape, c->kernel, &p.slices, &p.sizes, p.at, p.scale, e);
}

/* Ranges of 1 key, of more than a turn of the simdgroups, and some without any. */
static const shape ranges_shapes[] = {
    {{1, 1, 1, 32, 1}},     {{1, 9, 3, 64, 16}},    {{17, 9, 3, 64, 16}},  {{255, 4, 2, 64, 4}},
    {{257, 3, 1, 96, 3}},   {{1025, 9, 3, 64, 16}}, {{70, 2, 2, 256, 5}},  {{130, 4, 1, 128, 2}},
    {{1900, 9, 3, 64, 16}}, {{513, 9, 1, 64, 2}},   {{300, 8, 1, 128, 2}}, {{1500, 8, 1, 64, 2}},
};

OP(attention_ranges, "attention of one query to each of several ranges of the cache",
   "kv_len x heads x kv_heads x head_dim x ranges", ranges_kernels,
   SHAPE_LIST(ranges_shapes, 40, 4, 2, 64, 3), .inner = "head_dim", .accepts = accepts,
   .sizes = "heads kv_heads head_dim ranges", .places = "kv_len", .build = attention_ranges_build);

/* attention_merge ------------------------------------------------------------------------------ */

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

bool attention_ranges_record(tape *t, const kernel *k, const attention_ranges_slices *a,
                             const attention_ranges_sizes *s, param kv_len, float scale, err *e) {
    if (!ranges_record(t, k, a, s, kv_len, scale, e))
        return false;
    tape_barrier(t);
    return merge_record(t, &merge_kernels[0], a->parts, a->log_sums, a->out, s->heads, s->head_dim,
                        s->ranges, e);
}

/* prefill_attention ---------------------------------------------------------------------------- */

static bool prefill_attention_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return accepts_heads(s->dim[2], s->dim[3], e);
}

static bool prefill_attention_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    attention_plan p = {.n_tokens = dim[0], .sizes = {dim[2], dim[3], dim[4], 1}};
    const attention_ranges_slices *a = &p.slices;
    return make_inputs(c, &p, dim[1] + dim[0], "start", dim[1], e) &&
           prefill_attention_record(c->tape, c->kernel, a->q, a->k_cache, a->v_cache, a->parts,
                                    dim[0], dim[2], dim[3], dim[4], p.at, p.scale, e);
}

/* Tokens: 1, around the 4 and 16 of a threadgroup, and more than the 32 keys that are taken at a time; at
 * the start of the cache, one after it, and far inside. Blocks of tokens across a boundary of 32
 * keys, where the first of them sees no key of the last 32. Then all sorts of heads. */
static const shape prefill_shapes[] = {
    {{1, 0, 9, 3, 64}},     {{2, 0, 9, 3, 64}},    {{7, 0, 9, 3, 64}},     {{33, 0, 9, 3, 64}},
    {{1, 1, 9, 3, 64}},     {{8, 1, 9, 3, 64}},    {{1, 100, 9, 3, 64}},   {{33, 100, 9, 3, 64}},
    {{4, 30, 2, 1, 64}},    {{5, 31, 2, 1, 64}},   {{35, 3, 3, 3, 1}},     {{9, 60, 4, 2, 7}},
    {{3, 29, 6, 2, 80}},    {{6, 27, 3, 1, 96}},   {{5, 64, 2, 2, 255}},   {{4, 33, 4, 1, 256}},
    {{16, 50, 32, 8, 128}}, {{17, 47, 3, 1, 128}}, {{15, 129, 2, 1, 192}}, {{64, 448, 9, 3, 64}},
};

static const shape_list whole_simdgroups = SHAPE_LIST(prefill_shapes, 6, 45, 4, 2, 32);

/* Of heads of 64 and 128: parts of a set, of a block and more; parts of a turn, of a stage and more; as many
 * heads as heads of the cache, and more. */
SHAPES_OF(prefill_mma_shapes, ANY_INPUT(6, 45, 4, 2, 64), {{1, 0, 1, 1, 64}}, {{7, 0, 2, 1, 64}},
          {{33, 100, 3, 1, 64}}, {{65, 0, 2, 2, 64}}, {{20, 260, 1, 1, 64}}, {{129, 15, 1, 1, 64}},
          {{17, 47, 3, 1, 128}}, {{65, 1, 1, 1, 128}}, {{40, 130, 2, 2, 128}});

#define MMA(name, about, format_)                                                                  \
    OP_KERNEL(name, "mma", "tensor cores, one thread block per head of 64 tokens" about,           \
              "cuda/prefill_attention_mma.metal", .format = format_, .group = 128, .rows = 64,     \
              .multiple_of = 64, .most = 128, .needs = FEATURE_BULK_COPIES,                        \
              .shapes = &prefill_mma_shapes)
#define BLOCKS(name, about, format_)                                                               \
    OP_KERNEL(name, "blocks", "one threadgroup per head of 16 tokens, " about,                     \
              "prefill_attention_blocks.metal", .format = format_, .group = 128, .rows = 16,       \
              .multiple_of = 4, .most = ATTENTION_MAX_HEAD_DIM)
static const kernel prefill_kernels[] = {
    /* No rule chooses it: the first variant, as close to decode_attention as many tokens get. */
    OP_KERNEL("prefill_attention", "plain", "one simdgroup per head of a token",
              "prefill_attention.metal", .group = 32, .rows = 1, .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("prefill_attention_queryblock", "queryblock", "one simdgroup per head of four tokens",
              "prefill_attention.metal", .group = 32, .rows = 4, .most = ATTENTION_MAX_HEAD_DIM),
    OP_KERNEL("prefill_attention_spread", "spread",
              "one threadgroup per head of a token, 4 keys per simdgroup at a time",
              "prefill_attention.metal", .group = 512, .rows = 1, .multiple_of = 32,
              .most = ATTENTION_MAX_HEAD_DIM, .shapes = &whole_simdgroups),
    BLOCKS("prefill_attention_blocks", "keys and values in threadgroup memory", NULL),
    BLOCKS("prefill_attention_blocks_f16", "of a cache of halves", &format_f16),
    MMA("prefill_attention_mma", "", NULL),
    MMA("prefill_attention_mma_f16", ", of a cache of halves", &format_f16),
};

OP(prefill_attention, "causal attention of many tokens to the cache",
   "tokens x start x heads x kv_heads x head_dim", prefill_kernels,
   SHAPE_LIST(prefill_shapes, 6, 45, 4, 2, 20), .inner = "head_dim",
   .accepts = prefill_attention_accepts, .sizes = "tokens heads kv_heads head_dim",
   .places = "start", .build = prefill_attention_build);
