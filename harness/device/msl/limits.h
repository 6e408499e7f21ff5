/* limits: the limits that Metal sets on a compute kernel, and the kinds of its parameters, in C and in
 * C++. */
#pragma once

enum {
    MSL_LANES = 32,                /* of a simdgroup on Apple GPUs */
    MSL_MAX_THREADS = 1024,        /* per threadgroup */
    MSL_BUFFERS = 31,              /* buffer indices 0..30 */
    MSL_THREADGROUPS = 8,          /* [[threadgroup(n)]] indices that we support */
    MSL_THREADGROUP_BYTES = 32768, /* of threadgroup memory per threadgroup */
    MSL_STATIC_SLOTS = 1024,       /* threadgroup variables per file that we support */
};

/* What a parameter of a kernel is: X(NAME, attribute of MSL). The first two are memory, bound by index:
 * a device or constant pointer or reference, and a threadgroup pointer whose length the launch gives. */
#define MSL_KINDS(X)                                                                               \
    X(BUFFER, buffer)                                                                              \
    X(THREADGROUP, threadgroup)                                                                    \
    X(THREAD_POSITION_IN_GRID, thread_position_in_grid)                                            \
    X(THREAD_POSITION_IN_THREADGROUP, thread_position_in_threadgroup)                              \
    X(THREADGROUP_POSITION_IN_GRID, threadgroup_position_in_grid)                                  \
    X(THREADS_PER_THREADGROUP, threads_per_threadgroup)                                            \
    X(DISPATCH_THREADS_PER_THREADGROUP, dispatch_threads_per_threadgroup)                          \
    X(THREADGROUPS_PER_GRID, threadgroups_per_grid)                                                \
    X(THREADS_PER_GRID, threads_per_grid)                                                          \
    X(THREAD_INDEX_IN_THREADGROUP, thread_index_in_threadgroup)                                    \
    X(SIMDGROUP_INDEX_IN_THREADGROUP, simdgroup_index_in_threadgroup)                              \
    X(THREAD_INDEX_IN_SIMDGROUP, thread_index_in_simdgroup)                                        \
    X(THREADS_PER_SIMDGROUP, threads_per_simdgroup)                                                \
    X(SIMDGROUPS_PER_THREADGROUP, simdgroups_per_threadgroup)                                      \
    X(DISPATCH_SIMDGROUPS_PER_THREADGROUP, dispatch_simdgroups_per_threadgroup)                    \
    X(THREAD_INDEX_IN_QUADGROUP, thread_index_in_quadgroup)                                        \
    X(QUADGROUP_INDEX_IN_THREADGROUP, quadgroup_index_in_threadgroup)                              \
    X(QUADGROUPS_PER_THREADGROUP, quadgroups_per_threadgroup)                                      \
    X(GRID_ORIGIN, grid_origin)                                                                    \
    X(GRID_SIZE, grid_size)
