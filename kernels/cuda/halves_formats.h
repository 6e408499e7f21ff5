// halves_formats: weights as halves, in which they are exact: whole numbers times a scale per 32 columns, or
// per 16, or halves themselves. A lane takes four neighbours of the first 16 columns of 32, and four of the last
// 16, those of part lane % 4. Which columns meet in a product does not matter as long as x agrees.
//   F::pairs        of 32 columns each, that are a chunk: 256 columns, or fewer where shared memory has no room
//   F::chunks       for which it has
//   F::block_bytes  of a chunk of a row
//   F::quads        uint4s that cover it; F::stride: with what keeps eight rows in different banks
//   F::parts        scales per 32 columns, 1 or 2
//   F::has_minima   the whole numbers of 32 columns are not negative, and a minimum is subtracted from all
//   F::find         where a row's chunk is in the uint4s that cover it; number: of the chunk in its matrix
//   F::take         a lane's weights of 32 columns, the bth of pair `pair` of 64: of the first and last 16
//                   columns, the first and third of four and the others. Below the exponent of 1024, whose bits
//                   are `thousand`, a whole number is added to it
//   F::scale        of part s of those, in units of the chunk's F::unit
//   F::minima       of columns 64 * part and of the 32 after those, as halves
//   F::least        what a minimum is to be multiplied by
#pragma once

#include "../formats/floats.h"
#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q5_k.h"
#include "../formats/q6_k.h"
#include "../formats/q8_0.h"

typedef threadgroup const uint *halves_row;

// 1024 + n as halves, n from bytes 0 and 2 of four, and from 1 and 3, less `offset` of which the bits are these.
inline void take_bytes(uint bytes, uint thousand, uint offset, thread uint (&pair)[2]) {
    for (uint j = 0; j < 2; j++)
        pair[j] = cuda::subtract_halves((bytes >> (8 * j) & 0x00FF00FFu) | thousand, offset);
}

// Blocks of a whole number of uint4s, without minima.
struct halves_blocks {
    typedef halves_row row;
    enum : uint { pairs = 4, chunks = 2, parts = 1, has_minima = 0 };

    static METAL_FUNC row find(halves_row at, uint) { return at; }
    static METAL_FUNC float unit(row) { return 1.0f; }
    static METAL_FUNC uint minima(row, uint, uint) { return 0; }
    static METAL_FUNC float least(row) { return 0.0f; }
};

struct halves_q4_0 : halves_blocks {
    typedef block_q4_0 block;
    enum : uint { block_bytes = 144, quads = 9, stride = 9 };

    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        halves_row at = w + 9 * pair + part;
        for (uint j = 0; j < 2; j++) {
            const uint bits =
                b ? at[5] >> (8 * j) : cuda::permute(at[0], at[1], j ? 0x0503u : 0x0402u);
            pairs[0][j] =
                cuda::subtract_halves((bits & 0x000F000Fu) | thousand, 0x64086408u); // 1032
            pairs[1][j] = cuda::fma_halves((bits & 0x00F000F0u) | thousand,          // 1024 + 16 n
                                           0x2C002C00u, 0xD480D480u);                // / 16 - 72
        }
    }
    static METAL_FUNC float scale(row w, uint pair, uint b, uint) {
        return float(((threadgroup const half *)(w + 9 * pair))[9 * b]);
    }
};

struct halves_q8_0 : halves_blocks {
    typedef block_q8_0 block;
    enum : uint { block_bytes = 272, quads = 17, stride = 17 };

    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            halves_row at = w + 17 * pair + part + 4 * i;
            for (uint j = 0; j < 2; j++) {
                const uint bits =
                    b ? at[9] >> (8 * j) : cuda::permute(at[0], at[1], j ? 0x0503u : 0x0402u);
                pairs[i][j] = cuda::subtract_halves((bits & 0x00FF00FFu) ^ (thousand | 0x00800080u),
                                                    0x64806480u); // 128 more; 1152
            }
        }
    }
    static METAL_FUNC float scale(row w, uint pair, uint b, uint) {
        return float(((threadgroup const half *)(w + 17 * pair))[17 * b]);
    }
};

// Scales and minima of Q4_K and Q5_K, four at a time as bytes (q4_k.h).
struct halves_of_256 : halves_blocks {
    enum : uint { has_minima = 1 };

