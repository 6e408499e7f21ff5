// few_near: products of a few tokens by few_near.h: y = W x, y += W x and y = activation(W x + bias), and with the
// norm before them gate and up (gate_up_silu), and queries, keys and values (qkv_rope_append).
#include <metal_stdlib>
using namespace metal;

#include "../activations.h"
#include "few_near.h"
#include "near_ops.h"

// Rows that follow each other: a share of their pairs per cluster.
template <typename N, bool accumulate> struct few_plain {
    typedef N format;
    enum : bool { is_normed = false };
    enum : uint { early = 1 };
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
template <typename N> struct few_activated : few_plain<N, false> {
    device const float *bias;
    uint activation;

    METAL_FUNC float2 prepare(uint pair, uint) const {
        return bias ? float2(bias[2 * pair], 2 * pair + 1 < this->rows ? bias[2 * pair + 1] : 0.0f)
                    : 0.0f;
    }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2 before) const {
        few_plain<N, false>::finish(pair, token, activate(activation, before.x + sum),
                                    activate(activation, before.y + other), 0.0f);
    }
};

template <typename N> struct few_gated : near_gated<N> {
    uint in_dim, out_dim;

    METAL_FUNC float2 prepare(uint, uint) const { return 0.0f; }
    METAL_FUNC void finish(uint pair, uint token, float sum, float other, float2) const {
        this->to[size_t(token) * out_dim + this->first + pair] = near_gated<N>::pass(sum, other);
    }
};

