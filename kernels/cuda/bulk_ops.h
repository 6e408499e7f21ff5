// bulk_ops: what bulk.h multiplies, and what becomes of the sums; skinny_bulk.metal has the same for several
// tokens.
#pragma once

#include "bulk_rows.h"

// Rows that follow each other: a share of them per thread block.
template <typename N, bool normed, bool accumulate, uint Prefetched> struct bulk_plain {
    typedef N format;
    enum : bool { is_normed = normed, is_stacked = true, needs_registers = false };
    enum : uint { prefetched = Prefetched };
    device const float *x, *norm_w;
    device const uint4 *from;
    device float *to;
    float eps;
    uint first, rows, row_quads;

    METAL_FUNC bulk_plain(device const void *w, device const float *values, device float *y,
                          uint start, uint count, uint in_dim) {
        row_quads = in_dim / 256 * N::block_bytes / 16;
        x = norm_w = values;
        from = (device const uint4 *)w;
        to = y;
        eps = 0.0f;
        first = start;
        rows = count;
    }
    METAL_FUNC device const uint4 *get_row(uint i) const {
        return from + size_t(first + i) * row_quads;
    }
    METAL_FUNC float2 prepare(uint i) const {
        return accumulate ? float2(to[first + i], 0.0f) : 0.0f;
    }
    METAL_FUNC void finish(uint i, float sum, float, float2 before) const {
        to[first + i] = accumulate ? before.x + sum : sum;
    }
};

// A pair is the same row of gate and of up: what multiplies them has both.
template <typename N> struct bulk_gated {
    typedef N format;
    enum : bool { is_normed = true, is_stacked = false, needs_registers = false };
    enum : uint { prefetched = 1 << 1 | 1 << 2 | 1 << 3 };
    device const float *x, *norm_w;
    device const uint4 *gate, *up;
    device float *to;
    float eps;
    uint first, rows, row_quads;

    METAL_FUNC device const uint4 *get_row(uint i) const {
        return (i % 2 ? up : gate) + size_t(first + i / 2) * row_quads;
    }
    METAL_FUNC float2 prepare(uint) const { return 0.0f; }
    // As in ffn_silu, a very negative gate gives -0.
    static METAL_FUNC float pass(float gated, float value) {
        return gated / (1.0f + exp(-gated)) * value;
    }
    METAL_FUNC void finish(uint i, float sum, float other, float2) const {
        if (i % 2 == 0)
            to[first + i / 2] = pass(sum, other);
    }
};

// A pair is turned together. Rows of q, k and v are stacked; q_dim and kv_dim are multiples of head_dim,
// which is even, so that a pair never spans two matrices.
template <typename N, typename T> struct bulk_appended {
    typedef N format;
    enum : bool { is_normed = true, is_stacked = true, needs_registers = false };
    enum : uint { prefetched = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8 };
    device const float *x, *norm_w;
    device const uint4 *wq, *wk, *wv;
    device float *q;
    device T *k_cache, *v_cache;
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
    // The cosine and sine of the angle of a row at a position; values are not turned.
    METAL_FUNC float2 get_turn(uint i, uint at) const {
        const uint row = first + i;
        if (row >= q_dim + kv_dim)
            return float2(1.0f, 0.0f);
        const float angle = float(at) * freqs[(row < q_dim ? row : row - q_dim) % head_dim / 2];
        return float2(precise::cos(angle), precise::sin(angle));
    }
    METAL_FUNC void store(uint i, uint token, float sum, float other, float2 turn) const {
        const uint row = first + i;
        const bool is_v = row >= q_dim + kv_dim;
        const float turned = i % 2 ? other * turn.y + sum * turn.x : sum * turn.x - other * turn.y;
        device T *cache =
            (is_v ? v_cache - kv_dim : k_cache) + size_t(*pos + token) * kv_dim - q_dim;
        if (row < q_dim)
            q[size_t(token) * q_dim + row] = turned;
        else
            cache[row] = T(is_v ? sum : turned);
    }
    METAL_FUNC float2 prepare(uint i) const { return get_turn(i, *pos); }
    METAL_FUNC void finish(uint i, float sum, float other, float2 turn) const {
        store(i, 0, sum, other, turn);
    }
};
