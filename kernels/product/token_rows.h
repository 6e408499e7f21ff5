// q4_0_tokens: rows of Q4_0 weights times 8 tokens by one simdgroup.
//
// A lane takes half blocks, as q4_0_parts does. It decodes those of R rows once, to floats that are
// exact, and multiplies them with 8 tokens, whose R * 8 sums stay in registers. In the end the lanes
// exchange sums so that each has one sum, or several lanes the same.
#pragma once

#include "../formats/q4_0.h"
#include "scatter_sums.h"

constant uint TOKENS = 8;

// The sums of R rows and 8 tokens. A kernel calls take, which loads only weights, then PREFETCHED, then
// add and finish.
template <uint R> struct token_sums {
    float dots[R * TOKENS];
    q4_0_half_bits bits[R]; // on their way

    METAL_FUNC void take(device const block_q4_0 *const thread *rows, uint in_dim, uint block,
                         uint lane) {
        const uint b = min(block, in_dim / 32 - 1);
        for (uint r = 0; r < R; r++)
            bits[r] = q4_0_take_half(rows[r] + b, lane % 2);
    }

    // Tokens first to first + 7 of x (tokens, in_dim); past the last one, the last is repeated. The
    // next half block is loaded while one is multiplied.
    METAL_FUNC void add(device const block_q4_0 *const thread *rows, device const float *x,
                        uint in_dim, uint first, uint tokens, uint lane) {
        for (uint i = 0; i < R * TOKENS; i++)
            dots[i] = 0.0f;
        const uint sixteen = get_sixteen(in_dim);
        for (uint b = lane / 2; b < in_dim / 32; b += 16) {
            float4 w[R][4];
            for (uint r = 0; r < R; r++)
                q4_0_decode_half(bits[r], sixteen, w[r]);
            take(rows, in_dim, b + 16, lane);
            for (uint t = 0; t < TOKENS; t++)
                add_token(w, x + size_t(min(first + t, tokens - 1)) * in_dim + 32 * b, lane % 2, t);
        }
    }

    METAL_FUNC void add_token(thread const float4 (&w)[R][4], device const float *x, uint part,
                              uint t) {
        const q4_0_half_input v = q4_0_load_half(x, part);
        for (uint r = 0; r < R; r++) {
            float4 dot = w[r][0] * v.low_even;
            dot = fma(w[r][1], v.low_odd, dot);
            dot = fma(w[r][2], v.high_even, dot);
            dot = fma(w[r][3], v.high_odd, dot);
            dots[r * TOKENS + t] += (dot.x + dot.y) + (dot.z + dot.w);
        }
    }

    // The sum that token_place says this lane has.
    METAL_FUNC float finish(uint lane) {
        scatter<R * TOKENS>::sum(dots, lane);
        return dots[0];
    }
};

// What a lane has after token_sums were exchanged: the sum of one row and one token. With R * 8 < 32
// several lanes have the same.
template <uint R> struct token_place {
    uint row;   // of the R
    uint token; // of the 8
    bool is_first;

    METAL_FUNC explicit token_place(uint lane) {
        const uint sharing = 32 / (R * TOKENS);
        row = lane / sharing / TOKENS;
        token = lane / sharing % TOKENS;
        is_first = lane % sharing == 0;
    }
};
