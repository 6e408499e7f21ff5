// buffer_copy: dst = src, float by float. The example to copy when you add a kernel.
//
// Every .metal file starts like this one: what the kernels in it compute, and what each thread and
// each threadgroup does. Above each kernel stand what it moves, why it exists and what it taught
// us. A kernel takes its pointers with the access it needs (const for what it only reads), its
// scalars as `constant T &`, and guards its tail: the launch rounds the grid up to whole
// threadgroups.
#include <metal_stdlib>
using namespace metal;

// A thread copies one float, a threadgroup as many as it has threads. Moves 4 bytes in and 4 bytes
// out for each float. It exists for the places where a model needs a plain copy (saving the
// residual stream), and as the smallest complete kernel.
kernel void buffer_copy(device const float *src [[buffer(0)]],
                        device float *dst [[buffer(1)]],
                        constant uint &count [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    dst[i] = src[i];
}
