/* op: see op.h. Makes the buffers and the names of cases; runs nothing. */
#include "op.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/size.h"

const kernel *op_find_kernel(const op *o, const char *name) {
    for (size_t i = 0; i < o->kernel_count; i++)
        if (strcmp(o->kernels[i].name, name) == 0)
            return &o->kernels[i];
    return NULL;
}

const shape_list *op_get_shapes(const op *o, const kernel *k) {
    return k->shapes ? k->shapes : &o->shapes;
}

int op_find_batch_dim(const op *o) {
    int at = 0;
    for (const char *p = o->dims; *p; at++) {
        size_t length = strcspn(p, " ");
        if ((length == 5 && strncmp(p, "batch", 5) == 0) ||
            (length == 6 && strncmp(p, "tokens", 6) == 0))
            return at;
        p += length;
        p += strspn(p, " x");
    }
    return -1;
}

static buffer *new_buffer(kernel_case *c, const char *label, size_t bytes, err *e) {
    assert(c->buffer_count < sizeof c->buffers / sizeof c->buffers[0]);
    buffer *b = device_new_buffer(c->device, bytes, STORAGE_SHARED, label, e);
    if (b)
        c->buffers[c->buffer_count++] = b;
    return b;
}

bool case_input_bytes(kernel_case *c, const char *label, const void *data, size_t bytes, slice *out,
                      err *e) {
    buffer *b = new_buffer(c, label, bytes, e);
    if (!b || !buffer_upload(b, 0, data, bytes, e))
        return false;
    *out = slice_whole(b);
    return true;
}

bool case_input_f32(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    size_t bytes = size_multiply(count, sizeof(float));
    float *values = malloc(bytes);
    assert(values);
    fill_f32(&c->random, c->inputs, values, count);
    bool ok = case_input_bytes(c, label, values, bytes, out, e);
    free(values);
    return ok;
}

bool case_output(kernel_case *c, const char *label, size_t bytes, slice *out, err *e) {
    buffer *b = new_buffer(c, label, bytes, e);
    if (!b || !buffer_fill_pattern(b, 0, bytes, POISON_PATTERN, e))
        return false;
    *out = slice_whole(b);
    return true;
}

size_t shape_count_dims(const shape *s) {
    size_t used = SHAPE_DIMS;
    while (used > 1 && s->dim[used - 1] == 0)
        used--;
    return used;
}

double shape_count_values(const shape *s) {
    double product = 1;
    for (size_t i = 0; i < SHAPE_DIMS; i++)
        product *= s->dim[i] ? s->dim[i] : 1;
    return product;
}

bool shape_parse(const char *text, shape *out) {
    *out = (shape){{0}};
    for (size_t i = 0; i < SHAPE_DIMS; i++) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return false;
        unsigned long long n = strtoull(text, &end, 10);
        if (n > UINT32_MAX)
            return false;
        out->dim[i] = (uint32_t)n;
        if (*end == 0)
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
    return false;
}

void shape_get_text(const shape *s, char *text, size_t size) {
    size_t used = shape_count_dims(s), at = 0;
    for (size_t i = 0; i < used && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, i ? "x%u" : "%u", s->dim[i]);
}

void case_get_name(const kernel_case *c, char *text, size_t size) {
    char sizes[64];
    shape_get_text(&c->shape, sizes, sizeof sizes);
    snprintf(text, size, "%s/%s/%s", c->kernel->name, sizes, distribution_get_name(c->inputs));
}

bool case_open(kernel_case *c, library *lib, const op *o, const kernel *k, const shape *s,
               distribution inputs, uint64_t seed, err *e) {
    *c = (kernel_case){.op = o,
                       .kernel = k,
                       .shape = *s,
                       .inputs = inputs,
                       .seed = seed,
                       .device = library_get_device(lib),
                       .tape = tape_new(lib)};
    char name[256];
    case_get_name(c, name, sizeof name);
    c->random = rng_new(seed, name);
    return o->build(c, e);
}

void case_close(kernel_case *c) {
    tape_free(c->tape);
    c->tape = NULL;
    while (c->buffer_count > 0)
        buffer_free(c->buffers[--c->buffer_count]);
}
