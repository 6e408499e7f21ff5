#include "rwkv7_case.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/kernel_case.h"
#include "reference/reference.h"

bool rwkv7_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    size_t count;
    if (!size_multiply_checked(size_multiply(s->dim[1], s->dim[2]), size_multiply(4, s->dim[0]),
                               &count) ||
        count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT,
                       "needs values that a 32-bit index can count, not %u tokens of %u heads",
                       s->dim[0], s->dim[1]);
    return true;
}

void rwkv7_take_errors(expected *out, double terms) {
    out->terms = terms;
    out->roundings = 0;
    for (size_t i = 0; i < out->count; i++)
        out->scale[i] /= sqrt(terms); /* the tolerance multiplies it by twice that */
}

static float *draw(kernel_case *c, size_t count) {
    float *values = array_new(count, sizeof *values);
    fill_f32(&c->random, c->inputs, values, count);
    return values;
}

static float *draw_mapped(kernel_case *c, size_t count, double (*map)(double x)) {
    float *values = draw(c, count);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)map((double)values[i]);
    return values;
}

static bool make_input(kernel_case *c, const char *label, float *values, size_t count, slice *out,
                       err *e) {
    bool ok = case_input_bytes(c, label, values, size_multiply(count, sizeof *values), out, e);
    free(values);
    return ok;
}

static double shrink(double x) {
    return fabs(x) > 1e6 ? 1e-12 * x : x;
}

bool case_input_decay(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, reference_decay), count, out, e);
}

bool case_input_rate(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, reference_sigmoid), count, out, e);
}

bool case_input_small(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, shrink), count, out, e);
}

static void scale_to_unit_length(float *x, size_t size) {
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += (double)x[i] * (double)x[i];
    for (size_t i = 0; squares > 0 && i < size; i++)
        x[i] = (float)((double)x[i] / sqrt(squares));
}

bool case_input_packed(kernel_case *c, const char *label, uint32_t tokens, uint32_t heads,
                       uint32_t head_size, slice *out, err *e) {
    size_t rows = size_multiply(tokens, heads), count = size_multiply(rows, head_size);
    float *values = draw(c, size_multiply(4, count));
    for (size_t i = 2 * count; i < 3 * count; i++)
        values[i] = (float)reference_sigmoid((double)values[i]);
    for (size_t r = 0; r < rows; r++)
        scale_to_unit_length(values + 3 * count + r * head_size, head_size);
    return make_input(c, label, values, 4 * count, out, e);
}
