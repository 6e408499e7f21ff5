// matvec_strip: y = W x and y += W x for one token, by threads that take several rows each.
//
// S is a format by blocks: S::block, of S::values weights; S::rows, how many rows a thread takes;
// S::input, the values of x as a block needs them, and S::load, which loads them; S::add, which
// adds the product of both to sums of which the total counts.
#pragma once

#include "row.h"

// R rows and their sums. Not an array: compilers give up unrolling loops of this size, and what a
// loop indexes is not in registers.
template <typename S, uint R> struct strip_rows {
    strip_rows<S, R - 1> before;
    device const typename S::block *row;
    float4 sums;

    METAL_FUNC void start(device const typename S::block *w, uint first, uint last, uint blocks) {
        before.start(w, first, last, blocks);
        row = w + size_t(min(first + R - 1, last)) * blocks;
        sums = float4(0.0f);
    }
    METAL_FUNC void add(uint b, thread const typename S::input &input) {
        before.add(b, input);
        sums = S::add(row + b, input, sums);
    }
    template <bool accumulate> METAL_FUNC void finish(device float *y, uint count) const {
        before.template finish<accumulate>(y, count);
        if (R <= count)
            put<accumulate>(y + R - 1, total(sums));
    }
};
template <typename S> struct strip_rows<S, 0> {
    METAL_FUNC void start(device const typename S::block *, uint, uint, uint) {}
    METAL_FUNC void add(uint, thread const typename S::input &) {}
    template <bool accumulate> METAL_FUNC void finish(device float *, uint) const {}
};

// A thread computes S::rows rows at once, so that it loads and arranges x once for all of them, and
// scales the sums of a block instead of its weights. A threadgroup has 32 rows. In the last strip
// rows past the end are replaced by the last row. Loads are not coalesced, and most lanes of a
// simdgroup are missing: this is for the software device, which runs one thread after another.
template <typename S, bool accumulate>
kernel void strip(device const typename S::block *w [[buffer(0)]],
                  device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                  constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                  uint thread_index [[thread_position_in_grid]]) {
    const uint first = S::rows * thread_index;
    if (first >= out_dim)
        return;
    const uint blocks = in_dim / S::values;
    strip_rows<S, S::rows> rows;
    rows.start(w, first, out_dim - 1, blocks);
    for (uint b = 0; b < blocks; b++)
        rows.add(b, S::load(x + S::values * b));
    rows.template finish<accumulate>(y + first, out_dim - first);
}

#define MATVEC_STRIP(format)                                                                       \
    MATVEC_KERNEL("matvec_" #format "_strip", strip, format##_strip, false)                        \
    MATVEC_KERNEL("matvec_" #format "_accumulate_strip", strip, format##_strip, true)
