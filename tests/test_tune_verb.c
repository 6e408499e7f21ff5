/* Tests of `assay tune` and of `model bench --baseline` through the command line: the table, planted
 * kernels, made-up samples, mistakes. Times are not judged but where one kernel was made to take a
 * hundred times as long as another. */
#include <greatest.h>

#include "command.h"

SUITE(tune_verb_suite);

#define TUNE "$A tune --device soft --budget 0.05 --out $T/tuned.csv "
#define TOKENS "-p 0 -n 2 -d 0 "
#define COPY_KERNELS "rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; "

/* Both are wrong and as fast as a kernel can be: one that writes too little, and the rule's. */
TEST a_wrong_kernel_is_never_chosen(void) {
    ASSERT_RUN(COPY_KERNELS "sed '/^kernel void rmsnorm_rows_simdgroup/,/^}/s/{$/{ return;/' "
                            "$H/kernels/rmsnorm.metal > $T/k/rmsnorm.metal; " TUNE TOKENS
                            "--kernels $T/k rmsnorm",
               1);
    ASSERT_SAYS("rmsnorm_rows_simdgroup/1x192/normal/chained/warm is wrong and not tried");
    ASSERT_RUN("test -e $T/tuned.csv", 1);
    PASS();
}

/* The rule's kernel waits a hundred times as long as another one works. On a busy machine even that may
 * not be told for sure at first. */
TEST a_kernel_that_makes_the_model_faster_is_kept_until_it_changes(void) {
    ASSERT_RUN(
        COPY_KERNELS
        "sed '/^kernel void rmsnorm_per_thread/,/^}/s/{$/{ for (volatile uint z = 0; z < 30000; "
        "z++) ;/' $H/kernels/rmsnorm.metal > $T/k/rmsnorm.metal; "
        "for i in 1 2 3; do " TUNE TOKENS "--kernels $T/k rmsnorm > $T/said 2>&1 || exit; "
        "grep -q ': kept' $T/said && break; done; cat $T/said",
        0);
    ASSERT_SAYS("rmsnorm 1x192: rmsnorm");
    ASSERT_SAYS(": kept");
    /* Its choice is decided: nothing is left to try. */
    ASSERT_RUN("cp $T/tuned.csv $T/was.csv; " TUNE TOKENS
               "--kernels $T/k --resume --json 'rmsnorm 1x192' "
               "2> /dev/null && cmp $T/was.csv $T/tuned.csv",
               0);
    ASSERT_EQ('{', command_get_output()[0]);
    ASSERT_SAYS("\"verb\": \"tune\"");
    ASSERT_SAYS("\"tried\": 0,\n  \"kept\": 0,\n  \"wrong\": 0,\n  \"rows\": 1,\n  \"ways\": []");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x192,rmsnorm[a-z_]*,rmsnorm_per_thread,' $T/tuned.csv", 0);
    ASSERT_RUN("grep -c ',tg2,\"assay-tiny, Q4_0\",' $T/tuned.csv", 0);
    ASSERT_RUN("ASSAY_TUNED=$T/tuned.csv ASSAY_KERNELS=$T/k $A info --device soft --field tuned",
               0);
    ASSERT_SAYS("tuned.csv, 1 choices, 0 more");
    ASSERT_RUN("echo 'constant int changed = 1;' >> $T/k/rmsnorm.metal; "
               "ASSAY_TUNED=$T/tuned.csv ASSAY_KERNELS=$T/k $A info --device soft --field tuned",
               0);
    ASSERT_SAYS("tuned.csv, 0 choices, 1 more of kernels that changed since");
    PASS();
}

/* A row for 7 tokens holds for 8 too. Rows of what is not asked for stay. */
TEST rows_of_what_is_tuned_are_decided_again(void) {
    ASSERT_RUN("rm -rf $T; mkdir $T; printf 'op,format,accumulates,shape,kernel\\n"
               "rmsnorm,,no,7x192,rmsnorm_rows\\nrmsnorm,,no,1x65,rmsnorm\\n' > $T/tuned.csv; " TUNE
               "-p 8 -n 0 'rmsnorm 8x192' && grep -v '^#' $T/tuned.csv",
               0);
    ASSERT_SAYS("rmsnorm,,no,1x65,rmsnorm");
    ASSERT_RUN("grep rmsnorm,,no,7x192 $T/tuned.csv", 1);
    PASS();
}

