/* Tests of `assay launch` with the kernels of tests/kernels/launch.metal. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "support.h"

SUITE(launch_suite);

/* A launch of a kernel of launch.metal on the software device. */
#define LAUNCH_ON(device, kernel, rest)                                                            \
    "\"$A\" launch \"$H/tests/kernels/launch.metal\" " kernel " --device " device " " rest
#define LAUNCH(kernel, rest) LAUNCH_ON("$D", kernel, rest)
#define LAUNCH_SOFT(kernel, rest) LAUNCH_ON("soft", kernel, rest)
#define SCALE(rest) LAUNCH("scale_inplace", "--grid 1 --group 32 " rest)

TEST outputs_are_printed_and_times_are_labelled(void) {
    ASSERT_RUN(SCALE("--arg '0=f32[6]:ramp' --arg 1=f32:0.1 --arg 2=u32:6"), 0);
    ASSERT_SAYS("buffer 0 'x', f32[6]\n");
    ASSERT_SAYS("  0:    0  0.1  0.2  0.3  0.4  0.5\n");
    ASSERT_SAYS(support_is_emulated() ? "time (emulated): GPU " : "time: GPU ");
    ASSERT_SAYS(", encode ");
    ASSERT_SAYS(", wall ");
    PASS();
}

TEST values_of_every_width_come_back_exactly(void) {
    ASSERT_RUN(LAUNCH("copy_f16", "--arg '0=f16[]:value:0.1,-65504,6e-8,inf' --arg '1=f16[4]' "
                                  "--threads 4 --group 4"),
               0);
    ASSERT_SAYS("0.1  -65504");
    ASSERT_SAYS("6e-08");
    ASSERT_SAYS("inf\n");
    ASSERT_RUN(LAUNCH("copy_bf16", "--arg '0=bf16[2]:value:3.14' --arg '1=bf16[2]' --threads 2 "
                                   "--group 2"),
               0);
    ASSERT_SAYS("3.14  3.14\n");
    ASSERT_RUN(LAUNCH("copy_u64", "--arg '0=u64[1<<1]:value:18446744073709551615,(3+1)*4' "
                                  "--arg '1=u64[2]' --threads 2 --group 2"),
               0);
    ASSERT_SAYS("18446744073709551615                    16\n");
    ASSERT_RUN(LAUNCH("copy_i8", "--arg '0=i8[130]:ramp' --arg '1=i8[130]' --threads 130 "
                                 "--group 32 --print 1:130"),
               0);
    ASSERT_SAYS("  127\n  128:    0    1\n");
    PASS();
}

TEST elements_that_nothing_stored_have_no_value(void) {
    ASSERT_RUN(LAUNCH("copy_f16", "--arg '0=f16[]:value:nan,1' --arg '1=f16[4]' --threads 2 "
                                  "--group 2"),
               0);
    ASSERT_SAYS("  0:        nan          1  unwritten  unwritten\n");
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode knows it of each byte");
    ASSERT_RUN(LAUNCH("copy_i8", "--arg '0=i8[]:value:-61,-1' --arg '1=i8[3]' --threads 2 "
                                 "--group 2 --validate"),
               0);
    ASSERT_SAYS("  0:        -61         -1  unwritten\n");
    PASS();
}

TEST contents_are_unwritten_zero_one_nan_or_random_by_seed(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode knows it");
    ASSERT_RUN(SCALE("--arg '0=f32[2]:zero' --arg 1=f32:1 --arg 2=u32:2"), 0);
    ASSERT_SAYS("0:  0  0\n");
    ASSERT_RUN(SCALE("--arg '0=f32[2]' --arg 1=f32:1 --arg 2=u32:2 --validate"), 1);
    ASSERT_SAYS("unwritten memory");
    ASSERT_RUN(SCALE("--arg '0=f32[2]:one' --arg 1=f32:-0.5 --arg 2=u32:2"), 0);
    ASSERT_SAYS("0:  -0.5  -0.5\n");
    ASSERT_RUN(SCALE("--arg '0=f32[2]:nan' --arg 1=f32:1 --arg 2=u32:2"), 0);
    ASSERT_SAYS("nan");
#define RANDOM(seed)                                                                               \
    SCALE("--arg '0=f32[32]:random' --arg 1=f32:1 --arg 2=u32:32 --print 0:32 " seed)
    ASSERT_RUN(
        RANDOM("") " | grep : | grep -v time > \"$T.1\"; " RANDOM(
            "--seed 1") " | grep : | grep -v time > \"$T.2\"; " RANDOM("--seed 2") " | grep : | "
                                                                                   "grep -v time > "
                                                                                   "\"$T.3\"; "
                                                                                   "cmp \"$T.1\" "
                                                                                   "\"$T.2\" && ! "
                                                                                   "cmp -s "
                                                                                   "\"$T.1\" "
                                                                                   "\"$T.3\"; "
                                                                                   "s=$?; "
                                                                                   "rm -f \"$T.1\" "
                                                                                   "\"$T.2\" "
                                                                                   "\"$T.3\"; exit "
                                                                                   "$s",
        0);
    PASS();
}

