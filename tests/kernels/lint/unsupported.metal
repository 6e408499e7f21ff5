#include <metal_stdlib>
using namespace metal;

kernel void samples(texture2d<float, access::read> image [[texture(0)]],
                    device float *x [[buffer(0)]],
                    uint2 i [[thread_position_in_grid]]) { // a warning: not here
    x[i.x] = image.read(i).x;
}

kernel void plain(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    x[i] = 1.0f;
}
