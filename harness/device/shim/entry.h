// entry: how a fiber becomes a call of the kernel.
//
// Only the kinds of the parameters come from the .metal text; their types are deduced from the
// function pointer, so templates and typedefs need no text substitution.
#pragma once

#include "meet.h"
#include "types.h"
#include "vec.h"

namespace assay {

enum kind {
    kind_off, // a parameter that its function constant switched off
    kind_buffer,
    kind_threadgroup,
    kind_thread_position_in_grid,
    kind_thread_position_in_threadgroup,
    kind_threadgroup_position_in_grid,
    kind_threads_per_threadgroup,
    kind_dispatch_threads_per_threadgroup,
    kind_threadgroups_per_grid,
    kind_threads_per_grid,
    kind_thread_index_in_threadgroup,
    kind_simdgroup_index_in_threadgroup,
    kind_thread_index_in_simdgroup,
    kind_threads_per_simdgroup,
    kind_simdgroups_per_threadgroup,
    kind_dispatch_simdgroups_per_threadgroup,
    kind_thread_index_in_quadgroup,
    kind_quadgroup_index_in_threadgroup,
    kind_quadgroups_per_threadgroup,
    kind_grid_origin,
    kind_grid_size,
};

template <int Kind, int Index> struct param {};
template <class... P> struct params {};

// What an unbound (switched off) parameter refers to: readable, because compilers load early.
alignas(64) inline unsigned char nothing[4096] = {};

template <class A> struct position {
    static METAL_FUNC A from(soft_u32 x, soft_u32, soft_u32) { return static_cast<A>(x); }
};
template <class T> struct position<metal::vec<T, 2>> {
    static METAL_FUNC metal::vec<T, 2> from(soft_u32 x, soft_u32 y, soft_u32) {
        return metal::vec<T, 2>(static_cast<T>(x), static_cast<T>(y));
    }
};
template <class T> struct position<metal::vec<T, 3>> {
    static METAL_FUNC metal::vec<T, 3> from(soft_u32 x, soft_u32 y, soft_u32 z) {
        return metal::vec<T, 3>(static_cast<T>(x), static_cast<T>(y), static_cast<T>(z));
    }
};

template <class A> METAL_FUNC A from_three(const soft_u32 *v) {
    return position<A>::from(v[0], v[1], v[2]);
}

// One argument of the kernel. A is the parameter's type: a pointer, a reference, or a position.
template <class A, int Kind, int Index> struct argument {
    using V = metal::remove_cv_t<metal::remove_reference_t<A>>;

    static METAL_FUNC A memory(void *at) {
        if constexpr (metal::is_pointer_v<V>)
            return static_cast<A>(at);
        else
            return *static_cast<metal::remove_reference_t<A> *>(at);
    }

    static METAL_FUNC V place(const soft_worker *w, soft_u32 thread) {
        const soft_launch *l = w->launch;
        constexpr soft_u32 zero[3] = {0, 0, 0};
        if constexpr (Kind == kind_thread_position_in_grid) {
            const unsigned short *p = w->thread_position[thread];
            const soft_u32 *g = w->group_position, *n = l->group_nominal;
            return position<V>::from(g[0] * n[0] + p[0], g[1] * n[1] + p[1], g[2] * n[2] + p[2]);
        } else if constexpr (Kind == kind_thread_position_in_threadgroup) {
            const unsigned short *p = w->thread_position[thread];
            return position<V>::from(p[0], p[1], p[2]);
        } else if constexpr (Kind == kind_threadgroup_position_in_grid) {
            return from_three<V>(w->group_position);
        } else if constexpr (Kind == kind_threads_per_threadgroup) {
            return from_three<V>(w->group_threads);
        } else if constexpr (Kind == kind_dispatch_threads_per_threadgroup) {
            return from_three<V>(l->group_nominal);
        } else if constexpr (Kind == kind_threadgroups_per_grid) {
            return from_three<V>(l->grid_groups);
        } else if constexpr (Kind == kind_threads_per_grid || Kind == kind_grid_size) {
            return from_three<V>(l->grid_threads);
        } else if constexpr (Kind == kind_grid_origin) {
            return from_three<V>(zero);
        } else {
            return static_cast<V>(number(w, thread));
        }
    }

    static METAL_FUNC soft_u32 number(const soft_worker *w, soft_u32 thread) {
        const soft_u32 *n = w->launch->group_nominal;
        switch (Kind) {
        case kind_thread_index_in_threadgroup:
            return thread;
        case kind_simdgroup_index_in_threadgroup:
            return thread / SOFT_LANES;
        case kind_thread_index_in_simdgroup:
            return thread % SOFT_LANES;
        case kind_threads_per_simdgroup:
            return SOFT_LANES;
        case kind_simdgroups_per_threadgroup:
            return (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
        case kind_dispatch_simdgroups_per_threadgroup:
            return (n[0] * n[1] * n[2] + SOFT_LANES - 1) / SOFT_LANES;
        case kind_thread_index_in_quadgroup:
            return thread % 4;
        case kind_quadgroup_index_in_threadgroup:
            return thread / 4;
        case kind_quadgroups_per_threadgroup:
            return (w->group_total + 3) / 4;
        default:
            return 0;
        }
    }

    static METAL_FUNC A get(const soft_worker *w, soft_u32 thread) {
        if constexpr (Kind == kind_off)
            return memory(nothing);
        else if constexpr (Kind == kind_buffer)
            return memory(w->launch->buffer[Index]);
        else if constexpr (Kind == kind_threadgroup)
            return memory(w->dynamic[Index]);
        else
            return place(w, thread);
    }

    static constexpr soft_u32 value_bytes() {
        if constexpr (Kind != kind_buffer && Kind != kind_threadgroup)
            return 0;
        else if constexpr (metal::is_pointer_v<V> &&
                           metal::is_void_v<metal::remove_cv_t<metal::remove_pointer_t<V>>>)
            return 1; // device void *: bytes
        else if constexpr (metal::is_pointer_v<V>)
            return sizeof(metal::remove_pointer_t<V>);
        else
            return sizeof(V);
    }
};

template <int... Kind, int... Index, class... A> METAL_FUNC void
call(params<param<Kind, Index>...>, void (*kernel)(A...), const soft_worker *w, soft_u32 thread) {
    static_assert(sizeof...(Kind) == sizeof...(A),
                  "parameters found in the text and in the function differ");
    kernel(argument<A, Kind, Index>::get(w, thread)...);
}

template <class P, class F> struct sizes;
template <int... Kind, int... Index, class... A>
struct sizes<params<param<Kind, Index>...>, void (*)(A...)> {
    static constexpr soft_u32 count = sizeof...(A);
    static constexpr soft_u32 bytes[sizeof...(A) + 1] = {argument<A, Kind, Index>::value_bytes()...,
                                                         0};
};

// Runs lanes that have not started, one after the other on this stack, until one that returned
// leaves others waiting; then hands over. Never returns: the scheduler abandons the stack.
template <class P, class F> METAL_FUNC void fiber(P p, F kernel) {
    soft_worker *w = soft_here();
    for (;;) {
        soft_simdgroup *g = w->running;
        const soft_u32 lane = g->current;
        const soft_u32 bit = 1u << lane;
        g->fresh &= ~bit;
        call(p, kernel, w, g->index * SOFT_LANES + lane);
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

#define ASSAY_EXPORT                                                                               \
    extern "C" void assay_fiber(void) {                                                            \
        assay::fiber(assay_params(), assay_function);                                              \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) const soft_kernel assay_kernel = {           \
        SOFT_ABI_VERSION, assay_fiber,                                                             \
        assay::sizes<assay_params, decltype(+assay_function)>::count, assay::nothing,              \
        assay::sizes<assay_params, decltype(+assay_function)>::bytes};
