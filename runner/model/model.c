/* model: see model.h. Owns its parts; build.c makes what families are built of, play.c
 * records and plays its tapes, state.c goes back in time. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "runner/llama/llama.h"
#include "runner/rwkv7/rwkv7.h"

/* Tokens of a prompt that go together: enough to share each decoded weight among eight and to fill
 * a GPU; more only takes memory. */
enum { TILE_EMULATED = 64, TILE_GPU = 512 };

/* --- which family, which file --- */

static const model_family *const families[] = {&llama_family, &rwkv7_family};
enum { FAMILIES = sizeof families / sizeof *families };

const model_family *families_find(gguf_text name, err *e) {
    char text[40], known[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < FAMILIES; i++) {
        if (gguf_text_equals(name, families[i]->name))
            return families[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 families[i]->name);
    }
    return err_null(e, EXIT_USAGE, "cannot run a model of the architecture '%s' (supported: %s)",
                    gguf_print_text(name, text, sizeof text), known);
}

#define SHIPPED "models/assay-tiny.gguf"

bool model_file_find(const char *given, char *path, size_t size, err *e) {
    char home[PATH_MAX];
    if (!given && !os_find_home(home, sizeof home, e))
        return false;
    int length =
        given ? snprintf(path, size, "%s", given) : snprintf(path, size, "%s/" SHIPPED, home);
    if (length < 0 || (size_t)length >= size)
        return err_set(e, EXIT_USAGE, "the path of the model is longer than %zu bytes", size - 1);
    if (access(path, F_OK) == 0)
        return true;
    if (given)
        return err_set(e, EXIT_USAGE,
                       "there is no file %.140s; give a GGUF file with -m, or get one with "
                       "`make model`",
                       given);
    return err_set(e, EXIT_CANNOT,
                   "the model that comes with the project, " SHIPPED ", is missing; give a GGUF "
                   "file with -m, or get one with `make model`");
}

/* --- opening --- */

static bool find_family(const gguf *g, const model_family **out, err *e) {
    gguf_text name;
    return gguf_get_text(g, "general.architecture", &name, NULL, e) &&
           (*out = families_find(name, e)) != NULL;
}

bool model_read_shape(const gguf *g, model_shape *out, err *e) {
    const model_family *family;
    return find_family(g, &family, e) && family->read_shape(g, out, e);
}

/* What every family needs besides its own. */
static bool make_common(model *m, err *e) {
    uint32_t groups = argmax_count_groups(m->shape.vocab);
    return model_make(m, MEMORY_VISIBLE, "logits", 1, m->shape.vocab, &m->logits, e) &&
           model_make(m, MEMORY_VISIBLE, "ids", 1, m->tile, &m->ids, e) &&
           model_make(m, MEMORY_VISIBLE, "control", 1, CONTROL_WORDS, &m->control, e) &&
           model_make(m, MEMORY_VISIBLE, "history", 1, MODEL_IN_FLIGHT, &m->history, e) &&
           model_make(m, MEMORY_SCRATCH, "argmax values", 1, groups, &m->argmax_values, e) &&
           model_make(m, MEMORY_SCRATCH, "argmax indices", 1, groups, &m->argmax_indices, e) &&
           model_make(m, MEMORY_SCRATCH, "next", 1, 1, &m->next, e);
}

static bool open_parts(model *m, const model_options *o, err *e) {
    m->family = o->family;
    if ((!m->family && !find_family(m->file, &m->family, e)) ||
        !m->family->read_shape(m->file, &m->shape, e))
        return false;
    bool emulated = m->device && device_get_facts(m->device)->emulated;
    m->context = o->context ? o->context : m->shape.context;
    m->tile = o->tile ? o->tile : emulated ? TILE_EMULATED : TILE_GPU;
    if (m->context && m->tile > m->context)
        m->tile = m->context;
    m->shared_scratch = o->shared_scratch;
    m->fusion = o->fusion;
    m->cache = o->cache;
    if (m->cache && !m->family->pick_attention)
        return err_set(e, EXIT_USAGE, "a model of the family %s has no cache to keep in %s",
                       m->family->name, m->cache->name);
    m->variants =
        (variants_basis){m->device ? device_get_facts(m->device) : NULL, o->tuned, o->watch};
    m->is_claimed = array_new(m->file->tensor_count + 1, sizeof *m->is_claimed);
    if (!make_common(m, e) || !m->family->open(m, e))
        return false;
    /* A family that the caller chose may take what it likes from a file of another. */
    if (!o->family && (!model_check_keys(m->file, m->family, e) || !model_check_tensors(m, e)))
        return false;
    model_unsettle(m); /* a recurrent state starts as zeros */
    return true;
}

