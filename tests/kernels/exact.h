// exact: the parameters of the kernels of right_*.metal and wrong*.metal.
//
// All are launched in the same way (tests/test_exact.c): two threadgroups of 64 threads. Buffer 0
// `in` holds 128 floats that count up from 1 and is only read; 1 `out` has room for 128 floats that
// nothing wrote; 2 is n = 128; 3 `data` is 512 written bytes, read and written. 4 `zero` is 256 words
// of zero, read and written.

#define FOUR                                                                                       \
    device const float *in [[buffer(0)]], device float *out [[buffer(1)]],                         \
        constant uint &n [[buffer(2)]]
#define IDS                                                                                        \
    uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]],                 \
        uint g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]

// Fences and atomics.
#define RELEASE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_release, thread_scope_##scope)
#define ACQUIRE(memory, scope)                                                                     \
    atomic_thread_fence(mem_flags::mem_##memory, memory_order_acquire, thread_scope_##scope)
#define LOAD(at) atomic_load_explicit(at, memory_order_relaxed)
#define STORE(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define ADD(at, value) atomic_fetch_add_explicit(at, value, memory_order_relaxed)
#define EXCHANGE(at, expected, value)                                                              \
    atomic_compare_exchange_weak_explicit(at, expected, value, memory_order_relaxed,               \
                                          memory_order_relaxed)
