// For test_agx.c: kernels that Mesa's compiler for Apple GPUs answers differently to.
#include <metal_stdlib>
using namespace metal;

// So many values at once that fewer than 1024 threads have room for their registers: each depends on all.
kernel void many(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    float v[96];
    for (uint k = 0; k < 96; k++)
        v[k] = x[i + k];
    float sum = 0.0f;
    for (uint k = 0; k < 96; k++)
        sum += v[k];
    float product = 0.0f;
    for (uint k = 0; k < 96; k++)
        product = fma(v[k], sum - v[95 - k], product);
    y[i] = product;
}

// An array indexed by a number that only the data knows is in memory.
kernel void indexed(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    float v[32];
    for (uint k = 0; k < 32; k++)
        v[k] = x[i + k];
    for (uint k = 0; k < 32; k++)
        v[uint(x[k]) % 32] += 1.0f;
    y[i] = v[uint(x[i]) % 32];
}

kernel void multiplied(device const float *x [[buffer(0)]], device float *y [[buffer(1)]]) {
    simdgroup_float8x8 a, b, c = simdgroup_float8x8(0.0f);
    simdgroup_load(a, x, 8);
    simdgroup_load(b, x + 64, 8);
    simdgroup_multiply_accumulate(c, a, b, c);
    simdgroup_store(c, y, 8);
}
