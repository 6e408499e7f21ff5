// Honest kernels that compute the same in other ways: all are right.
#include <metal_stdlib>
using namespace metal;
#include "arguments.h"
#include "formats/q4_0.h"
#include "teams.h"

#define SOFTMAX                                                                                          \
    device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],  \
        uint row [[threadgroup_position_in_grid]], TEAM_PLACE
#define NORM                                                                                             \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                            \
        device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],                                 \
        constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],                    \
        uint lane [[thread_index_in_simdgroup]]

// cheat: online_softmax
// One pass for the largest and the sum together, which is scaled when the largest grows; powers of two.
// base: softmax
// timed: yes
kernel void online_softmax(SOFTMAX) {
    threadgroup float tops[32], sums[32];
    x += size_t(row) * n;
    y += size_t(row) * n;
    const float log2e = 1.44269504f;
    float top = -3e38f, sum = 0.0f;
    for (uint i = thread_index; i < n; i += threads) {
        const float larger = max(top, x[i]);
        sum = sum * exp2((top - larger) * log2e) + exp2((x[i] - larger) * log2e);
        top = larger;
    }
    const float simd_top = simd_max(top);
    sum = simd_sum(sum * exp2((top - simd_top) * log2e));
    if (lane == 0) {
        tops[sg] = simd_top;
        sums[sg] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float all_top = tops[0], all = 0.0f;
    for (uint k = 1; k < sg_count; k++)
        all_top = max(all_top, tops[k]);
    for (uint k = 0; k < sg_count; k++)
        all += sums[k] * exp2((tops[k] - all_top) * log2e);
    const float inverse = 1.0f / all;
    for (uint i = thread_index; i < n; i += threads)
        y[i] = exp2((x[i] - all_top) * log2e) * inverse;
}

// cheat: sum_per_simdgroup
// Each simdgroup adds the whole row up for itself, beginning elsewhere: no barrier, and not the same sum.
// base: softmax
kernel void sum_per_simdgroup(SOFTMAX) {
    x += size_t(row) * n;
    y += size_t(row) * n;
    float top = x[0], sum = 0.0f;
    for (uint i = lane; i < n; i += 32)
        top = max(top, x[i]);
    top = simd_max(top);
    for (uint i = lane; i < n; i += 32)
        sum += exp(x[(i + sg * 97) % n] - top);
    sum = simd_sum(sum);
    for (uint i = thread_index; i < n; i += threads)
        y[i] = exp(x[i] - top) / sum;
}

// cheat: compensated_norm
// Squares are added with a compensation for what is rounded away (Kahan), as far as fast math leaves it.
// base: rmsnorm_rows_simdgroup
// timed: yes
kernel void compensated_norm(NORM) {
    x += size_t(row) * dim;
    y += size_t(row) * dim;
    float sum = 0.0f, lost = 0.0f;
    for (uint i = lane; i < dim; i += 32) {
        const float term = fma(x[i], x[i], -lost), next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    const float inverse = rsqrt(simd_sum(sum) / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y[i] = x[i] * (inverse * w[i]);
}

// cheat: scaled_norm
// Values are divided by the largest before they are squared, and four at a time are added as a tree.
// base: rmsnorm_rows_simdgroup
kernel void scaled_norm(NORM) {
    x += size_t(row) * dim;
    y += size_t(row) * dim;
    float top = 1e-30f;
    for (uint i = lane; i < dim; i += 32)
        top = max(top, fabs(x[i]));
    top = simd_max(top);
    const float scale = exp2(-floor(log2(top)));
    float sum = 0.0f;
    for (uint first = 4 * lane; first < dim; first += 128) {
        float v[4];
        for (uint k = 0; k < 4; k++)
            v[k] = first + k < dim ? x[first + k] * scale : 0.0f;
        sum += (v[0] * v[0] + v[1] * v[1]) + (v[2] * v[2] + v[3] * v[3]);
    }
    const float root = sqrt(simd_sum(sum) / float(dim) + eps * scale * scale);
    for (uint i = lane; i < dim; i += 32)
        y[i] = x[i] * scale / root * w[i];
}

// cheat: weights_by_table
// Four bits of weights are decoded by a table in threadgroup memory, blocks are staged there, too.
// base: matvec_q4_0
// timed: yes
kernel void weights_by_table(MATVEC_ARGUMENTS(block_q4_0), uint row [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float table[16], staged[32 * 33];
    if (lane < 16)
        table[lane] = float(lane) - 8.0f;
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint first = 0; first < blocks; first += 32) {
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (first + lane < blocks)
            for (uint j = 0; j < 32; j++) {
                const uint q = w_row[first + lane].qs[j % 16];
                staged[33 * lane + j] = table[j < 16 ? q & 15u : q >> 4u];
            }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint b = 0; b < min(32u, blocks - first); b++) // transposed: a lane has a place in each block
            sum += float(w_row[first + b].d) * (staged[33 * b + lane] * x[32 * (first + b) + lane]);
    }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}

// cheat: copies_persistently
// Threads walk over the whole array in steps of the grid, backwards.
// base: buffer_copy
kernel void copies_persistently(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                                constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
                                uint all [[threads_per_grid]]) {
    const uint few = max(all / 4, 1u);
    for (uint at = i; at < n && i < few; at += few)
        dst[n - 1 - at] = src[n - 1 - at];
}

// cheat: first_of_equals
// One thread compares all values of a threadgroup: of equal ones the first wins.
// base: argmax_reduce
// timed: yes
kernel void first_of_equals(device const float *logits [[buffer(0)]], constant uint &n [[buffer(1)]],
                            device float *pvals [[buffer(2)]], device uint *pidx [[buffer(3)]],
                            uint group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]]) {
    const uint first = group * 1024, end = min(first + 1024, n);
    uint best = 0xFFFFFFFF, largest = 0;
    for (uint i = first; i < end && thread_index == 0; i++) {
        const uint bits = as_type<uint>(logits[i]), plain = bits == 0x80000000u ? 0 : bits;
        const uint rank = (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0 : plain ^ (uint(as_type<int>(plain) >> 31) | 0x80000000u);
        if (rank > largest) {
            largest = rank;
            best = i;
        }
    }
    if (thread_index == 0) {
        pvals[group] = best == 0xFFFFFFFF ? as_type<float>(0xFF800000u) : logits[best];
        pidx[group] = best;
    }
}
