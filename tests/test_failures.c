/* A failure is never hidden: every experiment works at the level that run_all.sh uses, one that fails
 * says so in its file, its exit status and the report, and no bad file keeps the others from being
 * shown. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "experiments/experiment.h"
#include "harness/base/csv.h"

SUITE(failures_suite);

static err e;

static csv_file *read_file(const char *folder, const char *name) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s/%s.csv", getenv("T"), folder, name);
    return csv_read(path, &e);
}

/* The shapes, kernels and code of --quick, with hardly any time for each, with the model that a fresh
 * machine has, and in the math whose kernels other suites compile too. */
TEST every_experiment_works_at_the_level_of_run_all(void) {
    ASSERT_RUN("rm -rf $T; ASSAY_BUDGET=0.001 ASSAY_CACHE_BYTES=262144 $A experiment all --quick "
               "--math safe --device soft -m $H/models/assay-tiny.gguf --out $T/all",
               0);
    for (size_t i = 0; i < experiment_count; i++) {
        const char *name = experiments[i]->name;
        csv_file *f = read_file("all", name);
        ASSERTm(e.text, f);
        ASSERT_STR_EQ("quick", csv_get_meta(f, "level"));
        ASSERTm(name, !csv_get_meta(f, "failed"));
        ASSERTm(name, csv_count_rows(f) > 0);
        ASSERTm(name, csv_get_meta(f, "conclusion"));
        csv_file_free(f);
    }
    ASSERT_RUN("ls $T/all/scratch/*", 2); /* nothing is left of rows that were kept */
    ASSERT_RUN("$A report $T/all --out $T/all/report.html && ! grep 'What failed' "
               "$T/all/report.html",
               0);
    PASS();
}

/* A kernel that goes wrong at the second shape of one experiment, and that the other does not use. */
#define BREAK_BY(text)                                                                             \
    "rm -rf $T/kernels && cp -r $H/kernels $T/kernels && cd $T/kernels/product && "                \
    "sed 's/if (first >= out_dim)/" text "/' per_thread.h > broken && "                            \
    "! cmp -s broken per_thread.h && mv broken per_thread.h && cd - > /dev/null && "
#define BROKEN BREAK_BY("if (first >= out_dim || out_dim > 1000)")
#define ENDLESS BREAK_BY("while (out_dim > 1000) {} &")
#define RUN_BOTH                                                                                   \
    "$A experiment small_matrix dispatch_overhead --smoke --math safe --device soft --out "        \
    "$T/mixed"

#define RUN_ONE "$A experiment small_matrix --smoke --math safe --device soft --out $T/mixed"

TEST an_experiment_that_fails_says_so_in_its_file(void) {
    ASSERT_RUN("rm -rf $T/mixed; " RUN_BOTH, 0);
    ASSERT_RUN(BROKEN "ASSAY_KERNELS=$T/kernels " RUN_BOTH, 1);
    ASSERT_SAYS("1 of 2 experiments done");
    csv_file *f = read_file("mixed", "small_matrix");
    ASSERTm(e.text, f);
    size_t message, name, last = csv_count_rows(f) - 1;
    ASSERT(csv_get_meta(f, "failed") && !csv_get_meta(f, "conclusion"));
    ASSERT_STR_EQ("small_matrix", csv_get_meta(f, "experiment"));
    ASSERT_EQ_FMT((size_t)2, last, "%zu"); /* those of the first shape are kept */
    ASSERT(csv_find_column(f, "message", &message, &e) && csv_find_column(f, "case", &name, &e));
    ASSERT_STR_EQ("small_matrix", csv_get_text(f, last, name));
    ASSERT_STR_EQ(csv_get_meta(f, "failed"), csv_get_text(f, last, message));
    csv_file_free(f);
    f = read_file("mixed", "dispatch_overhead");
    ASSERTm(e.text, f);
    ASSERT(!csv_get_meta(f, "failed") && csv_get_meta(f, "conclusion"));
    csv_file_free(f);
    PASS();
}

