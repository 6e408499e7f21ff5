/* session: see session.h. */
#include "session.h"

#include <stdio.h>
#include <string.h>

#include "findings.h"
#include "harness/check/validation.h"
#include "runner/model_file.h"

bool session_open_file(session *s, const char *path, err *e) {
    *s = (session){0};
    if (!model_file_find(path, s->path, sizeof s->path, e))
        return false;
    s->file = gguf_open(s->path, e);
    return s->file != NULL;
}

bool session_open_model(session *s, const char *kind, const llama_options *o, err *e) {
    s->device = device_open(kind, e);
    if (!s->device)
        return false;
    s->lib = library_new(s->device, NULL, e);
    if (!s->lib)
        return false;
    s->model = llama_new(s->lib, s->file, o, e);
    return s->model != NULL;
}

void session_close(session *s) {
    llama_free(s->model);
    library_free(s->lib);
    device_close(s->device);
    gguf_free(s->file);
    *s = (session){0};
}

bool session_print_findings(const session *s, FILE *out) {
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

void session_get_title(const session *s, char *text, size_t size) {
    gguf_text name = {0};
    bool found = false;
    const char *slash = strrchr(s->path, '/'), *base = slash ? slash + 1 : s->path;
    if (!gguf_get_text(s->file, "general.name", &name, &found, NULL) || !found || name.bytes == 0 ||
        name.bytes > 80)
        name = (gguf_text){base, strlen(base)};
    snprintf(text, size, "%.*s, %s", (int)name.bytes, name.data, find_main_type(s->file));
}
