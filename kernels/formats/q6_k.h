// q6_k: the Q6_K weight block as kernels read a format (formats.h).
//
// A block is 256 weights in 210 bytes, in 16 parts of 16, each with a signed scale; n of 6 bits
// stands for d * scale * (n - 32). Half a block has 64 bytes of lower nibbles and 32 bytes of upper
// pairs of bits; its weights l, l + 32, l + 64 and l + 96 have their upper bits in byte l, from the
// lowest up, and their lower ones in bytes l and l + 32: low nibbles for the first two, high
// nibbles for the others. Blocks are only 2-byte aligned.
#include "../bytes.h"

#include "../near.h"

#include "../nibbles.h"

struct block_q6_k {
    uchar ql[128];
    uchar qh[64];
    char scales[16];
    half d;
};

struct q6_k {
    typedef block_q6_k block;
    typedef float4 wide;
    enum : uint { values = 256, wides = 8 };

    static METAL_FUNC void load(device const block_q6_k *row, uint unit, thread float4 *v) {
        device const block_q6_k *b = row + unit / 8;
        const uint part = unit % 8; // 32 weights: a quarter of half a block
        const uint quarter = part % 4;
        device const packed_uchar4 *low =
            (device const packed_uchar4 *)b->ql + 16 * (part / 4) + 8 * (quarter % 2);
        device const packed_uchar4 *high = (device const packed_uchar4 *)b->qh + 8 * (part / 4);
        const float d = float(b->d);
        // Four weights at a time, as the bytes of one integer: bytes that are widened first cost
        // twice as much.
        for (uint j = 0; j < 8; j++) {
            const uint n =
                (as_type<uint>(uchar4(low[j])) >> (4u * (quarter / 2)) & 0x0F0F0F0Fu) |
                (as_type<uint>(uchar4(high[j])) >> (2u * quarter) & 0x03030303u) << 4u;
            v[j] = (float4(as_type<uchar4>(n)) - 32.0f) * (d * float(b->scales[2 * part + j / 4]));
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q6_k *table, size_t i) {
        device const block_q6_k *b = table + i / 256;
        const uint half_block = i % 256 / 128;
        const uint quarter = i % 128 / 32;
        const uint l = i % 32;
        const uint low =
            b->ql[64 * half_block + 32 * (quarter % 2) + l] >> (4u * (quarter / 2)) & 15u;
        const uint high = b->qh[32 * half_block + l] >> (2u * quarter) & 3u;
        const float scale = float(b->d) * float(b->scales[i % 256 / 16]);
        return (float(low | high << 4u) - 32.0f) * scale;
    }
};

// For matvec_lean.h: a lane takes bytes l to l + 3 of half a block, which are four weights of each
// of its quarters, so that every byte is loaded once and neighbours load neighbours. n becomes a
// float without a conversion: as the last bits below the exponent of 2^23 it is 2^23 + n, from
// which 2^23 + 32 is subtracted exactly. (The shorter way, sum((64 + n) * x) - 96 * sum(x), cancels
// too many digits.)
struct q6_k_parts {
    typedef block_q6_k block;
    enum : uint { values = 256, lanes = 16 };
    struct input {
        float4 v[4];
    };

    static METAL_FUNC input load(device const float *x, uint part) {
        device const float4 *v = (device const float4 *)x + 32 * (part / 8) + part % 8;
        const input i = {{v[0], v[8], v[16], v[24]}};
        return i;
    }

    // Four bytes from an address that is only a multiple of 2.
    static METAL_FUNC uint get_bytes(device const uchar *at) {
        device const ushort *pair = (device const ushort *)at;
        return pair[0] | uint(pair[1]) << 16u;
    }

    static METAL_FUNC float dot_bytes(uint n, float4 x, uint exponent) {
        const uint4 bits = uint4(n, n >> 8u, n >> 16u, n >> 24u) & 255u;
        const float4 dots = (as_type<float4>(bits | exponent) - 8388640.0f) * x;
        return (dots.x + dots.y) + (dots.z + dots.w);
    }

    struct bits {
        uint even, odd, high; // even: of quarters 0 and 2
        char scales[4];
        half d;
    };
    static METAL_FUNC bits take(device const block_q6_k *b, uint part) {
        const uint half_block = part / 8;
        const uint l = 4 * (part % 8);
        device const uchar *low = b->ql + 64 * half_block + l;
        device const char *s = b->scales + 8 * half_block + l / 16;
        const bits w = {get_bytes(low), get_bytes(low + 32), get_bytes(b->qh + 32 * half_block + l),
                        {s[0], s[2], s[4], s[6]}, b->d};
        return w;
    }

    static METAL_FUNC float multiply(thread const bits &w, thread const input &x, uint some) {
        const uint even = w.even, odd = w.odd, high = w.high;
        const uint e = opaque(0x4B000000u, some);
        const float4 dots =
            float4(dot_bytes((even & 0x0F0F0F0Fu) | (high << 4u & 0x30303030u), x.v[0], e),
                   dot_bytes((odd & 0x0F0F0F0Fu) | (high << 2u & 0x30303030u), x.v[1], e),
                   dot_bytes((even >> 4u & 0x0F0F0F0Fu) | (high & 0x30303030u), x.v[2], e),
                   dot_bytes((odd >> 4u & 0x0F0F0F0Fu) | (high >> 2u & 0x30303030u), x.v[3], e));
        const float4 scaled = dots * float4(w.scales[0], w.scales[1], w.scales[2], w.scales[3]);
        return float(w.d) * ((scaled.x + scaled.y) + (scaled.z + scaled.w));
    }
};

// For matvec_stream.h: a lane takes 16 bytes of half of half a block, which are 16 weights of each
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
                    const half2 w[4] = {
                        join_low(a, up4, exponents), join_low(b, up2, exponents),
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
            sums[r] += d * ((float(first.x) * dots[r][0] + float(first.y) * dots[r][1]) +
                            0.0625f * (float(second.x) * dots[r][2] + float(second.y) * dots[r][3]));
        }
    }
};

