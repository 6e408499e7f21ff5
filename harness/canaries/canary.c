/* canary: see canary.h. */
#include "canary.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../os.h"

enum { ELEMENTS = 128, GROUP = 64 };

const canary canaries[] = {
    {"canary_load_outside", FINDING_LOAD_OUTSIDE},
    {"canary_store_outside", FINDING_STORE_OUTSIDE},
    {"canary_threadgroup_outside", FINDING_STORE_OUTSIDE},
    {"canary_array_index", FINDING_LOAD_OUTSIDE},
    {"canary_unbound", FINDING_UNBOUND},
    {"canary_unwritten_device", FINDING_UNWRITTEN},
    {"canary_unwritten_threadgroup", FINDING_UNWRITTEN},
    {"canary_unwritten_private", FINDING_UNWRITTEN},
    {"canary_race_in_group", FINDING_RACE_IN_GROUP},
    {"canary_race_of_groups", FINDING_RACE_OF_GROUPS},
    {"canary_read_only", FINDING_READ_ONLY},
    {"canary_misaligned", FINDING_MISALIGNED},
    {"canary_barrier", FINDING_BARRIER},
    {"canary_diverged", FINDING_DIVERGED},
    {"canary_divide", FINDING_DIVIDE},
    {"canary_shift", FINDING_SHIFT},
    {"canary_convert", FINDING_CONVERT},
    {"canary_endless", FINDING_ENDLESS},
};
const size_t canary_count = sizeof canaries / sizeof *canaries;

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
    launch_bind(l, 1, out, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 2, ELEMENTS);
    launch_set_groups(l, (size3){ELEMENTS / GROUP, 1, 1}, (size3){GROUP, 1, 1});
    return true;
}

/* Was it found where it stands? If not, the message says what was. */
static bool judge(const device *d, const canary *c, const char *text, char *message, size_t size) {
    const finding_list *found = device_get_findings(d);
    for (size_t i = 0; i < found->count; i++) {
        const finding *f = &found->items[i];
        if (f->what == c->what && is_marked(text, c->kernel, f->line))
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

bool canary_play(device *d, const canary *c, bool *caught, char *message, size_t size, err *e) {
    char home[PATH_MAX - 64], folder[PATH_MAX], path[PATH_MAX + 32];
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(folder, sizeof folder, "%s/harness/canaries", home);
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
        if (ok)
            *caught = judge(d, c, text, message, size);
        device_clear_findings(d);
        tape_free(t);
    }
    buffer_free(in);
    buffer_free(out);
    library_free(lib);
    free(text);
    return ok;
}
