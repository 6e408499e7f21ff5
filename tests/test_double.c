/* Tests of the command line on the double of Metal (tests/metal_double), which shows what other GPUs
 * than an M1 are like, and what happens when one fails. METAL_DOUBLE names what it shows. */
#include <greatest.h>

#include "command.h"
#include "support.h"

SUITE(double_suite);

TEST cases_for_other_simdgroups_are_skipped_and_counted(void) {
    ASSERT_RUN("METAL_DOUBLE=simd-64 \"$A\" check --device $D --skipped rmsnorm/1x77/normal "
               "matvec_q4_0_simdgroup/7x96/normal",
               0);
    ASSERT_SAYS("1 passed, 0 failed, 1 skipped");
    ASSERT_SAYS(
        "kernel 'matvec_q4_0_simdgroup' is written for simdgroups of 32 lanes; this GPU runs it "
        "with 64");
    ASSERT_RUN("METAL_DOUBLE=simd-64 \"$A\" check --device $D matvec_q4_0_simdgroup/7x96/normal",
               3);
    ASSERT_SAYS("nothing was checked");
    PASS();
}

TEST a_virtual_gpu_plays_the_kernels_of_a_gpu(void) {
    ASSERT_RUN("METAL_DOUBLE=paravirtual \"$A\" run -m \"$H/models/assay-tiny.gguf\" -n 2 "
               "--device $D -p 'a prompt of several tokens, more than go through one by one'",
               0);
    ASSERT_SAYS("Apple Paravirtual device");
    ASSERTm(command_get_output(), !command_says("emulated"));
    PASS();
}

/* A worker that asked for just any GPU would be refused. */
TEST workers_time_on_the_gpu_that_was_named(void) {
    ASSERT_RUN("METAL_DOUBLE=no-default \"$A\" bench buffer_copy --shape 31 --budget 0.01 "
               "--device metal:double --out \"$T.csv\"; s=$?; rm -f \"$T\"*.csv; exit $s",
               0);
    ASSERT_RUN("METAL_DOUBLE=no-default \"$A\" experiment dispatch_overhead --smoke "
               "--device metal:double --out \"$T.d\"; s=$?; rm -rf \"$T.d\"; exit $s",
               0);
    PASS();
}

TEST cases_for_matrices_are_skipped_on_a_gpu_without_them(void) {
    ASSERT_RUN("METAL_DOUBLE=paravirtual \"$A\" check --device $D --skipped buffer_copy/33/normal "
               "multi_token_matvec_q4_0_tiled_skinny/7x96x3/normal",
               0);
    ASSERT_SAYS("1 passed, 0 failed, 1 skipped");
    ASSERT_SAYS("multiplies simdgroup matrices, and this GPU has no units for it");
    PASS();
}

/* Metal may refuse a process that faulted, so the next case gets another one. */
TEST a_fault_retires_the_process_of_its_case_alone(void) {
    ASSERT_RUN("METAL_DOUBLE=fault:rmsnorm \"$A\" check --device $D rmsnorm/1x77/normal "
               "rmsnorm_simdgroup/1x77/normal rmsnorm_per_thread/1x77/normal --jobs 1",
               1);
    ASSERT_SAYS("2 passed, 1 failed");
    ASSERT_SAYS("accessed invalid memory: Caused GPU Address Fault Error; its process is retired");
    ASSERT_RUN("METAL_DOUBLE=fault:rmsnorm \"$A\" bench rmsnorm --shape 1x77 --budget 0.01 "
               "--device $D --out \"$T.csv\"; s=$?; rm -f \"$T\"*.csv; exit $s",
               1);
    ASSERT_SAYS("4 timed, 1 not timed");
    ASSERT_SAYS("its process is retired");
    PASS();
}

TEST an_experiment_that_faults_does_not_take_the_next_with_it(void) {
    ASSERT_RUN(
        "METAL_DOUBLE=fault:multi_token_matvec_q4_0_per_thread \"$A\" experiment split_dispatch "
        "bandwidth --smoke --device $D --out \"$T.d\"; s=$?; rm -rf \"$T.d\"; exit $s",
        1);
    ASSERT_SAYS("split_dispatch: ");
    ASSERT_SAYS("its process is retired");
    ASSERT_SAYS("1 of 2 experiments done");
    PASS();
}

TEST a_run_that_faults_says_that_its_process_is_over(void) {
    ASSERT_RUN(
        "METAL_DOUBLE=fault \"$A\" run -m \"$H/models/assay-tiny.gguf\" -p hi -n 2 --device $D", 1);
    ASSERT_SAYS("its process is retired");
    PASS();
}

TEST work_that_holds_up_the_screen_ends_a_run_with_advice(void) {
    ASSERT_RUN("METAL_DOUBLE=busy-screen \"$A\" run -m \"$H/models/assay-tiny.gguf\" -p hi -n 2 "
               "--device $D",
               3);
    ASSERT_SAYS("kept the GPU from the screen for too long; try a smaller size");
    PASS();
}

TEST info_says_whether_weights_are_copied(void) {
    ASSERT_RUN("\"$A\" info --device $D --field weights", 0);
    ASSERT_SAYS("used in place");
    ASSERT_RUN("METAL_DOUBLE=no-copy \"$A\" info --device $D --field weights", 0);
    ASSERT_SAYS("copied: this device takes no memory of the caller in place");
    PASS();
}

TEST a_virtual_gpu_without_validation_is_a_skip_with_its_reason(void) {
    ASSERT_RUN("METAL_DOUBLE=paravirtual,no-banner,no-reports \"$A\" validate --device $D "
               "buffer_copy/33/normal",
               3);
    ASSERT_SAYS("nothing was validated: the virtual GPU 'Apple Paravirtual device' has no shader "
                "validation");
    ASSERT_RUN("METAL_DOUBLE=paravirtual,no-reports \"$A\" validate --device $D "
               "buffer_copy/33/normal",
               1); /* it is there and does not work */
    PASS();
}

SUITE(double_suite) {
    if (!support_is_double())
        return;
    RUN_TEST(cases_for_other_simdgroups_are_skipped_and_counted);
    RUN_TEST(a_virtual_gpu_plays_the_kernels_of_a_gpu);
    RUN_TEST(workers_time_on_the_gpu_that_was_named);
    RUN_TEST(cases_for_matrices_are_skipped_on_a_gpu_without_them);
    RUN_TEST(a_fault_retires_the_process_of_its_case_alone);
    RUN_TEST(an_experiment_that_faults_does_not_take_the_next_with_it);
    RUN_TEST(a_run_that_faults_says_that_its_process_is_over);
    RUN_TEST(work_that_holds_up_the_screen_ends_a_run_with_advice);
    RUN_TEST(info_says_whether_weights_are_copied);
    RUN_TEST(a_virtual_gpu_without_validation_is_a_skip_with_its_reason);
}
