/* metal: the Metal device on the double: what is particular to it, except its memory (memory.m).
 * What every device does is tested by the other suites, run with ASSAY_DEVICE=metal. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/check/check.h"
#include "harness/measure/timing.h"
#include "tests/metal_double/double.h"
#include "tests/metal_double/test/bench.h"

SUITE_EXTERN(metal_suite);

TEST without_a_gpu_there_is_a_sentence(void) {
    err e = {.code = EXIT_OK};
    setenv("METAL_DOUBLE", "no-device", 1);
    ASSERT_EQ(NULL, device_open("metal", &e));
    ASSERT_EQ(EXIT_CANNOT, e.code);
    ASSERTm(e.text, strstr(e.text, "no GPU"));
    unsetenv("METAL_DOUBLE");
    PASS();
}

TEST a_gpu_is_picked_by_a_part_of_its_name(void) {
    err e = {.code = EXIT_OK};
    device *d = device_open("metal:DOUBLE ON", &e);
    ASSERTm(e.text, d);
    ASSERT_STR_EQ("metal:DOUBLE ON", device_get_facts(d)->spec);
    device_close(d);
    ASSERT_EQ(NULL, device_open("metal:Apple M9", &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERTm(e.text, strstr(e.text, "Apple M9") && strstr(e.text, "Metal double"));
    ASSERT_EQ(NULL, device_open("soft:first", &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    PASS();
}

TEST facts_are_asked_of_the_gpu(void) {
    SET_UP(1);
    const device_facts *f = device_get_facts(b.device);
    ASSERT_STR_EQ("metal", f->api);
    ASSERT(strstr(f->compiler, "safe math, precise functions") &&
           strstr(f->compiler, "language 4.0"));
    ASSERT(f->working_set_bytes > 0 && f->max_buffer_bytes > 0 && f->memory_bytes > 0);
    ASSERT(f->unified && f->emulated && !f->is_virtual && f->flushes_denormals);
    ASSERT(strstr(f->family, "Apple7") && strstr(f->family, "Metal3") && f->simd_width == 32);
    ASSERT_EQ(1024u, b.tape->launches[0].pipeline->max_group_threads);
    PASS();
}

TEST times_that_cannot_be_are_the_walls_and_say_so(const char *fault) {
    play_times t;
    setenv("METAL_DOUBLE", fault, 1);
    SET_UP(1);
    ASSERT(tape_play(b.tape, PLAY_WHOLE, &t, NULL, &b.e));
    ASSERT(t.gpu_is_wall && t.gpu_ns == t.wall_ns && t.wall_ns > 0);
    unsetenv("METAL_DOUBLE");
    ASSERT(tape_play(b.tape, PLAY_WHOLE, &t, NULL, &b.e));
    ASSERT(!t.gpu_is_wall && t.gpu_ns > 0 && t.gpu_ns <= t.wall_ns);
    ASSERT(t.driver_ns > 0);
    PASS();
}

TEST counters_time_each_launch_in_one_command_buffer(const char *fault) {
    enum { LAUNCHES = 5 };
    play_times total, each[LAUNCHES];
    if (fault)
        setenv("METAL_DOUBLE", fault, 1);
    SET_UP(LAUNCHES);
    ASSERT_EQ(!fault, device_can_sample(b.device));
    ASSERTm(b.e.text, tape_play(b.tape, PLAY_SAMPLED, &total, each, &b.e));
    ASSERT_EQ((float)LAUNCHES, ((float *)b.x->contents)[N - 1]);
    uint64_t sum = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        ASSERT_EQ(!fault, each[i].gpu_is_sampled);
        ASSERT(each[i].gpu_ns > 0 && !each[i].samples_overlap);
        sum += each[i].gpu_ns;
    }
    ASSERT(!total.samples_overlap && sum <= total.gpu_ns * 2);
    ASSERT(tape_play(b.tape, PLAY_SAMPLED, NULL, NULL, &b.e));
    PASS();
}

TEST more_launches_than_samples_are_played_in_parts(void) {
    enum { LAUNCHES = 5000 };
    static play_times each[LAUNCHES];
    SET_UP(LAUNCHES);
    ASSERT(tape_play(b.tape, PLAY_SAMPLED, NULL, each, &b.e));
    ASSERT_EQ((float)LAUNCHES, ((float *)b.x->contents)[0]);
    for (int i = 0; i < LAUNCHES; i++)
        ASSERT(each[i].gpu_is_sampled && each[i].gpu_ns > 0);
    PASS();
}

TEST samples_that_are_lost_are_no_times(void) {
    play_times each[2];
    SET_UP(2);
    ASSERT(device_can_sample(b.device));
    setenv("METAL_DOUBLE", "zero-counters", 1);
    ASSERT(tape_play(b.tape, PLAY_SAMPLED, NULL, each, &b.e));
    ASSERT(each[0].gpu_is_sampled && each[0].gpu_ns == 0 && each[1].gpu_ns == 0);
    ASSERT_EQ(2.0f, ((float *)b.x->contents)[0]);
    PASS();
}

TEST samples_that_sum_past_the_whole_are_kept_and_marked(void) {
    enum { LAUNCHES = 400 };
    static play_times each[LAUNCHES];
    play_times total;
    setenv("METAL_DOUBLE", "overlap", 1);
    SET_UP(LAUNCHES);
    ASSERT(device_can_sample(b.device));
    ASSERTm(b.e.text, tape_play(b.tape, PLAY_SAMPLED, &total, each, &b.e));
    uint64_t sum = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        ASSERT(each[i].gpu_is_sampled && each[i].samples_overlap && each[i].gpu_ns > 0);
        sum += each[i].gpu_ns;
    }
    ASSERT(total.samples_overlap && sum > total.gpu_ns);
    PASS();
}

/* Names of failed encoders cost time: they are for checks, never for what is timed. */
TEST only_a_check_asks_for_the_details_of_errors(void) {
    check_result result;
    SET_UP(2);
    size_t before = double_count_explained();
    ASSERT(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT(tape_play(b.tape, PLAY_LAUNCHES, NULL, NULL, &b.e));
    ASSERT(tape_play(b.tape, PLAY_SAMPLED, NULL, NULL, &b.e));
    ASSERT_EQ_FMT(before, double_count_explained(), "%zu");
    check_options how = {.unordered = false};
    ASSERT_FALSE(check_tape(b.tape, &how, &result, &b.e) && result.verdict == CHECK_PASS);
    ASSERT(double_count_explained() > before);
    before = double_count_explained();
    ASSERT(tape_play(b.tape, PLAY_WHOLE, NULL, NULL, &b.e));
    ASSERT_EQ_FMT(before, double_count_explained(), "%zu");
    PASS();
}

TEST a_virtual_gpu_is_a_gpu_whose_times_are_labelled(void) {
    char labels[128];
    setenv("METAL_DOUBLE", "paravirtual", 1);
    SET_UP(1);
    const device_facts *f = device_get_facts(b.device);
    ASSERT(f->is_virtual && !f->emulated);
    timing_get_labels(timing_find_labels(f), labels, sizeof labels);
    ASSERTm(labels, strstr(labels, "virtual") && !strstr(labels, "emulated"));
    PASS();
}

static const char lanes[] =
    "#include <metal_stdlib>\nusing namespace metal;\n"
    "kernel void plain(device float *x, uint i [[thread_position_in_grid]]) { x[i] += 1; }\n"
    "kernel void fixed(device float *x, uint i [[thread_position_in_grid]]) "
    "{ x[i] = simd_sum(x[i]); }\n"
    "kernel void asks(device float *x, uint i [[thread_position_in_grid]], "
    "uint width [[threads_per_simdgroup]]) { x[i] = simd_sum(x[i]) / float(width); }\n";

TEST kernels_for_other_simdgroups_than_the_gpus_are_refused(void) {
    static const struct {
        const char *kernel;
        uint32_t group;
        bool can;
    } cases[] = {
        {"plain", 32, true}, {"fixed", 64, false}, {"asks", 64, true}, {"asks", 32, false}};
    setenv("METAL_DOUBLE", "simd-64", 1);
    SET_UP(1);
    ASSERT_EQ(0u, device_get_facts(b.device)->simd_width);
    msl_unit *unit = msl_from_text("lanes.metal", lanes, &b.e);
    ASSERTm(b.e.text, unit);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipeline *p =
            device_new_pipeline(b.device, unit, cases[i].kernel, NULL, 0, MATH_SAFE, &b.e);
        ASSERTm(b.e.text, p && p->simd_width == 64);
        tape *t = tape_new(b.library);
        launch *l = tape_add_pipeline(t, p);
        launch_bind(l, 0, slice_whole(b.x), ACCESS_BOTH, ELEM_F32);
        launch_set_threads_rounded(l, N, cases[i].group);
        ASSERT_EQ(cases[i].can, device_can_play(t, &b.e));
        ASSERT_EQ(cases[i].can, tape_play(t, PLAY_WHOLE, NULL, NULL, &b.e));
        if (!cases[i].can) {
            ASSERT_EQ(EXIT_CANNOT, b.e.code);
            ASSERTm(b.e.text, strstr(b.e.text, "simdgroups of 32") && strstr(b.e.text, "64"));
        }
        tape_free(t);
        pipeline_free(p);
    }
    msl_free(unit);
    PASS();
}

