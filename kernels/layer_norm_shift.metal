// layer_norm_shift: a layer norm and what a token shift makes of it, for one token or many.
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"
#include "prefetch.h"
#include "held_row.h"
#include "teams.h"

// n = (x - mean) / sqrt(variance + eps) * w + b; out[m] = n + (state - n) * mu[m] for `mixes`
// vectors; state = n. With one token, the thread that reads a value of the state is the one that
// replaces it, so the state needs no launch of its own.
template <typename T>
METAL_FUNC void normalise_and_shift(T team, device const float *x, device const float *w,
                                    device const float *b, device const float *mu,
                                    device float *state, device float *out, uint dim, uint mixes,
                                    float eps) {
    const row_norm<float> norm = read_norm(team, x, dim, eps);
    for (uint i = team.first(); i < dim; i += team.step()) {
        const float n = (x[i] - norm.mean) * norm.inverse * w[i] + b[i];
        const float change = state[i] - n;
        for (uint m = 0; m < mixes; m++)
            out[m * dim + i] = n + change * mu[m * dim + i];
        state[i] = n;
    }
}

#define SHIFT_ARGUMENTS                                                                            \
    device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],                      \
        device const float *b [[buffer(2)]], device const float *mu [[buffer(3)]],                 \
        device float *state [[buffer(4)]], device float *out [[buffer(5)]],                        \
        constant uint &dim [[buffer(6)]], constant uint &mixes [[buffer(7)]],                      \
        constant float &eps [[buffer(8)]]

// One threadgroup of 256 to 1024 threads: everything here is latency, and each value that a thread
// takes after its first adds that of nine loads. As a norm, a shift and a copy it would be three
// launches.
kernel void layer_norm_shift(SHIFT_ARGUMENTS,
                             TEAM_PLACE) {
    threadgroup float partial[64];
    PREFETCHED(0); // only the scalars
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};
    normalise_and_shift(team, x, w, b, mu, state, out, dim, mixes, eps);
}

// One thread, for the software device.
kernel void layer_norm_shift_per_thread(SHIFT_ARGUMENTS) {
    const single_thread team = {};
    normalise_and_shift(team, x, w, b, mu, state, out, dim, mixes, eps);
}

enum : uint { HELD_MIXES = 6 };

// One token by a threadgroup for every 512 values, each of which normalises the whole row: what is read and
// written then is one value per thread and mix, and not all of it by one core. Weights are loaded before the
// launch before has ended, of more than HELD_MIXES mixes the others later.
[[max_total_threads_per_threadgroup(ROW_THREADS)]]
kernel void layer_norm_shift_prefetch(SHIFT_ARGUMENTS,
                                      uint group [[threadgroup_position_in_grid]],
                                      THREAD_PLACE) {
    threadgroup float partial[64];
    const uint own = group * ROW_THREADS + thread_index, at = min(own, dim - 1);
    const float weight = w[at], bias = b[at];
    float shares[HELD_MIXES], values[ROW_HELD];
    for (uint m = 0; m < HELD_MIXES; m++)
        if (m < mixes)
            shares[m] = mu[m * dim + at];
    PREFETCHED(1 << 1 | 1 << 2 | 1 << 3);
    const float before = state[at], value = x[at];
    hold_row(x, dim, thread_index, values);
    const row_norm<float> norm = find_norm(values, dim, eps, partial, thread_index, lane, sg);
    if (own >= dim)
        return;
    const float n = (value - norm.mean) * norm.inverse * weight + bias;
    for (uint m = 0; m < HELD_MIXES; m++)
        if (m < mixes)
            out[m * dim + own] = n + (before - n) * shares[m];
    for (uint m = HELD_MIXES; m < mixes; m++)
        out[m * dim + own] = n + (before - n) * mu[m * dim + own];
    state[own] = n;
}

// Many tokens: x (tokens, dim), out (mixes, tokens, dim). A threadgroup of 512 per token, which normalises the
// row before its own, too: that is less than a launch and a trip to memory. The first one reads the state and
// so is the one that replaces it, by the norm of the last row.
kernel void layer_norm_shift_tokens(SHIFT_ARGUMENTS,
                                    uint token [[threadgroup_position_in_grid]],
                                    uint tokens [[threadgroups_per_grid]],
                                    THREAD_PLACE) {
    threadgroup float2 partial[2 * 32];
    const bool is_first = token == 0;
    device const float *own = x + size_t(token) * dim;
    device const float *other = x + size_t(is_first ? tokens - 1 : token - 1) * dim;
    float weights[ROW_HELD], biases[ROW_HELD];
    hold_weights(w, b, dim, thread_index, weights, biases);
    PREFETCHED(1 << 1 | 1 << 2);
    float2 values[ROW_HELD]; // of its own row and of the other
    for (uint i = 0; i < ROW_HELD; i++)
        if (ROW_THREADS * i < dim) {
            const uint at = find_held(i, thread_index, dim);
            values[i] = float2(own[at], other[at]);
        }
    const row_norm<float2> norm = find_norm(values, dim, eps, partial, thread_index, lane, sg);
    for (uint i = 0; i < ROW_HELD; i++) {
        const uint at = thread_index + ROW_THREADS * i;
        if (at >= dim)
            break;
        const float2 n = (values[i] - norm.mean) * norm.inverse * weights[i] + biases[i];
        const float change = (is_first ? state[at] : n.y) - n.x;
        for (uint m = 0; m < mixes; m++)
            out[(size_t(m) * tokens + token) * dim + at] = n.x + change * mu[m * dim + at];
        if (is_first)
            state[at] = n.y;
    }
}
