/* driver: the calls of NVIDIA's driver that the CUDA device uses, opened at run time.
 *
 * Names, types and numbers are those of NVIDIA's cuda.h; calls that have been revised are named with
 * the revision whose types stand here, so that every driver since CUDA 11.8 serves them. No header of
 * NVIDIA's is needed to build, and where there is no driver the program runs without this device. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

    CU_JIT_MAX_REGISTERS = 0,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_GENERATE_LINE_INFO = 13,

    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,

    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
};

/* X(field, symbol, arguments) */
#define CUDA_CALLS(X)                                                                              \
    X(init, cuInit, (unsigned int flags))                                                          \
    X(error_name, cuGetErrorName, (CUresult what, const char **name))                              \
    X(error_text, cuGetErrorString, (CUresult what, const char **text))                            \
    X(device_count, cuDeviceGetCount, (int *count))                                                \
    X(device_get, cuDeviceGet, (CUdevice * device, int index))                                     \
    X(device_name, cuDeviceGetName, (char *name, int size, CUdevice device))                       \
    X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                       \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int what, CUdevice device))             \
    X(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))            \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                            \
    X(context_set, cuCtxSetCurrent, (CUcontext context))                                           \
    X(context_wait, cuCtxSynchronize, (void))                                                      \
    X(memory_info, cuMemGetInfo_v2, (size_t * available, size_t * total))                          \
    X(memory_new, cuMemAlloc_v2, (CUdeviceptr * at, size_t bytes))                                 \
    X(memory_free, cuMemFree_v2, (CUdeviceptr at))                                                 \
    X(pinned_new, cuMemHostAlloc, (void **at, size_t bytes, unsigned int flags))                   \
    X(pinned_free, cuMemFreeHost, (void *at))                                                      \
    X(copy_in, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream s)) \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream s))      \
    X(fill, cuMemsetD16Async, (CUdeviceptr at, unsigned short word, size_t count, CUstream s))     \
    X(module_load, cuModuleLoadDataEx,                                                             \
      (CUmodule * module, const void *image, unsigned int count, int *options, void **values))     \
    X(module_unload, cuModuleUnload, (CUmodule module))                                            \
    X(module_function, cuModuleGetFunction,                                                        \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(function_attribute, cuFuncGetAttribute, (int *value, int what, CUfunction function))         \
    X(function_set_attribute, cuFuncSetAttribute, (CUfunction function, int what, int value))      \
    X(stream_new, cuStreamCreate, (CUstream * stream, unsigned int flags))                         \
    X(stream_free, cuStreamDestroy_v2, (CUstream stream))                                          \
    X(stream_wait, cuStreamSynchronize, (CUstream stream))                                         \
    X(stream_wait_for, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))    \
    X(event_new, cuEventCreate, (CUevent * event, unsigned int flags))                             \
    X(event_free, cuEventDestroy_v2, (CUevent event))                                              \
    X(event_record, cuEventRecord, (CUevent event, CUstream stream))                               \
    X(event_wait, cuEventSynchronize, (CUevent event))                                             \
    X(event_elapsed, cuEventElapsedTime, (float *ms, CUevent start, CUevent end))                  \
    X(graph_new, cuGraphCreate, (CUgraph * graph, unsigned int flags))                             \
    X(graph_free, cuGraphDestroy, (CUgraph graph))                                                 \
    X(graph_add_kernel, cuGraphAddKernelNode,                                                      \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,                  \
       const CUDA_KERNEL_NODE_PARAMS *what))                                                       \
    X(graph_add_event, cuGraphAddEventRecordNode,                                                  \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUevent event))  \
    X(graph_add_empty, cuGraphAddEmptyNode,                                                        \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count))                 \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (CUgraphExec * made, CUgraph graph, unsigned long long flags))                               \
    X(graph_set_kernel, cuGraphExecKernelNodeSetParams,                                            \
      (CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what))                  \
    X(graph_set_event, cuGraphExecEventRecordNodeSetEvent,                                         \
      (CUgraphExec graph, CUgraphNode node, CUevent event))                                        \
    X(graph_launch, cuGraphLaunch, (CUgraphExec graph, CUstream stream))                           \
    X(graph_drop, cuGraphExecDestroy, (CUgraphExec graph))

/* Calls that a driver may lack: NULL then. Edges of a kind of their own came with CUDA 12.3. */
#define CUDA_NEWER_CALLS(X)                                                                        \
    X(graph_add_edges, cuGraphAddDependencies_v2,                                                  \
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, \
       size_t count))

typedef struct {
#define CUDA_FIELD(field, symbol, arguments) CUresult(*field) arguments;
    CUDA_CALLS(CUDA_FIELD)
    CUDA_NEWER_CALLS(CUDA_FIELD)
#undef CUDA_FIELD
} cuda_driver;

/* The driver, opened and started at first use and kept; NULL with the reason where it cannot be.
 * ASSAY_LIBCUDA names another library than libcuda.so.1. */
const cuda_driver *cuda_find_driver(err *e);

/* "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" */
void cuda_describe(const cuda_driver *d, CUresult what, char *text, size_t size);

/* True for success; else e says what was being done ("copy to the buffer 'x'") and what came. */
bool cuda_ok(const cuda_driver *d, CUresult what, err *e, const char *doing, ...)
    __attribute__((format(printf, 4, 5)));
