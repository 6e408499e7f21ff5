#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

kernel void samples(texture2d<float, access::read> image [[texture(0)]],
                    device float *x [[buffer(0)]],
                    uint2 i [[thread_position_in_grid]]) { // a warning: not here
    x[i.x] = image.read(i).x;
}

kernel void plain(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    x[i] = 1.0f;
}

kernel void multiplies(device half *a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    auto rows = tensor<device half, dextents<int, 2>, tensor_inline>(a, dextents<int, 2>(8, 8));
    matmul2d<matmul2d_descriptor(8, 8, 8), execution_simdgroups<4>> product;
    product.run(rows, rows, rows);
}
