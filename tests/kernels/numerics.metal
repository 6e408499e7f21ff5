// Kernels for tests/test_numerics.c: denormals and math modes. Some are wrong on purpose.
#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                 constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = x[i];
}

// Twice every value.
kernel void twice(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                  constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = x[i] + x[i];
}

// The same, flushed by hand: what only a device that flushes may do.
kernel void twice_flushed(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                          constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const uint bits = i < n ? as_type<uint>(x[i]) : 0;
    if (i < n)
        out[i] = (bits & 0x7F800000) == 0 ? 0.0f : 2.0f * x[i];
}

// Twice every value but small ones that are normal: 1e-28 is 8 billion times FLT_MIN.
kernel void twice_without_small(device const float *x [[buffer(0)]],
                                device float *out [[buffer(1)]], constant uint &n [[buffer(2)]],
                                uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = fabs(x[i]) < 1e-28f ? 0.0f : 2.0f * x[i];
}

// The index of the largest value as one thread finds it.
kernel void largest(device const float *x [[buffer(0)]], device uint *index [[buffer(1)]],
                    constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    uint best = 0;
    for (uint k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    if (i == 0)
        index[0] = best;
}

// Wrong: that of the second largest.
kernel void second_largest(device const float *x [[buffer(0)]], device uint *index [[buffer(1)]],
                           constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    uint best = 0;
    for (uint k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    uint second = best == 0 ? 1 : 0;
    for (uint k = 0; k < n; k++)
        second = k != best && x[k] > x[second] ? k : second;
    if (i == 0)
        index[0] = second;
}

// Wrong: the last of those that are equal.
kernel void last_largest(device const float *x [[buffer(0)]], device uint *index [[buffer(1)]],
                         constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    uint best = 0;
    for (uint k = 1; k < n; k++)
        best = x[k] >= x[best] ? k : best;
    if (i == 0)
        index[0] = best;
}

kernel void add_halves(device const half *x [[buffer(0)]], device half *out [[buffer(1)]],
                       constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = x[i] + x[i];
}

kernel void is_it_nan(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = isnan(x[i]) ? 1.0f : 0.0f;
}

// The same power alone and in a vector.
kernel void powers_of_two(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                          constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[2 * i] = exp2(x[i]);
    out[2 * i + 1] = exp2(float4(0.0f, 1.0f, -1.0f, x[i])).w;
}

// Eight functions of each value, and two of them in their precise variants.
kernel void functions(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    device float *at = out + 10 * i;
    at[0] = exp(x[i]);
    at[1] = sin(x[i]);
    at[2] = cos(x[i]);
    at[3] = log(fabs(x[i]));
    at[4] = rsqrt(fabs(x[i]));
    at[5] = sqrt(fabs(x[i]));
    at[6] = pow(fabs(x[i]), 1.7f);
    at[7] = 1.0f / x[i];
    at[8] = precise::exp(x[i]);
    at[9] = precise::sin(x[i]);
}
