// Right kernels whose threads are ordered by fences and atomics, in chains of any kind; checked mode
// must find nothing in any of them, in whatever order their threads run.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

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
kernel void chain_of_threadgroups(FOUR, coherent(device) device float *data [[buffer(3)]],
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

// ------------------------------------------------------------------------------------ other orders

kernel void room_taken_and_then_asked_for(FOUR, device atomic_uint *count [[buffer(4)]], IDS) {
    threadgroup float list[48];
    uint at = ADD(&count[g], 1);
    if (at < 48)
        list[at] = in[i % n];
    out[i] = float(at);
}

kernel void exchange_of_the_value_seen(FOUR, device atomic_uint *count [[buffer(4)]], IDS) {
    uint seen = LOAD(&count[g]);
    while (!EXCHANGE(&count[g], &seen, seen * 2 + 1)) {
    }
    out[i] = in[i % n];
}

kernel void atomic_float_sums(FOUR, device atomic_float *sum [[buffer(4)]], IDS) {
    atomic_fetch_add_explicit(&sum[l % 3], in[i], memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_device);
    out[i] = simd_sum(float(n));
}

// A ticket lock of simdgroups: each waits for its number to be called.
kernel void ticket_lock(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    threadgroup float total;
    if (l == 0)
        total = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) {
        uint mine = ADD(&word[2 * g], 1);
        while (LOAD(&word[2 * g + 1]) != mine) {
        }
        ACQUIRE(threadgroup, threadgroup);
        total += in[i];
        RELEASE(threadgroup, threadgroup);
        STORE(&word[2 * g + 1], mine + 1);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = total;
}

// A threadgroup waits for the one before it.
kernel void waits_for_the_threadgroup_before(FOUR,
                                             coherent(device) device float *data [[buffer(3)]],
                                             device atomic_uint *done [[buffer(4)]], IDS) {
    if (l == 0) {
        float sum = in[i];
        if (g > 0) {
            while (LOAD(&done[g - 1]) == 0) {
            }
            ACQUIRE(device, device);
            sum += data[g - 1];
        }
        data[g] = sum;
        RELEASE(device, device);
        STORE(&done[g], 1);
        out[g] = sum;
    }
}

// Double-checked: the flag is asked for again by whoever has the lock.
kernel void checked_with_the_lock(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    threadgroup float made;
    if (lane == 0) {
        bool is_made = LOAD(&word[2 * g]) == 1;
        ACQUIRE(threadgroup, threadgroup);
        for (bool is_done = is_made; !is_done;) {
            uint free = 0;
            if (!EXCHANGE(&word[2 * g + 1], &free, 1u))
                continue;
            ACQUIRE(threadgroup, threadgroup);
            if (LOAD(&word[2 * g]) == 0) {
                made = in[i % n];
                RELEASE(threadgroup, threadgroup);
                STORE(&word[2 * g], 1);
            }
            RELEASE(threadgroup, threadgroup);
            STORE(&word[2 * g + 1], 0u);
            is_done = true;
        }
        out[i] = made;
    }
}

// A sequence lock of two words, which its reader tries again until both are of one writer.
kernel void sequence_lock(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    device atomic_uint *at = word + 4 * g;
    if (l == 0)
        for (uint k = 1; k < 5; k++) {
            ADD(at, 1);
            atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
            STORE(at + 1, k);
            STORE(at + 2, 2 * k);
            atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
            ADD(at, 1);
        }
    if (l == 32) {
        uint before, first, second;
        do {
            before = LOAD(at);
            atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
            first = LOAD(at + 1);
            second = LOAD(at + 2);
            atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
        } while (before % 2 || LOAD(at) != before);
        out[i] = in[second == 2 * first ? i : 100000]; // never: else an access outside tells
    }
}

// Values that lanes exchange must survive what other simdgroups do meanwhile.
kernel void sums_beside_atomics(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    uint wrong = 0;
    for (uint k = 0; k < 4; k++) {
        uint sum = simd_sum(l);
        if (lane % 2)
            ADD(&word[g], sum);
        wrong += simd_max(sum) != (l < 32 ? 496u : 1520u);
        ADD(&word[2 + lane], k);
        wrong += simd_shuffle_xor(l, 1) != (l ^ 1);
    }
    threadgroup_barrier(mem_flags::mem_none);
    out[i] = in[wrong ? 100000 : i];
}
