// A macro that expands to a gigabyte.
// fast: 2 expand to more text than a file may have
// checked: 2 expand to more text than a file may have
#include <metal_stdlib>
using namespace metal;
#define A(x) x x x x x x x x x x
#define B(x) A(A(x))
#define C(x) B(B(x))
#define D(x) C(C(x))
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    D(out[i] += 1;)
}
