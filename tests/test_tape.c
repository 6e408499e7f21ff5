/* Tapes and the device interface: recording, the ways to play, what is refused before it runs. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

SUITE_EXTERN(tape_suite);

enum { N = 100 };

/* One decode-like tape: count_up changes the step that the next `advance` reads. */
static bool record_steps(tape *t, slice x, slice step, int launches) {
    err e;
    for (int i = 0; i < launches; i++) {
        tape_mark(t, "step");
        launch *l = tape_add(t, "tape.metal", "count_up", &e);
        if (!l)
            return false;
        launch_bind(l, 0, step, ACCESS_BOTH, ELEM_F32);
        launch_set_groups(l, (size3){1, 1, 1}, (size3){1, 1, 1});
        tape_barrier(t);
        l = tape_add(t, "tape.metal", "advance", &e);
        if (!l)
            return false;
        launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
        launch_set_f32(l, 1, 2);
        launch_bind(l, 2, step, ACCESS_READ, ELEM_F32);
        launch_set_u32(l, 3, N);
        launch_set_threads_rounded(l, N, 32);
        tape_barrier(t);
    }
    return true;
}

static float expect_after(int plays, int launches) {
    float x = 0, step = 0;
    for (int i = 0; i < plays * launches; i++) {
        step += 1;
        x = x * 2 + step;
    }
    return x;
}

TEST every_way_to_play_gives_the_same_result(play_mode mode, play_order order) {
    const float zeros[N] = {0};
    ASSERT(support_get_library());
    slice x = support_buffer(zeros, sizeof zeros), step = support_buffer(zeros, 4);
    tape *t = tape_new(support_get_library());
    t->order = order;
    ASSERT(record_steps(t, x, step, 3));
    const size_t parts[] = {1, 3, 6};
    ASSERT_EQ_FMT(parts[mode], tape_count_parts(t, mode), "%zu");
    play_times total, each[6];
    err e;
    for (int play = 1; play <= 3; play++) {
        ASSERTm(e.text, tape_play(t, mode, &total, each, &e));
        const float *got = support_read(x);
        for (int i = 0; i < N; i++)
            ASSERT_EQ_FMT((double)expect_after(play, 3), (double)got[i], "%g");
        uint64_t gpu = 0, wall = 0;
        for (size_t i = 0; i < parts[mode]; i++) {
            ASSERT(each[i].gpu_ns > 0 && each[i].wall_ns >= each[i].gpu_ns);
            ASSERT(each[i].encode_ns > 0);
            gpu += each[i].gpu_ns;
            wall += each[i].wall_ns;
        }
        ASSERT_EQ(gpu, total.gpu_ns);
        ASSERT_EQ(wall, total.wall_ns);
    }
    tape_free(t);
    PASS();
}

TEST a_sampled_play_gives_a_time_for_each_launch_and_says_how(void) {
    const float zeros[N] = {0};
    ASSERT(support_get_library());
    slice x = support_buffer(zeros, sizeof zeros), step = support_buffer(zeros, 4);
    tape *t = tape_new(support_get_library());
    ASSERT(record_steps(t, x, step, 2));
    ASSERT_EQ(4u, tape_count_parts(t, PLAY_SAMPLED));
    bool can = device_can_sample(support_get_device());
    play_times total, each[4];
    err e;
    ASSERTm(e.text, tape_play(t, PLAY_SAMPLED, &total, each, &e));
    ASSERT_EQ_FMT((double)expect_after(1, 2), (double)((const float *)support_read(x))[0], "%g");
    ASSERT(total.gpu_ns > 0);
    for (int i = 0; i < 4; i++)
        ASSERT(each[i].gpu_is_sampled == can && each[i].gpu_ns > 0);
    tape_free(t);
    PASS();
}

