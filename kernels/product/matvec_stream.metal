// matvec_stream: y = W x and y += W x for one token by way of threadgroup memory, for GPUs whose
// memory is fast.
//
// Blocks that are only 2-byte aligned cost more to load than to multiply, and lanes that load
// blocks of their own do not load neighbours. But several blocks are whole uint4s: where a row is,
// a simdgroup loads chunks of columns of its rows in loads of 16 bytes, neighbour by neighbour, two
// chunks under way at once, and hands each over through threadgroup memory: a lane gets a run of
// weights of each row. x is in threadgroup memory too, once for all simdgroups.
//
// H is a format by such runs:
//   H::columns   of a chunk
//   H::quads     uint4s of a row's chunk
//   H::rows      of a simdgroup
//   H::words     of a run, which H::take takes from the copy of a row's chunk; 0: a run is what a
//                lane loads itself, and there is no copy
//   H::spans     chunks of x at a time
//   H::moved     if its words are half a word off in every other block of 32: so many of their
//                values of x are moved by two places, or 0
//   H::x_quads   float4s of a chunk of x in threadgroup memory, where lanes do not meet in a bank:
//                H::put_x puts them there, that of a thread from each 256 of them
//   H::add       adds the products of the runs of H::rows rows, without columns that are not left
#include <metal_stdlib>
using namespace metal;

#include "../prefetch.h"
#include "row.h"
#include "../opaque.h"
#include "../formats/floats.h"
#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q6_k.h"
#include "../formats/q8_0.h"
#include "scatter_sums.h"

// Formats as the kernels below read them.

// Q4_0. A lane takes two blocks, 9 words. The words of the first one are half a word
// off: its first two bytes and its last two make one word, which comes first. The values of x are
// in the order of the words, ready for pairs of nibbles (nibbles.h), and after them is what is too
// much of sum((16 + n) * x) for each four of them.
struct q4_0_runs {
    typedef block_q4_0 block;
    enum : uint { columns = 2048, quads = 72, rows = 4, words = 9, moved = 16 };
    enum : uint { spans = 2, x_quads = 704 };

    static METAL_FUNC void take(threadgroup const uint4 *copy, uint lane, thread uint *run) {
        for (uint i = 0; i < 9; i++)
            run[i] = ((threadgroup const uint *)copy)[9 * lane + i];
    }

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint turn, uint at) {
        v.xy = fma(v.zw, float2(-0x1p-16f), v.xy);
        to[272 * turn + at / 16 * 17 + at % 16] = v;
        ((threadgroup float *)(to + 544))[320 * turn + at / 16 * 20 + at % 16] =
            fma(v.z + v.w, 24.0f + PAIR_MORE + 0x1p-13f, 24.0f * (v.x + v.y));
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const float4 *x, uint lane,
                               uint left, thread float *sums) {
        if (lane * 64 >= left)
            return;
        const pair_form form = get_full_pairs(left + lane);
        threadgroup const float4 *v = x + 17 * lane;
        for (uint block = 0; block < 2; block++) {
            float low_dots[rows] = {};
            float high_dots[rows] = {};
            for (uint i = 0; i < 4; i++) {
                const float4 low = v[8 * block + i];
                const float4 high = v[8 * block + i + 4];
                for (uint r = 0; r < rows; r++) {
                    thread const uint *run = runs + r * words;
                    const uint split = (run[0] & 0xFFFF0000u) | (run[4] & 0xFFFFu);
                    add_pairs(block == 0 && i == 0 ? split : run[4 * block + i + block], form, low,
                              high, low_dots[r], high_dots[r]);
                }
            }
            const float4 parts = x[544 + 5 * lane + 2 * block] + x[545 + 5 * lane + 2 * block];
            const float more = (parts.x + parts.y) + (parts.z + parts.w);
            for (uint r = 0; r < rows; r++) {
                const uint bits = block == 0 ? runs[r * words] : runs[r * words + 4] >> 16u;
                sums[r] +=
                    float(as_type<half>(ushort(bits))) * ((low_dots[r] + high_dots[r]) - more);
            }
        }
    }
};

