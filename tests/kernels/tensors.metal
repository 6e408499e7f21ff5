// Metal 4 tensors. c (M, N) is made of a (M, K) and b (K, N), each of them perhaps transposed in memory;
// shape is {M, N, K}.
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

typedef dextents<int32_t, 2> shape2;

// Tiles of 64 x 32 by four simdgroups; k is what the tensors have. Element (row, column) of a tile is
// increased by row - column.
template <typename T, typename S, bool ta, bool tb>
kernel void product(device T *a [[buffer(0)]], device T *b [[buffer(1)]], device S *c [[buffer(2)]],
                    constant int *shape [[buffer(3)]],
                    uint2 tile [[threadgroup_position_in_grid]]) {
    const int M = shape[0], N = shape[1], K = shape[2];
    auto left = tensor<device T, shape2, tensor_inline>(a, ta ? shape2(M, K) : shape2(K, M));
    auto right = tensor(b, tb ? shape2(K, N) : shape2(N, K));
    auto out = tensor(c, shape2(N, M), array<int, 2>({1, N}));
    constexpr auto how = matmul2d_descriptor(64, 32, static_cast<int>(dynamic_extent), ta, tb);
    matmul2d<how, execution_simdgroups<4>> op;
    auto x = ta ? left.slice(tile.y * 64, 0) : left.slice(0, tile.y * 64);
    auto y = tb ? right.slice(0, tile.x * 32) : right.slice(tile.x * 32, 0);
    auto sums = op.template get_destination_cooperative_tensor<decltype(x), decltype(y), S>();
    op.run(x, y, sums);
    for (uint16_t i = 0; i < sums.get_capacity(); ++i)
        if (sums.is_valid_element(i)) {
            auto at = sums.get_multidimensional_index(i);
            sums[i] += S(at[1]) - S(at[0]);
        }
    sums.store(out.slice(tile.x * 32, tile.y * 64));
}
template [[host_name("product_half")]] kernel void
product<half, float, false, false>(device half *, device half *, device float *, constant int *,
                                   uint2);
template [[host_name("product_bfloat")]] kernel void
product<bfloat, float, false, true>(device bfloat *, device bfloat *, device float *,
                                    constant int *, uint2);
template [[host_name("product_float")]] kernel void
product<float, float, true, false>(device float *, device float *, device float *, constant int *,
                                   uint2);
template [[host_name("product_char")]] kernel void
product<int8_t, int, true, true>(device int8_t *, device int8_t *, device int *, constant int *,
                                 uint2);

// One simdgroup, the destination in memory: it is added to, 16 of the k at a time. M, N and K are
// multiples of 16.
kernel void added(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                  device float *c [[buffer(2)]], constant int *shape [[buffer(3)]],
                  uint2 tile [[threadgroup_position_in_grid]]) {
    const int M = shape[0], N = shape[1], K = shape[2];
    auto left = tensor(a, shape2(K, M)), right = tensor(b, shape2(N, K));
    auto out = tensor(c, shape2(N, M)).slice<16, 16>(tile.x * 16, tile.y * 16);
    matmul2d<matmul2d_descriptor(16, 16, 16, false, false, false,
                                 matmul2d_descriptor::mode::multiply_accumulate),
             execution_simdgroup>
        op;
    for (int k = 0; k < K; k += 16) {
        auto x = left.slice<16, 16>(k, tile.y * 16);
        auto y = right.slice<16, 16>(tile.x * 16, k);
        op.run(x, y, out);
    }
}

// Inputs in registers, of one simdgroup or of four; 16 x 32 x 16. c becomes the product less the
// largest value of its row. Nothing is known of the layout.
template <int simdgroups>
kernel void registers(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                      device float *c [[buffer(2)]]) {
    constexpr auto how = matmul2d_descriptor(16, 32, 16);
    matmul2d<how, execution_simdgroups<simdgroups>> op;
    auto x = op.template get_left_input_cooperative_tensor<half, half, float>();
    auto y = op.template get_right_input_cooperative_tensor<half, half, float>();
    auto sums = op.template get_destination_cooperative_tensor<decltype(x), decltype(y), float>();
    auto largest = op.template get_row_reduction_destination_cooperative_tensor<decltype(x),
                                                                                decltype(y), float>();
    x.load(tensor(a, shape2(16, 16)));
    for (uint16_t i = 0; i < y.get_capacity(); ++i)
        if (y.get_mask(i))
            y[i] = b[y.get_multidimensional_index(i)[1] * 32 + y.get_multidimensional_index(i)[0]];
    op.run(x, y, sums);
    reduce_rows(sums, largest, reduction_operation::max,
                reduction_operation_identity<float>::max_identity);
    for (auto it = sums.begin(); it != sums.end(); ++it)
        *it -= *largest.map_iterator(it);
    auto out = tensor(c, shape2(32, 16));
    sums.store(out);
}
template [[host_name("registers_of_one")]] kernel void registers<1>(device half *, device half *,
                                                                    device float *);
