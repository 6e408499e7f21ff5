// tile_sums: the sums of a tile of rows and tokens, and how a threadgroup brings them together: what
// tile.h and skinny.h share.
//
// S teams of a threadgroup compute the same tile, each from a part of the columns, and add up in the
// end. Rows are numbered by slots: the thread at row place p of P has slots p, p + P, ... Which row of
// which matrix is in a slot is the kernel's business, so that a thread can have rows that belong
// together: a gate and its up, the two of a rotation.
#pragma once

// A tile of R * P rows and T * Q tokens: a team is P * Q threads.
template <uint R, uint T, uint P, uint Q, uint S> struct tile_sums {
    enum : uint {
        slots = R, // of a thread, which are this far apart:
        places = P,
        rows = R * P,
        tokens = T * Q,
        team = P * Q,
        threads = S * team,
        memory = S * R * T * team, // floats of a threadgroup that add_up needs, and the others less
        takers = S < T ? S : T,    // teams that have sums in the end
        kept = T / takers,         // of so many tokens per thread
    };
    static_assert(T % takers == 0 && tokens * rows <= memory, "");

    threadgroup float *shared;
    uint me, mate;      // in the team; which team
    uint place, column; // its rows and tokens
    float at[R][T];

    METAL_FUNC void clear() {
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < T; j++)
                at[i][j] = 0.0f;
    }

    // Slot i of this thread.
    METAL_FUNC uint get_slot(uint i) const { return place + P * i; }
    METAL_FUNC bool is_taker() const { return S == 1 || mate < takers; }
    // Which token of the tile at[..][j] belongs to, once they are added up.
    METAL_FUNC uint get_token(uint j) const { return column + Q * (S > 1 ? mate * kept + j : j); }

    // Each of the first teams takes the sums of all teams for `kept` of the tokens of a thread.
    METAL_FUNC void add_up() {
        if (S == 1)
            return;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < T; j++)
                shared[((mate * R + i) * T + j) * team + me] = at[i][j];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!is_taker())
            return;
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < kept; j++) {
                float s = 0.0f;
                for (uint m = 0; m < S; m++)
                    s += shared[((m * R + i) * T + mate * kept + j) * team + me];
                at[i][j] = s;
            }
    }

    // Divides the sums by the rms of their tokens, whose squares shared has: S times `tokens` of them.
    METAL_FUNC void normalise(uint in_dim, float eps) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!is_taker())
            return;
        for (uint j = 0; j < kept; j++) {
            float s = 0.0f;
            for (uint m = 0; m < S; m++)
                s += shared[m * tokens + get_token(j)];
            const float inverse = rsqrt(s / float(in_dim) + eps);
            for (uint i = 0; i < R; i++)
                at[i][j] *= inverse;
        }
    }

    // Puts the sums into threadgroup memory, (tokens, rows) in the order of slots, where all threads
    // may then read them.
    METAL_FUNC threadgroup const float *show() {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (is_taker())
            for (uint j = 0; j < kept; j++)
                for (uint i = 0; i < R; i++)
                    shared[get_token(j) * rows + get_slot(i)] = at[i][j];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        return shared;
    }
};
