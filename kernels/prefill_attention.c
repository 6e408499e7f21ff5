/* prefill_attention: launches, oracle and cases. */
#include "kernels.h"

#include "attention_case.h"
#include "harness/base/size.h"
#include "record.h"

static void judge(const launch *l, oracle_io *io) {
    (void)l;
    attention_judge(io, oracle_u32(io, 9), oracle_u32(io, 7));
}

static void prefill_attention_oracle(const launch *l, oracle_io *io) {
    attention_widen(l, io, judge);
}

/* Geometry: one threadgroup per head and k->rows tokens. */
bool prefill_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                              slice out, uint32_t n_tokens, uint32_t n_heads, uint32_t n_kv_heads,
                              uint32_t head_dim, param start, float scale, err *e) {
    uint64_t first = start.at.buffer ? 0 : start.bits;
    attention_plan plan = {.n_tokens = n_tokens,
                           .n_heads = n_heads,
                           .n_kv_heads = n_kv_heads,
                           .head_dim = head_dim,
                           .rows_seen = first + n_tokens};
    if (!RECORD_TAKES(&prefill_attention_op, k, e, n_tokens, (uint32_t)first, n_heads, n_kv_heads,
                      head_dim) ||
        !attention_check(k, &plan, &q, k_cache, v_cache, &out, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    attention_bind(l, q, k_cache, v_cache, out, &plan);
    launch_set_param(l, 7, start, ELEM_U32);
    launch_set_f32(l, 8, scale);
    launch_set_u32(l, 9, n_tokens);
    launch_set_groups(l, (size3){n_heads, divide_up(n_tokens, k->rows), 1},
                      (size3){k->group, 1, 1});
    uint64_t rows = start.at.buffer ? plan.rows : plan.rows_seen;
    uint64_t pairs = n_tokens * (rows - n_tokens) + (uint64_t)n_tokens * (n_tokens + 1) / 2;
    l->bytes = q.bytes + out.bytes + attention_count_bytes(&plan, rows);
    l->flops = n_heads * pairs * (4 * (uint64_t)head_dim + 2);
    l->oracle = prefill_attention_oracle;
    return true;
}

static bool prefill_attention_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return attention_accepts_heads(s->dim[2], s->dim[3], e);
}

/* start comes from device memory, as it does in a model. */
static bool prefill_attention_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t n_tokens = dim[0], start = dim[1], n_heads = dim[2], n_kv_heads = dim[3];
    uint32_t head_dim = dim[4], rows = start + n_tokens;
    size_t count = size_multiply(size_multiply(n_tokens, n_heads), head_dim);
    slice q, k_cache, v_cache, out, place;
    return case_input_f32(c, "q", count, &q, e) &&
           case_input_cache(c, "k_cache", rows, n_kv_heads * head_dim, &k_cache, e) &&
           case_input_cache(c, "v_cache", rows, n_kv_heads * head_dim, &v_cache, e) &&
           case_input_bytes(c, "start", &start, sizeof start, &place, e) &&
           case_output(c, "out", count * sizeof(float), &out, e) &&
           prefill_attention_record(c->tape, c->kernel, q, k_cache, v_cache, out, n_tokens, n_heads,
                                    n_kv_heads, head_dim, param_at(place),
                                    attention_get_scale(head_dim), e);
}

/* Tokens: 1, around the 4 and 16 of a threadgroup, and more than the 32 keys that are taken at a time; at
 * the start of the cache, one after it, and far inside. Blocks of tokens across a boundary of 32
 * keys, where the first of them sees no key of the last 32. Then all sorts of heads. */
