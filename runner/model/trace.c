/* model/trace: see trace.h. The plays themselves are in model.c. */
#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "family.h"

size_t nonfinite_find(const float *values, size_t count) {
    size_t i = 0;
    while (i < count && isfinite(values[i]))
        i++;
    return i;
}

static bool is_cache(const model *m, const buffer *b) {
    for (size_t i = 0; i < m->buffer_count; i++)
        if (m->buffers[i].buffer == b)
            return m->buffers[i].kind == MEMORY_CACHE;
    return false;
}

static const char *find_weight(const model *m, const launch *l) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        for (size_t k = 0; l->args[i].kind == BIND_BUFFER && k < m->buffer_count; k++)
            if (m->buffers[k].buffer == l->args[i].at.buffer &&
                m->buffers[k].kind == MEMORY_WEIGHTS)
                return l->args[i].at.buffer->label;
    return "";
}

static bool look_at(const binding *b, nonfinite *out, err *e) {
    void *data = malloc(b->at.bytes);
    if (!data)
        return err_set(e, EXIT_CANNOT, "no memory for %zu bytes of %s", b->at.bytes,
                       b->at.buffer->label);
    bool ok = buffer_download(b->at.buffer, b->at.offset, data, b->at.bytes, e);
    out->elements = b->at.bytes / elem_get_bytes(b->type);
    for (size_t i = 0; ok && i < out->elements; i++)
        if (!isfinite(elem_read(b->type, data, i)) && out->bad++ == 0)
            out->first = i;
    free(data);
    out->found = out->bad > 0;
    return ok;
}

bool nonfinite_look(const model *m, const launch *l, nonfinite *out, err *e) {
    *out = (nonfinite){.found = false};
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind != BIND_BUFFER || !(b->access & ACCESS_WRITE) || !elem_is_float(b->type) ||
            is_cache(m, b->at.buffer))
            continue;
        if (!look_at(b, out, e))
            return false;
        if (!out->found)
            continue;
        snprintf(out->kernel, sizeof out->kernel, "%.95s", l->pipeline->kernel);
        snprintf(out->output, sizeof out->output, "%s", b->at.buffer->label);
        snprintf(out->weight, sizeof out->weight, "%s", find_weight(m, l));
        return true;
    }
    return true;
}

void nonfinite_print(const nonfinite *n, char *text, size_t size) {
    snprintf(text, size,
             "%s, launch %zu of %zu (%.60s%s%s): %zu of %zu values of '%s' are not finite", n->part,
             n->index + 1, n->count, n->kernel, n->weight[0] ? " with " : "", n->weight, n->bad,
             n->elements, n->output);
}