TEST a_bad_table_stops_a_model_unless_it_is_switched_off(void) {
    ASSERT_RUN("rm -rf $T; mkdir $T; printf "
               "'op,format,accumulates,shape,kernel\\nrmsnorm,,no,1x64,gone\\n' > $T/bad.csv; "
               "ASSAY_TUNED=$T/bad.csv $A model check -p 2 -n 1 --device soft",
               2);
    ASSERT_SAYS("bad.csv:2: rmsnorm has no kernel 'gone'");
    ASSERT_RUN("ASSAY_TUNED=$T/bad.csv $A model check -p 2 -n 1 --device soft --no-tuned", 0);
    ASSERT_RUN("ASSAY_TUNED=$T/none.csv $A model check -p 2 -n 1 --device soft", 2);
    ASSERT_RUN(TUNE TOKENS "nothing", 2);
    ASSERT_SAYS("no choice of the model is called 'nothing'");
    ASSERT_RUN(TUNE "-p 0 -n 0", 2);
    ASSERT_RUN(TUNE TOKENS "rmsnorm --list", 0);
    ASSERT_SAYS("rmsnorm_per_thread*");
    PASS();
}

/* --- the gate --- */

#define BENCH "$A model bench --device soft "
#define ENOUGH "-r 12 "
/* The stored samples, each times a factor. */
#define SCALE(factor, to)                                                                          \
    "cp $T/a.csv $T/" to ".csv; awk -F, -v OFS=, '/^model/ { $3 *= " factor "; $5 *= " factor      \
    " } 1' $T/a.samples.csv > $T/" to ".samples.csv; "

TEST a_model_is_compared_with_its_stored_samples(void) {
    ASSERT_RUN("rm -rf $T; mkdir $T; " BENCH ENOUGH "-p 4 -n 2 -d 0,8 --csv $T/a.csv", 0);
    ASSERT_RUN("grep -c '^model/assay-tiny/Q4_0/tg2@d8,' $T/a.csv", 0);
    ASSERT_RUN("grep -c '^model/assay-tiny/Q4_0/pp4,' $T/a.samples.csv", 0);
    ASSERT_SAYS("12");
    ASSERT_RUN(SCALE("0.01", "fast") BENCH ENOUGH "--baseline $T/fast.csv", 4);
    ASSERT_SAYS("0 same, 0 faster, 4 slower");
    ASSERT_RUN(SCALE("100", "slow") BENCH ENOUGH "--baseline $T/slow.csv --csv $T/b.csv", 0);
    ASSERT_SAYS("4 faster, 0 slower");
    ASSERT_RUN(BENCH "-p 0 -n 2 --baseline=$T/fast.csv -r 2", 5);
    ASSERT_SAYS("1 ambiguous");
    ASSERT_RUN(BENCH "-p 5 -n 0 --baseline $T/fast.csv", 5); /* it has no such row */
    ASSERT_RUN("$A compare $T/slow.csv $T/b.csv", 0);
    PASS();
}

/* Rows of several models share a file. */
TEST rows_of_another_model_stay_in_the_file(void) {
    ASSERT_RUN(BENCH "-p 0 -n 1 -m $H/models/assay-tiny-rwkv7.gguf --csv $T/a.csv -r 2", 0);
    ASSERT_RUN("grep -c '^model/' $T/a.csv", 0);
    ASSERT_SAYS("5");
    ASSERT_RUN(BENCH "-m $H/models/assay-tiny-rwkv7.gguf --baseline $T/fast.csv", 5);
    ASSERT_SAYS("has no rows model/");
    ASSERT_RUN(BENCH "-p 0 -n 1 --csv $T/a.csv --baseline $T/a.csv", 2);
    ASSERT_RUN("rm -rf $T", 0);
    PASS();
}

SUITE(tune_verb_suite) {
    command_use_one_thread();
    RUN_TEST(a_wrong_kernel_is_never_chosen);
    RUN_TEST(a_kernel_that_makes_the_model_faster_is_kept_until_it_changes);
    RUN_TEST(rows_of_what_is_tuned_are_decided_again);
    RUN_TEST(a_bad_table_stops_a_model_unless_it_is_switched_off);
    RUN_TEST(a_model_is_compared_with_its_stored_samples);
    RUN_TEST(rows_of_another_model_stay_in_the_file);
}
