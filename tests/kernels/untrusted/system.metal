// Calls a function of the C library.
#include <metal_stdlib>
using namespace metal;

extern "C" int system(const char *);
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = float(system("false"));
}
