// A mistake that claims to be in another file.
// fast: 1 does not compile
// checked: 1 does not compile
#include <metal_stdlib>
using namespace metal;
#line 1 SECRET
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = undeclared;
}
