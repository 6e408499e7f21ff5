// Without the barrier it works wherever the first thread happens to run first.
// base: rmsnorm_rows_simdgroup
// refused: check validate
// because: race
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                  device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],
                  constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                  uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float inverse[1];
    x += size_t(row) * dim;
    y += size_t(row) * dim;
    if (thread_index == 0) {
        float squares = 0.0f;
        for (uint i = 0; i < dim; i++)
            squares += x[i] * x[i];
        inverse[0] = rsqrt(squares / float(dim) + eps);
    }
    for (uint i = thread_index; i < dim; i += 32)
        y[i] = x[i] * inverse[0] * w[i];
}
