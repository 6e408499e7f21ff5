// matvec_tiled: y = W x and y += W x for many tokens, a tile of rows and tokens per threadgroup
// (tiles.h). The second axis of the grid counts tiles of tokens. Needs matvec_rows.h.
#include "tiles.h"

template <typename F, typename Tile, bool accumulate>
kernel void matvec_tiled(device const typename F::block *w [[buffer(0)]],
                         device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                         constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                         constant uint &batch [[buffer(5)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint row = min(group.x * Tile::rows + tile.get_decoded(), out_dim - 1);
    const uint first = group.y * Tile::tokens;
    tile.multiply(w + size_t(row) * (in_dim / F::values), x, x, in_dim, first, batch);
    if (!tile.has_sums())
        return;
    for (uint j = 0; j < Tile::kept; j++) {
        const uint token = first + tile.get_token(j);
        for (uint i = 0; i < Tile::slots; i++) {
            const uint r = group.x * Tile::rows + tile.get_slot(i);
            if (token < batch && r < out_dim)
                put<accumulate>(y + size_t(token) * out_dim + r, tile.sums[i][j]);
        }
    }
}

// sums (32 tokens, 32 rows) += 32 columns of them, whose rows are 36 floats apart (tiles.h).
inline void add_matrices(thread simdgroup_float8x8 (&sums)[4][4], threadgroup const float *x,
                         threadgroup const float *w) {
    for (uint k = 0; k < 32; k += 8) {
        simdgroup_float8x8 a[4];
        simdgroup_float8x8 b[4];
        for (uint i = 0; i < 4; i++)
            simdgroup_load(a[i], x + 8 * i * 36 + k, 36);
        for (uint i = 0; i < 4; i++)
            simdgroup_load(b[i], w + 8 * i * 36 + k, 36, ulong2(0, 0), true);
        for (uint i = 0; i < 4; i++)
            for (uint j = 0; j < 4; j++)
                simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
    }
}

// The same tile of 64 rows and 64 tokens, multiplied as matrices of 8 x 8 by whole simdgroups, for
// which Apple's GPUs have instructions. Each of the 4 simdgroups of a threadgroup computes 32 rows of
// 32 tokens: 16 matrices of sums, which go through threadgroup memory in the end, because a tile at
// the edge is not stored whole.
template <typename F, bool accumulate>
kernel void matvec_matrix(device const typename F::block *w [[buffer(0)]],
                          device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                          constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                          constant uint &batch [[buffer(5)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint sg [[simdgroup_index_in_threadgroup]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    typedef typename tile_sizes<F, false>::large Tile;
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint row = min(group.x * Tile::rows + tile.get_decoded(), out_dim - 1);
    const uint first = group.y * Tile::tokens;
    device const typename F::block *w_row = w + size_t(row) * (in_dim / F::values);
    const uint my_row = 32 * (sg % 2);
    const uint my_token = 32 * (sg / 2);
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    tile.fetch(w_row, x, 0, in_dim, first, batch);
    for (uint step = 0; 32 * step < in_dim; step++) {
        tile.bring(step, w_row, x, x, in_dim, first, batch);
        add_matrices(sums, (threadgroup const float *)tile.x + my_token * 36,
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

#define MATVEC_TILED_KERNEL(name, format, size, accumulate)                                        \
    template [[host_name(                                                                          \
        name)]] kernel decltype(matvec_tiled<format, typename tile_sizes<format, false>::size,     \
                                             accumulate>)                                          \
        matvec_tiled<format, typename tile_sizes<format, false>::size, accumulate>;
#define MATVEC_TILED(name, format)                                                                 \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_tiled", format, large, false)                \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_accumulate_tiled", format, large, true)
#define MATVEC_MATRIX(name, format)                                                                \
    MATVEC_KERNEL("multi_token_matvec_" #name "_matrix", matvec_matrix, format, false)             \
    MATVEC_KERNEL("multi_token_matvec_" #name "_accumulate_matrix", matvec_matrix, format, true)
#define MATVEC_TILED_SIZE(name, format, size)                                                      \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_tiled_" #size, format, size, false)          \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_accumulate_tiled_" #size, format, size, true)
