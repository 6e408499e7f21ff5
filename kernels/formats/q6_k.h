// q6_k: the Q6_K weight block as kernels read a format (formats.h).
//
// A block is 256 weights in 210 bytes, in 16 parts of 16, each with a signed scale; n of 6 bits
// stands for d * scale * (n - 32). Half a block has 64 bytes of lower nibbles and 32 bytes of upper
// pairs of bits; its weights l, l + 32, l + 64 and l + 96 have their upper bits in byte l, from the
// lowest up, and their lower ones in bytes l and l + 32: low nibbles for the first two, high
// nibbles for the others. Blocks are only 2-byte aligned.
#pragma once

#include "../bytes.h"
#include "../eight.h"
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

// For product/vec16.h: a lane takes bytes l to l + 3 of half a block, which are four weights of each
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

// For product/tile.h: two threads per row, 16 weights of a quarter of half a block each.
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

// For product/per_thread.h: 16 bytes of upper bits of half a block, which are 16 weights of each of its
// quarters.
struct q6_k_eights {
    typedef block_q6_k block;
    enum : uint { values = 256, eights = 8, scales = 4, has_minimum = 0 };
    enum : uint { has_bytes = 1, zero = 32 };
    static METAL_FUNC uint place(uint part, uint i) {
        return 128 * (part / 2) + 32 * (i / 2) + 16 * (part % 2) + 8 * (i % 2);
    }
    static METAL_FUNC void get(device const block_q6_k *b, uint part, thread eight_floats *n) {
        load_sixes(b->ql + 64 * (part / 2) + 16 * (part % 2), b->qh + 16 * part, n);
    }
    static METAL_FUNC void get_bytes(device const block_q6_k *a, device const block_q6_k *b, uint part,
                                     thread sixteen_bytes *n) {
        const uint at = 64 * (part / 2) + 16 * (part % 2);
        const byte_rows even(a->ql + at, b->ql + at), odd(a->ql + at + 32, b->ql + at + 32);
        const byte_rows upper(a->qh + 16 * part, b->qh + 16 * part);
        for (uint i = 0; i < 2; i++) {
            const sixteen_bytes e = even.halves[i], o = odd.halves[i], u = upper.halves[i];
            n[i] = get_low_nibbles(e) | get_pairs<0>(u);
            n[i + 2] = get_low_nibbles(o) | get_pairs<2>(u);
            n[i + 4] = get_high_nibbles(e) | get_pairs<4>(u);
            n[i + 6] = get_high_nibbles(o) | get_pairs<6>(u);
        }
    }
    static METAL_FUNC float2 get_scale(device const block_q6_k *b, uint part, uint s) {
        const char scale = b->scales[8 * (part / 2) + part % 2 + 2 * s];
        return float2(float(b->d) * float(scale), 0.0f);
    }
};
