/* ptx_trial: see ptx_trial.h. */
#include "ptx_trial.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

enum { MAX_DYNAMIC_BYTES = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static const cuda_driver *driver;
static bool is_double;

void ptx_trial_begin(void) {
    char name[64] = "";
    if (strncmp(support_get_device_name(), "cuda", 4) == 0)
        driver = cuda_find_driver(NULL);
    if (driver)
        driver->device_name(name, (int)sizeof name, 0);
    is_double = strcmp(name, "CUDA double") == 0;
}

bool ptx_trial_has_driver(void) {
    return driver != NULL;
}

bool ptx_trial_is_double(void) {
    return is_double;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (!result)                                                                               \
            result = call;                                                                         \
    } while (0)

static CUresult run_on(const trial *t, CUmodule module, CUstream stream, CUdeviceptr memory) {
    CUfunction function = NULL;
    CUgraph graph = NULL;
    CUgraphNode node;
    CUgraphExec made = NULL;
    struct {
        CUdeviceptr memory;
        uint32_t given[2];
    } params = {memory, {t->given[0], t->given[1]}};
    CUresult result = driver->module_function(&function, module, "trial");
    if (t->granted)
        TRY(driver->function_set_attribute(function, MAX_DYNAMIC_BYTES, (int)t->granted));
    CUDA_KERNEL_NODE_PARAMS what = {.func = function,
                                    .gridDimX = t->blocks ? t->blocks : 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = t->threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = t->dynamic_bytes,
                                    .kernelParams = (void *[]){&params}};
    TRY(driver->graph_new(&graph, 0));
    TRY(driver->graph_add_kernel(&node, graph, NULL, 0, &what));
    TRY(driver->graph_instantiate(&made, graph, 0));
    TRY(driver->copy_in(memory, t->data, t->words * sizeof *t->data, stream));
    TRY(driver->graph_launch(made, stream));
    TRY(driver->copy_out(t->data, memory, t->words * sizeof *t->data, stream));
    TRY(driver->stream_wait(stream));
    if (made)
        driver->graph_drop(made);
    if (graph)
        driver->graph_free(graph);
    return result;
}

/* In a context of its own: a fault ends with it. */
CUresult ptx_trial_run(const trial *t) {
    char log[256] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUresult result = driver->context_retain(&context, 0);
    TRY(driver->context_set(context));
    TRY(driver->module_load(&module, t->ptx, 2, options, values));
    TRY(driver->stream_new(&stream, CU_STREAM_NON_BLOCKING));
    TRY(driver->memory_new(&memory, t->words * sizeof *t->data));
    if (!result)
        result = run_on(t, module, stream, memory);
    if (log[0])
        fprintf(stderr, "%s\n", log);
    if (memory)
        driver->memory_free(memory);
    if (stream)
        driver->stream_free(stream);
    if (module)
        driver->module_unload(module);
    driver->context_release(0);
    return result;
}
