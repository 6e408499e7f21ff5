// Wrong kernels whose threads are not ordered by the fences and atomics that they have, or are right
// only in one order of their threads: each has one bug, at a line marked as in wrong.metal.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

#define RELEASE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_release, thread_scope_##scope)
#define ACQUIRE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_acquire, thread_scope_##scope)

// ------------------------------------------------------------------------------------------ chains

kernel void simdgroup_barrier_of_none_then_release(FOUR, device atomic_uint *flag [[buffer(4)]],
                                                   IDS) {
    threadgroup float tile[32];
    if (l < 32) {
        tile[lane] = in[i];
        simdgroup_barrier(mem_flags::mem_device);
        if (lane == 0) {
            RELEASE(device, threadgroup);
            atomic_store_explicit(&flag[g], 1, memory_order_relaxed);
        }
    } else if (atomic_load_explicit(&flag[g], memory_order_relaxed) == 1) {
        ACQUIRE(threadgroup, threadgroup);
        out[i] = tile[31 - lane]; // bug: race in threadgroup
    }
}

kernel void acquired_by_another_lane(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    if (l == 0) {
        out[i] = in[i];
        RELEASE(device, device);
        atomic_store_explicit(&flag[g], 1, memory_order_relaxed);
    }
    if (l == 33 && atomic_load_explicit(&flag[g], memory_order_relaxed) == 1)
        ACQUIRE(device, device);
    if (l == 34)
        out[i] = out[i - 34] + n; // bug: race in threadgroup, unwritten memory
}

kernel void acquire_of_a_threadgroup(FOUR, device float *data [[buffer(3)]],
                                     device atomic_uint *word [[buffer(4)]], IDS) {
    if (l == 0) {
        data[g] = in[i % n];
        RELEASE(device, device);
        if (atomic_fetch_add_explicit(word, 1, memory_order_relaxed) == 1) {
            ACQUIRE(device, threadgroup);
            out[0] = data[0] + data[1]; // bug: race of threadgroups
        }
    }
}

// Whoever reads the flag knows only of the one that stored it last.
kernel void release_that_is_overwritten(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    threadgroup float tile[2];
    if (l < 2) {
        tile[l] = in[i % n];
        RELEASE(threadgroup, threadgroup);
        atomic_store_explicit(&flag[g], 1, memory_order_relaxed);
    }
    if (l == 40 && atomic_load_explicit(&flag[g], memory_order_relaxed) == 1) {
        ACQUIRE(threadgroup, threadgroup);
        out[i] = tile[0] + tile[1]; // bug: race in threadgroup
    }
}
