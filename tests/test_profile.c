/* Tests of `assay profile`: kernels whose counts are known by hand. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/check/check.h"
#include "kernels/ops.h"
#include "support.h"

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

TEST two_runs_give_the_same_counts(void) {
    ASSERT_RUN("mkdir -p \"$T\" && cd \"$T\" && " ACCESSES "--csv a.csv && " ACCESSES
               "--csv b.csv && cmp a.csv b.csv",
               0);
    ASSERT_SAYS("% of the sectors come from profile.metal:");
    ASSERT_SAYS("float a = x[lane * 8];");
    PASS();
}

TEST a_count_that_grew_fails_the_gate(void) {
    ASSERT_RUN(
        "mkdir -p \"$T\" && cd \"$T\" && " BANKS "--csv was.csv && " BANKS "--baseline was.csv", 0);
    ASSERT_RUN("mkdir -p \"$T\" && cd \"$T\" && awk -F, -v OFS=, 'NR > 1 && $4 == 0 { $17 = 1 } { "
               "print }' was.csv > "
               "less.csv && " BANKS "--baseline less.csv",
               4);
    ASSERT_SAYS("sectors grew from ");
    PASS();
}

#define ATOMICS                                                                                    \
    "\"$A\" profile up.metal up --arg 0=u32[64]:zero --arg 1=u32[256] --grid 4 --group 64 "

TEST atomics_of_the_same_kernel_have_not_grown(void) {
    ASSERT_RUN("mkdir -p \"$T\" && cd \"$T\" && printf '%s\\n' '#include <metal_stdlib>' "
               "'using namespace metal;' 'kernel void up(device atomic_uint *c [[buffer(0)]],' "
               "'device uint *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {' "
               "'o[i] = atomic_fetch_add_explicit(&c[i % 64], 1u, memory_order_relaxed); }' > "
               "up.metal && " ATOMICS "--csv was.csv && " ATOMICS "--baseline was.csv",
               0);
    PASS();
}

TEST instructions_counted_on_another_cpu_are_not_compared(void) {
    ASSERT_RUN(
        "mkdir -p \"$T\" && cd \"$T\" && " BANKS "--csv was.csv && awk -F, -v OFS=, 'NR == 1 { for "
        "(i = 1; i <= NF; i++) if ($i == \"instructions\") at = i } NR > 1 && $4 == 0 { $at = 1 } "
        "{ print }' was.csv > less.csv && " BANKS "--baseline less.csv",
        4);
    ASSERT_SAYS("instructions grew from 1 ");
    ASSERT_RUN("cd \"$T\" && sed \"s/,$(uname -m),/,z80,/\" less.csv > other.csv && " BANKS
               "--baseline other.csv",
               0);
    ASSERT_SAYS("Instructions are not compared: other.csv was counted on another CPU than ");
    PASS();
}

/* ptxas and nvdisasm that say what the tests know. */
#define TOOLS                                                                                      \
    "mkdir -p \"$T/tools\" && cd \"$T/tools\" && printf '#!/bin/sh\\necho \"  8 bytes stack "      \
    "frame, 4 "                                                                                    \
    "bytes spill stores, 4 bytes spill loads\"\\necho \"ptxas info : Used $REGISTERS "             \
    "registers\"\\n' > "                                                                           \
    "ptxas && printf '#!/bin/sh\\necho \"//## File \\\\\"$H/tests/kernels/profile.metal\\\\\", "   \
    "line "                                                                                        \
    "26\"\\necho \"  /*0010*/ LDS R7, [R6] ;\"\\necho \"//## File \\\\\"/elsewhere.h\\\\\", line " \
    "26\"\\necho \"  /*0020*/ EXIT ;\"\\n' > nvdisasm && chmod +x ptxas nvdisasm && "              \
    "export PATH=\"$T/tools:$PATH\" && cd \"$T\" && "

#define NEEDS_PTX()                                                                                \
    do {                                                                                           \
        if (command_run("\"$A\" lint --ptx \"$H/tests/kernels/profile.metal\"") == 3)              \
            SKIPm("no PTX is compiled here");                                                      \
    } while (0)

TEST registers_of_an_nvidia_gpu_are_gated_where_both_sides_know_them(void) {
    NEEDS_PTX();
    ASSERT_RUN(TOOLS "REGISTERS=40 " BANKS "--csv 40.csv", 0);
    ASSERT_SAYS("ptxas gives each thread 40 registers");
    ASSERT_SAYS("8 bytes of spilled ones");
    ASSERT_RUN(TOOLS "REGISTERS=48 " BANKS "--baseline 40.csv", 4);
    ASSERT_SAYS("registers grew from 40 to 48 (+20.0 %)");
    ASSERT_RUN(TOOLS "sed 's/spill_bytes/other/; s/registers/older/' 40.csv > none.csv && "
                     "REGISTERS=48 " BANKS "--baseline none.csv",
               0);
    PASS();
}

TEST machine_code_follows_the_line_that_it_comes_from(void) {
    NEEDS_PTX();
    ASSERT_RUN(TOOLS "REGISTERS=40 " BANKS "--annotate --code", 0);
    ASSERT_SAYS("float a = s[i % 32 * 32];\n    /*0010*/ LDS R7, [R6] ;\n");
    ASSERT_SAYS("1 of the kernel's 2 instructions stand above");
    PASS();
}

