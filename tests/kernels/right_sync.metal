// Right kernels whose threads are ordered by fences and atomics, in chains of any kind; checked mode
// must find nothing in any of them, in whatever order their threads run.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

#define RELEASE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_release, thread_scope_##scope)
#define ACQUIRE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_acquire, thread_scope_##scope)

// ------------------------------------------------------------------------------------------ chains

kernel void simdgroup_barrier_then_release(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    threadgroup float tile[32];
    if (l < 32) {
        tile[lane] = in[i];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 0) {
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst,
                                thread_scope_threadgroup);
            atomic_store_explicit(&flag[g], 1, memory_order_relaxed);
        }
    } else if (atomic_load_explicit(&flag[g], memory_order_relaxed) == 1) {
        ACQUIRE(threadgroup, threadgroup);
        out[i] = tile[31 - lane];
    }
}

kernel void simdgroup_barrier_after_acquire(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    if (l < 32) {
        out[i] = in[i];
        simdgroup_barrier(mem_flags::mem_device);
        if (lane == 31) {
            RELEASE(device, threadgroup);
            atomic_fetch_or_explicit(&flag[g], 2, memory_order_relaxed);
        }
        return;
    }
    uint seen = 0;
    if (lane == 3) {
        seen = atomic_load_explicit(&flag[g], memory_order_relaxed);
        ACQUIRE(device, threadgroup);
    }
    simdgroup_barrier(mem_flags::mem_device);
    if (simd_or(seen))
        out[i] = out[i - 32];
}

// What is loaded before a release may be overwritten after it.
kernel void loads_before_a_release(FOUR, device float *data [[buffer(3)]],
                                   device atomic_uint *flag [[buffer(4)]], IDS) {
    if (l < 32) {
        out[i] = data[g * 64 + (lane ^ 1)];
        simdgroup_barrier(mem_flags::mem_none);
        if (lane == 0) {
            RELEASE(device, threadgroup);
            atomic_store_explicit(&flag[g], 1, memory_order_relaxed);
        }
    } else if (atomic_load_explicit(&flag[g], memory_order_relaxed) == 1) {
        ACQUIRE(device, threadgroup);
        data[g * 64 + lane] = in[i % n];
    }
}

// From lane to simdgroup to threadgroup: each knows what those before it knew.
kernel void chain_of_threadgroups(FOUR, device float *data [[buffer(3)]],
                                  device atomic_uint *word [[buffer(4)]], IDS) {
    data[i % 64 + 64 * (g == 0)] = in[i];
    threadgroup_barrier(mem_flags::mem_device);
    if (l == 40) { // to lane 5 of the other simdgroup
        RELEASE(device, threadgroup);
        atomic_store_explicit(&word[g], 1, memory_order_relaxed);
    }
    if (l == 5) {
        atomic_load_explicit(&word[g], memory_order_relaxed);
        ACQUIRE(device, threadgroup);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    threadgroup uint rank;
    if (l == 63) { // to the other threadgroup, whichever it is
        RELEASE(device, device);
        rank = atomic_fetch_add_explicit(&word[2], 1, memory_order_relaxed);
        ACQUIRE(device, device);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (rank == 1)
        out[i] = data[l] + data[64 + l];
}

// An update in between is part of what was released.
kernel void update_after_a_release(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    threadgroup float tile[64];
    if (l == 0) {
        tile[0] = in[i];
        RELEASE(threadgroup, threadgroup);
        atomic_store_explicit(&word[g], 1, memory_order_relaxed);
    }
    if (l == 1)
        atomic_fetch_add_explicit(&word[g], 2, memory_order_relaxed);
    if (l == 40 && atomic_load_explicit(&word[g], memory_order_relaxed) & 1) {
        ACQUIRE(threadgroup, threadgroup);
        out[i] = tile[0] + n;
    }
}