// Q8_0. A lane takes two blocks, 17 words. The words of the first one are half a
// word off: its first two bytes and its last two make one word, which comes first. The values of x
// are in the order of the words.
struct q8_0_runs {
    typedef block_q8_0 block;
    enum : uint { columns = 2048, quads = 136, rows = 2, words = 17, moved = 32 };
    enum : uint { spans = 1, x_quads = 544 };

    static METAL_FUNC void take(threadgroup const uint4 *copy, uint lane, thread uint *run) {
        for (uint i = 0; i < 17; i++)
            run[i] = ((threadgroup const uint *)copy)[17 * lane + i];
    }

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint turn, uint at) {
        to[272 * turn + at / 16 * 17 + at % 16] = v;
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const float4 *x, uint lane,
                               uint left, thread float *sums) {
        if (lane * 64 >= left)
            return;
        const uint exponents = get_signed_1024s(left + lane);
        threadgroup const float4 *v = x + 17 * lane;
        for (uint block = 0; block < 2; block++) {
            float even_dots[rows] = {};
            float odd_dots[rows] = {};
            for (uint i = 0; i < 8; i++) {
                const float4 values = v[8 * block + i];
                for (uint r = 0; r < rows; r++) {
                    thread const uint *run = runs + r * words;
                    const uint split = (run[0] & 0xFFFF0000u) | (run[8] & 0xFFFFu);
                    const uint word = block == 0 && i == 0 ? split : run[8 * block + i + block];
                    const half2 even = signed_bytes(word, exponents);
                    const half2 odd = signed_bytes(word >> 8u, exponents);
                    even_dots[r] = fma(float(even.x), values.x, even_dots[r]);
                    odd_dots[r] = fma(float(odd.x), values.y, odd_dots[r]);
                    even_dots[r] = fma(float(even.y), values.z, even_dots[r]);
                    odd_dots[r] = fma(float(odd.y), values.w, odd_dots[r]);
                }
            }
            for (uint r = 0; r < rows; r++) {
                const uint bits = block == 0 ? runs[r * words] : runs[r * words + 8] >> 16u;
                sums[r] += float(as_type<half>(ushort(bits))) * (even_dots[r] + odd_dots[r]);
            }
        }
    }
};

// Q4_K. A lane takes a quarter of a block: 32 bytes, whose low nibbles are one part
// of 32 weights and whose high nibbles are the next. The values of x are ready for pairs of nibbles
// (nibbles.h), and after them are the sums of each four.
struct q4_k_runs {
    typedef block_q4_k block;
    enum : uint { columns = 2048, quads = 72, rows = 4, words = 10, moved = 0 };
    enum : uint { spans = 2, x_quads = 704 };

