// softcap: y = cap * tanh(x / cap), which keeps logits between -cap and cap.
#include <metal_stdlib>
using namespace metal;

// One thread per float. The launch rounds the grid up to whole threadgroups, so the kernel guards its
// tail. tanh is the precise one: that of fast math is made of exp(2 x) and is NaN for large x.
kernel void softcap(device const float *x [[buffer(0)]],
                    device float *y [[buffer(1)]],
                    constant uint &n [[buffer(2)]],
                    constant float &cap [[buffer(3)]],
                    uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    y[i] = cap * precise::tanh(x[i] / cap);
}
