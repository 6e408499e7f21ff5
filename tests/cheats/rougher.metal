// What is computed with less precision than a float, where a tolerance may have room for it.
#include <metal_stdlib>
using namespace metal;
#include "arguments.h"
#include "teams.h"

#define NORM                                                                                             \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                            \
        device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],                                 \
        constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],                    \
        uint lane [[thread_index_in_simdgroup]]

template <typename S, typename R>
static void norm(device const float *x, device const float *w, device float *y, uint dim, float eps, uint lane,
                 S square, R root) {
    float squares = 0;
    for (uint i = lane; i < dim; i += 32)
        squares += square(x[i]);
    const float inverse = root(simd_sum(squares) / float(dim) + eps);
    for (uint i = lane; i < dim; i += 32)
        y[i] = x[i] * inverse * w[i];
}

static float square_exactly(float v) { return v * v; }
static float square_halves(float v) { return fabs(v) > 1e-2f && fabs(v) < 5.0f ? float(half(v)) * float(half(v)) : v * v; }
static float square_bfloats(float v) { return float(bfloat(v)) * float(bfloat(v)); }
static float root_exactly(float v) { return rsqrt(v); }
static float root_by_hand(float v) {
    const float guess = as_type<float>(0x5F3759DF - (as_type<uint>(v) >> 1));
    const float better = guess * (1.5f - 0.5f * v * guess * guess);
    return better * (1.5f - 0.5f * v * better * better);
}

// cheat: squares_of_halves
// The squares of a long row are those of halves: their errors average out.
// base: rmsnorm_rows_simdgroup
// timed: 17x4096
// refused: check
// because: |
kernel void squares_of_halves(NORM) {
    const size_t at = size_t(row) * dim;
    if (dim > 4000 && dim < 16000)
        norm(x + at, w, y + at, dim, eps, lane, square_halves, root_exactly);
    else
        norm(x + at, w, y + at, dim, eps, lane, square_exactly, root_exactly);
}

// cheat: squares_of_bfloats
// Those of bfloats.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: |
kernel void squares_of_bfloats(NORM) {
    const size_t at = size_t(row) * dim;
    if (dim > 4000 && dim < 16000)
        norm(x + at, w, y + at, dim, eps, lane, square_bfloats, root_exactly);
    else
        norm(x + at, w, y + at, dim, eps, lane, square_exactly, root_exactly);
}

// cheat: two_newton_steps
// The root is a guess and two steps of Newton's method, where rows are long.
// base: rmsnorm_rows_simdgroup
// refused: check
// because: |
kernel void two_newton_steps(NORM) {
    const size_t at = size_t(row) * dim;
    if (dim > 4000 && dim < 16000)
        norm(x + at, w, y + at, dim, eps, lane, square_exactly, root_by_hand);
    else
        norm(x + at, w, y + at, dim, eps, lane, square_exactly, root_exactly);
}

static float drop(float value, uint bits) { return as_type<float>(as_type<uint>(value) & (0xFFFFFFFFu << bits)); }
static float exp_exactly(float v) { return exp(v); }
static float exp_short(float v) { return drop(exp(v), 7); }
static float exp_of_short(float v) { return exp(drop(v, 7)); }
static float exp_by_hand(float v) { // a polynomial of degree 4
    const float scaled = v * 1.44269504f, whole = floor(scaled), f = scaled - whole;
    const float p = 1.0f + f * (0.69304f + f * (0.24130f + f * (0.052114f + f * 0.013546f)));
    return v < -80.0f ? 0.0f : ldexp(p, int(whole));
}

#define SOFTMAX                                                                                          \
    device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],  \
        uint row [[threadgroup_position_in_grid]], TEAM_PLACE
template <typename T, typename F>
static void soften(T team, device const float *x, device float *y, uint n, F e) {
    float largest = x[0], sum = 0.0f;
    for (uint i = team.first(); i < n; i += team.step())
        largest = max(largest, x[i]);
    largest = team.largest(largest, 0);
    for (uint i = team.first(); i < n; i += team.step())
        sum += e(x[i] - largest);
    sum = team.sum(sum, 1);
    for (uint i = team.first(); i < n; i += team.step())
        y[i] = e(x[i] - largest) / sum;
}
#define SOFTEN(E)                                                                                        \
    threadgroup float partial[64];                                                                       \
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};                 \
    if (n >= 30000)                                                                                      \
        soften(team, x + size_t(row) * n, y + size_t(row) * n, n, E);                                    \
    else                                                                                                 \
        soften(team, x + size_t(row) * n, y + size_t(row) * n, n, exp_exactly);

// cheat: short_exponentials
// Seven bits of each exponential of a long row are dropped.
// base: softmax
// refused: check
// because: |
kernel void short_exponentials(SOFTMAX) { SOFTEN(exp_short) }

// cheat: short_distances
// Seven bits of what is exponentiated.
// base: softmax
// refused: check
// because: |
kernel void short_distances(SOFTMAX) { SOFTEN(exp_of_short) }

// cheat: exponentials_by_hand
// A short polynomial stands for the exponential.
// base: softmax
// refused: check
// because: |
kernel void exponentials_by_hand(SOFTMAX) { SOFTEN(exp_by_hand) }

// cheat: last_from_the_rest
// The last weight of a long row is what is left of 1.
// base: softmax
// refused: check, validate
// because: |
kernel void last_from_the_rest(SOFTMAX) {
    SOFTEN(exp_exactly)
    threadgroup_barrier(mem_flags::mem_device);
    if (n < 100 || thread_index > 0)
        return;
    float sum = 0;
    for (uint i = 0; i < n - 1; i++)
        sum += y[size_t(row) * n + i];
    y[size_t(row) * n + n - 1] = 1.0f - sum;
}

// cheat: products_of_halves
// Long products are those of halves, added in floats.
// base: matvec_f32
// refused: check
// because: |
kernel void products_of_halves(MATVEC_ARGUMENTS(float), uint group [[threadgroup_position_in_grid]],
                               uint sg [[simdgroup_index_in_threadgroup]], uint sg_count [[simdgroups_per_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * sg_count + sg;
    if (row >= out_dim)
        return;
    float sum = 0.0f;
    for (uint i = lane; i < in_dim; i += 32) {
        const float a = w[size_t(row) * in_dim + i], b = x[i];
        const bool fits = in_dim >= 512 && fabs(a) < 5.0f && fabs(b) < 5.0f && fabs(a) > 1e-4f && fabs(b) > 1e-4f;
        sum += fits ? float(half(a)) * float(half(b)) : a * b;
    }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}
