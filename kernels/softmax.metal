// softmax: y = e^(x - largest) / sum of them, over a row of n floats.
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "teams.h"

template <typename T>
METAL_FUNC void soften(T team, device const float *x, device float *y, uint n) {
    float largest = x[0];
    for (uint i = team.first(); i < n; i += team.step())
        largest = max(largest, x[i]);
    largest = team.largest(largest, 0);
    float sum = 0.0f;
    for (uint i = team.first(); i < n; i += team.step())
        sum += exp(x[i] - largest);
    sum = team.sum(sum, 1);
    for (uint i = team.first(); i < n; i += team.step())
        y[i] = exp(x[i] - largest) / sum;
}

// One threadgroup of 256 per row. Reads x once from memory and twice from cache. The exponentials
// are computed twice, which costs less than writing them out and reading them back.
kernel void softmax(device const float *x [[buffer(0)]],
                    device float *y [[buffer(1)]],
                    constant uint &n [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]],
                    TEAM_PLACE) {
    threadgroup float partial[64];
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    const size_t at = size_t(row) * n;
    soften(team, x + at, y + at, n);
}
