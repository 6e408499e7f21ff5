/* abi: the argument of every kernel that is compiled for NVIDIA GPUs, in C and in C++.
 *
 * One struct, so that a launch changes by changing bytes. A slot is what is bound to a buffer index:
 * an address in device memory, or, where its bit in `values` is set, a small constant itself. */
#pragma once

#include "../msl/limits.h"

enum {
    CUDA_VALUE_BYTES = 8,     /* constants up to this size travel in their slot */
    CUDA_MOST_GROUPS = 65535, /* along y and z, where the hardware counts them */

    /* flags */
    CUDA_EDGES = 1,  /* dispatchThreads with groups at the edge that are smaller */
    CUDA_LINEAR = 2, /* too many groups along y or z: they are numbered along x */
    CUDA_EARLY = 4,  /* the kernel may load what it loads early before launches before it end */
};

typedef struct {
    void *slot[MSL_BUFFERS];
    unsigned int values; /* bit i: slot i is a value, not an address */
    unsigned int flags;
    unsigned int grid_threads[3];              /* threads_per_grid */
    unsigned int grid_groups[3];               /* threadgroups_per_grid */
    unsigned int dynamic_at[MSL_THREADGROUPS]; /* offsets of threadgroup memory */
} cuda_arguments;
