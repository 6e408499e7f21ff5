// concat_buffers_2: out = a, then b.
#include <metal_stdlib>
using namespace metal;

// One thread per float of out; its index decides which input it comes from. Moves 4 bytes in and 4
// out per float. It exists to join the results of several kernels in one launch.
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
