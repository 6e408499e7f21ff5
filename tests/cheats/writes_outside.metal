// A store past the end, to reach what lies there.
// base: buffer_copy
// refused: check
// because: wrote outside
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                  constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    dst[i] = src[i];
    if (i == 0)
        dst[count] = 0.0f;
}
