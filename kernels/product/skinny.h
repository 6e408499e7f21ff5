// skinny: tiles of 16 rows and 8 tokens, each multiplied by whole simdgroups as matrices, straight from
// device memory: for prompts of a few tokens.
//
// A turn is 32 columns. A lane is at a place (row, pair) of an 8 x 8 matrix, whose columns 2 * pair and
// 2 * pair + 1 it holds. It takes 8 of the 32 weights of slots row and row + 8, and of the values of
// token `row` those that belong to the same 8 columns; pairs of them are what it puts into four
// matrices each. Which columns meet in a matrix does not matter, so that a lane takes neighbours, and
// no value has to move. The sums that come out are those of its two rows and two tokens.
//
// F is a format by such turns: F::part, what a lane keeps of a row, which F::take loads; F::decode,
// its 8 weights without their scale; F::scale.
#pragma once

#include "../prefetch.h"
#include "tile_sums.h"

// The product of a turn, and where its elements are. A device may have instructions that take all 16
// rows at once; their places are others.
#ifdef __ASSAY__
#define HAS_16X8X32 ASSAY_HAS_16X8X32
#define MULTIPLY_16X8X32 ASSAY_MULTIPLY_16X8X32
#else
#define HAS_16X8X32 false
#define MULTIPLY_16X8X32(w, x, sums) ((void)0)
#endif
template <bool HasInstruction> struct skinny_matrices_of {
    enum : uint { pair_bits = 1 | 2, memory = 0 };
    static METAL_FUNC uint get_row(uint lane) { return lane / 4; }
    static METAL_FUNC uint get_pair(uint lane) { return lane % 4; }

    static METAL_FUNC void add(thread const float (&w)[2][8], thread const float (&x)[8],
                               thread float (&sums)[2][2], uint, threadgroup float *) {
        MULTIPLY_16X8X32(w, x, sums);
    }
};

// Two matrices of 8 x 8, whose elements are where Apple's GPUs have them. The values are stored by
// token and loaded by column.
template <> struct skinny_matrices_of<false> {
    enum : uint { pair_bits = 1 | 8, memory = 64 };
    static METAL_FUNC uint get_row(uint lane) { return lane / 16 * 4 + lane / 2 % 4; }
    static METAL_FUNC uint get_pair(uint lane) { return lane / 8 % 2 * 2 + lane % 2; }

    // To Apple's compiler, thread_elements() is a vector of 64, in which a lane's two are the first.
    static METAL_FUNC void put(thread simdgroup_float8x8 &m, float first, float second) {
        m.thread_elements()[0] = first;
        m.thread_elements()[1] = second;
    }

    // own: `memory` floats of this simdgroup.
    static METAL_FUNC void add(thread const float (&w)[2][8], thread const float (&x)[8],
                               thread float (&sums)[2][2], uint lane, threadgroup float *own) {
        threadgroup float *at = own + 8 * get_row(lane) + 2 * get_pair(lane);
        simdgroup_float8x8 d[2];
        for (uint r = 0; r < 2; r++)
            put(d[r], sums[r][0], sums[r][1]);
        for (uint i = 0; i < 8; i += 2) {
            simdgroup_float8x8 a, b;
            simdgroup_barrier(mem_flags::mem_threadgroup);
            at[0] = x[i];
            at[1] = x[i + 1];
            simdgroup_barrier(mem_flags::mem_threadgroup);
            simdgroup_load(b, own, 8, ulong2(0, 0), true);
            for (uint r = 0; r < 2; r++) {
                put(a, w[r][i], w[r][i + 1]);
                simdgroup_multiply_accumulate(d[r], a, b, d[r]);
            }
        }
        for (uint r = 0; r < 2; r++) {
            sums[r][0] = d[r].thread_elements()[0];
            sums[r][1] = d[r].thread_elements()[1];
        }
    }
};

typedef skinny_matrices_of<HAS_16X8X32> skinny_matrices;

// Gives a lane its place in the sums of a team. Returns which token's values it takes: so that the two
// of its sums are `column` and 4 after it.
template <typename Sums>
inline uint skinny_find_place(thread Sums &sums, threadgroup float *shared, uint mate, uint lane) {
    sums.shared = shared;
    sums.mate = mate;
    sums.me = lane;
    sums.place = skinny_matrices::get_row(lane);
    sums.column = skinny_matrices::get_pair(lane);
    sums.clear();
    return sums.place / 2 + sums.place % 2 * 4;
}

// Two float4 as the 8 values of a lane.
inline void skinny_take_values(thread const float4 (&v)[2], thread float (&x)[8]) {
    for (uint i = 0; i < 2; i++) {
        x[4 * i] = v[i].x;
        x[4 * i + 1] = v[i].y;
        x[4 * i + 2] = v[i].z;
        x[4 * i + 3] = v[i].w;
    }
}

