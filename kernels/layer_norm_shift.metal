// layer_norm_shift: a layer norm and what a token shift makes of it, for one token or many.
#include <metal_stdlib>
using namespace metal;

#include "early.h"
#include "teams.h"

// n = (x - mean) / sqrt(variance + eps) * w + b; out[m] = n + (state - n) * mu[m] for `mixes`
// vectors; state = n. With one token, the thread that reads a value of the state is the one that
// replaces it, so the state needs no launch of its own.
template <typename T>
METAL_FUNC void normalise_and_shift(T team, device const float *x, device const float *w,
                                    device const float *b, device const float *mu,
                                    device float *state, device float *out, uint dim, uint mixes,
                                    float eps) {
    float sum = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        sum += x[i];
    const float mean = team.sum(sum, 0) / float(dim);
    float squares = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        squares += (x[i] - mean) * (x[i] - mean);
    const float inverse = rsqrt(team.sum(squares, 1) / float(dim) + eps);
    for (uint i = team.first(); i < dim; i += team.step()) {
        const float n = (x[i] - mean) * inverse * w[i] + b[i];
        const float change = state[i] - n;
        for (uint m = 0; m < mixes; m++)
            out[m * dim + i] = n + change * mu[m * dim + i];
        state[i] = n;
    }
}

// One threadgroup of 256 to 1024 threads: everything here is latency, and each value that a thread
// takes after its first adds that of nine loads. As a norm, a shift and a copy it would be three
// launches.
kernel void layer_norm_shift(device const float *x [[buffer(0)]],
                             device const float *w [[buffer(1)]],
                             device const float *b [[buffer(2)]],
                             device const float *mu [[buffer(3)]],
                             device float *state [[buffer(4)]],
                             device float *out [[buffer(5)]],
                             constant uint &dim [[buffer(6)]],
                             constant uint &mixes [[buffer(7)]],
                             constant float &eps [[buffer(8)]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint threads [[threads_per_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint sg [[simdgroup_index_in_threadgroup]],
                             uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[64];
    EARLY_LOADS(0); // only the scalars
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    normalise_and_shift(team, x, w, b, mu, state, out, dim, mixes, eps);
}

// One thread, for the software device.
kernel void layer_norm_shift_alone(device const float *x [[buffer(0)]],
                                   device const float *w [[buffer(1)]],
                                   device const float *b [[buffer(2)]],
                                   device const float *mu [[buffer(3)]],
                                   device float *state [[buffer(4)]],
                                   device float *out [[buffer(5)]],
                                   constant uint &dim [[buffer(6)]],
                                   constant uint &mixes [[buffer(7)]],
                                   constant float &eps [[buffer(8)]]) {
    const lone_thread team = {};
    normalise_and_shift(team, x, w, b, mu, state, out, dim, mixes, eps);
}

// What a row of x is normalised by.
struct row_norm {
    float mean, inverse;

    METAL_FUNC float apply(float value, float weight, float bias) const {
        return (value - mean) * inverse * weight + bias;
    }
};

template <typename T>
METAL_FUNC row_norm find_norm(T team, device const float *x, uint dim, float eps, uint slot) {
    float sum = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        sum += x[i];
    const float mean = team.sum(sum, slot) / float(dim);
    float squares = 0.0f;
    for (uint i = team.first(); i < dim; i += team.step())
        squares += (x[i] - mean) * (x[i] - mean);
    const row_norm norm = {mean, rsqrt(team.sum(squares, slot + 1) / float(dim) + eps)};
    return norm;
}

// Many tokens: x (tokens, dim), out (mixes, tokens, dim). A threadgroup of 512 per token, which normalises the
// row before its own, too: that is less than a launch and a trip to memory. The first one reads the state and
// so is the one that replaces it, by the norm of the last row.
kernel void layer_norm_shift_tokens(device const float *x [[buffer(0)]],
                                    device const float *w [[buffer(1)]],
                                    device const float *b [[buffer(2)]],
                                    device const float *mu [[buffer(3)]],
                                    device float *state [[buffer(4)]],
                                    device float *out [[buffer(5)]],
                                    constant uint &dim [[buffer(6)]],
                                    constant uint &mixes [[buffer(7)]],
                                    constant float &eps [[buffer(8)]],
                                    uint token [[threadgroup_position_in_grid]],
                                    uint tokens [[threadgroups_per_grid]],
                                    uint thread_index [[thread_index_in_threadgroup]],
                                    uint threads [[threads_per_threadgroup]],
                                    uint lane [[thread_index_in_simdgroup]],
                                    uint sg [[simdgroup_index_in_threadgroup]],
                                    uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[128];
    EARLY_LOADS(0); // only the scalars
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    const bool is_first = token == 0;
    device const float *own = x + size_t(token) * dim;
    device const float *other = x + size_t(is_first ? tokens - 1 : token - 1) * dim;
    const row_norm norm = find_norm(team, own, dim, eps, 0);
    const row_norm other_norm = find_norm(team, other, dim, eps, 2);
    for (uint i = thread_index; i < dim; i += threads) {
        const float n = norm.apply(own[i], w[i], b[i]);
        const float o = other_norm.apply(other[i], w[i], b[i]);
        const float change = (is_first ? state[i] : o) - n;
        for (uint m = 0; m < mixes; m++)
            out[(size_t(m) * tokens + token) * dim + i] = n + change * mu[m * dim + i];
        if (is_first)
            state[i] = o;
    }
}
