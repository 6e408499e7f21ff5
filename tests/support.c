/* support: see support.h. */
#include "support.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

static device *shared_device, *outer_device;
static library *shared_library, *outer_library;
static bool is_other; /* support_open's */
static tape *current;
static buffer *buffers[64];
static void *copies[64]; /* what support_read gave */
static size_t buffer_count;
static err last;

const char *support_get_device_name(void) {
    const char *name = getenv("ASSAY_DEVICE");
    return name && *name ? name : "soft";
}

device *support_get_device(void) {
    if (!shared_device) {
        shared_device = device_open(support_get_device_name(), &last);
        if (!shared_device)
            fprintf(stderr, "%s\n", last.text);
    }
    return shared_device;
}

static void set_variables(const char *variables, bool is_set) {
    char text[128], *rest = text;
    snprintf(text, sizeof text, "%s", variables);
    for (char *name; (name = strtok_r(rest, " ", &rest));) {
        char *value = name + strcspn(name, "=");
        *value++ = 0;
        if (is_set)
            setenv(name, value, 1);
        else
            unsetenv(name);
    }
}

bool support_open(const device_options *options, const char *variables) {
    support_close();
    outer_device = shared_device;
    outer_library = shared_library;
    is_other = true;
    shared_library = NULL;
    set_variables(variables, true);
    shared_device =
        device_open_with("soft", options ? options : &(device_options){.counts = 0}, &last);
    set_variables(variables, false);
    return shared_device && support_get_library();
}

void support_close(void) {
    support_end();
    if (!is_other)
        return;
    library_free(shared_library);
    device_close(shared_device);
    shared_device = outer_device;
    shared_library = outer_library;
    is_other = false;
}

bool support_is_emulated(void) {
    device *d = support_get_device();
    return d && device_get_facts(d)->emulated;
}

bool support_is_double(void) {
    device *d = support_get_device();
    return d && strstr(device_get_facts(d)->name, "Metal double");
}

bool support_is_mac(void) {
    device *d = support_get_device();
    return d && strcmp(device_get_facts(d)->api, "metal") == 0 && !support_is_double();
}

const char *support_get_path(const char *relative) {
    static char path[PATH_MAX];
    char home[PATH_MAX / 2];
    if (!os_find_home(home, sizeof home, &last)) {
        fprintf(stderr, "%s\n", last.text);
        return relative;
    }
    snprintf(path, sizeof path, "%s/%s", home, relative);
    return path;
}

library *support_get_library(void) {
    if (!shared_library && support_get_device())
        shared_library =
            library_new(support_get_device(), support_get_path("tests/kernels"), &last);
    return shared_library;
}

void support_set_math(math_mode math) {
    tape_free(current);
    current = NULL;
    library_free(shared_library);
    shared_library = NULL;
    if (support_get_library())
        library_set_math(shared_library, math);
}

static slice new_buffer(storage_mode storage, const void *data, size_t bytes) {
    assert(buffer_count < sizeof buffers / sizeof *buffers);
    buffer *b = device_new_buffer(support_get_device(), bytes, storage, "test", &last);
    assert(b);
    buffers[buffer_count++] = b;
    if (data)
        support_write(slice_whole(b), data, bytes);
    else
        buffer_fill_pattern(b, 0, bytes, POISON_PATTERN, &last);
    return slice_whole(b);
}

slice support_buffer(const void *data, size_t bytes) {
    return new_buffer(STORAGE_SHARED, data, bytes);
}

slice support_private_buffer(const void *data, size_t bytes) {
    return new_buffer(STORAGE_PRIVATE, data, bytes);
}

const void *support_read(slice at) {
    size_t i = 0;
    while (i < buffer_count && buffers[i] != at.buffer)
        i++;
    assert(i < buffer_count);
    if (!copies[i])
        copies[i] = malloc(at.buffer->bytes);
    assert(copies[i]);
    bool ok = buffer_download(at.buffer, 0, copies[i], at.buffer->bytes, &last);
    assert(ok);
    return (char *)copies[i] + at.offset;
}

void support_write(slice at, const void *data, size_t bytes) {
    bool ok = buffer_upload(at.buffer, at.offset, data, bytes, &last);
    assert(ok);
}

launch *support_launch_specialised(const char *file, const char *kernel,
                                   const constant_value *constants, size_t count) {
    if (!support_get_library())
        return NULL;
    tape_free(current);
    current = tape_new(support_get_library());
    return tape_add_specialised(current, file, kernel, constants, count, &last);
}

launch *support_launch(const char *file, const char *kernel) {
    return support_launch_specialised(file, kernel, NULL, 0);
}

bool support_run_with(const char *file, const char *kernel, size3 threads, size3 group,
                      const support_argument *arguments, size_t count) {
    launch *l = support_launch(file, kernel);
    for (int i = 0; l && i < (int)count; i++) {
        const support_argument *a = &arguments[i];
        if (a->access == ACCESS_NONE)
            launch_set_u32(l, i, a->number);
        else
            launch_bind(l, i, a->at, a->access, a->type);
    }
    if (l)
        launch_set_threads(l, threads, group);
    return l && support_play();
}

tape *support_get_tape(void) {
    return current;
}

double support_get_distance(const float *a, const float *b, size_t count) {
    double squares = 0, differences = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        squares += (double)b[i] * (double)b[i];
        differences += d * d;
    }
    double distance = sqrt(differences / squares);
    return distance >= 0 ? distance : INFINITY;
}

bool support_play(void) {
    return tape_play(current, PLAY_WHOLE, NULL, NULL, &last);
}

const err *support_get_error(void) {
    return &last;
}

void support_end(void) {
    tape_free(current);
    current = NULL;
    while (buffer_count > 0) {
        buffer_free(buffers[--buffer_count]);
        free(copies[buffer_count]);
        copies[buffer_count] = NULL;
    }
}

void support_end_test(void *unused) {
    (void)unused;
    support_end();
}
