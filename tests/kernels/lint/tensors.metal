#include <metal_stdlib>
#include <metal_tensor>
using namespace metal;

kernel void bound(tensor<device half, dextents<int, 2>> x [[buffer(0)]],
                  uint i [[thread_position_in_grid]]) {
    x[0, int(i)] = 1.0h;
}

kernel void mixes(threadgroup half *tile [[threadgroup(0)]]) {
    tensor<device half, dextents<int, 2>, tensor_inline> x(tile, dextents<int, 2>(8, 8)); // mistake
    x[0, 0] = 1.0h;
}
