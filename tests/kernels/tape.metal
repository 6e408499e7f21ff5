// Small kernels for the tape: launches that depend on each other, and one that misbehaves.
#include <metal_stdlib>
using namespace metal;

#include "../../kernels/prefetch.h"

// x[i] = x[i] * factor + step, where step is read from device memory.
kernel void advance(device float *x [[buffer(0)]], constant float &factor [[buffer(1)]],
                    device const float *step [[buffer(2)]], constant uint &n [[buffer(3)]],
                    uint i [[thread_position_in_grid]]) {
    if (i < n)
        x[i] = x[i] * factor + step[0];
}

// Changes the value that the next launch reads: no CPU between them.
kernel void count_up(device float *step [[buffer(0)]]) {
    step[0] += 1;
}

// Loads `from` and `scale` before launches before it need have ended, where nothing in the tape writes
// them.
kernel void copy_early(device const float *from [[buffer(0)]], device float *to [[buffer(1)]],
                       constant float &scale [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const float value = from[i];
    PREFETCHED(1 << 0);
    to[i] = scale * value;
}

// The same, but only of elements before the newest one, which is number n - 1.
kernel void copy_rows_early(device const float *from [[buffer(0)]], device float *to [[buffer(1)]],
                            constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    float value = 0.0f;
    if (i + 1 < n)
        value = from[i];
    PREFETCHED_ROWS(1 << 0);
    to[i] = i + 1 < n ? value : from[i];
}

// Takes its time before it stores.
kernel void fill_late(device float *to [[buffer(0)]], constant uint &turns [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    float value = float(i);
    for (uint t = 0; t < turns; t++)
        value = value * 0.5f + float(i) * 0.5f;
    to[i] = value;
}

// Writes one element `past` places after the end (or, negative, before the start).
kernel void write_outside(device float *x [[buffer(0)]], constant int &past [[buffer(1)]],
                          constant uint &n [[buffer(2)]]) {
    x[int(n) - 1 + past] = 1;
}

kernel void too_much_memory(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup float a[5000];
    threadgroup float b[5000];
    a[i] = b[i] = float(i);
    out[i] = a[i] + b[i];
}

kernel void needs_memory(device float *out [[buffer(0)]],
                         threadgroup float *scratch [[threadgroup(0)]],
                         uint i [[thread_position_in_grid]]) {
    scratch[i] = 1;
    out[i] = scratch[i];
}

[[kernel, max_total_threads_per_threadgroup(64)]] void
small_groups(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}

struct settings {
    float weights[4];
    uint at;
    ushort small;
};

// Small constants of every kind: a table, a struct, and scalars of one, two and eight bytes.
kernel void use_constants(device float *out [[buffer(0)]], constant float *table [[buffer(1)]],
                          constant settings &s [[buffer(2)]], constant uchar &byte [[buffer(3)]],
                          constant ushort &word [[buffer(4)]], constant uint2 &pair [[buffer(5)]],
                          uint i [[thread_position_in_grid]]) {
    out[i] = table[i % 8] + s.weights[i % 4] * float(s.at + s.small) + float(byte) +
             float(word) + float(pair.x) + float(pair.y);
}
