/* Loads before the launch before has ended (kernels/prefetch.h): they see what earlier launches wrote. */
#include <greatest.h>

#include "support.h"

SUITE_EXTERN(tape_early_suite);

enum { N = 100 };

static err e;
static float threes[N];

static slice new_threes(void) {
    return support_buffer(threes, sizeof threes);
}

/* to[i] = i, late. */
static launch *add_late(tape *t, slice to) {
    launch *l = tape_add(t, "tape.metal", "fill_late", &e);
    if (!l)
        return NULL;
    launch_bind(l, 0, to, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 1, 2000);
    launch_set_threads(l, (size3){(uint32_t)(to.bytes / sizeof(float)), 1, 1}, (size3){32, 1, 1});
    return l;
}

/* A kernel that copies, with its third argument left to be given. */
static launch *add_copy(tape *t, const char *kernel, slice from, slice to) {
    launch *l = tape_add(t, "tape.metal", kernel, &e);
    if (!l)
        return NULL;
    launch_bind(l, 0, from, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, to, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){N, 1, 1}, (size3){32, 1, 1});
    return l;
}

/* fill_late writes what copy_early loads early: its buffer, or its scalar, which is element 1. */
TEST what_is_loaded_early_is_what_launches_before_it_wrote(bool is_scalar) {
    ASSERT(support_get_library());
    slice from = new_threes(), to = new_threes(), scale = new_threes();
    tape *t = tape_new(support_get_library());
    ASSERT(add_late(t, is_scalar ? scale : from));
    launch *l = add_copy(t, "copy_early", from, to);
    ASSERT(l);
    launch_bind(l, 2, slice_part(scale.buffer, scale.offset + 4, 4), ACCESS_READ, ELEM_F32);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, &e));
    const float *found = support_read(to);
    for (int i = 0; i < N; i++)
        ASSERT_EQ_FMT(is_scalar ? 3.0 : 3.0 * i, (double)found[i], "%g");
    tape_free(t);
    PASS();
}

/* fill_late writes the newest element or, if it does not say that it appends, all of them. */
TEST rows_that_are_loaded_early_are_what_launches_before_wrote(bool appends) {
    ASSERT(support_get_library());
    slice from = new_threes(), to = new_threes();
    size_t written = appends ? 1 : N, first = N - written;
    tape *t = tape_new(support_get_library());
    launch *l = add_late(t, slice_part(from.buffer, from.offset + 4 * first, 4 * written));
    ASSERT(l);
    l->appends = appends;
    l = add_copy(t, "copy_rows_early", from, to);
    ASSERT(l);
    launch_set_u32(l, 2, N);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, &e));
    const float *found = support_read(to);
    for (size_t i = 0; i < N; i++)
        ASSERT_EQ_FMT(i < first ? 3.0 : (double)(i - first), (double)found[i], "%g");
    tape_free(t);
    PASS();
}

SUITE(tape_early_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    for (int i = 0; i < N; i++)
        threes[i] = 3;
    RUN_TESTp(what_is_loaded_early_is_what_launches_before_it_wrote, false);
    RUN_TESTp(what_is_loaded_early_is_what_launches_before_it_wrote, true);
    RUN_TESTp(rows_that_are_loaded_early_are_what_launches_before_wrote, false);
    RUN_TESTp(rows_that_are_loaded_early_are_what_launches_before_wrote, true);
}
