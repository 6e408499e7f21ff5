// scopes: the enumerations of MSL 3.1 that barriers, fences and atomics take. msl/strict/group.h
// includes it too.
#pragma once
#pragma clang system_header

namespace metal {

enum class mem_flags {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_device_and_threadgroup = 3, // of early versions of the language
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
};
METAL_FUNC constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}
METAL_FUNC constexpr mem_flags operator&(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) & static_cast<int>(b));
}

enum thread_scope {
    thread_scope_thread,
    thread_scope_simdgroup,
    thread_scope_threadgroup,
    thread_scope_device,
};
enum memory_scope {
    memory_scope_simdgroup,
    memory_scope_threadgroup,
    memory_scope_device,
};
enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST,
};

} // namespace metal