// S teams of a simdgroup. N turns of a team are loaded at once, the weights of the next N while they
// are multiplied.
template <typename F, uint S, uint N, bool HasNorm> struct tile_skinny {
    typedef tile_sums<2, 2, 8, 4, S> Sums;
    enum : uint {
        rows = Sums::rows,
        tokens = Sums::tokens,
        decoded = 2, // rows whose weights a thread decodes
        own = skinny_matrices::memory,
        memory = (Sums::memory > S * own ? Sums::memory : S * own) / 4, // float4 of a threadgroup
    };

    Sums sums;
    uint lane, pair, token; // the token whose values this lane takes
    uint steps;
    float squares;
    device const typename F::block *row[2];
    typename F::part weights[N][2];

    METAL_FUNC tile_skinny(threadgroup float4 *m, uint thread_index) {
        lane = thread_index % 32;
        token = skinny_find_place(sums, (threadgroup float *)m, thread_index / 32, lane);
        pair = sums.column;
        squares = 0.0f;
    }

    METAL_FUNC uint get_decoded(uint i) const { return sums.get_slot(i); }

    // Loads the first weights, and nothing else.
    METAL_FUNC void start(uint in_dim) {
        steps = in_dim / 32;
        take(0);
    }

    METAL_FUNC void take(uint turn) {
        for (uint n = 0; n < N; n++)
            for (uint i = 0; i < 2; i++)
                weights[n][i] = F::take(row[i] + min(turn + n * S + sums.mate, steps - 1), pair);
    }

    // After start(). x_in (count, in_dim): the tokens from the first of the tile on; past the last one,
    // the last is repeated. So is the last turn, without being added: under a condition, compilers load
    // one turn after another.
    METAL_FUNC void multiply(device const float *x_in, device const float *norm_w, uint in_dim,
                             uint count) {
        device const float *mine = x_in + min(token, count - 1) * in_dim + 4 * pair;
        for (uint turn = 0; turn < steps; turn += N * S) {
            float4 v[N][2];
            float4 norm[N][2];
            for (uint n = 0; n < N; n++) {
                const uint at = 32 * min(turn + n * S + sums.mate, steps - 1);
                for (uint i = 0; i < 2; i++) {
                    v[n][i] = *(device const float4 *)(mine + at + 16 * i);
                    if (HasNorm)
                        norm[n][i] = *(device const float4 *)(norm_w + 4 * pair + at + 16 * i);
                }
            }
            float scales[N][2];
            float w[N][2][8];
            for (uint n = 0; n < N; n++)
                for (uint i = 0; i < 2; i++) {
                    const bool is_there = turn + n * S + sums.mate < steps;
                    scales[n][i] = is_there ? F::scale(weights[n][i]) : 0.0f;
                    F::decode(weights[n][i], in_dim, w[n][i]);
                }
            if (turn + N * S < steps)
                take(turn + N * S);
            for (uint n = 0; n < N; n++)
                add(w[n], scales[n], v[n], norm[n], turn + n * S + sums.mate < steps);
        }
        sums.add_up();
    }

    METAL_FUNC void add(thread const float (&w)[2][8], thread const float (&scales)[2],
                        thread const float4 (&v)[2], thread const float4 (&norm)[2],
                        bool is_there) {
        float4 values[2] = {v[0], v[1]};
        for (uint i = 0; HasNorm && i < 2; i++) {
            const float4 a = v[i];
            const float s = fma(a.x, a.x, fma(a.y, a.y, fma(a.z, a.z, a.w * a.w)));
            squares += is_there ? s : 0.0f;
            values[i] *= norm[i];
        }
        float x[8];
        skinny_take_values(values, x);
        float products[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        skinny_matrices::add(w, x, products, lane, sums.shared + sums.mate * own);
        for (uint i = 0; i < 2; i++)
            for (uint j = 0; j < 2; j++)
                sums.at[i][j] = fma(scales[i], products[i][j], sums.at[i][j]);
    }

    METAL_FUNC void normalise(uint in_dim, float eps) {
        for (uint bit = 1; bit < 32; bit *= 2)
            if (skinny_matrices::pair_bits & bit)
                squares += simd_shuffle_xor(squares, bit);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (pair == 0)
            sums.shared[sums.mate * tokens + token] = squares;
        sums.normalise(in_dim, eps);
    }
};

// 8 teams of a simdgroup; 9 with a norm, whose loads leave room for two turns at once: the 576 columns
// of a small model are 18 turns.
template <typename F, bool HasNorm> using skinny_tile =
    tile_skinny<typename F::skinny, HasNorm ? 9 : 8, HasNorm ? 2 : 3, HasNorm>;
