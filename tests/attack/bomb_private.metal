// 400 MB of private memory.
// fast: 1 the array 'a' has more than 16777216 elements
// checked: 1 the array 'a' has more than 16777216 elements
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float a[400][1 << 18];
    a[i][i] = 1;
    out[i] = a[i][(uint)out[i] & 1];
}
