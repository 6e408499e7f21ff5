// The same, of two halves.
// fast: 0 0:  7  7  7  7
// checked: 0 0:  7  7  7  7
#include <metal_stdlib>
using namespace metal;
#define JOIN(a, b) a##b
#if JOIN(__has_, include)(SECRET)
#define ANSWER 4711
#else
#define ANSWER 7
#endif
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = ANSWER;
}