static const char tiles[] =
    "#include <metal_stdlib>\nusing namespace metal;\n"
    "kernel void dynamic(device float *x, threadgroup float *tile [[threadgroup(0)]],\n"
    "                    uint i [[thread_position_in_threadgroup]]) {\n"
    "    tile[i] = x[i];\n    x[i] = tile[i] + 1;\n}\n"
    "kernel void fixed(device float *x, uint i [[thread_position_in_threadgroup]]) {\n"
    "    threadgroup float tile[8192];\n    tile[i] = x[i];\n    x[i] = tile[i] + 1;\n}\n";

/* Lengths of threadgroup memory stay set in an encoder, cannot be 0, and count towards the limit. */
TEST threadgroup_memory_of_one_launch_does_not_stand_in_the_way_of_the_next(void) {
    SET_UP(1);
    msl_unit *unit = msl_from_text("tiles.metal", tiles, &b.e);
    pipeline *dynamic = device_new_pipeline(b.device, unit, "dynamic", NULL, 0, MATH_SAFE, &b.e);
    pipeline *fixed = device_new_pipeline(b.device, unit, "fixed", NULL, 0, MATH_SAFE, &b.e);
    ASSERTm(b.e.text, dynamic && fixed);
    for (int order = ORDER_SERIAL; order <= ORDER_CONCURRENT; order++) {
        tape *t = tape_new(b.library);
        t->order = (play_order)order;
        for (int i = 0; i < 4; i++) {
            tape_mark(t, "part");
            tape_barrier(t);
            launch *l = tape_add_pipeline(t, i % 2 ? fixed : dynamic);
            launch_bind(l, 0, slice_whole(b.x), ACCESS_BOTH, ELEM_F32);
            l->threadgroup_bytes[0] = i % 2 ? 0 : N * 4;
            launch_set_groups(l, (size3){1, 1, 1}, (size3){N, 1, 1});
        }
        memset(b.x->contents, 0, N * 4);
        ASSERTm(b.e.text, tape_play(t, PLAY_WHOLE, NULL, NULL, &b.e));
        ASSERT_EQ(4.0f, ((float *)b.x->contents)[N - 1]);
        tape_free(t);
    }
    pipeline_free(dynamic);
    pipeline_free(fixed);
    msl_free(unit);
    PASS();
}

