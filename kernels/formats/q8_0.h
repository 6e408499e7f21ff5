// q8_0: the Q8_0 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 34 bytes: a half scale d, then 32 signed bytes; byte q stands for q * d.
// Blocks are only 2-byte aligned.
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

// For matvec_lean.h, by halves of blocks: 16 weights from 8 loads, the widest that their alignment
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

// For matvec_stream.h: a lane takes two blocks, 17 words. The words of the first one are half a
// word off: its first two bytes and its last two make one word, which comes first. The values of x
// are in the order of the words.
struct q8_0_runs {
    typedef block_q8_0 block;
    enum : uint { columns = 2048, quads = 136, rows = 2, words = 17, kept = 0, moved = 32, spans = 1, x_quads = 544 };

    static METAL_FUNC void take(threadgroup const uint4 *copy, threadgroup uint4 *, uint lane,
                                thread uint *run) {
        for (uint i = 0; i < 17; i++)
            run[i] = ((threadgroup const uint *)copy)[17 * lane + i];
    }

    static METAL_FUNC void put_x(float4 v, threadgroup float4 *to, uint turn, uint at) {
        to[272 * turn + at / 16 * 17 + at % 16] = v;
    }

    static METAL_FUNC void add(thread const uint *runs, threadgroup const uint4 *,
                               threadgroup const float4 *x, uint lane, uint left,
                               thread float *sums) {
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

// For tiles.h: two threads per row, half a block each.
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

// For matvec_strip.h.
struct q8_0_strip {
    typedef block_q8_0 block;
    enum : uint { values = 32, rows = 4 };
    struct input {
        float4 v[8];
    };

    static METAL_FUNC input load(device const float *x) {
        input i;
        for (uint j = 0; j < 8; j++)
            i.v[j] = ((device const float4 *)x)[j];
        return i;
    }

    static METAL_FUNC float4 add(device const block_q8_0 *b, thread const input &x, float4 sums) {
        device const packed_char4 *q = (device const packed_char4 *)b->qs;
        float4 dots = float4(0.0f);
        for (uint j = 0; j < 8; j++)
            dots = fma(float4(char4(q[j])), x.v[j], dots);
        return fma(float4(float(b->d)), dots, sums);
    }
};
