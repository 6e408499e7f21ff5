/* limits: the limits that Metal sets on a compute kernel, in C and in C++. */
#pragma once

enum {
    MSL_LANES = 32,                /* of a simdgroup on Apple GPUs */
    MSL_MAX_THREADS = 1024,        /* per threadgroup */
    MSL_BUFFERS = 31,              /* buffer indices 0..30 */
    MSL_THREADGROUPS = 8,          /* [[threadgroup(n)]] indices that we support */
    MSL_THREADGROUP_BYTES = 32768, /* of threadgroup memory per threadgroup */
    MSL_STATIC_SLOTS = 1024,       /* threadgroup variables per file that we support */
};