TEST files_go_in_and_come_out_as_raw_bytes(void) {
    ASSERT_RUN(SCALE("--arg '0=f32[8]:ramp' --arg 1=f32:2 --arg 2=u32:8 --save 0=\"$T.bin\""), 0);
    ASSERT_RUN(SCALE("--arg \"0=f32[]:file:$T.bin\" --arg 1=f32:2 --arg 2=u32:8"), 0);
    ASSERT_SAYS("f32[8]\n");
    ASSERT_SAYS("0:   0   4   8  12  16  20  24  28\n");
    ASSERT_RUN(SCALE("--arg \"0=f32[9]:file:$T.bin\" --arg 1=f32:2 --arg 2=u32:8"), 2);
    ASSERT_SAYS("takes 36 bytes (f32[9])");
    ASSERT_RUN(SCALE("--arg \"0=f32[]:file:$T.none\" --arg 1=f32:2 --arg 2=u32:8"), 2);
    ASSERT_RUN("printf abc > \"$T.bin\"; " SCALE(
                   "--arg \"0=f32[]:file:$T.bin\" --arg 1=f32:2 --arg 2=u32:8") "; s=$?; "
                                                                                "rm -f \"$T.bin\"; "
                                                                                "exit $s",
               2);
    ASSERT_SAYS("3 bytes");
    PASS();
}

TEST repetitions_start_from_the_same_contents(void) {
    ASSERT_RUN(SCALE("--arg '0=f32[2]:one' --arg 1=f32:3 --arg 2=u32:2 --repeat 5"), 0);
    ASSERT_SAYS("0:  3  3\n");
    ASSERT_SAYS("medians of 5\n");
    PASS();
}

TEST structs_constants_and_threadgroup_memory_are_given(void) {
    ASSERT_RUN(LAUNCH("with_struct",
                      "--arg '0=u8[8]:value:3,0,0,0,0,0,32,64' --arg '1=f32[4]:zero' "
                      "--grid 1 --group 4"),
               0);
    ASSERT_SAYS("0:  2.5  2.5  2.5    0\n");
    ASSERT_RUN(LAUNCH("specialised", "--arg '0=u32[4]' --constant 0=u32:10 --constant 1=u8:1 "
                                     "--grid 1 --group 4"),
               0);
    ASSERT_SAYS("0:   0  20  40  60\n");
    ASSERT_RUN(LAUNCH("reverses", "--arg '0=i32[4]:ramp' --threadgroup 0=16 --grid 1 --group 4"),
               0);
    ASSERT_SAYS("0:  3  2  1  0\n");
    ASSERT_RUN(LAUNCH("where_am_i", "--arg '0=u32[6]' --threads 3,2 --group 2,2"), 0);
    ASSERT_SAYS("0:    0    1    2  100  101  102\n");
    PASS();
}

