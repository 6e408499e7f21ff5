/* Tapes, buffers and the device interface: recording, the ways to play, what is refused before it runs; loads
 * before the launch before has ended; private buffers, memory of the caller, mapped files, and large buffers. */
#include <assert.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/map_guard.h"
#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(tape_suite);
SUITE_EXTERN(tape_early_suite);
SUITE_EXTERN(tape_memory_suite);

enum { N = 100 };

static err e;

static const float zeros[N];
static slice x, step; /* of the tape */

static tape *start_tape(void) {
    x = support_buffer(zeros, sizeof zeros);
    step = support_buffer(zeros, 4);
    assert(support_get_library());
    return tape_new(support_get_library());
}

static void bind_advance(launch *l) {
    launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
    launch_set_f32(l, 1, 2);
    launch_bind(l, 2, step, ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 3, N);
    launch_set_threads_rounded(l, N, 32);
}

/* One decode-like tape: count_up changes the step that the next `advance` reads. */
static bool record_steps(tape *t, int launches) {
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
        bind_advance(l);
        tape_barrier(t);
    }
    return true;
}

static float expect_after(int plays, int launches) {
    float value = 0;
    for (int i = 0; i < plays * launches; i++)
        value = value * 2 + (float)(i + 1);
    return value;
}

TEST every_way_to_play_gives_the_same_result(play_mode mode, play_order order) {
    tape *t = start_tape();
    t->order = order;
    ASSERT(record_steps(t, 3));
    const size_t parts[] = {1, 3, 6};
    ASSERT_EQ_FMT(parts[mode], tape_count_parts(t, mode), "%zu");
    play_times total, each[6];
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
    tape *t = start_tape();
    ASSERT(record_steps(t, 2));
    ASSERT_EQ(4u, tape_count_parts(t, PLAY_SAMPLED));
    bool can = device_can_sample(support_get_device());
    play_times total, each[4];
    ASSERTm(e.text, tape_play(t, PLAY_SAMPLED, &total, each, &e));
    ASSERT_EQ_FMT((double)expect_after(1, 2), (double)((const float *)support_read(x))[0], "%g");
    ASSERT(total.gpu_ns > 0);
    for (int i = 0; i < 4; i++)
        ASSERT(each[i].gpu_is_sampled == can && each[i].gpu_ns > 0);
    tape_free(t);
    PASS();
}

TEST several_plays_can_be_in_flight_and_finish_in_order(void) {
    tape *t = start_tape();
    ASSERT(record_steps(t, 1));
    device *d = support_get_device();
    ticket k[4];
    for (int i = 0; i < 4; i++)
        ASSERT(device_submit(d, t, 0, t->count, &k[i], &e));
    for (int i = 3; i >= 0; i--)
        ASSERT(device_wait(d, &k[i], NULL, &e));
    ASSERT_EQ_FMT((double)expect_after(4, 1), (double)((const float *)support_read(x))[N - 1],
                  "%g");
    tape_free(t);
    PASS();
}

