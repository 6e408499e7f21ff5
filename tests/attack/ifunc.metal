// A function that is chosen at loading.
// fast: 1 the attribute 'ifunc' is not part of MSL
// checked: 1 the attribute 'ifunc' is not part of MSL
#include <metal_stdlib>
using namespace metal;
extern "C" void *choose() { return nullptr; }
int chosen() __attribute__((ifunc("choose")));
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = chosen();
}
