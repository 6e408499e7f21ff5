// Is there such a file?
// fast: 0 0:  7  7  7  7
// checked: 0 0:  7  7  7  7
#include <metal_stdlib>
using namespace metal;
#if __has_include(SECRET)
#define ANSWER 4711
#else
#define ANSWER 7
#endif
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = ANSWER;
}
