// Every row gets the answer of the first.
// base: softmax
// refused: check
// because: expected
#include <metal_stdlib>
using namespace metal;
#include "teams.h"

kernel void cheat(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                  constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                  uint thread_index [[thread_index_in_threadgroup]],
                  uint threads [[threads_per_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]],
                  uint sg [[simdgroup_index_in_threadgroup]],
                  uint sg_count [[simdgroups_per_threadgroup]]) {
    x += size_t(row) * n;
    y += size_t(row) * n;
    x -= size_t(row) * n;
    threadgroup float partial[64];
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    float largest = x[0], sum = 0.0f;
    for (uint i = thread_index; i < n; i += threads)
        largest = max(largest, x[i]);
    largest = team.largest(largest, 0);
    for (uint i = thread_index; i < n; i += threads)
        sum += exp(x[i] - largest);
    sum = team.sum(sum, 1);
    for (uint i = thread_index; i < n; i += threads)
        y[i] = exp(x[i] - largest) / sum;
}
