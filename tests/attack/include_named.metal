// A file whose name is a macro.
// fast: 2 cannot be preprocessed
// checked: 2 cannot be preprocessed
#include <metal_stdlib>
using namespace metal;
#include SECRET
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}
