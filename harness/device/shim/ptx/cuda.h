// cuda: instructions of NVIDIA GPUs for the kernels of kernels/cuda, under NVIDIA's names: bulk
// copies (TMA) with their mbarriers, clusters and distributed shared memory (DSMEM), products of
// tensor cores (mma) on halves and bytes, and what a warp does together.
//
// Metal has no such thing, so a launch does not ask for it: the host reads the comments in the PTX,
// and puts the dynamic shared memory of bulk copies before what the launch gives
// (cuda_pipeline.bulk_bytes). The first bytes of it are mbarriers, which count bytes as they arrive:
// eight for bulk copies, and one for what the other thread blocks of the cluster send.
#pragma once
#pragma clang system_header

// Not every GPU has them: device_facts.offers says which kernels there are.
#if __CUDA_ARCH__ >= 900

namespace cuda {

enum : uint { barrier_bytes = 128, cluster_barrier_at = 64 }; // 128: the alignment TMA likes

METAL_FUNC ulong get_shared_address(const void *p) {
    return (ulong)(__attribute__((address_space(3))) const void *)p;
}

// Dynamic shared memory.
template <uint bytes> METAL_FUNC void *get_shared_memory() {
    __asm__ volatile("// assay bulk %0" ::"n"(bytes + barrier_bytes));
    return assay::dynamic_storage + barrier_bytes;
}

// Bulk copies ---------------------------------------------------------------------------------

// One of the eight mbarriers.
METAL_FUNC ulong get_mbarrier(uint which) {
    return get_shared_address(assay::dynamic_storage + 8 * which);
}

// One thread, before any other comes to what follows.
METAL_FUNC void init_mbarrier(uint which = 0) {
    __asm__ volatile("mbarrier.init.shared.b64 [%0], 1;" ::"l"(get_mbarrier(which)) : "memory");
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// One thread, once per phase: says how many bytes wait_for_copies waits for.
METAL_FUNC void expect_bytes(uint bytes, uint which = 0) {
    __asm__ volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"l"(get_mbarrier(which)),
                     "r"(bytes)
                     : "memory");
}

METAL_FUNC void copy_bulk(void *to, const void *from, uint bytes, uint which = 0) {
    __asm__ volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"l"(
            get_shared_address(to)),
        "l"((__attribute__((address_space(1))) const void *)from), "r"(bytes),
        "l"(get_mbarrier(which))
        : "memory");
}

// Into the L2 cache.
METAL_FUNC void prefetch_bulk(const void *from, uint bytes) {
    __asm__ volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                         (__attribute__((address_space(1))) const void *)from),
                     "r"(bytes)
                     : "memory");
}

METAL_FUNC void wait_for_mbarrier(ulong barrier, uint parity) {
    uint is_done = 0;
    while (!is_done)
        __asm__ volatile("{ .reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [%1], %2; "
                         "selp.u32 %0, 1, 0, done; }"
                         : "=r"(is_done)
                         : "l"(barrier), "r"(parity)
                         : "memory");
}

// Every thread: until the bytes of expect_bytes have come. Of phases, the first has parity 0, the next
// 1, and so on.
METAL_FUNC void wait_for_copies(uint which = 0, uint parity = 0) {
    wait_for_mbarrier(get_mbarrier(which), parity);
}

