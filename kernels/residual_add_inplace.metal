// residual_add_inplace: a += b.
#include <metal_stdlib>
using namespace metal;

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
