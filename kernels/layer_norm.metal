// layer_norm, group_norm, l2_norm: rows brought to a mean of 0 and a variance of 1, or to a length
// of 1. A group norm is a layer norm of each of the groups in a row, whose weights differ.
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "prefetch.h"
#include "held_row.h"
#include "teams.h"

// y = (x - mean) / sqrt(variance + eps) * w + b. y may be x.
template <typename T>
METAL_FUNC void normalise(T team, device const float *x, device const float *w,
                          device const float *b, device float *y, uint dim, float eps) {
    const row_norm<float> norm = read_norm(team, x, dim, eps);
    for (uint i = team.first(); i < dim; i += team.step())
        y[i] = (x[i] - norm.mean) * norm.inverse * w[i] + b[i];
}

#define LAYER_NORM_ARGUMENTS                                                                       \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                      \
        device const float *b [[buffer(2)]], device float *y [[buffer(3)]],                        \
        constant uint &dim [[buffer(4)]], constant float &eps [[buffer(5)]]

// One threadgroup of 256 per row. Reads x once from memory and twice from cache, w and b once per
// row from cache, writes y.
kernel void layer_norm(LAYER_NORM_ARGUMENTS,
                       uint row [[threadgroup_position_in_grid]],
                       TEAM_PLACE) {
    threadgroup float partial[64];
    PREFETCHED(0); // only the scalars
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    const size_t at = size_t(row) * dim;
    normalise(team, x + at, w, b, y + at, dim, eps);
}

// One threadgroup of 512 per row, which is in registers, as are w and b: they are loaded before the launch
// before has ended. x is read once.
[[max_total_threads_per_threadgroup(ROW_THREADS)]]
kernel void layer_norm_prefetch(LAYER_NORM_ARGUMENTS,
                                uint row [[threadgroup_position_in_grid]],
                                THREAD_PLACE) {
    threadgroup float partial[64];
    const size_t first = size_t(row) * dim;
    float weights[ROW_HELD], biases[ROW_HELD], values[ROW_HELD];
    hold_weights(w, b, dim, thread_index, weights, biases);
    PREFETCHED(1 << 1 | 1 << 2);
    hold_row(x + first, dim, thread_index, values);
    const row_norm<float> norm = find_norm(values, dim, eps, partial, thread_index, lane, sg);
    for (uint i = 0; i < ROW_HELD; i++)
        if (thread_index + ROW_THREADS * i < dim)
            y[first + thread_index + ROW_THREADS * i] =
                (values[i] - norm.mean) * norm.inverse * weights[i] + biases[i];
}

// One thread per row, for the software device.
kernel void layer_norm_per_thread(LAYER_NORM_ARGUMENTS,
                                  uint row [[threadgroup_position_in_grid]]) {
    const single_thread team = {};
    const size_t at = size_t(row) * dim;
    normalise(team, x + at, w, b, y + at, dim, eps);
}

#define GROUP_NORM_ARGUMENTS                                                                       \
    device const float *w [[buffer(0)]], device const float *b [[buffer(1)]],                      \
        device float *x [[buffer(2)]], constant uint &dim [[buffer(3)]],                           \
        constant float &eps [[buffer(4)]], constant uint &groups [[buffer(5)]],                    \
        constant uint &all [[buffer(6)]]

// x (rows, groups, dim), in place; w and b (groups, dim). A threadgroup of 256 normalises 8 groups,
// one simdgroup each: a head of 64 is two values per lane.
kernel void group_norm(GROUP_NORM_ARGUMENTS,
                       uint group [[threadgroup_position_in_grid]],
                       SIMDGROUP_PLACE) {
    const uint index = group * 8 + sg; // of all groups of all rows
    if (index >= all)
        return;
    const one_simdgroup team = {lane};
    const uint weights = index % groups * dim;
    device float *values = x + size_t(index) * dim;
    normalise(team, values, w + weights, b + weights, values, dim, eps);
}

// One thread per group, for the software device.
kernel void group_norm_per_thread(GROUP_NORM_ARGUMENTS,
                                  uint index [[thread_position_in_grid]]) {
    if (index >= all)
        return;
    const single_thread team = {};
    const uint weights = index % groups * dim;
    device float *values = x + size_t(index) * dim;
    normalise(team, values, w + weights, b + weights, values, dim, eps);
}

// x / max(|x|, eps), in place.
template <typename T> METAL_FUNC void shorten(T team, device float *x, uint dim, float eps) {
    float squares = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        squares += x[i] * x[i];
    const float inverse = rsqrt(max(team.sum(squares, 0), eps * eps));
    for (uint i = team.first(); i < dim; i += team.step())
        x[i] = x[i] * inverse;
}

// x (rows, dim). A threadgroup of 256 does 8 rows, one simdgroup each.
kernel void l2_norm(device float *x [[buffer(0)]],
                    constant uint &rows [[buffer(1)]],
                    constant uint &dim [[buffer(2)]],
                    constant float &eps [[buffer(3)]],
                    uint group [[threadgroup_position_in_grid]],
                    SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= rows)
        return;
    const one_simdgroup team = {lane};
    shorten(team, x + size_t(row) * dim, dim, eps);
}

// One thread per row, for the software device.
kernel void l2_norm_per_thread(device float *x [[buffer(0)]],
                          constant uint &rows [[buffer(1)]],
                          constant uint &dim [[buffer(2)]],
                          constant float &eps [[buffer(3)]],
                          uint row [[thread_position_in_grid]]) {
    if (row >= rows)
        return;
    const single_thread team = {};
    shorten(team, x + size_t(row) * dim, dim, eps);
}
