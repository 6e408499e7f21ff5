#include <metal_stdlib>
using namespace metal;

kernel void unguarded(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    y[i] = 2.0f * x[i]; // mistake
}

kernel void unguarded_row(device float *y [[buffer(0)]], constant uint &width [[buffer(1)]],
                          uint2 at [[thread_position_in_grid]]) {
    uint row = at.y;
    uint index = row * width + at.x;
    for (uint k = 0; k < 4; k++)
        y[index] += float(k); // mistake: what is compared is not the position
}

kernel void guarded(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    if (i < count)
        y[i] = 1.0f;
}

kernel void returns_early(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                          uint2 at [[thread_position_in_grid]]) {
    uint index = at.x;
    if (index >= count)
        return;
    y[index] = 1.0f;
}

kernel void strides(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                    uint i [[thread_position_in_grid]], uint all [[threads_per_grid]]) {
    for (uint k = i; k < count; k += all)
        y[k] = 1.0f;
}

kernel void clamps(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    y[min(i, count - 1u)] = 1.0f;
}

kernel void by_threadgroup(device float *y [[buffer(0)]],
                           uint group [[threadgroup_position_in_grid]],
                           uint i [[thread_position_in_threadgroup]]) {
    y[group * 32 + i] = 1.0f;
}

kernel void reads_only(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    float v = x[i];
    y[0] = v;
}
