// start: the fiber that runs a kernel, and what the compiled file exports.
#pragma once

#include "meet.h"

namespace assay {

// Runs lanes that have not started, one after the other on this stack, until one that returned
// leaves others waiting; then hands over. Never returns: the scheduler abandons the stack.
template <class P, class F> METAL_FUNC void fiber(P p, F kernel) {
    soft_worker *w = soft_here();
    for (;;) {
        soft_simdgroup *g = w->running;
        const soft_u32 lane = g->current;
        const soft_u32 bit = 1u << lane;
        g->fresh &= ~bit;
        call(p, kernel, here{w, g->index * SOFT_LANES + lane});
        g->live &= ~bit;
        const soft_u32 todo = g->todo &= ~bit;
        if (!todo) {
            w->settle(w);
        } else {
            const soft_u32 next = static_cast<soft_u32>(__builtin_ctz(todo));
            if (g->fresh >> next & 1)
                g->current = next;
            else
                yield_to(g, lane, next);
        }
    }
}

} // namespace assay

#if defined(ASSAY_CHECKED)
extern "C" __attribute__((visibility("hidden"))) const soft_table assay_tables[]; // by instrument.c
#define ASSAY_TABLES assay_tables
#else
#define ASSAY_TABLES nullptr
#endif

#define ASSAY_EXPORT                                                                               \
    extern "C" void assay_fiber(void) {                                                            \
        assay::fiber(assay_params(), assay_function);                                              \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) const soft_kernel assay_kernel = {           \
        SOFT_ABI_VERSION, assay_fiber,                                                             \
        assay::sizes<assay_params, decltype(+assay_function)>::count, assay::no_memory,              \
        assay::sizes<assay_params, decltype(+assay_function)>::bytes, ASSAY_TABLES};
#define ASSAY_EXPORT_FOR(threads) ASSAY_EXPORT
