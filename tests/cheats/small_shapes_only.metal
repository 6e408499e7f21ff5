// Right while the whole output is small, as quick tests are.
// base: buffer_copy
// refused: check
// because: never written
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                  constant uint &count [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= count || count > 4096)
        return;
    dst[i] = src[i];
}
