// cuda: instructions of NVIDIA GPUs for the kernels of kernels/cuda, under NVIDIA's names: bulk
// copies (TMA) with their mbarriers, clusters and distributed shared memory (DSMEM), products of
// tensor cores on halves and bytes (mma, wgmma), and what a warp does together.
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

// Products of warpgroups ----------------------------------------------------------------------
// By the tensor cores of the four warps, asynchronous, with one matrix in registers and the other in
// shared memory (wgmma.mma_async). Only GPUs of compute capability 9.0 have them: the host makes the
// target of such PTX sm_90a.

// The second matrix of a product: rows of 64 halves of K, 128 bytes, from an address that is a multiple of 1024
// on. The 16 bytes numbered i of row r are at place i ^ r % 8 of the row (a swizzle of 128 bytes);
// groups of 8 rows follow each other. 16 halves of K are 2 further in the descriptor.
METAL_FUNC ulong describe_rows(const void *p) {
    enum : ulong { EIGHT_ROWS = 1024 / 16, SWIZZLE_128 = 1 };
    return (get_shared_address(p) & 0x3FFFFul) >> 4u | 1ul << 16u | EIGHT_ROWS << 32u |
           SWIZZLE_128 << 62u;
}

// The same of rows of 16 halves of K, 32 bytes, from a multiple of 256 on: the 16 bytes numbered i of row r are at
// place i ^ r / 4 % 2 (a swizzle of 32 bytes).
METAL_FUNC ulong describe_short_rows(const void *p) {
    enum : ulong { EIGHT_ROWS = 256 / 16, SWIZZLE_32 = 3 };
    return (get_shared_address(p) & 0x3FFFFul) >> 4u | 1ul << 16u | EIGHT_ROWS << 32u |
           SWIZZLE_32 << 62u;
}

// Before the first product since registers of one were written.
METAL_FUNC void begin_products() {
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

METAL_FUNC void close_products() {
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// For all groups of products but the last `left`; their sums are not to be read before.
template <uint left, uint N> METAL_FUNC void wait_for_products(float (&d)[N]) {
    __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
    for (uint i = 0; i < N; i++)
        __asm__ volatile("" : "+f"(d[i])::"memory");
}

#define ASSAY_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ASSAY_SUMS_16(d, i)                                                                        \
    ASSAY_SUMS_4(d, i), ASSAY_SUMS_4(d, i + 4), ASSAY_SUMS_4(d, i + 8), ASSAY_SUMS_4(d, i + 12)
#define ASSAY_SUMS_32(d, i) ASSAY_SUMS_16(d, i), ASSAY_SUMS_16(d, i + 16)
#define ASSAY_SUMS_64(d, i) ASSAY_SUMS_32(d, i), ASSAY_SUMS_32(d, i + 32)

// d (64, N) = a (64, 16) b (16, N), or += if it adds, halves with sums in floats. Warp w of the
// warpgroup has 16 rows, 16 * w and after it, of which its lanes have what they have in mma_halves; of d 4 sums of
// each 8 columns.
#define ASSAY_MULTIPLY_GROUP(N, count, sums, a0, a1, a2, a3, at, is_adding)                        \
    template <bool adds>                                                                           \
    METAL_FUNC void multiply_group(float (&d)[count], const uint (&a)[4], ulong b) {               \
        __asm__ volatile("{ .reg .pred adds; setp.ne.b32 adds, %" #is_adding ", 0; "               \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" sums           \
                         "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #at ", adds, 1, 1, 0; }" \
                         : ASSAY_SUMS_##count(d, 0)                                                \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(adds ? 1 : 0)   \
                         : "memory");                                                              \
    }
#define ASSAY_LIST_32                                                                              \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ASSAY_LIST_64                                                                              \
    ASSAY_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "  \
    "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
ASSAY_MULTIPLY_GROUP(8, 4, "%0, %1, %2, %3", 4, 5, 6, 7, 8, 9)
ASSAY_MULTIPLY_GROUP(64, 32, ASSAY_LIST_32, 32, 33, 34, 35, 36, 37)
ASSAY_MULTIPLY_GROUP(128, 64, ASSAY_LIST_64, 64, 65, 66, 67, 68, 69)
#undef ASSAY_MULTIPLY_GROUP
#undef ASSAY_LIST_32
#undef ASSAY_LIST_64
#undef ASSAY_SUMS_4
#undef ASSAY_SUMS_16
#undef ASSAY_SUMS_32
#undef ASSAY_SUMS_64

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
