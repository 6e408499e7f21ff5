// halves_formats: weights of at most 8 bits as halves, in which they are exact: whole numbers times a scale per
// block of 32 columns. A lane takes four neighbours of the first 16 columns of a block, and four of the last
// 16, those of part lane % 4. Which columns meet in a product does not matter as long as x agrees.
//   F::words        of two blocks of a row. Chunks of 256 columns are whole uint4s
//   F::block_bytes  of 256 columns
//   F::tiles, F::stages  of few_near.h: tiles of a stage, and stages for which there is shared memory
//   F::take         a lane's weights of block b of two: of the first and last 16 columns, the first and third
//                   of four and the others. Below the exponent of 1024, whose bits are `thousand`, a whole
//                   number is added to it
//   F::scale        of block b
#pragma once

#include "../formats/q4_0.h"
#include "../formats/q8_0.h"

struct halves_q4_0 {
    typedef block_q4_0 block;
    enum : uint { words = 9, block_bytes = 144, tiles = 2, stages = 2 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        threadgroup const uint *at = row + part;
        for (uint j = 0; j < 2; j++) {
            const uint bits =
                b ? at[5] >> (8 * j) : cuda::permute(at[0], at[1], j ? 0x0503u : 0x0402u);
            pairs[0][j] =
                cuda::subtract_halves((bits & 0x000F000Fu) | thousand, 0x64086408u); // 1032
            pairs[1][j] = cuda::fma_halves((bits & 0x00F000F0u) | thousand,          // 1024 + 16 n
                                           0x2C002C00u, 0xD480D480u);                // / 16 - 72
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[9 * b]);
    }
};

struct halves_q8_0 {
    typedef block_q8_0 block;
    enum : uint { words = 17, block_bytes = 272, tiles = 1, stages = 2 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            threadgroup const uint *at = row + part + 4 * i;
            for (uint j = 0; j < 2; j++) {
                const uint bits =
                    b ? at[9] >> (8 * j) : cuda::permute(at[0], at[1], j ? 0x0503u : 0x0402u);
                pairs[i][j] = cuda::subtract_halves((bits & 0x00FF00FFu) ^ (thousand | 0x00800080u),
                                                    0x64806480u); // 128 more; 1152
            }
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[17 * b]);
    }
};
