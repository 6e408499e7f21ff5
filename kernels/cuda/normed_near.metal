// normed_near: norms with the products that follow them, for one token, by near.h: the heads of models
// (rmsnorm_matvec), gate and up (gate_up_silu), and queries, keys and values (qkv_rope_append). norm_w is
// multiplied with x as it becomes digits, and 1 / rms(x) with the sums, so a norm takes no time of its
// own.
#include <metal_stdlib>
using namespace metal;

#include "near_plain.h"

// A pair is the same row of gate and of up: what multiplies them has both.
template <typename N> struct near_gated {
    typedef N format;
    enum : bool { is_normed = true, is_stacked = false };
    enum : uint { early = 1 << 1 | 1 << 2 | 1 << 3 };
    device const float *x, *norm_w;
    device const uint4 *gate, *up;
    device float *to;
    float eps;
    uint rows, row_quads;

    METAL_FUNC device const uint4 *get_row(uint i) const {
        return (i % 2 ? up : gate) + size_t(i / 2) * row_quads;
    }
    METAL_FUNC float2 prepare(uint) const { return 0.0f; }
    METAL_FUNC void finish(uint i, float sum, float other, float2) const {
        if (i % 2 == 0) // as in ffn_silu, a very negative gate gives -0
            to[i / 2] = sum / (1.0f + exp(-sum)) * other;
    }
};

// A pair is turned together. Rows of q, k and v are stacked; q_dim and kv_dim are multiples of head_dim,
// which is even, so that a pair never spans two matrices.
template <typename N> struct near_appended {
    typedef N format;
    enum : bool { is_normed = true, is_stacked = true };
    enum : uint { early = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8 };
    device const float *x, *norm_w;
    device const uint4 *wq, *wk, *wv;
    device float *q, *k_cache, *v_cache;
    device const float *freqs;
    constant uint *pos;
    float eps;
    uint first, q_dim, kv_dim, head_dim;
    uint rows, row_quads;

    METAL_FUNC device const uint4 *get_row(uint i) const {
        const uint row = first + i;
        return row < q_dim            ? wq + size_t(row) * row_quads
               : row < q_dim + kv_dim ? wk + size_t(row - q_dim) * row_quads
                                      : wv + size_t(row - q_dim - kv_dim) * row_quads;
    }
    // The cosine and sine of the angle; values are not turned.
    METAL_FUNC float2 prepare(uint i) const {
        const uint row = first + i;
        if (row >= q_dim + kv_dim)
            return float2(1.0f, 0.0f);
        const float angle = float(*pos) * freqs[(row < q_dim ? row : row - q_dim) % head_dim / 2];
        return float2(precise::cos(angle), precise::sin(angle));
    }
    METAL_FUNC void finish(uint i, float sum, float other, float2 turn) const {
        const uint row = first + i;
        const bool is_v = row >= q_dim + kv_dim;
        const float turned = i % 2 ? other * turn.y + sum * turn.x : sum * turn.x - other * turn.y;
        device float *cache = (is_v ? v_cache - kv_dim : k_cache) + size_t(*pos) * kv_dim - q_dim;
        (row < q_dim ? q : cache)[row] = is_v ? sum : turned;
    }
};

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
template <typename N> [[kernel, max_total_threads_per_threadgroup(1024)]] void rmsnorm_matvec_near(
    device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]],
    device const typename N::block *w [[buffer(2)]], device float *y [[buffer(3)]],
    constant uint &out_dim [[buffer(4)]], constant uint &in_dim [[buffer(5)]],
    constant float &eps [[buffer(6)]], uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    near_plain<N, true, false, 1 << 1 | 1 << 2> op(w, x, y, out_dim, in_dim, group, groups);
    op.norm_w = norm_w;
    op.eps = eps;
    near_run<false>(op, in_dim, group, groups, thread_index, sg, lane);
}

template <typename N> [[kernel, max_total_threads_per_threadgroup(1024)]] void gate_up_silu_near(
    device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]],
    device const typename N::block *w_gate [[buffer(2)]],
    device const typename N::block *w_up [[buffer(3)]], device float *out [[buffer(4)]],
    constant uint &out_dim [[buffer(5)]], constant uint &in_dim [[buffer(6)]],
    constant float &eps [[buffer(7)]], uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const near_share share(out_dim, group, groups);
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const near_gated<N> op = {x,
                              norm_w,
                              (device const uint4 *)w_gate + size_t(share.first) * row_quads,
                              (device const uint4 *)w_up + size_t(share.first) * row_quads,
                              out + share.first,
                              eps,
                              2 * share.count,
                              row_quads};
    near_run<false>(op, in_dim, group, groups, thread_index, sg, lane);
}

template <typename N> [[kernel, max_total_threads_per_threadgroup(1024)]] void qkv_rope_append_near(
    device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]],
    device const typename N::block *wq [[buffer(2)]],
    device const typename N::block *wk [[buffer(3)]],
    device const typename N::block *wv [[buffer(4)]], device float *q [[buffer(5)]],
    device float *k_cache [[buffer(6)]], device float *v_cache [[buffer(7)]],
    device const float *freqs [[buffer(8)]], constant uint &q_dim [[buffer(9)]],
    constant uint &kv_dim [[buffer(10)]], constant uint &in_dim [[buffer(11)]],
    constant uint &head_dim [[buffer(12)]], constant float &eps [[buffer(13)]],
    constant uint &pos [[buffer(14)]], uint group [[threadgroup_position_in_grid]],
    uint groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const near_share share((q_dim + 2 * kv_dim) / 2, group, groups); // pairs
    const near_appended<N> op = {x,
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
                                 in_dim / 256 * N::block_bytes / 16};
    near_run<false>(op, in_dim, group, groups, thread_index, sg, lane);
}

#define NEAR_KERNEL(name, function, format)                                                        \
    template [[host_name(name)]] kernel decltype(function<format##_near>) function<format##_near>;
#define NORMED_NEAR(format)                                                                        \
    NEAR_KERNEL("rmsnorm_matvec_" #format "_near", rmsnorm_matvec_near, format)                    \
    NEAR_KERNEL("gate_up_silu_" #format "_near", gate_up_silu_near, format)                        \
    NEAR_KERNEL("qkv_rope_append_" #format "_near", qkv_rope_append_near, format)

NORMED_NEAR(q4_0)
NORMED_NEAR(q8_0)
NORMED_NEAR(q4_k)
NEAR_KERNEL("rmsnorm_matvec_q6_k_near", rmsnorm_matvec_near, q6_k)
