// A call of the C library, to see or change the process.
// base: residual_add
// refused: compile
// because: getpid
#include <metal_stdlib>
using namespace metal;

extern "C" int getpid();

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = getpid() > 0 ? a[i] + b[i] : 0.0f;
}
