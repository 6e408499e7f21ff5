/* device_cuda: finds an NVIDIA GPU through its driver and says what it is. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "sanitizer.h"

/* Finding one ----------------------------------------------------------------------------------- */

static bool has_part(const char *name, const char *part) {
    for (; *name; name++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)name[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return !*part;
}

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
        if (has_part(name, wanted))
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
    if (result == CUDA_SUCCESS)
        result = driver->context_set(c->context);
    if (result == CUDA_SUCCESS)
        result = driver->stream_new(&c->stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = driver->stream_new(&c->copies, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = driver->event_new(&c->uploaded, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = driver->event_record(c->uploaded, c->stream);
    if (result == CUDA_SUCCESS)
        result = driver->pinned_new(&c->landing, CUDA_LANDING_BYTES, 0);
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
    cuda_device *c = calloc(1, sizeof *c);
    assert(c);
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

const device_ops cuda_device_ops = {
    .name = "cuda",
    .open = open_device,
    .close = close_device,
    .new_buffer = cuda_new_buffer,
    .free_buffer = cuda_free_buffer,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .new_pipeline = cuda_new_pipeline,
    .free_pipeline = cuda_free_pipeline,
    .submit = cuda_submit,
    .wait = cuda_wait,
    .get_findings = get_findings,
    .can_sample = cuda_can_sample,
    .play_sampled = cuda_play_sampled,
    .has_many = true,
};
