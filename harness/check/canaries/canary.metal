// Canaries: one kernel with one planted bug for each class that checked mode claims to find.
//
// Before any kernel is called clean, each of these must be caught at the line marked "bug": an engine
// that is not looking is a failure, not a pass. All are launched in the same way (suite.c): two
// threadgroups of 64 threads over 128 elements; `in` is read-only and filled, `out` is not written.
#include <metal_stdlib>
using namespace metal;

constant bool with_extra [[function_constant(0)]];

#define CANARY                                                                                     \
    device const float *in [[buffer(0)]], device float *out [[buffer(1)]],                         \
        constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]

kernel void canary_load_outside(CANARY) {
    if (i < n)
        out[i] = in[i + 1]; // bug
}

kernel void canary_store_outside(CANARY) {
    if (i < n)
        out[i + 1] = in[i]; // bug
}

kernel void canary_threadgroup_outside(CANARY, uint l [[thread_position_in_threadgroup]]) {
    threadgroup float shared[64];
    shared[l + 1] = in[i % n]; // bug
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = shared[l | 1];
}

kernel void canary_array_index(CANARY) {
    float four[4] = {1, 2, 3, 4};
    four[i % 4] = in[i % n];
    out[i] = four[i % 5]; // bug
}

kernel void canary_array_pointer(CANARY) {
    float four[4] = {1, 2, 3, 4};
    thread float *p = four + i % 4;
    p[1] = in[i % n]; // bug
    out[i] = four[i % 4];
}

constant float table[4] = {1, 2, 3, 4};
kernel void canary_table(CANARY) {
    constant float *p = table + i % 4;
    out[i] = in[i % n] + p[1]; // bug
}

kernel void canary_guard_below(CANARY) {
    float x = in[i + 1]; // bug
    if (i + 1 < n)
        out[i] = x;
}

kernel void canary_other_binding(CANARY, device const float *rest [[buffer(3)]]) {
    out[i] = in[i % n] + rest[i % (n / 2)]; // bug
}

kernel void canary_unbound(CANARY,
                           device const float *extra [[buffer(3), function_constant(with_extra)]]) {
    if (i < n)
        out[i] = in[i] + extra[i]; // bug
}

kernel void canary_unwritten_device(CANARY) {
    if (i < n)
        out[i] += in[i]; // bug
}

kernel void canary_unwritten_threadgroup(CANARY, uint l [[thread_position_in_threadgroup]]) {
    threadgroup float shared[64];
    if (l < 32)
        shared[l] = in[i % n];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = shared[l]; // bug
}

kernel void canary_unwritten_private(CANARY) {
    float sum;
    if (i < n - 1)
        sum = in[i];
    out[i] = sum; // bug
}

struct two_sums {
    float most = -INFINITY;
    float sum;
};
kernel void canary_unset_member(CANARY) {
    two_sums s;
    s.most = max(s.most, in[i % n]);
    out[i] = s.most + s.sum; // bug
}

struct pair_of {
    float value, weight;
};
kernel void canary_unset_stored(CANARY) {
    pair_of p;
    p.value = in[i % n];
    if (i < n / 2)
        ((device pair_of *)out)[i] = p; // bug
}

kernel void canary_race_in_group(CANARY, uint l [[thread_position_in_threadgroup]]) {
    threadgroup float shared[64];
    shared[l] = in[i % n];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = shared[l ^ 32]; // bug
}

kernel void canary_race_of_bytes(CANARY) {
    device uchar *bytes = (device uchar *)out;
    bytes[i / 2] = uchar(in[i % n] * 4); // bug
}

kernel void canary_race_with_atomic(CANARY,
                                    uint l [[thread_position_in_threadgroup]],
                                    uint g [[threadgroup_position_in_grid]]) {
    device atomic_uint *count = (device atomic_uint *)out + g;
    if (l == 0)
        *(device uint *)count = n; // bug
    atomic_fetch_add_explicit(count, uint(in[i % n]), memory_order_relaxed); // bug
}

#if __METAL_VERSION__ >= 320
kernel void canary_fence_alone(CANARY) {
    out[i] = in[i % n];
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    if (i % 64 == 63)
        out[i] += out[i - 1]; // bug
}
#endif

