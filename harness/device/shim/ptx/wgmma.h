// wgmma: products of the four warps of a warpgroup by tensor cores, asynchronous, with one matrix in
// registers and the other in shared memory (wgmma.mma_async).
//
// Only GPUs of compute capability 9.0 have them: the host makes the target of such PTX sm_90a.
#pragma once
#pragma clang system_header

#if __CUDA_ARCH__ >= 900

namespace cuda {

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
template <bool adds>
METAL_FUNC void multiply_group(float (&d)[4], const uint (&a)[4], ulong b) {
    __asm__ volatile("{ .reg .pred adds; setp.ne.b32 adds, %9, 0; "
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {"
            "%0, %1, %2, %3"
            "}, {%4, %5, %6, %7}, %8, adds, 1, 1, 0; }"
            : ASSAY_SUMS_4(d, 0)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(adds ? 1 : 0)
            : "memory");
}

template <bool adds>
METAL_FUNC void multiply_group(float (&d)[32], const uint (&a)[4], ulong b) {
    __asm__ volatile("{ .reg .pred adds; setp.ne.b32 adds, %37, 0; "
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
            "}, {%32, %33, %34, %35}, %36, adds, 1, 1, 0; }"
            : ASSAY_SUMS_32(d, 0)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(adds ? 1 : 0)
            : "memory");
}

template <bool adds>
METAL_FUNC void multiply_group(float (&d)[64], const uint (&a)[4], ulong b) {
    __asm__ volatile("{ .reg .pred adds; setp.ne.b32 adds, %69, 0; "
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
            "}, {%64, %65, %66, %67}, %68, adds, 1, 1, 0; }"
            : ASSAY_SUMS_64(d, 0)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(adds ? 1 : 0)
            : "memory");
}

#undef ASSAY_SUMS_4
#undef ASSAY_SUMS_16
#undef ASSAY_SUMS_32
#undef ASSAY_SUMS_64

} // namespace cuda

#endif