TEST several_plays_can_be_in_flight_and_finish_in_order(void) {
    const float zeros[N] = {0};
    ASSERT(support_get_library());
    slice x = support_buffer(zeros, sizeof zeros), step = support_buffer(zeros, 4);
    tape *t = tape_new(support_get_library());
    ASSERT(record_steps(t, x, step, 1));
    device *d = support_get_device();
    ticket k[4];
    err e;
    for (int i = 0; i < 4; i++)
        ASSERT(device_submit(d, t, 0, t->count, &k[i], &e));
    for (int i = 3; i >= 0; i--)
        ASSERT(device_wait(d, &k[i], NULL, &e));
    ASSERT_EQ_FMT((double)expect_after(4, 1), (double)((const float *)support_read(x))[N - 1],
                  "%g");
    tape_free(t);
    PASS();
}

TEST a_tape_can_be_cleared_and_recorded_again(void) {
    const float zeros[N] = {0};
    ASSERT(support_get_library());
    slice x = support_buffer(zeros, sizeof zeros), step = support_buffer(zeros, 4);
    tape *t = tape_new(support_get_library());
    ASSERT(record_steps(t, x, step, 4));
    tape_clear(t);
    ASSERT_EQ(0u, tape_count_parts(t, PLAY_MARKS));
    ASSERT(record_steps(t, x, step, 2));
    ASSERT_EQ(4u, t->count);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL));
    ASSERT_EQ_FMT((double)expect_after(1, 2), (double)((const float *)support_read(x))[0], "%g");
    tape_free(t);
    PASS();
}

/* Whatever a device prepared for the first play, the second must see the launch as it is then. */
TEST launches_that_change_between_plays_are_played_as_they_are(play_order order) {
    const float zeros[N] = {0};
    ASSERT(support_get_library());
    slice x = support_buffer(zeros, sizeof zeros), y = support_buffer(zeros, sizeof zeros);
    slice step = support_buffer(zeros, 4);
    tape *t = tape_new(support_get_library());
    t->order = order;
    ASSERT(record_steps(t, x, step, 1));
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL)); /* x = 1, step = 1 */
    memcpy(t->launches[1].inline_bytes + t->launches[1].args[1].inline_at, &(float){10}, 4);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL)); /* x = 12, step = 2 */
    ASSERT_EQ(12.0f, ((const float *)support_read(x))[0]);
    launch_bind(&t->launches[1], 0, y, ACCESS_BOTH, ELEM_F32);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL)); /* y = 3, step = 3 */
    ASSERT_EQ(12.0f, ((const float *)support_read(x))[0]);
    ASSERT_EQ(3.0f, ((const float *)support_read(y))[N - 1]);
    launch_set_threads_rounded(&t->launches[1], 32, 32);
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL)); /* the first 32 of y = 34, step = 4 */
    ASSERT_EQ(34.0f, ((const float *)support_read(y))[31]);
    ASSERT_EQ(3.0f, ((const float *)support_read(y))[32]);
    launch_bind(&t->launches[1], 1, step, ACCESS_READ, ELEM_F32); /* a scalar in device memory */
    ASSERT(tape_play(t, PLAY_WHOLE, NULL, NULL, NULL));           /* y = 34 * 5 + 5 */
    ASSERT_EQ(175.0f, ((const float *)support_read(y))[0]);
    tape_free(t);
    PASS();
}

