// absent: what kernels ask for and not every device has (begin.h, exchange.h, product.h and near.h
// of ptx/). Where it says false, a kernel has another way: it compiles both. msl/strict/metal.h
// includes it too.
#pragma once
#pragma clang system_header

#ifndef ASSAY_EARLY_LOADS // kernels/early.h: only where launches begin early
#define ASSAY_EARLY_LOADS(buffers) ((void)0)
#define ASSAY_EARLY_NEXT() ((void)0)
#define ASSAY_EARLY_COPIES(buffers) ((void)0)
#define ASSAY_EARLY_ROWS(buffers) ((void)0)
#endif

#ifndef ASSAY_HAS_16X8X32 // kernels/few.h
#define ASSAY_HAS_16X8X32 false
#define ASSAY_MULTIPLY_16X8X32(w, x, sums) ((void)0)
#endif

#ifndef ASSAY_HAS_HALVES_16X8X16 // kernels/halves.h
#define ASSAY_HAS_HALVES_16X8X16 false
#define ASSAY_MULTIPLY_HALVES_16X8X16(a, b, sums) ((void)0)
#define ASSAY_PACK_HALVES(lower, upper) 0u
#define ASSAY_LARGER_HALVES(a, b) 0u
#endif

#ifndef ASSAY_HAS_BYTES_16X8X32 // kernels/bytes.h
#define ASSAY_HAS_BYTES_16X8X32 false
#define ASSAY_MULTIPLY_BYTES_16X8X32(a, b, sums) ((void)0)
#define ASSAY_PERMUTE(a, b, selector) 0u
#endif

#ifndef ASSAY_EXCHANGE // kernels/all_lanes.h
#define ASSAY_EXCHANGE(value, mask) simd_shuffle_xor(value, mask)
#define ASSAY_ANY(condition) simd_any(condition)
#define ASSAY_THREAD_AGAIN(index) (index)
#define ASSAY_TOGETHER() simdgroup_barrier(mem_flags::mem_threadgroup)
#endif

#ifndef ASSAY_HAS_NEAR // kernels/near.h
#define ASSAY_HAS_NEAR false
#define ASSAY_NEAR_MEMORY(bytes) nullptr
#define ASSAY_NEAR_BEGIN() ((void)0)
#define ASSAY_NEAR_EXPECT(bytes) ((void)0)
#define ASSAY_NEAR_COPY(to, from, bytes) ((void)0)
#define ASSAY_NEAR_PREFETCH(from, bytes) ((void)0)
#define ASSAY_NEAR_FETCH(to, from) ((void)0)
#define ASSAY_NEAR_FETCH_WAIT() ((void)0)
#define ASSAY_NEAR_PAUSE(clocks, flag) ((void)0)
#define ASSAY_NEAR_WAIT() ((void)0)
#define ASSAY_PARTNERS 1
#define ASSAY_PARTNERS_BEGIN(bytes) ((void)0)
#define ASSAY_PARTNERS_ARRIVE() ((void)0)
#define ASSAY_PARTNERS_MEET() ((void)0)
#define ASSAY_PARTNERS_SEND(to, value, partner) ((void)0)
#define ASSAY_PARTNERS_WAIT() ((void)0)
#endif
