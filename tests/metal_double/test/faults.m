/* faults: the Metal device on the double, when work fails, is refused, cannot run, or takes long. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/metal_double/double.h"
#include "tests/metal_double/test/bench.h"

SUITE_EXTERN(faults_suite);

TEST after_a_fault_the_process_is_lost(void) {
    SET_UP(2);
    ASSERT_FALSE(device_is_lost(b.device));
    setenv("METAL_DOUBLE", "fault", 1);
    ASSERT_FALSE(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT_EQ(EXIT_WRONG, b.e.code);
    ASSERT(device_is_lost(b.device));
    device_tell_loss(b.device, &b.e);
    ASSERTm(b.e.text, strstr(b.e.text, "Address Fault") && strstr(b.e.text, "is retired"));
    unsetenv("METAL_DOUBLE");
    size_t before = double_count_commits();
    ASSERT_FALSE(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "start another one"));
    ASSERT_EQ_FMT(before, double_count_commits(), "%zu");
    PASS();
}

TEST what_follows_a_fault_is_refused_and_says_so(void) {
    ticket first, second;
    SET_UP(2);
    ASSERT(device_submit(b.device, b.tape, 0, 1, &first, &b.e));
    ASSERT(device_submit(b.device, b.tape, 1, 1, &second, &b.e));
    setenv("METAL_DOUBLE", "fault", 1);
    ASSERT_FALSE(device_wait(b.device, &first, NULL, &b.e));
    unsetenv("METAL_DOUBLE");
    ASSERT_FALSE(device_wait(b.device, &second, NULL, &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "takes no more work of this process"));
    device *other = device_open("metal", &b.e); /* that does not help, only a new process does */
    ASSERTm(b.e.text, other);
    ASSERT_EQ(NULL, device_new_buffer(other, 64, STORAGE_PRIVATE, "p", &b.e));
    ASSERT(device_is_lost(other));
    device_close(other);
    PASS();
}

/* A fault of other work, and work that holds up the screen. */
TEST what_is_not_this_work_s_fault_is_not_called_wrong(const char *fault, const char *says) {
    SET_UP(5);
    setenv("METAL_DOUBLE", fault, 1);
    ASSERT_FALSE(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, says));
    ASSERT_FALSE(device_is_lost(b.device));
    if (strcmp(fault, "victim") == 0)
        unsetenv("METAL_DOUBLE");
    ASSERT(tape_play(b.tape, PLAY_LAUNCHES, NULL, NULL, &b.e));
    PASS();
}

/* 3 GB are long at the rate of a slow GPU, 5 launches of 1 GB are just not too long. */
TEST long_work_is_split_into_command_buffers(play_mode mode) {
    enum { LAUNCHES = 40 };
    play_times t;
    SET_UP(LAUNCHES);
    for (size_t i = 0; i < LAUNCHES; i++)
        b.tape->launches[i].bytes = i % 2 ? 3000000000 : 0;
    for (size_t i = 0; i < LAUNCHES; i++)
        b.tape->launches[i].flops = i % 2 ? 0 : 20000000000;
    ASSERT(mode != PLAY_SAMPLED || device_can_sample(b.device));
    setenv("METAL_DOUBLE", "busy-screen", 1);
    size_t before = double_count_commits();
    ASSERTm(b.e.text, tape_play(b.tape, mode, &t, NULL, &b.e));
    ASSERT_EQ_FMT((size_t)LAUNCHES / 2, double_count_commits() - before, "%zu");
    ASSERT_EQ((float)LAUNCHES, ((float *)b.x->contents)[N - 1]);
    ASSERT(t.gpu_ns > 0 && t.gpu_ns <= t.wall_ns && !t.gpu_is_wall && t.driver_ns > 0);
    for (size_t i = 0; i < LAUNCHES; i++)
        b.tape->launches[i].bytes = b.tape->launches[i].flops = 1000;
    unsetenv("METAL_DOUBLE");
    before = double_count_commits();
    ASSERT(tape_play(b.tape, mode, &t, NULL, &b.e));
    ASSERT_EQ_FMT((size_t)1, double_count_commits() - before, "%zu");
    PASS();
}

TEST the_driver_is_asked_for_time_before_the_gpu_is_opened(void) {
    static const char name[] = "AGX_RELAX_CDM_CTXSTORE_TIMEOUT";
    unsetenv(name);
    SET_UP(1);
    ASSERT_STR_EQ("1", getenv(name));
    bench_tear_down(NULL);
    setenv(name, "0", 1);
    SET_UP(1);
    ASSERT_STR_EQ("0", getenv(name)); /* the user knows better */
    bench_tear_down(NULL);
    unsetenv(name);
    PASS();
}

/* What a GPU cannot run ------------------------------------------------------------------------ */

