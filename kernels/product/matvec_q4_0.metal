// matvec_q4_0: y = W x and y += W x, with W (out_dim, in_dim) in Q4_0 blocks: most of the work of a
// decode step.
//
// Every variant reads each weight once (18 bytes for 32 of them), x once per row from cache, and
// writes 4 bytes per row. They differ in how rows and blocks are assigned to threads. In all of
// them neighbouring lanes read neighbouring blocks, rows past the end are skipped, and
// in_dim is a multiple of 32: product_record refuses anything else.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q4_0.h"
#include "per_thread.h"
#include "vec16.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"
#include "scatter_sums.h"

// Rows of Q4_0 weights times 8 tokens by one simdgroup.
//
// A lane takes half blocks, as q4_0_parts does. It decodes those of R rows once, to floats that are
// exact, and multiplies them with 8 tokens, whose R * 8 sums stay in registers. In the end the lanes
// exchange sums so that each has one sum, or several lanes the same.

constant uint TOKENS = 8;

// The sums of R rows and 8 tokens. A kernel calls take, which loads only weights, then PREFETCHED, then
// add and finish.
template <uint R> struct token_sums {
    float dots[R * TOKENS];
    q4_0_half_bits bits[R]; // on their way

    METAL_FUNC void take(device const block_q4_0 *const thread *rows, uint in_dim, uint block,
                         uint lane) {
        const uint b = min(block, in_dim / 32 - 1);
        for (uint r = 0; r < R; r++)
            bits[r] = q4_0_take_half(rows[r] + b, lane % 2);
    }

    // Tokens first to first + 7 of x (tokens, in_dim); past the last one, the last is repeated. The
    // next half block is loaded while one is multiplied.
    METAL_FUNC void add(device const block_q4_0 *const thread *rows, device const float *x,
                        uint in_dim, uint first, uint tokens, uint lane) {
        for (uint i = 0; i < R * TOKENS; i++)
            dots[i] = 0.0f;
        const uint sixteen = get_sixteen(in_dim);
        for (uint b = lane / 2; b < in_dim / 32; b += 16) {
            float4 w[R][4];
            for (uint r = 0; r < R; r++)
                q4_0_decode_half(bits[r], sixteen, w[r]);
            take(rows, in_dim, b + 16, lane);
            for (uint t = 0; t < TOKENS; t++)
                add_token(w, x + size_t(min(first + t, tokens - 1)) * in_dim + 32 * b, lane % 2, t);
        }
    }

    METAL_FUNC void add_token(thread const float4 (&w)[R][4], device const float *x, uint part,
                              uint t) {
        const q4_0_half_input v = q4_0_load_half(x, part);
        for (uint r = 0; r < R; r++) {
            float4 dot = w[r][0] * v.low_even;
            dot = fma(w[r][1], v.low_odd, dot);
            dot = fma(w[r][2], v.high_even, dot);
            dot = fma(w[r][3], v.high_odd, dot);
            dots[r * TOKENS + t] += (dot.x + dot.y) + (dot.z + dot.w);
        }
    }

    // The sum that token_place says this lane has.
    METAL_FUNC float finish(uint lane) {
        scatter<R * TOKENS>::sum(dots, lane);
        return dots[0];
    }
};

// What a lane has after token_sums were exchanged: the sum of one row and one token. With R * 8 < 32
// several lanes have the same.
template <uint R> struct token_place {
    uint row;   // of the R
    uint token; // of the 8
    bool is_first;

    METAL_FUNC explicit token_place(uint lane) {
        const uint sharing = 32 / (R * TOKENS);
        row = lane / sharing / TOKENS;
        token = lane / sharing % TOKENS;
        is_first = lane % sharing == 0;
    }
};

