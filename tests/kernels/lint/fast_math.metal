// Tests that fast math may leave out; infinity as a value is no test.
#include <metal_stdlib>
using namespace metal;

kernel void tests(device float *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    float x = y[i], most = max(-INFINITY, x), least = numeric_limits<float>::infinity();
    x = isnan(x) ? 0 : x;                                // mistake
    x = metal::isinf(x) ? 0 : x;                         // mistake
    if (x != x)                                          // mistake
        x = 0;
    if (most == -INFINITY)                               // mistake
        most = 0;
    if (least < metal::numeric_limits<float>::infinity()) // mistake
        least = 0;
    if ((as_type<uint>(x) & 0x7fffffff) > 0x7f800000)
        x = 0;
    y[i] = x + most + min(least, NAN);
}
