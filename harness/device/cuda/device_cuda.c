/* device_cuda: finds an NVIDIA GPU through its driver and says what it is; its memory, and kernels of
 * MSL files as its functions.
 *
 * Shared and private buffers are the same here: plain device memory without a CPU address. A no-copy
 * buffer is a copy after all, made when the GPU first needs it. Managed memory is not used: pages
 * that migrate between CPU and GPU would spoil every time.
 *
 * Copies to the device and fills are queued with the plays. A copy from the device waits for
 * those copies, not for plays that were submitted since: what it reads was written by plays that the
 * caller has waited for. */
#if defined(__linux__)
#define _GNU_SOURCE /* strcasestr */
#endif
#include <assert.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "harness/base/array.h"
#include "sanitizer.h"

/* The driver ----------------------------------------------------------------------------------- */

static const char cannot[] = "the device 'cuda' cannot be used: ";

static bool find_calls(void *opened, cuda_driver *d, err *e) {
    static const struct {
        const char *symbol;
        size_t at;
        bool is_newer;
    } calls[] = {
#define CUDA_CALL(field, symbol, arguments) {#symbol, offsetof(cuda_driver, field), false},
#define CUDA_NEWER_CALL(field, symbol, arguments) {#symbol, offsetof(cuda_driver, field), true},
        CUDA_CALLS(CUDA_CALL) CUDA_NEWER_CALLS(CUDA_NEWER_CALL)
#undef CUDA_CALL
#undef CUDA_NEWER_CALL
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *found = dlsym(opened, calls[i].symbol);
        if (!found && !calls[i].is_newer)
            return err_set(e, EXIT_CANNOT, "%sNVIDIA's driver is too old: it has no %s", cannot,
                           calls[i].symbol);
        memcpy((char *)d + calls[i].at, &found, sizeof found);
    }
    return true;
}

/* Opened once. A driver that does not start is kept open all the same: it may have threads. */
static bool start(cuda_driver *d, err *e) {
    const char *given = getenv("ASSAY_LIBCUDA");
    const char *name = given && *given ? given : "libcuda.so.1";
    void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        return err_set(e, EXIT_CANNOT,
                       "%s%.120s, NVIDIA's driver, is not on this machine; it comes with an "
                       "NVIDIA GPU's driver package",
                       cannot, name);
    if (!find_calls(opened, d, e))
        return false;
    CUresult result = d->init(0);
    int count = 0;
    if (result == CUDA_SUCCESS)
        result = d->device_count(&count);
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0))
        return err_set(e, EXIT_CANNOT, "%sNVIDIA's driver sees no GPU", cannot);
    if (result == CUDA_SUCCESS)
        return true;
    char text[160];
    cuda_describe(d, result, text, sizeof text);
    return err_set(e, EXIT_CANNOT, "%sNVIDIA's driver does not start: %s", cannot, text);
}

const cuda_driver *cuda_find_driver(err *e) {
    static cuda_driver driver;
    static bool is_tried, is_there;
    static err why;
    if (!is_tried)
        is_there = start(&driver, &why);
    is_tried = true;
    if (!is_there && e)
        *e = why;
    return is_there ? &driver : NULL;
}

void cuda_describe(const cuda_driver *d, CUresult what, char *text, size_t size) {
    const char *name = NULL, *sentence = NULL;
    d->error_name(what, &name);
    d->error_text(what, &sentence);
    snprintf(text, size, "%s: %s", name ? name : "an unknown error",
             sentence ? sentence : "the driver does not say what it means");
}

bool cuda_ok(const cuda_driver *d, CUresult what, err *e, const char *doing, ...) {
    if (what == CUDA_SUCCESS)
        return true;
    char text[120], thing[100];
    va_list args;
    va_start(args, doing);
    vsnprintf(thing, sizeof thing, doing, args);
    va_end(args);
    cuda_describe(d, what, text, sizeof text);
    return err_set(e, EXIT_CANNOT, "the GPU does not %s: %s", thing, text);
}

/* Finding one ----------------------------------------------------------------------------------- */

/* The first whose name has `wanted` in it; the error names all that there are. */
static bool pick(cuda_device *c, const char *wanted, char *name, int size, err *e) {
    int count = 0;
    char names[160] = "";
    if (!cuda_ok(c->driver, c->driver->device_count(&count), e, "count GPUs"))
        return false;
    for (int i = 0; i < count; i++) {
        if (!cuda_ok(c->driver, c->driver->device_get(&c->device, i), e, "give GPU %d", i) ||
            !cuda_ok(c->driver, c->driver->device_name(name, size, c->device), e, "tell its name"))
            return false;
        if (strcasestr(name, wanted))
            return true;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
    }
    return err_set(e, EXIT_USAGE, "no CUDA device has '%.60s' in its name; there are: %s", wanted,
                   *names ? names : "none");
}

/* What it is ------------------------------------------------------------------------------------ */

static int ask(const cuda_device *c, int what) {
    int value = 0;
    return c->driver->device_attribute(&value, what, c->device) == CUDA_SUCCESS ? value : 0;
}