/* In flight, each play has the constants it was submitted with. */
TEST plays_in_flight_keep_their_constants(void) {
    struct {
        float weights[4];
        uint32_t at;
        uint16_t small, unused;
    } s = {{1, 2, 3, 4}, 1, 1, 0};
    const uint32_t pair[2] = {1000, 2000};
    const uint16_t word = 300;
    const uint8_t byte = 7;
    float table[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    slice out[3];
    ticket k[3];
    err e;
    launch *l = support_launch("tape.metal", "use_constants");
    ASSERTm(support_get_error()->text, l);
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = support_buffer(NULL, 64 * 4);
        s.at = i;
        table[0] = (float)i * 0.5f;
        l->inline_used = 0;
        launch_bind(l, 0, out[i], ACCESS_WRITE, ELEM_F32);
        launch_set_bytes(l, 1, table, sizeof table);
        launch_set_bytes(l, 2, &s, sizeof s);
        launch_set_bytes(l, 3, &byte, 1);
        launch_set_bytes(l, 4, &word, 2);
        launch_set_bytes(l, 5, pair, 8);
        launch_set_threads(l, (size3){64, 1, 1}, (size3){32, 1, 1});
        ASSERTm(e.text, device_submit(support_get_device(), support_get_tape(), 0, 1, &k[i], &e));
    }
    for (int i = 0; i < 3; i++)
        ASSERTm(e.text, device_wait(support_get_device(), &k[i], NULL, &e));
    for (uint32_t i = 0; i < 3; i++) {
        const float *got = support_read(out[i]);
        for (uint32_t j = 0; j < 64; j++) {
            float first = j % 8 == 0 ? (float)i * 0.5f : (float)(j % 8);
            float want = first + (float)(j % 4 + 1) * (float)(i + 1) + 3307;
            ASSERT_EQ_FMT((double)want, (double)got[j], "%g");
        }
    }
    PASS();
}

TEST a_write_outside_a_buffer_is_found_in_its_guard_zone(int past) {
    const float zeros[5] = {0};
    slice x = support_buffer(zeros, sizeof zeros);
    launch *l = support_launch("tape.metal", "write_outside");
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
    launch_set_bytes(l, 1, &past, sizeof past);
    launch_set_u32(l, 2, 5);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){1, 1, 1});
    ptrdiff_t at = 0;
    err e;
    ASSERT(buffer_check_guards(x.buffer, &at, &e));
    ASSERT(support_play());
    bool inside = past <= 0 && past > -5;
    ASSERT_EQ(inside, buffer_check_guards(x.buffer, &at, &e));
    if (!inside) {
        ptrdiff_t first = (ptrdiff_t)(past - 1) * 4; /* relative to the end */
        ASSERT_EQ_FMT(past > 0 ? first : first + 20 + 3, at, "%td");
        ASSERT_EQ(EXIT_WRONG, e.code);
    }
    PASS();
}

/* A launch of `advance` that is right, for the tests below to spoil. */
static launch *make_right(slice *x, slice *step) {
    const float zeros[N] = {0};
    *x = support_buffer(zeros, sizeof zeros);
    *step = support_buffer(zeros, 4);
    launch *l = support_launch("tape.metal", "advance");
    if (!l)
        return NULL;
    launch_bind(l, 0, *x, ACCESS_BOTH, ELEM_F32);
    launch_set_f32(l, 1, 2);
    launch_bind(l, 2, *step, ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 3, N);
    launch_set_threads_rounded(l, N, 32);
    return l;
}

/* Refused before anything ran, with a message that names the kernel and these words. */
static const char *find_unrefused(const char *kernel, const char *word, const char *other) {
    if (support_play())
        return "the launch was played";
    const char *text = support_get_error()->text;
    bool named = strstr(text, kernel) && strstr(text, word) && strstr(text, other);
    return named ? NULL : text;
}

TEST a_launch_that_does_not_fit_its_signature_is_refused(int spoiled) {
    slice x, step;
    launch *l = make_right(&x, &step);
    ASSERTm(support_get_error()->text, l);
    const char *word = "", *other = "";
    switch (spoiled) {
    case 0:
        l->args[2].kind = BIND_NONE, word = "2", other = "step";
        break;
    case 1:
        launch_bind(l, 9, step, ACCESS_READ, ELEM_F32), word = "9";
        break;
    case 2:
        launch_set_bytes(l, 3, "12345678", 8), word = "8", other = "n";
        break;
    case 3:
        launch_bind(l, 3, slice_part(x.buffer, 0, 2), ACCESS_READ, ELEM_U16), word = "3";
        break;
    case 4:
        l->group.x = 2048, word = "2048", other = "1024";
        break;
    case 5:
        l->grid.y = 0, word = "grid";
        break;
    case 6:
        l->group.x = 0, word = "group";
        break;
    case 7:
        l->threadgroup_bytes[0] = 64, word = "threadgroup";
        break;
    case 8:
        launch_bind(l, 2, step, ACCESS_BOTH, ELEM_F32), word = "2", other = "step";
        break;
    }
    const char *wrong = find_unrefused("advance", word, other);
    if (wrong)
        FAILm(wrong);
    for (int i = 0; i < N; i++)
        ASSERT_EQ(0.0f, ((const float *)support_read(x))[i]);
    PASS();
}