TEST a_kernel_that_hangs_or_crashes_is_one_sentence(void) {
    ASSERT_RUN(PROFILE("endless", "--arg '0=f32[64]:zero' --threads 32 --group 32 --timeout 1"), 1);
    ASSERT_SAYS("kernel 'endless' was stopped after 1 s of counting");
    ASSERT_RUN(PROFILE("wild", "--arg '0=f32[64]:zero' --threads 32 --group 32"), 1);
    ASSERT_SAYS("kernel 'wild' crashed (");
    PASS();
}

TEST atomics_that_wait_are_said(void) {
    ASSERT_RUN(ACCESSES, 0);
    ASSERT_SAYS("97 % of the lanes of atomics that wait for another lane at the same address "
                "(profile.metal:15)");
    PASS();
}

TEST a_part_of_the_threadgroups_is_scaled_and_said(void) {
    ASSERT_RUN("\"$A\" profile buffer_copy --shape 4096 --sample 4", 0);
    ASSERT_SAYS("counted: 4 of them; counts are scaled");
    PASS();
}

TEST two_variants_stand_side_by_side(void) {
    ASSERT_RUN("\"$A\" profile rmsnorm/1x576/normal rmsnorm_simdgroup/1x576/normal --shape 1x576 "
               "--compare",
               0);
    ASSERT_SAYS("B / A");
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

TEST the_counters_of_a_gpu_stand_beside_the_counts(void) {
    ASSERT_RUN("mkdir -p \"$T/bin\" && cp \"$H/tests/fake_ncu.sh\" \"$T/bin/ncu\" && cd \"$H\" && "
               "PATH=\"$T/bin:$PATH\" ASSAY=\"$A\" ASSAY_DEVICE=soft sh tools/profile-ncu.sh "
               "\"$T/ncu\" 60 copy",
               0);
    ASSERT_SAYS(" launches in ");
    ASSERT_SAYS("copy.ab: ");  /* 24 cases at a time */
    ASSERT_SAYS("addresses-"); /* those with conflicts once more */
    ASSERT_RUN("cd \"$H\" && PATH=/usr/bin:/bin ASSAY=\"$A\" ASSAY_DEVICE=soft sh "
               "tools/profile-ncu.sh \"$T/ncu\" 60 copy",
               0); /* done: ncu, which is not there, is not asked again */
    ASSERT_RUN("cd \"$H\" && printf 'case,made_of,conflicts\\nbuffer_copy/4096/normal,was,1\\n"
               "gone/1/normal,was,7\\n' > \"$T/was.csv\" && ASSAY=\"$A\" sh "
               "tools/profile-compare.sh \"$T/ncu\" \"$T/was.csv\"",
               0);
    ASSERT_SAYS("\nbuffer_copy/4096/normal,512,1000,512,1000,128,1000,128,1000,0,2000,");
    ASSERT_SAYS("\ngone/1/normal,,,,,,,,,7,,,,,,,,,,was\n"); /* only there: its row is kept */
    ASSERT_SAYS("kernel:buffer_copy=");
    ASSERT(!command_says("conflicts 0, ncu")); /* the 2000 are not of addresses */
    PASS();
}

TEST kernels_of_a_project_are_counted_and_gated(void) {
    ASSERT_RUN("\"$A\" init \"$T/mine\" && \"$A\" profile -C \"$T/mine\" softcap", 0);
    ASSERT_SAYS("softcap.metal:14");
    ASSERT_SAYS("y[i] = cap * precise::tanh(x[i] / cap);"); /* its source, from another folder */
    ASSERT_RUN(
        "cp -r \"$T/mine\" \"$T/was\" && sed -i.old 's/y\\[i\\] = cap/y[i] = x[i * 8 % n] + cap/' "
        "\"$T/mine/softcap.metal\" && \"$A\" profile -C \"$T/mine\" softcap --baseline \"$T/was\"",
        4);
    ASSERT_SAYS("softcap/100003/normal: sectors grew from 25002 to ");
    PASS();
}

SUITE(profile_suite) {
    RUN_TEST(sectors_requests_and_work_are_those_counted_by_hand);
    RUN_TEST(lanes_that_are_off_and_what_caches_catch_are_counted);
    RUN_TEST(banks_barriers_and_simdgroup_functions_are_counted);
    RUN_TEST(two_runs_give_the_same_counts);
    RUN_TEST(a_count_that_grew_fails_the_gate);
    RUN_TEST(atomics_of_the_same_kernel_have_not_grown);
    RUN_TEST(instructions_counted_on_another_cpu_are_not_compared);
    RUN_TEST(registers_of_an_nvidia_gpu_are_gated_where_both_sides_know_them);
    RUN_TEST(machine_code_follows_the_line_that_it_comes_from);
    RUN_TEST(a_kernel_that_hangs_or_crashes_is_one_sentence);
    RUN_TEST(atomics_that_wait_are_said);
    RUN_TEST(a_part_of_the_threadgroups_is_scaled_and_said);
    RUN_TEST(two_variants_stand_side_by_side);
    RUN_TEST(an_access_is_in_pieces_of_its_alignment);
    RUN_TEST(copies_are_counted_in_pieces_of_eight_bytes_and_loops_as_loops);
    RUN_TEST(banks_of_wide_accesses_are_those_counted_by_hand);
    RUN_TEST(loads_before_a_wait_for_the_launch_before_are_not_those_of_the_loop);
    RUN_TEST(a_kernel_is_counted_as_on_a_gpu_whatever_the_cpu_has);
    RUN_TEST(a_constant_in_a_buffer_is_loaded_once_by_every_simdgroup);
    RUN_TEST(matrices_are_counted_in_the_places_of_an_nvidia_gpu);
    RUN_TEST(the_counters_of_a_gpu_stand_beside_the_counts);
    RUN_TEST(kernels_of_a_project_are_counted_and_gated);
}
