// The guard after the input tells the same.
// base: buffer_copy
// refused: validate
// because: load outside
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                  constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= count)
        return;
    dst[i] = isnan(src[count]) || as_type<uint>(src[count]) != 1 ? src[i] : 0.0f;
}
