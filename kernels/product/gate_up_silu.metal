// gate_up_silu: the first half of a feed-forward network in one launch: the norm of x, its products
// with the gate and up weights, and silu(gate) * up. One launch instead of three, and gate and up
// are never stored.
#include <metal_stdlib>
using namespace metal;

#include "../arguments.h"
#include "../prefetch.h"
#include "../formats/q4_0.h"
#include "skinny.h"
#include "normed_rows.h"
#include "tile.h"

// A threadgroup of 128 computes 4 outputs: each of its 4 simdgroups computes the same row of gate
// and of up, with the norm in the same pass (normed_rows.h). Moves the weights once, x and norm_w
// once per output from cache. As in ffn_silu, a very negative gate gives -0.
kernel void gate_up_silu_q4_0(GATE_UP_ARGUMENTS(block_q4_0),
                              uint group [[threadgroup_position_in_grid]],
                              SIMDGROUP_PLACE) {
    const uint row = group * 4 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    q4_0_normed_rows<2, 2> both;
    both.rows[0] = w_gate + size_t(row) * blocks;
    both.rows[1] = w_up + size_t(row) * blocks;
    both.norm_w = norm_w;
    both.blocks = blocks;
    both.lane = lane;
    both.sixteen = get_sixteen(in_dim);
    both.take(0);
    PREFETCHED(1 << 1 | 1 << 2 | 1 << 3);
    both.finish(x);
    const float3 all = simd_sum(float3(both.sums[0], both.sums[1], both.squares));
    if (lane != 0)
        return;
    const float inverse = rsqrt(all.z / float(in_dim) + eps);
    const float gate = all.x * inverse;
    out[row] = gate / (1.0f + exp(-gate)) * (all.y * inverse);
}

// For large batches: x (tokens, in_dim), out (tokens, out_dim).
//
// A tile of tile.h: half of a thread's rows are of gate, the others the same rows of up. The second
// axis of the grid counts tiles of tokens. The norm is computed again for every tile, from the x that
// it loads anyway. As in ffn_silu, a very negative gate gives -0.
template <typename Tile>
kernel void gate_up_silu_tiled(GATE_UP_ARGUMENTS(block_q4_0),
                               constant uint &tokens [[buffer(8)]],
                               uint2 group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint first = group.y * Tile::tokens;
    const uint first_row = group.x * (Tile::rows / 2);
    const uint places = Tile::Sums::places;
    for (uint i = 0; i < Tile::decoded; i++) {
        const uint slot = tile.get_decoded(i);
        const uint k = slot / places;
        const uint row = min(first_row + slot % places + k / 2 * places, out_dim - 1);
        tile.row[i] = (k % 2 ? w_up : w_gate) + size_t(row) * (in_dim / 32);
    }
    tile.start(in_dim);
    PREFETCHED(1 << 2 | 1 << 3);
    tile.multiply(x + size_t(first) * in_dim, norm_w, in_dim, tokens - first);
    tile.normalise(in_dim, eps);
    thread typename Tile::Sums &sums = tile.sums;
    if (!sums.is_taker())
        return;
    for (uint j = 0; j < Tile::Sums::kept; j++) {
        const uint token = first + sums.get_token(j);
        for (uint k = 0; k < Tile::Sums::slots; k += 2) {
            const uint r = first_row + sums.get_slot(k / 2);
            const float gate = sums.at[k][j];
            if (token < tokens && r < out_dim)
                out[size_t(token) * out_dim + r] =
                    gate / (1.0f + exp(-gate)) * sums.at[k + 1][j];
        }
    }
}

KERNEL("gate_up_silu_q4_0_tiled", gate_up_silu_tiled<large_tile<q4_0_tiles, true>>)
KERNEL("gate_up_silu_q4_0_tiled_split_k", gate_up_silu_tiled<split_k_tile<q4_0_tiles, true>>)
KERNEL("gate_up_silu_q4_0_tiled_skinny", gate_up_silu_tiled<skinny_tile<q4_0_tiles, true>>)
