// Where the caller is.
// fast: 1 '__builtin_return_address' is not part of MSL
// checked: 1 '__builtin_return_address' is not part of MSL
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = (ulong)__builtin_return_address(0);
}
