#include "canary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "harness/base/os.h"
#include "harness/device/cuda/sanitizer.h"

enum { ELEMENTS = 128, GROUP = 64, PATIENCE_NS = 2000000000 };

/* Every fourth element is a NaN, which the kernel replaces. */
static void replace_nan(const launch *l, oracle_io *io) {
    (void)l;
    for (size_t i = 0; i < ELEMENTS; i++)
        io->out[1].value[i] = i % 4 == 3 ? 0 : elem_read(ELEM_F32, io->in[0], i);
    io->out[1].exact = true;
}

const canary canaries[] = {
    {.kernel = "canary_load_outside",
     .what = FINDING_LOAD_OUTSIDE,
     .on_metal = true,
     .tool = "memcheck"},
    {.kernel = "canary_store_outside",
     .what = FINDING_STORE_OUTSIDE,
     .on_metal = true,
     .tool = "memcheck"},
    {.kernel = "canary_threadgroup_outside",
     .what = FINDING_STORE_OUTSIDE,
     .on_metal = true,
     .tool = "memcheck"},
    {.kernel = "canary_array_index", .what = FINDING_LOAD_OUTSIDE, .tool = "memcheck"},
    {.kernel = "canary_array_pointer", .what = FINDING_STORE_OUTSIDE},
    {.kernel = "canary_table", .what = FINDING_LOAD_OUTSIDE, .build = CANARY_OPTIMISED},
    {.kernel = "canary_guard_below", .what = FINDING_LOAD_OUTSIDE},
    {.kernel = "canary_other_binding", .what = FINDING_LOAD_OUTSIDE},
    {.kernel = "canary_unbound", .what = FINDING_UNBOUND},
    {.kernel = "canary_unwritten_device", .what = FINDING_UNWRITTEN, .tool = "initcheck"},
    {.kernel = "canary_unwritten_threadgroup", .what = FINDING_UNWRITTEN},
    {.kernel = "canary_unwritten_private", .what = FINDING_UNWRITTEN},
    {.kernel = "canary_unset_member", .what = FINDING_UNWRITTEN},
    {.kernel = "canary_unset_stored", .what = FINDING_UNWRITTEN},
    {.kernel = "canary_race_in_group", .what = FINDING_RACE_IN_GROUP, .tool = "racecheck"},
    {.kernel = "canary_race_of_bytes", .what = FINDING_RACE_IN_GROUP},
    {.kernel = "canary_race_with_atomic", .what = FINDING_RACE_IN_GROUP},
    {.kernel = "canary_fence_alone", .what = FINDING_RACE_IN_GROUP, .since = 320},
    {.kernel = "canary_race_of_groups", .what = FINDING_RACE_OF_GROUPS},
    {.kernel = "canary_same_store", .what = FINDING_SAME_STORE},
    {.kernel = "canary_read_only", .what = FINDING_READ_ONLY},
    {.kernel = "canary_misaligned", .what = FINDING_MISALIGNED},
    {.kernel = "canary_barrier", .what = FINDING_BARRIER},
    {.kernel = "canary_other_barrier", .what = FINDING_BARRIER},
    {.kernel = "canary_branch_barrier", .what = FINDING_BARRIER, .tool = "synccheck"},
    {.kernel = "canary_diverged", .what = FINDING_DIVERGED},
    {.kernel = "canary_broadcast", .what = FINDING_DIVERGED},
    {.kernel = "canary_matrix", .what = FINDING_DIVERGED},
    {.kernel = "canary_divide", .what = FINDING_DIVIDE},
    {.kernel = "canary_shift", .what = FINDING_SHIFT},
    {.kernel = "canary_convert", .what = FINDING_CONVERT},
    {.kernel = "canary_overflow", .what = FINDING_OVERFLOW},
    {.kernel = "canary_least_by_minus_one", .what = FINDING_OVERFLOW},
    {.kernel = "canary_clamp", .what = FINDING_CLAMP},
    {.kernel = "canary_no_return", .what = FINDING_NO_RETURN},
    {.kernel = "canary_endless", .what = FINDING_ENDLESS},
    {.kernel = "canary_lock", .what = FINDING_ENDLESS},
    {.kernel = "canary_fast_math",
     .what = FINDING_CLASSES,
     .oracle = replace_nan,
     .build = CANARY_OPTIMISED},
    {.kernel = "canary_nan", .what = FINDING_NAN_BORN, .build = CANARY_TRACED},
};
const size_t canary_count = sizeof canaries / sizeof *canaries;

bool canary_is_for(const canary *c, const device_facts *f) {
    const char *tool = sanitizer_get_tool();
    if (f->language < c->since)
        return false;
    if (f->kind == DEVICE_CUDA)
        return c->tool && tool && strcmp(c->tool, tool) == 0;
    if (c->build != CANARY_ANY && (c->build == CANARY_TRACED) != f->traces)
        return false;
    return c->on_metal || f->kind != DEVICE_METAL;
}

