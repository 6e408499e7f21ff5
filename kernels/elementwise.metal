// elementwise: what a layer does to each value by itself, one thread per value, for the rows of one
// token or of many. The residual connection and biases, then the steps of a recurrent layer, in place:
// an operand of these may be one row that is repeated for all rows. Its `period` is then the length of
// a row, else that of everything, and i % period is the index in it.
#include <metal_stdlib>
using namespace metal;

#include "activations.h"

// out = a + b
//
// One thread per element. Moves 8 bytes in and 4 out per element. It exists as the unfused
// baseline: matvec_q4_0_accumulate does the same addition with no launch and no traffic of its own.
kernel void residual_add(device const float *a [[buffer(0)]],
                         device const float *b [[buffer(1)]],
                         device float *out [[buffer(2)]],
                         constant uint &n [[buffer(3)]],
                         uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = a[i] + b[i];
}

// a += b
//
// One thread per element. Moves 8 bytes in and 4 out per element, like residual_add; it saves the
// third buffer and its space in the cache.
kernel void residual_add_inplace(device float *a [[buffer(0)]],
                                 device const float *b [[buffer(1)]],
                                 constant uint &n [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    a[i] = a[i] + b[i];
}

// The same vector added to every row of a matrix.
//
// One thread per element. Moves 4 bytes in and 4 out per element, and b once, which stays in cache.
// It exists for models whose projections have biases: q, k and v of one token, or of a whole
// prompt.
kernel void bias_add(device float *a [[buffer(0)]],
                     device const float *b [[buffer(1)]],
                     constant uint &dim [[buffer(2)]],
                     constant uint &rows [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
    if (i >= rows * dim)
        return;
    a[i] = a[i] + b[i % dim];
}

// y += x
kernel void add(device const float *x [[buffer(0)]],
                device float *y [[buffer(1)]],
                constant uint &n [[buffer(2)]],
                constant uint &period [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = y[i] + x[i % period];
}

// y *= x
kernel void mul(device const float *x [[buffer(0)]],
                device float *y [[buffer(1)]],
                constant uint &n [[buffer(2)]],
                constant uint &period [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = y[i] * x[i % period];
}

// y = activation(y + x): the end of a low-rank adapter, whose bias is x.
kernel void add_activate(device const float *x [[buffer(0)]],
                         device float *y [[buffer(1)]],
                         constant uint &n [[buffer(2)]],
                         constant uint &period [[buffer(3)]],
                         constant uint &activation [[buffer(4)]],
                         uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = activate(activation, y[i] + x[i % period]);
}

// y = scale * y + bias
kernel void affine(device float *y [[buffer(0)]],
                   constant uint &n [[buffer(1)]],
                   constant float &scale [[buffer(2)]],
                   constant float &bias [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = scale * y[i] + bias;
}

// y = x + (y - x) * f: f is the share of y.
kernel void lerp(device const float *f [[buffer(0)]],
                 device const float *x [[buffer(1)]],
                 device float *y [[buffer(2)]],
                 constant uint &n [[buffer(3)]],
                 constant uint &period [[buffer(4)]],
                 uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = x[i] + (y[i] - x[i]) * f[i % period];
}

// y = y + (x - y) * f: f is the share of x. The values of a layer drawn to those of the first.
kernel void lerp_reversed(device const float *f [[buffer(0)]],
                          device const float *x [[buffer(1)]],
                          device float *y [[buffer(2)]],
                          constant uint &n [[buffer(3)]],
                          constant uint &period [[buffer(4)]],
                          uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = y[i] + (x[i] - y[i]) * f[i % period];
}

// k = k * (1 + (a - 1) * k_a): how much of a key is written, by its in-context learning rate a.
kernel void control_k_v7(device const float *k_a [[buffer(0)]],
                         device const float *a [[buffer(1)]],
                         device float *k [[buffer(2)]],
                         constant uint &n [[buffer(3)]],
                         constant uint &period [[buffer(4)]],
                         uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    k[i] = k[i] * (1.0f + (a[i] - 1.0f) * k_a[i % period]);
}
