/* Tests of `assay profile`: kernels whose counts are known by hand. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/check/check.h"
#include "kernels/ops.h"
#include "support.h"
#include "transcript.h"

SUITE(profile_suite);

#define PROFILE(kernel, rest) "\"$A\" profile \"$H/tests/kernels/profile.metal\" " kernel " " rest
#define ACCESSES                                                                                   \
    PROFILE("accesses", "--arg '0=f32[512]:one' --arg '1=f32[128]:one' --arg '2=f32[64]' "         \
                        "--arg '3=u32[1]:zero' --arg 4=u32:10 --threads 32 --group 32 ")
#define BANKS PROFILE("banks", "--arg '0=f32[64]:one' --arg '1=f32[64]' --threads 64 --group 64 ")

#define PIECES                                                                                     \
    PROFILE("pieces", "--arg '0=f32[128]:one' --arg '1=f32[128]:one' --arg '2=f32[32]' "           \
                      "--arg 3=f32:2 --threads 32 --group 32 ")

#define COPIES                                                                                     \
    PROFILE("copies", "--arg '0=f32[128]:one' --arg '1=f32[256]' --arg '2=f32[64]:one' "           \
                      "--arg 3=u32:40 --threads 32 --group 32 ")
#define WIDE_BANKS PROFILE("wide_banks", "--arg '0=f32[32]' --threads 32 --group 32 ")
#define AHEAD                                                                                      \
    PROFILE("ahead", "--arg '0=f32[64]:one' --arg '1=f32[64]:one' --arg '2=f32[32]' "              \
                     "--arg 3=u32:64 --threads 32 --group 32 ")

/* A number of a line of the source, or of the whole (line 0), in the JSON that was printed. */
static unsigned long long find_count(int line, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "\"line\": %d,", line);
    const char *at = line ? strstr(command_get_output(), text) : command_get_output();
    snprintf(text, sizeof text, "\"%s\": ", name);
    at = at ? strstr(at, text) : NULL;
    return at ? strtoull(at + strlen(text), NULL, 10) : ~0ull;
}

#define ASSERT_COUNT(number, line, name)                                                           \
    ASSERT_EQ_FMT((unsigned long long)(number), find_count(line, name), "%llu")

static const char *const compilers[] = {"", "clang-16", "clang-19"};

/* "" is the compiler that is found; another may not be here. */
static bool has_compiler(const char *name) {
    char line[128];
    snprintf(line, sizeof line, "[ -z '%s' ] || command -v '%s'", name, name);
    return command_run(line) == 0;
}

static int run_with(const char *compiler, const char *command) {
    char line[1024];
    snprintf(line, sizeof line,
             "C=%s; [ -z \"$C\" ] || export ASSAY_CLANG=\"$(command -v $C)\"; %s", compiler,
             command);
    return command_run(line);
}

TEST sectors_requests_and_work_are_those_counted_by_hand(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], ACCESSES "--json"), "%d");
        ASSERT_COUNT(32, 8, "load_sectors"); /* 32 bytes apart: a sector each */
        ASSERT_COUNT(1, 8, "load_requests");
        ASSERT_COUNT(128, 8, "used_bytes");
        ASSERT_COUNT(5, 9, "load_sectors");  /* misaligned by a float: one more than 4 */
        ASSERT_COUNT(1, 10, "load_sectors"); /* one place for all lanes */
        ASSERT_COUNT(4, 10, "used_bytes");
        ASSERT_COUNT(32, 10, "device_loads");
        ASSERT_COUNT(1, 11, "load_requests"); /* a float4 is one load */
        ASSERT_COUNT(16, 11, "load_sectors");
        ASSERT_COUNT(512, 11, "used_bytes");
        ASSERT_COUNT(10, 14, "load_requests"); /* a loop of 10 */
        ASSERT_COUNT(40, 14, "load_sectors");
        ASSERT_COUNT(10 * 32 * 2, 14, "flops");
        ASSERT_COUNT(32, 15, "atomics");
        ASSERT_COUNT(31, 15, "contention");
        ASSERT_COUNT(4, 16, "store_sectors");
        ASSERT_COUNT(16, 18, "device_stores"); /* every second lane */
        ASSERT_COUNT(1, 18, "store_requests");
        ASSERT_COUNT(16, 18, "specials"); /* their sines */
    }
    PASS();
}