/* The lines of a kernel that are marked "bug": from its name to the next empty line. */
static bool is_marked(const char *text, const char *name, int line) {
    int at = 1;
    bool inside = false;
    for (const char *p = text; *p; at++) {
        const char *end = p + strcspn(p, "\n");
        const char *start = strstr(p, name), *bug = strstr(p, "// bug");
        inside = (inside && end > p) || (start && start < end);
        if (inside && at == line && bug && bug < end)
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

typedef struct {
    buffer *in, *out;
} buffer_pair;

static bool record(tape *t, const canary *c, const buffer_pair *at, err *e) {
    const constant_value off = {.index = 0, .type = ELEM_U8, .bits = 0};
    launch *l = tape_add_specialised(t, "canary.metal", c->kernel, &off, 1, e);
    if (!l)
        return false;
    launch_bind(l, 0, slice_whole(at->in), ACCESS_READ, ELEM_F32);
    /* Two bindings of one buffer, side by side. */
    if (strcmp(c->kernel, "canary_other_binding") == 0) {
        launch_bind(l, 0, slice_part(at->in, 0, at->in->bytes / 2), ACCESS_READ, ELEM_F32);
        launch_bind(l, 3, slice_part(at->in, at->in->bytes / 2, at->in->bytes / 2), ACCESS_READ,
                    ELEM_F32);
    }
    launch_bind(l, 1, slice_whole(at->out), ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 2, ELEMENTS);
    launch_set_groups(l, (size3){ELEMENTS / GROUP, 1, 1}, (size3){GROUP, 1, 1});
    l->oracle = c->oracle;
    return true;
}

static bool find_folder(char *folder, size_t size, err *e) {
    char home[PATH_MAX - 64];
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(folder, size, "%s/harness/check/canaries", home);
    return true;
}

library *canary_new_library(device *d, err *e) {
    char folder[PATH_MAX];
    return find_folder(folder, sizeof folder, e) ? library_new(d, folder, e) : NULL;
}

/* The text of the canaries, read once; NULL if it cannot be. */
static const char *get_text(err *e) {
    static char *text;
    char folder[PATH_MAX], path[PATH_MAX + 32];
    if (text || !find_folder(folder, sizeof folder, e))
        return text;
    snprintf(path, sizeof path, "%s/canary.metal", folder);
    return text = os_read_file(path, NULL, e);
}

bool canary_judge(const canary *c, const finding_list *found, bool has_lines, char *message,
                  size_t size) {
    err e;
    const char *text = get_text(&e);
    for (size_t i = 0; text && i < found->count; i++) {
        const finding *f = &found->items[i];
        if (f->what == c->what && strcmp(f->kernel, c->kernel) == 0 &&
            (is_marked(text, c->kernel, f->line) || (!has_lines && f->line == 0)))
            return true;
    }
    if (!text)
        snprintf(message, size, "%.150s", e.text);
    else if (found->count > 0)
        snprintf(message, size, "'%s' was not found at its line, but '%s' in %.60s at line %d",
                 finding_get_name(c->what), finding_get_name(found->items[0].what),
                 found->items[0].kernel, found->items[0].line);
    else
        snprintf(message, size, "'%s' was not found", finding_get_name(c->what));
    return false;
}

/* Is the output what the oracle says, compiled with this math? */
static bool check_with(device *d, const canary *c, math_mode math, const buffer_pair *at,
                       check_result *result, err *e) {
    const check_options how = {.unordered = false};
    library *lib = canary_new_library(d, e);
    if (!lib)
        return false;
    library_set_math(lib, math);
    tape *t = tape_new(lib);
    bool ok = record(t, c, at, e) && check_tape(t, &how, result, e);
    tape_free(t);
    library_free(lib);
    return ok;
}

static bool play_maths(device *d, const canary *c, const buffer_pair *at, bool *caught,
                       char *message, size_t size, err *e) {
    check_result safe, fast;
    if (!check_with(d, c, MATH_SAFE, at, &safe, e) || !check_with(d, c, MATH_FAST, at, &fast, e))
        return false;
    *caught = safe.verdict == CHECK_PASS && fast.verdict == CHECK_FAIL;
    snprintf(message, size, "%.190s",
             safe.verdict == CHECK_PASS ? "fast math gives the right output" : safe.message);
    return true;
}

/* Looks for findings until they arrive: reports of a GPU's tools come late, and each look at them takes a few
 * milliseconds. */
static bool play_found(library *lib, const canary *c, const buffer_pair *at, bool *caught,
                       char *message, size_t size, err *e) {
    device *d = library_get_device(lib);
    const device_facts *facts = device_get_facts(d);
    tape *t = tape_new(lib);
    device_clear_findings(d);
    bool is_recorded = record(t, c, at, e);
    bool ok = is_recorded && tape_play(t, PLAY_WHOLE, NULL, NULL, e);
    bool may_be_late = strcmp(facts->api, "soft") != 0;
    uint64_t start = os_now_ns();
    do /* a launch that is ended for what it did fails, and is reported all the same */
        *caught = is_recorded &&
                  canary_judge(c, device_get_findings(d), facts->names_lines, message, size);
    while (is_recorded && !*caught && may_be_late && os_now_ns() - start < PATIENCE_NS);
    device_clear_findings(d);
    tape_free(t);
    return ok || *caught;
}

bool canary_play(library *lib, const canary *c, bool *caught, char *message, size_t size, err *e) {
    device *d = library_get_device(lib);
    buffer_pair at = {NULL, NULL};
    float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)i * 0.25f;
    bool ok = get_text(e) &&
              (at.in = device_new_buffer(d, sizeof values, STORAGE_SHARED, "in", e)) &&
              (at.out = device_new_buffer(d, sizeof values, STORAGE_SHARED, "out", e)) &&
              buffer_upload(at.in, 0, values, sizeof values, e) &&
              (c->oracle ? play_maths(d, c, &at, caught, message, size, e)
                         : play_found(lib, c, &at, caught, message, size, e));
    buffer_free(at.in);
    buffer_free(at.out);
    return ok;
}
