// teams: who works on a row together. A kernel written for a team T is instantiated for one thread,
// for a simdgroup and for a threadgroup: the first is the fastest on the software device, where
// lanes that never meet are a plain loop, the last on a GPU.
//
// T::first() and T::step() say which elements of a row a thread takes. sum (and largest, of a
// threadgroup) is over one value per thread and is returned to all of them; successive calls use
// different slots.
#pragma once

#include "threadgroup_sum.h"

struct single_thread {
    uint first() const { return 0; }
    uint step() const { return 1; }
    float sum(float value, uint) const { return value; }
};

struct one_simdgroup {
    uint lane;
    uint first() const { return lane; }
    uint step() const { return 32; }
    float sum(float value, uint) const { return simd_sum(value); }
};

// partial has 32 floats per slot.
struct whole_threadgroup {
    threadgroup float *partial;
    uint thread_index, threads, lane, sg, sg_count;
    uint first() const { return thread_index; }
    uint step() const { return threads; }
    float sum(float value, uint slot) const {
        return threadgroup_sum(value, partial + 32 * slot, lane, sg, sg_count);
    }
    float largest(float value, uint slot) const {
        threadgroup float *p = partial + 32 * slot;
        value = simd_max(value);
        if (lane == 0)
            p[sg] = value;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint s = 0; s < sg_count; s++)
            value = max(value, p[s]);
        return value;
    }
};
