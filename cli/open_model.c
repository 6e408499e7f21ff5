#include "open_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/path.h"
#include "harness/check/suite.h"
#include "harness/device/code_cache.h"
#include "harness/device/validation.h"

bool open_model_file(open_model *s, const char *path, err *e) {
    *s = (open_model){0};
    if (!model_file_find(path, s->path, sizeof s->path, e))
        return false;
    s->file = gguf_open(s->path, e);
    return s->file && model_check_file(s->file, e);
}

static bool watch_compiling(void *context, const char *name) {
    open_model *s = context;
    bool on_terminal = isatty(STDERR_FILENO);
    if (name) {
        if (s->tells_of_kernels && on_terminal)
            fprintf(stderr, "\rpreparing kernels: %zu done, now %s\033[K", s->kernels, name);
        return !s->goes_on || s->goes_on(NULL);
    }
    s->kernels++;
    if (s->tells_of_kernels || !cache_room_has_compiled())
        return true;
    if (!on_terminal)
        fputs("compiling kernels, which only the first run has to\n", stderr);
    return s->tells_of_kernels = true;
}

void open_model_end_compiling(open_model *s) {
    size_t count;
    double seconds;
    cache_room_end_log(&count, &seconds);
    if (count > 0)
        fprintf(stderr, "%scompiled %zu kernel%s in %.1f s; the next run finds %s in the cache\n",
                isatty(STDERR_FILENO) ? "\r\033[K" : "", count, count == 1 ? "" : "s", seconds,
                count == 1 ? "it" : "them");
    s->tells_of_kernels = false;
}

bool open_model_set_threads(uint64_t count, err *e) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, count);
    return count == 0 || verb_set_environment("ASSAY_THREADS", text, e);
}

bool open_model_device(open_model *s, const char *kind, err *e) {
    s->device = device_open(kind, e);
    if (!s->device)
        return false;
    s->lib = library_new(s->device, NULL, e);
    if (!s->lib)
        return false;
    cache_room_start_log();
    library_set_watch(s->lib, watch_compiling, s);
    return true;
}

bool open_model_find_cache(const char *kv, const weight_format **out, err *e) {
    bool is_half = kv && strcmp(kv, "f16") == 0;
    *out = is_half ? &format_f16 : NULL;
    return is_half || !kv || strcmp(kv, "f32") == 0 ||
           err_set(e, EXIT_USAGE, "--kv takes f32 or f16, not '%.40s'", kv);
}

bool open_model_on(open_model *s, const char *kind, const model_options *o, err *e) {
    model_options how = *o;
    if (!s->lib && !open_model_device(s, kind, e))
        return false;
    if (!tuned_open(s->lib, &s->tuned, e))
        return false;
    how.tuned = s->tuned;
    s->model = model_new(s->lib, s->file, &how, e);
    return s->model != NULL;
}

void open_model_close(open_model *s) {
    open_model_end_compiling(s);
    model_free(s->model);
    tuned_free(s->tuned);
    library_free(s->lib);
    device_close(s->device);
    gguf_free(s->file);
    *s = (open_model){0};
}

bool open_model_print_findings(const open_model *s, FILE *out) {
    enum { SHOWN = 20 };
    const finding_list *found = device_get_findings(s->device);
    findings_print(out, found, SHOWN);
    return finding_count_failing(found, validation_is_strict()) == 0;
}

/* The type with the most bytes. */
static const char *find_main_type(const gguf *g) {
    const char *best = "no tensors";
    uint64_t most = 0;
    for (size_t i = 0; i < g->tensor_count; i++) {
        uint64_t bytes = 0;
        for (size_t j = i; j < g->tensor_count; j++)
            if (g->tensors[j].type == g->tensors[i].type)
                bytes += g->tensors[j].bytes;
        if (bytes > most) {
            most = bytes;
            best = g->tensors[i].type->name;
        }
    }
    return best;
}

void open_model_get_title(const open_model *s, char *text, size_t size) {
    gguf_text name = {0};
    bool found = false;
    const char *base = path_get_name(s->path);
    if (!gguf_get_text(s->file, "general.name", &name, &found, NULL) || !found || name.bytes == 0 ||
        name.bytes > 80)
        name = (gguf_text){base, strlen(base)};
    snprintf(text, size, "%.*s, %s", (int)name.bytes, name.data, find_main_type(s->file));
}
