// matvec_rows: matrix times vectors, for weights of any format. Everything here is written once and
// instantiated for each format by matvec_<format>.metal, with the macros at the end.
//
// F is a format (formats/formats.h): how weights are stored and decoded.
// An input X gives x as F::wide, from any memory: at(i) starts at element i. from(i) is the rest of
// it from there on: an address that several loads share.
//
// in_dim is a multiple of F::values and of a unit: product_record refuses anything else.
#pragma once

#include "../activations.h"
#include "../arguments.h"

inline float total(float v) {
    return v;
}
inline float total(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

template <bool accumulate> inline void put(device float *y, float value) {
    if (accumulate)
        *y += value;
    else
        *y = value;
}

// An output O takes the product of a row: it replaces y, is added to it, or has its row's bias added
// and goes through an activation (activations.h).
template <bool accumulate> struct plain_output {
    void take(device float *y, uint, float value) const { put<accumulate>(y, value); }
};

struct activated_output {
    device const float *bias;
    uint has_bias, activation;
    void take(device float *y, uint row, float value) const {
        *y = activate(activation, has_bias ? value + bias[row] : value);
    }
};

// x in device memory.
template <typename V> struct plain_input {
    device const float *x;
    V at(uint i) const { return *(device const V *)(x + i); }
    plain_input from(uint i) const { return {x + i}; }
};

// dots[t] = the products of units first, first + stride, ... of a row with token t of T, which
// starts at x + t * in_dim. A unit is decoded once for all T. A single token has four sums, so that
// successive additions need not wait for each other.
template <typename F, uint T, typename X>
METAL_FUNC void add_products(device const typename F::block *w_row, X x, uint in_dim, uint first,
                             uint stride, thread typename F::wide *dots) {
    const uint width = sizeof(typename F::wide) / sizeof(float);
    const uint span = F::wides * width;
    const uint chains = T == 1 ? 4 : 1;
    typename F::wide sums[T * chains] = {};
    for (uint unit = first; unit < in_dim / span; unit += stride) {
        typename F::wide weights[F::wides];
        F::load(w_row, unit, weights);
        for (uint t = 0; t < T; t++) {
            const X x_unit = x.from(t * in_dim + unit * span);
            for (uint i = 0; i < F::wides; i++) {
                const uint c = t * chains + i % chains;
                sums[c] = fma(weights[i], x_unit.at(i * width), sums[c]);
            }
        }
    }
    for (uint t = 0; t < T; t++) {
        dots[t] = sums[t * chains];
        for (uint c = 1; c < chains; c++)
            dots[t] += sums[t * chains + c];
    }
}

// The product of a row with one x, computed by a simdgroup and returned to all its lanes: lane l
// takes units l, l + 32, ...
template <typename F, typename X>
inline float dot_row(device const typename F::block *w, X x, uint row, uint in_dim, uint lane) {
    typename F::wide dots;
    add_products<F, 1>(w + size_t(row) * (in_dim / F::values), x, in_dim, lane, 32, &dots);
    return simd_sum(total(dots));
}

// y = W x, or y += W x. A threadgroup of 256 computes 8 rows, one simdgroup each. Reads each weight
// once, x once per row from cache, writes 4 bytes per row. The first variant of every format.
template <typename F, bool accumulate>
kernel void matvec(MATVEC_ARGUMENTS(typename F::block), uint group [[threadgroup_position_in_grid]],
                   SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const plain_input<typename F::wide> input = {x};
    const float sum = dot_row<F>(w, input, row, in_dim, lane);
    if (lane == 0)
        put<accumulate>(y + row, sum);
}

// The same for each row of x (batch, in_dim), giving y (batch, out_dim): the loop over tokens is
// the outermost, so a row of W is read from cache and decoded again for each token. It exists to be
// measured: many tokens share a launch and nothing else.
template <typename F, bool accumulate>
kernel void multi_token(MATVEC_ARGUMENTS(typename F::block), constant uint &batch [[buffer(5)]],
                        uint group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    for (uint t = 0; t < batch; t++) {
        const plain_input<typename F::wide> input = {x + size_t(t) * in_dim};
        const float sum = dot_row<F>(w, input, row, in_dim, lane);
        if (lane == 0)
            put<accumulate>(y + size_t(t) * out_dim + row, sum);
    }
}

// A tile is up to 8 tokens of one row. make<T> computes it for T of them.

// By a quad: lane `part` of it takes units part, part + 4, ... and in the end stores tokens part,
// part + 4, ... A row past the end is replaced by the last one: all lanes of a simdgroup must take
// part in quad_sum, and its weights can be read.
template <typename F, typename O> struct quad_tile {
    device const typename F::block *w;
    device const float *x;
    device float *y;
    O output;
    uint row, part, out_dim, in_dim;

    template <uint T> METAL_FUNC void make() const {
        device const typename F::block *w_row =
            w + size_t(min(row, out_dim - 1)) * (in_dim / F::values);
        const plain_input<typename F::wide> input = {x};
        typename F::wide dots[T];
        add_products<F, T>(w_row, input, in_dim, part, 4, dots);
        for (uint t = 0; t < T; t += 4) {
            float4 sums = float4(0.0f);
            for (uint i = 0; i < min(4u, T - t); i++)
                sums[i] = total(dots[t + i]);
            sums = quad_sum(sums);
            // Selected, because a vector that is indexed by lane is not in registers.
            const float mine =
                part < 2 ? (part == 0 ? sums.x : sums.y) : (part == 2 ? sums.z : sums.w);
            if (row < out_dim && t + part < T)
                output.take(y + size_t(t + part) * out_dim + row, row, mine);
        }
    }
};

// The last tile may have 1 to 7 tokens, and each of these sizes has code of its own, so that sums
// stay in registers.
template <typename Tile> METAL_FUNC void make_tile(Tile tile, uint tokens) {
    switch (tokens) {
    case 1:
        return tile.template make<1>();
    case 2:
        return tile.template make<2>();
    case 3:
        return tile.template make<3>();
    case 4:
        return tile.template make<4>();
    case 5:
        return tile.template make<5>();
    case 6:
        return tile.template make<6>();
    case 7:
        return tile.template make<7>();
    default:
        return tile.template make<8>();
    }
}

// Where the tile of a thread starts, and how it is computed.
template <typename F, typename O>
METAL_FUNC void make_quad_tile(device const typename F::block *w, device const float *x,
                               device float *y, O output, uint out_dim, uint in_dim, uint batch,
                               uint2 group, uint sg, uint lane) {
    const uint first = (group.x * 4 + sg) * 8;
    if (first >= out_dim)
        return;
    const uint token = group.y * 8;
    const quad_tile<F, O> tile = {w,
                                  x + size_t(token) * in_dim,
                                  y + size_t(token) * out_dim,
                                  output,
                                  first + lane / 4,
                                  lane % 4,
                                  out_dim,
                                  in_dim};
    make_tile(tile, batch - token);
}

// The same product, with each weight read and decoded once for up to 8 tokens, whose sums are in
// registers. A threadgroup of 128 computes 32 rows of 8 tokens (the second axis of the grid counts
// tiles of 8 tokens): a simdgroup computes 8 rows, one quad each. The 8 quads read the same x,
// which then costs one load for 8 rows, and a sum is reduced over only 4 lanes.
template <typename F, bool accumulate>
kernel void reuse(MATVEC_ARGUMENTS(typename F::block), constant uint &batch [[buffer(5)]],
                  uint2 group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    const plain_output<accumulate> output = {};
    make_quad_tile<F>(w, x, y, output, out_dim, in_dim, batch, group, sg, lane);
}

// y = activation(W x + bias), by two of the ways above: one simdgroup per row, a quad per row. What a layer does to each output is then no launch of its own.
template <typename F>
kernel void activated(MATVEC_ARGUMENTS(typename F::block), ACTIVATION_ARGUMENTS,
                      uint group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const plain_input<typename F::wide> input = {x};
    const float sum = dot_row<F>(w, input, row, in_dim, lane);
    const activated_output output = {bias, has_bias, activation};
    if (lane == 0)
        output.take(y + row, row, sum);
}

template <typename F>
kernel void activated_reuse(MATVEC_ARGUMENTS(typename F::block), ACTIVATION_ARGUMENTS,
                            constant uint &batch [[buffer(8)]],
                            uint2 group [[threadgroup_position_in_grid]], SIMDGROUP_PLACE) {
    const activated_output output = {bias, has_bias, activation};
    make_quad_tile<F>(w, x, y, output, out_dim, in_dim, batch, group, sg, lane);
}

// The kernels of a format, = and +=. `any` is the format as read in rows of any length. A new
// variant is a template above, two lines here and a row in product/table.h.
#define MATVEC_KERNEL(name, function, format, accumulate) KERNEL(name, function<format, accumulate>)

#define MATVEC_ONE_TOKEN(format, any)                                                              \
    MATVEC_KERNEL("matvec_" #format, matvec, any, false)                                           \
    MATVEC_KERNEL("matvec_" #format "_accumulate", matvec, any, true)

#define MATVEC_TOKEN_BY_TOKEN(format, any)                                                         \
    MATVEC_KERNEL("multi_token_matvec_" #format, multi_token, any, false)                          \
    MATVEC_KERNEL("multi_token_matvec_" #format "_accumulate", multi_token, any, true)

#define MATVEC_MANY_TOKENS(format, any)                                                            \
    MATVEC_KERNEL("multi_token_matvec_" #format "_reuse", reuse, format, false)                    \
    MATVEC_KERNEL("multi_token_matvec_" #format "_accumulate_reuse", reuse, format, true)          \
    KERNEL("matvec_" #format "_activate", activated<any>)                                          \
    KERNEL("multi_token_matvec_" #format "_activate_reuse", activated_reuse<format>)
