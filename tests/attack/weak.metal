// A symbol that need not be there.
// fast: 1 the attribute 'weak' is not part of MSL
// checked: 1 the attribute 'weak' is not part of MSL
#include <metal_stdlib>
using namespace metal;
extern "C" int system(const char *) __attribute__((__weak__));
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = system(WITNESS);
}