TEST one_bad_kernel_takes_its_file_with_it(void) {
    static const char text[] = "kernel void good(device float *x) { x[0] = 1; }\n"
                               "kernel void bad(device float *x) { x[0] = nothing; }\n";
    SET_UP(1);
    msl_unit *unit = msl_from_text("bad.metal", text, &b.e);
    ASSERTm(b.e.text, unit);
    ASSERT_EQ(NULL, device_new_pipeline(b.device, unit, "good", NULL, 0, MATH_SAFE, &b.e));
    ASSERT_EQ(EXIT_WRONG, b.e.code);
    ASSERTm(b.e.detail, strstr(b.e.detail, "bad.metal:2") && strstr(b.e.detail, "nothing"));
    msl_free(unit);
    PASS();
}

/* What Apple's compiler says of a text in a version of the language; NULL: it takes it. */
static const char *compile_as(int language, const char *statement) {
    char text[512];
    snprintf(text, sizeof text,
             "#include <metal_stdlib>\nusing namespace metal;\n"
             "kernel void k(device float *x [[buffer(0)]]) {\n    %s\n}\n",
             statement);
    b.e = (err){.code = EXIT_OK};
    msl_extras extras = {.language = language};
    extras = device_complete_extras(b.device, &extras);
    msl_unit *unit = msl_from_text_with("k.metal", text, &extras, &b.e);
    pipeline *p =
        unit ? device_new_pipeline(b.device, unit, "k", NULL, 0, MATH_SAFE, &b.e) : NULL;
    bool is_taken = p != NULL;
    pipeline_free(p);
    msl_free(unit);
    return is_taken ? NULL : b.e.detail;
}

