// Right kernels whose threads work together: reductions, simd functions, tiles, barriers, atomics.
// They are of the kinds that are easily accused; checked mode must find nothing in any of them.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

// ---------------------------------------------------------------------------- reductions and scans

kernel void tree_reduction(FOUR, IDS) {
    threadgroup float tree[64];
    tree[l] = in[i % n];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 32; step > 0; step /= 2) {
        if (l < step)
            tree[l] += tree[l + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[i] = tree[0];
}

kernel void scan_in_two_buffers(FOUR, IDS) {
    threadgroup float a[2][64];
    a[0][l] = in[i % n];
    uint from = 0;
    for (uint step = 1; step < 64; step *= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        a[1 - from][l] = l >= step ? a[from][l] + a[from][l - step] : a[from][l];
        from = 1 - from;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = a[from][63 - l];
}

kernel void simdgroup_by_simdgroup(FOUR, IDS) {
    threadgroup float tile[64];
    const uint first = l - lane;
    for (uint round = 0; round < 3; round++) {
        tile[l] = in[(i + round) % n];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        float x = tile[first + (lane ^ 5)];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        tile[l] = x;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = tile[first + 31 - lane];
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

kernel void readers_of_two_moments(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float x = lane == 0 ? tile[l + 1] : 0;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 1) {
        x = tile[l];
        tile[l] = x + 1;
    }
    out[i] = x;
}

kernel void online_softmax(FOUR, IDS) {
    float m = -INFINITY, l2, sum = 0;
    l2 = 0;
    for (uint k = lane; k < n; k += 32) {
        float x = in[k], m2 = max(m, x);
        l2 = l2 * exp(m - m2) + exp(x - m2);
        m = m2;
    }
    const float top = simd_max(m);
    sum = simd_sum(l2 * exp(m - top));
    out[i] = exp(in[i % n] - top) / sum;
}

// ---------------------------------------------------------------------------------- simd functions

kernel void shuffle_in_a_uniform_branch(FOUR, IDS) {
    float x = in[i % n];
    if (l < 32)
        x = simd_shuffle_xor(x, 1);
    else
        x = simd_broadcast(x, 31);
    out[i] = x;
}

kernel void shuffle_among_the_active(FOUR, IDS) {
    float x = in[i % n];
    if (lane < 16)
        x = simd_shuffle_xor(x, 8) + simd_broadcast(x, 3);
    if (lane < 8)
        x += quad_broadcast(x, 1) + quad_max(x);
    out[i] = x;
}

kernel void fill_of_a_partial_simdgroup(FOUR, IDS) {
    float x = in[i % n];
    if (lane < 20)
        x = simd_shuffle_and_fill_up(x, 1.0f, 4, 4);
    out[i] = x;
}

// ------------------------------------------------------------------------------ tiles and barriers

kernel void double_buffered_tiles(FOUR, IDS) {
    threadgroup float tile[2][64];
    float sum = 0;
    tile[0][l] = in[l];
    for (uint k = 0; k < 4; k++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (k < 3)
            tile[(k + 1) % 2][l] = in[(l + k) % n];
        sum += tile[k % 2][63 - l];
    }
    out[i] = sum;
}

kernel void barrier_in_a_uniform_branch(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    if (g == 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = tile[63 - l];
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        out[i] = tile[l ^ 1];
    }
}

inline void meet_here() {
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
kernel void barriers_through_a_helper(FOUR, IDS) {
    threadgroup float tile[64];
    for (uint k = 0; k < 3; k++) {
        tile[l] = in[(i + k) % n];
        meet_here();
        float x = tile[63 - l];
        meet_here();
        if (k == 2)
            out[i] = x;
    }
    if (g == 1)
        meet_here();
}

kernel void barrier_for_execution_only(FOUR, IDS) {
    float x = in[i % n];
    threadgroup_barrier(mem_flags::mem_none);
    out[i] = x;
    simdgroup_barrier(mem_flags::mem_none);
}

// What was loaded before a barrier may be overwritten after it, whatever the barrier orders.
kernel void overwritten_after_a_barrier_of_none(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float x = tile[63 - l];
    threadgroup_barrier(mem_flags::mem_none);
    tile[l] = x * 2;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[l ^ 1];
}

kernel void fence_and_a_barrier_of_none(FOUR, IDS) {
    threadgroup float tile[64];
    tile[l] = in[i % n];
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst,
                        thread_scope_threadgroup);
    threadgroup_barrier(mem_flags::mem_none);
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst,
                        thread_scope_threadgroup);
    out[i] = tile[63 - l];
}

kernel void return_of_whole_threadgroups(FOUR, IDS) {
    if (g == 1)
        return;
    threadgroup float tile[64];
    tile[l] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[63 - l];
}

// ----------------------------------------------------------------------------------------- atomics

// The last threadgroup adds up what the others left, told by a counter and fences.
kernel void last_threadgroup_done(FOUR, device atomic_uint *count [[buffer(4)]],
                                  coherent(device) device float *part [[buffer(3)]], IDS) {
    threadgroup uint is_last;
    float x = simd_sum(in[i]);
    if (lane == 0)
        part[i / 32] = x;
    threadgroup_barrier(mem_flags::mem_device);
    if (l == 0) {
        atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_device);
        is_last = atomic_fetch_add_explicit(count, 1, memory_order_relaxed) == n / 64 - 1;
        atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_device);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    if (is_last && l == 0)
        out[0] = part[0] + part[1] + part[2] + part[3];
}

kernel void last_thread_done(FOUR, IDS) {
    threadgroup float part[64];
    threadgroup atomic_uint count;
    if (l == 0)
        atomic_store_explicit(&count, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    part[l] = in[i];
    RELEASE(threadgroup, threadgroup);
    if (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) == 63) {
        ACQUIRE(threadgroup, threadgroup);
        float sum = 0;
        for (uint k = 0; k < 64; k++)
            sum += part[k];
        out[g] = sum;
    }
}

kernel void plain_after_atomic(device atomic_uint *words [[buffer(4)]], FOUR, IDS) {
    atomic_fetch_max_explicit(&words[g * 64 + l / 2], i, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_device);
    device uint *plain = (device uint *)words;
    out[i] = float(plain[g * 64 + l / 2]) + in[i % n];
    threadgroup_barrier(mem_flags::mem_device);
    if (l % 2 == 0)
        plain[g * 64 + l / 2] = 0;
}

// ------------------------------------------------------------------------------------------ locks

void take(device atomic_uint *lock) {
    while (atomic_exchange_explicit(lock, 1u, memory_order_relaxed)) {
    }
}
void give_back(device atomic_uint *lock) {
    atomic_store_explicit(lock, 0u, memory_order_relaxed);
}

kernel void lock_of_one_lane(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    if (simd_is_first()) {
        take(lock);
        out[i] = in[i % n];
        give_back(lock);
    }
}

kernel void lock_of_each_lane(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    take(lock + i);
    out[i] = in[i % n];
    give_back(lock + i);
}

kernel void lock_given_back_in_the_loop(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    for (bool is_done = false; !is_done;) {
        uint free = 0;
        if (atomic_compare_exchange_weak_explicit(lock, &free, 1u, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            out[i] = in[i % n];
            atomic_store_explicit(lock, 0u, memory_order_relaxed);
            is_done = true;
        }
    }
}

kernel void lock_in_turn(FOUR, device atomic_uint *lock [[buffer(4)]], IDS) {
    for (uint k = 0; k < 32; k++)
        if (lane == k) {
            while (atomic_exchange_explicit(lock, 1u, memory_order_relaxed) == 1) {
            }
            out[i] = in[i % n];
            atomic_store_explicit(lock, 0u, memory_order_relaxed);
        }
}

kernel void released_many_times(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    if (l == 0)
        for (uint k = 0; k < 100; k++) {
            out[i] = in[i % n] + float(k);
            RELEASE(device, device);
            atomic_store_explicit(&flag[g], k, memory_order_relaxed);
        }
    if (l == 32 && atomic_load_explicit(&flag[g], memory_order_relaxed) == 99) {
        ACQUIRE(device, device);
        out[i] = out[i - 32];
    }
}
