#include "described.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_file.h"
#include "harness/base/size.h"
#include "harness/device/device.h"

described_element described_now;

/* Building a case ----------------------------------------------------------------------------- */

static bool count_elements(const kernel_case *c, const described_spec *s, size_t *count, err *e) {
    *count = 1;
    for (size_t i = 0; i < s->axes; i++)
        if (s->sizes[i] <= 0 || !size_multiply_checked(*count, (size_t)s->sizes[i], count) ||
            *count > (size_t)1 << 36)
            return err_set(e, EXIT_USAGE, "%.80s: the buffer '%.40s' would have a size of %lld",
                           c->name, s->name, (long long)s->sizes[i]);
    return true;
}

static void draw(kernel_case *c, const described_spec *s, double *values, size_t count) {
    for (size_t i = 0; i < count && s->below > 0; i++)
        values[i] =
            (double)rng_below(&c->random, s->below < UINT32_MAX ? (uint32_t)s->below : UINT32_MAX);
    if (s->below > 0)
        return;
    float *floats = malloc(count * sizeof *floats);
    assert(floats);
    fill_f32(&c->random, c->inputs, floats, count);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)floats[i];
    free(floats);
}

static bool upload(kernel_case *c, const described_spec *s, const double *values, size_t count,
                   slice *out, err *e) {
    size_t bytes = size_multiply(count, elem_get_bytes(s->type));
    void *data = malloc(bytes);
    assert(data);
    for (size_t i = 0; i < count; i++)
        elem_write(s->type, data, i, values[i]);
    bool ok = case_input_bytes(c, s->name, data, bytes, out, e);
    free(data);
    return ok;
}

static bool find_path(char *path, size_t size, const char *folder, const char *format,
                      va_list list) {
    int n = snprintf(path, size, "%s/", format[0] == '/' ? "" : folder);
    return n < (int)size && vsnprintf(path + n, size - (size_t)n, format, list) < (int)size - n;
}

bool described_buffer(kernel_case *c, const described_spec *s, slice *out, err *e,
                      const char *folder, const char *format, ...) {
    char path[PATH_MAX] = "";
    size_t count;
    va_list list;
    va_start(list, format);
    bool ok = !folder || find_path(path, sizeof path, folder, format, list) ||
              err_set(e, EXIT_USAGE, "the path of the file of '%.40s' is too long", s->name);
    va_end(list);
    if (!ok || !count_elements(c, s, &count, e))
        return false;
    double *values = calloc(count, sizeof *values);
    assert(values);
    if (folder)
        ok = array_file_read(path, s->type, values, count, e);
    else if (s->access != ACCESS_WRITE)
        draw(c, s, values, count);
    ok = ok && (s->access == ACCESS_WRITE
                    ? case_output(c, s->name, size_multiply(count, elem_get_bytes(s->type)), out, e)
                    : upload(c, s, values, count, out, e));
    free(values);
    return ok;
}

void described_bind(launch *l, int index, slice at, access_mode access, elem type) {
    launch_bind(l, index, at, access, type);
    l->bytes += (access == ACCESS_BOTH ? 2 : 1) * at.bytes;
}

void described_set_value(launch *l, int index, elem type, double value) {
    uint64_t bits = 0;
    elem_write(type, &bits, 0, value);
    launch_set_bytes(l, index, &bits, elem_get_bytes(type));
}

bool described_set_grid(launch *l, char kind, const int64_t grid[3], const int64_t group[3],
                        int64_t threadgroup_bytes, err *e) {
    uint32_t grids[3], groups[3];
    for (int i = 0; i < 3; i++) {
        if (grid[i] <= 0 || grid[i] > INT32_MAX || group[i] <= 0 || group[i] > 1024)
            return err_set(e, EXIT_USAGE, "%.80s: a grid of %lld with groups of %lld threads",
                           l->kernel->name, (long long)grid[i], (long long)group[i]);
        groups[i] = (uint32_t)group[i];
        grids[i] = (uint32_t)(kind == 't' ? (grid[i] + group[i] - 1) / group[i] : grid[i]);
    }
    size3 size = {grids[0], grids[1], grids[2]}, threads = {groups[0], groups[1], groups[2]};
    if (kind == 'd')
        launch_set_threads(l, size, threads);
    else
        launch_set_groups(l, size, threads);
    if (threadgroup_bytes < 0 || threadgroup_bytes > 1 << 20)
        return err_set(e, EXIT_USAGE, "%.80s: %lld bytes of threadgroup memory", l->kernel->name,
                       (long long)threadgroup_bytes);
    l->threadgroup_bytes[0] = (uint32_t)threadgroup_bytes;
    return true;
}

/* Oracles ------------------------------------------------------------------------------------- */

double *described_read(const oracle_io *io, int index, elem type) {
    size_t count = io->bytes[index] / elem_get_bytes(type);
    double *values = malloc(size_multiply(count, sizeof *values));
    assert(values);
    for (size_t i = 0; i < count; i++)
        values[i] = elem_read(type, io->in[index], i);
    return values;
}

void described_expect(expected *out, elem type, const char *folder, const char *format, ...) {
    char path[PATH_MAX];
    va_list list;
    va_start(list, format);
    bool ok = find_path(path, sizeof path, folder, format, list);
    va_end(list);
    if (!ok || !array_file_read(path, type, out->value, out->count, NULL))
        for (size_t i = 0; i < out->count; i++)
            out->value[i] = NAN;
    out->roundings = 16;
}

void described_begin(const launch *l, int operators) {
    described_now = (described_element){.fast = l->pipeline && l->pipeline->math != MATH_SAFE,
                                        .operators = operators + 1,
                                        .roundings = operators + 1,
                                        .condition = 1,
                                        .factor = 1,
                                        .terms = 1};
}

void described_note_factor(double value) {
    if (isfinite(value))
        described_now.factor = fmax(described_now.factor, fabs(value));
}

double described_note_sum(double sum, double magnitude, int64_t terms) {
    described_element *d = &described_now;
    d->terms = fmax(d->terms, (double)terms);
    double condition = magnitude / fabs(sum);
    if (isfinite(condition))
        d->condition = fmax(d->condition, condition);
    else
        d->magnitude = fmax(d->magnitude, magnitude);
    return sum;
}

void described_end(expected *out, size_t i, double value) {
    const described_element *d = &described_now;
    out->value[i] = value;
    if (out->scale) {
        double scale = fmax(fabs(value) * d->condition, d->magnitude) * d->roundings / d->operators;
        out->scale[i] = fmax(scale, d->factor * (double)FLT_MIN);
    }
    out->roundings = d->operators;
    out->terms = fmax(out->terms, d->terms);
}

void described_set_scale(expected *out, size_t i, double value) {
    if (out->scale)
        out->scale[i] = fabs(value);
}
