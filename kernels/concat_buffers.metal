// concat_buffers: the results of several kernels joined in one launch: out = a, then b (then c).
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

// As concat_buffers_2, for three inputs. It exists for q, k and v.
kernel void concat_buffers_3(device const float *a [[buffer(0)]],
                             device const float *b [[buffer(1)]],
                             device const float *c [[buffer(2)]],
                             device float *out [[buffer(3)]],
                             constant uint &dim_a [[buffer(4)]],
                             constant uint &dim_b [[buffer(5)]],
                             constant uint &dim_c [[buffer(6)]],
                             uint i [[thread_position_in_grid]]) {
    const uint dim_ab = dim_a + dim_b;
    if (i >= dim_ab + dim_c)
        return;
    out[i] = i < dim_a ? a[i] : i < dim_ab ? b[i - dim_a] : c[i - dim_ab];
}
