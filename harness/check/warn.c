#include "warn.h"

#include <inttypes.h>
#include <stdio.h>

#include "harness/agx/agx.h"
#include "harness/base/remark.h"

static bool compiles;

void warn_agx_compile(bool on) {
    compiles = on;
}

/* Opened once; NULL where it is not installed. */
static agx_compiler *get_compiler(void) {
    static agx_compiler *compiler;
    static bool is_tried;
    if (!is_tried)
        compiler = agx_compiler_new(NULL);
    is_tried = true;
    return compiler;
}

static void warn_agx(const msl_unit *u, const char *kernel, const constant_value *constants,
                     size_t count, size3 group, char *text, size_t size) {
    agx_facts f;
    err ignored;
    uint64_t threads = (uint64_t)group.x * group.y * group.z;
    if (threads <= AGX_FEWEST_THREADS || !get_compiler() ||
        !agx_compile(get_compiler(), u, kernel, constants, count,
                     compiles ? AGX_COMPILE : AGX_LOOK_UP, &f, NULL, &ignored) ||
        f.refusal[0] || threads <= f.threads)
        return;
    snprintf(text, size,
             "%.80s has threadgroups of %" PRIu64 " threads; on an M1 there is room for %" PRIu32
             " (%s: a prediction)",
             kernel, threads, f.threads, AGX_LABEL);
}

static void warn_fast_math(const msl_unit *u, char *text, size_t size) {
    remark_list list = {0};
    msl_check_fast_math(u, &list);
    remark_sort(&list);
    if (list.count)
        snprintf(text, size,
                 "%.80s:%d tests for a NaN or an infinity, which fast math may leave out",
                 list.items[0].file, list.items[0].line);
    remark_free(&list);
}

void warn_launch(const msl_unit *u, const char *kernel, const constant_value *constants,
                 size_t count, size3 group, math_mode math, char *text, size_t size) {
    text[0] = 0;
    warn_agx(u, kernel, constants, count, group, text, size);
    if (!text[0] && math == MATH_FAST)
        warn_fast_math(u, text, size);
}

void warn_tape(const tape *t, char *text, size_t size) {
    text[0] = 0;
    for (size_t i = 0; i < t->count && !text[0]; i++) {
        const launch *l = &t->launches[i];
        const math_mode math = l->pipeline->math;
        if ((uint64_t)l->group.x * l->group.y * l->group.z <= AGX_FEWEST_THREADS &&
            math != MATH_FAST)
            continue;
        const constant_value *constants;
        size_t count = library_get_constants(t->lib, l->pipeline, &constants);
        const msl_unit *u = library_find_unit(t->lib, library_get_file(t->lib, l->pipeline), NULL);
        if (u)
            warn_launch(u, l->pipeline->kernel, constants, count, l->group, math, text, size);
    }
}
