/* Tests of `assay tune` through the command line: the table, planted kernels, mistakes. Times are not
 * judged but where one kernel was made to take a hundred times as long as another. */
#include <greatest.h>

#include "command.h"

SUITE(tune_verb_suite);

#define TUNE "$A tune --device soft --budget 0.01 --out $T/tuned.csv "

TEST tune_writes_a_row_per_choice_and_keeps_the_others(void) {
    ASSERT_RUN("rm -rf $T; " TUNE "rmsnorm --shape 1x33,1x64", 0);
    ASSERT_SAYS("2 choices decided");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x[36][34],rmsnorm' $T/tuned.csv", 0);
    ASSERT_SAYS("2");
    ASSERT_RUN(TUNE "rmsnorm --shape 1x64,1x96 --resume --json", 0);
    ASSERT_SAYS("1 of 2 choices are already there");
    ASSERT_SAYS("\"shape\": \"1x96\"");
    ASSERT_SAYS("\"state\": \"timed\"");
    ASSERT_RUN("grep -c ^rmsnorm, $T/tuned.csv", 0);
    ASSERT_SAYS("3");
    ASSERT_RUN(TUNE "--stale", 0);
    ASSERT_SAYS("nothing to time");
    ASSERT_RUN("ASSAY_TUNED=$T/tuned.csv $A info --device soft --field tuned", 0);
    ASSERT_SAYS("tuned.csv, 3 choices");
    ASSERT_RUN("ASSAY_TUNED=$T/tuned.csv $A bench rmsnorm --variant tuned --shape 1x64 "
               "--budget 0.01 --device soft --out $T/b.csv",
               0);
    ASSERT_SAYS("1 timed");
    ASSERT_SAYS("+tuned");
    PASS();
}

TEST a_kernel_that_changed_makes_its_rows_stale(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; " TUNE "rmsnorm --shape 1x33",
               0);
    ASSERT_RUN("echo 'constant int changed = 1;' >> $T/k/rmsnorm.metal; " TUNE
               "softmax --kernels $T/k --shape 1x33",
               2);
    ASSERT_SAYS("models have no choice of an op 'softmax'");
    ASSERT_RUN(TUNE "layer_norm --kernels $T/k --shape 1x33", 0);
    ASSERT_SAYS("1 other row is of kernels that have changed since: assay tune --stale");
    ASSERT_RUN(TUNE "--kernels $T/k --stale", 0);
    ASSERT_SAYS("1 choice decided");
    ASSERT_RUN(TUNE "--kernels $T/k --stale", 0);
    ASSERT_SAYS("nothing to time");
    PASS();
}

/* Both are wrong and as fast as a kernel can be: one that writes too little, and the rule's. */
TEST a_wrong_kernel_is_never_chosen(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; "
               "sed '/^kernel void rmsnorm_rows_simdgroup/,/^}/s/{$/{ return;/' "
               "$H/kernels/rmsnorm.metal > $T/k/rmsnorm.metal; " TUNE
               "--kernels $T/k rmsnorm --shape 1x64",
               1);
    ASSERT_SAYS("WRONG, not chosen");
    ASSERT_SAYS("1 kernel is wrong");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x64,rmsnorm_rows_simdgroup' $T/tuned.csv", 1);
    ASSERT_RUN("sed '/^kernel void rmsnorm_alone/,/^}/s/{$/{ return;/' "
               "$H/kernels/rmsnorm.metal > $T/k/rmsnorm.metal; " TUNE
               "--kernels $T/k rmsnorm --shape 1x64",
               1);
    ASSERT_SAYS("WRONG, not chosen");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x64,rmsnorm_alone,' $T/tuned.csv", 1);
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x64,rmsnorm' $T/tuned.csv", 0);
    PASS();
}

/* The rule's kernel waits a hundred times as long as another one works. */
TEST a_kernel_that_is_far_faster_replaces_the_rules(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; "
               "sed '/^kernel void rmsnorm_alone/,/^}/s/{$/{ for (volatile uint z = 0; z < 3000; "
               "z++) ;/' "
               "$H/kernels/rmsnorm.metal > $T/k/rmsnorm.metal; " TUNE
               "--kernels $T/k rmsnorm --shape 1x64",
               0);
    ASSERT_SAYS("1 choice decided, 1 otherwise than by the rules");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x64,rmsnorm[a-z_]*,[0-9.e+]*,rmsnorm_alone,' $T/tuned.csv",
               0);
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x64,rmsnorm_alone,' $T/tuned.csv", 1);
    /* On a busy machine even a hundredfold gain may not be told for sure at first. */
    ASSERT_RUN("for i in 1 2 3; do " TUNE "--kernels $T/k rmsnorm -m $H/models/assay-tiny.gguf "
               "--tokens 1 --confirm > $T/said 2>&1 || exit; grep -q ': kept' $T/said && break; "
               "done; cat $T/said",
               0);
    ASSERT_SAYS(": kept");
    ASSERT_RUN("grep -c '^rmsnorm,,no,1x192,.*confirmed' $T/tuned.csv", 0);
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
    ASSERT_RUN(TUNE "matvec --shape 1x2x3x4x5", 2);
    ASSERT_SAYS("its sizes are out x in x batch");
    ASSERT_RUN(TUNE "--shape 1x2", 2);
    ASSERT_SAYS("--shape needs the op");
    ASSERT_RUN(TUNE "rmsnorm --confirm", 2);
    ASSERT_SAYS("--confirm needs a model");
    ASSERT_RUN(TUNE "rmsnorm --shape 1x33 --cache hot", 2);
    ASSERT_SAYS("--cache is warm or cold, not 'hot'");
    ASSERT_RUN(TUNE "nothing --preset tiny --list", 2);
    ASSERT_SAYS("'nothing' matches no choice");
    ASSERT_RUN("rm -rf $T", 0);
    PASS();
}

SUITE(tune_verb_suite) {
    RUN_TEST(tune_writes_a_row_per_choice_and_keeps_the_others);
    RUN_TEST(a_kernel_that_changed_makes_its_rows_stale);
    RUN_TEST(a_wrong_kernel_is_never_chosen);
    RUN_TEST(a_kernel_that_is_far_faster_replaces_the_rules);
    RUN_TEST(a_bad_table_stops_a_model_unless_it_is_switched_off);
}
