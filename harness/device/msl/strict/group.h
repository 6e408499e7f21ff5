// group: simdgroups, quadgroups, barriers, atomics and simdgroup matrices of MSL, as declarations.
#pragma once

// Names that OpenCL defines itself.
#define atomic_int metal_atomic_int
#define atomic_uint metal_atomic_uint
#define atomic_long metal_atomic_long
#define atomic_ulong metal_atomic_ulong
#define atomic_float metal_atomic_float
#define atomic_bool metal_atomic_bool

#include "../../shim/scopes.h"

namespace metal {

void threadgroup_barrier(mem_flags);
void threadgroup_barrier(mem_flags, thread_scope);
void threadgroup_barrier(mem_flags, memory_scope);
void simdgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags, thread_scope);
void simdgroup_barrier(mem_flags, memory_scope);
void atomic_thread_fence(mem_flags, memory_order);
void atomic_thread_fence(mem_flags, memory_order, thread_scope);

struct simd_vote {
    typedef ulong vote_t;
    explicit simd_vote(ulong);
    explicit operator ulong() const;
    bool all() const;
    bool any() const;
};
typedef simd_vote quad_vote;

#define ASSAY_LANES(prefix)                                                                        \
    template <class T> T prefix##_sum(T);                                                          \
    template <class T> T prefix##_product(T);                                                      \
    template <class T> T prefix##_max(T);                                                          \
    template <class T> T prefix##_min(T);                                                          \
    template <class T> T prefix##_and(T);                                                          \
    template <class T> T prefix##_or(T);                                                           \
    template <class T> T prefix##_xor(T);                                                          \
    template <class T> T prefix##_prefix_inclusive_sum(T);                                         \
    template <class T> T prefix##_prefix_exclusive_sum(T);                                         \
    template <class T> T prefix##_prefix_inclusive_product(T);                                     \
    template <class T> T prefix##_prefix_exclusive_product(T);                                     \
    template <class T> T prefix##_broadcast(T, ushort);                                            \
    template <class T> T prefix##_broadcast_first(T);                                              \
    template <class T> T prefix##_shuffle(T, ushort);                                              \
    template <class T> T prefix##_shuffle_xor(T, ushort);                                          \
    template <class T> T prefix##_shuffle_up(T, ushort);                                           \
    template <class T> T prefix##_shuffle_down(T, ushort);                                         \
    template <class T> T prefix##_shuffle_rotate_up(T, ushort);                                    \
    template <class T> T prefix##_shuffle_rotate_down(T, ushort);                                  \
    template <class T> T prefix##_shuffle_and_fill_up(T, T, ushort, ushort = 32);                  \
    template <class T> T prefix##_shuffle_and_fill_down(T, T, ushort, ushort = 32);                \
    bool prefix##_all(bool);                                                                       \
    bool prefix##_any(bool);                                                                       \
    bool prefix##_is_first();                                                                      \
    bool prefix##_is_helper_thread();                                                              \
    simd_vote prefix##_ballot(bool);                                                               \
    simd_vote prefix##_active_threads_mask();
ASSAY_LANES(simd)
ASSAY_LANES(quad)
#undef ASSAY_LANES

// ------------------------------------------------------------------------------------ atomics
template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
template <class T> struct assay_plain { typedef T type; };

// Which functions there are for which types: of ulong only minimum and maximum, that return nothing.
template <class T, bool is_wide> using assay_atomic =
    typename enable_if<(sizeof(T) == 8) == is_wide, T>::type;
template <class T> using assay_narrow = assay_atomic<typename assay_plain<T>::type, false>;
template <class T> using assay_wide = assay_atomic<typename assay_plain<T>::type, true>;

#define ASSAY_FETCH(space, name)                                                                   \
    template <class T>                                                                             \
    T atomic_fetch_##name##_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);
#define ASSAY_ATOMICS(space)                                                                       \
    template <class T>                                                                             \
    assay_narrow<T> atomic_load_explicit(const volatile space atomic<T> *, memory_order);          \
    template <class T>                                                                             \
    void atomic_store_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);         \
    template <class T>                                                                             \
    T atomic_exchange_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);         \
    template <class T> bool atomic_compare_exchange_weak_explicit(                                 \
        volatile space atomic<T> *, __private T *, assay_narrow<T>, memory_order, memory_order);   \
    template <class T>                                                                             \
    void atomic_min_explicit(volatile space atomic<T> *, assay_wide<T>, memory_order);             \
    template <class T>                                                                             \
    void atomic_max_explicit(volatile space atomic<T> *, assay_wide<T>, memory_order);             \
    ASSAY_FETCH(space, add)                                                                        \
    ASSAY_FETCH(space, sub)                                                                        \
    ASSAY_FETCH(space, min)                                                                        \
    ASSAY_FETCH(space, max)                                                                        \
    ASSAY_FETCH(space, and)                                                                        \
    ASSAY_FETCH(space, or)                                                                         \
    ASSAY_FETCH(space, xor)
ASSAY_ATOMICS(__global)
ASSAY_ATOMICS(__local)
#undef ASSAY_ATOMICS
#undef ASSAY_FETCH

struct os_log {
    constexpr os_log(__constant const char *, __constant const char *) __constant {}
#define ASSAY_LOG(name)                                                                            \
    template <class... A> void name(__constant const char *, A...) const;                          \
    template <class... A> void name(__constant const char *, A...) const __constant;
    ASSAY_LOG(log)
    ASSAY_LOG(log_debug)
    ASSAY_LOG(log_info)
    ASSAY_LOG(log_error)
    ASSAY_LOG(log_fault)
#undef ASSAY_LOG
};

// ------------------------------------------------------------------------ simdgroup matrices
// What thread_elements() refers to: for Apple's compiler a vector of 64, of which only the elements
// can be assigned to.
template <class T> struct assay_fragment {
    T &operator[](int);
    const T &operator[](int) const;
};
template <class T, int C, int R> struct simdgroup_matrix {
    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T);
    assay_fragment<T> &thread_elements();
    assay_fragment<T> thread_elements() const;
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int C, int R = C, class V = T>
simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(V);
template <class T, int C, int R = C, class V = T>
simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(V);
#define ASSAY_LOAD(space)                                                                          \
    template <class T, int C, int R> void simdgroup_load(                                          \
        simdgroup_matrix<T, C, R> &, const space T *, ulong = 8, ulong2 = 0, bool = false);
ASSAY_LOAD(__global)
ASSAY_LOAD(__local)
ASSAY_LOAD(__constant)
#undef ASSAY_LOAD
#define ASSAY_STORE(space)                                                                         \
    template <class T, int C, int R> void simdgroup_store(simdgroup_matrix<T, C, R>, space T *,    \
                                                          ulong = 8, ulong2 = 0, bool = false);
ASSAY_STORE(__global)
ASSAY_STORE(__local)
#undef ASSAY_STORE
template <class T> using assay_8x8 = simdgroup_matrix<T, 8, 8>;
template <class D, class A, class B>
void simdgroup_multiply(assay_8x8<D> &, assay_8x8<A>, assay_8x8<B>);
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(assay_8x8<D> &, assay_8x8<A>, assay_8x8<B>, assay_8x8<C>);
template <class A, class B>
simdgroup_matrix<A, 8, 8> operator*(simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);

} // namespace metal
