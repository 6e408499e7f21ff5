// tiles: the product of many rows of weights with many tokens, a tile of both per threadgroup: what
// the kernels of matvec, qkv_rope_append and gate_up_silu for large batches share.
//
// A threadgroup takes 32 columns at a time: it decodes the weights of its rows once, to floats in
// threadgroup memory, and puts the values of its tokens beside them. A thread multiplies R rows with
// T tokens from there, four columns at a time, so that R + T loads of a float4 feed 4 * R * T
// multiplications, whose sums are in registers. What the next 32 columns need is loaded before the
// multiplications begin and decoded after them.
//
// Where tiles are too few to fill a GPU, the columns are split too: each of S teams (tile_sums.h) takes
// every S-th 32 columns, with memory of its own.
//
// Both halves of the memory are rows of 8 float4 in 9: any 8 neighbours are in different banks.
#pragma once

#include "../prefetch.h"
#include "tile_sums.h"

// How tiles read a format. Threads of a team take 32 columns of a row, `lanes` threads per row:
//   fetch   what a thread keeps in registers until there is room for it
//   put     decodes it to the row's 8 float4

// Any format whose units are 32 weights (formats.h), decoded when they are loaded.
template <typename F, bool IsAhead = LOADS_AHEAD> struct tile_units {
    typedef typename F::block block;
    enum : uint { values = F::values, lanes = 1 };
    struct part {
        float4 v[8];
    };
    static METAL_FUNC part fetch(device const block *row, uint step, uint, uint) {
        part p;
        F::load(row, step, p.v);
        return p;
    }
    static METAL_FUNC void put(part p, uint, threadgroup float4 *at) {
        for (uint i = 0; i < 8; i++)
            at[i] = p.v[i];
    }
};

// On a Mac the registers have no room for 32 more floats: weights are loaded when they are needed.
template <typename F> struct tile_units<F, false> {
    typedef typename F::block block;
    enum : uint { values = F::values, lanes = 1 };
    struct part {
        device const block *row;
        uint step;
    };
    static METAL_FUNC part fetch(device const block *row, uint step, uint, uint) {
        const part p = {row, step};
        return p;
    }
    static METAL_FUNC void put(part p, uint, threadgroup float4 *at) {
        float4 v[8];
        F::load(p.row, p.step, v);
        for (uint i = 0; i < 8; i++)
            at[i] = v[i];
    }
};

// Floats, four at a time; rows need not be whole steps.
template <typename F> struct tile_floats {
    typedef typename F::block block;
    enum : uint { values = 1, lanes = 2 };
    struct part {
        float4 v[4];
    };
    static METAL_FUNC part fetch(device const block *row, uint step, uint in_dim, uint lane) {
        part p;
        for (uint i = 0; i < 4; i++) {
            const uint unit = 8 * step + 4 * lane + i;
            F::load(row, min(unit, in_dim / 4 - 1), &p.v[i]);
            p.v[i] = select(float4(0.0f), p.v[i], bool4(4 * unit < in_dim));
        }
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            at[4 * lane + i] = p.v[i];
    }
};

// Four values of a token from `at` on. The last 32 columns need not be whole, unless a format is in blocks.
template <bool IsWhole>
METAL_FUNC float4 take_values(device const float *token, uint at, uint in_dim) {
    const float4 v = *(device const float4 *)(token + (IsWhole ? at : min(at, in_dim - 4)));
    if (IsWhole)
        return float4(v.x, v.y, v.z, v.w); // a plain copy would be one in memory
    return select(float4(0.0f), v, bool4(at < in_dim));
}