TEST the_report_shows_it_and_the_next_success_replaces_it(void) {
    ASSERT_RUN("$A report $T/mixed --out $T/mixed/report.html", 1);
    ASSERT_RUN("grep -A5 'What failed' $T/mixed/report.html", 0);
    ASSERT_SAYS("small_matrix");
    ASSERT_RUN("$A plot $T/mixed", 0);
    ASSERT_SAYS("small_matrix.csv: no chart, because the experiment failed");
    ASSERT_RUN("$A claims $T/mixed", 0);
    ASSERT_RUN(RUN_ONE " --resume", 0); /* what failed is not finished */
    ASSERT_SAYS("1 of 1 experiments done");
    ASSERT_RUN(RUN_ONE " --resume", 0);
    ASSERT_SAYS("1 of 1 experiments are already there");
    ASSERT_RUN("$A report $T/mixed --out $T/mixed/report.html", 0);
    ASSERT_RUN("grep 'What failed' $T/mixed/report.html", 1);
    PASS();
}

/* The worker is killed: its rows are those that were saved until then. */
TEST an_experiment_that_never_ends_has_a_file_too(void) {
    ASSERT_RUN("rm -rf $T/late; " ENDLESS "ASSAY_KERNELS=$T/kernels $A experiment small_matrix "
               "--smoke --math safe --timeout 1.5 --device soft --out $T/late",
               1);
    csv_file *f = read_file("late", "small_matrix");
    ASSERTm(e.text, f);
    ASSERT(csv_get_meta(f, "failed") && strstr(csv_get_meta(f, "failed"), "1.5 s"));
    csv_file_free(f);
    ASSERT_RUN("$A report $T/late --out $T/late/report.html", 1);
    PASS();
}

TEST bad_files_and_those_of_other_devices_are_left_out_and_named(void) {
    ASSERT_RUN("cp $T/mixed/dispatch_overhead.csv $T/mixed/third.csv && "
               "printf 'a,b\\n1\\n' > $T/mixed/bad.csv && "
               "sed 's/software Metal device, [0-9]* thread[s]*/Other GPU/' "
               "$T/mixed/small_matrix.csv > $T/mixed/foreign.csv",
               0);
    ASSERT_RUN("$A report $T/mixed --out $T/mixed/report.html", 2);
    ASSERT_SAYS("bad.csv:2");
    ASSERT_SAYS("foreign.csv");
    ASSERT_RUN("grep -A4 'What failed' $T/mixed/report.html", 0);
    ASSERT_SAYS("bad.csv");
    ASSERT_SAYS("Other GPU");
    ASSERT_RUN("grep -c 'id=\"x-dispatch_overhead\"' $T/mixed/report.html", 0);
    ASSERT_RUN("$A claims $T/mixed", 2);
    ASSERT_SAYS("published");
    PASS();
}

/* As run_all.sh does it. */
TEST what_was_validated_lies_beside_what_was_checked(void) {
    ASSERT_RUN("rm -rf $T/both; mkdir -p $T/both && "
               "$A check buffer_copy --device soft --csv $T/both/check.csv && "
               "$A validate buffer_copy --quick --device soft --csv $T/both/validate.csv",
               0);
    ASSERT_RUN("grep -h '^# device' $T/both/check.csv $T/both/validate.csv | sort -u | wc -l", 0);
    ASSERT_EQ(1, atoi(command_get_output()));
    ASSERT_RUN("$A report $T/both --out $T/both/report.html && $A claims $T/both; rm -rf $T", 0);
    PASS();
}

SUITE(failures_suite) {
    command_use_one_thread();
    RUN_TEST(every_experiment_works_at_the_level_of_run_all);
    RUN_TEST(an_experiment_that_fails_says_so_in_its_file);
    RUN_TEST(the_report_shows_it_and_the_next_success_replaces_it);
    RUN_TEST(an_experiment_that_never_ends_has_a_file_too);
    RUN_TEST(bad_files_and_those_of_other_devices_are_left_out_and_named);
    RUN_TEST(what_was_validated_lies_beside_what_was_checked);
}
