// q4_k: the Q4_K weight block as kernels read a format (formats.h).
//
// A block is 256 weights in 144 bytes, in 8 parts of 32, each with a scale and a minimum of 6 bits:
// nibble n of part p stands for d * scale[p] * n - dmin * min[p]. Parts 2i and 2i + 1 are the low
// and the high nibbles of the same 32 bytes.
#pragma once

#include "../bytes.h"
#include "../eight.h"
#include "../nibbles.h"

struct block_q4_k {
    half d, dmin;
    uchar scales[12];
    uchar qs[128];
};

struct q4_k {
    typedef block_q4_k block;
    typedef float4 wide;
    enum : uint { values = 256, wides = 8 };

    // The first four scales and minima are the lower 6 bits of bytes 0-3 and 4-7. The others have
    // their lower 4 bits in bytes 8-11, and their upper 2 bits on top of the first eight bytes.
    static uchar2 get_scale_and_min(device const uchar *s, uint part) {
        if (part < 4)
            return uchar2(s[part] & 63, s[part + 4] & 63);
        return uchar2((s[part + 4] & 15) | (s[part - 4] >> 6 << 4),
                      (s[part + 4] >> 4) | (s[part] >> 6 << 4));
    }
    // The first four scales or the last four, as bytes: from bytes 0-3 and 8-11. The same of minima: from bytes
    // 4-7, and 8-11 shifted right by 4.
    static METAL_FUNC uint get_four(uint six_bits, uint four_bits, bool is_last) {
        return is_last ? (four_bits & 0x0F0F0F0Fu) | (six_bits >> 2u & 0x30303030u)
                       : six_bits & 0x3F3F3F3Fu;
    }

    static METAL_FUNC void load(device const block_q4_k *row, uint unit, thread float4 *v) {
        device const block_q4_k *b = row + unit / 8;
        const uint part = unit % 8;
        const uchar2 s = get_scale_and_min(b->scales, part);
        const float d = float(b->d) * float(s.x);
        const float m = float(b->dmin) * float(s.y);
        device const packed_uchar4 *q = (device const packed_uchar4 *)b->qs + 8 * (part / 2);
        for (uint j = 0; j < 8; j++)
            v[j] = float4(as_type<uchar4>(as_type<uint>(uchar4(q[j])) >> (4u * (part % 2)) &
                                          0x0F0F0F0Fu)) * d - m;
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q4_k *table, size_t i) {
        device const block_q4_k *b = table + i / 256;
        const uint part = i % 256 / 32;
        const uchar2 s = get_scale_and_min(b->scales, part);
        const uint n = b->qs[32 * (part / 2) + i % 32] >> (4u * (part % 2)) & 15u;
        return float(n) * (float(b->d) * float(s.x)) - float(b->dmin) * float(s.y);
    }
};

// For product/vec16.h: a lane takes eight bytes, whose low nibbles are weights of one part of 32 and
// whose high nibbles are weights of the next (nibbles.h). 16 is subtracted from 16 + n, exactly. (The
// shorter way, sum((16 + n) * x) - 16 * sum(x), cancels too many digits: where one weight is much larger
// than the others of its part, they are n = 0 of a large scale, and a large x is lost in 16 * x.)
struct q4_k_parts {
    typedef block_q4_k block;
    enum : uint { values = 256, lanes = 16 };
    struct input {
        float4 low[2], high[2];
        float low_total, high_total;
    };

    static METAL_FUNC input load(device const float *x, uint part) {
        device const float4 *v = (device const float4 *)x + 16 * (part / 4) + 2 * (part % 4);
        const float4 low = v[0] + v[1];
        const float4 high = v[8] + v[9];
        const input i = {{v[0], v[1]},
                         {v[8], v[9]},
                         (low.x + low.y) + (low.z + low.w),
                         (high.x + high.y) + (high.z + high.w)};
        return i;
    }