static const char texts[] =
    "#include <metal_stdlib>\nusing namespace metal;\n"
    "kernel void plain(device float *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }\n"
    "kernel void matrices(device float *x, uint i [[thread_position_in_grid]]) {\n"
    "    simdgroup_float8x8 a;\n    simdgroup_load(a, x, 8);\n    simdgroup_store(a, x, 8);\n}\n"
    "kernel void scaled(device float *x, constant float &by [[buffer(1)]],\n"
    "                   uint i [[thread_position_in_grid]]) { x[i] *= by; }\n";

static bool can_play(const char *kernel, size_t offset, err *e) {
    msl_unit *unit = msl_from_text("texts.metal", texts, e);
    pipeline *p = unit ? device_new_pipeline(b.device, unit, kernel, NULL, 0, MATH_SAFE, e) : NULL;
    if (!p)
        return false;
    tape *t = tape_new(b.library);
    launch *l = tape_add_pipeline(t, p);
    launch_bind(l, 0, slice_whole(b.x), ACCESS_BOTH, ELEM_F32);
    if (strcmp(kernel, "scaled") == 0)
        launch_bind(l, 1, slice_part(b.x, offset, 4), ACCESS_READ, ELEM_F32);
    launch_set_threads_rounded(l, N, 64);
    bool can = device_can_play(t, e), played = tape_play(t, PLAY_WHOLE, NULL, NULL, e);
    tape_free(t);
    pipeline_free(p);
    msl_free(unit);
    return can && played;
}

TEST kernels_for_matrices_cannot_run_without_them(void) {
    SET_UP(1);
    ASSERT(device_offers(device_get_facts(b.device), FEATURE_MATRICES, NULL));
    ASSERTm(b.e.text, can_play("matrices", 0, &b.e));
    bench_tear_down(NULL);
    setenv("METAL_DOUBLE", "paravirtual", 1);
    SET_UP(1);
    const device_facts *f = device_get_facts(b.device);
    ASSERTm(f->family, f->offers == 0 && strstr(f->family, "Apple5") &&
                           !strstr(f->family, "Metal") && f->simd_width == 32);
    ASSERTm(b.e.text, can_play("plain", 0, &b.e));
    ASSERT_FALSE(can_play("matrices", 0, &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "'matrices' multiplies simdgroup matrices"));
    PASS();
}

TEST constants_are_bound_where_the_gpu_takes_them(void) {
    SET_UP(1);
    ASSERTm(b.e.text, can_play("scaled", 4, &b.e));
    bench_tear_down(NULL);
    setenv("METAL_DOUBLE", "simd-64", 1);
    SET_UP(1);
    ASSERTm(b.e.text, can_play("scaled", 32, &b.e));
    ASSERT_FALSE(can_play("scaled", 4, &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "constant 'by'") && strstr(b.e.text, "multiples of 32"));
    PASS();
}

/* Residency ------------------------------------------------------------------------------------ */

static bool play_twice_with_a_pause(void) {
    static const struct timespec pause = {.tv_sec = 1, .tv_nsec = 100000000};
    bool ok = tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e);
    nanosleep(&pause, NULL);
    return ok && tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e);
}

TEST no_play_has_to_wire_memory_first(void) {
    SET_UP(2);
    size_t before = double_count_wired();
    ASSERT(play_twice_with_a_pause());
    buffer *late = device_new_buffer(b.device, 64, STORAGE_SHARED, "late", &b.e);
    launch_bind(&b.tape->launches[1], 2, slice_whole(late), ACCESS_READ, ELEM_F32);
    ASSERT(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT_EQ_FMT(before, double_count_wired(), "%zu");
    size_t objects = double_count_objects();
    buffer_free(late);
    ASSERT_EQ_FMT(objects - 1, double_count_objects(), "%zu"); /* the set does not hold it */
    PASS();
}

TEST without_residency_sets_memory_is_wired_by_each_play(void) {
    setenv("METAL_DOUBLE", "no-residency", 1);
    SET_UP(2);
    size_t before = double_count_wired();
    ASSERT(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT(double_count_wired() > before);
    PASS();
}

SUITE(faults_suite) {
    SET_TEARDOWN(bench_tear_down, NULL);
    RUN_TEST(after_a_fault_the_process_is_lost);
    RUN_TEST(what_follows_a_fault_is_refused_and_says_so);
    RUN_TESTp(what_is_not_this_work_s_fault_is_not_called_wrong, "victim", "fault of other work");
    RUN_TESTp(what_is_not_this_work_s_fault_is_not_called_wrong, "busy-screen",
              "kept the GPU from the screen");
    RUN_TESTp(long_work_is_split_into_command_buffers, PLAY_WHOLE);
    RUN_TESTp(long_work_is_split_into_command_buffers, PLAY_SAMPLED);
    RUN_TEST(the_driver_is_asked_for_time_before_the_gpu_is_opened);
    RUN_TEST(kernels_for_matrices_cannot_run_without_them);
    RUN_TEST(constants_are_bound_where_the_gpu_takes_them);
    RUN_TEST(no_play_has_to_wire_memory_first);
    RUN_TEST(without_residency_sets_memory_is_wired_by_each_play);
}
