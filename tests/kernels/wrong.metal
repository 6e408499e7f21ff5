// Wrong kernels that are neither canaries (harness/check/canaries) nor planted in random programs: each has
// one bug, at a line marked "bug:" with the class that checked mode must report there.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

// ------------------------------------------------------------------------------------------- races

kernel void race_of_halves(device half *data [[buffer(3)]], IDS) {
    data[i] = data[i ^ 1]; // bug: race in threadgroup
}

kernel void race_of_a_byte_and_its_word(device uchar *data [[buffer(3)]], IDS) {
    if (l == 0)
        ((device uint *)data)[g] = 7; // bug: race in threadgroup
    if (l == 1)
        data[g * 4 + 3] = 1; // bug: race in threadgroup
}

struct bit_fields {
    uint a : 3, b : 8, c : 21;
};
kernel void race_of_bit_fields(device bit_fields *data [[buffer(3)]], IDS) {
    if (l == 0)
        data[g].a = 1;
    if (l == 1)
        data[g].c = data[g + 2].c; // bug: race in threadgroup
}

kernel void race_of_bit_fields_in_threadgroup_memory(FOUR, IDS) {
    threadgroup bit_fields shared;
    if (l == 33)
        shared.b = 0; // bug: race in threadgroup
    if (l == 0)
        shared.a = 5;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = float(shared.a) + in[i % n];
}

kernel void race_of_halves_in_threadgroup_memory(FOUR, IDS) {
    threadgroup half tile[64];
    tile[l] = half(in[i % n]); // bug: race in threadgroup
    out[i] = float(tile[l ^ 1]); // bug: race in threadgroup, unwritten memory
    tile[l] = 0.0h; // bug: race in threadgroup
}

kernel void barrier_of_none(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    threadgroup_barrier(mem_flags::mem_none);
    out[i] = tile[63 - l]; // bug: race in threadgroup
}

// Matrices that are copied through threadgroup memory.
kernel void barrier_of_the_other_memory(FOUR, IDS) {
    threadgroup float2x2 tile[64];
    tile[l] = ((device const float2x2 *)in)[i % 32];
    threadgroup_barrier(mem_flags::mem_device);
    const float2x2 other = tile[l ^ 1]; // bug: race in threadgroup
    out[i] = other[0].x;
}

kernel void fence_instead_of_a_barrier(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n]; // bug: race in threadgroup
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst,
                        thread_scope_threadgroup);
    out[i] = tile[63 - l]; // bug: race in threadgroup, unwritten memory
    tile[l] = 0; // bug: race in threadgroup
}

kernel void relaxed_fence(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_relaxed, thread_scope_threadgroup);
    threadgroup_barrier(mem_flags::mem_none);
    out[i] = tile[63 - l]; // bug: race in threadgroup
}

kernel void last_threadgroup_without_fence(FOUR, device atomic_uint *count [[buffer(4)]],
                                           device float *part [[buffer(3)]], IDS) {
    threadgroup uint is_last;
    float x = simd_sum(in[i]);
    if (lane == 0)
        part[i / 32] = x;
    threadgroup_barrier(mem_flags::mem_device);
    if (l == 0)
        is_last = atomic_fetch_add_explicit(count, 1, memory_order_relaxed) == n / 64 - 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (is_last && l == 0)
        out[0] = part[0] + part[1] + part[2] + part[3]; // bug: race of threadgroups
}

kernel void last_threadgroup_without_barrier(FOUR, device atomic_uint *count [[buffer(4)]],
                                             device float *part [[buffer(3)]], IDS) {
    threadgroup uint is_last;
    float x = simd_sum(in[i]);
    if (lane == 0)
        part[i / 32] = x;
    if (l == 0) {
        atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_device);
        is_last = atomic_fetch_add_explicit(count, 1, memory_order_relaxed) == n / 64 - 1;
        atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_device);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (is_last && l == 0)
        out[0] = part[0] + part[1] + part[2] + part[3]; // bug: race of threadgroups
}

kernel void fence_of_a_threadgroup(FOUR, device atomic_uint *count [[buffer(4)]],
                                   device float *part [[buffer(3)]], IDS) {
    if (l == 0) {
        part[g] = in[i];
        atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_threadgroup);
        if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) == n / 64 - 1) {
            atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel,
                                thread_scope_threadgroup);
            out[0] = part[0] + part[1]; // bug: race of threadgroups
        }
    }
}

kernel void missing_second_barrier(FOUR, IDS) {
    threadgroup float tile[64];
    float sum = 0;
    for (uint k = 0; k < 3; k++) {
        tile[l] = in[(i + k) % n]; // bug: race in threadgroup
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += tile[63 - l]; // bug: race in threadgroup
    }
    out[i] = sum;
}

// ------------------------------------------------------------------------------- unwritten memory

