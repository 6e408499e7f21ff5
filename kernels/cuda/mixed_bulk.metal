// mixed_bulk: matvec_mixed with the matrices of one format by bulk.h, and those in floats by plain loads.
//
// A layer of RWKV-7 has large matrices in blocks and adapters in floats, with few rows or few columns.
// Each matrix has thread blocks of its own, in proportion to its bytes (product/product.c), so that all
// end at the same time.
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "../product/mixed.h"
#include "bulk.h"

enum : uint { MIXED_PREFETCHED = 0x1111111 }; // all weights

// Rows of one matrix: a share of them per thread block.
template <typename N> struct bulk_mixed {
    typedef N format;
    enum : bool { is_normed = false, is_stacked = true, needs_registers = true };
    enum : uint { prefetched = MIXED_PREFETCHED };
    device const float *x, *norm_w, *bias;
    device const uint4 *from;
    device float *to;
    float eps;
    uint rows, row_quads, activation;
    bool has_bias, accumulates;

    METAL_FUNC device const uint4 *get_row(uint i) const { return from + size_t(i) * row_quads; }
    METAL_FUNC float2 prepare(uint i) const {
        return accumulates ? to[i] : has_bias ? bias[i] : 0.0f;
    }
    // What is added to y has no activation.
    METAL_FUNC void finish(uint i, float sum, float, float2 before) const {
        to[i] = activate(activation, sum + before.x);
    }
};

// The same rows in floats. Warps share a row if it is so long that each has MIXED_TURNS float4s per lane
// of it. What a lane loads of MIXED_ROWS rows is under way at once, the first of them before the launch
// before has ended.
enum : uint { MIXED_ROWS = 4, MIXED_TURNS = 2, MIXED_SUMS = 512 };

template <typename F> struct mixed_floats {
    device const typename F::block *w; // the first row
    uint rows, quads;                  // float4s of a row
    uint sharers, first;               // warps of a row, and the first float4 of this lane
    float4 weights[MIXED_ROWS][MIXED_TURNS];

    METAL_FUNC mixed_floats(device const uchar *from, uint count, uint in_dim, uint sg, uint lane) {
        w = (device const typename F::block *)from;
        rows = count;
        quads = in_dim / 4;
        sharers = 1;
        while (sharers < BULK_WARPS && 32 * MIXED_TURNS * sharers < quads)
            sharers *= 2;
        first = sg % sharers * 32 + lane;
    }
    // Past the end of a row, or of the rows, the last are loaded again.
    METAL_FUNC void load(uint row, uint quad) {
        for (uint r = 0; r < MIXED_ROWS; r++)
            for (uint t = 0; t < MIXED_TURNS; t++)
                F::load(w + size_t(min(row + r, rows - 1)) * (4 * quads),
                        min(quad + 32 * sharers * t, quads - 1), &weights[r][t]);
    }
    METAL_FUNC void add(device const float4 *x, uint quad,
                        thread float (&sums)[MIXED_ROWS]) const {
        for (uint t = 0; t < MIXED_TURNS; t++) {
            const uint at = quad + 32 * sharers * t;
            const float4 v = at < quads ? x[at] : 0.0f;
            for (uint r = 0; r < MIXED_ROWS; r++)
                sums[r] += at < quads ? dot(weights[r][t], v) : 0.0f;
        }
    }
};

// Up to MIXED_SUMS rows at a time: the sums of their warps are in shared memory, and then a thread has
// each row.
template <typename F, typename Op>
METAL_FUNC void mixed_multiply(thread const Op &op, device const uchar *w, uint in_dim,
                               threadgroup float *shared, uint thread_index, uint sg, uint lane) {
    mixed_floats<F> floats(w, op.rows, in_dim, sg, lane);
    const uint sharers = floats.sharers, own = sg / sharers * MIXED_ROWS;
    bool is_loaded = true;
    floats.load(own, floats.first);
    cuda::launch_dependents();
    cuda::wait_for_launch<Op::prefetched>();
    for (uint top = 0; top < op.rows; top += MIXED_SUMS) {
        const uint count = min(op.rows - top, uint(MIXED_SUMS));
        for (uint row = own; row < count; row += BULK_WARPS / sharers * MIXED_ROWS) {
            float sums[MIXED_ROWS] = {};
            for (uint quad = floats.first; quad < floats.quads;
                 quad += 32 * sharers * MIXED_TURNS) {
                if (!is_loaded)
                    floats.load(top + row, quad);
                is_loaded = false;
                floats.add((device const float4 *)op.x, quad, sums);
            }
            for (uint r = 0; r < MIXED_ROWS; r++) {
                const float sum = simd_sum(sums[r]);
                if (lane == 0 && row + r < count)
                    shared[(row + r) * BULK_WARPS + sg % sharers] = sum;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index < count) {
            const float2 before = op.prepare(top + thread_index);
            float sum = 0.0f;
            for (uint i = 0; i < sharers; i++)
                sum += shared[thread_index * BULK_WARPS + i];
            op.finish(top + thread_index, sum, 0.0f, before);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// Two thread blocks, of this launch and of the next, are to find room on an SM: hence 1024.
template <typename N, uint Number> [[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_mixed_bulk(PRODUCTS, uint group [[threadgroup_position_in_grid]], THREAD_PLACE) {
    FIND_PRODUCT(group)
    const block_share share(p.rows, group, p.groups);
    const uint row_quads = p.in_dim / 256 * N::block_bytes / 16;
    const bulk_mixed<N> op = {
        x, x, bias + share.first, (device const uint4 *)w + size_t(share.first) * row_quads,
        y + share.first, 0.0f, share.count, row_quads, p.activation, p.has_bias != 0,
        p.accumulates != 0};
    if (p.format == Number) {
        bulk_run<false, 1>(op, p.in_dim, group, p.groups, thread_index, sg, lane);
        return;
    }
    const bulk_memory<N, false, 1> memory;
    threadgroup float *shared = (threadgroup float *)memory.stages;
    const size_t at = size_t(share.first) * p.in_dim;
    if (p.format == number_f32)
        mixed_multiply<f32>(op, w + 4 * at, p.in_dim, shared, thread_index, sg, lane);
    else if (p.format == number_f16)
        mixed_multiply<f16>(op, w + 2 * at, p.in_dim, shared, thread_index, sg, lane);
    else
        mixed_multiply<bf16>(op, w + 2 * at, p.in_dim, shared, thread_index, sg, lane);
}

#define MIXED_BULK(format)                                                                         \
    KERNEL("matvec_mixed_" #format "_bulk", matvec_mixed_bulk<format##_bulk, number_##format>)

MIXED_BULK(q4_0)
MIXED_BULK(q8_0)
MIXED_BULK(q4_k)
MIXED_BULK(q5_k)
MIXED_BULK(q6_k)
