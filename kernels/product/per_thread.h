// matvec_per_thread: matrix times vectors by threads that work alone, for weights of any format.
//
// S is a format by eights (formats/formats.h). Loads are not coalesced, and most lanes of a simdgroup
// are missing: this is for the software device, which runs one thread after another, has no lanes to
// reduce over, and multiplies eight floats at a time (eight.h).
#pragma once

#include "../eight.h"
#include "per_thread_bytes.h"
#include "row.h"

// A thread computes STRIP rows of up to 8 tokens, or TILE_ROWS of more. O takes the products (row.h).
constant uint STRIP = 4, TILE_ROWS = 32, TILE_TOKENS = 32, CHUNK = 128;

// One token of a strip, or in integers of a tile: decided where it is compiled.
template <bool bytes> struct one_token {
    template <typename T> static METAL_FUNC void make(thread const T &strip, uint token) {
        strip.make_one(token);
    }
};
template <> struct one_token<true> {
    template <typename T> static METAL_FUNC void make(thread const T &strip, uint token) {
        strip.make_bytes(token);
    }
};

template <typename S, typename O> struct thread_strip {
    device const typename S::block *w;
    device const float *x;
    device float *y;
    O output;
    uint first, out_dim, in_dim;
    enum : uint { parts = S::values / (8 * S::eights), share = S::eights / S::scales };

    METAL_FUNC device const typename S::block *find_row(uint row) const {
        return w + size_t(min(row, out_dim - 1)) * (in_dim / S::values);
    }

    METAL_FUNC void store(uint token, uint row, eight_floats sums) const {
        if (row < out_dim)
            output.take(y + size_t(token) * out_dim + row, row, total(sums));
    }

    // sums += the product of a part of a row with x, which is loaded: the numbers are multiplied
    // first, and the sum of those that have the same scale is scaled. A minimum that all of them have is
    // multiplied with a sum of x.
    static METAL_FUNC eight_floats add_part(device const typename S::block *b, uint part,
                                            thread const eight_floats *x,
                                            thread const eight_floats *x_sums, eight_floats sums) {
        eight_floats n[S::eights];
        S::get(b, part, n);
        for (uint s = 0; s < S::scales; s++) {
            eight_floats dots = eight_floats(0.0f);
            for (uint i = s * share; i < s * share + share; i++)
                dots = multiply_add(n[i], x[i], dots);
            const float2 scale = S::get_scale(b, part, s);
            sums = multiply_add(eight_floats(scale.x), dots, sums);
            if (S::has_minimum)
                sums = multiply_add(eight_floats(scale.y), x_sums[s], sums);
        }
        return sums;
    }

    // The next strip's weights, as many as a block of each row of this one.
    static METAL_FUNC void load_ahead(device const typename S::block *at) {
        for (uint i = 0; i < STRIP * sizeof(typename S::block); i += 64)
            LOAD_AHEAD((device const char *)at + i);
    }

    // One token: x is loaded once for all rows of the strip.
    METAL_FUNC void make_strip(uint row, uint token) const {
        device const typename S::block *rows[STRIP];
        eight_floats sums[STRIP];
        for (uint r = 0; r < STRIP; r++) {
            rows[r] = find_row(row + r);
            sums[r] = eight_floats(0.0f);
        }
        const uint blocks = in_dim / S::values;
        for (uint b = 0; b < blocks; b++) {
            load_ahead(rows[0] + STRIP * (blocks + b));
            for (uint part = 0; part < parts; part++) {
                device const float *at = x + size_t(token) * in_dim + S::values * b;
                eight_floats values[S::eights];
                eight_floats x_sums[S::scales];
                for (uint i = 0; i < S::eights; i++)
                    values[i] = load_floats(at + S::place(part, i));
                for (uint s = 0; s < S::scales; s++) {
                    x_sums[s] = values[s * share];
                    for (uint i = 1; i < share; i++)
                        x_sums[s] = x_sums[s] + values[s * share + i];
                }
                for (uint r = 0; r < STRIP; r++)
                    sums[r] = add_part(rows[r] + b, part, values, x_sums, sums[r]);
            }
        }
        for (uint r = 0; r < STRIP; r++)
            store(token, row + r, sums[r]);
    }

    // One token and weights that are not coded, so that memory is what takes time: it is read from one
    // end to the other, because a CPU loads ahead best that way. Four sums hide the latency of an
    // addition.
    METAL_FUNC void make_plain_row(uint row, uint token) const {
        enum : uint { SUMS = 4 };
        device const typename S::block *w_row = find_row(row);
        device const float *at = x + size_t(token) * in_dim;
        const uint blocks = in_dim / S::values, whole = blocks / SUMS * SUMS;
        eight_floats sums[SUMS], weights[S::eights];
        for (uint k = 0; k < SUMS; k++)
            sums[k] = eight_floats(0.0f);
        for (uint b = 0; b < whole; b += SUMS)
            for (uint k = 0; k < SUMS; k++) {
                S::get(w_row + b + k, 0, weights);
                sums[k] = multiply_add(weights[0], load_floats(at + 8 * (b + k)), sums[k]);
            }
        for (uint b = whole; b < blocks; b++) {
            S::get(w_row + b, 0, weights);
            sums[0] = multiply_add(weights[0], load_floats(at + 8 * b), sums[0]);
        }
        store(token, row, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    }

    METAL_FUNC void make_one(uint token) const {
        if (S::eights > 1)
            return make_strip(first, token);
        for (uint row = first; row < min(first + STRIP, out_dim); row++)
            make_plain_row(row, token);
    }

    // Eight weights at a time of a part.
    static METAL_FUNC void decode(device const typename S::block *b, uint part,
                                  thread eight_floats *weights) {
        S::get(b, part, weights);
        for (uint s = 0; s < S::scales; s++) {
            const float2 scale = S::get_scale(b, part, s);
            const float add = S::has_minimum ? scale.y : 0.0f;
            for (uint i = s * share; i < s * share + share; i++)
                weights[i] = multiply_add(weights[i], eight_floats(scale.x), eight_floats(add));
        }
    }

    // A few tokens: each weight is decoded once for all of them.
    template <uint T> METAL_FUNC void make_row(uint row, uint token) const {
        device const typename S::block *w_row = find_row(row);
        eight_floats sums[T];
        for (uint t = 0; t < T; t++)
            sums[t] = eight_floats(0.0f);
        for (uint b = 0; b < in_dim / S::values; b++)
            for (uint part = 0; part < parts; part++) {
                eight_floats weights[S::eights];
                decode(w_row + b, part, weights);
                for (uint t = 0; t < T; t++) {
                    device const float *at = x + size_t(token + t) * in_dim + S::values * b;
                    for (uint i = 0; i < S::eights; i++)
                        sums[t] =
                            multiply_add(weights[i], load_floats(at + S::place(part, i)), sums[t]);
                }
            }
        for (uint t = 0; t < T; t++)
            store(token + t, row, sums[t]);
    }

    template <uint T> METAL_FUNC void make_rows(uint token) const {
        for (uint row = first; row < min(first + STRIP, out_dim); row++)
            make_row<T>(row, token);
    }

    // More tokens: what is multiplied at once are eight of them, so that CHUNK columns of x are
    // turned first: for each eight of tokens and each column its values. Tokens past the last repeat it.
    METAL_FUNC void turn(uint from, uint count, uint tokens, thread eight_floats *turned) const {
        for (uint group = 0; 8 * group < tokens; group++)
            for (uint at = 0; at < count; at += 8) {
                eight_floats v[8];
                for (uint t = 0; t < 8; t++)
                    v[t] = load_floats(x + min(8 * group + t, tokens - 1) * in_dim + from + at);
                transpose(v);
                for (uint c = 0; c < 8; c++)
                    turned[group * CHUNK + at + c] = v[c];
            }
    }

    // The weights of CHUNK columns of a row, in order.
    METAL_FUNC void decode_chunk(uint row, uint from, uint count, thread eight_floats *to) const {
        device const typename S::block *b = find_row(row) + from / S::values;
        for (uint at = 0; at < count; at += 8 * S::eights) {
            const uint part = (from + at) % S::values / (8 * S::eights);
            eight_floats weights[S::eights];
            decode(b + at / S::values, part, weights);
            for (uint i = 0; i < S::eights; i++)
                to[(at / S::values * S::values + S::place(part, i)) % CHUNK / 8] = weights[i];
        }
    }

    // Column k of four, with G eights of tokens.
    template <uint G, uint k>
    static METAL_FUNC void add_column(thread const eight_floats *turned,
                                      thread const four_floats *weights,
                                      thread eight_floats (&sums)[G][STRIP]) {
        for (uint g = 0; g < G; g++)
            for (uint r = 0; r < STRIP; r++)
                sums[g][r] =
                    multiply_add(turned[g * CHUNK + k], eight_floats(weights[r][k]), sums[g][r]);
    }

    // sums += the products of a chunk with G eights of tokens. Four columns are not a loop, which
    // compilers would not unroll: what a loop indexes is not in registers.
    template <uint G> static METAL_FUNC void add_chunk(thread const eight_floats *chunk,
                                                       thread const eight_floats *turned,
                                                       uint count, thread eight_floats *sums) {
        eight_floats own[G][STRIP];
        for (uint g = 0; g < G; g++)
            for (uint r = 0; r < STRIP; r++)
                own[g][r] = eight_floats(0.0f); // so that a sum is one of short ones
        for (uint c = 0; c < count; c += 4) {
            four_floats weights[STRIP];
            for (uint r = 0; r < STRIP; r++)
                weights[r] = four_floats((thread const float *)chunk + r * CHUNK + c);
            add_column<G, 0>(turned + c, weights, own);
            add_column<G, 1>(turned + c, weights, own);
            add_column<G, 2>(turned + c, weights, own);
            add_column<G, 3>(turned + c, weights, own);
        }
        for (uint g = 0; g < G; g++)
            for (uint r = 0; r < STRIP; r++)
                sums[g * STRIP + r] = sums[g * STRIP + r] + own[g][r];
    }

    METAL_FUNC void make_tile(uint tokens) const {
        enum : uint { groups = TILE_TOKENS / 8, strip = groups * STRIP };
        const uint rows = min(uint(TILE_ROWS), out_dim - first), last = (tokens + 7) / 8;
        eight_floats chunk[STRIP * CHUNK / 8], turned[groups * CHUNK], sums[TILE_ROWS * groups];
        for (uint i = 0; i < TILE_ROWS * groups; i++)
            sums[i] = eight_floats(0.0f);
        for (uint from = 0; from < in_dim; from += CHUNK) {
            const uint count = min(uint(CHUNK), in_dim - from);
            turn(from, count, tokens, turned);
            for (uint s = 0; STRIP * s < rows; s++) {
                for (uint r = 0; r < STRIP; r++)
                    decode_chunk(first + STRIP * s + r, from, count, chunk + r * (CHUNK / 8));
                uint g = 0;
                for (; g + 2 <= last; g += 2)
                    add_chunk<2>(chunk, turned + g * CHUNK, count, sums + s * strip + g * STRIP);
                if (g < last)
                    add_chunk<1>(chunk, turned + g * CHUNK, count, sums + s * strip + g * STRIP);
            }
        }
        for (uint t = 0; t < tokens; t++)
            for (uint r = 0; r < rows; r++) {
                const eight_floats v = sums[r / STRIP * strip + t / 8 * STRIP + r % STRIP];
                output.take(y + size_t(t) * out_dim + first + r, first + r, get_lane(v, t % 8));
            }
    }

    // One token of a tile, in integers if it can be.
    METAL_FUNC void make_bytes(uint token) const {
        typedef byte_tile<S, thread_strip> tile;
        const uint most = tile::count_rows(out_dim), rows = min(most, out_dim - first);
        if (first % most != 0 || tile::make(*this, rows, token))
            return;
        for (uint row = first; row < first + rows; row += STRIP)
            make_strip(row, token);
    }

    // Each number of tokens has code of its own, so that sums stay in registers. Of more than eight
    // the first thread of a threadgroup makes all rows.
    METAL_FUNC void make(uint tokens) const {
        if (tokens > 8) {
            if (first % TILE_ROWS == 0)
                make_tile(min(tokens, TILE_TOKENS));
            return;
        }
        if (tokens == 8)
            return make_rows<8>(0);
        if (tokens & 4)
            make_rows<4>(0);
        if (tokens & 2)
            make_rows<2>(tokens & 4);
        if (tokens & 1)
            one_token<MULTIPLIES_BYTES && S::has_bytes>::make(*this, tokens & 6);
    }
};

// A threadgroup of 8 computes 32 rows of up to 32 tokens; the second axis of the grid counts tiles of
// 32 tokens.
template <typename S, typename O>
METAL_FUNC void make_thread_strip(device const typename S::block *w, device const float *x,
                                  device float *y, O output, uint out_dim, uint in_dim, uint batch,
                                  uint2 group, uint lane) {
    const uint first = group.x * TILE_ROWS + STRIP * lane;
    if (first >= out_dim)
        return;
    const uint token = group.y * TILE_TOKENS;
    const thread_strip<S, O> strip = {
        w, x + size_t(token) * in_dim, y + size_t(token) * out_dim, output, first, out_dim, in_dim};
    strip.make(batch - token);
}

// y = W x and y += W x
template <typename S, bool accumulate>
kernel void per_thread(MATVEC_ARGUMENTS(typename S::block), constant uint &batch [[buffer(5)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]]) {
    const plain_output<accumulate> output = {};
    make_thread_strip<S>(w, x, y, output, out_dim, in_dim, batch, group, lane);
}

// y = activation(W x + bias)
template <typename S> kernel void activated_per_thread(MATVEC_ARGUMENTS(typename S::block),
                                                       ACTIVATION_ARGUMENTS,
                                                       constant uint &batch [[buffer(8)]],
                                                       uint2 group [[threadgroup_position_in_grid]],
                                                       uint lane [[thread_index_in_simdgroup]]) {
    const activated_output output = {bias, has_bias, activation};
    make_thread_strip<S>(w, x, y, output, out_dim, in_dim, batch, group, lane);
}

#define MATVEC_PER_THREAD(format)                                                                  \
    MATVEC_KERNEL("multi_token_matvec_" #format "_per_thread", per_thread, format##_eights, false) \
    MATVEC_KERNEL("multi_token_matvec_" #format "_accumulate_per_thread", per_thread,              \
                  format##_eights, true)                                                           \
    KERNEL("multi_token_matvec_" #format "_activate_per_thread",                                   \
           activated_per_thread<format##_eights>)
