// Writes a byte of every page of 600 MB, again and again: none of them is a buffer's.
#include <metal_stdlib>
using namespace metal;
kernel void call(device uchar *out [[buffer(0)]]) {
    for (uint turn = 0; turn < 2000; turn++)
        for (ulong at = 1; at < 150000; at++)
            out[at << 12] += 1;
}
