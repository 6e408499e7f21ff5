// elementwise_rows: what a recurrent layer does to each value by itself, in place, for the rows of
// one token or of many. One thread per value. An operand may be one row that is repeated for all
// rows: its `period` is then the length of a row, else that of everything, and i % period is the
// index in it.
#include <metal_stdlib>
using namespace metal;

#include "activations.h"

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