    // d and dmin, get_scales, the nibbles.
    static METAL_FUNC void take(threadgroup const uint4 *copy, uint lane, thread uint *run) {
        threadgroup const uint4 *b = copy + lane / 4 * 9;
        const uint4 head = b[0];
        run[0] = head.x;
        run[1] = get_scales(head, lane);
        for (uint i = 0; i < 2; i++) {
            const uint4 n = b[1 + lane % 4 * 2 + i];
            run[4 * i + 2] = n.x;
            run[4 * i + 3] = n.y;
            run[4 * i + 4] = n.z;
            run[4 * i + 5] = n.w;
        }
    }

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint turn, uint at) {
        ((threadgroup float *)(to + 544))[320 * turn + at / 16 * 20 + at % 16] =
            (v.x + v.y) + (v.z + v.w);
        v.xy = fma(v.zw, float2(-0x1p-16f), v.xy);
        to[272 * turn + at / 16 * 17 + at % 16] = v;
    }

    // As bytes: the scale of a lane's first part and of its second, and their minima.
    static METAL_FUNC uint get_scales(uint4 head, uint lane) {
        const uint4 own = head >> (lane % 2 * 16u);
        const uint six = (own.y & 0xFFFFu) | own.z << 16u; // and upper bits of later parts
        const uint lower = (own.w & 0x0F0Fu) | (own.w & 0xF0F0u) << 12u;
        const uint early = six & 0x3F3F3F3Fu;
        const uint late = lower | (six >> 2u & 0x30303030u);
        const uint is_late = 0u - lane % 4 / 2; // all bits: no branch
        return (early & ~is_late) | (late & is_late);
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const float4 *x, uint lane,
                               uint left, thread float *sums) {
        if (lane * 64 >= left)
            return;
        const pair_form form = get_even_pairs(left + lane);
        threadgroup const float4 *v = x + 17 * lane;
        threadgroup const float2 *parts = (threadgroup const float2 *)(x + 544 + 5 * lane);
        float low_dots[rows] = {};
        float high_dots[rows] = {};
        float low_total = 0.0f;
        float high_total = 0.0f;
        for (uint i = 0; i < 8; i++) {
            if (i % 2 == 0) { // before dots become so large that they lose digits
                const float2 low_part = parts[i / 2];
                const float2 high_part = parts[4 + i / 2];
                low_total += low_part.x + low_part.y;
                high_total += high_part.x + high_part.y;
                for (uint r = 0; r < rows; r++) {
                    low_dots[r] = fma(low_part.x + low_part.y, -16.0f, low_dots[r]);
                    high_dots[r] = fma(high_part.x + high_part.y, -16.0f, high_dots[r]);
                }
            }
            const float4 low = v[i];
            const float4 high = v[8 + i];
            for (uint r = 0; r < rows; r++)
                add_pairs(runs[r * words + 2 + i], form, low, high, low_dots[r], high_dots[r]);
        }
        const uint exponents = get_1024s(left + lane);
        for (uint r = 0; r < rows; r++) {
            const uint bytes = runs[r * words + 1];
            const half2 d = as_type<half2>(runs[r * words]);
            const half2 first = plain_bytes(bytes, exponents); // scale and minimum
            const half2 second = plain_bytes(bytes >> 8u, exponents);
            sums[r] +=
                float(d.x) * (float(first.x) * low_dots[r] + float(second.x) * high_dots[r]) -
                float(d.y) * (float(first.y) * low_total + float(second.y) * high_total);
        }
    }
};

// Q6_K. A lane takes 16 bytes of half of half a block, which are 16 weights of each
// of its quarters. Every other block is half a word off.
struct q6_k_runs {
    typedef block_q6_k block;
    enum : uint { columns = 2048, quads = 105, rows = 2, words = 14, moved = 0 };
    enum : uint { spans = 2, x_quads = 528 };

    // Words from a byte of the copy on, which is a multiple of 2.
    template <uint N>
    static METAL_FUNC void take_words(threadgroup const uint4 *copy, uint byte, thread uint *to) {
        threadgroup const uint *from = (threadgroup const uint *)copy + byte / 4;
        const uint shift = byte % 4 * 8;
        uint all[N + 1];
        for (uint i = 0; i < N + 1; i++)
            all[i] = from[i];
        for (uint i = 0; i < N; i++)
            to[i] = uint((ulong(all[i + 1]) << 32u | all[i]) >> shift);
    }

