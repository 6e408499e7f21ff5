/* driver: the calls about the device, its memory and its modules. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static memory *memories;
CUresult double_fault;
static int references;

/* Memory ---------------------------------------------------------------------------------------- */

bool double_has_memory(const void *at, size_t bytes) {
    for (memory *m = memories; m; m = m->next)
        if ((const uint8_t *)at >= m->at && bytes <= m->bytes &&
            (size_t)((const uint8_t *)at - m->at) <= m->bytes - bytes)
            return true;
    return false;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    memory *m = calloc(1, sizeof *m);
    void *room = NULL;
    assert(m);
    if (double_fault || bytes == 0 || posix_memalign(&room, 512, bytes + 512) != 0) {
        free(m);
        return double_fault ? double_fault : CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(room, 0x5A, bytes);
    *m = (memory){memories, room, bytes};
    memories = m;
    *at = (CUdeviceptr)(uintptr_t)room;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned int flags) {
    (void)flags;
    *at = malloc(bytes);
    return *at ? double_fault : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *at) {
    free(at);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr at) {
    double_run_all();
    for (memory **m = &memories; *m; m = &(*m)->next)
        if ((*m)->at == (uint8_t *)(uintptr_t)at) {
            memory *gone = *m;
            *m = gone->next;
            free(gone->at);
            free(gone);
            return double_fault;
        }
    return 1;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    *available = *total = (size_t)4 << 30;
    return CUDA_SUCCESS;
}

/* Modules --------------------------------------------------------------------------------------- */

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned int count, int *options,
                            void **values) {
    char log[256] = "";
    ptx_program *p = ptx_parse(image, log, sizeof log);
    char *to = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            to = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (!p) {
        if (to && size)
            snprintf(to, size, "%s", log);
        return CUDA_ERROR_INVALID_PTX;
    }
    *m = calloc(1, sizeof **m);
    assert(*m);
    (*m)->program = p;
    return double_fault;
}

/* Functions are as small as modules, and live as long. */
static struct CUfunc_st *functions[65536];
static size_t function_count;

CUresult cuModuleUnload(CUmodule m) {
    double_run_all();
    for (size_t i = 0; i < function_count; i++)
        if (functions[i] && functions[i]->module == m) {
            free(functions[i]);
            functions[i] = NULL;
        }
    ptx_free(m->program);
    free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    if (strcmp(name, m->program->entry) != 0)
        return 500;
    *f = calloc(1, sizeof **f);
    assert(*f && function_count < sizeof functions / sizeof *functions);
    (*f)->module = m;
    size_t used = m->program->shared_bytes;
    (*f)->max_dynamic_bytes = used < USUAL_SHARED_BYTES ? USUAL_SHARED_BYTES - used : 0;
    functions[function_count++] = *f;
    return double_fault;
}

/* ASSAY_DOUBLE_THREADS: what a function claims to bear, for kernels with many registers. */
CUresult cuFuncGetAttribute(int *value, int what, CUfunction f) {
    const char *given = getenv("ASSAY_DOUBLE_THREADS");
    *value = what == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? given ? atoi(given) : 1024
             : what == MAX_DYNAMIC_BYTES                     ? (int)f->max_dynamic_bytes
                                         : (int)f->module->program->shared_bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, int what, int value) {
    if (what != MAX_DYNAMIC_BYTES || value < 0 ||
        f->module->program->shared_bytes + (size_t)value > MOST_SHARED_BYTES)
        return 1;
    f->max_dynamic_bytes = (size_t)value;
    return double_fault;
}

/* The device ------------------------------------------------------------------------------------ */

CUresult cuInit(unsigned int flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult what, const char **name) {
    *name = what == CUDA_ERROR_ILLEGAL_ADDRESS       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : what == CUDA_ERROR_MISALIGNED_ADDRESS  ? "CUDA_ERROR_MISALIGNED_ADDRESS"
            : what == CUDA_ERROR_LAUNCH_TIMEOUT      ? "CUDA_ERROR_LAUNCH_TIMEOUT"
            : what == CUDA_ERROR_LAUNCH_FAILED       ? "CUDA_ERROR_LAUNCH_FAILED"
            : what == CUDA_ERROR_INVALID_PTX         ? "CUDA_ERROR_INVALID_PTX"
            : what == CUDA_ERROR_OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
            : what == CUDA_ERROR_ILLEGAL_INSTRUCTION ? "CUDA_ERROR_ILLEGAL_INSTRUCTION"
                                                     : "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult what, const char **text) {
    (void)what;
    *text = "as the double has it";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int index) {
    *d = index;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice d) {
    (void)d;
    snprintf(name, (size_t)size, "CUDA double");
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
    (void)d;
    *bytes = (size_t)4 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int what, CUdevice d) {
    (void)d;
    *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
             : what == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
             : what == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 1 << 20
             : what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 6
             : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR ? 233472
             : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN    ? 232448
                                                                    : 1;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    (void)d;
    references++;
    *c = (CUcontext)&references;
    return double_fault;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    (void)d;
    if (--references == 0)
        double_fault = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c) {
    (void)c;
    return double_fault;
}
