// qkv_rope_append: everything between the residual stream and attention in one launch: the norm of
// x, its products with the query, key and value weights, the rotation of query and key to the
// position, and the new row of both caches. One launch instead of four or five.
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "../prefetch.h"
#include "../formats/q4_0.h"
#include "skinny.h"
#include "normed_rows.h"
#include "tile.h"

// A threadgroup of 128 computes 8 of the stacked rows of q, k and v: each of its 4 simdgroups
// computes a pair of neighbours, which are rotated together. q_dim and kv_dim are multiples of
// head_dim, which is even, so that a pair never spans two matrices. The norm is computed by every
// simdgroup, in the pass over x that the product makes anyway. Moves the weights once, x and norm_w
// once per pair of rows from cache. The caches are of T. freqs (head_dim / 2): how far one position turns each pair.
template <typename T>
kernel void qkv_rope_append(QKV_ARGUMENTS(block_q4_0, T),
                            uint group [[threadgroup_position_in_grid]],
                            SIMDGROUP_PLACE) {
    const uint stacked = (group * 4 + sg) * 2;
    if (stacked >= q_dim + 2 * kv_dim)
        return;
    const bool is_q = stacked < q_dim;
    const bool is_v = stacked >= q_dim + kv_dim;
    const uint row = stacked - (is_q ? 0 : is_v ? q_dim + kv_dim : q_dim);
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w = (is_q ? wq : is_v ? wv : wk) + size_t(row) * blocks;
    q4_0_normed_rows<2, 2> both;
    both.rows[0] = w;
    both.rows[1] = w + blocks;
    both.norm_w = norm_w;
    both.blocks = blocks;
    both.lane = lane;
    both.sixteen = get_sixteen(in_dim);
    both.take(0);
    const float angle = float(pos) * freqs[row % head_dim / 2];
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    PREFETCHED(1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8);
    both.finish(x);
    const float3 all = simd_sum(float3(both.sums[0], both.sums[1], both.squares));
    if (lane != 0)
        return;
    const float inverse = rsqrt(all.z / float(in_dim) + eps);
    const float a = all.x * inverse;
    const float b = all.y * inverse;
    const float first = is_v ? a : a * c - b * s;
    const float second = is_v ? b : a * s + b * c;
    if (is_q) {
        q[row] = first;
        q[row + 1] = second;
        return;
    }
    device T *out = (is_v ? v_cache : k_cache) + size_t(pos) * kv_dim + row;
    out[0] = T(first);
    out[1] = T(second);
}

KERNEL("qkv_rope_append_q4_0", qkv_rope_append<float>)
KERNEL("qkv_rope_append_f16_q4_0", qkv_rope_append<half>)

// For large batches: x (tokens, in_dim), q (tokens, q_dim); token t goes to row pos + t of the caches.
//
// A tile of tile.h, of the stacked rows of q, k and v. The second axis of the grid counts tiles of
// tokens. The norm is computed again for every tile, from the x that it loads anyway. The rows of a
// pair that is rotated together belong to different threads, so the sums go through threadgroup memory;
// from there, neighbours store neighbours.
template <typename Tile>
kernel void qkv_rope_append_tiled(QKV_ARGUMENTS(block_q4_0, float),
                                  constant uint &tokens [[buffer(15)]],
                                  uint2 group [[threadgroup_position_in_grid]],
                                  uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint all = q_dim + 2 * kv_dim;
    const uint first = group.y * Tile::tokens;
    const uint first_row = group.x * Tile::rows;
    for (uint i = 0; i < Tile::decoded; i++) {
        const uint row = min(first_row + tile.get_decoded(i), all - 1);
        device const block_q4_0 *w = row < q_dim ? wq : row < q_dim + kv_dim ? wk : wv;
        const uint before = row < q_dim ? 0 : row < q_dim + kv_dim ? q_dim : q_dim + kv_dim;
        tile.row[i] = w + size_t(row - before) * (in_dim / 32);
    }
    tile.start(in_dim);
    PREFETCHED(1 << 2 | 1 << 3 | 1 << 4);
    tile.multiply(x + size_t(first) * in_dim, norm_w, in_dim, tokens - first);
    tile.normalise(in_dim, eps);
    threadgroup const float *sums = tile.sums.show();
    const uint pairs = Tile::rows / 2;
    for (uint i = thread_index; i < Tile::tokens * pairs; i += Tile::Sums::threads) {
        const uint token = first + i / pairs;
        const uint stacked = first_row + 2 * (i % pairs);
        if (stacked >= all || token >= tokens)
            continue;
        const float a = sums[2 * i];
        const float b = sums[2 * i + 1];
        const bool is_q = stacked < q_dim;
        const bool is_v = stacked >= q_dim + kv_dim;
        const uint r = stacked - (is_q ? 0 : is_v ? q_dim + kv_dim : q_dim);
        device float *out = is_q ? q + size_t(token) * q_dim + r
                                 : (is_v ? v_cache : k_cache) + size_t(pos + token) * kv_dim + r;
        const float angle = is_v ? 0.0f : float(pos + token) * freqs[r % head_dim / 2];
        const float c = precise::cos(angle);
        const float s = precise::sin(angle);
        out[0] = is_v ? a : a * c - b * s;
        out[1] = is_v ? b : a * s + b * c;
    }
}

KERNEL("qkv_rope_append_q4_0_tiled", qkv_rope_append_tiled<large_tile<q4_0_tiles, true>>)
KERNEL("qkv_rope_append_q4_0_tiled_split_k", qkv_rope_append_tiled<split_k_tile<q4_0_tiles, true>>)
KERNEL("qkv_rope_append_q4_0_tiled_skinny", qkv_rope_append_tiled<skinny_tile<q4_0_tiles, true>>)