    // Lower bits of quarters 0 and 2, those of 1 and 3, upper bits; the four scales as bytes; d.
    static METAL_FUNC void take(threadgroup const uint4 *copy, uint lane, thread uint *run) {
        const uint first = 210 * (lane / 4);
        const uint half_block = lane % 4 / 2;
        const uint low = first + 64 * half_block + 16 * (lane % 2);
        take_words<4>(copy, low, run);
        take_words<4>(copy, low + 32, run + 4);
        take_words<4>(copy, first + 128 + 32 * half_block + 16 * (lane % 2), run + 8);
        uint scales[2]; // of both lanes that share them
        take_words<2>(copy, first + 192 + 8 * half_block, scales);
        const uint shift = lane % 2 * 8;
        run[12] = (scales[0] >> shift & 0x00FF00FFu) | (scales[1] >> shift & 0x00FF00FFu) << 8u;
        run[13] = ((threadgroup const ushort *)copy)[(first + 208) / 2];
    }

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint turn, uint at) {
        to[264 * turn + at + at / 32] = v;
    }

    // 6 bits of bytes 0 and 2: n - 32 where they are the first ones of a byte, with the lower four
    // in `low` and the upper two in `high`; 16 times that where they begin with its fifth.
    static METAL_FUNC half2 join_low(uint low, uint high, uint exponents) {
        return as_type<half2>((low & 0x000F000Fu) | exponents | (high & 0x00300030u)) -
               half2(1056.0h);
    }
    static METAL_FUNC half2 join_high(uint low, uint high, uint exponents) {
        return as_type<half2>((low & 0x00F000F0u) | exponents | (high & 0x03000300u)) -
               half2(1536.0h);
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const float4 *x, uint lane,
                               uint left, thread float *sums) {
        if (lane * 64 >= left)
            return;
        const uint exponents = get_1024s(left + lane);
        threadgroup const float4 *v = x + lane / 4 * 66 + lane % 4 / 2 * 33 + lane % 2 * 4;
        float dots[rows][4] = {};
        for (uint i = 0; i < 4; i++) {
            const float4 values[4] = {v[i], v[8 + i], v[16 + i], v[24 + i]};
            for (uint r = 0; r < rows; r++) {
                thread const uint *run = runs + r * words;
                const uint even = run[i], odd = run[4 + i], high = run[8 + i];
                for (uint byte = 0; byte < 2; byte++) { // and the one after the next
                    const uint a = even >> (8 * byte), b = odd >> (8 * byte);
                    const uint up4 = byte == 0 ? high << 4u : high >> 4u;
                    const uint up2 = byte == 0 ? high << 2u : high >> 6u;
                    const half2 w[4] = {join_low(a, up4, exponents), join_low(b, up2, exponents),
                                        join_high(a, up4, exponents), join_high(b, up2, exponents)};
                    for (uint q = 0; q < 4; q++) {
                        dots[r][q] = fma(float(w[q].x), values[q][byte], dots[r][q]);
                        dots[r][q] = fma(float(w[q].y), values[q][byte + 2], dots[r][q]);
                    }
                }
            }
        }
        const uint signs = get_signed_1024s(left + lane);
        for (uint r = 0; r < rows; r++) {
            const uint bytes = runs[r * words + 12];
            const half2 first = signed_bytes(bytes, signs);
            const half2 second = signed_bytes(bytes >> 8u, signs);
            const float d = float(as_type<half>(ushort(runs[r * words + 13])));
            sums[r] +=
                d * ((float(first.x) * dots[r][0] + float(first.y) * dots[r][1]) +
                     0.0625f * (float(second.x) * dots[r][2] + float(second.y) * dots[r][3]));
        }
    }
};

// F16. A lane takes 8 neighbours of each 256, as it loads them. Values of x are in
// the order of the lanes: the first four of each, then the others.
struct f16_runs {
    typedef half block;
    enum : uint { columns = 1024, quads = 128, rows = 2, words = 0, moved = 0, spans = 4 };
    enum : uint { x_quads = 256 };

    static METAL_FUNC void take(threadgroup const uint4 *, uint, thread uint *) {}

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint, uint at) {
        to[at / 64 * 64 + at % 2 * 32 + at % 64 / 2] = v;
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const float4 *x, uint lane,
                               uint left, thread float *sums) {
        for (uint i = 0; i < 4; i++) {
            const float4 first = x[64 * i + lane];
            const float4 second = x[64 * i + 32 + lane];
            for (uint r = 0; r < rows; r++) {
                thread const uint *run = runs + 16 * r + 4 * i;
                const float4 a =
                    float4(float2(as_type<half2>(run[0])), float2(as_type<half2>(run[1])));
                const float4 b =
                    float4(float2(as_type<half2>(run[2])), float2(as_type<half2>(run[3])));
                const float4 dots = fma(b, second, a * first);
                const float sum = (dots.x + dots.y) + (dots.z + dots.w);
                sums[r] += 256 * i + 8 * lane < left ? sum : 0.0f;
            }
        }
    }
};

enum : uint { STREAM_TEAMS = 8 };

