// here: where a fiber is in its launch, and what the launch has bound.
#pragma once

#include "meet.h"

namespace assay {

// What a parameter that is switched off refers to: readable, because compilers load early.
alignas(64) inline unsigned char no_memory[4096] = {};

struct here {
    const soft_worker *worker;
    soft_u32 index; /* of the thread in its threadgroup */

    METAL_FUNC uint thread() const { return index; }
    METAL_FUNC three position() const {
        const unsigned short *p = worker->thread_position[index];
        return three{p[0], p[1], p[2]};
    }
    METAL_FUNC three grid_position() const {
        const three p = position(), g = group_position(), n = nominal_size();
        return three{g.x * n.x + p.x, g.y * n.y + p.y, g.z * n.z + p.z};
    }
    METAL_FUNC three group_position() const { return read_three(worker->group_position); }
    METAL_FUNC three group_size() const { return read_three(worker->group_threads); }
    METAL_FUNC three nominal_size() const { return read_three(worker->launch->group_nominal); }
    METAL_FUNC three groups() const { return read_three(worker->launch->grid_groups); }
    METAL_FUNC three grid_size() const { return read_three(worker->launch->grid_threads); }

    template <class A> METAL_FUNC A nothing() const { return refer<A>(no_memory); }
    template <class A, int Index> METAL_FUNC A buffer() const {
        return refer<A>(worker->launch->buffer[Index]);
    }
    template <class A, int Index> METAL_FUNC A dynamic() const {
        return refer<A>(worker->dynamic[Index]);
    }
};

} // namespace assay
