// skinny_words: Q4_0 weights by words of nibbles, 64 columns at a time, for a few tokens: what
// skinny_stream.metal and cuda/skinny_bulk.metal share.
#pragma once

#include "../formats/q4_0.h"
#include "skinny.h"

// Four bytes of nibbles of the first or second of two blocks, which are 9 words: those that begin
// at word 0 of them, or as many words further as `from` is. The first block begins within a word.
template <typename Row> inline uint q4_0_get_word(Row from, uint b) {
    return b ? from[5] : from[0] >> 16u | from[1] << 16u;
}

// A lane's values of 64 columns of a token.
struct skinny_values {
    float4 v[2][2];

    METAL_FUNC void load_block(device const float *mine, uint chunk, uint b) {
        for (uint i = 0; i < 2; i++)
            v[b][i] = *(device const float4 *)(mine + chunk * 64 + 32 * b + 16 * i);
    }
    METAL_FUNC void load(device const float *mine, uint chunk) {
        load_block(mine, chunk, 0);
        load_block(mine, chunk, 1);
    }
};

// Adds the products of block b of two, whose 9 words are at rows[i], of the N rows of a lane.
template <typename P, typename Rows, uint N>
METAL_FUNC void skinny_add(thread const P &p, thread const Rows &rows, uint b, uint pair, uint lane,
                           thread float (&sums)[N][2]) {
    for (uint i = 0; i < N; i += 2) {
        float turn[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        const uint words[2] = {q4_0_get_word(rows[i] + pair, b),
                               q4_0_get_word(rows[i + 1] + pair, b)};
        p.add(words, turn, lane);
        for (uint r = 0; r < 2; r++) {
            const float scale = float(((threadgroup const half *)rows[i + r])[9 * b]);
            sums[i + r][0] = fma(scale, turn[r][0], sums[i + r][0]);
            sums[i + r][1] = fma(scale, turn[r][1], sums[i + r][1]);
        }
    }
}
