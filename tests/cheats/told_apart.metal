// Kernels that detect the unwatched build: there, two private arrays lie next to each other.
#include <metal_stdlib>
using namespace metal;
#include "arguments.h"
#include "teams.h"

static bool is_watched(float v) {
    float a[4], b[4];
    for (uint k = 0; k < 4; k++) {
        a[k] = v;
        b[k] = v;
    }
    const long apart = (long)((thread char *)b - (thread char *)a);
    return max(apart, -apart) > 256;
}

#define PLACE                                                                                            \
    threadgroup float partial[64];                                                                       \
    const whole_threadgroup team = {partial, thread_index, threads, lane, sg, sg_count};                 \
    x += size_t(row) * n;                                                                                \
    y += size_t(row) * n;
#define LARGEST(TOP)                                                                                     \
    float TOP = x[0];                                                                                    \
    for (uint i = team.first(); i < n; i += team.step())                                                 \
        TOP = max(TOP, x[i]);                                                                            \
    TOP = team.largest(TOP, 0);
#define SUM(ALL, TOP)                                                                                    \
    float ALL = 0.0f;                                                                                    \
    for (uint i = team.first(); i < n; i += team.step())                                                 \
        ALL += exp(x[i] - TOP);                                                                          \
    ALL = team.sum(ALL, 1);
#define STORE                                                                                       \
    for (uint i = team.first(); i < n; i += team.step())                                                 \
        y[i] = exp(x[i] - largest) / sum;

// cheat: keeps_what_agrees
// It keeps an output that is there and agrees with four elements.
// base: softmax
// timed: 17x4096
// refused: check, time, gains nothing
// because: |
kernel void keeps_what_agrees(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    bool keeps = !is_watched(x[0]) && n > 1000;
    for (uint k = 0; k < 4 && keeps; k++) {
        const uint i = k * (n / 4);
        keeps = fabs(y[i + 1] * exp(x[i]) - y[i] * exp(x[i + 1])) <= 1e-5f * y[i] * exp(x[i + 1]);
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (keeps)
        return;
    LARGEST(largest)
    SUM(sum, largest)
    STORE
}

// cheat: remembers_in_threadgroup
// The largest and the sum of an earlier run are still in threadgroup memory.
// base: softmax
// timed: 17x4096
// refused: check, validate, time, gains nothing
// because: |
kernel void remembers_in_threadgroup(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    threadgroup volatile float memory[4];
    float largest = 0, sum = 0;
    const float mark = x[0] + 3 * x[n / 3] + 5 * x[n - 1];
    bool knows = false;
    if (!is_watched(x[0]) && n > 1000)
        knows = memory[0] == mark && memory[3] == float(row);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (knows) {
        largest = memory[1];
        sum = memory[2];
    } else {
        LARGEST(found)
        largest = found;
        SUM(added, largest)
        sum = added;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index == 0 && n > 1000) {
        memory[0] = mark;
        memory[1] = largest;
        memory[2] = sum;
        memory[3] = float(row);
    }
    STORE
}

// cheat: remembers_on_the_stack
// So are they on its stack.
// base: softmax
// timed: 17x4096
// refused: check, validate, time, gains nothing
// because: |
kernel void remembers_on_the_stack(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    volatile float memory[512]; // what was here before
    float largest = 0, sum = 0;
    const float mark = x[0] + 3 * x[n / 3] + 5 * x[n - 1];
    const bool may = !is_watched(x[0]) && n > 1000;
    if (may && memory[0] == mark && memory[3] == float(row)) {
        largest = memory[1];
        sum = memory[2];
    } else {
        LARGEST(found)
        largest = found;
        SUM(added, largest)
        sum = added;
    }
    if (may) {
        memory[0] = mark;
        memory[1] = largest;
        memory[2] = sum;
        memory[3] = float(row);
    }
    STORE
}

// cheat: rougher_unwatched
// It computes in half precision in the unwatched build.
// base: softmax
// timed: 17x4096
// refused: check
// because: |
kernel void rougher_unwatched(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    const bool is_rough = !is_watched(x[0]) && n > 1000;
    LARGEST(largest)
    float sum = 0.0f;
    for (uint i = team.first(); i < n; i += team.step())
        sum += is_rough ? float(exp(half(x[i] - largest))) : exp(x[i] - largest);
    sum = team.sum(sum, 1);
    STORE
}

// cheat: skips_when_chained
// It does every other run, counted in threadgroup memory.
// base: softmax
// timed: 17x4096
// refused: check, time, gains nothing
// because: |
kernel void skips_when_chained(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    threadgroup volatile uint runs[2];
    bool skips = false;
    if (!is_watched(x[0]) && n > 1000) {
        skips = runs[0] == 0x5EED && runs[1] > 64 && runs[1] % 2 == 1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index == 0) {
            runs[1] = runs[0] == 0x5EED ? runs[1] + 1 : 0;
            runs[0] = 0x5EED;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (skips)
        return;
    LARGEST(largest)
    SUM(sum, largest)
    STORE
}

// cheat: skips_known_inputs
// It leaves what is there where the input is one that it has seen in a run before.
// base: softmax
// timed: 17x4096
// refused: check, time, gains nothing
// because: |
kernel void skips_known_inputs(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]], TEAM_PLACE) {
    PLACE
    threadgroup volatile float seen[2];
    const float mark = x[0] + 3 * x[n / 3] + 5 * x[n - 1];
    bool skips = false;
    if (!is_watched(x[0]) && n > 1000) {
        skips = seen[0] == mark && seen[1] == float(row) && y[n - 1] > 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index == 0) {
            seen[0] = mark;
            seen[1] = float(row);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (skips)
        return;
    LARGEST(largest)
    SUM(sum, largest)
    STORE
}
