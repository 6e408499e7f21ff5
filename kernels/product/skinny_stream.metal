// skinny_stream: y = W x and y += W x for a few tokens and a large Q4_0 matrix, multiplied as matrices
// (skinny.h), the weights by way of threadgroup memory.
//
// Of a large matrix, loads of two bytes from many rows cost more than the multiplication. So a
// simdgroup copies 64 columns of its rows at a time, 9 words of each, all under way at once, while
// it multiplies those before. That needs rows of whole words: in_dim is a multiple of 64.
#include <metal_stdlib>
using namespace metal;

#include "../prefetch.h"
#include "../formats/q4_0.h"
#include "skinny.h"
#include "row.h"

// Two blocks of 32 rows on their way from device to threadgroup memory.
struct q4_0_columns {
    enum : uint {
        parts = 9, // words of a row, and of a lane
        wide = 12, // in threadgroup memory, where any 8 rows are in different banks
    };
    uint at[parts]; // where those of the first columns are
    uint words[parts];

    // Rows past the end are replaced by the last one.
    METAL_FUNC void start(uint first_row, uint out_dim, uint in_dim, uint lane) {
        for (uint i = 0; i < parts; i++) {
            const uint row = min(first_row + (lane + 32 * i) / parts, out_dim - 1);
            at[i] = row * (in_dim / 64 * parts) + (lane + 32 * i) % parts;
        }
    }
    METAL_FUNC void take(device const uint *w, uint chunk) {
        for (uint i = 0; i < parts; i++)
            words[i] = w[at[i] + chunk * parts];
    }
    METAL_FUNC void put(threadgroup uint *to, uint lane) const {
        for (uint i = 0; i < parts; i++)
            to[(lane + 32 * i) / parts * wide + (lane + 32 * i) % parts] = words[i];
    }
};

// A lane's values of 64 columns of a token: of two turns.
struct skinny_values {
    float4 v[2][2];

    METAL_FUNC void load(device const float *mine, uint chunk) {
        for (uint i = 0; i < 4; i++)
            v[i / 2][i % 2] = *(device const float4 *)(mine + chunk * 64 + 16 * i);
    }
};

// Adds the products of a turn, block b of two, whose 9 words are at rows[i], of the N rows of a lane.
template <uint N> METAL_FUNC void skinny_add(thread const float4 (&v)[2],
                                             threadgroup const uint *const thread (&rows)[N],
                                             uint b, uint pair, uint some, uint lane,
                                             threadgroup float *own, thread float (&sums)[N][2]) {
    float values[8], weights[2][8];
    skinny_take_values(v, values);
    for (uint i = 0; i < N; i += 2) {
        float turn[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        for (uint r = 0; r < 2; r++)
            q4_0_skinny::decode_word(q4_0_get_word(rows[i + r] + pair, b), some, weights[r]);
        skinny_matrices::add(weights, values, turn, lane, own);
        for (uint r = 0; r < 2; r++) {
            const float scale = float(((threadgroup const half *)rows[i + r])[9 * b]);
            sums[i + r][0] = fma(scale, turn[r][0], sums[i + r][0]);
            sums[i + r][1] = fma(scale, turn[r][1], sums[i + r][1]);
        }
    }
}

// A threadgroup of 16 simdgroups computes 32 rows of 8 tokens, each from every sixteenth 64
// columns.
template <bool accumulate> [[max_total_threads_per_threadgroup(512)]] kernel void
matvec_skinny_stream(MATVEC_ARGUMENTS(block_q4_0), constant uint &batch [[buffer(5)]],
                     uint2 group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    enum : uint { S = 16, room = 32 * q4_0_columns::wide }; // simdgroups, and words of each
    typedef tile_sums<4, 2, 8, 4, S> Sums;
    threadgroup uint memory[S * room];
    threadgroup float scratch[S * skinny_matrices::memory + 1];
    static_assert(Sums::memory <= S * room, "");
    threadgroup uint *own = memory + sg * room;
    device const uint *from = (device const uint *)w;
    const uint first_row = group.x * 32;
    const uint first = group.y * 8;
    const uint last = in_dim / 64 - 1;
    q4_0_columns first_columns, next;
    first_columns.start(first_row, out_dim, in_dim, lane);
    next.start(first_row, out_dim, in_dim, lane);
    first_columns.take(from, min(sg, last));
    next.take(from, min(sg + S, last));
    first_columns.put(own, lane);
    PREFETCHED(1);
    Sums sums;
    const uint token = skinny_find_place(sums, (threadgroup float *)memory, sg, lane);
    device const float *mine = x + size_t(min(first + token, batch - 1)) * in_dim + 4 * sums.column;
    threadgroup float *matrices = scratch + sg * uint(skinny_matrices::memory);
    skinny_values now, later;
    now.load(mine, min(sg, last));
    for (uint chunk = sg; chunk <= last; chunk += S) {
        // Loads before the barrier: after it, compilers would put them next to what needs them.
        later.load(mine, min(chunk + S, last));
        simdgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup const uint *rows[Sums::slots];
        for (uint i = 0; i < Sums::slots; i++)
            rows[i] = own + sums.get_slot(i) * q4_0_columns::wide;
        for (uint b = 0; b < 2; b++)
            skinny_add(now.v[b], rows, b, sums.column, in_dim, lane, matrices, sums.at);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        next.put(own, lane);
        next.take(from, min(chunk + 2 * S, last));
        now = later;
    }
    sums.add_up();
    if (!sums.is_taker())
        return;
    for (uint j = 0; j < Sums::kept; j++)
        for (uint i = 0; i < Sums::slots; i++) {
            const uint r = first_row + sums.get_slot(i);
            const uint t = first + sums.get_token(j);
            if (t < batch && r < out_dim)
                put<accumulate>(y + size_t(t) * out_dim + r, sums.at[i][j]);
        }
}

KERNEL("multi_token_matvec_q4_0_tiled_stream", matvec_skinny_stream<false>)
KERNEL("multi_token_matvec_q4_0_accumulate_tiled_stream", matvec_skinny_stream<true>)
