// The bytes of a file.
// fast: 2 cannot be preprocessed
// checked: 2 cannot be preprocessed
#include <metal_stdlib>
using namespace metal;
constant uchar bytes[] = {
#embed SECRET
};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = bytes[i];
}
