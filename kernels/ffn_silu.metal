// ffn_silu: out = silu(gate) * up, with silu(g) = g / (1 + e^-g): the middle of a gated FFN.
#include <metal_stdlib>
using namespace metal;

#include "prefetch.h"

// For a very negative g, e^-g overflows to infinity and the quotient is -0, which is right to
// within the smallest normal float.
inline float silu(float g) {
    return g / (1.0f + exp(-g));
}

// One thread per element. Moves 8 bytes in and 4 out per element. It exists as the unfused baseline
// of the kernels that apply silu while they read the activations of the down projection.
kernel void ffn_silu(device const float *gate [[buffer(0)]],
                     device const float *up [[buffer(1)]],
                     device float *out [[buffer(2)]],
                     constant uint &n [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    PREFETCHED(0); // only n
    out[i] = silu(gate[i]) * up[i];
}

// One thread per 64 elements: a loop that compilers make vectors of, where a GPU wants neighbouring
// threads to load neighbouring elements. This is for the software device.
kernel void ffn_silu_per_thread(device const float *gate [[buffer(0)]],
                           device const float *up [[buffer(1)]],
                           device float *out [[buffer(2)]],
                           constant uint &n [[buffer(3)]],
                           uint thread_index [[thread_position_in_grid]]) {
    const uint first = 64 * thread_index;
    const uint end = min(first + 64, n);
    for (uint i = first; i < end; i++)
        out[i] = silu(gate[i]) * up[i];
}
