/* doctor: what `assay doctor` launches by `assay launch` to learn about a device. */
#include <metal_stdlib>
using namespace metal;

/* Runs for as many turns as x says. */
kernel void spin(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    uint v = i;
    for (uint n = x[0]; n > 0; n--)
        v = (v ^ (v >> 7)) * 1664525u + n;
    y[i] = v;
}

/* Is a denormal times 1 still itself? */
kernel void denormals(device const float *x [[buffer(0)]], device uint *y [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    if (i == 0)
        y[0] = as_type<uint>(x[0] * x[1]) != 0;
}

/* Stores far outside its buffer, by 64 GB times what x says. */
kernel void stray(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    y[(ulong(x[0]) << 34) + i] = 1;
}
