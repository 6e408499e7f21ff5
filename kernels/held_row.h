// held_row: a row of up to 4096 values in the registers of a threadgroup of 512, for norms: it is read once,
// although its mean and its variance are two passes over it.
//
// A thread holds every 512th value. A load past the end of the row takes its last value, so that no load waits
// for a branch; such values are not part of sums.
#pragma once

#include "threadgroup_sum.h"

enum : uint { ROW_THREADS = 512, ROW_HELD = 8 };

inline uint find_held(uint i, uint thread_index, uint dim) {
    return min(thread_index + ROW_THREADS * i, dim - 1);
}

inline void hold_row(device const float *x, uint dim, uint thread_index,
                     thread float (&values)[ROW_HELD]) {
    for (uint i = 0; i < ROW_HELD; i++)
        if (ROW_THREADS * i < dim)
            values[i] = x[find_held(i, thread_index, dim)];
}

inline void hold_weights(device const float *w, device const float *b, uint dim, uint thread_index,
                         thread float (&weights)[ROW_HELD], thread float (&biases)[ROW_HELD]) {
    for (uint i = 0; i < ROW_HELD; i++)
        if (ROW_THREADS * i < dim) {
            const uint at = find_held(i, thread_index, dim);
            weights[i] = w[at];
            biases[i] = b[at];
        }
}

// (value - mean) * inverse has a mean of 0 and a variance of 1. T is float2 for two rows at once.
template <typename T> struct row_norm { T mean, inverse; };

// The variance is that of the differences: that of the squares cancels where the mean is large.
// partial: 32 Ts for each of the two sums.
template <typename T> METAL_FUNC row_norm<T> find_norm(thread const T (&values)[ROW_HELD], uint dim,
                                                       float eps, threadgroup T *partial,
                                                       uint thread_index, uint lane, uint sg) {
    row_norm<T> norm;
    T sum = 0.0f, squares = 0.0f;
    for (uint i = 0; i < ROW_HELD; i++)
        if (thread_index + ROW_THREADS * i < dim)
            sum += values[i];
    norm.mean = threadgroup_sum(sum, partial, lane, sg, ROW_THREADS / 32) / float(dim);
    for (uint i = 0; i < ROW_HELD; i++)
        if (thread_index + ROW_THREADS * i < dim)
            squares += (values[i] - norm.mean) * (values[i] - norm.mean);
    norm.inverse = rsqrt(
        threadgroup_sum(squares, partial + 32, lane, sg, ROW_THREADS / 32) / float(dim) + eps);
    return norm;
}

// The same of a row in memory by a team (teams.h).
template <typename T>
METAL_FUNC row_norm<float> read_norm(T team, device const float *x, uint dim, float eps) {
    float sum = 0.0f, squares = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        sum += x[i];
    const float mean = team.sum(sum, 0) / float(dim);
    for (uint i = team.first(); i < dim; i += team.step())
        squares += (x[i] - mean) * (x[i] - mean);
    return {mean, rsqrt(team.sum(squares, 1) / float(dim) + eps)};
}
