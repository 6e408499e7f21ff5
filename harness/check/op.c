#include "op.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
