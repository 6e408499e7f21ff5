/* tape: see tape.h. Owns recording and playing; the device owns what a play does to it. */
#include "tape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

tape *tape_new(library *lib) {
    tape *t = array_new(1, sizeof *t);
    t->lib = lib;
    return t;
}

static void drop_prepared(tape *t) {
    if (t->free_prepared)
        t->free_prepared(t->prepared);
    t->prepared = NULL;
    t->free_prepared = NULL;
    t->known_count = 0;
    t->version = 0;
}

void tape_clear(tape *t) {
    drop_prepared(t);
    t->count = t->mark_count = 0;
    t->barrier_next = false;
}

void tape_free(tape *t) {
    if (!t)
        return;
    drop_prepared(t);
    free(t->launches);
    free(t->known);
    free(t->marks);
    free(t);
}

launch *tape_add_pipeline(tape *t, const pipeline *p) {
    drop_prepared(t);
    launch *l = ARRAY_ADD(t->launches, t->count, t->capacity);
    memset(l, 0, sizeof *l);
    l->pipeline = p;
    l->barrier_before = t->barrier_next;
    t->barrier_next = false;
    snprintf(l->label, sizeof l->label, "%.63s", p->kernel);
    return l;
}

launch *tape_add_specialised(tape *t, const char *file, const char *kernel,
                             const constant_value *constants, size_t count, err *e) {
    const pipeline *p = library_find(t->lib, file, kernel, constants, count, e);
    return p ? tape_add_pipeline(t, p) : NULL;
}

launch *tape_add(tape *t, const char *file, const char *kernel, err *e) {
    return tape_add_specialised(t, file, kernel, NULL, 0, e);
}

void tape_mark(tape *t, const char *name) {
    mark *m = ARRAY_ADD(t->marks, t->mark_count, t->mark_capacity);
    m->at = t->count;
    snprintf(m->name, sizeof m->name, "%s", name);
}

void tape_barrier(tape *t) {
    t->barrier_next = true;
}

/* The end of the part that starts at launch `first`. */
static size_t find_part_end(const tape *t, play_mode mode, size_t first) {
    if (mode == PLAY_LAUNCHES || mode == PLAY_SAMPLED)
        return first + 1;
    if (mode == PLAY_MARKS)
        for (size_t i = 0; i < t->mark_count; i++)
            if (t->marks[i].at > first && t->marks[i].at < t->count)
                return t->marks[i].at;
    return t->count;
}

void play_times_add(play_times *sum, const play_times *more) {
    sum->gpu_ns += more->gpu_ns;
    sum->encode_ns += more->encode_ns;
    sum->wall_ns += more->wall_ns;
    sum->driver_ns += more->driver_ns;
    sum->gpu_is_wall |= more->gpu_is_wall;
    sum->samples_overlap |= more->samples_overlap;
}

size_t tape_count_parts(const tape *t, play_mode mode) {
    size_t parts = 0;
    for (size_t first = 0; first < t->count; first = find_part_end(t, mode, first))
        parts++;
    return parts;
}

static bool play_sampled(tape *t, play_times *total, play_times *each, err *e) {
    play_times ignored, *list = each ? each : calloc(t->count, sizeof *list);
    assert(list);
    bool ok = device_play_sampled(library_get_device(t->lib), t, total ? total : &ignored, list, e);
    if (!each)
        free(list);
    return ok;
}

bool tape_play(tape *t, play_mode mode, play_times *total, play_times *each, err *e) {
    device *d = library_get_device(t->lib);
    play_times sum = {0};
    if (mode == PLAY_SAMPLED && t->count > 0 && device_can_sample(d))
        return play_sampled(t, total, each, e);
    for (size_t first = 0, end, part = 0; first < t->count; first = end, part++) {
        end = find_part_end(t, mode, first);
        ticket k;
        play_times times;
        if (!device_submit(d, t, first, end - first, &k, e) || !device_wait(d, &k, &times, e))
            return false;
        play_times_add(&sum, &times);
        if (each)
            each[part] = times;
    }
    if (total)
        *total = sum;
    return true;
}
