// concat_buffers_2: out = a, then b.
#include <metal_stdlib>
using namespace metal;

// A thread copies one float to out, a threadgroup as many as it has threads; whose it is follows
// from its place. Moves 4 bytes in and 4 out for each. It exists so that what kernels left in
// several buffers can go on as one, in one launch.
kernel void concat_buffers_2(device const float *a [[buffer(0)]],
                             device const float *b [[buffer(1)]],
                             device float *out [[buffer(2)]],
                             constant uint &dim_a [[buffer(3)]],
                             constant uint &dim_b [[buffer(4)]],
                             uint i [[thread_position_in_grid]]) {
    if (i >= dim_a + dim_b)
        return;
    out[i] = i < dim_a ? a[i] : b[i - dim_a];
}
