// swap: for kernels all of whose lanes take part, always.
//
// SWAP(value, mask) is simd_shuffle_xor, WAIT_FOR_LANES() a simdgroup_barrier that orders threadgroup memory, and
// across KEEP_ORDER() compilers move no access to memory. On an NVIDIA GPU MSL's own functions look first who takes
// part: a branch that compilers move nothing across, and in a loop registers that count its iterations.
#pragma once

#ifdef __ASSAY__
#define SWAP(value, mask) ASSAY_SWAP(value, mask)
#define WAIT_FOR_LANES() ASSAY_WAIT_FOR_LANES()
#define KEEP_ORDER() ASSAY_KEEP_ORDER()
#else
#define SWAP(value, mask) simd_shuffle_xor(value, mask)
#define WAIT_FOR_LANES() simdgroup_barrier(mem_flags::mem_threadgroup)
#define KEEP_ORDER() simdgroup_barrier(mem_flags::mem_none)
#endif
