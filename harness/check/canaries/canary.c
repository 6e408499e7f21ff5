/* canary: see canary.h. */
#include "canary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

enum { ELEMENTS = 128, GROUP = 64, PATIENCE_NS = 2000000000 };

const canary canaries[] = {
    {"canary_load_outside", FINDING_LOAD_OUTSIDE, true},
    {"canary_store_outside", FINDING_STORE_OUTSIDE, true},
    {"canary_threadgroup_outside", FINDING_STORE_OUTSIDE, true},
    {"canary_array_index", FINDING_LOAD_OUTSIDE, false},
    {"canary_array_pointer", FINDING_STORE_OUTSIDE, false},
    {"canary_table", FINDING_LOAD_OUTSIDE, false},
    {"canary_guard_below", FINDING_LOAD_OUTSIDE, false},
    {"canary_other_binding", FINDING_LOAD_OUTSIDE, false},
    {"canary_unbound", FINDING_UNBOUND, false},
    {"canary_unwritten_device", FINDING_UNWRITTEN, false},
    {"canary_unwritten_threadgroup", FINDING_UNWRITTEN, false},
    {"canary_unwritten_private", FINDING_UNWRITTEN, false},
    {"canary_unset_member", FINDING_UNWRITTEN, false},
    {"canary_unset_stored", FINDING_UNWRITTEN, false},
    {"canary_race_in_group", FINDING_RACE_IN_GROUP, false},
    {"canary_race_of_bytes", FINDING_RACE_IN_GROUP, false},
    {"canary_race_with_atomic", FINDING_RACE_IN_GROUP, false},
    {"canary_fence_alone", FINDING_RACE_IN_GROUP, false},
    {"canary_race_of_groups", FINDING_RACE_OF_GROUPS, false},
    {"canary_same_store", FINDING_SAME_STORE, false},
    {"canary_read_only", FINDING_READ_ONLY, false},
    {"canary_misaligned", FINDING_MISALIGNED, false},
    {"canary_barrier", FINDING_BARRIER, false},
    {"canary_other_barrier", FINDING_BARRIER, false},
    {"canary_diverged", FINDING_DIVERGED, false},
    {"canary_broadcast", FINDING_DIVERGED, false},
    {"canary_matrix", FINDING_DIVERGED, false},
    {"canary_divide", FINDING_DIVIDE, false},
    {"canary_shift", FINDING_SHIFT, false},
    {"canary_convert", FINDING_CONVERT, false},
    {"canary_overflow", FINDING_OVERFLOW, false},
    {"canary_least_by_minus_one", FINDING_OVERFLOW, false},
    {"canary_clamp", FINDING_CLAMP, false},
    {"canary_endless", FINDING_ENDLESS, false},
};
const size_t canary_count = sizeof canaries / sizeof *canaries;

bool canary_is_for(const canary *c, const device_facts *f) {
    return c->on_metal || strcmp(f->api, "metal") != 0;
}

/* The lines of a kernel that are marked "bug": from its name to the next empty line. */
static bool is_marked(const char *text, const char *kernel, int line) {
    int at = 1;
    bool inside = false;
    for (const char *p = text; *p; at++) {
        const char *end = p + strcspn(p, "\n");
        const char *name = strstr(p, kernel), *bug = strstr(p, "// bug");
        inside = (inside && end > p) || (name && name < end);
        if (inside && at == line && bug && bug < end)
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

static bool record(tape *t, const canary *c, slice in, slice out, err *e) {
    const constant_value off = {.index = 0, .type = ELEM_U8, .bits = 0};
    launch *l = tape_add_specialised(t, "canary.metal", c->kernel, &off, 1, e);
    if (!l)
        return false;
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    /* Two bindings of one buffer, side by side. */
    if (strcmp(c->kernel, "canary_other_binding") == 0) {
        launch_bind(l, 0, slice_part(in.buffer, 0, in.bytes / 2), ACCESS_READ, ELEM_F32);
        launch_bind(l, 3, slice_part(in.buffer, in.bytes / 2, in.bytes / 2), ACCESS_READ, ELEM_F32);
    }
    launch_bind(l, 1, out, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 2, ELEMENTS);
    launch_set_groups(l, (size3){ELEMENTS / GROUP, 1, 1}, (size3){GROUP, 1, 1});
    return true;
}

/* Was it found where it stands? If not, the message says what was. */
static bool judge(const device *d, const canary *c, const char *text, char *message, size_t size) {
    const finding_list *found = device_get_findings(d);
    bool has_lines = device_get_facts(d)->names_lines;
    for (size_t i = 0; i < found->count; i++) {
        const finding *f = &found->items[i];
        if (f->what == c->what && strcmp(f->kernel, c->kernel) == 0 &&
            (!has_lines || is_marked(text, c->kernel, f->line)))
            return true;
    }
    if (found->count > 0)
        snprintf(message, size, "'%s' was not found at its line, but '%s' at line %d",
                 finding_get_name(c->what), finding_get_name(found->items[0].what),
                 found->items[0].line);
    else
        snprintf(message, size, "'%s' was not found", finding_get_name(c->what));
    return false;
}

/* Metal's reports come when they come; each look at them takes a few milliseconds. */
static bool may_be_late(const device *d) {
    return strcmp(device_get_facts(d)->api, "metal") == 0;
}

bool canary_play(device *d, const canary *c, bool *caught, char *message, size_t size, err *e) {
    char home[PATH_MAX - 64], folder[PATH_MAX], path[PATH_MAX + 32];
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(folder, sizeof folder, "%s/harness/check/canaries", home);
    snprintf(path, sizeof path, "%s/canary.metal", folder);
    char *text = os_read_file(path, NULL, e);
    library *lib = text ? library_new(d, folder, e) : NULL;
    buffer *in = NULL, *out = NULL;
    bool ok = lib && (in = device_new_buffer(d, 4 * ELEMENTS, STORAGE_SHARED, "in", e)) &&
              (out = device_new_buffer(d, 4 * ELEMENTS, STORAGE_SHARED, "out", e));
    if (ok) {
        for (int i = 0; i < ELEMENTS; i++)
            elem_write(ELEM_F32, in->contents, (size_t)i, i * 0.25);
        tape *t = tape_new(lib);
        device_clear_findings(d);
        ok = record(t, c, slice_whole(in), slice_whole(out), e) &&
             tape_play(t, PLAY_WHOLE, NULL, NULL, e);
        uint64_t start = os_now_ns();
        do
            *caught = ok && judge(d, c, text, message, size);
        while (ok && !*caught && may_be_late(d) && os_now_ns() - start < PATIENCE_NS);
        device_clear_findings(d);
        tape_free(t);
    }
    buffer_free(in);
    buffer_free(out);
    library_free(lib);
    free(text);
    return ok;
}