kernel void half_a_word(FOUR, IDS) {
    threadgroup ushort tile[64];
    if (l % 2 == 0)
        tile[l] = ushort(in[i]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = float(tile[l ^ 1]); // bug: unwritten memory
}

kernel void half_of_the_output(device half *out [[buffer(1)]], IDS) {
    if (i % 2 == 0)
        out[i] = half(i);
    threadgroup_barrier(mem_flags::mem_device);
    if (i % 2 == 0)
        out[i] += out[i + 1]; // bug: unwritten memory
}

inline void set_odd(thread float &x, uint i) {
    if (i % 2)
        x = 1;
}
kernel void by_reference(FOUR, IDS) {
    float x;
    set_odd(x, i);
    out[i] = x + in[i % n]; // bug: unwritten memory
}

// In one file with a jump past a variable, which checked mode must leave alone.
kernel void beside_a_jump(FOUR, IDS) {
    float x;
    switch (i % 3) {
    case 0:
        float t;
        t = in[i];
        x = t;
        break;
    case 1:
        x = 1;
        break;
    }
    out[i] = x; // bug: unwritten memory
}

// ------------------------------------------------------------------------------------------ outside

inline float last_of(thread const float *p, int count) {
    return p[count]; // bug: load outside
}
kernel void pointer_leaves_in_a_helper(FOUR, IDS) {
    float part[4];
    for (uint k = 0; k < 4; k++)
        part[k] = in[(i + k) % n];
    out[i] = last_of(part, 4);
}

template <typename T> T third(device const T *p, uint i) {
    return p[i * 3]; // bug: load outside
}
kernel void template_helper(FOUR, IDS) {
    out[i] = third<float>(in, i);
}

kernel void threadgroup_element(FOUR, IDS) {
    threadgroup float first[64];
    threadgroup float4 second[16];
    first[l] = in[i % n];
    if (l < 16)
        second[l] = float4(0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = first[l + 1] + second[l / 4].x; // bug: load outside
}

kernel void through_null(FOUR, IDS) {
    device const float *p = nullptr;
    if (n > 1000)
        p = in;
    out[i] = p[2]; // bug: load outside
}

inline int sum_to(int n) { // bug: memory fault
    return n == 0 ? 0 : 1 + sum_to(n - 1); // bug: memory fault
}
kernel void recursion(FOUR, IDS) {
    out[i] = float(sum_to(int(n) * 100000)) + in[i % n];
}

struct two_arrays {
    float a[4], b[4];
};
void set_elements(thread float *p, int count) {
    for (int k = 0; k < count; k++)
        p[k] = 0; // bug: store outside
}
void pass_on(thread float *p, int count) {
    set_elements(p + 1, count);
}
kernel void member_array_left_in_a_function(FOUR, IDS) {
    two_arrays t = {};
    set_elements(t.a, 5);
    out[i] = t.b[1] + in[i % n];
}
kernel void member_array_left_two_functions_on(FOUR, IDS) {
    two_arrays t = {};
    pass_on(t.a, 4);
    out[i] = t.b[1] + in[i % n];
}

float add_elements(device const float *p, int count) {
    float s = 0;
    while (count-- > 0)
        s += *p++; // bug: load outside
    return s;
}
kernel void member_array_of_device_memory_left(FOUR, device const two_arrays *data [[buffer(3)]],
                                               IDS) {
    out[i] = add_elements(data[i % 8].a, 5) + in[i % n];
}

// ------------------------------------------------------------------------ barriers and simdgroups

inline void meet_here() {
    threadgroup_barrier(mem_flags::mem_threadgroup); // bug: barrier not reached
}
kernel void one_helper_in_two_arms(FOUR, IDS) {
    if (l < 32)
        meet_here();
    else
        meet_here();
    out[i] = in[i % n];
}

kernel void matrix_not_stored_by_all(FOUR, IDS) {
    simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
    if (lane != 4 && l < 32)
        simdgroup_store(a, out + g * 64, 8, ulong2(0, 0)); // bug: diverged simdgroup
}

kernel void shuffle_from_those_that_returned(FOUR, IDS) {
    if (lane > 20)
        return;
    float x = in[i % n];
    for (ushort d = 16; d > 0; d /= 2)
        x += simd_shuffle_down(x, d); // bug: diverged simdgroup
    out[i] = x;
}

kernel void shuffle_from_outside(FOUR, IDS) {
    out[i] = simd_shuffle(in[i % n], ushort(lane + 1)); // bug: diverged simdgroup
}

// -------------------------------------------------------------------------------------- arithmetic

kernel void conversion_of_a_vector(FOUR, IDS) {
    int4 v = int4(float4(in[i % n]) * 1e20f); // bug: float to int overflow
    out[i] = float(v.x & 1);
}

kernel void clamp_of_a_vector(FOUR, IDS) {
    uint3 v = clamp(uint3(i), uint3(n), uint3(1, 200, 300)); // bug: clamp range
    out[i] = float(v.x) + in[i % n];
}

// ------------------------------------------------------------------- far jumps in private memory

kernel void pointer_jumps_from_one_array_into_another(FOUR, IDS) {
    float first[8], second[8];
    for (uint k = 0; k < 8; k++)
        first[k] = second[k] = in[(i + k) % n];
    thread float *p = i % 2 ? first : second;
    out[i] = p[int(i % 8) - 40] + first[i % 8]; // bug: load outside
    out[i] += second[i % 8];
}

inline void put_far(thread float *p, uint at) {
    p[at] = 1; // bug: store outside
}
kernel void pointer_jumps_out_of_the_frame(FOUR, IDS) {
    float part[8] = {0};
    put_far(part, 3 * n + i);
    out[i] = part[i % 8] + in[i % n];
}
