// buffer_copy: dst = src, float by float. The example to copy when you add a kernel.
//
// Every .metal file starts like this one, with what its kernels compute. A comment above each
// kernel says what a thread and a threadgroup do, what it moves, why it exists and what it taught
// us. A kernel takes its pointers with the access it needs (const for what it only reads), its
// scalars as `constant T &`, and guards its tail: the launch rounds the grid up to whole
// threadgroups.
#include <metal_stdlib>
using namespace metal;

// One thread per float; threadgroups have no role of their own. Moves 4 bytes in and 4 bytes out
// per float. It exists for the places where a model needs a plain copy (saving the residual
// stream), and as the smallest complete kernel.
kernel void buffer_copy(device const float *src [[buffer(0)]],
                        device float *dst [[buffer(1)]],
                        constant uint &count [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    dst[i] = src[i];
}