static launch *make_output_only(const char *kernel, uint32_t threads, uint32_t group) {
    launch *l = support_launch("tape.metal", kernel);
    if (!l)
        return NULL;
    launch_bind(l, 0, support_buffer(NULL, threads * 4), ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){threads, 1, 1}, (size3){group, 1, 1});
    return l;
}

TEST threadgroup_memory_that_is_missing_or_too_much_is_refused(void) {
    launch *l = make_output_only("needs_memory", 32, 32);
    ASSERTm(support_get_error()->text, l);
    const char *wrong = find_unrefused("needs_memory", "0", "scratch");
    if (wrong)
        FAILm(wrong);
    l->threadgroup_bytes[0] = 40000;
    wrong = find_unrefused("needs_memory", "40000", "32768");
    if (wrong)
        FAILm(wrong);
    l->threadgroup_bytes[0] = 128;
    ASSERT(support_play());
    ASSERT(make_output_only("too_much_memory", 32, 32));
    wrong = find_unrefused("too_much_memory", "40000", "32768");
    if (wrong)
        FAILm(wrong);
    PASS();
}

TEST a_kernel_can_limit_its_threadgroup(void) {
    ASSERTm(support_get_error()->text, make_output_only("small_groups", 128, 64));
    ASSERTm(support_get_error()->text, support_play());
    ASSERT(make_output_only("small_groups", 128, 128));
    const char *wrong = find_unrefused("small_groups", "128", "64");
    if (wrong)
        FAILm(wrong);
    PASS();
}

TEST an_unavailable_device_says_why_and_an_unknown_one_what_there_is(void) {
    err e;
    ASSERT_EQ(NULL, device_open("metall", &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT(strstr(e.text, "soft") && strstr(e.text, "metall"));
    const char *name;
    bool available, any = false;
    for (int i = 0; device_describe(i, &name, &available, &e); i++) {
        any = any || available;
        if (!available)
            ASSERT(strstr(e.text, name));
    }
    ASSERT(any);
    PASS();
}

SUITE(tape_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    for (int order = ORDER_SERIAL; order <= ORDER_CONCURRENT; order++)
        for (int mode = PLAY_WHOLE; mode <= PLAY_LAUNCHES; mode++)
            RUN_TESTp(every_way_to_play_gives_the_same_result, (play_mode)mode, (play_order)order);
    RUN_TEST(a_sampled_play_gives_a_time_for_each_launch_and_says_how);
    RUN_TEST(several_plays_can_be_in_flight_and_finish_in_order);
    RUN_TEST(a_tape_can_be_cleared_and_recorded_again);
    RUN_TESTp(launches_that_change_between_plays_are_played_as_they_are, ORDER_SERIAL);
    RUN_TESTp(launches_that_change_between_plays_are_played_as_they_are, ORDER_CONCURRENT);
    RUN_TEST(plays_in_flight_keep_their_constants);
    static const int past[] = {0, -4, 1, 2, 1000, -5, -100};
    for (size_t i = 0; i < sizeof past / sizeof *past; i++)
        RUN_TESTp(a_write_outside_a_buffer_is_found_in_its_guard_zone, past[i]);
    for (int i = 0; i <= 8; i++)
        RUN_TESTp(a_launch_that_does_not_fit_its_signature_is_refused, i);
    RUN_TEST(threadgroup_memory_that_is_missing_or_too_much_is_refused);
    RUN_TEST(a_kernel_can_limit_its_threadgroup);
    RUN_TEST(an_unavailable_device_says_why_and_an_unknown_one_what_there_is);
}
