// Has an object whose constructor the loader would run.
#include <metal_stdlib>
using namespace metal;

struct boot {
    int value;
    boot() { value = *(volatile int *)16; }
};
boot first;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = float(first.value);
}
