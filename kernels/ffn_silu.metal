// ffn_silu: out = silu(gate) * up, with silu(g) = g / (1 + e^-g): the middle of a gated FFN.
#include <metal_stdlib>
using namespace metal;

#include "early.h"

// One thread per element. Moves 8 bytes in and 4 out per element. It exists as the unfused baseline
// of the kernels that apply silu while they read the activations of the down projection. For a very
// negative g, e^-g overflows to infinity and the quotient is -0, which is right to within the
// smallest normal float.
kernel void ffn_silu(device const float *gate [[buffer(0)]],
                     device const float *up [[buffer(1)]],
                     device float *out [[buffer(2)]],
                     constant uint &n [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    EARLY_LOADS(0); // only n
    const float g = gate[i];
    out[i] = g / (1.0f + exp(-g)) * up[i];
}
