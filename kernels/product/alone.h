// matvec_alone: matrix times vectors by threads that work alone, for weights of any format.
//
// S is a format by eights (formats/formats.h). Loads are not coalesced, and most lanes of a simdgroup
// are missing: this is for the software device, which runs one thread after another, has no lanes to
// reduce over, and multiplies eight floats at a time (eight.h).
#pragma once

#include "../eight.h"
#include "row.h"

// A thread computes STRIP rows of up to 8 tokens. O takes the products (row.h).
constant uint STRIP = 4;

template <typename S, typename O> struct lone_strip {
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
    // first, and the sum of those that have the same scale is scaled. What is the same for all of
    // them is a product with a sum of x.
    static METAL_FUNC eight_floats add_part(device const typename S::block *b, uint part,
                                            thread const eight_floats *x,
                                            thread const eight_floats *x_sums, eight_floats sums) {
        eight_floats n[S::eights];
        S::get(b, part, n);
        for (uint s = 0; s < S::scales; s++) {
            eight_floats dots = S::centre != 0 ? x_sums[s] : eight_floats(0.0f);
            for (uint i = s * share; i < s * share + share; i++)
                dots = multiply_add(n[i], x[i], dots);
            const float2 scale = S::get_scale(b, part, s);
            sums = multiply_add(eight_floats(scale.x), dots, sums);
            if (S::has_minimum)
                sums = multiply_add(eight_floats(scale.y), x_sums[s], sums);
        }
        return sums;
    }

    // One token: x is loaded once for all rows of the strip.
    METAL_FUNC void make_strip(uint token) const {
        device const typename S::block *rows[STRIP];
        eight_floats sums[STRIP];
        for (uint r = 0; r < STRIP; r++) {
            rows[r] = find_row(first + r);
            sums[r] = eight_floats(0.0f);
        }
        for (uint b = 0; b < in_dim / S::values; b++)
            for (uint part = 0; part < parts; part++) {
                device const float *at = x + size_t(token) * in_dim + S::values * b;
                eight_floats values[S::eights];
                eight_floats x_sums[S::scales]; // times what a number is too large by
                for (uint i = 0; i < S::eights; i++)
                    values[i] = load_floats(at + S::place(part, i));
                for (uint s = 0; s < S::scales; s++) {
                    x_sums[s] = values[s * share];
                    for (uint i = 1; i < share; i++)
                        x_sums[s] = x_sums[s] + values[s * share + i];
                    if (S::centre != 0)
                        x_sums[s] = x_sums[s] * eight_floats(-float(S::centre));
                }
                for (uint r = 0; r < STRIP; r++)
                    sums[r] = add_part(rows[r] + b, part, values, x_sums, sums[r]);
            }
        for (uint r = 0; r < STRIP; r++)
            store(token, first + r, sums[r]);
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
            return make_strip(token);
        for (uint row = first; row < min(first + STRIP, out_dim); row++)
            make_plain_row(row, token);
    }

    // Eight weights at a time of a part.
    static METAL_FUNC void decode(device const typename S::block *b, uint part,
                                  thread eight_floats *weights) {
        S::get(b, part, weights);
        for (uint s = 0; s < S::scales; s++) {
            const float2 scale = S::get_scale(b, part, s);
            const float add = S::has_minimum ? scale.y : -float(S::centre) * scale.x;
            for (uint i = s * share; i < s * share + share; i++)
                weights[i] = multiply_add(weights[i], eight_floats(scale.x), eight_floats(add));
        }
    }

    // T tokens: each weight is decoded once for all of them.
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

    // Each number of tokens has code of its own, so that sums stay in registers.
    METAL_FUNC void make(uint tokens) const {
        if (tokens >= 8)
            return make_rows<8>(0);
        if (tokens & 4)
            make_rows<4>(0);
        if (tokens & 2)
            make_rows<2>(tokens & 4);
        if (tokens & 1)
            make_one(tokens & 6);
    }
};

// A threadgroup of 8 computes 32 rows of up to 8 tokens; the second axis of the grid counts tiles of
// 8 tokens.
template <typename S, typename O>
METAL_FUNC void make_lone_strip(device const typename S::block *w, device const float *x,
                                device float *y, O output, uint out_dim, uint in_dim, uint batch,
                                uint2 group, uint lane) {
    const uint first = group.x * 32 + STRIP * lane;
    if (first >= out_dim)
        return;
    const uint token = group.y * 8;
    const lone_strip<S, O> strip = {
        w, x + size_t(token) * in_dim, y + size_t(token) * out_dim, output, first, out_dim, in_dim};
    strip.make(batch - token);
}

// y = W x and y += W x
template <typename S, bool accumulate>
kernel void alone(device const typename S::block *w [[buffer(0)]],
                  device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                  constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                  constant uint &batch [[buffer(5)]], uint2 group [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
    const plain_output<accumulate> output = {};
    make_lone_strip<S>(w, x, y, output, out_dim, in_dim, batch, group, lane);
}

// y = activation(W x + bias)
template <typename S> kernel void
activated_alone(device const typename S::block *w [[buffer(0)]],
                device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                device const float *bias [[buffer(5)]], constant uint &has_bias [[buffer(6)]],
                constant uint &activation [[buffer(7)]], constant uint &batch [[buffer(8)]],
                uint2 group [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]]) {
    const activated_output output = {bias, has_bias, activation};
    make_lone_strip<S>(w, x, y, output, out_dim, in_dim, batch, group, lane);
}

#define MATVEC_ALONE(format)                                                                       \
    MATVEC_KERNEL("multi_token_matvec_" #format "_alone", alone, format##_eights, false)           \
    MATVEC_KERNEL("multi_token_matvec_" #format "_accumulate_alone", alone, format##_eights, true) \
    MATVEC_ACTIVATED("multi_token_matvec_" #format "_activate_alone", activated_alone,             \
                     format##_eights)