/* Whatever a device prepared for the first play, the second must see the launch as it is then. */
TEST launches_that_change_between_plays_are_played_as_they_are(play_order order) {
    tape *t = start_tape();
    slice y = support_buffer(zeros, sizeof zeros);
    t->order = order;
    ASSERT(record_steps(t, 1));
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
    x = support_buffer(zeros, 5 * sizeof *zeros);
    launch *l = support_launch("tape.metal", "write_outside");
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
    launch_set_bytes(l, 1, &past, sizeof past);
    launch_set_u32(l, 2, 5);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){1, 1, 1});
    ptrdiff_t at = 0;
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
static launch *make_right(void) {
    x = support_buffer(zeros, sizeof zeros);
    step = support_buffer(zeros, 4);
    launch *l = support_launch("tape.metal", "advance");
    if (!l)
        return NULL;
    bind_advance(l);
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
    launch *l = make_right();
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

/* Loads before the launch before has ended (kernels/prefetch.h) ---------------------------------- */

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

/* Buffers --------------------------------------------------------------------------------------- */

TEST private_buffers_have_no_contents_and_are_copied(void) {
    device *d = support_get_device();
    ASSERT(d);
    buffer *b = device_new_buffer(d, 1000, STORAGE_PRIVATE, "private", &e);
    ASSERT(b);
    ASSERT_EQ(NULL, b->contents);
    char in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = (char)(i * 7);
    ASSERT(buffer_upload(b, 0, in, sizeof in, &e));
    ASSERT(buffer_download(b, 0, out, sizeof out, &e));
    ASSERT_MEM_EQ(in, out, sizeof in);
    ASSERT_FALSE(buffer_download(b, 1, out, sizeof out, &e));
    ASSERT(strstr(e.text, "private"));
    buffer_free(b);
    PASS();
}

/* A launch that adds the float at the start of `step` to zeros. */
static bool play_step(buffer *from, float *sum) {
    x = support_buffer(zeros, sizeof zeros);
    launch *l = support_launch("tape.metal", "advance");
    if (!l)
        return false;
    launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
    launch_set_f32(l, 1, 1);
    launch_bind(l, 2, slice_part(from, 0, 4), ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 3, N);
    launch_set_threads_rounded(l, N, 32);
    bool ok = support_play();
    *sum = ((const float *)support_read(x))[7];
    support_end();
    return ok;
}

TEST memory_of_the_caller_is_used_in_place_and_never_written(void) {
    device *d = support_get_device();
    ASSERT(d);
    float *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    ASSERT(mapped != MAP_FAILED);
    buffer *b = device_wrap_memory(d, mapped + 3, 400, "mapped", &e);
    ASSERT(b);
    mapped[3] = 42;
    mprotect(mapped, 4096, PROT_READ);
    float sum = 0;
    ASSERTm(support_get_error()->text, play_step(b, &sum));
    ASSERT_EQ(42.0f, sum);
    ASSERT_FALSE(buffer_upload(b, 0, &sum, 4, &e));
    buffer_free(b);
    munmap(mapped, 4096);
    PASS();
}

/* As weights are: two buffers in one map, which is let go with the second. What is written to the file
 * is seen because both sides have its pages. */
TEST a_mapped_file_is_shared_with_the_software_device(void) {
    enum { BYTES = 1 << 20, OFFSET = 70000 };
    device *d = support_get_device();
    if (!d || strcmp(device_get_facts(d)->api, "soft") != 0)
        SKIPm("the device copies it");
    float sum = 0;
    int file = os_open_unnamed();
    ASSERT(file >= 0 && ftruncate(file, BYTES) == 0);
    for (int round = 0; round < 2; round++) {
        char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
        ASSERT(map != MAP_FAILED);
        map_guard_add(map, BYTES, "weights", file);
        buffer *first = device_wrap_memory(d, map + OFFSET, BYTES - OFFSET, "first", &e);
        buffer *second = device_wrap_memory(d, map, OFFSET, "second", &e);
        ASSERT(first && second && !first->is_copy && !second->is_copy);
        float value = 11.0f + (float)round;
        ASSERT(pwrite(file, &value, 4, OFFSET) == 4);
        buffer_free(second);
        ASSERTm(support_get_error()->text, play_step(first, &sum));
        ASSERT_EQ_FMT((double)value, (double)sum, "%g");
        buffer_free(first);
        map_guard_remove(map);
        munmap(map, BYTES);
    }
    close(file);
    PASS();
}

/* Again and again, in the memory that was freed. */
TEST a_large_buffer_reads_as_nan_until_it_is_written(storage_mode storage) {
    enum { WORDS = 3 << 20, AT = (1 << 20) + 77, MANY = 700000 };
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only the software device promises it");
    device *d = support_get_device();
    ASSERT(d);
    float sum = 0, *many = calloc(MANY, sizeof *many);
    for (int round = 0; round < 3; round++) {
        buffer *b = device_new_buffer(d, 4 * (size_t)WORDS, storage, "large", &e);
        ASSERT(b && many);
        ASSERT(play_step(b, &sum));
        ASSERT(isnan(sum));
        ASSERT(buffer_download(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        for (size_t i = 0; i < MANY; i++)
            ASSERT(isnan(many[i]));
        for (size_t i = 0; i < MANY; i++)
            many[i] = (float)i;
        ASSERT(buffer_upload(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        ASSERT(buffer_upload(b, 0, &(float){7}, 4, &e));
        memset(many, 0, 4 * MANY);
        ASSERT(buffer_download(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        for (size_t i = 0; i < MANY; i++)
            ASSERT_EQ((float)i, many[i]);
        ASSERT(play_step(b, &sum));
        ASSERT_EQ(7.0f, sum);
        ASSERT(buffer_fill_pattern(b, 0, b->bytes, 0, &e));
        ASSERT(buffer_download(b, b->bytes - 4, &sum, 4, &e) && sum == 0);
        ASSERT(buffer_check_guards(b, &(ptrdiff_t){0}, &e));
        buffer_free(b);
    }
    free(many);
    PASS();
}

static size_t count_pages_of(const char *process) {
    char path[64];
    size_t pages = 0;
    snprintf(path, sizeof path, "/proc/%s/statm", process);
    char *text = os_read_file(path, NULL, NULL);
    if (!text || sscanf(text, "%*u %zu", &pages) != 1)
        pages = 0;
    free(text);
    return pages;
}

/* Pages that this process and those that it started have in memory; 0 where the system does not say. */
static size_t count_pages(void) {
    size_t pages = count_pages_of("self");
    char *text = os_read_file("/proc/thread-self/children", NULL, NULL);
    for (char *one = text ? strtok(text, " ") : NULL; one; one = strtok(NULL, " "))
        pages += count_pages_of(one);
    free(text);
    return pages;
}

TEST a_large_buffer_of_the_device_alone_takes_memory_when_it_is_used(void) {
    enum { MEGABYTE = 1 << 20 };
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only the software device promises it");
    device *d = support_get_device();
    ASSERT(d);
    const size_t before = count_pages(), bytes = (size_t)203 * MEGABYTE + 6;
    buffer *large = device_new_buffer(d, bytes, STORAGE_PRIVATE, "large", &e);
    ASSERT(large);
    uint16_t word = 0;
    ASSERT(buffer_upload(large, 2468, &(uint16_t){7}, 2, &e));
    ASSERT(buffer_download(large, 2468, &word, 2, &e) && word == 7);
    ASSERT(before == 0 || (count_pages() - before) * 4096 < (size_t)8 * MEGABYTE);
    buffer_free(large);
    PASS();
}

SUITE(tape_memory_suite) {
    RUN_TEST(a_large_buffer_of_the_device_alone_takes_memory_when_it_is_used);
    RUN_TEST(private_buffers_have_no_contents_and_are_copied);
    RUN_TEST(memory_of_the_caller_is_used_in_place_and_never_written);
    RUN_TEST(a_mapped_file_is_shared_with_the_software_device);
    RUN_TESTp(a_large_buffer_reads_as_nan_until_it_is_written, STORAGE_PRIVATE);
    RUN_TESTp(a_large_buffer_reads_as_nan_until_it_is_written, STORAGE_SHARED);
}
