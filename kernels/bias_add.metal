// bias_add: the same vector added to every row of a matrix.
#include <metal_stdlib>
using namespace metal;

// One thread per element. Moves 4 bytes in and 4 out per element, and b once, which stays in cache.
// It exists for models whose projections have biases: q, k and v of one token, or of a whole
// prompt.
kernel void bias_add(device float *a [[buffer(0)]],
                     device const float *b [[buffer(1)]],
                     constant uint &dim [[buffer(2)]],
                     constant uint &rows [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
    if (i >= rows * dim)
        return;
    a[i] = a[i] + b[i % dim];
}
