/* models: see models.h. */
#include "models.h"

#include <assert.h>
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/os.h"
#include "runner/gguf/synth.h"
#include "support.h"

enum { MOST = 64 };

static char folder[512];
static library *kernels; /* the project's own */
static gguf *files[MOST];
static model *models[MOST];
static float *logits[MOST];
static size_t file_count, model_count, logit_count;

static void forget(void *unused) {
    (void)unused;
    while (logit_count > 0)
        free(logits[--logit_count]);
    while (model_count > 0)
        model_free(models[--model_count]);
    while (file_count > 0)
        gguf_free(files[--file_count]);
}

bool models_begin(err *e) {
    device *d = support_get_device();
    SET_TEARDOWN(forget, NULL);
    kernels = d ? library_new(d, NULL, e) : NULL;
    return kernels && os_make_scratch(folder, sizeof folder, e);
}

void models_end(void) {
    os_remove_folder(folder);
    library_free(kernels);
}

library *models_get_library(void) {
    return kernels;
}

const char *models_get_path(const char *name) {
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

gguf *models_keep(gguf *g) {
    assert(file_count < MOST);
    return g ? files[file_count++] = g : NULL;
}

gguf *models_make(const char *size, const char *type, uint64_t seed, err *e) {
    char name[128];
    snprintf(name, sizeof name, "%s-%s-%d.gguf", size, type, (int)seed);
    const char *path = models_get_path(name);
    for (size_t i = 0; i < file_count; i++)
        if (strcmp(files[i]->path, path) == 0)
            return files[i];
    const synth_options o = {.seed = seed, .type = gguf_find_type_name(type)};
    const synth_shape *s = synth_find_shape(size, e);
    return s && synth_write_model(s, path, &o, e) ? models_keep(gguf_open(path, e)) : NULL;
}

model *models_open(const gguf *g, const model_options *o, err *e) {
    assert(model_count < MOST);
    model *m = g ? model_new(kernels, g, o, e) : NULL;
    return m ? models[model_count++] = m : NULL;
}

float *models_new_logits(const model *m) {
    assert(logit_count < MOST);
    float *made = calloc(model_get_shape(m)->vocab, sizeof *made);
    assert(made);
    return logits[logit_count++] = made;
}