// A chunk of several rows as lanes load it: of each row as many whole loads as there are, then one
// load for what is left of all of them. Words, because an array of vectors is not kept in
// registers.
template <typename H> struct stream_chunk {
    enum : uint {
        whole = H::quads / 32,
        left = H::quads % 32,
        loads = H::rows * whole + (left > 0)
    };
    enum : uint { lanes_left = left > 0 ? left : 32 }; // for a row's part of the last load
    enum : uint { copies = H::words > 0 };
    enum : uint { copy_quads = copies ? H::quads : 1 };
    enum : uint { run_words = copies ? H::rows * H::words : 4 * loads };
    uint words[4 * loads];

    METAL_FUNC void load_one(uint i, device const uint4 *from) {
        const uint4 v = *from;
        words[4 * i] = v.x;
        words[4 * i + 1] = v.y;
        words[4 * i + 2] = v.z;
        words[4 * i + 3] = v.w;
    }
    // Rows past the end are replaced by the last one. The last chunk of a row may be shorter: what
    // is loaded past its end is not used. Where the rows are is found anew for each chunk
    // (opaque.h), because there are no registers to remember it in.
    METAL_FUNC void load(device const uint4 *w, uint first_row, uint out_dim, uint in_dim,
                         uint chunk, uint lane) {
        const uint row_quads = in_dim * H::quads / H::columns;
        const uint last = out_dim * row_quads - 1;
        const uint first = opaque(first_row, chunk);
        const uint further = chunk * H::quads;
        for (uint r = 0; r < H::rows; r++) {
            const uint at = min(first + r, out_dim - 1) * row_quads + further + lane;
            for (uint i = 0; i < whole; i++)
                load_one(r * whole + i, w + min(at + 32 * i, last));
        }
        const uint row = min(first + min(lane / lanes_left, H::rows - 1u), out_dim - 1);
        const uint at = row * row_quads + further + 32 * whole + lane % lanes_left;
        if (left > 0)
            load_one(H::rows * whole, w + min(at, last));
    }

    METAL_FUNC void put_one(uint i, threadgroup uint4 *to) const {
        *to = uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    // Hands the runs of this lane over, row by row. All lanes of a simdgroup call this.
    METAL_FUNC void hand_over(threadgroup uint4 *copy, uint lane, thread uint *runs) const {
        threadgroup uint4 *mine = copy + lane;
        threadgroup uint4 *mine_left = copy + 32 * whole + lane % lanes_left;
        for (uint i = 0; !copies && i < run_words; i++)
            runs[i] = words[i];
        for (uint r = 0; copies && r < H::rows; r++) {
            for (uint i = 0; i < whole; i++)
                put_one(r * whole + i, mine + 32 * i);
            if (left > 0 && lane / lanes_left == r)
                put_one(H::rows * whole, mine_left);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            H::take(copy, lane, runs + r * H::words);
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
};

// A span of x as the threads of a threadgroup load it.
template <typename H> struct stream_input {
    enum : uint { threads = 32 * STREAM_TEAMS, turns = H::spans * H::columns / 4 / threads };
    enum : uint { turns_of_chunk = turns / H::spans };
    float values[4 * turns]; // see stream_chunk

    // Past the end of x its last values are loaded again: they are not used.
    METAL_FUNC void load(device const float *x, uint column, uint in_dim, uint thread_index) {
        enum : uint { ring = H::moved > 0 ? H::moved / 2 : 1 }; // pairs
        const bool is_moved = H::moved > 0 && thread_index % 16 < 8;
        const uint pair = 2 * thread_index;
        const uint first = is_moved ? pair / ring * ring + (pair + ring - 1) % ring : pair;
        const uint second = is_moved ? pair : pair + 1;
        for (uint i = 0; i < turns; i++) {
            float4 v;
            if (H::moved > 0) {
                device const float2 *from = (device const float2 *)x;
                const uint at = column / 2 + 2 * threads * i;
                v = float4(from[min(at + first, in_dim / 2 - 1)],
                           from[min(at + second, in_dim / 2 - 1)]);
            } else {
                v = ((device const float4 *)
                         x)[min(column / 4 + thread_index + threads * i, in_dim / 4 - 1)];
            }
            values[4 * i] = v.x;
            values[4 * i + 1] = v.y;
            values[4 * i + 2] = v.z;
            values[4 * i + 3] = v.w;
        }
    }
    METAL_FUNC void put(threadgroup float4 *to, uint thread_index) const {
        for (uint i = 0; i < turns; i++) {
            const float4 v =
                float4(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
            H::put_x(v, to + i / turns_of_chunk * H::x_quads, i % turns_of_chunk, thread_index);
        }
    }
};

// A tile is 8 * H::rows rows, and a threadgroup of 256 computes as many as there are for it: its
// simdgroups go through the chunks of H::rows rows, then through those of the next tile, always one
// ahead with their loads. Two threadgroups, of this launch or of this and the next, are to find
// room on a core: hence 512.
template <typename H, bool accumulate> [[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_stream(MATVEC_ARGUMENTS(typename H::block), uint group [[threadgroup_position_in_grid]],
              uint groups [[threadgroups_per_grid]], THREAD_PLACE) {
    typedef stream_chunk<H> chunk_of;
    threadgroup uint4 copies[STREAM_TEAMS * chunk_of::copy_quads];
    threadgroup float4 all_x[H::spans * H::x_quads];
    device const uint4 *from = (device const uint4 *)w;
    threadgroup uint4 *copy = copies + sg * chunk_of::copy_quads;
    const uint step = groups * STREAM_TEAMS * H::rows; // rows from tile to tile
    const uint mine = sg * H::rows;
    const uint part = lane / (32 / H::rows);
    const bool is_first = lane % (32 / H::rows) == 0;
    uint tile = group * STREAM_TEAMS * H::rows; // its first row
    uint column = 0;
    chunk_of now, next;
    now.load(from, tile + mine, out_dim, in_dim, 0, lane);
    const bool is_one = H::columns >= in_dim; // chunk
    next.load(from, is_one ? tile + step + mine : tile + mine, out_dim, in_dim, is_one ? 0 : 1,
              lane);
    PREFETCHED(1);
    float before = 0.0f;
    uint runs[chunk_of::run_words];
    float sums[H::rows] = {};
    stream_input<H> some_x;
    some_x.load(x, 0, in_dim, thread_index);
    now.hand_over(copy, lane, runs);
    some_x.put(all_x, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool is_ahead = H::spans == 1; // few enough to be kept until they are needed
    if (is_ahead && H::columns < in_dim)
        some_x.load(x, H::columns, in_dim, thread_index);
    for (;;) {
        const uint row = tile + mine + part;
        if (accumulate && column == 0 && is_first && row < out_dim)
            before = y[row];
        H::add(runs, all_x + column / H::columns % H::spans * H::x_quads, lane, in_dim - column,
               sums);
        column += H::columns;
        if (column >= in_dim) {
            scatter<H::rows>::sum(sums, lane);
            if (is_first && row < out_dim)
                y[row] = before + sums[0];
            for (uint r = 0; r < H::rows; r++)
                sums[r] = 0.0f;
            column = 0;
            tile += step;
            if (tile >= out_dim)
                return;
        }
        next.hand_over(copy, lane, runs);
        const bool is_last = column + H::columns >= in_dim;
        if (!is_last || tile + step < out_dim)
            next.load(from, (is_last ? tile + step : tile) + mine, out_dim, in_dim,
                      is_last ? 0 : column / H::columns + 1, lane);
        if (in_dim > H::spans * H::columns && column % (H::spans * H::columns) == 0) {
            if (!is_ahead)
                some_x.load(x, column, in_dim, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            some_x.put(all_x, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (is_ahead)
                some_x.load(x, is_last ? 0 : column + H::columns, in_dim, thread_index);
        }
    }
}

#define MATVEC_STREAM(format)                                                                      \
    MATVEC_KERNEL("matvec_" #format "_stream", matvec_stream, format##_runs, false)                \
    MATVEC_KERNEL("matvec_" #format "_accumulate_stream", matvec_stream, format##_runs, true)

MATVEC_STREAM(q4_0)
MATVEC_STREAM(q8_0)
MATVEC_STREAM(q4_k)
MATVEC_STREAM(q6_k)
MATVEC_STREAM(f16)
