// matvec_near: y = W x and y += W x for one token, by near.h.
#include <metal_stdlib>
using namespace metal;

#include "near.h"
#include "near_ops.h"

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
template <typename N, bool accumulate, bool IsLong>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_near(device const typename N::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
            device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
            constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
            uint groups [[threadgroups_per_grid]],
            uint thread_index [[thread_index_in_threadgroup]],
            uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const near_plain<N, false, accumulate, 1> op(w, x, y, out_dim, in_dim, group, groups);
    near_run<IsLong>(op, in_dim, group, groups, thread_index, sg, lane);
}

#define NEAR_KERNEL(name, format, accumulate, is_long)                                             \
    template [[host_name(name)]] kernel decltype(matvec_near<format##_near, accumulate, is_long>)  \
        matvec_near<format##_near, accumulate, is_long>;
#define MATVEC_NEAR(format, end, is_long)                                                          \
    NEAR_KERNEL("matvec_" #format end, format, false, is_long)                                     \
    NEAR_KERNEL("matvec_" #format "_accumulate" end, format, true, is_long)

MATVEC_NEAR(q4_0, "_near", false)
MATVEC_NEAR(q8_0, "_near", false)
MATVEC_NEAR(q4_k, "_near", false)
MATVEC_NEAR(q5_k, "_near", false)
MATVEC_NEAR(q6_k, "_near", false)
MATVEC_NEAR(q4_0, "_near_long", true)
MATVEC_NEAR(q8_0, "_near_long", true)
MATVEC_NEAR(q4_k, "_near_long", true)
MATVEC_NEAR(q5_k, "_near_long", true)
MATVEC_NEAR(q6_k, "_near_long", true)