// For tiles.h: two threads per row, 16 weights of a quarter of half a block each.
struct q6_k_tiles {
    typedef block_q6_k block;
    enum : uint { values = 256, lanes = 2 };
    struct part {
        half d;
        char scale;
        uint words[4];
    };
    static METAL_FUNC part fetch(device const block_q6_k *row, uint step, uint, uint lane) {
        device const block_q6_k *b = row + step / 8;
        const uint which = step % 8;
        const uint quarter = which % 4;
        device const uchar *low = b->ql + 64 * (which / 4) + 32 * (quarter % 2) + 16 * lane;
        device const uchar *high = b->qh + 32 * (which / 4) + 16 * lane;
        part p;
        p.d = b->d;
        p.scale = b->scales[2 * which + lane];
        for (uint i = 0; i < 4; i++)
            p.words[i] =
                (q6_k_parts::get_bytes(low + 4 * i) >> (4u * (quarter / 2)) & 0x0F0F0F0Fu) |
                (q6_k_parts::get_bytes(high + 4 * i) >> (2u * quarter) & 0x03030303u) << 4u;
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        const float d = float(p.d) * float(p.scale);
        for (uint i = 0; i < 4; i++)
            at[4 * lane + i] = (float4(as_type<uchar4>(p.words[i])) - 32.0f) * d;
    }
};

// By turns of rows that are near (matvec_near.h): a byte is 4 times the weight less its 32. Blocks
// are only 2-byte aligned, and every other one begins within a word.
struct q6_k_near {
    typedef block_q6_k block;
    typedef byte_halves scale;
    enum : uint { block_bytes = 210, rows = 28, has_offsets = false };

    static METAL_FUNC float get_unit() { return 0.25f; }

    // 64 columns are two blocks of 32, b = 0 and 1. Bytes 64 * (turn / 2) + 32 * b have their lower
    // 4 bits, in the nibble that is turn % 2; the upper 2 are in bytes 128 + 32 * (turn / 2), four
    // times two bits each.
    template <typename B>
    static METAL_FUNC scale take_bytes(thread const B &from, uint turn, uint signs,
                                       thread byte_pair &w) {
        scale s;
        for (uint b = 0; b < 2; b++) {
            for (uint side = 0; side < 2; side++) {
                const uint four = from.get_word(4 * (turn / 2) + 2 * b + side);
                const uint two = from.get_word(8 + 2 * (turn / 2) + side)
                                 << (6 - 4 * (turn % 2) - 2 * b);
                w.at[b][side] =
                    (((turn % 2 ? four >> 2u : four << 2u) & 0x3C3C3C3Cu) | (two & 0xC0C0C0C0u)) ^
                    signs;
            }
            s.factors[b] = float(from.get_scale(turn, b));
        }
        return s;
    }
    template <typename Row> struct lane_block {
        Row at;
        uint part, shift;
        float d;

        METAL_FUNC void load(Row row, uint i, uint own_part) {
            part = own_part;
            shift = i % 2 * 16;
            at = row + 210 * i / 4 + part;
            d = near_half(row, 105 * i + 104);
        }
        METAL_FUNC uint get_word(uint i) const {
            return uint((ulong(at[4 * i + 1]) << 32u | at[4 * i]) >> shift);
        }
        METAL_FUNC int get_scale(uint turn, uint b) const {
            return near_char(at, 192 + 4 * turn + 2 * b + part / 2 - 4 * part + shift / 8);
        }
        METAL_FUNC scale take(uint turn, uint, uint signs, thread byte_pair &w) const {
            return take_bytes(*this, turn, signs, w);
        }
        METAL_FUNC float finish(float total) const { return d * total; }
    };
    // The same in registers.
    struct kept_block {
        uint words[12], scales[4]; // the lane's scales are bytes 0 and 2
        float d;

        template <typename Row> METAL_FUNC void load(Row row, uint i, uint part) {
            lane_block<Row> from;
            from.load(row, i, part);
            for (uint k = 0; k < 12; k++)
                words[k] = from.get_word(k);
            from.at += 48 - part;
            for (uint turn = 0; turn < 4; turn++) {
                const ulong two = ulong(from.at[turn + 1]) << 32u | from.at[turn];
                scales[turn] = uint(two >> (from.shift + part / 2 * 8));
            }
            d = from.d;
        }
        METAL_FUNC uint get_word(uint i) const { return words[i]; }
        METAL_FUNC int get_scale(uint turn, uint b) const {
            return as_type<char4>(scales[turn])[2 * b];
        }
        METAL_FUNC scale take(uint turn, uint, uint signs, thread byte_pair &w) const {
            return take_bytes(*this, turn, signs, w);
        }
        METAL_FUNC float finish(float total) const { return d * total; }
    };
};
