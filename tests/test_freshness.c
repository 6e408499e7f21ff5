/* What results are made of: planted changes make numbers stale, reworded comments do not. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/source_hash.h"
#include "harness/device/sources.h"
#include "harness/measure/freshness.h"
#include "harness/measure/plot.h"

SUITE(freshness_suite);

static err e;

/* --- texts --- */

TEST comments_and_white_space_do_not_count(void) {
    static const char *const same[] = {
        "int f(int a) { return a; }", "int f(int a){return a;}",
        "/* what\n * it does */\nint f(int  a) {\n  return a; // it\n}\n"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[120];
        snprintf(text, sizeof text, "%s", same[i]);
        ASSERT_EQ(strlen("int f(int a){return a;}"), source_strip(text, false));
        ASSERT_STR_EQ("int f(int a){return a;}", text);
    }
    PASS();
}

TEST what_is_in_a_literal_counts(void) {
    char text[80] = "puts(\"a // b\\\" /* c\"); char q = '\"'; /* gone */";
    source_strip(text, false);
    ASSERT_STR_EQ("puts(\"a // b\\\" /* c\");char q='\"';", text);
    char op[80] = "op  sum: all # of them\ndims n";
    source_strip(op, true);
    ASSERT_STR_EQ("op sum:all dims n", op);
    PASS();
}

TEST the_program_knows_the_sources_it_was_built_from(void) {
    bool has_matvec = false, has_lab = false;
    for (size_t i = 0; i < source_file_count; i++) {
        has_matvec = has_matvec || strcmp(source_files[i].path, "kernels/product/product.c") == 0;
        has_lab = has_lab || strcmp(source_files[i].path, "experiments/lab.c") == 0;
    }
    ASSERT(has_matvec && has_lab);
    PASS();
}

/* One awk for all: the table of a file is the same after its comments and spaces have changed. */
TEST the_sum_of_a_c_file_is_that_of_its_code(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T && cd $T && "
               "printf '#include \"b.h\"\\nint a = 1; /* one */\\nchar c = 0x22;\\n' > a.c && "
               "sh $H/tools/sources.sh 1.c a.c && "
               "printf '/* longer\\n \"head */\\n#include \"b.h\"\\nint  a=1; // it'\"'\"'s "
               "1\\nchar c\\n = 0x22;\\n' > a.c && "
               "sh $H/tools/sources.sh 2.c a.c && cmp 1.c 2.c && grep -c 'b.h ' 1.c",
               0);
    ASSERT_RUN(
        "cd $T && printf '#include \"b.h\"\\nint a = 2; /* one */\\nchar c = 0x22;\\n' > a.c && "
        "sh $H/tools/sources.sh 2.c a.c && cmp -s 1.c 2.c",
        1);
    PASS();
}

TEST parts_are_read_and_compared(void) {
    const char *at = "kernel:a+b=12 device:cuda=34";
    made_of_part p;
    ASSERT(made_of_read(&at, &p));
    ASSERT_STR_EQ("kernel", p.part);
    ASSERT_STR_EQ("a+b", p.names);
    ASSERT_STR_EQ("12", p.sum);
    ASSERT(made_of_read(&at, &p) && !made_of_read(&at, &p));
    at = "no parts at all";
    ASSERT(!made_of_read(&at, &p));
    char text[80];
    made_of_compare("kernel:a=1 device:soft=2", "kernel:a=1 device:soft=2", text, sizeof text);
    ASSERT_STR_EQ("same source", text);
    made_of_compare("kernel:a=1 device:soft=2", "kernel:a=3 device:soft=4", text, sizeof text);
    ASSERT_STR_EQ("kernel and device changed", text);
    made_of_compare("", "kernel:a=3", text, sizeof text);
    ASSERT_STR_EQ("", text);
    PASS();
}

TEST a_row_is_stale_when_a_part_has_another_sum(void) {
    freshness *f = freshness_new(&e);
    char changes[80];
    ASSERT(f);
    ASSERT_EQ(ORIGIN_UNKNOWN, freshness_judge(f, "", changes, sizeof changes));
    ASSERT_EQ(ORIGIN_STALE,
              freshness_judge(f, "kernel:rmsnorm=0 experiment:gone=0", changes, sizeof changes));
    ASSERT_STR_EQ("kernel rmsnorm, experiment gone", changes);
    ASSERT_EQ(ORIGIN_FRESH, freshness_judge(f, "kernel:?=0", changes, sizeof changes));
    freshness_free(f);
    PASS();
}

/* --- files --- */

#define KERNELS                                                                                    \
    "cp $H/kernels/*.metal $H/kernels/*.h $T/k/ && cp -r $H/kernels/formats $H/kernels/cuda $T/k/"
