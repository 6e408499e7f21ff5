// entry: how a GPU thread becomes a call of the kernel.
//
// Only the kinds of the parameters come from the .metal text; their types are deduced from the
// function pointer, so templates and typedefs need no text substitution. Where a thread is and what
// is bound comes from the target: `here` of here.h, and start.h makes the entry.
#pragma once

#include "../msl/limits.h"
#include "types.h"
#include "vec.h"

namespace assay {

enum kind {
    kind_off, // a parameter that its function constant switched off
#define ASSAY_KIND(NAME, attribute) kind_##attribute,
    MSL_KINDS(ASSAY_KIND)
#undef ASSAY_KIND
};

template <int Kind, int Index> struct param {};
template <class... P> struct params {};

struct three {
    uint x, y, z;
    METAL_FUNC uint product() const { return x * y * z; }
};
template <class A> METAL_FUNC A from_three(three v) {
    if constexpr (count_of<A>::value == 3)
        return A(v.x, v.y, v.z);
    else if constexpr (count_of<A>::value == 2)
        return A(v.x, v.y);
    else
        return static_cast<A>(v.x);
}

METAL_FUNC three read_three(const uint *v) {
    return three{v[0], v[1], v[2]};
}

// What is at an address, as a parameter of type A.
template <class A> METAL_FUNC A refer(void *at) {
    if constexpr (metal::is_pointer_v<A>)
        return static_cast<A>(at);
    else
        return *static_cast<metal::remove_reference_t<A> *>(at);
}

METAL_FUNC uint round_up_by(uint threads, uint width) {
    return (threads + width - 1) / width;
}

} // namespace assay

#include "here.h"

namespace assay {

// One argument of the kernel. A is the parameter's type: a pointer, a reference, or a position.
template <class A, int Kind, int Index> struct argument {
    using V = metal::remove_cv_t<metal::remove_reference_t<A>>;

    static METAL_FUNC V place(const here &h) {
        if constexpr (Kind == kind_thread_position_in_grid)
            return from_three<V>(h.grid_position());
        else if constexpr (Kind == kind_thread_position_in_threadgroup)
            return from_three<V>(h.position());
        else if constexpr (Kind == kind_threadgroup_position_in_grid)
            return from_three<V>(h.group_position());
        else if constexpr (Kind == kind_threads_per_threadgroup)
            return from_three<V>(h.group_size());
        else if constexpr (Kind == kind_dispatch_threads_per_threadgroup)
            return from_three<V>(h.nominal_size());
        else if constexpr (Kind == kind_threadgroups_per_grid)
            return from_three<V>(h.groups());
        else if constexpr (Kind == kind_threads_per_grid || Kind == kind_grid_size)
            return from_three<V>(h.grid_size());
        else if constexpr (Kind == kind_grid_origin)
            return from_three<V>(three{0, 0, 0});
        else
            return static_cast<V>(number(h));
    }

    static METAL_FUNC uint number(const here &h) {
        constexpr uint simd = MSL_LANES, quad = 4;
        return Kind == kind_thread_index_in_threadgroup      ? h.thread()
               : Kind == kind_simdgroup_index_in_threadgroup ? h.thread() / simd
               : Kind == kind_thread_index_in_simdgroup      ? h.thread() % simd
               : Kind == kind_threads_per_simdgroup          ? simd
               : Kind == kind_simdgroups_per_threadgroup
                   ? round_up_by(h.group_size().product(), simd)
               : Kind == kind_dispatch_simdgroups_per_threadgroup
                   ? round_up_by(h.nominal_size().product(), simd)
               : Kind == kind_thread_index_in_quadgroup      ? h.thread() % quad
               : Kind == kind_quadgroup_index_in_threadgroup ? h.thread() / quad
               : Kind == kind_quadgroups_per_threadgroup
                   ? round_up_by(h.group_size().product(), quad)
                   : 0;
    }

    static METAL_FUNC decltype(auto) get(const here &h) {
        if constexpr (Kind == kind_off)
            return h.template nothing<A>();
        else if constexpr (Kind == kind_buffer)
            return h.template buffer<A, Index>();
        else if constexpr (Kind == kind_threadgroup)
            return h.template dynamic<A, Index>();
        else
            return place(h);
    }

    static constexpr uint value_bytes() {
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

template <int... Kind, int... Index, class... A>
METAL_FUNC void call(params<param<Kind, Index>...>, void (*kernel)(A...), const here &h) {
    static_assert(sizeof...(Kind) == sizeof...(A),
                  "parameters found in the text and in the function differ");
    kernel(argument<A, Kind, Index>::get(h)...);
}

template <class P, class F> struct sizes;
template <int... Kind, int... Index, class... A>
struct sizes<params<param<Kind, Index>...>, void (*)(A...)> {
    static constexpr uint count = sizeof...(A);
    static constexpr uint bytes[sizeof...(A) + 1] = {argument<A, Kind, Index>::value_bytes()..., 0};
};

} // namespace assay

#include "start.h"
