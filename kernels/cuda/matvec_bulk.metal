// matvec_bulk: y = W x and y += W x for one token, by bulk.h.
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "bulk.h"
#include "bulk_ops.h"

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
// P of them are a cluster, if more than one.
template <typename N, bool accumulate, bool IsLong, uint P>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_bulk(MATVEC_ARGUMENTS(typename N::block), uint group [[threadgroup_position_in_grid]],
            uint groups [[threadgroups_per_grid]], THREAD_PLACE) {
    enum : uint { each = P > 1 ? 2 : 1 }; // clusters share pairs of rows
    const block_share share((out_dim + each - 1) / each, group / P, groups / P);
    const bulk_plain<N, false, accumulate, 1> op(
        w, x, y, each * share.first, min(each * share.count, out_dim - each * share.first), in_dim);
    bulk_run<IsLong, P>(op, in_dim, group, groups, thread_index, sg, lane);
}

#define BULK_KERNELS(format, end, ...)                                                             \
    KERNEL("matvec_" #format end, matvec_bulk<format##_bulk, false, __VA_ARGS__>)                  \
    KERNEL("matvec_" #format "_accumulate" end, matvec_bulk<format##_bulk, true, __VA_ARGS__>)
#define MATVEC_BULK(format)                                                                        \
    BULK_KERNELS(format, "_bulk", false, 1)                                                        \
    BULK_KERNELS(format, "_bulk_chunks", true, 1)                                                  \
    BULK_KERNELS(format, "_bulk_cluster", false, 4)

MATVEC_BULK(q4_0)
MATVEC_BULK(q8_0)
MATVEC_BULK(q4_k)
MATVEC_BULK(q5_k)
MATVEC_BULK(q6_k)
