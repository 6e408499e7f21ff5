// q4_k: the Q4_K weight block as kernels read a format (formats.h).
//
// A block is 256 weights in 144 bytes, in 8 parts of 32, each with a scale and a minimum of 6 bits:
// nibble n of part p stands for d * scale[p] * n - dmin * min[p]. Parts 2i and 2i + 1 are the low
// and the high nibbles of the same 32 bytes.
#include "../bytes.h"

#include "../near.h"

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

// For matvec_lean.h: a lane takes eight bytes, whose low nibbles are weights of one part of 32 and
// whose high nibbles are weights of the next (nibbles.h).
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
            low = fma(sixteen_more_low(n, sixteen), x.low[i], low);
            high = fma(sixteen_more_high(n, sixteen), x.high[i], high);
        }
        const float first = (low.x + low.y) + (low.z + low.w) - 16.0f * x.low_total;
        const float second = (high.x + high.y) + (high.z + high.w) - 16.0f * x.high_total;
        return float(w.d) * (float(w.first.x) * first + float(w.second.x) * second) -
               float(w.dmin) *
                   (float(w.first.y) * x.low_total + float(w.second.y) * x.high_total);
    }
};

// For matvec_stream.h: a lane takes a quarter of a block: 32 bytes, whose low nibbles are one part
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
            sums[r] += float(d.x) * (float(first.x) * low_dots[r] +
                                     float(second.x) * high_dots[r]) -
                       float(d.y) * (float(first.y) * low_total + float(second.y) * high_total);
        }
    }
};

// For tiles.h: two threads per row, 16 weights of a part each.
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

// By turns of rows that are near (matvec_near.h): a turn is parts 2i and 2i + 1, and a byte 16
// times the nibble less 8, which is added to the part's minimum.
struct q4_k_near {
    typedef block_q4_k block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 144, rows = 32, has_offsets = true };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    template <typename Row> struct lane_block {
        Row at;
        uint4 head; // d and dmin, and three words of scales
        METAL_FUNC void load(Row row, uint i, uint part) {
            head = near_quad(row + 36 * i);
            at = row + 36 * i + 4 + part;
        }
        METAL_FUNC scale take(uint turn, uint part, uint signs, thread byte_pair &w) const {
            for (uint side = 0; side < 2; side++) {
                const uint word = at[8 * turn + 4 * side];
                w.at[0][side] = get_lower_bytes(word, signs);
                w.at[1][side] = get_upper_bytes(word, signs);
            }
            return get_scale(turn, part);
        }
        // See q4_k::get_scale_and_min.
        METAL_FUNC scale get_scale(uint turn, uint part) const {
            const uint shift = 16 * (turn % 2) + part / 2 * 8;
            const uint scales[3] = {head.y, head.z, head.w};
            uint factor = scales[0] >> shift & 63u;
            uint least = scales[1] >> shift & 63u;
            if (turn >= 2) {
                factor = (scales[2] >> shift & 15u) | (scales[0] >> shift >> 2u & 48u);
                least = (scales[2] >> shift >> 4u & 15u) | (scales[1] >> shift >> 2u & 48u);
            }
            const float2 d = float2(as_type<half2>(head.x));
            const float each = d.x * float(factor);
            return {each, fma(128.0f, each, -16.0f * d.y * float(least))};
        }
        METAL_FUNC float finish(float total) const { return total; }
    };
};
