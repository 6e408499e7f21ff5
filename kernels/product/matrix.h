// matvec_matrix: tiles of rows and tokens, multiplied as matrices of 8 x 8 by whole simdgroups. Apple's GPUs have
// instructions for them, and so have NVIDIA's: tensor cores.
//
// A simdgroup computes 32 rows of 32 tokens, 16 matrices of sums, from 32 columns at a time, which are in
// threadgroup memory: weights as halves where those are exact, values as floats. Formats in blocks of 32 come as whole
// numbers (tile_numbers): the product of a step is multiplied by the scale of each row when it is added to the
// sums, and where there are minima, one times the sum of a token's values is added, too.
//
// The four simdgroups of a threadgroup compute a tile of 64 x 64; or, where such tiles are too few to fill a GPU,
// one of 32 x 32, with every fourth step of columns each.
#pragma once

#include "../formats/formats.h"
#include "elements.h"
#include "tiled.h"

// Formats in blocks of 32 weights as halves that are whole numbers, beside the scale of a block. Numbers of
// up to 8 bits are exact as halves, which a weight, d n + m, is not.
//
// Two threads decode a block, 16 numbers each.

// Four bits, each as bit 4 of a byte.
inline uint spread_fifth(uint bits) {
    return (bits & 15u) * 0x00204081u << 4u & 0x10101010u;
}

// What a thread keeps of a block until it decodes it.
struct number_bits {
    ushort q[8], fifth;
    half scale; // or the minimum
};

// Nibbles: low ones, or high ones. B: a block. What stands for 0 is `middle`, if there is no minimum.
template <typename B, bool HasFifth, bool HasMinimum, uint middle> struct nibble_numbers {
    typedef B block;
    enum : uint { centre = middle, has_minimum = HasMinimum };
    static METAL_FUNC ushort take(device const B *b, uint i, uint) {
        return ((device const ushort *)b->qs)[i];
    }
    static METAL_FUNC uint get(thread const number_bits &n, uint i, uint lane) {
        const uint low = (n.q[2 * i] | uint(n.q[2 * i + 1]) << 16u) >> (4u * lane) & 0x0F0F0F0Fu;
        return HasFifth ? low | spread_fifth(n.fifth >> (4 * i)) : low;
    }
};
struct byte_numbers {
    typedef block_q8_0 block;
    enum : uint { centre = 128, has_minimum = 0 };
    static METAL_FUNC ushort take(device const block *b, uint i, uint lane) {
        return ((device const ushort *)b->qs)[8 * lane + i];
    }
    static METAL_FUNC uint get(thread const number_bits &n, uint i, uint) {
        return (n.q[2 * i] | uint(n.q[2 * i + 1]) << 16u) ^ 0x80808080u;
    }
};
typedef nibble_numbers<block_q4_0, false, false, 8> q4_0_numbers;
typedef nibble_numbers<block_q4_1, false, true, 0> q4_1_numbers;
typedef nibble_numbers<block_q5_0, true, false, 16> q5_0_numbers;
typedef nibble_numbers<block_q5_1, true, true, 0> q5_1_numbers;
typedef byte_numbers q8_0_numbers;

// Fifth bits and the minimum, of blocks that have them.
template <typename B> METAL_FUNC ushort get_fifth(device const B *, uint) {
    return ushort(0);
}
METAL_FUNC ushort get_fifth(device const block_q5_0 *b, uint lane) {
    return b->qh[lane];
}
METAL_FUNC ushort get_fifth(device const block_q5_1 *b, uint lane) {
    return b->qh[lane];
}
template <typename B> METAL_FUNC half get_scale(device const B *b, uint) {
    return b->d;
}
METAL_FUNC half get_scale(device const block_q4_1 *b, uint lane) {
    return (&b->d)[lane];
}
METAL_FUNC half get_scale(device const block_q5_1 *b, uint lane) {
    return (&b->d)[lane];
}