TEST what_does_not_fit_the_kernel_is_a_usage_error(void) {
    ASSERT_RUN(SCALE("--arg '0=f32[6]:ramp' --arg 1=f32:2"), 2);
    ASSERT_SAYS("buffer 2 (count, uint &) is not bound");
    ASSERT_RUN(SCALE("--arg '0=f32[6]' --arg 1=f32:2 --arg 2=u64:6"), 2);
    ASSERT_SAYS("its elements are u32");
    ASSERT_RUN(SCALE("--arg '0=f16[6]' --arg 1=f32:2 --arg 2=u32:6"), 2);
    ASSERT_SAYS("is given f16; its elements are f32");
    ASSERT_RUN(SCALE("--arg '0=f32[6]' --arg 1=f32:2 --arg 2=u32:6 --arg 3=u32:1"), 2);
    ASSERT_SAYS("no such parameter");
    ASSERT_RUN(LAUNCH("reverses", "--arg '0=i32[4]' --grid 1 --group 4"), 2);
    ASSERT_SAYS("is given no memory");
    ASSERT_RUN(LAUNCH("copy_i8", "--arg '0=i8[4]' --arg '1=i8[4]' --grid 1 --group 4096"), 2);
    ASSERT_SAYS("larger than the 1024 threads");
    ASSERT_RUN(LAUNCH("specialised", "--arg '0=u32[4]' --constant 0=u32:1 --grid 1 --group 4"), 2);
    ASSERT_SAYS("doubled");
    ASSERT_RUN(LAUNCH("specialised", "--arg '0=u32[4]' --constant 0=f32:1 --grid 1 --group 4"), 2);
    ASSERT_SAYS("give it as u32");
    ASSERT_RUN(LAUNCH("specialised", "--arg '0=u32[4]' --constant 9=u32:1 --grid 1 --group 4"), 2);
    ASSERT_SAYS("no function constant 9");
    ASSERT_RUN(LAUNCH("no_such_kernel", "--grid 1 --group 1"), 2);
    ASSERT_SAYS("scale_inplace");
    ASSERT_RUN(SCALE("--arg '0=f32[6]' --arg 1=f32:2 --arg 2=u32:6 --print 2"), 2);
    ASSERT_SAYS("--print 2: there is no array 2");
    PASS();
}