// A threadgroup is one simdgroup and computes one row; a thread takes blocks lane, lane + 32, ...
// and decodes them weight by weight. The first variant: as close to the definition as parallel code
// gets.
kernel void matvec_q4_0(MATVEC_ARGUMENTS(block_q4_0),
                        uint row [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint b = lane; b < blocks; b += 32) {
        const float d = float(w_row[b].d);
        for (uint j = 0; j < 16; j++) {
            const uint q = w_row[b].qs[j];
            sum += d * (float(q & 15u) - 8.0f) * x[32 * b + j];
            sum += d * (float(q >> 4u) - 8.0f) * x[32 * b + j + 16];
        }
    }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// The same assignment; a thread decodes four weights at a time for a float4 of x and multiplies by
// the scale once per block. Tries: wide loads of x and 31 fewer multiplications per block.
kernel void matvec_q4_0_vec4(MATVEC_ARGUMENTS(block_q4_0),
                             uint row [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint b = lane; b < blocks; b += 32)
        sum += q4_0_dot(w_row + b, (device const float4 *)(x + 32 * b));
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// A threadgroup of 256 computes 4 rows, two simdgroups per row, which combine their sums in
// threadgroup memory. Tries: larger threadgroups, and more threads per row. A row of 576 has only
// 18 blocks, so 46 of the 64 threads are idle there: a short row needs fewer threads, not more.
kernel void matvec_q4_0_multirow(MATVEC_ARGUMENTS(block_q4_0),
                                 uint group [[threadgroup_position_in_grid]],
                                 SIMDGROUP_PLACE) {
    threadgroup float partial[8];
    const uint row = group * 4 + sg / 2;
    const uint blocks = in_dim / 32;
    float sum = 0.0f;
    if (row < out_dim) {
        device const block_q4_0 *w_row = w + size_t(row) * blocks;
        for (uint b = (sg % 2) * 32 + lane; b < blocks; b += 64)
            sum += q4_0_dot(w_row + b, (device const float4 *)(x + 32 * b));
    }
    sum = simd_sum(sum);
    if (lane == 0)
        partial[sg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0 && sg % 2 == 0 && row < out_dim)
        y[row] = partial[sg] + partial[sg + 1];
}

// A threadgroup of 256 computes 32 rows: each of its 8 simdgroups computes 4, one after another.
// Tries: fewer threadgroups to schedule. Rows do not share anything yet; x is read again for each.
kernel void matvec_q4_0_simdgroup(MATVEC_ARGUMENTS(block_q4_0),
                                  uint group [[threadgroup_position_in_grid]],
                                  SIMDGROUP_PLACE) {
    const uint blocks = in_dim / 32;
    const uint first = (group * 8 + sg) * 4;
    const uint end = min(first + 4, out_dim);
    for (uint row = first; row < end; row++) {
        device const block_q4_0 *w_row = w + size_t(row) * blocks;
        float sum = 0.0f;
        for (uint b = lane; b < blocks; b += 32)
            sum += q4_0_dot(w_row + b, (device const float4 *)(x + 32 * b));
        sum = simd_sum(sum);
        if (lane == 0)
            y[row] = sum;
    }
}

// A threadgroup of 256 computes 8 rows, one simdgroup each. A thread reads its block as nine
// ushorts, the widest loads its alignment allows, instead of seventeen loads of a half and bytes.
// Tries: fewer, wider and coalesced loads.
kernel void matvec_q4_0_coalesced(MATVEC_ARGUMENTS(block_q4_0),
                                  uint group [[threadgroup_position_in_grid]],
                                  SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint b = lane; b < blocks; b += 32) {
        device const ushort *words = (device const ushort *)(w_row + b);
        device const float2 *low = (device const float2 *)(x + 32 * b);
        device const float2 *high = low + 8;
        float2 dots = float2(0.0f);
        for (uint j = 0; j < 8; j++) {
            const uint q = words[1 + j];
            dots += (float2(q & 15u, (q >> 8u) & 15u) - 8.0f) * low[j];
            dots += (float2((q >> 4u) & 15u, q >> 12u) - 8.0f) * high[j];
        }
        sum += float(as_type<half>(words[0])) * (dots.x + dots.y);
    }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// A threadgroup of 256 computes 8 rows, one simdgroup each; a thread takes half blocks lane, lane +
// 32, ... so that two neighbours share a block and a row of 576 occupies all 32 lanes (36 half
// blocks) where whole blocks left 14 of them idle. The 8 of every weight is subtracted once per
// half block.
kernel void matvec_q4_0_halfblock(MATVEC_ARGUMENTS(block_q4_0),
                                  uint group [[threadgroup_position_in_grid]],
                                  SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    const uint part = lane % 2;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint b = lane / 2; b < blocks; b += 16)
        sum += q4_0_half_dot(w_row + b, part, q4_0_load_half(x + 32 * b, part));
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// A threadgroup of 128 computes 16 rows: each of its 4 simdgroups computes 4 at once. A thread
// takes half blocks as in matvec_q4_0_halfblock, but loads and rearranges its 16 values of x, and
// their sum, once for 4 rows. In the last threadgroup rows past the end are replaced by the last
// row, whose weights can be read, and their sums are dropped. Tries: a quarter of the traffic in x,
// and four independent loads of weights in flight per thread.
kernel void matvec_q4_0_rowblock(MATVEC_ARGUMENTS(block_q4_0),
                                 uint group [[threadgroup_position_in_grid]],
                                 SIMDGROUP_PLACE) {
    const uint first = (group * 4 + sg) * 4;
    if (first >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    const uint part = lane % 2;
    const uint last = out_dim - 1;
    device const block_q4_0 *w0 = w + size_t(first) * blocks;
    device const block_q4_0 *w1 = w + size_t(min(first + 1, last)) * blocks;
    device const block_q4_0 *w2 = w + size_t(min(first + 2, last)) * blocks;
    device const block_q4_0 *w3 = w + size_t(min(first + 3, last)) * blocks;
    float4 sums = float4(0.0f);
    for (uint b = lane / 2; b < blocks; b += 16) {
        const q4_0_half_input input = q4_0_load_half(x + 32 * b, part);
        sums.x += q4_0_half_dot(w0 + b, part, input);
        sums.y += q4_0_half_dot(w1 + b, part, input);
        sums.z += q4_0_half_dot(w2 + b, part, input);
        sums.w += q4_0_half_dot(w3 + b, part, input);
    }
    sums = simd_sum(sums);
    if (lane < 4 && first + lane < out_dim)
        y[first + lane] = sums[lane];
}

// y += W x (row.h). A projection whose result goes into the residual stream needs no buffer, no launch and
// no traffic for the addition: the row is added where it would have been stored.
MATVEC_KERNEL("matvec_q4_0_accumulate", matvec, q4_0, true)

MATVEC_VEC16(q4_0)

// For many tokens: see row.h and per_thread.h.
MATVEC_TOKEN_BY_TOKEN(q4_0, q4_0)
MATVEC_MANY_TOKENS(q4_0, q4_0)
MATVEC_PER_THREAD(q4_0)

// y = activation(W x + bias): R rows per simdgroup, 4 simdgroups per threadgroup of 128, and 8 tokens
// (token_sums); the second axis of the grid counts tiles of 8 tokens. Few rows per simdgroup fill a
// GPU when there are few tokens; more rows use each value of x more often.
template <uint R>
kernel void activated_vec16(MATVEC_ARGUMENTS(block_q4_0),
                            ACTIVATION_ARGUMENTS,
                            constant uint &batch [[buffer(8)]],
                            uint2 group [[threadgroup_position_in_grid]],
                            SIMDGROUP_PLACE) {
    const uint first = (group.x * 4 + sg) * R;
    if (first >= out_dim)
        return;
    device const block_q4_0 *rows[R];
    for (uint r = 0; r < R; r++)
        rows[r] = w + size_t(min(first + r, out_dim - 1)) * (in_dim / 32);
    token_sums<R> sums;
    sums.take(rows, in_dim, lane / 2, lane);
    PREFETCHED(1);
    sums.add(rows, x, in_dim, group.y * TOKENS, batch, lane);
    const float sum = sums.finish(lane);
    const token_place<R> place(lane);
    const uint row = first + place.row;
    const uint token = group.y * TOKENS + place.token;
    const activated_output output = {bias, has_bias, activation};
    if (place.is_first && row < out_dim && token < batch)
        output.take(y + size_t(token) * out_dim + row, row, sum);
}

KERNEL("multi_token_matvec_q4_0_activate_vec16", activated_vec16<2>)
KERNEL("multi_token_matvec_q4_0_activate_vec16_rows", activated_vec16<4>)

// Large batches: see tiled.h.

MATVEC_TILED(q4_0, q4_0_tiles)
MATVEC_MATRIX(q4_0, tile_numbers<q4_0_numbers>)
MATVEC_TILED_SIZE(q4_0, q4_0_tiles, split_k)
MATVEC_TILED_SIZE(q4_0, q4_0_tiles, skinny)
