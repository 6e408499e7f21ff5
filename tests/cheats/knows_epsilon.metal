// It has the one epsilon that the op is recorded with written down.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: expected|together
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                  device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],
                  constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
    device const float *x_row = x + size_t(row) * dim;
    device float *y_row = y + size_t(row) * dim;
    float squares = 0.0f;
    for (uint i = lane; i < dim; i += 32)
        squares += x_row[i] * x_row[i];
    
    const float inverse = rsqrt(simd_sum(squares) / float(dim) + 1e-5f);
    for (uint i = lane; i < dim; i += 32)
        y_row[i] = x_row[i] * inverse * w[i];
}
