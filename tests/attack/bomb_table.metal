// A table of 4 GB.
// fast: 1 the array 'table' has more than 16777216 elements
// checked: 1 the array 'table' has more than 16777216 elements
#include <metal_stdlib>
using namespace metal;
constant float table[1 << 30] = {1, 2};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = table[i * 1000];
}
