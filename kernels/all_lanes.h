// all_lanes: exchanges, votes and barriers that all lanes of a simdgroup take part in. A device
// that would look first which of them are there need not.
//
// THREAD_AGAIN(index) is `index`, that of the thread in a threadgroup of one dimension, for a kernel
// whose registers are so scarce that it should not keep it.
#pragma once

#ifdef __ASSAY__
#define EXCHANGE(value, mask) ASSAY_EXCHANGE(value, mask)
#define ANY(condition) ASSAY_ANY(condition)
#define THREAD_AGAIN(index) ASSAY_THREAD_AGAIN(index)
#define TOGETHER() ASSAY_TOGETHER()
#else
#define EXCHANGE(value, mask) simd_shuffle_xor(value, mask)
#define ANY(condition) simd_any(condition)
#define THREAD_AGAIN(index) (index)
#define TOGETHER() simdgroup_barrier(mem_flags::mem_threadgroup)
#endif