TEST lanes_that_are_off_and_what_caches_catch_are_counted(void) {
    ASSERT_RUN(ACCESSES "--json", 0);
    ASSERT(find_count(18, "lane_instructions") * 2 <= find_count(18, "instructions") * 32 + 64);
    ASSERT_COUNT(40 + 16, 0, "miss_8m"); /* sectors of x and v; n comes with the launch */
    PASS();
}

TEST banks_barriers_and_simdgroup_functions_are_counted(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], BANKS "--json"), "%d");
        ASSERT_COUNT(0, 24, "conflicts_store"); /* neighbours in neighbouring banks */
        ASSERT_COUNT(2 * 31, 26, "conflicts_load");
        ASSERT_COUNT(0, 27, "conflicts_load"); /* neighbours swapped */
        ASSERT_COUNT(2, 25, "barriers");
        ASSERT_COUNT(2, 28, "simd_functions");
        ASSERT_COUNT(4096, 0, "threadgroup_bytes");
    }
    PASS();
}

TEST an_access_is_in_pieces_of_its_alignment(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], PIECES "--json"), "%d");
        ASSERT_COUNT(4, 33, "load_requests"); /* packed_float4: four floats */
        ASSERT_COUNT(64, 33, "load_sectors");
        ASSERT_COUNT(512, 33, "used_bytes");
        ASSERT_COUNT(1, 34, "load_requests"); /* float4 */
        ASSERT_COUNT(0, 35, "load_requests"); /* a small constant comes with the launch */
        ASSERT_COUNT(1, 35, "store_requests");
    }
    PASS();
}

TEST copies_are_counted_in_pieces_of_eight_bytes_and_loops_as_loops(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], COPIES "--json"), "%d");
        ASSERT_COUNT(2, 53, "load_requests"); /* each touches all 512 bytes */
        ASSERT_COUNT(32, 53, "load_sectors");
        ASSERT_COUNT(32, 53, "threadgroup_stores"); /* 16 bytes of each lane */
        ASSERT_COUNT(0, 53, "conflicts_store");
        ASSERT_COUNT(2, 55, "store_requests");
        ASSERT_COUNT(32, 55, "store_sectors");
        ASSERT_COUNT(32, 55, "threadgroup_loads");
        ASSERT_COUNT(40, 57, "load_requests"); /* n of them: not a memcpy */
        ASSERT_COUNT(40, 57, "load_sectors");
    }
    PASS();
}

TEST banks_of_wide_accesses_are_those_counted_by_hand(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], WIDE_BANKS "--json"), "%d");
        ASSERT_COUNT(4 * 32, 69, "threadgroup_loads"); /* eight float2 are four of 16 bytes */
        ASSERT_COUNT(0, 69, "conflicts_load");         /* eight lanes, 80 bytes apart: all banks */
        ASSERT_COUNT(1, 71, "conflicts_load"); /* pairs of lanes: all at once; row 4 meets row 0 */
        ASSERT_COUNT(28, 74, "threadgroup_stores");
        ASSERT_COUNT(0, 74, "conflicts_store"); /* of lanes 0 to 7 seven are active */
    }
    PASS();
}

TEST loads_before_a_wait_for_the_launch_before_are_not_those_of_the_loop(void) {
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        if (!has_compiler(compilers[i]))
            continue;
        ASSERT_EQ_FMT(0, run_with(compilers[i], AHEAD "--json"), "%d");
        ASSERT_COUNT(1, 86, "load_requests");
        ASSERT_COUNT(2, 90, "load_requests");    /* two turns */
        ASSERT_COUNT(4 + 1, 90, "load_sectors"); /* of the last: all lanes the last value */
        ASSERT_COUNT(2, 91, "load_requests");
    }
    PASS();
}

