// split_halves: x as halves that tensor cores multiply (cuda/matvec_split.metal): each value as two of
// them, the second of which has what the first one lost.
//
// The values of a token are multiplied by a power of two that brings the largest one to 2^14: 22 bits
// of a value are left, and fewer if it is less than 2^-17 of the largest. What a product is to be
// multiplied by is in `powers`.
//
// 32 columns of a token, a block, are 128 bytes: the first halves of the first 16, those of the others, then
// the second halves of both. Of 16 halves, the first 8 are the first and third of each four neighbours, the
// others follow: what a lane decodes of four weights at a time. A block of all tokens follows another, so that
// a tile of tokens is one bulk copy; and the 16 bytes numbered i are at place i ^ token % 8, where tensor
// cores read without conflicts of banks (a swizzle of 128 bytes).
//
// After all blocks come the means of each, 8 for 256 columns, for weights with minima: their first halves
// and their second ones, 32 bytes per token, in places i ^ token / 4 % 2 (a swizzle of 32 bytes).
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "prefetch.h"

enum : uint { GROUP = 256, TEAMS = GROUP / 32 };

// A threadgroup per token; columns are a multiple of 256.
[[max_total_threads_per_threadgroup(GROUP)]] kernel void
split_halves(device const float4 *x [[buffer(0)]], device uint4 *halves [[buffer(1)]],
             device float *powers [[buffer(2)]], constant uint &columns [[buffer(3)]],
             uint token [[threadgroup_position_in_grid]], uint tokens [[threadgroups_per_grid]],
             THREAD_PLACE) {
    threadgroup float most_of[TEAMS];
    PREFETCHED(0); // only the scalars
    const uint quads = columns / 4;
    x += size_t(token) * quads;
    device half *means = (device half *)(halves + size_t(columns / 32) * tokens * 8 + token * 2);
    halves += token * 8;
    float most = 0.0f;
    for (uint i = thread_index; i < quads; i += GROUP) {
        const float4 v = fabs(x[i]);
        most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    }
    most = simd_max(most);
    if (lane == 0)
        most_of[sg] = most;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < TEAMS; i++)
        most = max(most, most_of[i]);
    const uint exponent = clamp(as_type<uint>(most) >> 23u, 15u, 254u);
    const float power = as_type<float>((268u - exponent) << 23u);
    if (thread_index == 0)
        powers[token] = as_type<float>((exponent - 14u) << 23u);
    for (uint i = thread_index; i < quads / 4; i += GROUP) { // 16 neighbours
        uint4 words[4];
        float sum = 0.0f; // by fma: fast math puts sums into another order, but not these
        for (uint k = 0; k < 4; k++) {
            const float4 from = x[4 * i + k];
            const float4 v = from * power;
            for (uint c = 0; c < 4; c++)
                sum = fma(from[c], power, sum);
            const half4 first = half4(v);
            const half4 rest = half4(v - float4(first));
            words[0][k] = as_type<uint>(first.xz);
            words[1][k] = as_type<uint>(first.yw);
            words[2][k] = as_type<uint>(rest.xz);
            words[3][k] = as_type<uint>(rest.yw);
        }
        for (uint k = 0; k < 4; k++)
            halves[size_t(i / 2) * tokens * 8 + ((i % 2 * 2 + k / 2 * 4 + k % 2) ^ token % 8)] =
                words[k];
        const float mean = (sum + simd_shuffle_xor(sum, 1)) / 32.0f; // of a pair of lanes
        const half first = half(mean);
        means[size_t(i / 16) * tokens * 16 + (i % 2 ^ token / 4 % 2) * 8 + i / 2 % 8] =
            i % 2 ? half(mean - float(first)) : first;
    }
}
