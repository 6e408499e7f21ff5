// The same by a pragma.
// fast: 1 '#pragma clang attribute
// checked: 1 '#pragma clang attribute
#include <metal_stdlib>
using namespace metal;
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i + 1000] = 1;
}