TEST a_kernel_is_counted_as_on_a_gpu_whatever_the_cpu_has(void) {
    ASSERT_RUN(
        "\"$A\" profile multi_token_matvec_q4_0_per_thread/255x96x3/normal --each 100 --json", 0);
    ASSERT_COUNT(10176, 0, "load_requests"); /* what an H200 counts: no products of bytes */
    ASSERT_COUNT(96, 0, "store_requests");
    PASS();
}

/* They are multiplied in the places of an NVIDIA GPU, by way of other code than elsewhere. */
static bool passes_counted(const char *name, const shape *s) {
    err e;
    const op *o = NULL;
    const kernel *k = registry_find_kernel(name, &o);
    device *d = device_open_with("soft", &(device_options){.counts = 1}, &e);
    library *lib = d ? library_new(d, NULL, &e) : NULL;
    check_result result = {.verdict = CHECK_FAIL};
    bool ok = lib && k;
    if (ok) {
        kernel_case c = case_new(o, k, s, INPUT_NORMAL);
        ok = check_case(lib, &c, NULL, 1, &result, &e) && result.verdict == CHECK_PASS;
    }
    library_free(lib);
    device_close(d);
    return ok;
}

TEST a_constant_in_a_buffer_is_loaded_once_by_every_simdgroup(void) {
    ASSERT_RUN("\"$A\" profile kv_cache_copy/129x77/normal --each 100 --json", 0);
    ASSERT_COUNT(20, 0, "load_requests"); /* what an H200 counts: 3 of 8 simdgroups have work */
    ASSERT_COUNT(48, 0, "load_sectors");
    PASS();
}

TEST matrices_are_counted_in_the_places_of_an_nvidia_gpu(void) {
    const shape small = {{63, 36, 64}}, few = {{40, 576, 7}}, stream = {{33, 1088, 9}};
    ASSERT(passes_counted("multi_token_matvec_f16_matrix", &small));
    ASSERT(passes_counted("multi_token_matvec_q4_0_tiled_skinny", &few));
    ASSERT(passes_counted("multi_token_matvec_q4_0_tiled_stream", &stream));
    ASSERT_RUN("\"$A\" profile multi_token_matvec_f16_matrix/63x36x64/normal --each 100 --json", 0);
    ASSERT_COUNT(0, 0, "conflicts_load"); /* rows are 40 elements apart, pairs in different banks */
    ASSERT_COUNT(96, 0, "conflicts_store"); /* two threads decode a row */
    ASSERT_RUN(
        "\"$A\" profile multi_token_matvec_q4_0_tiled_skinny/40x576x7/normal --each 100 --json", 0);
    ASSERT_COUNT(0, 0, "conflicts_load");
    ASSERT_COUNT(0, 0, "conflicts_store");
    PASS();
}

SUITE(profile_suite) {
    RUN_TEST(sectors_requests_and_work_are_those_counted_by_hand);
    RUN_TEST(lanes_that_are_off_and_what_caches_catch_are_counted);
    RUN_TEST(banks_barriers_and_simdgroup_functions_are_counted);
    RUN_TEST(an_access_is_in_pieces_of_its_alignment);
    RUN_TEST(copies_are_counted_in_pieces_of_eight_bytes_and_loops_as_loops);
    RUN_TEST(banks_of_wide_accesses_are_those_counted_by_hand);
    RUN_TEST(loads_before_a_wait_for_the_launch_before_are_not_those_of_the_loop);
    RUN_TEST(a_kernel_is_counted_as_on_a_gpu_whatever_the_cpu_has);
    RUN_TEST(a_constant_in_a_buffer_is_loaded_once_by_every_simdgroup);
    RUN_TEST(matrices_are_counted_in_the_places_of_an_nvidia_gpu);
    transcript_run("profile");
}