#define CHECK                                                                                      \
    "ASSAY_COMMIT=abc ASSAY_KERNELS=$T/k $A check rmsnorm/1x --device soft --csv $T/r/check.csv"
#define RESULTS "ASSAY_KERNELS=$T/k $A results $T/r "

TEST a_changed_kernel_makes_rows_stale_and_a_comment_does_not(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k $T/r && " KERNELS " && " CHECK, 0);
    ASSERT_RUN(RESULTS "--check", 0);
    ASSERT_RUN("echo '// reworded' >> $T/k/rmsnorm.metal && " RESULTS "--check", 0);
    ASSERT_RUN("echo 'constant int planted = 1;' >> $T/k/rmsnorm.metal && " RESULTS, 0);
    ASSERT_SAYS("kernel rmsnorm");
    ASSERT_RUN(RESULTS "--check", 1);
    ASSERT_RUN(RESULTS "--json", 0);
    ASSERT_SAYS("\"fresh\": 0, \"stale\": ");
    PASS();
}

TEST rows_of_another_experiment_or_device_code_are_stale(void) {
    ASSERT_RUN(
        "rm -rf $T; ASSAY_COMMIT=abc $A experiment storage_modes --smoke --device soft --out $T/r",
        0);
    ASSERT_RUN("$A results $T/r --check", 0);
    ASSERT_RUN("sed 's/experiment:storage_modes=[0-9a-f]*/experiment:storage_modes=0/' "
               "$T/r/storage_modes.csv > $T/x && "
               "cp $T/x $T/r/storage_modes.csv && $A results $T/r --check",
               1);
    ASSERT_SAYS("experiment storage_modes");
    ASSERT_RUN("$A report $T/r --out $T/page.html && cat $T/page.html", 0);
    ASSERT_SAYS("Not all numbers are of the code as it is now");
    ASSERT_SAYS("all rows are stale (changed since: experiment storage_modes)");
    ASSERT_RUN("$A claims $T/r --json", 0);
    ASSERT_SAYS("\"doubt\": \"stale\"");
    if (plot_is_available()) {
        ASSERT_RUN("$A plot $T/r && cat $T/r/storage_modes.svg", 0);
        ASSERT_SAYS("all rows are stale");
    }
    PASS();
}

TEST uncommitted_changes_and_mixed_commits_are_told(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/r && ASSAY_COMMIT=abc-dirty $A check softmax/1x --device "
               "soft --csv $T/r/check.csv && "
               "$A results $T/r --check",
               1);
    ASSERT_SAYS("abc-dirty");
    ASSERT_RUN("ASSAY_COMMIT=abc $A check softmax/1x --device soft --csv $T/r/check.csv && $A "
               "results $T/r --check",
               0);
    ASSERT_RUN("ASSAY_COMMIT=def $A check rmsnorm/1x --device soft --csv $T/r/other.csv && $A "
               "results $T/r --check",
               1);
    ASSERT_SAYS("abc def");
    ASSERT_RUN("$A report $T/r --out $T/page.html && ! grep 'Not all numbers' $T/page.html", 0);
    ASSERT_RUN("grep '2 commits, and nothing that they measure has changed since' $T/page.html", 0);
    PASS();
}

#define BENCH                                                                                      \
    "ASSAY_KERNELS=$T/k $A bench rmsnorm --variant rows --shape 1x64 --budget 0.01 --device soft " \
    "--out $T/r/bench.csv "

TEST a_run_goes_on_with_rows_of_the_same_clean_commit(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k && " KERNELS " && ASSAY_COMMIT=abc " BENCH, 0);
    /* Another build of the same commit. */
    ASSERT_RUN("sed 's/,abc,[0-9a-f]*,/,abc,000000000000,/' $T/r/bench.csv > $T/x && cp $T/x "
               "$T/r/bench.csv && "
               "ASSAY_COMMIT=abc " BENCH "--resume",
               0);
    ASSERT_SAYS("1 of 1 cases are already there");
    ASSERT_RUN("ASSAY_COMMIT=def " BENCH "--resume", 0);
    ASSERT_SAYS("0 of 1 cases are already there");
    ASSERT_RUN("echo 'constant int planted = 1;' >> $T/k/rmsnorm.metal && ASSAY_COMMIT=def " BENCH
               "--resume",
               0);
    ASSERT_SAYS("0 of 1 cases are already there");
    ASSERT_RUN("cp $T/r/bench.csv $T/old.csv; cp $T/r/bench.samples.csv $T/old.samples.csv; "
               "echo 'constant int more = 1;' >> $T/k/rmsnorm.metal; ASSAY_KERNELS=$T/k $A compare "
               "$T/old.csv $T/r/bench.csv; true",
               0);
    ASSERT_SAYS("same source, base is stale, new is stale");
    PASS();
}