template <typename N, typename T> struct few_appended : near_appended<N, T> {
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
template <typename N, bool accumulate>
METAL_FUNC few_plain<N, accumulate> few_take_share(device const void *w, device const float *x,
                                                   device float *y, uint out_dim, uint in_dim,
                                                   near_share pairs, uint first) {
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const few_plain<N, accumulate> op = {
        x + size_t(first) * in_dim,
        x,
        (device const uint4 *)w + size_t(2 * pairs.first) * row_quads,
        y + size_t(first) * out_dim + 2 * pairs.first,
        0.0f,
        in_dim,
        out_dim,
        min(2 * pairs.count, out_dim - 2 * pairs.first)};
    return op;
}

// P: of the thread blocks of a cluster, two of which are to find room on an SM: hence 512.
template <typename N, bool accumulate, uint P>
[[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_few_near(device const typename N::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
                device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
                constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
                uint2 group [[threadgroup_position_in_grid]],
                uint2 groups [[threadgroups_per_grid]],
                uint thread_index [[thread_index_in_threadgroup]],
                uint sg [[simdgroup_index_in_threadgroup]],
                uint lane [[thread_index_in_simdgroup]]) {
    const near_share share((out_dim + 1) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * FEW_TOKENS;
    const few_plain<N, accumulate> op =
        few_take_share<N, accumulate>(w, x, y, out_dim, in_dim, share, first);
    few_run<P>(op, min(batch - first, uint(FEW_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N, uint P> [[kernel, max_total_threads_per_threadgroup(512)]] void
activate_few_near(device const typename N::block *w [[buffer(0)]],
                  device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                  constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                  device const float *bias [[buffer(5)]], constant uint &has_bias [[buffer(6)]],
                  constant uint &activation [[buffer(7)]], constant uint &batch [[buffer(8)]],
                  uint2 group [[threadgroup_position_in_grid]],
                  uint2 groups [[threadgroups_per_grid]],
                  uint thread_index [[thread_index_in_threadgroup]],
                  uint sg [[simdgroup_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
    const near_share share((out_dim + 1) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * FEW_TOKENS;
    const few_activated<N> op = {
        few_take_share<N, false>(w, x, y, out_dim, in_dim, share, first),
        has_bias ? bias + 2 * share.first : nullptr, activation};
    few_run<P>(op, min(batch - first, uint(FEW_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N> [[kernel, max_total_threads_per_threadgroup(512)]] void
gate_up_silu_few_near(device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]],
                      device const typename N::block *w_gate [[buffer(2)]],
                      device const typename N::block *w_up [[buffer(3)]],
                      device float *out [[buffer(4)]], constant uint &out_dim [[buffer(5)]],
                      constant uint &in_dim [[buffer(6)]], constant float &eps [[buffer(7)]],
                      constant uint &batch [[buffer(8)]],
                      uint2 group [[threadgroup_position_in_grid]],
                      uint2 groups [[threadgroups_per_grid]],
                      uint thread_index [[thread_index_in_threadgroup]],
                      uint sg [[simdgroup_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { P = 2 };
    const near_share share(out_dim, group.x / P, groups.x / P);
    const uint first = group.y * FEW_TOKENS;
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const few_gated<N> op = {{x + size_t(first) * in_dim,
                              norm_w,
                              (device const uint4 *)w_gate,
                              (device const uint4 *)w_up,
                              out + size_t(first) * out_dim,
                              eps,
                              share.first,
                              2 * share.count,
                              row_quads},
                             in_dim,
                             out_dim};
    few_run<P>(op, min(batch - first, uint(FEW_TOKENS)), group.x % P, thread_index, sg, lane);
}

template <typename N, typename T> [[kernel, max_total_threads_per_threadgroup(512)]] void
qkv_rope_append_few_near(
    device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]],
    device const typename N::block *wq [[buffer(2)]],
    device const typename N::block *wk [[buffer(3)]],
    device const typename N::block *wv [[buffer(4)]], device float *q [[buffer(5)]],
    device T *k_cache [[buffer(6)]], device T *v_cache [[buffer(7)]],
    device const float *freqs [[buffer(8)]], constant uint &q_dim [[buffer(9)]],
    constant uint &kv_dim [[buffer(10)]], constant uint &in_dim [[buffer(11)]],
    constant uint &head_dim [[buffer(12)]], constant float &eps [[buffer(13)]],
    constant uint &pos [[buffer(14)]], constant uint &batch [[buffer(15)]],
    uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { P = 2 };
    const near_share share((q_dim + 2 * kv_dim) / 2, group.x / P, groups.x / P); // pairs
    const uint first = group.y * FEW_TOKENS;
    const few_appended<N, T> op = {{x + size_t(first) * in_dim,
                                 norm_w,
                                 (device const uint4 *)wq,
                                 (device const uint4 *)wk,
                                 (device const uint4 *)wv,
                                 q,
                                 k_cache,
                                 v_cache,
                                 freqs,
                                 &pos,
                                 eps,
                                 2 * share.first,
                                 q_dim,
                                 kv_dim,
                                 head_dim,
                                 2 * share.count,
                                 in_dim / 256 * N::block_bytes / 16},
                                in_dim,
                                first};
    few_run<P>(op, min(batch - first, uint(FEW_TOKENS)), group.x % P, thread_index, sg, lane);
}

typedef few_format<halves_q4_0, 2, 2> few_q4_0;
typedef few_format<halves_q8_0, 1, 2> few_q8_0;
typedef few_format<halves_q4_k, 2, 2> few_q4_k;
typedef few_format<halves_q5_k, 1, 3> few_q5_k;
typedef few_format<halves_q6_k, 1, 3> few_q6_k;
typedef few_format<halves_f16, 1, 3, 512> few_f16; // an SM has room for one thread block

#define FEW_KERNEL(name, ...)                                                                      \
    template [[host_name(name)]] kernel decltype(__VA_ARGS__) __VA_ARGS__;
#define FEW_NEAR(format)                                                                           \
    FEW_KERNEL("multi_token_matvec_" #format "_tiled_near",                                        \
               matvec_few_near<few_##format, false, 2>)                                         \
    FEW_KERNEL("multi_token_matvec_" #format "_accumulate_tiled_near",                             \
               matvec_few_near<few_##format, true, 2>)                                          \
    FEW_KERNEL("multi_token_matvec_" #format "_tiled_near_long",                                   \
               matvec_few_near<few_##format, false, 8>)                                         \
    FEW_KERNEL("multi_token_matvec_" #format "_accumulate_tiled_near_long",                        \
               matvec_few_near<few_##format, true, 8>)                                          \
    FEW_KERNEL("multi_token_matvec_" #format "_activate_tiled_near",                               \
               activate_few_near<few_##format, 2>)                                              \
    FEW_KERNEL("gate_up_silu_" #format "_tiled_near", gate_up_silu_few_near<few_##format>)      \
    FEW_KERNEL("qkv_rope_append_" #format "_tiled_near",                                           \
               qkv_rope_append_few_near<few_##format, float>)                                   \
    FEW_KERNEL("qkv_rope_append_f16_" #format "_tiled_near",                                       \
               qkv_rope_append_few_near<few_##format, half>)

FEW_NEAR(q4_0)
FEW_NEAR(q8_0)
FEW_NEAR(q4_k)
FEW_NEAR(q5_k)
FEW_NEAR(q6_k)
FEW_NEAR(f16)
