// Wrong kernels whose threads are not ordered by the fences and atomics that they have, or are right
// only in one order of their threads: each has one bug, at a line marked as in wrong.metal.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

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

kernel void not_coherent_for_the_device(FOUR, device float *data [[buffer(3)]],
                                        device atomic_uint *word [[buffer(4)]], IDS) {
    if (l == 0) {
        data[g] = in[i % n];
        RELEASE(device, device);
        if (atomic_fetch_add_explicit(word, 1, memory_order_relaxed) == 1) {
            ACQUIRE(device, device);
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

// ------------------------------------------------------------------------------------ other orders

kernel void room_asked_for_before_it_is_taken(FOUR, device atomic_uint *count [[buffer(4)]], IDS) {
    threadgroup float list[48];
    if (LOAD(&count[g]) < 48)
        list[ADD(&count[g], 1)] = in[i % n]; // bug: store outside
    if (l == 0)
        out[i] = 0;
}

kernel void exchange_of_an_old_value(FOUR, device atomic_uint *count [[buffer(4)]], IDS) {
    uint seen = LOAD(&count[g]);
    for (;;) {
        uint expected = seen;
        if (EXCHANGE(&count[g], &expected, seen + 1)) // bug: endless loop
            break;
    }
    out[i] = in[i % n];
}

// Of two simdgroups that each see the other one's flag unset, both go in.
kernel void flags_that_both_see_unset(FOUR, device atomic_uint *flag [[buffer(4)]], IDS) {
    threadgroup float shared;
    if (lane == 0) {
        if (LOAD(&flag[2 * g + (l == 0)]) == 0) {
            STORE(&flag[2 * g + (l != 0)], 1);
            shared = in[i]; // bug: race in threadgroup
            out[i] = shared + n;
        }
    }
}

kernel void check_without_the_lock(FOUR, device atomic_uint *word [[buffer(4)]], IDS) {
    threadgroup float made;
    if (lane == 0 && LOAD(&word[g]) == 0) { // both simdgroups find that nothing was made
        STORE(&word[g], 1);
        made = in[i % n]; // bug: race in threadgroup
    }
    if (l == 0)
        out[i] = 1;
}

// One counter says where to read, the other how many there are.
kernel void ticket_before_its_value(FOUR, device float *data [[buffer(3)]],
                                    device atomic_uint *word [[buffer(4)]], IDS) {
    threadgroup float queue[64];
    uint at = ADD(&word[g], 1);
    if (l < 32) {
        queue[at] = in[i % n];
    } else if (at >= 32) {
        uint end = LOAD(&word[g]);
        out[i] = float(end) + data[100 * (end - 33 - lane)]; // bug: load outside
    }
}
