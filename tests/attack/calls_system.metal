// A function of the C library.
// fast: 1 uses 'system', which MSL does not have: it is not loaded
// checked: 1 uses 'system', which MSL does not have: it is not loaded
#include <metal_stdlib>
using namespace metal;
extern "C" int system(const char *);
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = system(WITNESS);
}