template [[host_name("registers_of_four")]] kernel void registers<4>(device half *, device half *,
                                                                     device float *);

// Each thread a product of its own: 4 x 4 x 4.
kernel void alone(device float *a [[buffer(0)]], device float *b [[buffer(1)]],
                  device float *c [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    matmul2d<matmul2d_descriptor(4, 4, 4), execution_thread> op;
    auto x = tensor(a + i * 16, extents<int, 4, 4>()), y = tensor(b, extents<int, 4, 4>());
    auto out = tensor(c + i * 16, extents<int, 4, 4>());
    op.run(x, y, out);
}

// Right on one kind of GPU: each lane fills eight registers of a 16 x 16 x 32 product as that has them.
kernel void assumes(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                    device float *c [[buffer(2)]], ushort lane [[thread_index_in_simdgroup]]) {
    matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroup> op;
    auto x = op.get_left_input_cooperative_tensor<half, half, float>();
    auto y = op.get_right_input_cooperative_tensor<half, half, float>();
    auto sums = op.get_destination_cooperative_tensor<decltype(x), decltype(y), float>();
    const int row = (lane >> 2 & 4) + (lane >> 1 & 3), column = ((lane >> 2 & 2) + (lane & 1)) * 4;
    for (int i = 0; i < 8; ++i) {
        const int at_row = row + i / 4 * 8, at_column = column + i % 4;
        x[i] = a[at_row * 16 + at_column];
        y[i] = b[at_row * 32 + at_column];
        y[8 + i] = b[at_row * 32 + 16 + at_column];
    }
    op.run(x, y, sums);
    for (int i = 0; i < 16; ++i)
        c[(row + i % 8 / 4 * 8) * 32 + i / 8 * 16 + column + i % 4] = sums[i];
}

// ------------------------------------------------------------------------------------------ wrong
// A k of its own is read whole, also where the tensor ends before it.
kernel void reads_past_the_end(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                               device float *c [[buffer(2)]]) {
    matmul2d<matmul2d_descriptor(16, 32, 32), execution_simdgroup> op;
    auto x = tensor(a, shape2(16, 16)), y = tensor(b, shape2(32, 16));
    auto out = tensor(c, shape2(32, 16));
    op.run(x, y, out); // mistake
}

kernel void skips_a_lane(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                         device float *c [[buffer(2)]],
                         ushort lane [[thread_index_in_simdgroup]]) {
    matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroup> op;
    auto x = tensor(a, shape2(16, 16)), y = tensor(b, shape2(32, 16));
    auto out = tensor(c, shape2(32, 16));
    if (lane != 5)
        op.run(x, y, out); // mistake
}

kernel void skips_a_simdgroup(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                              device float *c [[buffer(2)]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroups<4>> op;
    auto x = tensor(a, shape2(16, 16)), y = tensor(b, shape2(32, 16));
    auto out = tensor(c, shape2(32, 16));
    if (simdgroup != 2)
        op.run(x, y, out); // mistake
}

// An operation is not a barrier: others may still read the tile.
kernel void overwrites(device half *a [[buffer(0)]], device half *b [[buffer(1)]],
                       device float *c [[buffer(2)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup half tile[256];
    matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroups<4>> op;
    tile[i] = a[i];
    tile[128 + i] = a[128 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    auto x = tensor(tile, shape2(16, 16));
    auto y = tensor(b, shape2(32, 16));
    auto out = tensor(c, shape2(32, 16));
    op.run(x, y, out);
    tile[i] = a[i]; // mistake
}
