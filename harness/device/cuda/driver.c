#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char cannot[] = "the device 'cuda' cannot be used: ";

static bool find_calls(void *library, cuda_driver *d, err *e) {
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
        void *found = dlsym(library, calls[i].symbol);
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
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(e, EXIT_CANNOT,
                       "%s%.120s, NVIDIA's driver, is not on this machine; it comes with an "
                       "NVIDIA GPU's driver package",
                       cannot, name);
    if (!find_calls(library, d, e))
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
