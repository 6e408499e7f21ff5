/* model/nonfinite: see nonfinite.h. The plays themselves are in play.c. */
#include "nonfinite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"

/* --- weights --- */

static bool is_finite_half(const uint8_t *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return (bits & 0x7C00) != 0x7C00;
}

static size_t find_bad_half(const uint8_t *block, size_t count, size_t step, size_t at) {
    size_t i = 0;
    while (i < count && is_finite_half(block + i * step + at))
        i++;
    return i;
}

static size_t find_bad_float(const uint8_t *values, size_t count) {
    size_t i = 0;
    for (float value; i < count; i++) {
        memcpy(&value, values + i * sizeof value, sizeof value);
        if (!isfinite(value))
            break;
    }
    return i;
}

static size_t find_bad_decoded(const weight_format *f, const uint8_t *blocks, size_t count) {
    double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES];
    for (size_t i = 0; i < count; i++) {
        f->decode(blocks + i * f->bytes, values, magnitudes);
        for (size_t j = 0; j < f->values; j++)
            if (!isfinite(values[j]))
                return i;
    }
    return count;
}

/* The first block with a number that is not finite; count: none. */
static size_t find_bad_block(const weight_format *f, const uint8_t *blocks, size_t count) {
    if (f == &format_f32)
        return find_bad_float(blocks, count);
    if (f->halves == 0)
        return find_bad_decoded(f, blocks, count);
    size_t bad = count;
    for (size_t k = 0; k < f->halves; k++)
        bad = find_bad_half(blocks, bad, f->bytes, f->half_at[k]);
    return bad;
}

bool nonfinite_scan(const gguf *g, err *e) {
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        const weight_format *f = t->type->format;
        if (!f)
            continue;
        size_t count = (size_t)(t->elements / f->values), per_row = t->dim[0] / f->values;
        size_t bad = find_bad_block(f, t->data, count);
        if (bad < count)
            return err_set(
                e, EXIT_WRONG,
                "the weights are not finite: tensor %s (%s), row %zu, block %zu, at byte "
                "%zu of the file",
                t->name, t->type->name, bad / per_row, bad % per_row,
                (size_t)((const uint8_t *)t->data - (const uint8_t *)g->map) + bad * f->bytes);
    }
    return true;
}

/* --- launches --- */

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

bool nonfinite_count(const binding *b, value_summary *out, err *e) {
    void *data = malloc(b->at.bytes);
    if (!data)
        return err_set(e, EXIT_CANNOT, "no memory for %zu bytes of %s", b->at.bytes,
                       b->at.buffer->label);
    bool ok = buffer_download(b->at.buffer, b->at.offset, data, b->at.bytes, e);
    double sum = 0;
    *out = (value_summary){
        .elements = b->at.bytes / elem_get_bytes(b->type), .min = INFINITY, .max = -INFINITY};
    for (size_t i = 0; ok && i < out->elements; i++) {
        double value = elem_read(b->type, data, i);
        if (!isfinite(value)) {
            out->first = out->bad++ ? out->first : i;
            continue;
        }
        out->min = fmin(out->min, value);
        out->max = fmax(out->max, value);
        sum += value;
    }
    out->mean = sum / (double)(out->elements - out->bad);
    free(data);
    return ok;
}

bool nonfinite_look(const model *m, const launch *l, nonfinite *out, err *e) {
    *out = (nonfinite){.found = false};
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind != BIND_BUFFER || !(b->access & ACCESS_WRITE) || !elem_is_float(b->type) ||
            is_cache(m, b->at.buffer))
            continue;
        value_summary v;
        if (!nonfinite_count(b, &v, e))
            return false;
        if (v.bad == 0)
            continue;
        out->found = true;
        out->bad = v.bad;
        out->elements = v.elements;
        out->first = v.first;
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