TEST a_changed_description_of_a_project_makes_its_rows_stale(void) {
    ASSERT_RUN("rm -rf $T; cd $(dirname $T) && $A init $T && cd $T && mkdir r && "
               "ASSAY_COMMIT=abc $A check --device soft --csv r/check.csv && $A results r --check",
               0);
    ASSERT_RUN("cd $T && for f in *.op; do echo '# reworded' >> $f; done && $A results r --check",
               0);
    ASSERT_RUN("cd $T && for f in *.op; do echo 'flops 1' >> $f; done && $A results r --check", 1);
    ASSERT_SAYS("description ");
    PASS();
}

/* --- tools/measure.sh --- */

#define MEASURE                                                                                    \
    "cd $H && ASSAY=$A ASSAY_MODELS=$T/models ASSAY_DEVICE=soft sh tools/measure.sh --smoke "      \
    "--out $T/r "

TEST measuring_refuses_changes_and_stops_in_time(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T; ASSAY_COMMIT=abc-dirty; export ASSAY_COMMIT; " MEASURE, 2);
    ASSERT_SAYS("files differ from the commit");
    ASSERT_RUN("ASSAY_COMMIT=abc; export ASSAY_COMMIT; " MEASURE "--plan", 0);
    ASSERT_SAYS("check-relaxed");
    ASSERT_SAYS("experiment-decode");
    ASSERT_RUN("ASSAY_COMMIT=abc; export ASSAY_COMMIT; " MEASURE "--seconds 3", 5);
    ASSERT_SAYS("models took");
    ASSERT_SAYS("; left: ");
    ASSERT_RUN("grep -c '^done models' $T/r/measuring/state", 0);
    PASS();
}

TEST measuring_never_continues_another_commit(void) {
    ASSERT_RUN(
        "ASSAY_COMMIT=abc; export ASSAY_COMMIT; " MEASURE "--seconds 1; ls -d $T/r/measuring", 0);
    ASSERT_RUN("ASSAY_COMMIT=def; export ASSAY_COMMIT; " MEASURE
               "--plan && ls -d $T/r/measuring-abc-*",
               0);
    ASSERT_SAYS("an unfinished run of commit abc is put aside");
    ASSERT_RUN("grep -c '^done' $T/r/measuring/state", 1);
    PASS();
}

/* --- tools/rivals.sh --- */

/* In the place of llama-bench our own program, which cannot read one of the models. */
TEST models_are_timed_beside_llama_bench(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T; cd $T && $A model synth tiny a.gguf && cp a.gguf b.gguf && "
               "printf '#!/bin/sh\ncase \"$*\" in *b.gguf*) exit 1 ;; esac\nexec $A model bench "
               "--device soft --wait \"$@\"\n' > llama-bench && chmod +x llama-bench",
               0);
    ASSERT_RUN("cd $H && ASSAY=$A ASSAY_DEVICE=soft ASSAY_LLAMA_BENCH=$T/llama-bench "
               "ASSAY_TESTS='-p 8 -n 3 -r 1' ASSAY_DEPTHS=16 sh tools/rivals.sh $T/rivals.csv "
               "$T/a.gguf $T/b.gguf",
               0);
    ASSERT_SAYS("llama-bench does not run ");
    ASSERT_SAYS("of 3 tests, both waiting for each token");
    ASSERT_RUN("grep -E '^a,[0-9]+,tg32@d16,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,kernel:' "
               "$T/rivals.csv",
               0);
    ASSERT_RUN("grep -E '^b,[0-9]+,pp8,,[0-9.]+,,,,kernel:' $T/rivals.csv", 0);
    ASSERT_RUN("cd $H && ASSAY_LLAMA_BENCH=$T/none sh tools/rivals.sh $T/x.csv $T/a.gguf", 3);
    PASS();
}

SUITE(freshness_suite) {
    RUN_TEST(comments_and_white_space_do_not_count);
    RUN_TEST(what_is_in_a_literal_counts);
    RUN_TEST(the_program_knows_the_sources_it_was_built_from);
    RUN_TEST(the_sum_of_a_c_file_is_that_of_its_code);
    RUN_TEST(parts_are_read_and_compared);
    RUN_TEST(a_row_is_stale_when_a_part_has_another_sum);
    RUN_TEST(a_changed_kernel_makes_rows_stale_and_a_comment_does_not);
    RUN_TEST(rows_of_another_experiment_or_device_code_are_stale);
    RUN_TEST(uncommitted_changes_and_mixed_commits_are_told);
    RUN_TEST(a_run_goes_on_with_rows_of_the_same_clean_commit);
    RUN_TEST(a_changed_description_of_a_project_makes_its_rows_stale);
    RUN_TEST(measuring_refuses_changes_and_stops_in_time);
    RUN_TEST(measuring_never_continues_another_commit);
    RUN_TEST(models_are_timed_beside_llama_bench);
}