    struct bits {
        ushort q[4];
        uchar2 first, second; // scale and minimum
        half d, dmin;
    };
    static METAL_FUNC bits take(device const block_q4_k *b, uint part) {
        device const ushort *q = (device const ushort *)b->qs + 16 * (part / 4) + 4 * (part % 4);
        const bits w = {{q[0], q[1], q[2], q[3]},
                        q4_k::get_scale_and_min(b->scales, part / 4 * 2),
                        q4_k::get_scale_and_min(b->scales, part / 4 * 2 + 1),
                        b->d,
                        b->dmin};
        return w;
    }

    static METAL_FUNC float multiply(thread const bits &w, thread const input &x, uint some) {
        const uint sixteen = get_sixteen(some);
        float4 low = float4(0.0f);
        float4 high = float4(0.0f);
        for (uint i = 0; i < 2; i++) {
            const uint n = w.q[2 * i] | uint(w.q[2 * i + 1]) << 16u;
            low = fma(sixteen_more_low(n, sixteen) - 16.0f, x.low[i], low);
            high = fma(sixteen_more_high(n, sixteen) - 16.0f, x.high[i], high);
        }
        const float first = (low.x + low.y) + (low.z + low.w);
        const float second = (high.x + high.y) + (high.z + high.w);
        return float(w.d) * (float(w.first.x) * first + float(w.second.x) * second) -
               float(w.dmin) *
                   (float(w.first.y) * x.low_total + float(w.second.y) * x.high_total);
    }
};

// For product/tile.h: two threads per row, 16 weights of a part each.
struct q4_k_tiles {
    typedef block_q4_k block;
    enum : uint { values = 256, lanes = 2 };
    struct part {
        half d, dmin;
        uchar2 scale_and_min;
        uint words[4];
    };
    static METAL_FUNC part fetch(device const block_q4_k *row, uint step, uint, uint lane) {
        device const block_q4_k *b = row + step / 8;
        const uint which = step % 8;
        device const ushort *q = (device const ushort *)b->qs + 16 * (which / 2) + 8 * lane;
        part p;
        p.d = b->d;
        p.dmin = b->dmin;
        p.scale_and_min = q4_k::get_scale_and_min(b->scales, which);
        for (uint i = 0; i < 4; i++)
            p.words[i] =
                (q[2 * i] | uint(q[2 * i + 1]) << 16u) >> (4u * (which % 2)) & 0x0F0F0F0Fu;
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        const float d = float(p.d) * float(p.scale_and_min.x);
        const float m = float(p.dmin) * float(p.scale_and_min.y);
        for (uint i = 0; i < 4; i++)
            at[4 * lane + i] = float4(as_type<uchar4>(p.words[i])) * d - m;
    }
};

// For product/per_thread.h: 32 bytes, which are two parts of 32 weights.
struct q4_k_eights {
    typedef block_q4_k block;
    enum : uint { values = 256, eights = 8, scales = 2, has_minimum = 1 };
    enum : uint { has_bytes = 1, zero = 0 };
    static METAL_FUNC uint place(uint part, uint i) { return 64 * part + 8 * i; }
    static METAL_FUNC void get(device const block_q4_k *b, uint part, thread eight_floats *n) {
        eight_floats half_of[4];
        for (uint i = 0; i < 2; i++) {
            load_nibbles<0>(b->qs + 32 * part + 16 * i, half_of);
            for (uint k = 0; k < 2; k++) {
                n[2 * i + k] = half_of[k];
                n[2 * i + k + 4] = half_of[k + 2];
            }
        }
    }
    static METAL_FUNC void get_bytes(device const block_q4_k *a, device const block_q4_k *b, uint part,
                                     thread sixteen_bytes *n) {
        for (uint i = 0; i < 4; i++) {
            const uint at = 32 * part + 16 * (i / 2);
            const byte_rows q(a->qs + at, b->qs + at);
            n[i] = get_low_nibbles(q.halves[i % 2]);
            n[i + 4] = get_high_nibbles(q.halves[i % 2]);
        }
    }
    static METAL_FUNC float2 get_scale(device const block_q4_k *b, uint part, uint s) {
        const uchar2 scale = q4_k::get_scale_and_min(b->scales, 2 * part + s);
        return float2(float(b->d) * float(scale.x), -float(b->dmin) * float(scale.y));
    }
};