// A tile of R * P rows and T * Q tokens: a team is P * Q threads.
template <typename F, uint R, uint T, uint P, uint Q, uint S, bool HasNorm> struct tile {
    typedef tile_sums<R, T, P, Q, S> Sums;
    enum : uint {
        rows = Sums::rows,
        tokens = Sums::tokens,
        team = Sums::team,
        wide = 9,
        memory = S * (rows + tokens) * wide, // float4 of a threadgroup
        parts = tokens * 8 / team,           // float4 of x per thread and step
        decoded = 1,                         // rows whose weights a thread decodes
    };
    static_assert(rows * F::lanes <= team && Sums::memory <= 4 * memory, "");

    Sums sums;
    threadgroup float4 *w;
    threadgroup float4 *x;
    float squares[HasNorm ? parts : 1];
    device const typename F::block *row[1];
    typename F::part weights;
    float4 values[parts];
    float4 norm;

    METAL_FUNC tile(threadgroup float4 *m, uint thread_index) {
        sums.shared = (threadgroup float *)m;
        sums.mate = S == 1 ? 0 : thread_index / team;
        sums.me = S == 1 ? thread_index : thread_index % team;
        sums.place = sums.me % P;
        sums.column = sums.me / P;
        sums.clear();
        w = m + sums.mate * ((rows + tokens) * wide);
        x = w + rows * wide;
        for (uint i = 0; i < (HasNorm ? parts : 1u); i++)
            squares[i] = 0.0f;
    }

    static METAL_FUNC void wait() {
        if (team == 32)
            simdgroup_barrier(mem_flags::mem_threadgroup);
        else
            threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // The slot whose weights this thread decodes, if it does.
    METAL_FUNC uint get_decoded(uint) const { return min(sums.me / F::lanes, uint(rows) - 1); }
    METAL_FUNC bool decodes() const {
        return uint(rows * F::lanes) == uint(team) || sums.me < rows * F::lanes;
    }

    // Loads the first weights, and nothing else; `row` is that of the slot that this thread decodes.
    METAL_FUNC void start(uint in_dim) {
        weights = F::fetch(row[0], min(sums.mate, (in_dim - 1) / 32), in_dim, sums.me % F::lanes);
    }

    // After start(). x_in (count, in_dim): the tokens from the first of the tile on; past the last one,
    // the last is repeated.
    METAL_FUNC void multiply(device const float *x_in, device const float *norm_w, uint in_dim,
                             uint count) {
        fetch_values(x_in, norm_w, min(sums.mate, (in_dim - 1) / 32), in_dim, count);
        for (uint turn = 0; 32 * turn < in_dim; turn += S)
            if (bring(turn, x_in, norm_w, in_dim, count))
                add();
        sums.add_up();
    }

    // Puts what was fetched for this turn into threadgroup memory, where all threads of the team may
    // then read it, and fetches what the next turn needs. False: the team has nothing to do in this
    // turn.
    METAL_FUNC bool bring(uint turn, device const float *x_in, device const float *norm_w,
                          uint in_dim, uint count) {
        const uint step = turn + sums.mate;
        const bool has_part = 32 * step < in_dim;
        wait();
        if (has_part)
            put();
        wait();
        if (32 * (step + S) < in_dim) {
            weights = F::fetch(row[0], step + S, in_dim, sums.me % F::lanes);
            fetch_values(x_in, norm_w, step + S, in_dim, count);
        }
        return has_part;
    }

    // No load depends on a condition: compilers then keep what is loaded in registers. (Threads that
    // decode nothing load weights that others load too.)
    METAL_FUNC void fetch_values(device const float *x_in, device const float *norm_w, uint step,
                                 uint in_dim, uint count) {
        const uint at = 32 * step + 4 * (sums.me % 8);
        for (uint i = 0; i < parts; i++)
            values[i] = take_values<F::values != 1>(
                x_in + min(sums.me / 8 + i * (team / 8), count - 1) * in_dim, at, in_dim);
        if (HasNorm) { // only formats in blocks of whole steps have one
            const float4 v = *(device const float4 *)(norm_w + at);
            norm = float4(v.x, v.y, v.z, v.w);
        }
    }

    METAL_FUNC void put() {
        threadgroup float4 *own = x + sums.me / 8 * wide + sums.me % 8;
        if (decodes())
            F::put(weights, sums.me % F::lanes, w + get_decoded(0) * wide);
        for (uint i = 0; i < parts; i++) {
            float4 v = values[i];
            if (HasNorm) {
                float s = squares[i];
                s = fma(v.x, v.x, s);
                s = fma(v.y, v.y, s);
                s = fma(v.z, v.z, s);
                squares[i] = fma(v.w, v.w, s);
                v *= norm;
            }
            own[i * (team / 8) * wide] = v;
        }
    }

    METAL_FUNC void add() {
        constexpr uint ahead = LOADS_AHEAD ? R : 1; // rows whose weights are loaded together
        for (uint k = 0; k < 8; k++) {
            float4 b[T];
            for (uint j = 0; j < T; j++)
                b[j] = x[(sums.column + Q * j) * wide + k];
            for (uint from = 0; from < R; from += ahead) {
                float4 a[ahead];
                for (uint i = 0; i < ahead; i++)
                    a[i] = w[sums.get_slot(from + i) * wide + k];
                for (uint i = 0; i < ahead; i++)
                    for (uint j = 0; j < T; j++) {
                        float s = fma(a[i].x, b[j].x, sums.at[from + i][j]);
                        s = fma(a[i].y, b[j].y, s);
                        s = fma(a[i].z, b[j].z, s);
                        sums.at[from + i][j] = fma(a[i].w, b[j].w, s);
                    }
            }
        }
    }

    METAL_FUNC void normalise(uint in_dim, float eps) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < parts; i++) {
            float s = squares[i];
            s += simd_shuffle_xor(s, 1);
            s += simd_shuffle_xor(s, 2);
            s += simd_shuffle_xor(s, 4);
            if (sums.me % 8 == 0)
                sums.shared[sums.mate * tokens + sums.me / 8 + i * (team / 8)] = s;
        }
        sums.normalise(in_dim, eps);
    }
};

// Large tiles use each decoded weight and each value of x most often; split ones are enough of them to
// fill a GPU with the matrices of a small model, or with few tokens. Tiles of 32 x 32 whose columns are
// split in two were slower than one or the other at every size (H200).
template <typename F, bool HasNorm> // 64 rows, 64 tokens, 128 threads
using large_tile = tile<F, 8, 4, 8, 16, 1, HasNorm>;
template <typename F, bool HasNorm> // 16 rows, 32 tokens, 4 teams of 32
using split_k_tile = tile<F, 4, 4, 4, 8, 4, HasNorm>;
