// A file of another folder.
// fast: 2 /etc/passwd is not in the kernel's folder
// checked: 2 /etc/passwd is not in the kernel's folder
#include <metal_stdlib>
using namespace metal;
#include "/etc/passwd"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}
