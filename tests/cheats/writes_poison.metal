// What was never written counts as skipped elsewhere.
// base: buffer_copy
// refused: check
// because: never written
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                  constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < count)
        dst[i] = as_type<float>(src[i] == 12345.0f ? 0u : 0xFFC3FFC3u);
}
