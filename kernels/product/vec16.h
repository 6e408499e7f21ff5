// matvec_vec16: y = W x and y += W x for one token, by simdgroups whose lanes take 16 weights of a
// block at a time: two neighbours share a block of 32, sixteen a block of 256.
//
// H is a format by such parts: H::block, of H::values weights for H::lanes lanes; H::input, the
// values of x as a part needs them, and H::load, which loads them; H::bits, a part as it is in memory,
// and H::take, which loads it; H::multiply, the product of both, and a number for opaque.h.
#pragma once

#include "../prefetch.h"
#include "row.h"

// R rows of `blocks` blocks, N parts of each per lane and turn, all of whose loads are under way at
// once. Past the end of a row the last part is loaded again and left out.
template <typename H, uint R, uint N> struct vec16_rows {
    device const typename H::block *rows[R];
    uint blocks, lane;
    uint some; // for opaque.h
    typename H::bits bits[N][R];
    enum : uint { stride = 32 / H::lanes };

    METAL_FUNC void take(uint first) {
        for (uint i = 0; i < N; i++)
            if (first + stride * i < blocks) {
                const uint b = min(first + stride * i + lane / H::lanes, blocks - 1);
                for (uint r = 0; r < R; r++)
                    bits[i][r] = H::take(rows[r] + b, lane % H::lanes);
            }
    }

    METAL_FUNC void add(device const float *x, uint first, thread float *sums) const {
        for (uint i = 0; i < N; i++)
            if (first + stride * i < blocks) {
                const uint b = first + stride * i + lane / H::lanes;
                const typename H::input input =
                    H::load(x + H::values * min(b, blocks - 1), lane % H::lanes);
                for (uint r = 0; r < R; r++) {
                    const float product = H::multiply(bits[i][r], input, some);
                    sums[r] += b < blocks ? product : 0.0f;
                }
            }
    }

    // sums[r] += this lane's part of the product of row r, of which the first turn is taken. The next
    // turn is loaded while one is multiplied.
    METAL_FUNC void add_all(device const float *x, thread float *sums) {
        vec16_rows next;
        next.blocks = blocks;
        next.lane = lane;
        for (uint r = 0; r < R; r++)
            next.rows[r] = rows[r];
        for (uint first = 0; first < blocks; first += stride * N) {
            const uint second = first + stride * N;
            next.take(second);
            add(x, first, sums);
            for (uint i = 0; i < N; i++)
                if (second + stride * i < blocks)
                    for (uint r = 0; r < R; r++)
                        bits[i][r] = next.bits[i][r];
        }
    }
};

// R rows per simdgroup, 4 simdgroups per threadgroup of 128. One row each fills a GPU with the few
// rows of a small model; several share the x that they load. Rows past the end are replaced by the
// last one.
template <typename H, uint R, uint N, bool accumulate>
kernel void matvec_vec16(MATVEC_ARGUMENTS(typename H::block),
                         uint group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    const uint first = (group * 4 + sg) * R;
    if (first >= out_dim)
        return;
    vec16_rows<H, R, N> all;
    all.blocks = in_dim / H::values;
    all.lane = lane;
    all.some = in_dim;
    for (uint r = 0; r < R; r++)
        all.rows[r] = w + size_t(min(first + r, out_dim - 1)) * all.blocks;
    all.take(0);
    PREFETCHED(1);
    const uint row = first + lane;
    const bool is_mine = lane < R && row < out_dim;
    const float before = accumulate && is_mine ? y[row] : 0.0f; // under way with x
    float sums[R] = {};
    all.add_all(x, sums);
    float mine = 0.0f;
    for (uint r = 0; r < R; r++) {
        const float sum = simd_sum(sums[r]);
        mine = lane == r ? sum : mine;
    }
    if (is_mine)
        y[row] = before + mine;
}

#define MATVEC_VEC16(format)                                                                       \
    KERNEL("matvec_" #format "_vec16", matvec_vec16<format##_parts, 1, 3, false>)                  \
    KERNEL("matvec_" #format "_vec16_rows", matvec_vec16<format##_parts, 4, 1, false>)             \
    KERNEL("matvec_" #format "_accumulate_vec16", matvec_vec16<format##_parts, 1, 3, true>)        \
    KERNEL("matvec_" #format "_accumulate_vec16_rows", matvec_vec16<format##_parts, 4, 1, true>)
