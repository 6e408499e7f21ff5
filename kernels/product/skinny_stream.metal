// skinny_stream: y = W x and y += W x for a few tokens and a large Q4_0 matrix, multiplied as matrices
// (skinny.h), the weights by way of threadgroup memory.
//
// Of a large matrix, loads of two bytes from many rows cost more than the multiplication. So a
// simdgroup copies 64 columns of its rows at a time, 9 words of each, all under way at once, while
// it multiplies those before. That needs rows of whole words: in_dim is a multiple of 64.
#include <metal_stdlib>
using namespace metal;

#include "../prefetch.h"
#include "skinny_words.h"
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

// What a lane multiplies with its values of a turn: as skinny.h does it, in floats.
struct skinny_floats {
    enum : uint { memory = skinny_matrices::memory };
    threadgroup float *own;
    uint some;
    float values[8];

    METAL_FUNC skinny_floats(uint argument, threadgroup float *scratch) {
        some = argument;
        own = scratch;
    }
    // The values of a turn: of columns 4 * pair to 3 after it, and of 16 after those.
    METAL_FUNC void take(thread const float4 (&v)[2]) { skinny_take_values(v, values); }
    // Adds the products. words: the nibbles of a lane's weights, of its two rows.
    METAL_FUNC void add(thread const uint (&words)[2], thread float (&sums)[2][2],
                        uint lane) const {
        float weights[2][8];
        for (uint r = 0; r < 2; r++)
            q4_0_skinny::decode_word(words[r], some, weights[r]);
        skinny_matrices::add(weights, values, sums, lane, own);
    }
};

// A threadgroup of 16 simdgroups computes 32 rows of 8 tokens, each from every sixteenth 64
// columns.
template <bool accumulate> [[max_total_threads_per_threadgroup(512)]] kernel void
matvec_skinny_stream(MATVEC_ARGUMENTS(block_q4_0), constant uint &batch [[buffer(5)]],
                     uint2 group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    enum : uint { S = 16, room = 32 * q4_0_columns::wide }; // simdgroups, and words of each
    typedef tile_sums<4, 2, 8, 4, S> Sums;
    threadgroup uint memory[S * room];
    threadgroup float scratch[S * skinny_floats::memory + 1];
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
    skinny_floats p(in_dim, scratch + sg * uint(skinny_floats::memory));
    skinny_values now, later;
    now.load(mine, min(sg, last));
    for (uint chunk = sg; chunk <= last; chunk += S) {
        // Loads before the barrier: after it, compilers would put them next to what needs them.
        later.load(mine, min(chunk + S, last));
        simdgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup const uint *rows[Sums::slots];
        for (uint i = 0; i < Sums::slots; i++)
            rows[i] = own + sums.get_slot(i) * q4_0_columns::wide;
        for (uint b = 0; b < 2; b++) {
            p.take(now.v[b]);
            skinny_add(p, rows, b, sums.column, lane, sums.at);
        }
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

template
    [[host_name("multi_token_matvec_q4_0_tiled_stream")]] kernel decltype(matvec_skinny_stream<false>)
        matvec_skinny_stream<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_stream")]] kernel decltype(matvec_skinny_stream<true>)
    matvec_skinny_stream<true>;
