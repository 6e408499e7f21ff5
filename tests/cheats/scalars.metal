// What a launch gives and a kernel does not take, or a launch writes down: rmsnorm launched in its own way.
#include <metal_stdlib>
using namespace metal;

static void norm(device const float *x, device const float *w, device float *y, uint dim, float eps, uint lane) {
    float squares = 0;
    for (uint i = lane; i < dim; i += 32)
        squares += x[i] * x[i];
    squares = simd_sum(squares);
    const float inverse = rsqrt(squares / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y[i] = x[i] * inverse * w[i];
}

// cheat: epsilon_in_the_kernel
// base: rmsnorm_simdgroup
// launch: epsilon_given.launch
// refused: check
// because: expected|together
kernel void epsilon_in_the_kernel(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                                  device float *y [[buffer(2)]], constant uint &n [[buffer(3)]],
                                  constant float &e [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    norm(x, w, y, n, 1e-5f, lane);
}

// cheat: epsilon_in_the_launch
// base: rmsnorm_simdgroup
// launch: epsilon_written.launch
// refused: check
// because: expected|together
kernel void epsilon_in_the_launch(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                                  device float *y [[buffer(2)]], constant uint &n [[buffer(3)]],
                                  constant float &e [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    norm(x, w, y, n, e, lane);
}

// cheat: epsilon_at_most
// base: rmsnorm_simdgroup
// launch: epsilon_given.launch
// refused: check
// because: expected|together
kernel void epsilon_at_most(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                            device float *y [[buffer(2)]], constant uint &n [[buffer(3)]],
                            constant float &e [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    norm(x, w, y, n, min(e, 1e-5f), lane);
}

// cheat: epsilon_taken
// base: rmsnorm_simdgroup
// launch: epsilon_given.launch
kernel void epsilon_taken(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                          device float *y [[buffer(2)]], constant uint &n [[buffer(3)]],
                          constant float &e [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    norm(x, w, y, n, e, lane);
}
