// exchange: how the lanes of a simdgroup exchange values. A simdgroup is a subgroup of 32 lanes.
#pragma once
#pragma clang system_header

#include "words.h"

namespace assay {

METAL_FUNC uint lane_index() {
    return static_cast<uint>(__builtin_spirv_subgroup_local_invocation_id()) % MSL_LANES;
}
METAL_FUNC uint active_lanes() { return all_lanes; }

#define AGX_EXCHANGE(name, function)                                                               \
    template <class V> METAL_FUNC V name(uint, V value, uint n) {                                  \
        words<V> w(value);                                                                         \
        for (int i = 0; i < w.count; ++i)                                                          \
            w.word[i] = ::function(w.word[i], n);                                                  \
        return w.get();                                                                            \
    }
AGX_EXCHANGE(shuffle, sub_group_shuffle)
AGX_EXCHANGE(shuffle_xor, sub_group_shuffle_xor)
AGX_EXCHANGE(shuffle_up, sub_group_shuffle_up)
AGX_EXCHANGE(shuffle_down, sub_group_shuffle_down)
AGX_EXCHANGE(take_one, sub_group_non_uniform_broadcast)
#undef AGX_EXCHANGE

// Floats as integers in the same order, and back.
METAL_FUNC int order_bits(int bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }

// The reductions that Apple's GPUs have an instruction for, in the type that it is for. Mesa has none for the extremes of
// floats and exchanges them step by step, in some 250 instructions: they are compared as integers instead.
template <class T> constexpr bool has_reduction =
    metal::is_same_v<T, float> || metal::is_same_v<T, half> || metal::is_same_v<T, int> || metal::is_same_v<T, uint>;
template <class Op, class T> METAL_FUNC T reduce_scalar(T value) {
    if constexpr (metal::is_same_v<Op, op_sum>)
        return ::sub_group_reduce_add(value);
    else if constexpr (metal::is_same_v<T, float>)
        return __builtin_bit_cast(float, order_bits(reduce_scalar<Op>(order_bits(__builtin_bit_cast(int, value)))));
    else if constexpr (metal::is_same_v<T, half>)
        return T(reduce_scalar<Op>(float(value)));
    else if constexpr (metal::is_same_v<Op, op_max>)
        return ::sub_group_reduce_max(value);
    else
        return ::sub_group_reduce_min(value);
}
template <class Op> constexpr bool has_reduction_of =
    metal::is_same_v<Op, op_sum> || metal::is_same_v<Op, op_max> || metal::is_same_v<Op, op_min>;

template <class Op, int group, class V> METAL_FUNC V reduce_lanes(V value) {
    using T = typename scalar_of<V>::type;
    if constexpr (group == 32 && has_reduction_of<Op> && has_reduction<T>) {
        if constexpr (is_scalar<V>) {
            return reduce_scalar<Op>(value);
        } else {
            for (int i = 0; i < count_of<V>::value; ++i)
                value[i] = reduce_scalar<Op>(T(value[i]));
            return value;
        }
    } else {
        for (int step = group / 2; step > 0; step /= 2)
            value = apply<Op>(value, shuffle_xor(all_lanes, value, step));
        return value;
    }
}

template <class Op, int group, bool inclusive, class V> METAL_FUNC V scan_lanes(V value) {
    if constexpr (group == 32 && metal::is_same_v<Op, op_sum> &&
                  (metal::is_same_v<V, float> || metal::is_same_v<V, int> || metal::is_same_v<V, uint>)) {
        if constexpr (inclusive)
            return ::sub_group_scan_inclusive_add(value);
        else
            return ::sub_group_scan_exclusive_add(value);
    } else {
        const uint place = lane_index() % group;
        V before = shuffle_up(all_lanes, value, 1), sum = value;
        if constexpr (!inclusive)
            sum = place ? before : V(to<typename scalar_of<V>::type>(metal::is_same_v<Op, op_sum> ? 0 : 1));
        for (uint step = 1; step < group; step *= 2) {
            const V other = shuffle_up(all_lanes, sum, step);
            sum = place >= step ? apply<Op>(sum, other) : sum;
        }
        return sum;
    }
}

template <int group, class V> METAL_FUNC V take_from(V value, uint source, const char *, uint) {
    return shuffle(all_lanes, value, source);
}
template <int group, class V> METAL_FUNC V take_first(V value) {
    if constexpr (group == 32) {
        words<V> w(value);
        for (int i = 0; i < w.count; ++i)
            w.word[i] = ::sub_group_broadcast_first(w.word[i]);
        return w.get();
    } else {
        return shuffle(all_lanes, value, first_of_group<group>());
    }
}
template <int group> METAL_FUNC uint ask(bool expression) {
    const uint yes = __builtin_spirv_subgroup_ballot(expression)[0];
    if constexpr (group == 32)
        return yes;
    else
        return yes >> first_of_group<group>() & (all_lanes >> (MSL_LANES - group));
}

// Scope and semantics of SPIR-V: Workgroup 2, Subgroup 3; AcquireRelease 8, WorkgroupMemory 0x100,
// CrossWorkgroupMemory 0x200.
METAL_FUNC void wait_for_threadgroup(uint flags) {
    if (flags & 1)
        ::__spirv_ControlBarrier(2, 2, 0x8 | 0x100 | 0x200);
    else
        ::__spirv_ControlBarrier(2, 2, 0x8 | 0x100);
}
METAL_FUNC void meet_for_matrix() {}
METAL_FUNC void wait_for_simdgroup(uint) { ::__spirv_ControlBarrier(3, 3, 0x8 | 0x100); }

} // namespace assay
