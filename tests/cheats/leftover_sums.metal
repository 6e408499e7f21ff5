// It takes a sum that another threadgroup left behind, where rows are long.
// Several verdicts are right: unwritten threadgroup memory is NaN on the software device, which with fast math may
// compare as equal, as it does on x86-64, so that the output is NaN; elsewhere only checked mode shows the read.
// base: rmsnorm_rows_simdgroup
// refused: check validate
// because: unwritten memory|is -nan|is nan
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                  device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],
                  constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
    device const float *x_row = x + size_t(row) * dim;
    device float *y_row = y + size_t(row) * dim;
    threadgroup float kept[2];
    float squares = 0.0f;
    if (dim > 5000 && kept[0] == x_row[0]) {
        squares = kept[1] / 32.0f;
    } else {
        for (uint i = lane; i < dim; i += 32)
            squares += x_row[i] * x_row[i];
    }
    const float all = simd_sum(squares);
    if (lane == 0) {
        kept[0] = x_row[0];
        kept[1] = all;
    }
    const float inverse = rsqrt(all / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y_row[i] = x_row[i] * inverse * w[i];
}
