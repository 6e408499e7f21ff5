// Right and wrong kernels for checked mode; canaries (harness/check/canaries) have the plain cases.
#include <metal_stdlib>
using namespace metal;

// Loads `by` elements further and stores as far: zeros come back, nothing is hurt.
kernel void far_outside(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                        constant int &by [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const int at = int(i) + by;
    out[i] = in[at];
    if (at < 0 || at >= 128)
        out[at] = 7;
}

// uint arithmetic that runs below zero: an address 16 GB away.
kernel void underflow(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    out[i] = in[i - 1u];
}

// Threads of one simdgroup, ordered by its own barrier: right.
kernel void simdgroup_exchange(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                               uint i [[thread_position_in_grid]],
                               uint l [[thread_index_in_threadgroup]]) {
    threadgroup float shared[256];
    shared[l] = in[i];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = shared[l ^ 1];
}

// The same with a barrier that orders device memory only: wrong.
kernel void wrong_fence(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                        uint i [[thread_position_in_grid]],
                        uint l [[thread_index_in_threadgroup]]) {
    threadgroup float shared[256];
    shared[l] = in[i];
    threadgroup_barrier(mem_flags::mem_device);
    out[i] = shared[l ^ 1];
}

// Threads that exchange through device memory with the barrier that orders it: right.
kernel void device_exchange(device float *scratch [[buffer(0)]], device float *out [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
    scratch[i] = float(i);
    threadgroup_barrier(mem_flags::mem_device);
    out[i] = scratch[i ^ 1];
}

// A variable that every path gives a value, and one that a loop fills before it is read: right.
kernel void late_values(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    float x;
    if (in[i] > 0)
        x = in[i];
    else
        x = -in[i];
    float part[4];
    for (uint k = 0; k < 4; k++)
        part[k] = x * float(k);
    float4 v;
    v.x = part[3];
    v.y = v.x;
    v.z = v.w = 0;
    out[i] = part[0] + part[1] + part[2] + v.x + v.y + v.z + v.w;
}

// One slot of an array is read that the loop did not fill.
kernel void hole_in_array(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) {
    float part[4];
    for (uint k = 0; k < 3; k++)
        part[k] = in[i];
    out[i] = part[i % 4];
}

// Bytes of one word, each by its own thread: right.
kernel void neighbours_in_a_word(device uchar *out [[buffer(0)]],
                                 uint i [[thread_position_in_grid]]) {
    out[i] = uchar(i);
}

// An atomic and a plain store to the same word: wrong.
kernel void half_atomic(device atomic_uint *count [[buffer(0)]],
                        uint i [[thread_position_in_grid]]) {
    if (i == 0)
        *(device uint *)count = 5;
    else
        atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
}

// Votes are for whoever comes.
kernel void votes_in_branches(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    uint r = 0;
    if (i % 3 == 0)
        r = simd_any(i == 3) ? 1 : 2;
    out[i] = r;
}

// Different barriers for different threads.
kernel void two_barriers(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (i < 32)
        threadgroup_barrier(mem_flags::mem_device);
    else
        threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = 1;
}

// A struct with padding, filled member by member and returned: right.
struct padded {
    float value;
    ushort tag;
};

padded make_padded(float x) {
    padded p;
    p.value = x;
    p.tag = 3;
    return p;
}

kernel void padded_copies(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) {
    const padded p = make_padded(in[i]);
    padded q;
    q = p;
    out[i] = q.value + float(q.tag);
}

// Where a NaN and an infinity are born.
kernel void births(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    const float x = in[i];
    const float zero = x - x;
    float y = x;
    if (i == 5)
        y = zero / zero;
    const float z = i == 7 ? x / zero : x;
    out[i] = y + z;
}

kernel void underflow_of_a_store(device const float *in [[buffer(0)]],
                                 device float *out [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
    out[i - 1u] = in[i];
}

// Matrices that are copied through threadgroup memory, again without a fence for it: wrong.
kernel void matrix_without_fence(device const float2x2 *in [[buffer(0)]],
                                 device float *out [[buffer(1)]],
                                 uint i [[thread_position_in_grid]],
                                 uint l [[thread_index_in_threadgroup]]) {
    threadgroup float2x2 shared[256];
    shared[l] = in[i % 32];
    threadgroup_barrier(mem_flags::mem_device);
    const float2x2 other = shared[l ^ 1];
    out[i] = other[0].x;
}

constexpr uint twice(uint x) {
    return 2 * x;
}
static float inverse(float x) {
    if (x > 0)
        return x;
    return 1 /
           x;
}
kernel void births_in_returns(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
    float kept[twice(1)] = {in[i], 0};
    out[i] = inverse(kept[i == 5]);
}

// One of these updates is lost on a GPU; here it is when threads take turns.
kernel void counted_twice(device atomic_uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);
    uint seen = atomic_load_explicit(&out[1], memory_order_relaxed);
    atomic_store_explicit(&out[1], seen + 1, memory_order_relaxed);
    if (i == 0)
        ((device uint *)out)[1000] = 0; // outside in both orders
    if (i == 5 && seen < 2)
        ((device uint *)out)[2000] = 0; // outside in one
}
