// matvec_mixed: up to seven products in one launch, each with a matrix in a format of its own, its
// own x, bias and activation, or adding to its y.
//
// The projections of a recurrent layer are many, small and in several formats, and none depends on
// another. As launches of their own each would take as long as its latency. The format is looked up
// per row: the choice is the same for all lanes of a simdgroup and costs a few instructions.
#include <metal_stdlib>
using namespace metal;

#include "skinny.h"
#include "vec16.h"
#include "mixed.h"
#include "row.h"

template <typename F>
METAL_FUNC float mixed_dot(device const uchar *w, device const float *x, uint row, uint in_dim,
                           uint lane) {
    const plain_input<typename F::wide> input = {x};
    return dot_row<F>((device const typename F::block *)w, input, row, in_dim, lane);
}

// The same by the parts of vec16.h, for the formats that have them.
template <typename H>
METAL_FUNC float vec16_dot(device const uchar *w, device const float *x, uint row, uint in_dim,
                          uint lane) {
    vec16_rows<H, 1, 1> all;
    all.blocks = in_dim / H::values;
    all.lane = lane;
    all.some = in_dim;
    all.rows[0] = (device const typename H::block *)w + size_t(row) * all.blocks;
    all.take(0);
    float sum = 0.0f;
    all.add_all(x, &sum);
    return simd_sum(sum);
}

// One row by a simdgroup.
METAL_FUNC void make_row(device const uchar *w, device const float *x, device const float *bias,
                         device float *y, product_shape p, uint row, uint lane) {
    float sum = 0.0f;
    switch (p.format) {
#define SUM_parts(f) vec16_dot<f##_parts>
#define SUM_blocks(f) mixed_dot<f>
#define SUM_floats(f) mixed_dot<f>
#define CASE(f, kind, ...)                                                                         \
    case number_##f:                                                                               \
        sum = SUM_##kind(f)(w, x, row, p.in_dim, lane);                                            \
        break;
        FORMATS(CASE)
    }
    if (lane != 0)
        return;
    if (p.has_bias)
        sum += bias[row];
    sum = activate(p.activation, sum);
    y[row] = p.accumulates ? y[row] + sum : sum;
}

// A threadgroup of 256 computes 8 rows of one product, one simdgroup each.
kernel void matvec_mixed(PRODUCTS, uint group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    PREFETCHED(0); // only the scalars
    FIND_PRODUCT(group)
    const uint row = group * 8 + sg;
    if (row < p.rows)
        make_row(w, x, bias, y, p, row, lane);
}

