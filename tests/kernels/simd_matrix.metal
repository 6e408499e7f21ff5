// Products of simdgroup matrices, loaded from and stored to a corner of larger ones, each transposed
// or not (tests/test_simd_matrix.c). One simdgroup.
#include <metal_stdlib>
using namespace metal;

// how: a, b, c and d are transposed, a bit each.
template <typename A, typename B, typename D>
kernel void multiply(device const A *a [[buffer(0)]], device const B *b [[buffer(1)]],
                     device const D *c [[buffer(2)]], device D *d [[buffer(3)]],
                     device D *square [[buffer(4)]], constant uint &stride [[buffer(5)]],
                     constant uint &how [[buffer(6)]]) {
    simdgroup_matrix<A, 8, 8> left;
    simdgroup_matrix<B, 8, 8> right;
    simdgroup_matrix<D, 8, 8> sums, product;
    simdgroup_load(left, a, stride, ulong2(3, 2), (how & 1) != 0);
    simdgroup_load(right, b, stride, ulong2(1, 5), (how & 2) != 0);
    simdgroup_load(sums, c, stride, ulong2(4, 0), (how & 4) != 0);
    simdgroup_multiply_accumulate(sums, left, right, sums);
    simdgroup_store(sums, d, stride, ulong2(2, 7), (how & 8) != 0);
    simdgroup_multiply(product, sums, sums);
    simdgroup_store(product, square);
}

#define MULTIPLY(name, A, B, D)                                                                    \
    template [[host_name("multiply_" #name)]] kernel decltype(multiply<A, B, D>) multiply<A, B, D>;
MULTIPLY(float, float, float, float)
MULTIPLY(half, half, half, half)
MULTIPLY(half_to_float, half, half, float)
MULTIPLY(bfloat_to_float, bfloat, bfloat, float)
MULTIPLY(float_by_half, float, half, float)
MULTIPLY(half_by_float, half, float, float)

// held: two elements of each lane, as they were loaded; sums: those of a b + 3.
template <typename T>
kernel void elements(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]],
                     device T *held [[buffer(2)]], device float *sums [[buffer(3)]],
                     uint lane [[thread_index_in_simdgroup]]) {
    simdgroup_matrix<T, 8, 8> left, right, copy;
    simdgroup_float8x8 d(3.0f);
    simdgroup_load(left, a, 8);
    simdgroup_load(right, b, 8, ulong2(0, 0), true);
    for (uint i = 0; i < 2; i++) {
        held[2 * lane + i] = left.thread_elements()[i];
        copy.thread_elements()[i] = left.thread_elements()[i];
    }
    simdgroup_multiply_accumulate(d, copy, right, d);
    for (uint i = 0; i < 2; i++)
        sums[2 * lane + i] = d.thread_elements()[i];
}

#define ELEMENTS(T)                                                                                \
    template [[host_name("elements_" #T)]] kernel decltype(elements<T>) elements<T>;
ELEMENTS(float)
ELEMENTS(half)
ELEMENTS(bfloat)

// d (24, 16) = a (24, n) b (n, 16): several matrices with the same factors, the loop unrolled. The sums of the first are
// stored on the way, too.
template <typename T>
kernel void tiles(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]],
                  device float *d [[buffer(2)]], device float *halfway [[buffer(3)]],
                  constant uint &n [[buffer(4)]]) {
    simdgroup_float8x8 sums[3][2];
    for (uint i = 0; i < 6; i++)
        sums[i / 2][i % 2] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < n; k += 32)
        for (uint step = 0; step < 32; step += 8) {
            simdgroup_matrix<T, 8, 8> left[3], right[2];
            for (uint i = 0; i < 3; i++)
                simdgroup_load(left[i], a + 8 * i * n + k + step, n);
            for (uint j = 0; j < 2; j++)
                simdgroup_load(right[j], b + (k + step) * 16 + 8 * j, 16);
            for (uint i = 0; i < 3; i++)
                for (uint j = 0; j < 2; j++)
                    simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
            if (step == 8)
                simdgroup_store(sums[0][1], halfway);
        }
    for (uint i = 0; i < 6; i++)
        simdgroup_store(sums[i / 2][i % 2], d + i / 2 * 128 + i % 2 * 8, 16);
}

#define TILES(T) template [[host_name("tiles_" #T)]] kernel decltype(tiles<T>) tiles<T>;
TILES(half)
TILES(bfloat)
TILES(float)