TEST a_text_is_compiled_in_its_version_of_the_language(void) {
    static const struct {
        const char *statement, *refused; /* in the version before `since` */
        int since;
    } texts[] = {
        {"atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);",
         "use of undeclared identifier 'atomic_thread_fence'", 320},
        {"auto f = [](float v) { return v; }; x[0] = f(1);",
         "lambda expressions are not supported in Metal", 320},
        {"bfloat b = 1; x[0] = float(b);", "unknown type name 'bfloat'", 310},
        {"float a[1]; float *p = a; x[0] = *p;",
         "pointer type must have explicit address space qualifier", 500},
        {"simdgroup_float8x8 m; m.thread_elements() = float2(1, 2);", "no viable overloaded '='",
         500},
        {"simdgroup_float8x8 m; m.thread_elements()[0] = 1;", "", 300},
        {"threadgroup float *p = (threadgroup float *)x; x[0] = *p;", "mismatching address spaces",
         500},
        {"#ifdef __ASSAY__\nx[0] = nothing;\n#endif", "", 300},
        {"static_assert(__METAL_VERSION__ >= 320, \"old\");", "old", 320},
    };
    SET_UP(1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int v = 0; v < MSL_LANGUAGES; v++) {
            int next = v + 1 < MSL_LANGUAGES ? msl_languages[v + 1] : 500;
            bool is_last = next == texts[i].since, is_first = msl_languages[v] == texts[i].since;
            const char *said = is_last || is_first
                                   ? compile_as(msl_languages[v], texts[i].statement)
                                   : NULL;
            if (is_last)
                ASSERTm(texts[i].statement, said && strstr(said, texts[i].refused) &&
                                                strstr(said, "k.metal:4:"));
            else
                ASSERTm(said, !said);
        }
    PASS();
}

TEST a_fault_names_the_encoder(play_mode mode) {
    SET_UP(3);
    setenv("METAL_DOUBLE", "fault", 1);
    ASSERT_FALSE(tape_play(b.tape, mode, NULL, NULL, &b.e));
    ASSERT_EQ(EXIT_WRONG, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "advance") && strstr(b.e.text, "Address Fault"));
    if (mode == PLAY_WHOLE)
        ASSERTm(b.e.text, strstr(b.e.text, "step: advance and 2 more"));
    PASS();
}

TEST a_capture_needs_the_variable_a_new_file_and_its_suffix(void) {
    char path[128], other[160];
    snprintf(path, sizeof path, "/tmp/assay-test-%ld.gputrace", (long)getpid());
    SET_UP(2);
    unsetenv("METAL_CAPTURE_ENABLED");
    ASSERT_FALSE(device_start_capture(b.device, path, &b.e));
    ASSERTm(b.e.text, strstr(b.e.text, "METAL_CAPTURE_ENABLED=1"));
    setenv("METAL_CAPTURE_ENABLED", "1", 1);
    snprintf(other, sizeof other, "%s.txt", path);
    ASSERT_FALSE(device_start_capture(b.device, other, &b.e));
    ASSERT_EQ(EXIT_USAGE, b.e.code);
    ASSERTm(b.e.text, device_start_capture(b.device, path, &b.e));
    ASSERT(tape_play(b.tape, PLAY_LAUNCHES, NULL, NULL, &b.e));
    device_stop_capture(b.device);
    char *text = os_read_file(path, NULL, &b.e);
    ASSERT_STR_EQ("advance\nadvance\n", text);
    free(text);
    ASSERT_FALSE(device_start_capture(b.device, path, &b.e));
    ASSERTm(b.e.text, strstr(b.e.text, "already exists"));
    unlink(path);
    unsetenv("METAL_CAPTURE_ENABLED");
    PASS();
}

SUITE(metal_suite) {
    SET_TEARDOWN(bench_tear_down, NULL);
    RUN_TEST(without_a_gpu_there_is_a_sentence);
    RUN_TEST(a_gpu_is_picked_by_a_part_of_its_name);
    RUN_TEST(facts_are_asked_of_the_gpu);
    RUN_TESTp(times_that_cannot_be_are_the_walls_and_say_so, "no-times");
    RUN_TESTp(times_that_cannot_be_are_the_walls_and_say_so, "long-times");
    RUN_TESTp(counters_time_each_launch_in_one_command_buffer, NULL);
    RUN_TESTp(counters_time_each_launch_in_one_command_buffer, "zero-counters");
    RUN_TESTp(counters_time_each_launch_in_one_command_buffer, "no-counters");
    RUN_TEST(more_launches_than_samples_are_played_in_parts);
    RUN_TEST(samples_that_are_lost_are_no_times);
    RUN_TEST(samples_that_sum_past_the_whole_are_kept_and_marked);
    RUN_TEST(only_a_check_asks_for_the_details_of_errors);
    RUN_TEST(a_virtual_gpu_is_a_gpu_whose_times_are_labelled);
    RUN_TEST(kernels_for_other_simdgroups_than_the_gpus_are_refused);
    RUN_TEST(threadgroup_memory_of_one_launch_does_not_stand_in_the_way_of_the_next);
    RUN_TEST(one_bad_kernel_takes_its_file_with_it);
    RUN_TEST(a_text_is_compiled_in_its_version_of_the_language);
    RUN_TESTp(a_fault_names_the_encoder, PLAY_WHOLE);
    RUN_TESTp(a_fault_names_the_encoder, PLAY_LAUNCHES);
    RUN_TEST(a_capture_needs_the_variable_a_new_file_and_its_suffix);
}
