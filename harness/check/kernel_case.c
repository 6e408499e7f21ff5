/* kernel_case: see kernel_case.h. Makes names, buffers and tapes; runs nothing. */
#include "kernel_case.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"

kernel_case case_new(const op *o, const kernel *k, const shape *s, distribution inputs) {
    kernel_case c = {.op = o, .kernel = k, .shape = *s, .inputs = inputs};
    char sizes[64];
    shape_get_text(s, sizes, sizeof sizes);
    snprintf(c.name, sizeof c.name, "%s/%s/%s", k->name, sizes, distribution_get_name(inputs));
    return c;
}

bool case_open(kernel_case *c, library *lib, uint64_t seed, err *e) {
    c->seed = seed;
    c->random = rng_new(seed, c->name);
    c->device = library_get_device(lib);
    c->tape = tape_new(lib);
    err why;
    if (!op_takes(c->op, c->kernel, &c->shape, &why))
        return err_set(e, why.code, "%s %s", c->name, why.text);
    return c->op->build(c, e);
}

void case_close(kernel_case *c) {
    tape_free(c->tape);
    c->tape = NULL;
    while (c->buffer_count > 0)
        buffer_free(c->buffers[--c->buffer_count]);
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
    float *values = array_new(1, bytes);
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