/* Compares what it will take with what there is, before anything is made. */
static bool check_room(const library *lib, const gguf *g, const model_options *given, err *e) {
    const device_facts *f = device_get_facts(library_get_device(lib));
    model *m = array_new(1, sizeof *m);
    model_options o = *given;
    o.tile = o.tile ? o.tile : f->emulated ? TILE_EMULATED : TILE_GPU;
    o.tuned = NULL;
    o.watch = NULL;
    m->file = g;
    bool ok = open_parts(m, &o, e);
    uint64_t needed = m->planned_bytes;
    for (size_t i = 0; ok && !f->unified && i < g->tensor_count; i++)
        needed += g->tensors[i].bytes; /* else they are the mapped file's pages */
    const uint64_t room = f->working_set_bytes ? f->working_set_bytes : host_count_free_memory();
    if (ok && room && needed > room)
        ok = err_set(e, EXIT_CANNOT,
                     "a context of %u tokens needs %.1f GB, and there are %.1f GB: give a smaller "
                     "one with -c",
                     m->context, (double)needed * 1e-9, (double)room * 1e-9);
    model_free(m);
    return ok;
}

model *model_new(library *lib, const gguf *g, const model_options *o, err *e) {
    if (!check_room(lib, g, o, e))
        return NULL;
    model *m = array_new(1, sizeof *m);
    m->lib = lib;
    m->device = library_get_device(lib);
    m->file = g;
    if (open_parts(m, o, e))
        return m;
    model_free(m);
    return NULL;
}

bool model_check_file(const gguf *g, err *e) {
    model *m = array_new(1, sizeof *m);
    m->file = g;
    bool ok = open_parts(m, &(model_options){.context = 0}, e);
    model_free(m);
    return ok;
}

void model_forget_tapes(model *m) {
    for (size_t i = 0; i < MODEL_TOKEN_TAPES; i++) {
        tape_free(m->tokens[0][i].tape);
        tape_free(m->tokens[1][i].tape);
    }
    for (size_t i = 0; i < MODEL_PROMPT_TAPES; i++)
        tape_free(m->prompts[i].tape);
    memset(m->tokens, 0, sizeof m->tokens);
    memset(m->prompts, 0, sizeof m->prompts);
}

void model_free(model *m) {
    if (!m)
        return;
    model_forget_tapes(m);
    if (m->family)
        m->family->close(m->own);
    for (size_t i = 0; i < m->buffer_count; i++) {
        buffer_free(m->buffers[i].buffer);
        free(m->buffers[i].kept);
    }
    free(m->buffers);
    free(m->fed);
    free(m->is_claimed);
    free(m);
}

const model_shape *model_get_shape(const model *m) {
    return &m->shape;
}

const gguf *model_get_file(const model *m) {
    return m->file;
}

uint32_t model_get_tile(const model *m) {
    return m->tile;
}

const char *model_get_cache_name(const model *m) {
    return m->cache ? "f16" : "f32";
}

model_memory model_get_memory(const model *m) {
    uint64_t bytes[MEMORY_KINDS] = {0};
    for (size_t i = 0; i < m->buffer_count; i++)
        bytes[m->buffers[i].kind] += m->buffers[i].buffer->bytes;
    return (model_memory){.weights = bytes[MEMORY_WEIGHTS],
                          .state = bytes[MEMORY_CACHE] + bytes[MEMORY_STATE],
                          .scratch = bytes[MEMORY_SCRATCH] + bytes[MEMORY_VISIBLE]};
}

void model_set_watch(model *m, bool (*goes_on)(void *context), void *context) {
    m->goes_on = goes_on;
    m->watch_context = context;
}

uint32_t model_get_position(const model *m) {
    return m->position;
}

uint32_t model_get_room(const model *m) {
    return m->context ? m->context - m->position - (m->submitted - m->collected) : UINT32_MAX;
}