static void fill_facts(const cuda_device *c, device_facts *f) {
    enum { FOR_TWO_LAUNCHES = 200 * 1024 }; /* shared memory of both */
    size_t all = 0, available = 0;
    c->driver->device_memory(&all, c->device);
    snprintf(f->compiler, sizeof f->compiler, "%s, %s math", ptx_compiler_get_name(c->compiler),
             math_mode_get_name(f->math));
    f->cores = (uint32_t)ask(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    snprintf(f->family, sizeof f->family, "compute capability %d.%d, %d multiprocessors",
             ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), (int)f->cores);
    f->offers = FEATURE_MATRICES;
    if (ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9 &&
        ask(c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) >= FOR_TWO_LAUNCHES)
        f->offers |= FEATURE_BULK_COPIES;
    if (ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9)
        f->offers |= FEATURE_WARPGROUPS;
    f->memory_bytes = all;
    if (c->driver->memory_info(&available, &all) == CUDA_SUCCESS)
        f->working_set_bytes = available;
    f->max_buffer_bytes = f->memory_bytes;
    f->cache_bytes = (uint64_t)ask(c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    f->simd_width = MSL_LANES;
    f->max_group_threads = (uint32_t)ask(c, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    f->max_threadgroup_bytes = MSL_THREADGROUP_BYTES; /* Metal's: there is more */
    f->validates = f->exact_buffers = f->names_lines = sanitizer_is_watching();
}

/* Opening --------------------------------------------------------------------------------------- */

static void close_device(device *d) {
    cuda_device *c = d->impl;
    const cuda_driver *driver = c->driver;
    if (c->context) {
        driver->context_set(c->context);
        driver->context_wait();
        cuda_free_plays(c);
        if (c->landing)
            driver->pinned_free(c->landing);
        if (c->uploaded)
            driver->event_free(c->uploaded);
        if (c->copies)
            driver->stream_free(c->copies);
        if (c->stream)
            driver->stream_free(c->stream);
        driver->context_set(NULL);
        driver->context_release(c->device);
    }
    ptx_compiler_free(c->compiler);
    finding_free(&c->findings);
    free(c);
}

static bool open_context(cuda_device *c, err *e) {
    const cuda_driver *driver = c->driver;
    CUresult result = driver->context_retain(&c->context, c->device);
    result = CUDA_THEN(result, driver->context_set(c->context));
    result = CUDA_THEN(result, driver->stream_new(&c->stream, CU_STREAM_NON_BLOCKING));
    result = CUDA_THEN(result, driver->stream_new(&c->copies, CU_STREAM_NON_BLOCKING));
    result = CUDA_THEN(result, driver->event_new(&c->uploaded, CU_EVENT_DISABLE_TIMING));
    result = CUDA_THEN(result, driver->event_record(c->uploaded, c->stream));
    result = CUDA_THEN(result, driver->pinned_new(&c->landing, CUDA_LANDING_BYTES, 0));
    return cuda_ok(driver, result, e, "take work");
}

/* Needs a driver that knows such edges and a GPU whose kernels can wait (shim/ptx/start.h). Not
 * while a tool watches, which takes kernels one by one. */
static bool can_overlap(const cuda_device *c, int capability) {
    const char *given = getenv("ASSAY_CUDA_OVERLAP");
    return c->driver->graph_add_edges && capability >= 90 && !sanitizer_is_watching() &&
           !(given && strcmp(given, "0") == 0);
}

static bool open_device(device *d, err *e) {
    const cuda_driver *driver = cuda_find_driver(e);
    if (!driver)
        return false;
    cuda_device *c = array_new(1, sizeof *c);
    c->driver = driver;
    d->impl = c;
    bool ok = pick(c, d->wanted, d->facts.name, sizeof d->facts.name, e);
    if (ok) {
        int capability = 10 * ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         ask(c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        c->overlaps = can_overlap(c, capability);
        c->most_shared = (uint32_t)ask(c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        c->compiler = ptx_compiler_new(capability, e);
        ok = c->compiler && open_context(c, e);
    }
    if (ok)
        fill_facts(c, &d->facts);
    else
        close_device(d);
    return ok;
}

static finding_list *get_findings(const device *d) {
    cuda_device *c = d->impl;
    sanitizer_read_log(&c->findings);
    return &c->findings;
}

/* Memory ---------------------------------------------------------------------------------------- */

typedef struct {
    CUdeviceptr at;
    const void *source; /* no-copy: memory of the caller, copied when it is first used */
    size_t source_bytes;
} cuda_buffer;

static cuda_buffer *get(const buffer *b) {
    return b->impl;
}

static bool allocate(const cuda_device *c, const buffer *b, size_t bytes, CUdeviceptr *at, err *e) {
    CUresult result = c->driver->memory_new(at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return err_set(e, EXIT_CANNOT, "no memory on the GPU for the buffer '%s' of %zu bytes",
                       b->label, b->bytes);
    return cuda_ok(c->driver, result, e, "give memory for the buffer '%s'", b->label);
}

static bool note_upload(const cuda_device *c, CUresult result, const buffer *b, err *e) {
    result = CUDA_THEN(result, c->driver->event_record(c->uploaded, c->stream));
    return cuda_ok(c->driver, result, e, "take a copy to the buffer '%s'", b->label);
}

static bool new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e) {
    cuda_device *c = cuda_enter(b->device);
    cuda_buffer *made = array_new(1, sizeof *made);
    b->impl = made;
    if (no_copy) {
        made->source = no_copy;
        made->source_bytes = allocation_bytes;
        b->is_copy = true;
        b->contents = (void *)(uintptr_t)no_copy;
        return true;
    }
    bool ok = allocate(c, b, allocation_bytes, &made->at, e);
    /* What nothing wrote reads as NaN; where a tool looks for such reads it must stay unwritten. */
    if (ok && !b->device->facts.validates)
        ok = note_upload(
            c, c->driver->fill(made->at, POISON_PATTERN, allocation_bytes / 2, c->stream), b, e);
    if (!ok) {
        if (made->at)
            c->driver->memory_free(made->at);
        free(made);
    }
    return ok;
}

static void free_buffer(buffer *b) {
    cuda_device *c = cuda_enter(b->device);
    if (get(b)->at)
        c->driver->memory_free(get(b)->at);
    free(b->impl);
}

bool cuda_find_address(cuda_device *c, const buffer *b, CUdeviceptr *at, err *e) {
    cuda_buffer *own = get(b);
    if (own->source && !own->at) {
        CUdeviceptr made;
        if (!allocate(c, b, own->source_bytes, &made, e))
            return false;
        if (!note_upload(c, c->driver->copy_in(made, own->source, own->source_bytes, c->stream), b,
                         e)) {
            c->driver->memory_free(made);
            return false;
        }
        own->at = made;
    }
    *at = own->at;
    return true;
}

/* Memory that is not pinned is read, or staged by the driver, before these calls return. */
static bool copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
                 err *e) {
    cuda_device *c = cuda_enter(b->device);
    const cuda_buffer *own = get(b);
    if (bytes == 0)
        return true;
    if (own->source) { /* never written: it is bound to be read */
        memcpy(host, (const char *)own->source + allocation_offset, bytes);
        return true;
    }
    if (to_device)
        return note_upload(
            c, c->driver->copy_in(own->at + allocation_offset, host, bytes, c->stream), b, e);
    void *to = bytes <= CUDA_LANDING_BYTES ? c->landing : host;
    CUresult result = c->driver->stream_wait_for(c->copies, c->uploaded, 0);
    result =
        CUDA_THEN(result, c->driver->copy_out(to, own->at + allocation_offset, bytes, c->copies));
    result = CUDA_THEN(result, c->driver->stream_wait(c->copies));
    if (result == CUDA_SUCCESS && to != host)
        memcpy(host, to, bytes);
    return cuda_ok(c->driver, result, e, "give a copy of the buffer '%s'", b->label);
}

static bool fill(buffer *b, size_t allocation_offset, size_t bytes, uint16_t pattern, err *e) {
    cuda_device *c = cuda_enter(b->device);
    assert(allocation_offset % 2 == 0 && bytes % 2 == 0);
    /* Poison says that nothing was written. A tool that looks for reads of such memory would take
     * it for written. */
    const char *tool = sanitizer_get_tool();
    if (pattern == POISON_PATTERN && tool && strcmp(tool, "initcheck") == 0)
        return true;
    return note_upload(
        c, c->driver->fill(get(b)->at + allocation_offset, pattern, bytes / 2, c->stream), b, e);
}

/* Kernels: clang makes PTX (ptx.c), the driver makes code of it ------------------------------------ */

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
    result =
        CUDA_THEN(result, driver->module_function(&p->function[which], p->module[which], entry));
    result =
        CUDA_THEN(result, driver->function_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                                     p->function[which]));
    if (p->bulk_bytes)
        result =
            CUDA_THEN(result, driver->function_set_attribute(
                                  p->function[which],
                                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)dynamic));
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

static bool new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                         const msl_constant_text *texts, size_t count, err *e) {
    cuda_device *c = cuda_enter(p->device);
    (void)constants;
    char *text = msl_rewrite(unit, p->kernel, texts, count, e);
    char *ptx = text ? ptx_compile(c->compiler, text, p->kernel, p->math, NULL, 0, e) : NULL;
    free(text);
    if (!ptx)
        return false;
    ptx_complete_signature(ptx, msl_find_kernel(unit, p->kernel, NULL), &p->signature);
    p->threadgroup_bytes = ptx_count_shared(ptx);
    cuda_pipeline *made = array_new(1, sizeof *made);
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

static void free_pipeline(pipeline *p) {
    unload(cuda_enter(p->device), p->impl);
}

const device_ops cuda_device_ops = {
    .name = "cuda",
    .open = open_device,
    .close = close_device,
    .new_buffer = new_buffer,
    .free_buffer = free_buffer,
    .copy = copy,
    .fill = fill,
    .new_pipeline = new_pipeline,
    .free_pipeline = free_pipeline,
    .submit = cuda_submit,
    .wait = cuda_wait,
    .get_findings = get_findings,
    .play_sampled = cuda_play_sampled,
    .has_many = true,
};
