// token_shift: each token mixed with the one before it, in one or several proportions.
#include <metal_stdlib>
using namespace metal;

// out[m] = x + (previous - x) * mu[m], for `mixes` vectors mu (dim): out (mixes, tokens, dim).
// previous is the row before, or `state` for the first row. One thread per value of x, which reads
// it and its predecessor once for all mixes. The state is left alone: the first token still reads
// it while the last one could write it.
kernel void token_shift(device const float *x [[buffer(0)]],
                        device const float *state [[buffer(1)]],
                        device const float *mu [[buffer(2)]],
                        device float *out [[buffer(3)]],
                        constant uint &tokens [[buffer(4)]],
                        constant uint &dim [[buffer(5)]],
                        constant uint &mixes [[buffer(6)]],
                        uint i [[thread_position_in_grid]]) {
    const uint count = tokens * dim;
    if (i >= count)
        return;
    const uint channel = i % dim;
    const float value = x[i];
    const float previous = i < dim ? state[channel] : x[i - dim];
    for (uint m = 0; m < mixes; m++)
        out[size_t(m) * count + i] = value + (previous - value) * mu[m * dim + channel];
}
