// skinny_bulk: products of a few tokens by skinny_bulk.h: y = W x, y += W x and y = activation(W x + bias), and with the
// norm before them gate and up (gate_up_silu), and queries, keys and values (qkv_rope_append).
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "../activations.h"
#include "skinny_bulk.h"
#include "bulk_ops.h"

// Rows that follow each other: a share of their pairs per cluster.
template <typename N, bool accumulate> struct skinny_plain {
    typedef N format;
    enum : bool { is_normed = false };
    enum : uint { prefetched = 1 };
    device const float *x, *norm_w;
    device const uint4 *from;
    device float *to;
    float eps;
    uint in_dim, out_dim, rows;

    METAL_FUNC device const uint4 *get_row(uint i) const {
        return from + size_t(i) * (in_dim / 256 * N::block_bytes / 16);
    }
    METAL_FUNC float2 prepare(uint pair, uint token) const {
        device const float *at = to + size_t(token) * out_dim + 2 * pair;
        return accumulate ? float2(at[0], 2 * pair + 1 < rows ? at[1] : 0.0f) : 0.0f;
    }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2 before) const {
        device float *at = to + size_t(token) * out_dim + 2 * pair;
        at[0] = before.x + sum;
        if (2 * pair + 1 < rows)
            at[1] = before.y + other;
    }
};

// bias: from the cluster's first row on, or NULL.
template <typename N> struct skinny_activated : skinny_plain<N, false> {
    device const float *bias;
    uint activation;

    METAL_FUNC float2 prepare(uint pair, uint) const {
        return bias ? float2(bias[2 * pair], 2 * pair + 1 < this->rows ? bias[2 * pair + 1] : 0.0f)
                    : 0.0f;
    }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2 before) const {
        skinny_plain<N, false>::finish(pair, token, activate(activation, before.x + sum),
                                    activate(activation, before.y + other), 0.0f);
    }
};

template <typename N> struct skinny_gated : bulk_gated<N> {
    uint in_dim, out_dim;

    METAL_FUNC float2 prepare(uint, uint) const { return 0.0f; }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2) const {
        this->to[size_t(token) * out_dim + this->first + pair] = bulk_gated<N>::pass(sum, other);
    }
};

template <typename N, typename T> struct skinny_appended : bulk_appended<N, T> {
    uint in_dim, from; // the first token

    METAL_FUNC float2 prepare(uint pair, uint token) const {
        return this->get_turn(2 * pair, *this->pos + from + token);
    }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2 turn) const {
        this->store(2 * pair, from + token, sum, other, turn);
        this->store(2 * pair + 1, from + token, other, sum, turn);
    }
};

// The pairs of a cluster, and tokens from `first` on.
template <typename N, bool accumulate> METAL_FUNC skinny_plain<N, accumulate>
skinny_take_share(device const void *w, device const float *x, device float *y, uint out_dim,
                  uint in_dim, block_share pairs, uint first) {
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    return {x + size_t(first) * in_dim, x,
            (device const uint4 *)w + size_t(2 * pairs.first) * row_quads,
            y + size_t(first) * out_dim + 2 * pairs.first, 0.0f, in_dim, out_dim,
            min(2 * pairs.count, out_dim - 2 * pairs.first)};
}