    static METAL_FUNC float scale(row w, uint pair, uint b, uint) {
        const uint four = q4_k::get_four(w[1], w[3], pair >= 2);
        return float(four >> (16 * (pair % 2) + 8 * b) & 255u);
    }
    static METAL_FUNC float unit(row w) { return float(as_type<half2>(w[0]).x); }
    static METAL_FUNC uint minima(row w, uint part, uint thousand) {
        const uint four = q4_k::get_four(w[2], w[3] >> 4u, part >= 2);
        return cuda::subtract_halves(
            cuda::permute(four, 0u, part % 2 ? 0x4342u : 0x4140u) | thousand, 0x64006400u);
    }
    static METAL_FUNC float least(row w) { return float(as_type<half2>(w[0]).y); }
};

struct halves_q4_k : halves_of_256 {
    typedef block_q4_k block;
    enum : uint { block_bytes = 144, quads = 9, stride = 9 };

    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            const uint word = w[4 + 8 * pair + 4 * i + part];
            for (uint j = 0; j < 2; j++) {
                const uint bits = word >> (8 * j);
                pairs[i][j] =
                    b ? cuda::fma_halves((bits & 0x00F000F0u) | thousand, // 1024 + 16 n
                                         0x2C002C00u, 0xD400D400u)        // / 16 - 64
                      : cuda::subtract_halves((bits & 0x000F000Fu) | thousand, 0x64006400u);
            }
        }
    }
};

struct halves_q5_k : halves_of_256 {
    typedef block_q5_k block;
    enum : uint { block_bytes = 176, quads = 11, stride = 11 };

    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            halves_row at = w + 4 + 4 * i + part;
            const uint fifth = at[0] >> (2 * pair + b) & 0x01010101u;
            take_bytes((at[8 + 8 * pair] >> (4 * b) & 0x0F0F0F0Fu) | fifth << 4u, thousand,
                       0x64006400u, pairs[i]);
        }
    }
};

// Blocks begin at any multiple of 2 bytes.
struct halves_q6_k : halves_blocks {
    typedef block_q6_k block;
    enum : uint { block_bytes = 210, quads = 14, stride = 15, parts = 2 };
    struct row {
        halves_row at;
        uint shift; // bits of the first word before the block

        METAL_FUNC uint get_word(uint i) const {
            return uint((ulong(at[i + 1]) << 32u | at[i]) >> shift);
        }
        METAL_FUNC threadgroup const char *get_bytes(uint i) const {
            return (threadgroup const char *)at + shift / 8 + i;
        }
    };

    static METAL_FUNC row find(halves_row at, uint number) { // of 16 bytes, 210 are 2 more
        return {at + number % 8 / 2, number % 2 * 16};
    }
    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        const uint first = pair / 2;
        for (uint i = 0; i < 2; i++) {
            const uint four = w.get_word(16 * first + 8 * b + 4 * i + part) >> (4 * (pair % 2));
            const uint two = w.get_word(32 + 8 * first + 4 * i + part) >> (4 * (pair % 2) + 2 * b);
            take_bytes((four & 0x0F0F0F0Fu) | (two & 0x03030303u) << 4u, thousand, 0x64206420u,
                       pairs[i]); // 1056
        }
    }
    static METAL_FUNC float scale(row w, uint pair, uint b, uint s) {
        return float(*w.get_bytes(192 + 4 * pair + 2 * b + s));
    }
    static METAL_FUNC float unit(row w) {
        return float(*(threadgroup const half *)w.get_bytes(208));
    }
    static METAL_FUNC uint minima(row, uint, uint) { return 0; }
    static METAL_FUNC float least(row) { return 0.0f; }
};

struct halves_f16 : halves_blocks {
    typedef half block;
    enum : uint { pairs = 2, chunks = 3, block_bytes = 256, quads = 16, stride = 17 };

    static METAL_FUNC void take(row w, uint pair, uint b, uint part, uint,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            halves_row at = w + 32 * pair + 16 * b + 8 * i + 2 * part;
            for (uint j = 0; j < 2; j++)
                pairs[i][j] = cuda::permute(at[0], at[1], j ? 0x7632u : 0x5410u);
        }
    }
    static METAL_FUNC float scale(row, uint, uint, uint) { return 1.0f; }
};
