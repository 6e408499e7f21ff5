// swap: SWAP(value, mask) is simd_shuffle_xor in kernels all of whose lanes take part.
//
// On an NVIDIA GPU MSL's functions look first who takes part: a branch that compilers move nothing across.
#pragma once

#ifdef __ASSAY__
#define SWAP(value, mask) ASSAY_SWAP(value, mask)
#else
#define SWAP(value, mask) simd_shuffle_xor(value, mask)
#endif