// 16 bytes, of one thread and for it alone, there after wait_for_own_copies.
METAL_FUNC void copy_async(void *to, const void *from) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"l"(get_shared_address(to)),
                     "l"((__attribute__((address_space(1))) const void *)from)
                     : "memory");
}
METAL_FUNC void wait_for_own_copies() {
    __asm__ volatile("cp.async.wait_all;" ::: "memory");
}
// Those since the last call are a group; then all groups but the last `left` are waited for.
METAL_FUNC void close_copies() {
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
}
template <uint left> METAL_FUNC void wait_for_all_but() {
    __asm__ volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// Programmatic dependent launch: PREFETCHED of kernels/prefetch.h for a kernel whose early loads are
// bulk copies. They take no room that the next launch needs, so that launch_dependents, which has it
// set up, comes before the wait for the launch before.
METAL_FUNC void launch_dependents() {
    __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
template <uint buffers> METAL_FUNC void wait_for_launch() {
    __asm__ volatile("griddepcontrol.wait; // assay early %0" ::"n"(buffers) : "memory");
}

// Clusters ------------------------------------------------------------------------------------

// One thread, after init_mbarrier: says how many bytes wait_for_cluster_bytes waits for. size: of the
// cluster.
template <uint size> METAL_FUNC void expect_cluster_bytes(uint bytes) {
    const ulong barrier = get_shared_address(assay::dynamic_storage + cluster_barrier_at);
    __asm__ volatile("// assay cluster %0" ::"n"(size));
    __asm__ volatile("mbarrier.init.shared.b64 [%0], 1;" ::"l"(barrier) : "memory");
    __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __asm__ volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"l"(barrier), "r"(bytes)
                     : "memory");
}

// Every thread arrives, and before anything is sent, every thread waits: all blocks have begun.
METAL_FUNC void arrive_at_cluster() {
    __asm__ volatile("bar.warp.sync 0xffffffff; barrier.cluster.arrive.relaxed.aligned;" ::
                         : "memory");
}
// The same if what is sent may replace what this block has read.
METAL_FUNC void release_to_cluster() {
    __asm__ volatile("bar.warp.sync 0xffffffff; barrier.cluster.arrive.release.aligned;" ::
                         : "memory");
}
METAL_FUNC void wait_for_cluster() {
    __asm__ volatile("bar.warp.sync 0xffffffff; barrier.cluster.wait.acquire.aligned;" ::
                         : "memory");
}

// To distributed shared memory: where the block of this rank has what is at `to` here.
METAL_FUNC void store_to_rank(void *to, float value, uint rank) {
    __asm__ volatile("{ .reg .u64 there, barrier; mapa.shared::cluster.u64 there, %0, %2; "
                     "mapa.shared::cluster.u64 barrier, %1, %2; "
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [there], %3, "
                     "[barrier]; }" ::"l"(get_shared_address(to)),
                     "l"(get_shared_address(assay::dynamic_storage + cluster_barrier_at)),
                     "r"(rank), "f"(value)
                     : "memory");
}

METAL_FUNC void store_to_rank(void *to, metal::float4 value, uint rank) {
    __asm__ volatile("{ .reg .u64 there, barrier; mapa.shared::cluster.u64 there, %0, %2; "
                     "mapa.shared::cluster.u64 barrier, %1, %2; "
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], "
                     "{%3, %4, %5, %6}, [barrier]; }" ::"l"(get_shared_address(to)),
                     "l"(get_shared_address(assay::dynamic_storage + cluster_barrier_at)),
                     "r"(rank), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
                     : "memory");
}

METAL_FUNC void wait_for_cluster_bytes() {
    wait_for_mbarrier(get_shared_address(assay::dynamic_storage + cluster_barrier_at), 0);
}

// Tensor cores --------------------------------------------------------------------------------

#define ASSAY_MMA(name, form, T, letter)                                                           \
    METAL_FUNC void name(const uint (&a)[2][2], const uint (&b)[2], T (&d)[2][2]) {                \
        __asm__("mma.sync.aligned." form                                                           \
                " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                : letter(d[0][0]), letter(d[0][1]), letter(d[1][0]), letter(d[1][1])               \
                : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));   \
    }
// d (16, 8) += a (16, 16) b (16, 8), halves with sums in floats. A lane has columns 2 * (lane % 4)
// and 1 after it, and 8 after those, of rows lane / 4 and 8 after it of a, the same rows of column
// lane / 4 of b, and columns 2 * (lane % 4) and 1 after it of d.
ASSAY_MMA(mma_halves, "m16n8k16.row.col.f32.f16.f16.f32", float, "+f")

// d (16, 8) += a (16, 8) b (8, 8), the upper 19 bits of floats (tf32) with sums in floats. A lane has columns
// lane % 4 and 4 after it of rows lane / 4 and 8 after it of a, the same rows of column lane / 4 of b, and
// of d what mma_halves has.
METAL_FUNC void mma_floats(const uint (&a)[2][2], const uint (&b)[2], float (&d)[2][2]) {
    assay::multiply_tensors(a, b, d);
}

// d (16, 8) += a (16, 32) b (32, 8), all signed bytes with sums in 32 bits. A lane has columns 4 *
// (lane % 4) to 3 after it, and 16 after those, of rows lane / 4 and 8 after it of a (rows change
// first), the same rows of column lane / 4 of b, and of d what mma_halves has.
ASSAY_MMA(mma_bytes, "m16n8k32.row.col.s32.s8.s8.s32", int, "+r")
// The same with bytes of a that have no sign.
ASSAY_MMA(mma_unsigned_bytes, "m16n8k32.row.col.s32.u8.s8.s32", int, "+r")
#undef ASSAY_MMA

// Two floats as halves, rounded to the nearest.
METAL_FUNC uint pack_halves(float lower, float upper) {
    uint d;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(upper), "f"(lower));
    return d;
}

// a - b and a * b + c of two halves each: as MSL's half2 they would be taken apart and put together again.
METAL_FUNC uint subtract_halves(uint a, uint b) {
    uint d;
    __asm__("sub.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
METAL_FUNC uint fma_halves(uint a, uint b, uint c) {
    uint d;
    __asm__("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

// Four bytes of a and b, each chosen by a digit of the selector, the lowest first: 0 to 3 are those
// of a.
METAL_FUNC uint permute(uint a, uint b, uint selector) {
    uint d;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}

// Warps ---------------------------------------------------------------------------------------

// What all 32 lanes take part in: MSL's functions would look first which of them are there.
template <class V> METAL_FUNC V shuffle_xor(V value, uint mask) {
    return assay::shuffle_xor(assay::all_lanes, value, mask);
}
METAL_FUNC void sync_warp() {
    __nvvm_bar_warp_sync(assay::all_lanes);
}

} // namespace cuda

#endif
