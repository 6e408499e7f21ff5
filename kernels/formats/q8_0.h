// q8_0: the Q8_0 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 34 bytes: a half scale d, then 32 signed bytes; byte q stands for q * d.
// Blocks are only 2-byte aligned.
#pragma once

#include "../bytes.h"
#include "../eight.h"
#include "../nibbles.h"

struct block_q8_0 {
    half d;
    char qs[32];
};

struct q8_0 {
    typedef block_q8_0 block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const block_q8_0 *row, uint unit, thread float4 *v) {
        device const block_q8_0 *b = row + unit;
        device const packed_char4 *q = (device const packed_char4 *)b->qs;
        const float d = float(b->d);
        for (uint j = 0; j < 8; j++)
            v[j] = float4(char4(q[j])) * d;
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q8_0 *table, size_t i) {
        device const block_q8_0 *b = table + i / 32;
        return float(b->qs[i % 32]) * float(b->d);
    }
};

// For product/vec16.h, by halves of blocks: 16 weights from 8 loads, the widest that their alignment
// allows.
struct q8_0_parts {
    typedef block_q8_0 block;
    enum : uint { values = 32, lanes = 2 };
    struct input {
        float4 v[4];
    };
    static METAL_FUNC input load(device const float *x, uint part) {
        device const float4 *v = (device const float4 *)x + 4 * part;
        const input i = {{v[0], v[1], v[2], v[3]}};
        return i;
    }
    struct bits {
        ushort q[8];
        half d;
    };
    static METAL_FUNC bits take(device const block_q8_0 *b, uint part) {
        device const ushort *q = (device const ushort *)b->qs + 8 * part;
        const bits w = {{q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]}, b->d};
        return w;
    }
    static METAL_FUNC float multiply(thread const bits &w, thread const input &x, uint) {
        float4 dots = float4(0.0f);
        for (uint i = 0; i < 4; i++) {
            const uint word = w.q[2 * i] | uint(w.q[2 * i + 1]) << 16u;
            dots = fma(float4(as_type<char4>(word)), x.v[i], dots);
        }
        return float(w.d) * ((dots.x + dots.y) + (dots.z + dots.w));
    }
};

// For product/tile.h: two threads per row, half a block each.
struct q8_0_tiles {
    typedef block_q8_0 block;
    enum : uint { values = 32, lanes = 2 };
    struct part {
        half d;
        uint words[4];
    };
    static METAL_FUNC part fetch(device const block_q8_0 *row, uint step, uint, uint lane) {
        device const ushort *q = (device const ushort *)row[step].qs + 8 * lane;
        part p;
        p.d = row[step].d;
        for (uint i = 0; i < 4; i++)
            p.words[i] = q[2 * i] | uint(q[2 * i + 1]) << 16u;
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            at[4 * lane + i] = float4(as_type<char4>(p.words[i])) * float(p.d);
    }
};

// For product/per_thread.h.
struct q8_0_eights {
    typedef block_q8_0 block;
    enum : uint { values = 32, eights = 4, scales = 1, has_minimum = 0 };
    enum : uint { has_bytes = 1, zero = 0 };
    static METAL_FUNC uint place(uint, uint i) { return 8 * i; }
    static METAL_FUNC void get(device const block_q8_0 *b, uint, thread eight_floats *n) {
        for (uint i = 0; i < eights; i++)
            n[i] = to_floats(load_ints(b->qs + 8 * i));
    }
    static METAL_FUNC void get_bytes(device const block_q8_0 *a, device const block_q8_0 *b, uint,
                                     thread sixteen_bytes *n) {
        for (uint i = 0; i < 4; i += 2) {
            const byte_rows q((device const uchar *)a->qs + 8 * i,
                              (device const uchar *)b->qs + 8 * i);
            n[i] = q.halves[0];
            n[i + 1] = q.halves[1];
        }
    }
    static METAL_FUNC float2 get_scale(device const block_q8_0 *b, uint, uint) {
        return float2(float(b->d), 0.0f);
    }
};
