// The address of a function of the C library.
// fast: 1 uses 'dlsym', which MSL does not have: it is not loaded
// checked: 1 uses 'dlsym', which MSL does not have: it is not loaded
#include <metal_stdlib>
using namespace metal;
extern "C" void *dlsym(void *, const char *);
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = (ulong)&dlsym & 255;
}