// Two bytes as halves: below the exponent of 1024, a whole number is added to it.
inline half2 get_halves(uint two, uint centre) {
    const uint bits = (two & 0xFFu) | (two & 0xFF00u) << 8u | 0x64006400u;
    return as_type<half2>(bits) - half2(half(float(1024 + centre)));
}

// As tile.h reads a format. A row of 32 halves is followed by its scale and its minimum.
template <typename F> struct tile_numbers {
    typedef typename F::block block;
    enum : uint { values = 32, lanes = 2, has_minimum = F::has_minimum };
    typedef number_bits part;
    static METAL_FUNC part fetch(device const block *row, uint step, uint, uint lane) {
        device const block *b = row + step;
        part p;
        for (uint i = 0; i < 8; i++)
            p.q[i] = F::take(b, i, lane);
        p.fifth = get_fifth(b, lane);
        p.scale = get_scale(b, lane);
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        threadgroup half4 *to = (threadgroup half4 *)at;
        for (uint i = 0; i < 4; i++) {
            const uint four = F::get(p, i, lane);
            to[4 * lane + i] =
                half4(get_halves(four, F::centre), get_halves(four >> 16u, F::centre));
        }
        if (has_minimum || lane == 0)
            ((threadgroup half *)at)[32 + lane] = p.scale;
    }
};

// Halves that stay halves: F::put of matrices.
template <typename F> struct tile_halves : tile_floats<F> {
    static METAL_FUNC void put(typename tile_floats<F>::part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            ((threadgroup half4 *)at)[4 * lane + i] = half4(p.v[i]);
    }
};

// Likewise of bfloats.
#if HAS_BFLOATS
typedef bfloat bfloat_or_float;
struct tile_bfloats : tile_floats<bf16> {
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            ((threadgroup ushort4 *)at)[4 * lane + i] = ushort4(as_type<uint4>(p.v[i]) >> 16u);
    }
};
#else
typedef float bfloat_or_float;
struct tile_bfloats : tile_floats<bf16> {};
#endif

// The type of decoded weights, and whether they have scales.
template <typename F> struct matrix_weights {
    typedef float type;
    enum : uint { has_scales = 0, has_minima = 0 };
};
template <typename F> struct matrix_weights<tile_halves<F>> {
    typedef half type;
    enum : uint { has_scales = 0, has_minima = 0 };
};
template <> struct matrix_weights<tile_bfloats> {
    typedef bfloat_or_float type;
    enum : uint { has_scales = 0, has_minima = 0 };
};
template <typename F> struct matrix_weights<tile_numbers<F>> {
    typedef half type;
    enum : uint { has_scales = 1, has_minima = F::has_minimum };
};

