/* pipeline_cuda: a kernel of an MSL file as a function of the GPU. clang makes PTX (ptx.c), the
 * driver makes code of it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum { ALL_REGISTERS = 65536, REGISTER_STEP = 8 }; /* what the threads of a threadgroup share */

/* limit: registers for a thread; 0: as many as the driver likes. dynamic: bytes of shared memory that
 * launches may ask for, if there are bulk copies. */
static bool load(cuda_device *c, cuda_pipeline *p, int which, const char *ptx, uintptr_t limit,
                 uint32_t dynamic, const char *kernel, err *e) {
    char log[2048] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                     CU_JIT_GENERATE_LINE_INFO, CU_JIT_MAX_REGISTERS};
    void *values[] = {log, (void *)sizeof log, (void *)(uintptr_t)1, (void *)limit};
    const cuda_driver *driver = c->driver;
    CUresult result = driver->module_load(&p->module[which], ptx, limit ? 4 : 3, options, values);
    if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        return err_set(
            e, EXIT_CANNOT,
            "NVIDIA's driver is too old for the code of kernel '%.80s'; it must know PTX "
            "%s, as those since CUDA %s do",
            kernel, p->bulk_bytes ? "8.1" : "7.8", p->bulk_bytes ? "12.1" : "11.8");
    int most = 0;
    char entry[160];
    ptx_name_entry(kernel, entry, sizeof entry);
    if (result == CUDA_SUCCESS)
        result = driver->module_function(&p->function[which], p->module[which], entry);
    if (result == CUDA_SUCCESS)
        result = driver->function_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                            p->function[which]);
    if (result == CUDA_SUCCESS && p->bulk_bytes)
        result = driver->function_set_attribute(
            p->function[which], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)dynamic);
    p->most_threads[which] = (uint32_t)most;
    if (result != CUDA_SUCCESS && log[0]) {
        err_set(e, EXIT_CANNOT, "NVIDIA's driver rejects kernel '%.80s': %.*s", kernel,
                (int)strcspn(log, "\n"), log);
        return err_set_detail(e, log);
    }
    return cuda_ok(driver, result, e, "load kernel '%.80s'", kernel);
}

static void unload(cuda_device *c, cuda_pipeline *p) {
    for (int i = 0; i < 2; i++)
        if (p->module[i])
            c->driver->module_unload(p->module[i]);
    free(p);
}

static bool load_all(cuda_device *c, const pipeline *p, const char *ptx, cuda_pipeline *made,
                     err *e) {
    /* Refused when it is launched, as Metal refuses it; the driver might not load it at all. */
    if (p->threadgroup_bytes > p->device->facts.max_threadgroup_bytes)
        return true;
    uint32_t need = p->threadgroup_bytes + made->bulk_bytes;
    if (made->bulk_bytes && need > c->most_shared)
        return err_set(e, EXIT_CANNOT,
                       "kernel '%.80s' needs %u bytes of shared memory; this GPU has %u for a "
                       "threadgroup",
                       p->kernel, need, c->most_shared);
    uint32_t most = made->bulk_bytes + MSL_THREADGROUP_BYTES,
             dynamic = (most < c->most_shared ? most : c->most_shared) - p->threadgroup_bytes;
    if (!load(c, made, 0, ptx, 0, dynamic, p->kernel, e))
        return false;
    uint32_t share = ALL_REGISTERS / p->max_group_threads;
    return made->most_threads[0] >= p->max_group_threads ||
           load(c, made, 1, ptx, share - share % REGISTER_STEP, dynamic, p->kernel, e);
}

bool cuda_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                       size_t count, err *e) {
    cuda_device *c = cuda_enter(p->device);
    msl_constant_text *texts = calloc(count + 1, sizeof *texts);
    assert(texts);
    for (size_t i = 0; i < count; i++)
        constant_spell(&constants[i], &texts[i]);
    char *text = msl_specialise(unit, p->kernel, texts, count, &p->signature, e)
                     ? msl_rewrite(unit, p->kernel, texts, count, e)
                     : NULL;
    free(texts);
    char *ptx = text ? ptx_compile(c->compiler, text, p->kernel, p->math, NULL, 0, e) : NULL;
    free(text);
    if (!ptx)
        return false;
    ptx_complete_signature(ptx, msl_find_kernel(unit, p->kernel, NULL), &p->signature);
    p->threadgroup_bytes = ptx_count_shared(ptx);
    if (p->signature.max_total_threads && p->signature.max_total_threads < p->max_group_threads)
        p->max_group_threads = p->signature.max_total_threads;
    cuda_pipeline *made = calloc(1, sizeof *made);
    assert(made);
    made->bulk_bytes = ptx_count_bulk(ptx);
    made->cluster = ptx_count_cluster(ptx);
    made->has_early_loads = ptx_find_early_loads(ptx, &made->early, &made->early_rows);
    for (size_t i = 0; i < p->signature.count; i++)
        if (p->signature.params[i].kind == MSL_BUFFER && cuda_is_value(&p->signature.params[i]))
            made->early |= 1u << p->signature.params[i].index;
    bool ok = load_all(c, p, ptx, made, e);
    free(ptx);
    if (ok)
        p->impl = made;
    else
        unload(c, made);
    return ok;
}

void cuda_free_pipeline(pipeline *p) {
    unload(cuda_enter(p->device), p->impl);
}