kernel void canary_same_store(CANARY) {
    out[0] = in[n - 1]; // bug
}

kernel void canary_race_of_groups(CANARY) {
    out[(i * 2) % n] = in[i % n]; // bug
}

kernel void canary_read_only(CANARY) {
    if (i < n) {
        out[i] = in[i];
        ((device float *)in)[i] = 0; // bug
    }
}

kernel void canary_misaligned(CANARY) {
    const float4 four = *(device const float4 *)(in + min(i, n - 8) / 8 * 8 + 2); // bug
    out[i] = four.x + four.w;
}

kernel void canary_barrier(CANARY, uint l [[thread_position_in_threadgroup]]) {
    if (l >= 40)
        return; // bug
    out[i] = in[i % n];
    threadgroup_barrier(mem_flags::mem_device);
}

kernel void canary_other_barrier(CANARY, uint l [[thread_position_in_threadgroup]]) {
    if (l < 32)
        threadgroup_barrier(mem_flags::mem_device); // bug
    else
        threadgroup_barrier(mem_flags::mem_device); // bug
    out[i] = in[i % n];
}

kernel void canary_branch_barrier(CANARY, uint l [[thread_position_in_threadgroup]]) {
    threadgroup float shared[64];
    shared[l] = in[i % n];
    if (l % 2 == 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup); // bug
        shared[l] += 1;
    }
    out[i] = shared[l];
}

kernel void canary_diverged(CANARY, uint lane [[thread_index_in_simdgroup]]) {
    float x = in[i % n];
    if (lane < 16)
        x = simd_shuffle_xor(x, 16); // bug
    out[i] = x;
}

kernel void canary_broadcast(CANARY, uint lane [[thread_index_in_simdgroup]]) {
    out[i] = simd_broadcast(in[i % n], ushort(lane / 2)); // bug
}

kernel void canary_matrix(CANARY, uint lane [[thread_index_in_simdgroup]]) {
    simdgroup_float8x8 a;
    if (lane < 31)
        simdgroup_load(a, in, 8); // bug
    out[i] = lane < 31 ? a.thread_elements()[0] : float(n);
}

kernel void canary_divide(CANARY) {
    out[i] = in[i % n] + float(i / (n - 128)); // bug
}

kernel void canary_shift(CANARY) {
    out[i] = in[i % n] + float(i << n); // bug
}

kernel void canary_convert(CANARY) {
    out[i] = float(int((in[i % n] + 2) * 1e20f)); // bug
}

kernel void canary_endless(CANARY) {
    uint k = i | 1;
    while (k != n) // bug: an odd number never meets an even one
        k += 2; // bug
    out[i] = in[i % n];
}

kernel void canary_overflow(CANARY) {
    out[i] = in[i % n] + float(int(n + i) * 100000000); // bug
}

kernel void canary_least_by_minus_one(CANARY) {
    out[i] = in[i % n] + float((-2147483647 - int(n / 128)) / (int(n) - 129)); // bug
}

kernel void canary_clamp(CANARY) {
    out[i] = clamp(in[i % n], float(n), 2.0f); // bug
}

static float canary_no_return_of(float x, uint i) {
    if (i % 2 == 0) // bug: the other half
        return x;
} // bug

kernel void canary_no_return(CANARY) {
    out[i] = canary_no_return_of(in[i % n], i);
}

kernel void canary_lock(device const float *in [[buffer(0)]], device atomic_uint *out [[buffer(1)]],
                        constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    atomic_store_explicit(&out[i], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_device);
    while (atomic_exchange_explicit(&out[i / 64], 1, memory_order_relaxed)) { // bug
    }
    atomic_store_explicit(&out[i / 64], 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&out[i], uint(in[i % n]) % n, memory_order_relaxed);
}

kernel void canary_fast_math(CANARY) {
    const float x = as_type<float>(as_type<uint>(in[i % n]) | (i % 4 == 3 ? 0x7FC00000u : 0u));
    out[i] = isnan(x) ? 0.0f : x; // bug: fast math takes it that nothing is NaN
}

kernel void canary_nan(CANARY) {
    const float zero = in[i % n] - in[i % n];
    const float y = zero / zero; // bug, where values are traced
    out[i] = y;
}
