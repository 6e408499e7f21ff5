// matvec_tiled: y = W x and y += W x for many tokens, a tile of rows and tokens per threadgroup
// (tile.h). The second axis of the grid counts tiles of tokens.
#pragma once

#include "../prefetch.h"
#include "row.h"
#include "skinny.h"
#include "tile.h"

template <typename F, typename Tile, bool accumulate>
kernel void matvec_tiled(MATVEC_ARGUMENTS(typename F::block), constant uint &batch [[buffer(5)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint first = group.y * Tile::tokens;
    const uint first_row = group.x * Tile::rows;
    for (uint i = 0; i < Tile::decoded; i++) {
        const uint row = min(first_row + tile.get_decoded(i), out_dim - 1);
        tile.row[i] = w + size_t(row) * (in_dim / F::values);
    }
    tile.start(in_dim);
    PREFETCHED(1);
    // What is added to is loaded with x, where a thread has few of it.
    thread typename Tile::Sums &sums = tile.sums;
    const uint slots = Tile::Sums::slots;
    const uint kept = Tile::Sums::kept;
    const bool is_loaded = LOADS_AHEAD && accumulate && slots * kept <= 4;
    float before[slots][kept];
    for (uint i = 0; i < slots; i++)
        for (uint j = 0; j < kept; j++) {
            const uint token = first + sums.get_token(j);
            const uint row = first_row + sums.get_slot(i);
            before[i][j] = is_loaded && sums.is_taker() && token < batch && row < out_dim
                               ? y[size_t(token) * out_dim + row]
                               : 0.0f;
        }
    tile.multiply(x + size_t(first) * in_dim, x, in_dim, batch - first);
    if (!sums.is_taker())
        return;
    if (first + Tile::tokens <= batch && first_row + Tile::rows <= out_dim) {
        // No condition, and all loads of y before the first store; on a Mac those of a token.
        device float *at = y + size_t(first) * out_dim + first_row;
        const uint together = LOADS_AHEAD ? kept : 1;
        for (uint from = 0; from < kept; from += together) {
            for (uint j = from; accumulate && !is_loaded && j < from + together; j++)
                for (uint i = 0; i < slots; i++)
                    before[i][j] = at[sums.get_token(j) * out_dim + sums.get_slot(i)];
            for (uint j = from; j < from + together; j++)
                for (uint i = 0; i < slots; i++)
                    at[sums.get_token(j) * out_dim + sums.get_slot(i)] =
                        before[i][j] + sums.at[i][j];
        }
        return;
    }
    for (uint j = 0; j < kept; j++) {
        const uint token = first + sums.get_token(j);
        for (uint i = 0; i < slots; i++) {
            const uint row = first_row + sums.get_slot(i);
            if (token < batch && row < out_dim)
                put<accumulate && !is_loaded>(y + size_t(token) * out_dim + row,
                                              before[i][j] + sums.at[i][j]);
        }
    }
}

#define MATVEC_TILED_KERNEL(name, format, size, accumulate)                                        \
    KERNEL(name, matvec_tiled<format, size##_tile<format, false>, accumulate>)
#define MATVEC_TILED(name, format)                                                                 \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_tiled", format, large, false)                \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_accumulate_tiled", format, large, true)
#define MATVEC_TILED_SIZE(name, format, size)                                                      \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_tiled_" #size, format, size, false)          \
    MATVEC_TILED_KERNEL("multi_token_matvec_" #name "_accumulate_tiled_" #size, format, size, true)
