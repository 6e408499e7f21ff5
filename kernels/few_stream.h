// few_stream: y = W x and y += W x for a few tokens and a large Q4_0 matrix, multiplied as matrices
// (few.h), the weights by way of threadgroup memory. Needs matvec_rows.h and q4_0_tiles.h.
//
// Of a large matrix, loads of two bytes from many rows cost more than the multiplication. So a
// simdgroup copies 128 columns of its rows at a time, 72 bytes of each, in loads of 8 bytes, all under
// way at once, while it multiplies those before. That needs rows of whole 8 bytes: in_dim is a multiple
// of 128.
#include "few.h"

// Four blocks of 32 rows on their way from device to threadgroup memory, as words, because an array of
// vectors is not kept in registers.
struct q4_0_columns {
    enum : uint {
        parts = 9, // uint2 of a row, and of a lane
        wide = 10, // in threadgroup memory, where any 8 rows are in different banks
    };
    uint words[2 * parts];

    // Where this lane's of the first columns are. Rows past the end are replaced by the last one.
    static METAL_FUNC void find(uint first_row, uint out_dim, uint in_dim, uint lane,
                                thread uint (&at)[parts]) {
        for (uint i = 0; i < parts; i++) {
            const uint row = min(first_row + (lane + 32 * i) / parts, out_dim - 1);
            at[i] = row * (in_dim / 128 * parts) + (lane + 32 * i) % parts;
        }
    }
    METAL_FUNC void take(device const uint2 *w, thread const uint (&at)[parts], uint chunk) {
        for (uint i = 0; i < parts; i++) {
            const uint2 v = w[at[i] + chunk * parts];
            words[2 * i] = v.x;
            words[2 * i + 1] = v.y;
        }
    }
    METAL_FUNC void put(threadgroup uint2 *to, uint lane) const {
        for (uint i = 0; i < parts; i++) {
            const uint part = lane + 32 * i;
            to[part / parts * wide + part % parts] = uint2(words[2 * i], words[2 * i + 1]);
        }
    }
};

// A lane's 8 weights of block b of those of a row, as few.h needs them, and their scale. Two blocks are
// 9 words.
inline float q4_0_decode_staged(threadgroup const uint *row, uint b, uint pair, uint some,
                                thread float *w) {
    threadgroup const uint *words = row + b / 2 * 9;
    const uint bytes = b % 2 ? words[5 + pair] : words[pair] >> 16u | words[pair + 1] << 16u;
    q4_0_few::decode_word(bytes, some, w);
    return float(((threadgroup const half *)words)[b % 2 * 9]);
}

// A threadgroup of 8 simdgroups computes 32 rows of 8 tokens, each from every eighth 128 columns. The
// registers leave room for a second threadgroup on a core: the next launch, which loads its weights
// meanwhile.
template <bool accumulate> [[max_total_threads_per_threadgroup(512)]] kernel void
matvec_few_stream(device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
                  device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
                  constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
                  uint2 group [[threadgroup_position_in_grid]],
                  uint sg [[simdgroup_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
    typedef tile_sums<4, 2, 8, 4, 8> Sums;
    const uint room = 32 * q4_0_columns::wide; // of a simdgroup
    threadgroup uint2 memory[8 * room];
    threadgroup float scratch[8 * few_matrices::memory + 1];
    static_assert(Sums::memory <= 2 * 8 * room, "");
    threadgroup uint2 *own = memory + sg * room;
    device const uint2 *from = (device const uint2 *)w;
    const uint first_row = group.x * 32;
    const uint first = group.y * 8;
    const uint last = in_dim / 128 - 1;
    uint at[q4_0_columns::parts];
    q4_0_columns::find(first_row, out_dim, in_dim, lane, at);
    q4_0_columns now, next;
    now.take(from, at, min(sg, last));
    next.take(from, at, min(sg + 8, last));
    now.put(own, lane);
    EARLY_LOADS(1);
    Sums sums;
    sums.shared = (threadgroup float *)memory;
    sums.mate = sg;
    sums.me = lane;
    sums.place = few_matrices::get_row(lane);
    const uint pair = few_matrices::get_pair(lane);
    sums.column = pair;
    sums.clear();
    const uint token = min(first + sums.place / 2 + sums.place % 2 * 4, batch - 1);
    device const float *mine = x + size_t(token) * in_dim + 4 * pair;
    float4 v[2][2]; // of this block and the next one
    for (uint b = 0; b < 2; b++)
        for (uint i = 0; i < 2; i++)
            v[b][i] = *(device const float4 *)(mine + min(sg, last) * 128 + 32 * b + 16 * i);
    for (uint chunk = sg; chunk <= last; chunk += 8) {
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint b = 0; b < 4; b++) {
            float values[8];
            const uint then = (b < 2 ? chunk : min(chunk + 8, last)) * 128 + 32 * ((b + 2) % 4);
            for (uint i = 0; i < 2; i++) {
                thread float4 &a = v[b % 2][i];
                values[4 * i] = a.x;
                values[4 * i + 1] = a.y;
                values[4 * i + 2] = a.z;
                values[4 * i + 3] = a.w;
                a = *(device const float4 *)(mine + then + 16 * i);
            }
            simdgroup_barrier(mem_flags::mem_none); // or compilers load where the value is needed
            for (uint m = 0; m < 2; m++) {
                float weights[2][8];
                float scales[2];
                for (uint i = 0; i < 2; i++) {
                    threadgroup const uint *row = (threadgroup const uint *)own +
                                                  sums.get_slot(2 * m + i) * 2 * q4_0_columns::wide;
                    scales[i] = q4_0_decode_staged(row, b, pair, in_dim, weights[i]);
                }
                float products[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
                few_matrices::add(weights, values, products, lane,
                                  scratch + sg * uint(few_matrices::memory));
                for (uint i = 0; i < 2; i++)
                    for (uint j = 0; j < 2; j++)
                        sums.at[2 * m + i][j] =
                            fma(scales[i], products[i][j], sums.at[2 * m + i][j]);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        next.put(own, lane);
        next.take(from, at, min(chunk + 16, last));
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
    [[host_name("multi_token_matvec_q4_0_tiled_stream")]] kernel decltype(matvec_few_stream<false>)
        matvec_few_stream<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_stream")]] kernel decltype(matvec_few_stream<true>)
    matvec_few_stream<true>;
