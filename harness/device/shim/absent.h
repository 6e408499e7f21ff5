// absent: what kernels ask for and not every device has (begin.h and product.h of ptx/). Where it
// says false, a kernel has another way: it compiles both. msl/strict/metal.h includes it too.
#pragma once
#pragma clang system_header

#ifndef ASSAY_EARLY_LOADS // kernels/prefetch.h: only where launches begin early
#define ASSAY_EARLY_LOADS(buffers) ((void)0)
#define ASSAY_EARLY_ROWS(buffers) ((void)0)
#endif

#ifndef ASSAY_HAS_16X8X32 // kernels/product/skinny.h
#define ASSAY_HAS_16X8X32 false
#define ASSAY_MULTIPLY_16X8X32(w, x, sums) ((void)0)
#endif

#ifndef ASSAY_SWAP // kernels/swap.h
#define ASSAY_SWAP(value, mask) metal::simd_shuffle_xor(value, mask)
#define ASSAY_WAIT_FOR_LANES() metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup)
#define ASSAY_KEEP_ORDER() metal::simdgroup_barrier(metal::mem_flags::mem_none)
#endif

#ifndef ASSAY_MULTIPLIES_BYTES // kernels/bytes.h
#define ASSAY_MULTIPLIES_BYTES false
#endif
#ifndef ASSAY_SIXTEEN_BYTES
#define ASSAY_SIXTEEN_BYTES uint4
#define ASSAY_UNSET
#endif

#ifndef ASSAY_EIGHT_FLOATS // kernels/eight.h
#define ASSAY_EIGHT_FLOATS pair_of<float4>
#define ASSAY_EIGHT_INTS pair_of<int4>
#define ASSAY_FOUR_FLOATS const float *
#define ASSAY_LOAD_AHEAD(at)
#endif
