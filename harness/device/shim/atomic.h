// atomic: atomic types and functions of MSL, on device and threadgroup memory alike.
//
// Threads of other threadgroups may run on other cores, so these are real atomic instructions.
// Floats are exchanged as their bits.
#pragma once
#pragma clang system_header

#include "simd.h"

// Of every atomic instruction, whatever order the kernel asks for.
#ifndef ASSAY_ATOMIC_ORDER
#define ASSAY_ATOMIC_ORDER __ATOMIC_SEQ_CST
#endif
// Orders all memory for the whole device, whatever scope the kernel asks for.
#ifndef ASSAY_FENCE
#define ASSAY_FENCE __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

namespace metal {

template <class T> struct atomic {
    static_assert(is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || is_same_v<T, bool>),
                  "MSL has atomics of int, uint, ulong, float and bool");
    T assay_value;
    atomic() = default;
};

typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

} // namespace metal

namespace assay {

// The integer through which atomic instructions see a T.
template <class T> using atomic_bits =
    metal::conditional_t<metal::is_integral_v<T> && !metal::is_same_v<T, bool>, T,
                         metal::make_unsigned_t<T>>;
template <class T> using same = metal::enable_if_t<true, T>;

template <class T> METAL_FUNC volatile atomic_bits<T> *
atomic_place(volatile metal::atomic<T> *p, atomic_use use = atomic_use::update) {
    ASSAY_CHECK_ATOMIC(p, sizeof(T), use);
    return reinterpret_cast<volatile atomic_bits<T> *>(p);
}
template <class T>
METAL_FUNC const volatile atomic_bits<T> *atomic_place(const volatile metal::atomic<T> *p) {
    ASSAY_CHECK_ATOMIC(p, sizeof(T), atomic_use::load);
    return reinterpret_cast<const volatile atomic_bits<T> *>(p);
}

// ASSAY_WATCHES_RACES: the kernel runs under a tool that takes relaxed loads and stores for races, but
// knows atomic updates.
template <class U> METAL_FUNC U load_atomic(const volatile U *p) {
#if defined(ASSAY_WATCHES_RACES)
    return __atomic_fetch_or(const_cast<volatile U *>(p), U(0), ASSAY_ATOMIC_ORDER);
#else
    return __atomic_load_n(p, ASSAY_ATOMIC_ORDER);
#endif
}
template <class U> METAL_FUNC void store_atomic(volatile U *p, U value) {
#if defined(ASSAY_WATCHES_RACES)
    __atomic_exchange_n(p, value, ASSAY_ATOMIC_ORDER);
#else
    __atomic_store_n(p, value, ASSAY_ATOMIC_ORDER);
#endif
}

template <class T>
METAL_FUNC bool compare_exchange(volatile metal::atomic<T> *object, T *expected, T desired) {
    using U = atomic_bits<T>;
    U found = metal::as_type<U>(*expected);
    const bool done =
        __atomic_compare_exchange_n(atomic_place(object), &found, metal::as_type<U>(desired), true,
                                    ASSAY_ATOMIC_ORDER, ASSAY_ATOMIC_ORDER);
    *expected = metal::as_type<T>(found);
    return done;
}

template <class T> METAL_FUNC bool is_nan_bits(T x) {
    if constexpr (metal::is_same_v<T, float>)
        return (metal::as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u;
    else
        return false;
}

} // namespace assay

namespace metal {

template <class T>
METAL_FUNC T atomic_load_explicit(const volatile atomic<T> *object, memory_order) {
    return as_type<T>(assay::load_atomic(assay::atomic_place(object)));
}
template <class T> METAL_FUNC void atomic_store_explicit(volatile atomic<T> *object,
                                                         assay::same<T> desired, memory_order) {
    using U = assay::atomic_bits<T>;
    assay::store_atomic(assay::atomic_place(object, assay::atomic_use::store), as_type<U>(desired));
}
template <class T> METAL_FUNC T atomic_exchange_explicit(volatile atomic<T> *object,
                                                         assay::same<T> desired, memory_order) {
    using U = assay::atomic_bits<T>;
    return as_type<T>(
        __atomic_exchange_n(assay::atomic_place(object), as_type<U>(desired), ASSAY_ATOMIC_ORDER));
}
// Apple's compiler finds out with a comparison of floats whether the exchange was made, also in safe math:
// with a NaN it was not. Checked mode has it so, too, because loops that wait for success do not end.
template <class T>
METAL_FUNC bool atomic_compare_exchange_weak_explicit(volatile atomic<T> *object, T *expected,
                                                      assay::same<T> desired, memory_order,
                                                      memory_order) {
    const bool done = assay::compare_exchange(object, expected, desired);
#if defined(ASSAY_CHECKED)
    return done && !assay::is_nan_bits(*expected);
#else
    return done;
#endif
}

// The same in a loop that waits for a lock (harness/device/msl/marks.c).
template <class... A> METAL_FUNC auto assay_lock_exchange(A... a) {
    ASSAY_SPIN;
    return atomic_exchange_explicit(a...);
}
template <class... A> METAL_FUNC auto assay_lock_compare(A... a) {
    ASSAY_SPIN;
    return atomic_compare_exchange_weak_explicit(a...);
}

#define ASSAY_FETCH(name)                                                                          \
    template <class T, enable_if_t<is_integral_v<T>, int> = 0>                                     \
    METAL_FUNC T atomic_fetch_##name##_explicit(volatile atomic<T> *object,                        \
                                                assay::same<T> operand, memory_order) {            \
        using U = assay::atomic_bits<T>;                                                           \
        return as_type<T>(__atomic_fetch_##name(assay::atomic_place(object), as_type<U>(operand),  \
                                                ASSAY_ATOMIC_ORDER));                              \
    }