// S teams share the columns of a tile.
template <typename F, uint S> struct matrix_tile {
    typedef F format;
    typedef typename matrix_weights<F>::type T;
    enum : uint {
        side = S == 1 ? 64 : 32, // rows, and tokens
        team = 128 / S,
        wide = 40, // of a row in threadgroup memory: any four neighbours are in different banks
        parts = side * 8 / team, // float4 of x per thread
        decoded = side * F::lanes,
        turns = decoded > team ? decoded / team : 1, // of decoding
        w_quads = side * wide * sizeof(T) / 16,
        quads = w_quads + side * wide / 4,
        deep = sizeof(T) == 2 ? 4 : 2, // matrices in a row; a float takes two registers
        buffers = LOADS_AHEAD && S == 1 && sizeof(T) == 2 ? 2 : 1,
        buffer_quads = buffers * quads,
        out_wide = side + 8,
        out_quads = side * out_wide / 4, // sums of a team, in the end
        each = buffer_quads > out_quads ? buffer_quads : out_quads,
        memory = S * each,
    };
    static_assert(memory * 16 <= 32768, "what every Metal device has");

    simdgroup_float8x8 sums[4][4];
    threadgroup float4 *own; // of the team
    uint me, mate, lane, my_row, my_token;
    device const typename F::block *row[turns];
    typename F::part weights[turns];
    float4 values[parts];

    METAL_FUNC matrix_tile(threadgroup float4 *m, uint thread_index) {
        me = thread_index % team;
        mate = thread_index / team;
        lane = thread_index % 32;
        own = m + (S == 1 ? 0 : mate * each);
        my_row = me / 32 % 2 * 32;
        my_token = me / 64 * 32;
        for (uint i = 0; i < 4; i++)
            for (uint j = 0; j < 4; j++)
                sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    static METAL_FUNC void wait() {
        if (team == 32)
            simdgroup_barrier(mem_flags::mem_threadgroup);
        else
            threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    METAL_FUNC uint get_decoded(uint i) const {
        return min((me + i * team) / F::lanes, uint(side) - 1);
    }
    METAL_FUNC void fetch_weights(uint step, uint in_dim) {
        for (uint i = 0; i < turns; i++)
            weights[i] = F::fetch(row[i], step, in_dim, me % F::lanes);
    }
    // Two threads take the values of a token, every other float4 each.
    METAL_FUNC uint get_token(uint i) const { return me / 2 + i / 4 * (team / 2); }
    METAL_FUNC uint get_quad(uint i) const { return me % 2 + i % 4 * 2; }
    METAL_FUNC void fetch_values(device const float *x_in, uint step, uint in_dim, uint count) {
        for (uint i = 0; i < parts; i++)
            values[i] = take_values<F::values != 1>(x_in + min(get_token(i), count - 1) * in_dim,
                                                    32 * step + 4 * get_quad(i), in_dim);
    }

    METAL_FUNC void put(threadgroup float4 *w) {
        if (uint(decoded) >= uint(team) || me < decoded)
            for (uint i = 0; i < turns; i++)
                F::put(weights[i], me % F::lanes, w + get_decoded(i) * (w_quads / side));
        for (uint i = 0; i < parts; i += 4) {
            threadgroup float4 *x = w + w_quads + get_token(i) * (wide / 4);
            float4 total = float4(0.0f);
            for (uint k = i; k < i + 4; k++) {
                x[get_quad(k)] = values[k];
                total += values[k];
            }
            if (matrix_weights<F>::has_minima)
                ((threadgroup float *)x)[32 + me % 2] = (total.x + total.y) + (total.z + total.w);
        }
    }

    // Rows and tokens of 32 columns, those of a matrix after each other.
    template <typename M, typename V>
    static METAL_FUNC void load(thread M (&all)[deep], threadgroup const V *from, bool turned) {
        for (uint k = 0; k < deep; k++)
            simdgroup_load(all[k], from + 8 * k, wide, ulong2(0, 0), turned);
    }

    METAL_FUNC void multiply(threadgroup const T *w, threadgroup const float *x) {
        threadgroup const T *scales = w + ELEMENT_COLUMN(lane) * wide + 32;
        threadgroup const float *totals = x + ELEMENT_ROW(lane) * wide + 32;
        simdgroup_matrix<T, 8, 8> b[4][deep];
        for (uint j = 0; j < 4; j++)
            load(b[j], w + 8 * j * wide, true);
        for (uint i = 0; i < 4; i++) {
            simdgroup_float8x8 a[deep], product;
            load(a, x + 8 * i * wide, false);
            const float total = matrix_weights<F>::has_minima
                                    ? totals[8 * i * wide] + totals[8 * i * wide + 1]
                                    : 0.0f;
            for (uint j = 0; j < 4; j++) {
                MULTIPLY_SEVERAL(product, a, b[j]);
                for (uint e = 0; e < 2; e++) {
                    threadgroup const T *scale = scales + (8 * j + e) * wide;
                    float s = ELEMENTS(sums[i][j])[e];
                    if (matrix_weights<F>::has_scales)
                        s = fma(ELEMENTS(product)[e], float(scale[0]), s);
                    else
                        s += ELEMENTS(product)[e];
                    if (matrix_weights<F>::has_minima)
                        s = fma(total, float(scale[1]), s);
                    ELEMENTS(sums[i][j])[e] = s;
                }
            }
        }
    }

    // After the first fetch_weights. What the next step needs is loaded before the products, and put into
    // threadgroup memory after them: with two buffers others may still read what this step needs, and a team
    // waits once. The last step loads and puts its own again, so that nothing has a condition.
    METAL_FUNC void multiply_all(device const float *x_in, uint in_dim, uint count) {
        const uint last = (in_dim - 1) / 32;
        uint at = 0;
        fetch_values(x_in, min(mate, last), in_dim, count);
        put(own);
        wait();
        for (uint step = mate; step <= last; step += S) {
            const uint next = min(step + S, last);
            fetch_weights(next, in_dim);
            fetch_values(x_in, next, in_dim, count);
            threadgroup const float4 *w = own + (at * quads + my_row * (w_quads / side));
            threadgroup const float4 *x = own + (at * quads + w_quads + my_token * (wide / 4));
            for (uint k = 0; k < 4; k += deep)
                multiply((threadgroup const T *)w + 8 * k, (threadgroup const float *)x + 8 * k);
            if (buffers == 1)
                wait();
            else
                at ^= 1u;
            put(own + at * quads);
            wait();
        }
    }

    // Puts the sums into threadgroup memory, (tokens, rows) of each team, where all threads may then read them.
    METAL_FUNC void show() {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup float *out =
            (threadgroup float *)(own + (my_token * (out_wide / 4) + my_row / 4));
        for (uint i = 0; i < 4; i++)
            for (uint j = 0; j < 4; j++)
                simdgroup_store(sums[i][j], out + 8 * i * out_wide + 8 * j, out_wide);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
};
template <typename F> using matrix_of_64 = matrix_tile<F, 1>;
template <typename F> using matrix_of_32 = matrix_tile<F, 4>;

// The sums go through threadgroup memory in the end, because a tile at the edge is not stored whole.
template <typename Tile, bool accumulate>
kernel void matvec_matrix(MATVEC_ARGUMENTS(typename Tile::format::block),
                          constant uint &batch [[buffer(5)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]]) {
    enum : uint { side = Tile::side };
    threadgroup float4 memory[Tile::memory];
    Tile tile(memory, thread_index);
    const uint first = group.y * side, first_row = group.x * side;
    for (uint i = 0; i < Tile::turns; i++) {
        const uint row = min(first_row + tile.get_decoded(i), out_dim - 1);
        tile.row[i] = w + size_t(row) * (in_dim / Tile::format::values);
    }
    tile.fetch_weights(min(tile.mate, (in_dim - 1) / 32), in_dim);
    PREFETCHED(1);
    tile.multiply_all(x + size_t(first) * in_dim, in_dim, batch - first);
    tile.show();
    const uint r = thread_index % side;
    for (uint i = thread_index / side; i < min(uint(side), batch - first); i += 128 / side) {
        float sum = 0.0f;
        for (uint s = 0; s < 128 / Tile::team; s++)
            sum += ((threadgroup const float *)memory)[4 * Tile::each * s + i * Tile::out_wide + r];
        if (first_row + r < out_dim)
            put<accumulate>(y + size_t(first + i) * out_dim + first_row + r, sum);
    }
}

#define MATVEC_MATRIX_KERNELS(name, tile, end)                                                     \
    MATVEC_KERNEL("multi_token_matvec_" #name end, matvec_matrix, tile, false)                     \
    MATVEC_KERNEL("multi_token_matvec_" #name "_accumulate" end, matvec_matrix, tile, true)
#define MATVEC_MATRIX(name, format) MATVEC_MATRIX_KERNELS(name, matrix_of_64<format>, "_matrix")
#define MATVEC_MATRIX_SPLIT(name, format)                                                          \
    MATVEC_MATRIX_KERNELS(name, matrix_of_32<format>, "_matrix_split_k")
