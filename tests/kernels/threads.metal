// Grids, threadgroups, barriers, threadgroup memory, atomics.
#include <metal_stdlib>
using namespace metal;

struct place {
    uint grid[3], local[3], group[3], size[3], nominal[3], groups[3], threads[3];
    uint index, simd, lane, simds;
};

kernel void places_3d(device place *out [[buffer(0)]], uint3 g [[thread_position_in_grid]],
                      uint3 l [[thread_position_in_threadgroup]],
                      uint3 t [[threadgroup_position_in_grid]],
                      uint3 n [[threads_per_threadgroup]],
                      uint3 d [[dispatch_threads_per_threadgroup]],
                      uint3 m [[threadgroups_per_grid]], uint3 a [[threads_per_grid]],
                      uint i [[thread_index_in_threadgroup]],
                      uint s [[simdgroup_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint simds [[simdgroups_per_threadgroup]]) {
    device place &p = out[(g.z * a.y + g.y) * a.x + g.x];
    for (uint k = 0; k < 3; k++) {
        p.grid[k] = g[k];
        p.local[k] = l[k];
        p.group[k] = t[k];
        p.size[k] = n[k];
        p.nominal[k] = d[k];
        p.groups[k] = m[k];
        p.threads[k] = a[k];
    }
    p.index = i;
    p.simd = s;
    p.lane = lane;
    p.simds = simds;
}

kernel void places_2d(device ushort4 *out [[buffer(0)]], ushort2 g [[thread_position_in_grid]],
                      ushort2 l [[thread_position_in_threadgroup]],
                      ushort2 a [[threads_per_grid]]) {
    out[g.y * a.x + g.x] = ushort4(g, l);
}

kernel void places_1d(device uint *out [[buffer(0)]], uint g [[thread_position_in_grid]]) {
    out[g] = g * 3 + 1;
}

// More threadgroups along y than some GPUs count there.
kernel void places_tall(device uint *out [[buffer(0)]], uint2 g [[threadgroup_position_in_grid]],
                        uint2 n [[threadgroups_per_grid]]) {
    out[g.y * n.x + g.x] = g.y * 3 + g.x;
}

// Reverses each threadgroup's part through threadgroup memory.
kernel void reverse_group(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                          uint g [[thread_position_in_grid]],
                          uint l [[thread_position_in_threadgroup]],
                          uint n [[threads_per_threadgroup]]) {
    threadgroup float shared[1024];
    shared[l] = in[g];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[g] = shared[n - 1 - l];
}

// A tree sum with a barrier in a loop, in memory whose size the launch gives.
kernel void tree_sum(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                     threadgroup float *shared [[threadgroup(0)]],
                     uint g [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],
                     uint t [[threadgroup_position_in_grid]],
                     uint n [[threads_per_threadgroup]]) {
    shared[l] = in[g];
    for (uint half_way = n / 2; half_way > 0; half_way /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (l < half_way)
            shared[l] += shared[l + half_way];
    }
    if (l == 0)
        out[t] = shared[0];
}

// Simdgroup sums, then the sum of those: barriers and simdgroup calls in one kernel, scalars and
// arrays in threadgroup memory.
kernel void two_level_sum(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                          uint g [[thread_position_in_grid]],
                          uint t [[threadgroup_position_in_grid]],
                          uint sg [[simdgroup_index_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simds [[simdgroups_per_threadgroup]]) {
    threadgroup float part[32];
    threadgroup float total;
    const float s = simd_sum(in[g]);
    if (lane == 0)
        part[sg] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) {
        const float all = simd_sum(lane < simds ? part[lane] : 0.0f);
        if (lane == 0)
            total = all;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[g] = total;
    if (t == 0xFFFFFFFF)
        out[0] = 0;
}

// Threads that have nothing to do leave before the others meet.
kernel void early_return(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &n [[buffer(2)]], uint g [[thread_position_in_grid]]) {
    if (g >= n)
        return;
    out[g] = simd_sum(in[g]);
}

// Memory that the threadgroup did not write is not what the last one left there.
kernel void stale_threadgroup(device float *out [[buffer(0)]],
                              uint t [[threadgroup_position_in_grid]]) {
    threadgroup float cell;
    if (t == 0)
        cell = 1;
    out[t] = cell;
}

kernel void histogram(device const uint *in [[buffer(0)]], device atomic_uint *bins [[buffer(1)]],
                      constant uint &n [[buffer(2)]], uint g [[thread_position_in_grid]],
                      uint l [[thread_index_in_threadgroup]],
                      uint size [[threads_per_threadgroup]]) {
    threadgroup atomic_uint local[16];
    if (l < 16)
        atomic_store_explicit(&local[l], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (g < n)
        atomic_fetch_add_explicit(&local[in[g] % 16], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = l; i < 16; i += size)
        atomic_fetch_add_explicit(&bins[i], atomic_load_explicit(&local[i], memory_order_relaxed),
                                  memory_order_relaxed);
}

kernel void atomics(device const int *in [[buffer(0)]], device atomic_int *result [[buffer(1)]],
                    device atomic_uint *bits [[buffer(2)]], device atomic_float *sum [[buffer(3)]],
                    uint g [[thread_position_in_grid]]) {
    const int x = in[g];
    atomic_fetch_min_explicit(&result[0], x, memory_order_relaxed);
    atomic_fetch_max_explicit(&result[1], x, memory_order_relaxed);
    atomic_fetch_sub_explicit(&result[2], 1, memory_order_relaxed);
    int seen = atomic_load_explicit(&result[3], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&result[3], &seen, seen + x,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    atomic_exchange_explicit(&result[4], 7, memory_order_relaxed);
    atomic_fetch_or_explicit(&bits[0], 1u << (g % 32), memory_order_relaxed);
    atomic_fetch_and_explicit(&bits[1], ~(1u << (g % 32)), memory_order_relaxed);
    atomic_fetch_xor_explicit(&bits[2], uint(x), memory_order_relaxed);
    atomic_fetch_add_explicit(&sum[0], 0.5f, memory_order_relaxed);
}
