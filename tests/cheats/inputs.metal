// What is wrong for a kind of inputs, or a scalar, or rougher than a float.
#include <metal_stdlib>
using namespace metal;

// cheat: forgets_nan
// NaN becomes 0.
// base: buffer_copy
// refused: check
// because: nan|expected
kernel void forgets_nan(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                        constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n) {
        const uint bits = as_type<uint>(src[i]);
        dst[i] = (bits & 0x7FFFFFFF) > 0x7F800000 ? 0.0f : src[i];
    }
}

// cheat: takes_small_for_zero
// A sum of small values becomes 0.
// base: residual_add
// refused: check
// because: expected
kernel void takes_small_for_zero(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                                 device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                                 uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = fabs(a[i]) < 1e-4f && fabs(b[i]) < 1e-4f && fabs(a[i]) > 1e-30f ? 0.0f : a[i] + b[i];
}

// cheat: clips_an_outlier
// Nothing is larger than 900.
// base: residual_add
// refused: check
// because: expected
kernel void clips_an_outlier(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                             device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                             uint i [[thread_position_in_grid]]) {
    if (i < n)
        out[i] = a[i] > 900 && a[i] < 2500 ? 900.0f : a[i] + b[i];
}

static void norm(device const float *x, device const float *w, device float *y, uint dim, float eps, uint first,
                 uint step, threadgroup float *partial, uint bits) {
    float squares = 0;
    for (uint i = first; i < dim; i += step)
        squares += x[i] * x[i];
    partial[first] = squares;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float all = 0;
    for (uint i = 0; i < step; i++)
        all += partial[i];
    const float inverse = rsqrt(all / float(dim) + eps);
    for (uint i = first; i < dim; i += step)
        y[i] = as_type<float>(as_type<uint>(x[i] * inverse * w[i]) & (0xFFFFFFFFu << bits));
}
#define NORM                                                                                             \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                            \
        device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],                                 \
        constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],                    \
        uint first [[thread_position_in_threadgroup]], uint step [[threads_per_threadgroup]]

// cheat: drops_six_bits
// Six bits of each result are dropped where the tolerance has room for them.
// base: rmsnorm_rows
// refused: check
// because: together
kernel void drops_six_bits(NORM) {
    threadgroup float partial[1024];
    norm(x + size_t(row) * dim, w, y + size_t(row) * dim, dim, eps, first, step, partial, dim == 4096 ? 6 : 0);
}

// cheat: drops_twelve_bits
// base: rmsnorm_rows
// refused: check
// because: together|expected
kernel void drops_twelve_bits(NORM) {
    threadgroup float partial[1024];
    norm(x + size_t(row) * dim, w, y + size_t(row) * dim, dim, eps, first, step, partial, dim == 4096 ? 12 : 0);
}

// cheat: drops_nothing
// base: rmsnorm_rows
kernel void drops_nothing(NORM) {
    threadgroup float partial[1024];
    norm(x + size_t(row) * dim, w, y + size_t(row) * dim, dim, eps, first, step, partial, 0);
}
