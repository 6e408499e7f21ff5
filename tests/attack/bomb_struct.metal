// A table of 4 GB in pieces.
// fast: 1 larger than 64 MB|1 crashed
// checked: 1 larger than 64 MB|1 crashed
#include <metal_stdlib>
using namespace metal;
struct piece {
    uchar bytes[1 << 20];
};
constant piece table[4096] = {{1}};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = table[i & 3].bytes[i];
}
