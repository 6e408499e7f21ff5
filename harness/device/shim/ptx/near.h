// near: memory beside a threadgroup's own that copies fill by themselves (kernels/near.h).
//
// Metal has no such memory, so the launch does not ask for it: the host reads the comment in the
// PTX, and puts that many bytes before what the launch gives (cuda_pipeline.near_bytes). The first
// of them are the barrier that counts bytes as they arrive.
#pragma once
#pragma clang system_header

// Not every GPU has such copies.
#if __CUDA_ARCH__ >= 900
#define ASSAY_HAS_NEAR true

namespace assay {

enum : uint { near_barrier_bytes = 16 };

METAL_FUNC ulong get_shared_address(const void *p) {
    return (ulong)(__attribute__((address_space(3))) const void *)p;
}

template <uint bytes> METAL_FUNC void *get_near_memory() {
    __asm__ volatile("// assay near %0" ::"n"(bytes + near_barrier_bytes));
    return dynamic_storage + near_barrier_bytes;
}

// One thread, before any other comes to what follows.
METAL_FUNC void near_begin() {
    __asm__ volatile("mbarrier.init.shared.b64 [%0], 1;" ::"l"(get_shared_address(dynamic_storage))
                     : "memory");
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// One thread, once: so many bytes will have come when near_wait ends.
METAL_FUNC void near_expect(uint bytes) {
    __asm__ volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"l"(
                         get_shared_address(dynamic_storage)),
                     "r"(bytes)
                     : "memory");
}

METAL_FUNC void near_copy(void *to, const void *from, uint bytes) {
    __asm__ volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"l"(
            get_shared_address(to)),
        "l"((__attribute__((address_space(1))) const void *)from), "r"(bytes),
        "l"(get_shared_address(dynamic_storage))
        : "memory");
}

// Into the cache that all cores share.
METAL_FUNC void near_prefetch(const void *from, uint bytes) {
    __asm__ volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                         (__attribute__((address_space(1))) const void *)from),
                     "r"(bytes)
                     : "memory");
}

// So many clocks, or until the flag, an atomic_uint, is set.
METAL_FUNC void near_pause(uint clocks, const void *flag) {
    uint first, now;
    __asm__ volatile("mov.u32 %0, %%clock;" : "=r"(first));
    do
        __asm__ volatile("mov.u32 %0, %%clock;" : "=r"(now));
    while (now - first < clocks &&
           !__atomic_load_n(static_cast<const uint *>(flag), ASSAY_ATOMIC_ORDER));
}

// Every thread: until the bytes of near_expect have come.
METAL_FUNC void near_wait() {
    uint is_done = 0;
    while (!is_done)
        __asm__ volatile("{ .reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [%1], 0; "
                         "selp.u32 %0, 1, 0, done; }"
                         : "=r"(is_done)
                         : "l"(get_shared_address(dynamic_storage))
                         : "memory");
}

} // namespace assay

#define ASSAY_NEAR_MEMORY(bytes) assay::get_near_memory<bytes>()
#define ASSAY_NEAR_BEGIN() assay::near_begin()
#define ASSAY_NEAR_EXPECT(bytes) assay::near_expect(bytes)
#define ASSAY_NEAR_COPY(to, from, bytes) assay::near_copy(to, from, bytes)
#define ASSAY_NEAR_PREFETCH(from, bytes) assay::near_prefetch(from, bytes)
#define ASSAY_NEAR_PAUSE(clocks, flag) assay::near_pause(clocks, flag)
#define ASSAY_NEAR_WAIT() assay::near_wait()
#endif
