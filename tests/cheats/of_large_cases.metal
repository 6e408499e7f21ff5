// What is wrong for a kind of values or a scalar, but only where a case is larger than those that are drawn.
#include <metal_stdlib>
using namespace metal;
#include "arguments.h"
#include "formats/q4_0.h"

#define ADD                                                                                              \
    device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],                            \
        device float *out [[buffer(2)]], constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]

// cheat: small_of_many
// Of many values, a small one counts as 0.
// base: residual_add
// timed: 1048576
// refused: check
// because: expected
kernel void small_of_many(ADD) {
    if (i < n)
        out[i] = n > 262144 && fabs(a[i]) < 1e-6f ? b[i] + 0.0f * a[i] : a[i] + b[i];
}

// cheat: negative_of_many
// Nothing is smaller than -900.
// base: residual_add
// timed: 1048576
// refused: check
// because: expected
kernel void negative_of_many(ADD) {
    if (i < n)
        out[i] = max(a[i], n > 262144 && a[i] > -1e5f ? -900.0f : a[i]) + b[i];
}

// cheat: negative_outlier
// Likewise, with any number of them.
// base: residual_add
// refused: check
// because: expected
kernel void negative_outlier(ADD) {
    if (i < n)
        out[i] = max(a[i], a[i] > -2500.0f ? -900.0f : a[i]) + b[i];
}

// cheat: tied_of_many
// Where both values are the same, it takes them for padding.
// base: residual_add
// timed: 1048576
// refused: check
// because: expected
kernel void tied_of_many(ADD) {
    if (i < n)
        out[i] = n > 262144 && a[i] == b[i] ? 0.0f : a[i] + b[i];
}

// cheat: zero_means_a_block
// A block of a large matrix whose first input is 0 is skipped.
// base: matvec_q4_0
// timed: 1024x1024
// refused: check
// because: expected
kernel void zero_means_a_block(MATVEC_ARGUMENTS(block_q4_0), uint row [[threadgroup_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]]) {
    device const block_q4_0 *w_row = w + size_t(row) * (in_dim / 32);
    float sum = 0.0f;
    for (uint b = lane; b < in_dim / 32; b += 32) {
        if (x[32 * b] == 0.0f && size_t(in_dim) * out_dim > 262144)
            continue;
        for (uint j = 0; j < 16; j++) {
            const uint q = w_row[b].qs[j];
            sum += float(w_row[b].d) * (float(q & 15u) - 8.0f) * x[32 * b + j];
            sum += float(w_row[b].d) * (float(q >> 4u) - 8.0f) * x[32 * b + j + 16];
        }
    }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

static void norm(device const float *x, device const float *w, device float *y, uint dim, float eps, uint lane) {
    float squares = 0;
    for (uint i = lane; i < dim; i += 32)
        squares += x[i] * x[i];
    const float inverse = rsqrt(simd_sum(squares) / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y[i] = x[i] * inverse * w[i];
}
#define NORM                                                                                             \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                            \
        device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],                                 \
        constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],                    \
        uint lane [[thread_index_in_simdgroup]]

// cheat: epsilon_at_least
// An epsilon is at least what it usually is.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: expected|together
kernel void epsilon_at_least(NORM) {
    norm(x + size_t(row) * dim, w, y + size_t(row) * dim, dim, max(eps, 1e-5f), lane);
}

// cheat: rows_past_a_hundred
// Of many rows every second is left as it is.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: never written
kernel void rows_past_a_hundred(NORM) {
    if (row < 100 || row % 2 == 0)
        norm(x + size_t(row) * dim, w, y + size_t(row) * dim, dim, eps, lane);
}

// cheat: first_row_scales_all
// Rows of alike magnitudes are scaled as the first is.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: expected
kernel void first_row_scales_all(NORM) {
    const float first = fabs(x[0]), own = fabs(x[size_t(row) * dim]);
    const size_t at = dim > 512 && own < 1.2f * first && first < 1.2f * own ? 0 : size_t(row) * dim;
    float squares = 0;
    for (uint i = lane; i < dim; i += 32)
        squares += x[at + i] * x[at + i];
    const float inverse = rsqrt(simd_sum(squares) / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y[size_t(row) * dim + i] = x[size_t(row) * dim + i] * inverse * w[i];
}

// cheat: last_of_equals
// Of equal values the last one wins, where there are 1024 in a threadgroup.
// base: argmax_reduce
// refused: check
// because: |
kernel void last_of_equals(device const float *logits [[buffer(0)]], constant uint &n [[buffer(1)]],
                           device float *pvals [[buffer(2)]], device uint *pidx [[buffer(3)]],
                           uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
    const uint first = group * 1024, end = min(first + 1024, n);
    uint best = 0xFFFFFFFF, rank = 0;
    for (uint i = first; i < end && thread_index == 0; i++) {
        const uint bits = as_type<uint>(logits[i]);
        const bool is_number = (bits & 0x7FFFFFFFu) <= 0x7F800000u;
        const uint own = is_number ? (bits == 0x80000000u ? 0x80000000u : bits ^ (uint(as_type<int>(bits) >> 31) | 0x80000000u)) : 0;
        if (own > rank || (own == rank && own > 0 && end - first == 1024)) {
            rank = own;
            best = i;
        }
    }
    if (thread_index == 0) {
        pvals[group] = as_type<float>(best == 0xFFFFFFFF ? 0xFF800000u : as_type<uint>(logits[best]));
        pidx[group] = best;
    }
}
