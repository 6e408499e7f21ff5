// matvec_near: y = W x and y += W x for one token, by near.h.
#include <metal_stdlib>
using namespace metal;

#include "near.h"
#include "near_ops.h"

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
// P of them are a cluster, if more than one.
template <typename N, bool accumulate, bool IsLong, uint P>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_near(device const typename N::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
            device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
            constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
            uint groups [[threadgroups_per_grid]],
            uint thread_index [[thread_index_in_threadgroup]],
            uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { each = P > 1 ? 2 : 1 }; // clusters share pairs of rows
    const near_share share((out_dim + each - 1) / each, group / P, groups / P);
    const near_plain<N, false, accumulate, 1> op(
        w, x, y, each * share.first, min(each * share.count, out_dim - each * share.first), in_dim);
    near_run<IsLong, P>(op, in_dim, group, groups, thread_index, sg, lane);
}

#define NEAR_KERNEL(name, ...)                                                                     \
    template [[host_name(name)]] kernel decltype(matvec_near<__VA_ARGS__>) matvec_near<__VA_ARGS__>;
#define NEAR_KERNELS(format, end, ...)                                                             \
    NEAR_KERNEL("matvec_" #format end, format##_near, false, __VA_ARGS__)                          \
    NEAR_KERNEL("matvec_" #format "_accumulate" end, format##_near, true, __VA_ARGS__)
#define MATVEC_NEAR(format)                                                                        \
    NEAR_KERNELS(format, "_near", false, 1)                                                        \
    NEAR_KERNELS(format, "_near_long", true, 1)                                                    \
    NEAR_KERNELS(format, "_near_cluster", false, 4)

MATVEC_NEAR(q4_0)
MATVEC_NEAR(q8_0)
MATVEC_NEAR(q4_k)
MATVEC_NEAR(q5_k)
MATVEC_NEAR(q6_k)
