// runs: formats as matvec_stream.metal reads them, whose head says what each has to have.
#pragma once

#include "../formats/floats.h"
#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q6_k.h"
#include "../formats/q8_0.h"

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