ASSAY_FETCH(add)
ASSAY_FETCH(sub)
ASSAY_FETCH(min)
ASSAY_FETCH(max)
ASSAY_FETCH(and)
ASSAY_FETCH(or)
ASSAY_FETCH(xor)
#undef ASSAY_FETCH

// On CPUs an addition of floats is a compare-and-exchange loop, written out: clang 19 loses additions
// on aarch64 when it makes that loop by itself (it does not look whether its store was exclusive).
METAL_FUNC float atomic_fetch_add_explicit(volatile atomic<float> *object, float operand,
                                           memory_order order) {
#if defined(ASSAY_ADDS_FLOATS)
    (void)order;
    volatile float *place = reinterpret_cast<volatile float *>(assay::atomic_place(object));
    return __atomic_fetch_add(place, operand, ASSAY_ATOMIC_ORDER);
#else
    (void)order;
    volatile uint *place = assay::atomic_place(object);
    uint old = __atomic_load_n(place, ASSAY_ATOMIC_ORDER);
    while (!__atomic_compare_exchange_n(place, &old, as_type<uint>(as_type<float>(old) + operand),
                                        true, ASSAY_ATOMIC_ORDER, ASSAY_ATOMIC_ORDER)) {
    }
    return as_type<float>(old);
#endif
}
METAL_FUNC float atomic_fetch_sub_explicit(volatile atomic<float> *object, float operand,
                                           memory_order order) {
    return atomic_fetch_add_explicit(object, -operand, order);
}

// The forms for ulong, which return nothing.
template <class T> METAL_FUNC void atomic_min_explicit(volatile atomic<T> *object,
                                                       assay::same<T> operand, memory_order order) {
    atomic_fetch_min_explicit(object, operand, order);
}
template <class T> METAL_FUNC void atomic_max_explicit(volatile atomic<T> *object,
                                                       assay::same<T> operand, memory_order order) {
    atomic_fetch_max_explicit(object, operand, order);
}

METAL_FUNC void atomic_thread_fence(mem_flags flags, memory_order order,
                                    thread_scope scope = thread_scope_device) {
    ASSAY_CHECK_SYNC(flags, order, scope);
    ASSAY_FENCE;
}

} // namespace metal
