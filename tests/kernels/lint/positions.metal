#include <metal_stdlib>
using namespace metal;

kernel void mixed(device float *x [[buffer(0)]],
                  uint3 group [[threadgroup_position_in_grid]],
                  ushort3 size [[threads_per_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]],
                  uint i [[thread_position_in_threadgroup]]) { // mistake: 1 component beside 3
    if (group.x == 0 && i < 1 && size.x > 0)
        x[lane] = 1.0f;
}

kernel void types(device float *x [[buffer(0)]],
                  float i [[thread_position_in_grid]], // mistake: a float
                  uint2 lane [[thread_index_in_simdgroup]], // mistake: a vector
                  uint4 group [[threadgroup_position_in_grid]]) { // mistake: 4 components
    if (i < 1.0f && group.x == 0)
        x[lane.x] = 1.0f;
}

kernel void places(device float *x [[buffer(0)]],
                   constant uint &i [[thread_position_in_threadgroup]]) { // mistake: not a value
    x[i] = 1.0f;
}