// Many tokens, weights in floats: the adapters of a recurrent layer in a prompt.
//
// The tile of a simdgroup is A times 16 rows and B times 8 tokens, multiplied as matrices (skinny.h). N turns
// of 32 columns are loaded together. Only loads know the format: a launch runs each instruction a few times,
// so that fetching them is what it waits for.
template <uint A, uint B, uint N> struct mixed_tile {
    device const uchar *w;
    uint rows[A][2]; // where they begin, in fours of weights
    device const float *tokens[B];
    uint format, steps, pair, lane;
    float sums[A][B][2][2];

    // Of 8 weights the first 11 bits, all that halves and bfloats have, and the others of floats in `rest`,
    // made larger: of a denormal float they would be the wrong ones.
    static METAL_FUNC void take(thread const float4 (&v)[2], thread float (&upper)[8],
                                thread float (&rest)[8]) {
        for (uint i = 0; i < 8; i++) {
            const float all = v[i / 4][i % 4];
            upper[i] = as_type<float>((as_type<uint>(all) + 0x1000u) & 0xFFFFE000u);
            rest[i] = (all - upper[i]) * 0x1p12f;
        }
    }

    METAL_FUNC void add_turn(thread const float4 (&all)[A][2][2], thread const float4 (&v)[B][2],
                             threadgroup float *own) {
        for (uint a = 0; a < A; a++) {
            float upper[2][8], rest[2][8];
            for (uint r = 0; r < 2; r++)
                take(all[a][r], upper[r], rest[r]);
            for (uint b = 0; b < B; b++) {
                float x[8];
                float turn[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
                float more[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
                skinny_take_values(v[b], x);
                skinny_matrices::add(upper, x, turn, lane, own);
                if (format == number_f32)
                    skinny_matrices::add(rest, x, more, lane, own);
                for (uint i = 0; i < 4; i++)
                    sums[a][b][i / 2][i % 2] +=
                        fma(more[i / 2][i % 2], 0x1p-12f, turn[i / 2][i % 2]);
            }
        }
    }

    // A float4 of a turn; past the last one, of the last.
    METAL_FUNC uint find(uint step, uint i) const { return 8 * min(step, steps - 1) + pair + 4 * i; }

    template <typename F>
    METAL_FUNC void load_as(thread float4 (&all)[N][A][2][2], uint step, uint stride) const {
        for (uint n = 0; n < N; n++)
            for (uint a = 0; a < 4 * A; a++)
                F::load((device const typename F::block *)w,
                        rows[a / 4][a / 2 % 2] + find(step + n * stride, a % 2),
                        &all[n][a / 4][a / 2 % 2][a % 2]);
    }
    METAL_FUNC void load_weights(thread float4 (&all)[N][A][2][2], uint step, uint stride) const {
        if (format == number_f32)
            load_as<f32>(all, step, stride);
        else if (format == number_f16)
            load_as<f16>(all, step, stride);
        else
            load_as<bf16>(all, step, stride);
    }

    // Every stride-th turn from `first` on. No load depends on which turns there are.
    METAL_FUNC void add_all(uint first, uint stride, threadgroup float *own) {
        for (uint a = 0; a < A * B; a++)
            for (uint i = 0; i < 4; i++)
                sums[a / B][a % B][i / 2][i % 2] = 0.0f;
        float4 all[N][A][2][2];
        load_weights(all, first, stride);
        PREFETCHED(0x1111111);
#pragma unroll 1
        for (uint step = first; step < steps; step += N * stride) {
            float4 v[N][B][2];
            for (uint n = 0; n < N; n++)
                for (uint b = 0; b < 2 * B; b++)
                    v[n][b / 2][b % 2] =
                        ((device const float4 *)tokens[b / 2])[find(step + n * stride, b % 2)];
            if (step > first)
                load_weights(all, step, stride);
            for (uint n = 0; n < N; n++)
                if (step + n * stride < steps)
                    add_turn(all[n], v[n], own);
        }
    }
};

// S of the 8 simdgroups of a threadgroup share the columns of a tile; there are 8 / S tiles, one below the
// other. shared: 128 A B floats of each simdgroup, which has its sums there in the end.
template <uint A, uint B, uint N, uint S>
METAL_FUNC void mixed_multiply(device const uchar *w, device const float *x, product_shape p,
                               uint first_row, uint first, uint tokens, threadgroup float *shared,
                               uint sg, uint lane) {
    mixed_tile<A, B, N> tile;
    const uint row = skinny_matrices::get_row(lane), top = first_row + sg / S * (16 * A);
    tile.w = w;
    tile.format = p.format;
    tile.steps = p.in_dim / 32;
    tile.pair = skinny_matrices::get_pair(lane);
    tile.lane = lane;
    for (uint a = 0; a < 2 * A; a++)
        tile.rows[a / 2][a % 2] = min(top + 8 * a + row, p.rows - 1) * (p.in_dim / 4);
    for (uint b = 0; b < B; b++)
        tile.tokens[b] = x + size_t(min(first + 8 * b + row, tokens - 1)) * p.in_dim;
    tile.add_all(sg % S, S, shared + sg * skinny_matrices::memory);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint a = 0; a < A; a++)
        for (uint b = 0; b < B; b++)
            for (uint i = 0; i < 4; i++)
                shared[((sg * B + b) * 8 + 2 * tile.pair + i % 2) * (16 * A) + 16 * a + i / 2 * 8 +
                       row] = tile.sums[a][b][i / 2][i % 2];
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// A threadgroup of 256 computes 8 / S * A * 16 rows of one product for B * 8 tokens. Two are to find room on a
// core: hence 512.
template <uint A, uint B, uint N, uint S>
[[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_mixed_tokens(PRODUCTS, constant uint &tokens [[buffer(29)]],
                    uint2 at [[threadgroup_position_in_grid]], THREAD_PLACE) {
    enum : uint { each = 16 * A, rows = 8 / S * each, own = 8 * each * B };
    threadgroup float shared[8 * own];
    uint group = at.x;
    FIND_PRODUCT(group)
    const uint first_row = group * rows, first = at.y * (8 * B);
    mixed_multiply<A, B, N, S>(w, x, p, first_row, first, tokens, shared, sg, lane);
#pragma unroll 1
    for (uint i = thread_index; i < rows * 8 * B; i += 256) {
        const uint row = first_row + i % rows, token = first + i / rows;
        if (row >= p.rows || token >= tokens)
            continue;
        threadgroup const float *from =
            shared + i % rows / each * (S * own) + i / rows * each + i % each;
        float sum = 0.0f;
        for (uint s = 0; s < S; s++)
            sum += from[s * own];
        if (p.has_bias)
            sum += bias[row];
        device float *to = y + size_t(token) * p.rows + row;
        sum = activate(p.activation, sum);
        *to = p.accumulates ? *to + sum : sum;
    }
}

// A, B, N, S:
KERNEL("matvec_mixed_skinny", matvec_mixed_tokens<1, 1, 2, 1>)
KERNEL("matvec_mixed_skinny_split_k", matvec_mixed_tokens<1, 1, 2, 8>)
KERNEL("matvec_mixed_wide", matvec_mixed_tokens<2, 2, 1, 1>)
KERNEL("matvec_mixed_wide_split_k", matvec_mixed_tokens<2, 2, 1, 8>)
