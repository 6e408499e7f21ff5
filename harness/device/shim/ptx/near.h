// near: memory beside a threadgroup's own that copies fill by themselves (kernels/near.h).
//
// Metal has no such memory, so the launch does not ask for it: the host reads the comment in the
// PTX, and puts that many bytes before what the launch gives (cuda_pipeline.near_bytes). The first
// of them are barriers that count bytes as they arrive: of copies, and of what partners send.
#pragma once
#pragma clang system_header

// Not every GPU has such copies.
#if __CUDA_ARCH__ >= 900
#define ASSAY_HAS_NEAR true
#define ASSAY_PARTNERS 2

namespace assay {

enum : uint { near_barrier_bytes = 128, partners_barrier_at = 8 }; // 128: copies like such places

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

// 16 bytes, of one thread and for it alone, there after near_fetch_wait.
METAL_FUNC void near_fetch(void *to, const void *from) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"l"(get_shared_address(to)),
                     "l"((__attribute__((address_space(1))) const void *)from)
                     : "memory");
}
METAL_FUNC void near_fetch_wait() {
    __asm__ volatile("cp.async.wait_all;" ::: "memory");
}

// About so many clocks, or until the flag, an atomic_uint, is set. (All lanes load one word at once; an
// mbarrier in its place made a product of 8 tokens 0.4 us longer.)
METAL_FUNC void near_pause(uint clocks, const void *flag) {
    uint first, now;
    __asm__ volatile("mov.u32 %0, %%clock;" : "=r"(first));
    do
        __asm__ volatile("nanosleep.u32 100; mov.u32 %0, %%clock;" : "=r"(now));
    while (now - first < clocks && !load_atomic(static_cast<const volatile uint *>(flag)));
}

METAL_FUNC void wait_for_barrier(const void *barrier) {
    uint is_done = 0;
    while (!is_done)
        __asm__ volatile("{ .reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [%1], 0; "
                         "selp.u32 %0, 1, 0, done; }"
                         : "=r"(is_done)
                         : "l"(get_shared_address(barrier))
                         : "memory");
}

// Every thread: until the bytes of near_expect have come.
METAL_FUNC void near_wait() {
    wait_for_barrier(dynamic_storage);
}

// Partners are a cluster of threadgroups: the host reads the comment in the PTX.

// One thread, after near_begin: so many bytes will have come when partners_wait ends.
METAL_FUNC void partners_begin(uint bytes) {
    const ulong barrier = get_shared_address(dynamic_storage + partners_barrier_at);
    __asm__ volatile("// assay partners %0" ::"n"(ASSAY_PARTNERS));
    __asm__ volatile("mbarrier.init.shared.b64 [%0], 1;" ::"l"(barrier) : "memory");
    __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __asm__ volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"l"(barrier), "r"(bytes)
                     : "memory");
}

// Every thread, and before anything is sent, every thread again: all partners have begun.
METAL_FUNC void partners_arrive() {
    __asm__ volatile("bar.warp.sync 0xffffffff; barrier.cluster.arrive.relaxed.aligned;" ::
                         : "memory");
}
METAL_FUNC void partners_meet() {
    __asm__ volatile("bar.warp.sync 0xffffffff; barrier.cluster.wait.acquire.aligned;" ::
                         : "memory");
}

// To where the partner has what is at `to` here.
METAL_FUNC void partners_send(void *to, float value, uint partner) {
    __asm__ volatile("{ .reg .u64 there, barrier; mapa.shared::cluster.u64 there, %0, %2; "
                     "mapa.shared::cluster.u64 barrier, %1, %2; "
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [there], %3, "
                     "[barrier]; }" ::"l"(get_shared_address(to)),
                     "l"(get_shared_address(dynamic_storage + partners_barrier_at)),
                     "r"(partner), "f"(value)
                     : "memory");
}

METAL_FUNC void partners_wait() {
    wait_for_barrier(dynamic_storage + partners_barrier_at);
}

} // namespace assay

#define ASSAY_NEAR_MEMORY(bytes) assay::get_near_memory<bytes>()
#define ASSAY_NEAR_BEGIN() assay::near_begin()
#define ASSAY_NEAR_EXPECT(bytes) assay::near_expect(bytes)
#define ASSAY_NEAR_COPY(to, from, bytes) assay::near_copy(to, from, bytes)
#define ASSAY_NEAR_PREFETCH(from, bytes) assay::near_prefetch(from, bytes)
#define ASSAY_NEAR_FETCH(to, from) assay::near_fetch(to, from)
#define ASSAY_NEAR_FETCH_WAIT() assay::near_fetch_wait()
#define ASSAY_NEAR_PAUSE(clocks, flag) assay::near_pause(clocks, flag)
#define ASSAY_NEAR_WAIT() assay::near_wait()
#define ASSAY_PARTNERS_BEGIN(bytes) assay::partners_begin(bytes)
#define ASSAY_PARTNERS_ARRIVE() assay::partners_arrive()
#define ASSAY_PARTNERS_MEET() assay::partners_meet()
#define ASSAY_PARTNERS_SEND(to, value, partner) assay::partners_send(to, value, partner)
#define ASSAY_PARTNERS_WAIT() assay::partners_wait()
#endif
