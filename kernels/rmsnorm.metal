// rmsnorm: y = x / sqrt(mean(x^2) + eps) * w over a row of dim floats.
//
// The variants differ in who computes the sum of squares: every thread for itself, 32 lanes
// together, a whole threadgroup together.
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "prefetch.h"
#include "threadgroup_sum.h"

#define RMSNORM_ARGUMENTS                                                                          \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                      \
        device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],                           \
        constant float &eps [[buffer(4)]]

// One thread per output, which sums the whole row by itself; threadgroups have no role of their
// own. Reads dim floats per thread where dim per row would do. It exists as the first variant:
// nothing is shared, so there is nothing to get wrong.
kernel void rmsnorm(RMSNORM_ARGUMENTS,
                    uint i [[thread_position_in_grid]]) {
    if (i >= dim)
        return;
    float squares = 0.0f;
    for (uint j = 0; j < dim; j++)
        squares += x[j] * x[j];
    y[i] = x[i] * rsqrt(squares / float(dim) + eps) * w[i];
}

inline void rmsnorm_by_simdgroup(device const float *x, device const float *w, device float *y,
                                 uint dim, float eps, uint lane, uint width) {
    float squares = 0.0f;
    for (uint i = lane; i < dim; i += width)
        squares += x[i] * x[i];
    squares = simd_sum(squares);
    const float inverse = rsqrt(squares / float(dim) + eps);
    for (uint i = lane; i < dim; i += width)
        y[i] = x[i] * inverse * w[i];
}

// One threadgroup of one simdgroup does the whole row: lane l takes elements l, l + 32, ... and
// simd_sum gives every lane the total. Reads x twice (the second time from cache), w once, writes y
// once. No threadgroup memory and no barrier; but 32 threads cannot saturate memory.
kernel void rmsnorm_simdgroup(RMSNORM_ARGUMENTS,
                              uint lane [[thread_index_in_simdgroup]],
                              uint width [[threads_per_simdgroup]]) {
    rmsnorm_by_simdgroup(x, w, y, dim, eps, lane, width);
}

// One thread does the whole row, four elements at a time and then the rest. For the software device,
// where a sum over lanes costs as much as the whole row.
kernel void rmsnorm_per_thread(RMSNORM_ARGUMENTS) {
    float4 sums[4] = {};
    uint i = 0;
    for (; i + 16 <= dim; i += 16)
        for (uint c = 0; c < 4; c++) {
            const float4 v = ((device const packed_float4 *)(x + i))[c];
            sums[c] = fma(v, v, sums[c]);
        }
    const float4 all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float squares = (all.x + all.y) + (all.z + all.w);
    for (; i < dim; i++)
        squares += x[i] * x[i];
    const float inverse = rsqrt(squares / float(dim) + eps);
    for (uint j = 0; j < dim; j++)
        y[j] = x[j] * inverse * w[j];
}

inline float square(float v) {
    return v * v;
}
inline float square(float4 v) {
    return dot(v, v);
}

// A row of `count` values or float4s by 256 threads.
template <typename V>
inline void rmsnorm_row(device const V *x, device const V *w, device V *y, uint count, uint dim,
                        float eps, threadgroup float *partial, uint thread_index, uint lane,
                        uint sg) {
    constexpr uint threads = 256;
    constexpr uint held = 4;
    V weights[held] = {};
    V values[held] = {};
    for (uint i = 0; i < held; i++)
        if (threads * i < count)
            weights[i] = w[min(thread_index + threads * i, count - 1)];
    PREFETCHED(1 << 1);
    for (uint i = 0; i < held; i++)
        if (threads * i < count)
            values[i] = x[min(thread_index + threads * i, count - 1)];
    float squares = 0.0f;
    for (uint i = 0; i < held; i++)
        squares += thread_index + threads * i < count ? square(values[i]) : 0.0f;
    for (uint i = thread_index + threads * held; i < count; i += threads)
        squares += square(x[i]);
    squares = threadgroup_sum(squares, partial, lane, sg, threads / 32);
    const float inverse = rsqrt(squares / float(dim) + eps);
    for (uint i = 0; i < held; i++)
        if (thread_index + threads * i < count)
            y[thread_index + threads * i] = values[i] * inverse * weights[i];
    for (uint i = thread_index + threads * held; i < count; i += threads)
        y[i] = x[i] * inverse * w[i];
}

// One threadgroup of 256 per row of x (rows, dim), of any number of rows: w is read by every row
// and stays in cache. A thread holds up to 4 values, or 4 float4s where a row is made of them, from
// the sum of squares to the result: rows of up to 1024 or 4096 are read once, all of it under way
// together; of longer ones the rest is read twice. Simdgroups leave their sums in threadgroup
// memory, and after one barrier every thread adds them up by itself, which is cheaper than a second
// barrier to distribute the total.
kernel void rmsnorm_rows(RMSNORM_ARGUMENTS,
                         uint row [[threadgroup_position_in_grid]],
                         THREAD_PLACE) {
    threadgroup float partial[8];
    const size_t first = size_t(row) * dim;
    if (dim % 4 == 0)
        rmsnorm_row((device const float4 *)(x + first), (device const float4 *)w,
                    (device float4 *)(y + first), dim / 4, dim, eps, partial, thread_index, lane,
                    sg);
    else
        rmsnorm_row(x + first, w, y + first, dim, dim, eps, partial, thread_index, lane, sg);
}

// The same with one simdgroup per threadgroup, which works as rmsnorm_simdgroup does on its only
// row, without threadgroup memory or barrier. 32 threads are few for a row, but there are many
// rows: once they fill the device, more threads per row gain nothing.
kernel void rmsnorm_rows_simdgroup(RMSNORM_ARGUMENTS,
                                   uint row [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint width [[threads_per_simdgroup]]) {
    const size_t first = size_t(row) * dim;
    rmsnorm_by_simdgroup(x + first, w, y + first, dim, eps, lane, width);
}
