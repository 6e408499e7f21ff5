// time_first_v7: the bonus of RWKV-7, x += (sum over the head of r_k * k * r) * v.
//
// packed (4, tokens, dim) holds k and v in its first two parts; r_k is (heads, head_size).
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "teams.h"

template <typename T>
METAL_FUNC void add_bonus(T team, device const float *r_k, device const float *r,
                          device const float *k, device const float *v, device float *x,
                          uint head_size) {
    float sum = 0.0f;
    for (uint i = team.first(); i < head_size; i += team.step())
        sum += r_k[i] * k[i] * r[i];
    sum = team.sum(sum, 0);
    for (uint i = team.first(); i < head_size; i += team.step())
        x[i] += sum * v[i];
}

#define TIME_FIRST_ARGUMENTS                                                                       \
    device const float *r_k [[buffer(0)]], device const float *r [[buffer(1)]],                    \
        device const float *packed [[buffer(2)]], device float *x [[buffer(3)]],                   \
        constant uint &tokens [[buffer(4)]], constant uint &heads [[buffer(5)]],                   \
        constant uint &head_size [[buffer(6)]]

// A threadgroup of 256 computes 8 heads of any tokens, one simdgroup each.
kernel void time_first_v7(TIME_FIRST_ARGUMENTS,
                          uint group [[threadgroup_position_in_grid]],
                          SIMDGROUP_PLACE) {
    const uint index = group * 8 + sg;
    if (index >= tokens * heads)
        return;
    const one_simdgroup team = {lane};
    const size_t at = size_t(index) * head_size;
    const size_t plane = size_t(tokens) * heads * head_size;
    add_bonus(team, r_k + index % heads * head_size, r + at, packed + at, packed + plane + at,
              x + at, head_size);
}

// One thread per head of a token, for the software device.
kernel void time_first_v7_per_thread(TIME_FIRST_ARGUMENTS,
                                     uint index [[thread_position_in_grid]]) {
    if (index >= tokens * heads)
        return;
    const single_thread team = {};
    const size_t at = size_t(index) * head_size;
    const size_t plane = size_t(tokens) * heads * head_size;
    add_bonus(team, r_k + index % heads * head_size, r + at, packed + at, packed + plane + at,
              x + at, head_size);
}
