// normed_bulk: norms with the products that follow them, for one token, by bulk.h: the heads of models
// (rmsnorm_matvec), gate and up (gate_up_silu), and queries, keys and values (qkv_rope_append). norm_w is
// multiplied with x as it becomes digits, and 1 / rms(x) with the sums, so a norm takes no time of its
// own.
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "bulk.h"
#include "bulk_ops.h"

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
template <typename N> [[kernel, max_total_threads_per_threadgroup(1024)]] void
rmsnorm_matvec_bulk(NORMED_MATVEC_ARGUMENTS(typename N::block),
                    uint group [[threadgroup_position_in_grid]],
                    uint groups [[threadgroups_per_grid]], THREAD_PLACE) {
    const block_share share(out_dim, group, groups);
    bulk_plain<N, true, false, 1 << 1 | 1 << 2> op(w, x, y, share.first, share.count, in_dim);
    op.norm_w = norm_w;
    op.eps = eps;
    bulk_run<false, 1>(op, in_dim, group, groups, thread_index, sg, lane);
}

template <typename N> [[kernel, max_total_threads_per_threadgroup(1024)]] void
gate_up_silu_bulk(GATE_UP_ARGUMENTS(typename N::block), uint group [[threadgroup_position_in_grid]],
                  uint groups [[threadgroups_per_grid]], THREAD_PLACE) {
    const block_share share(out_dim, group, groups);
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const bulk_gated<N> op = {x, norm_w, (device const uint4 *)w_gate, (device const uint4 *)w_up,
                              out, eps, share.first, 2 * share.count, row_quads};
    bulk_run<false, 1>(op, in_dim, group, groups, thread_index, sg, lane);
}

template <typename N, typename T> [[kernel, max_total_threads_per_threadgroup(1024)]] void
qkv_rope_append_bulk(QKV_ARGUMENTS(typename N::block, T),
                     uint group [[threadgroup_position_in_grid]],
                     uint groups [[threadgroups_per_grid]], THREAD_PLACE) {
    const block_share share((q_dim + 2 * kv_dim) / 2, group, groups); // pairs
    const bulk_appended<N, T> op = {
        x, norm_w, (device const uint4 *)wq, (device const uint4 *)wk, (device const uint4 *)wv, q,
        k_cache, v_cache, freqs, &pos, eps, 2 * share.first, q_dim, kv_dim, head_dim,
        2 * share.count, in_dim / 256 * N::block_bytes / 16};
    bulk_run<false, 1>(op, in_dim, group, groups, thread_index, sg, lane);
}

#define NORMED_BULK(format)                                                                        \
    KERNEL("rmsnorm_matvec_" #format "_bulk", rmsnorm_matvec_bulk<format##_bulk>)                  \
    KERNEL("gate_up_silu_" #format "_bulk", gate_up_silu_bulk<format##_bulk>)                      \
    KERNEL("qkv_rope_append_" #format "_bulk", qkv_rope_append_bulk<format##_bulk, float>)         \
    KERNEL("qkv_rope_append_f16_" #format "_bulk", qkv_rope_append_bulk<format##_bulk, half>)

NORMED_BULK(q4_0)
NORMED_BULK(q8_0)
NORMED_BULK(q4_k)
NORMED_BULK(q5_k)
NORMED_BULK(q6_k)
