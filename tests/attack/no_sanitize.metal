// A function that is not watched.
// fast: 1 the attribute 'no_sanitize' is not part of MSL
// checked: 1 the attribute 'no_sanitize' is not part of MSL
#include <metal_stdlib>
using namespace metal;
__attribute__((no_sanitize("thread")))
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i + 1000] = 1;
}
