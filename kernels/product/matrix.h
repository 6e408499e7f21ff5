// matvec_matrix: the tiles of tiled.h, multiplied as matrices of 8 x 8 by whole simdgroups, for
// which Apple's GPUs have instructions.
#pragma once

#include "tiled.h"

// The type of decoded weights. Halves stay halves, in the first half of a row of tile.h: a product
// with them moves fewer bytes, and NVIDIA's tensor cores multiply a whole half at once.
template <typename F> struct matrix_weights { typedef float type; };
template <typename F> struct tile_halves : tile_floats<F> {
    static METAL_FUNC void put(typename tile_floats<F>::part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            ((threadgroup half4 *)at)[4 * lane + i] = half4(p.v[i]);
    }
};
template <typename F> struct matrix_weights<tile_halves<F>> { typedef half type; };

// sums (32 tokens, 32 rows) += 32 columns of them, whose rows are 36 floats apart (tile.h).
template <typename T> inline void add_matrices(thread simdgroup_float8x8 (&sums)[4][4],
                                               threadgroup const float *x,
                                               threadgroup const float *w) {
    const uint stride = 36 * sizeof(float) / sizeof(T);
    for (uint k = 0; k < 32; k += 8) {
        simdgroup_float8x8 a[4];
        simdgroup_matrix<T, 8, 8> b[4];
        for (uint i = 0; i < 4; i++)
            simdgroup_load(a[i], x + 8 * i * 36 + k, 36);
        for (uint i = 0; i < 4; i++)
            simdgroup_load(b[i], (threadgroup const T *)w + 8 * i * stride + k, stride,
                           ulong2(0, 0), true);
        for (uint i = 0; i < 4; i++)
            for (uint j = 0; j < 4; j++)
                simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
    }
}

// A tile of 64 rows and 64 tokens. Each of the 4 simdgroups of a threadgroup computes 32 rows of 32
// tokens: 16 matrices of sums, which go through threadgroup memory in the end, because a tile at the
// edge is not stored whole.
template <typename F, bool accumulate>
kernel void matvec_matrix(device const typename F::block *w [[buffer(0)]],
                          device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                          constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                          constant uint &batch [[buffer(5)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint sg [[simdgroup_index_in_threadgroup]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    typedef large_tile<F, false> Tile;
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint row = min(group.x * Tile::rows + tile.get_decoded(0), out_dim - 1);
    const uint first = group.y * Tile::tokens;
    device const typename F::block *w_row = w + size_t(row) * (in_dim / F::values);
    const uint my_row = 32 * (sg % 2);
    const uint my_token = 32 * (sg / 2);
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    tile.row[0] = w_row;
    tile.start(in_dim);
    EARLY_LOADS(1);
    device const float *x_tile = x + size_t(first) * in_dim;
    tile.fetch_values(x_tile, x, 0, in_dim, batch - first);
    for (uint step = 0; 32 * step < in_dim; step++) {
        tile.bring(step, x_tile, x, in_dim, batch - first);
        add_matrices<typename matrix_weights<F>::type>(
            sums, (threadgroup const float *)tile.x + my_token * 36,
            (threadgroup const float *)tile.w + my_row * 36);
    }
    threadgroup float *out = (threadgroup float *)memory; // (64 tokens, 64 rows)
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            simdgroup_store(sums[i][j], out + (my_token + 8 * i) * 64 + my_row + 8 * j, 64);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint r = group.x * Tile::rows + thread_index % 64;
    for (uint i = thread_index / 64; i < min(uint(Tile::tokens), batch - first); i += 2)
        if (r < out_dim)
            put<accumulate>(y + size_t(first + i) * out_dim + r, out[64 * i + thread_index % 64]);
}

#define MATVEC_MATRIX(name, format)                                                                \
    MATVEC_KERNEL("multi_token_matvec_" #name "_matrix", matvec_matrix, format, false)             \
    MATVEC_KERNEL("multi_token_matvec_" #name "_accumulate_matrix", matvec_matrix, format, true)
