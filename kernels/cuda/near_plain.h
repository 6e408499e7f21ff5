// near_plain: rows that follow each other, for near.h: a share of them per thread block.
#pragma once

#include "near.h"

template <typename N, bool normed, bool accumulate, uint Early> struct near_plain {
    typedef N format;
    enum : bool { is_normed = normed, is_stacked = true };
    enum : uint { early = Early };
    device const float *x, *norm_w;
    device const uint4 *from;
    device float *to;
    float eps;
    uint rows, row_quads;

    METAL_FUNC near_plain(device const void *w, device const float *values, device float *y,
                          uint out_dim, uint in_dim, uint group, uint groups) {
        const near_share share(out_dim, group, groups);
        row_quads = in_dim / 256 * N::block_bytes / 16;
        x = norm_w = values;
        from = (device const uint4 *)w + size_t(share.first) * row_quads;
        to = y + share.first;
        eps = 0.0f;
        rows = share.count;
    }
    METAL_FUNC device const uint4 *get_row(uint i) const { return from + size_t(i) * row_quads; }
    METAL_FUNC float2 prepare(uint i) const { return accumulate ? float2(to[i], 0.0f) : 0.0f; }
    METAL_FUNC void finish(uint i, float sum, float, float2 before) const {
        to[i] = accumulate ? before.x + sum : sum;
    }
};