// P: of the thread blocks of a cluster, two of which are to find room on an SM: hence 512.
template <typename N, bool accumulate, uint P>
[[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_skinny_bulk(MATVEC_ARGUMENTS(typename N::block), constant uint &batch [[buffer(5)]],
                   uint2 group [[threadgroup_position_in_grid]],
                   uint2 groups [[threadgroups_per_grid]], THREAD_PLACE) {
    const block_share share((out_dim + 1) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * SKINNY_TOKENS;
    const skinny_plain<N, accumulate> op =
        skinny_take_share<N, accumulate>(w, x, y, out_dim, in_dim, share, first);
    skinny_run<P>(op, min(batch - first, uint(SKINNY_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N, uint P> [[kernel, max_total_threads_per_threadgroup(512)]] void
activate_skinny_bulk(MATVEC_ARGUMENTS(typename N::block), ACTIVATION_ARGUMENTS,
                     constant uint &batch [[buffer(8)]],
                     uint2 group [[threadgroup_position_in_grid]],
                     uint2 groups [[threadgroups_per_grid]], THREAD_PLACE) {
    const block_share share((out_dim + 1) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * SKINNY_TOKENS;
    const skinny_activated<N> op = {
        skinny_take_share<N, false>(w, x, y, out_dim, in_dim, share, first),
        has_bias ? bias + 2 * share.first : nullptr, activation};
    skinny_run<P>(op, min(batch - first, uint(SKINNY_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N> [[kernel, max_total_threads_per_threadgroup(512)]] void
gate_up_silu_skinny_bulk(GATE_UP_ARGUMENTS(typename N::block), constant uint &batch [[buffer(8)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint2 groups [[threadgroups_per_grid]], THREAD_PLACE) {
    enum : uint { P = 2 };
    const block_share share(out_dim, group.x / P, groups.x / P);
    const uint first = group.y * SKINNY_TOKENS;
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const skinny_gated<N> op = {
        {x + size_t(first) * in_dim, norm_w, (device const uint4 *)w_gate,
         (device const uint4 *)w_up, out + size_t(first) * out_dim, eps, share.first,
         2 * share.count, row_quads}, in_dim, out_dim};
    skinny_run<P>(op, min(batch - first, uint(SKINNY_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N, typename T> [[kernel, max_total_threads_per_threadgroup(512)]] void
qkv_rope_append_skinny_bulk(
    QKV_ARGUMENTS(typename N::block, T), constant uint &batch [[buffer(15)]],
    uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
    THREAD_PLACE) {
    enum : uint { P = 2 };
    const block_share share((q_dim + 2 * kv_dim) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * SKINNY_TOKENS;
    const skinny_appended<N, T> op = {
        {x + size_t(first) * in_dim, norm_w, (device const uint4 *)wq, (device const uint4 *)wk,
         (device const uint4 *)wv, q, k_cache, v_cache, freqs, &pos, eps, 2 * share.first, q_dim,
         kv_dim, head_dim, 2 * share.count, in_dim / 256 * N::block_bytes / 16}, in_dim, first};
    skinny_run<P>(op, min(batch - first, uint(SKINNY_TOKENS)), group.x % P, thread_index, sg, lane);
}

typedef skinny_format<halves_q4_0, 2, 2> skinny_q4_0;
typedef skinny_format<halves_q8_0, 1, 2> skinny_q8_0;
typedef skinny_format<halves_q4_k, 2, 2> skinny_q4_k;
typedef skinny_format<halves_q5_k, 1, 3> skinny_q5_k;
typedef skinny_format<halves_q6_k, 1, 3> skinny_q6_k;
typedef skinny_format<halves_f16, 1, 3, 512> skinny_f16; // an SM has room for one thread block

#define SKINNY_BULK(format)                                                                        \
    KERNEL("multi_token_matvec_" #format "_tiled_bulk",                                            \
           matvec_skinny_bulk<skinny_##format, false, 2>)                                          \
    KERNEL("multi_token_matvec_" #format "_accumulate_tiled_bulk",                                 \
           matvec_skinny_bulk<skinny_##format, true, 2>)                                           \
    KERNEL("multi_token_matvec_" #format "_tiled_bulk_cluster",                                    \
           matvec_skinny_bulk<skinny_##format, false, 8>)                                          \
    KERNEL("multi_token_matvec_" #format "_accumulate_tiled_bulk_cluster",                         \
           matvec_skinny_bulk<skinny_##format, true, 8>)                                           \
    KERNEL("multi_token_matvec_" #format "_activate_tiled_bulk",                                   \
           activate_skinny_bulk<skinny_##format, 2>)                                               \
    KERNEL("gate_up_silu_" #format "_tiled_bulk", gate_up_silu_skinny_bulk<skinny_##format>)       \
    KERNEL("qkv_rope_append_" #format "_tiled_bulk",                                               \
           qkv_rope_append_skinny_bulk<skinny_##format, float>)                                    \
    KERNEL("qkv_rope_append_f16_" #format "_tiled_bulk",                                           \
           qkv_rope_append_skinny_bulk<skinny_##format, half>)

SKINNY_BULK(q4_0)
SKINNY_BULK(q8_0)
SKINNY_BULK(q4_k)
SKINNY_BULK(q5_k)
SKINNY_BULK(q6_k)
SKINNY_BULK(f16)
