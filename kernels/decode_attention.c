/* decode_attention: launches, oracle and cases. */
#include "kernels.h"

#include "attention_case.h"
#include "harness/base/size.h"
#include "record.h"

static void judge(const launch *l, oracle_io *io) {
    (void)l;
    attention_judge(io, 1, oracle_u32(io, 7) - 1); /* a kv_len of 0 is also a position outside */
}

static void decode_attention_oracle(const launch *l, oracle_io *io) {
    attention_widen(l, io, judge);
}

bool decode_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                             slice out, uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim,
                             param kv_len, float scale, err *e) {
    attention_plan plan = {.n_tokens = 1,
                           .n_heads = n_heads,
                           .n_kv_heads = n_kv_heads,
                           .head_dim = head_dim,
                           .rows_seen = kv_len.at.buffer ? 1 : kv_len.bits};
    if (!RECORD_TAKES(&decode_attention_op, k, e, (uint32_t)plan.rows_seen, n_heads, n_kv_heads,
                      head_dim) ||
        !attention_check(k, &plan, &q, k_cache, v_cache, &out, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    attention_bind(l, q, k_cache, v_cache, out, &plan);
    launch_set_param(l, 7, kv_len, ELEM_U32);
    launch_set_f32(l, 8, scale);
    launch_set_groups(l, (size3){n_heads, 1, 1}, (size3){k->group, 1, 1});
    uint64_t keys = kv_len.at.buffer ? plan.rows : kv_len.bits;
    l->bytes = q.bytes + out.bytes + attention_count_bytes(&plan, keys);
    l->flops = n_heads * keys * (4 * (uint64_t)head_dim + 2); /* two products; exp and its sum */
    l->oracle = decode_attention_oracle;
    return true;
}

static bool decode_attention_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return attention_accepts_heads(s->dim[1], s->dim[2], e);
}

/* kv_len comes from device memory, as it does in a model. */
static bool decode_attention_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t kv_len = dim[0], n_heads = dim[1], n_kv_heads = dim[2], head_dim = dim[3];
    size_t count = size_multiply(n_heads, head_dim);
    slice q, k_cache, v_cache, out, place;
    return case_input_f32(c, "q", count, &q, e) &&
           case_input_cache(c, "k_cache", kv_len, n_kv_heads * head_dim, &k_cache, e) &&
           case_input_cache(c, "v_cache", kv_len, n_kv_heads * head_dim, &v_cache, e) &&
           case_input_bytes(c, "kv_len", &kv_len, sizeof kv_len, &place, e) &&
           case_output(c, "out", count * sizeof(float), &out, e) &&
           decode_attention_record(c->tape, c->kernel, q, k_cache, v_cache, out, n_heads,
                                   n_kv_heads, head_dim, param_at(place),
                                   attention_get_scale(head_dim), e);
}

/* Keys: 1, and around the 32 that a simdgroup and the 256 that a threadgroup takes at a time; a
 * third turn of few values; more than the 2048 that a fixed array of scores once held. Heads of 1 to 256 dimensions, whole
 * float4s or not, whole simdgroups or not; 1, 3 and 4 query heads per head of the cache. */
static const shape shapes[] = {
    {{1, 1, 1, 1}},    {{1, 9, 3, 64}},   {{3, 9, 3, 64}},   {{5, 9, 3, 64}},
    {{32, 9, 3, 64}},  {{256, 9, 3, 64}}, {{512, 9, 3, 64}}, {{2049, 9, 3, 64}},
    {{7, 3, 3, 1}},    {{290, 4, 2, 3}},  {{33, 4, 2, 33}},  {{65, 6, 2, 80}},
    {{257, 3, 1, 96}}, {{40, 4, 4, 100}}, {{70, 2, 2, 255}}, {{512, 32, 8, 128}},
    {{530, 2, 1, 4}},
};

static const kernel kernels[] = {
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
   kernels, SHAPE_LIST(shapes, 300, 4, 2, 32), .inner = "head_dim",
   .accepts = decode_attention_accepts, .sizes = "heads kv_heads head_dim", .places = "kv_len",
   .build = decode_attention_build);