TEST what_is_not_understood_is_a_usage_error(void) {
    static const char *const bad[] = {"0",
                                      "31=u32:1",
                                      "x=u32:1",
                                      "0=f64:1",
                                      "0=u32",
                                      "0=u32:",
                                      "0=u32:-1",
                                      "0=u8:256",
                                      "0=i8:-129",
                                      "0=u32:1x",
                                      "0=u32:1,2",
                                      "0=f32:one",
                                      "0=f32[0]",
                                      "0=f32[]:ramp",
                                      "0=f32[4]:rampe",
                                      "0=f32[4:one",
                                      "0=f32[4]ramp",
                                      "0=u32[4]:nan",
                                      "0=f32[4]:value:",
                                      "0=f32[4]:value:1,2",
                                      "0=f32[4]:ramp:1",
                                      "0=f32[-1]",
                                      "0=f32[4]:file:",
                                      "0=u64[99999999999999999999]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[256];
        snprintf(line, sizeof line, SCALE("--arg 1=f32:2 --arg 2=u32:4 --arg '%s'"), bad[i]);
        ASSERT_RUN(line, 2);
    }
    ASSERT_RUN(SCALE("--arg 0=u32:1 --arg 0=u32:2"), 2);
    ASSERT_SAYS("given twice");
    ASSERT_RUN(LAUNCH("copy_i8", "--group 4"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1 --threads 4 --group 4"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1,0 --group 4"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1,1,1,1 --group 4"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1 --group 4 --constant 0=u32"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1 --group 4 --threadgroup 8=16"), 2);
    ASSERT_RUN(LAUNCH("copy_i8", "--grid 1 --group 4 --print x"), 2);
    ASSERT_RUN("\"$A\" launch kernels/buffer_copy.metal --grid 1 --group 1", 2);
    ASSERT_RUN("\"$A\" launch no/such/file.metal k --grid 1 --group 1", 2);
    ASSERT_RUN("\"$A\" launch --help", 0);
    ASSERT_SAYS("--max-findings N");
    PASS();
}

/* 12 GB, of which the last threadgroup would store one element, and its index overflows. */
#define FAR(only)                                                                                  \
    "--arg '0=f32[3<<30]' --arg '1=i32:1<<30' --grid 3 --group 1 --validate --only " only

TEST one_threadgroup_of_a_vast_grid_can_be_run_alone(void) {
    ASSERT_RUN(LAUNCH_SOFT("stores_far", FAR("1")), 0);
    ASSERT_RUN(LAUNCH_SOFT("stores_far", FAR("2,0,0")), 1);
    ASSERT_SAYS("signed overflow");
    ASSERT_SAYS(" 2,0,0 ");
    ASSERT_RUN(LAUNCH_SOFT("stores_far", FAR("3")), 2);
    ASSERT_SAYS("is not in the grid of 3 x 1 x 1 threadgroups");
    ASSERT_RUN(LAUNCH_SOFT("stores_far", FAR("1,")), 2);
    ASSERT_RUN(
        LAUNCH_SOFT("where_am_i", "--arg '0=u32[6]:zero' --threads 3,2 --group 1,2 --only 2"), 0);
    PASS();
}

/* Apple's compiler takes the exchange of a NaN for one that failed. */
TEST a_loop_that_exchanges_a_nan_does_not_end(void) {
    ASSERT_RUN(LAUNCH_SOFT("multiplies", "--arg '0=f32[1]:one' --grid 1 --group 32 --validate"), 0);
    ASSERT_RUN("ASSAY_LOOP_SECONDS=0.2 " LAUNCH_SOFT(
                   "multiplies", "--arg '0=f32[1]:nan' --grid 1 --group 32 --validate"),
               1);
    ASSERT_SAYS("endless loop  launch.metal:");
    PASS();
}

TEST a_write_past_the_end_is_told_without_validation(void) {
    ASSERT_RUN(LAUNCH("writes_past", "--arg '0=f32[8]' --arg 1=u32:8 --grid 1 --group 32"), 1);
    ASSERT_SAYS("buffer 'y' was written 0 bytes past its end");
    PASS();
}

TEST validation_says_which_line_and_element_and_gives_no_times(void) {
    ASSERT_RUN(
        LAUNCH_SOFT("writes_past", "--arg '0=f32[8]' --arg 1=u32:8 --grid 1 --group 32 --validate"),
        1);
    ASSERT_SAYS("store outside");
    ASSERT_SAYS("launch.metal:66");
    ASSERT_SAYS("0 y");
    ASSERT_SAYS("1 finding\n");
    ASSERTm(command_get_output(), !command_says("time ("));
    ASSERT_RUN("MTL_SHADER_VALIDATION=1 " LAUNCH_SOFT(
                   "writes_past", "--arg '0=f32[8]' --arg 1=u32:8 --grid 1 --group 32"),
               1);
    ASSERT_SAYS("1 finding\n");
    ASSERT_RUN(
        LAUNCH_SOFT("writes_past", "--arg '0=f32[8]' --arg 1=u32:7 --grid 1 --group 32 --validate"),
        0);
    ASSERT_SAYS("0 findings\n");
    PASS();
}

TEST a_crashing_kernel_is_told(void) {
    SKIP_ON_MAC();
    ASSERT_RUN(LAUNCH("crashes", "--arg '0=f32[8]' --grid 1 --group 32"), 1);
    ASSERT_SAYS(support_is_emulated() ? "kernel crashes crashed: "
                                      : "accessed memory that is not mapped");
    PASS();
}

#define HANGING "--arg '0=f32[8]' --grid 3 --group 8 --timeout 2 "

TEST a_hanging_kernel_is_given_up_at_its_line(void) {
    SKIP_ON_MAC();
    ASSERT_RUN(LAUNCH("hangs", "--arg '0=f32[8]' --grid 1 --group 8 --timeout 3"), 1);
    ASSERT_SAYS("kernel hangs timed out after 3 s");
    for (int validates = 0; validates < 2; validates++) {
        ASSERT_RUN(validates ? "ASSAY_LOOP_SECONDS=9 " LAUNCH_SOFT("hangs", HANGING "--validate")
                             : LAUNCH_SOFT("hangs", HANGING),
                   1);
        ASSERT_SAYS("kernel hangs timed out after 2 s at launch.metal:7"); /* 74 or 75 */
    }
    PASS();
}

TEST a_kernel_that_does_not_compile_is_told_with_its_line(void) {
    ASSERT_RUN("\"$A\" launch \"$H/tests/kernels/lint/broken.metal\" broken --device $D "
               "--arg '0=f32[8]' --grid 1 --group 8",
               1);
    ASSERT_SAYS("broken.metal:9:");
    PASS();
}

#define BESIDE(kernel, rest)                                                                       \
    "\"$A\" launch \"$H/tests/kernels/beside.metal\" " kernel                                      \
    " --device soft --grid 1 --group 32 " rest

TEST kernels_run_beside_one_that_does_not_compile(void) {
    ASSERT_RUN(BESIDE("races", "--arg '0=f32[32]' --validate"), 1);
    ASSERT_SAYS("race in threadgroup  beside.metal:14");
    ASSERT_SAYS("at beside.h line 3\n");
    ASSERT_RUN(BESIDE("bad_f32", "--arg '0=f32[32]'"), 1);
    ASSERT_SAYS("beside.metal:6:");
    PASS();
}

TEST a_thread_may_have_100000_bytes_of_private_memory(void) {
    ASSERT_RUN(BESIDE("large", "--arg '0=f32[33]:zero' --print 0:4"), 0);
    ASSERT_SAYS("0:     0     0   700  1400\n");
    PASS();
}

/* In a kernel that is a macro, in macros of a header that it uses, and beside such a macro. */
TEST a_finding_in_a_macro_has_its_line_there_and_where_it_is_expanded(void) {
#define MACROS(kernel, type)                                                                       \
    "\"$A\" launch \"$H/tests/kernels/macros/kernel.metal\" " kernel " --device soft "             \
    "-I \"$H/tests/kernels/macros/include\" --arg '0=" type "[32]:one' --arg 1=u32:32 --grid 1 "   \
    "--group 32 --validate "
    ASSERT_RUN(MACROS("add_float", "f32"), 1);
    ASSERT_SAYS("load outside   kernel.metal:16 ");
    ASSERT_SAYS("which has 32, in macro KERNEL expanded at line 23\n");
    ASSERT_SAYS("store outside  bodies.h:4 ");
    ASSERT_SAYS("which has 32, in macro STORE_PAST expanded at kernel.metal:23\n");
    ASSERT_RUN(MACROS("add_half", "f16"), 1);
    ASSERT_SAYS(", in macro KERNEL expanded at line 24\n");
    ASSERT_RUN(MACROS("beside", "f32"), 1);
    ASSERT_SAYS("store outside  bodies.h:4 ");
    ASSERT_SAYS("store outside  kernel.metal:29 ");
    ASSERT_SAYS("store outside  kernel.metal:30 ");
    ASSERT_RUN(MACROS("broken_nothing", "f32") "-D BROKEN", 1);
    ASSERT_SAYS("kernel.metal:12:");
    ASSERT_SAYS(", in macro KERNEL expanded at line 34\n");
    PASS();
}

SUITE(launch_suite) {
    RUN_TEST(outputs_are_printed_and_times_are_labelled);
    RUN_TEST(values_of_every_width_come_back_exactly);
    RUN_TEST(elements_that_nothing_stored_have_no_value);
    RUN_TEST(contents_are_unwritten_zero_one_nan_or_random_by_seed);
    RUN_TEST(files_go_in_and_come_out_as_raw_bytes);
    RUN_TEST(repetitions_start_from_the_same_contents);
    RUN_TEST(structs_constants_and_threadgroup_memory_are_given);
    RUN_TEST(what_does_not_fit_the_kernel_is_a_usage_error);
    RUN_TEST(what_is_not_understood_is_a_usage_error);
    RUN_TEST(one_threadgroup_of_a_vast_grid_can_be_run_alone);
    RUN_TEST(a_loop_that_exchanges_a_nan_does_not_end);
    RUN_TEST(a_write_past_the_end_is_told_without_validation);
    RUN_TEST(validation_says_which_line_and_element_and_gives_no_times);
    RUN_TEST(a_finding_in_a_macro_has_its_line_there_and_where_it_is_expanded);
    RUN_TEST(a_crashing_kernel_is_told);
    RUN_TEST(a_hanging_kernel_is_given_up_at_its_line);
    RUN_TEST(a_kernel_that_does_not_compile_is_told_with_its_line);
    RUN_TEST(kernels_run_beside_one_that_does_not_compile);
    RUN_TEST(a_thread_may_have_100000_bytes_of_private_memory);
}