static const shape shapes[] = {
    {{1, 0, 9, 3, 64}},     {{2, 0, 9, 3, 64}},    {{7, 0, 9, 3, 64}},     {{33, 0, 9, 3, 64}},
    {{1, 1, 9, 3, 64}},     {{8, 1, 9, 3, 64}},    {{1, 100, 9, 3, 64}},   {{33, 100, 9, 3, 64}},
    {{4, 30, 2, 1, 64}},    {{5, 31, 2, 1, 64}},   {{35, 3, 3, 3, 1}},     {{9, 60, 4, 2, 7}},
    {{3, 29, 6, 2, 80}},    {{6, 27, 3, 1, 96}},   {{5, 64, 2, 2, 255}},   {{4, 33, 4, 1, 256}},
    {{16, 50, 32, 8, 128}}, {{17, 47, 3, 1, 128}}, {{15, 129, 2, 1, 192}}, {{64, 448, 9, 3, 64}},
};

static const shape_list whole_simdgroups = SHAPE_LIST(shapes, 6, 45, 4, 2, 32);

/* Of heads of 64 and 128: parts of a set, of a block and more; parts of a turn, of a stage and more; as many
 * heads as heads of the cache, and more. */
static const shape of_mma[] = {
    {{1, 0, 1, 1, 64}},    {{7, 0, 2, 1, 64}},    {{33, 100, 3, 1, 64}},
    {{65, 0, 2, 2, 64}},   {{20, 260, 1, 1, 64}}, {{129, 15, 1, 1, 64}},
    {{17, 47, 3, 1, 128}}, {{65, 1, 1, 1, 128}},  {{40, 130, 2, 2, 128}},
};
static const shape_list mma_shapes = SHAPE_LIST(of_mma, 6, 45, 4, 2, 64);

#define MMA(name, about, format_)                                                                  \
    OP_KERNEL(name, "mma", "tensor cores, one thread block per head of 64 tokens" about,           \
              "cuda/prefill_attention_mma.metal", .format = format_, .group = 128, .rows = 64,     \
              .multiple_of = 64, .most = 128, .needs = FEATURE_BULK_COPIES, .shapes = &mma_shapes)
#define BLOCKS(name, about, format_)                                                               \
    OP_KERNEL(name, "blocks", "one threadgroup per head of 16 tokens, " about,                     \
              "prefill_attention_blocks.metal", .format = format_, .group = 128, .rows = 16,       \
              .multiple_of = 4, .most = ATTENTION_MAX_HEAD_DIM)
static const kernel kernels[] = {
    /* No rule chooses it: the first variant, as close to decode_attention as many tokens get. */
    {.name = "prefill_attention",
     .variant = "plain",
     .about = "one simdgroup per head of a token",
     .file = "prefill_attention.metal",
     .group = 32,
     .rows = 1,
     .most = ATTENTION_MAX_HEAD_DIM},
    {.name = "prefill_attention_queryblock",
     .variant = "queryblock",
     .about = "one simdgroup per head of four tokens",
     .file = "prefill_attention.metal",
     .group = 32,
     .rows = 4,
     .most = ATTENTION_MAX_HEAD_DIM},
    {.name = "prefill_attention_spread",
     .variant = "spread",
     .about = "one threadgroup per head of a token, 4 keys per simdgroup at a time",
     .file = "prefill_attention.metal",
     .group = 512,
     .rows = 1,
     .multiple_of = 32,
     .most = ATTENTION_MAX_HEAD_DIM,
     .shapes = &whole_simdgroups},
    BLOCKS("prefill_attention_blocks", "keys and values in threadgroup memory", NULL),
    BLOCKS("prefill_attention_blocks_f16", "of a cache of halves", &format_f16),
    MMA("prefill_attention_mma", "", NULL),
    MMA("prefill_attention_mma_f16", ", of a cache of halves", &format_f16),
};

OP(prefill_attention, "causal attention of many tokens to the cache",
   "tokens x start x heads x kv_heads x head_dim", kernels, SHAPE_LIST(shapes, 6, 45, 4, 2, 20),
   .inner = "head_dim", .accepts = prefill_attention_accepts,
   .sizes = "tokens heads kv_heads head_dim", .places = "start", .build = prefill_attention_build);
