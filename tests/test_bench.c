/* Tests of `assay compare` on files with known samples; those of `assay bench` are a transcript. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/measure/results.h"
#include "transcript.h"

SUITE(bench_suite);

static err e;

/* A result file with one case of 40 samples around `ns`, and more of the others. */
static bool write_run(const char *name, const char *device_name, const char *const *kernels,
                      const double *ns, size_t count) {
    char path[256], moved[256];
    results_meta m = {.count = 0};
    snprintf(path, sizeof path, "%s/%s", getenv("T"), name);
    remove(path); /* of another test */
    results_meta_add(&m, "schema", "2");
    results_meta_add(&m, "device", device_name);
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    for (size_t k = 0; r && k < count; k++) {
        timing_sample samples[40];
        double gpu[40];
        for (int i = 0; i < 40; i++) {
            gpu[i] = ns[k] * (1 + 0.0005 * (i * 7 % 20));
            samples[i] = (timing_sample){.gpu_ns = gpu[i], .encode_ns = 1, .wall_ns = 1000};
        }
        result_row row = result_row_new();
        snprintf(row.name, sizeof row.name, "%s/1/normal/single/warm", kernels[k]);
        row.gpu = stats_compute(gpu, 40);
        if (!results_add(r, &row, samples, 40, &e))
            return false;
    }
    results_close(r);
    return r != NULL;
}

static const char *const three[] = {"a", "b", "c"};

TEST verdicts_and_exit_status_follow_from_the_files(void) {
    const double base[] = {1000, 2000, 3000}, slower[] = {1000, 2600, 3000},
                 faster[] = {700, 2000, 3000}, slightly[] = {1010, 2000, 2980};
    ASSERT_RUN("rm -rf $T; mkdir -p $T", 0);
    ASSERT(write_run("base.csv", "d", three, base, 3) &&
           write_run("slow.csv", "d", three, slower, 3));
    ASSERT(write_run("fast.csv", "d", three, faster, 3) &&
           write_run("near.csv", "d", three, slightly, 3));
    ASSERT(write_run("less.csv", "d", three, base, 2) &&
           write_run("else.csv", "other", three, base, 3));
    ASSERT_RUN("$A compare $T/base.csv $T/slow.csv", 4);
    ASSERT_SAYS("2 same, 0 faster, 1 slower, 0 ambiguous, 0 missing, 0 new");
    ASSERT_RUN("$A compare $T/base.csv $T/fast.csv --explain", 0);
    ASSERT_SAYS("2 same, 1 faster, 0 slower");
    ASSERT_SAYS("ratio 0.7000, 99% interval");
    ASSERT_SAYS("after Holm");
    ASSERT_RUN("$A compare $T/base.csv $T/near.csv", 0);
    ASSERT_SAYS("3 same");
    ASSERT_RUN("$A compare $T/base.csv $T/near.csv --min-effect 0.5", 4);
    ASSERT_SAYS("1 faster, 1 slower");
    ASSERT_RUN("$A compare $T/base.csv $T/slow.csv --clock wall", 0);
    ASSERT_RUN(
        "for f in base slow; do sed \"s/^# device.*/&\\n# cpu: $f/\" $T/$f.csv > $T/$f.2.csv; "
        "cp $T/$f.samples.csv $T/$f.2.samples.csv; done; "
        "$A compare $T/base.2.csv $T/slow.2.csv --explain",
        5); /* another CPU is never slower */
    ASSERT_SAYS("0 slower, 3 ambiguous");
    ASSERT_SAYS("other cpu");
    ASSERT_SAYS("may be the difference: time both here");
    ASSERT_RUN("$A compare $T/base.csv $T/less.csv", 5);
    ASSERT_SAYS("1 missing");
    ASSERT_RUN("$A compare $T/less.csv $T/base.csv --md", 0);
    ASSERT_SAYS("1 new");
    ASSERT_SAYS("| c/1/normal/single/warm | new |");
    ASSERT_RUN("$A compare $T/base.csv $T/else.csv", 5);
    ASSERT_SAYS("other device: d");
    ASSERT_RUN("$A compare $T/base.csv $T/slow.csv --json > $T/out.json", 4);
    ASSERT_RUN("$A compare $T/less.csv $T/base.csv --json > $T/new.json && cat $T/*.json", 0);
    ASSERT_SAYS("{\"case\": \"b/1/normal/single/warm\", \"verdict\": \"slower\", \"base_ns\": 20");
    ASSERT_SAYS("\"base_ns\": null");
    if (command_run("command -v python3") != 0)
        PASS();
    ASSERT_RUN(
        "python3 -c 'import json, sys; d, n = [json.load(open(f)) for f in sys.argv[1:]]; "
        "print(d[\"verb\"], d[\"slower\"], d[\"same\"], round(d[\"cases\"][1][\"ratio\"], 3), "
        "n[\"new\"])' $T/out.json $T/new.json",
        0);
    ASSERT_SAYS("compare 1 2 1.3 1");
    PASS();
}

/* Runs of one case that differ by themselves. */
TEST several_runs_per_side_are_the_unit(void) {
    static const double base[] = {1000, 1004, 997}, near[] = {1003, 998, 1005},
                        slow[] = {1100, 1096, 1105}, wild[] = {1100, 1010, 1240};
    char name[32];
    ASSERT_RUN("rm -rf $T; mkdir -p $T/x $T/y", 0);
    for (int i = 0; i < 3; i++) {
        const double *const sets[] = {base, near, slow, wild};
        static const char *const names[] = {"base", "near", "slow", "wild"};
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "%s%d.csv", names[k], i + 1);
            ASSERT(write_run(name, "d", three, &sets[k][i], 1));
        }
    }
    ASSERT_RUN("cd $T && $A compare base?.csv -- near?.csv", 0);
    ASSERT_RUN("cd $T && $A compare base?.csv -- slow?.csv --explain", 4);
    ASSERT_SAYS("Student's t over 3 and 3 runs");
    ASSERT_RUN("cd $T && $A compare base?.csv -- wild?.csv", 5);
    ASSERT_RUN("cd $T && $A compare base1.csv wild3.csv", 4);    /* alone, it cannot be seen */
    ASSERT_RUN("cd $T && $A compare base?.csv -- slow1.csv", 4); /* three tell how runs differ */
    ASSERT_RUN("cd $T && for i in 1 2 3; do mkdir -p x$i y$i; cp base$i.csv x$i/b.csv; "
               "cp base$i.samples.csv x$i/b.samples.csv; cp slow$i.csv y$i/b.csv; "
               "cp slow$i.samples.csv y$i/b.samples.csv; done; $A compare x? -- y?",
               4);
    ASSERT_SAYS("b.csv:a/1/normal/single/warm  slower");
    PASS();
}

TEST labels_of_disturbed_runs_are_heeded(void) {
    static const double base[] = {1000}, slow[] = {1200};
    ASSERT_RUN("rm -rf $T; mkdir -p $T", 0);
    ASSERT(write_run("base.csv", "d", three, base, 1) &&
           write_run("slow.csv", "d", three, slow, 1));
    ASSERT_RUN("cd $T && for i in 1 2 3; do for s in base slow; do cp $s.csv $s$i.csv; "
               "cp $s.samples.csv $s$i.samples.csv; done; done",
               0);
    ASSERT_RUN("cd $T && $A compare base1.csv slow1.csv", 4);
    /* `labels` is the eighth column from the end. */
    ASSERT_RUN(
        "cd $T && for i in 1 2 3; do awk -F, -v OFS=, '/^a/ { $(NF - 7) = \"emulated+busy\" } "
        "{ print }' slow$i.csv > l && mv l slow$i.csv; done; $A compare base1.csv slow1.csv "
        "--explain",
        5);
    ASSERT_SAYS("now was busy");
    ASSERT_SAYS("a run was disturbed");
    ASSERT_RUN("cd $T && $A compare base?.csv -- slow?.csv --explain", 5);
    ASSERT_SAYS("all runs of one side were disturbed");
    ASSERT_RUN("cd $T && cp slow.csv slow1.csv && $A compare base?.csv -- slow?.csv", 4);
    PASS();
}

TEST folders_are_compared_file_by_file(void) {
    const double base[] = {1000, 2000}, slower[] = {1000, 2600};
    ASSERT_RUN("rm -rf $T; mkdir -p $T/x $T/y", 0);
    ASSERT(write_run("x/one.csv", "d", three, base, 2) &&
           write_run("x/two.csv", "d", three, base, 2));
    ASSERT(write_run("y/one.csv", "d", three, base, 2) &&
           write_run("y/two.csv", "d", three, slower, 2));
    ASSERT_RUN("echo 'a,b' > $T/x/notes.csv; $A compare $T/x $T/y", 4);
    ASSERT_SAYS("two.csv:b/1/normal/single/warm  slower");
    ASSERT_SAYS("3 same, 0 faster, 1 slower");
    ASSERT_RUN("$A compare $T/x $T/y/one.csv", 5);
    ASSERT_SAYS("2 missing");
    PASS();
}

TEST malformed_files_are_named_with_their_line(void) {
    const double base[] = {1000};
    ASSERT_RUN("rm -rf $T; mkdir -p $T", 0);
    ASSERT(write_run("base.csv", "d", three, base, 1) && write_run("bad.csv", "d", three, base, 1));
    ASSERT_RUN("echo 'x,y' >> $T/bad.csv; $A compare $T/base.csv $T/bad.csv", 2);
    ASSERT_SAYS("bad.csv:5: 2 fields where the header has 45");
    ASSERT_RUN("sed 's/schema: 2/schema: 1/' $T/base.csv > $T/bad.csv; "
               "$A compare $T/base.csv $T/bad.csv",
               2);
    ASSERT_SAYS("schema 1, but this assay reads schema 2");
    ASSERT_RUN(
        "cp $T/base.csv $T/bad.csv; rm $T/bad.samples.csv; $A compare $T/base.csv $T/bad.csv", 2);
    ASSERT_SAYS("bad.samples.csv");
    PASS();
}

TEST times_that_cannot_be_give_no_ratio(void) {
    const double base[] = {1000}, nothing[] = {0};
    ASSERT_RUN("rm -rf $T; mkdir -p $T", 0);
    ASSERT(write_run("base.csv", "d", three, base, 1) &&
           write_run("zero.csv", "d", three, nothing, 1));
    ASSERT_RUN("$A compare $T/zero.csv $T/base.csv --explain", 5);
    ASSERT_SAYS("a sample is 0");
    ASSERT_FALSE(command_says("inf"));
    ASSERT_RUN("$A compare $T/base.csv $T/zero.csv", 5);
    ASSERT_RUN("sed 's/,40,1009.*,/,1000000000000,/; s/,,,40,/,,,1000000000000,/' $T/base.csv > "
               "$T/zero.csv; $A compare $T/base.csv $T/zero.csv",
               2);
    ASSERT_SAYS("but its row says 1000000000000");
    PASS();
}

/* A stand-in for gnuplot on a full disk: it ends well and leaves half a chart. */
TEST charts_are_whole_or_not_there(void) {
    const double base[] = {1000};
    ASSERT_RUN(
        "rm -rf $T; mkdir -p $T/bin $T/r; printf '#!/bin/sh\\nfor a; do case $a in "
        "*out=*) f=${a##*out=\\047}; f=${f%%\\047*}; echo \"<svg>\" > \"$f\";; esac; done\\n' > "
        "$T/bin/gnuplot; chmod +x $T/bin/gnuplot",
        0);
    ASSERT(write_run("r/bench.csv", "d", three, base, 1));
    ASSERT_RUN("PATH=$T/bin:$PATH $A plot $T/r", 3);
    ASSERT_SAYS("bench.svg is incomplete");
    ASSERT_RUN("ls $T/r | grep -v csv", 1);
    ASSERT_RUN("grep -v ^a/ $T/r/bench.csv > $T/r/small_matrix.csv; $A plot $T/r/small_matrix.csv",
               2);
    ASSERT_SAYS("has no rows, so there is nothing to draw");
    PASS();
}

SUITE(bench_suite) {
    command_use_one_thread();
    transcript_run("bench");
    RUN_TEST(verdicts_and_exit_status_follow_from_the_files);
    RUN_TEST(several_runs_per_side_are_the_unit);
    RUN_TEST(labels_of_disturbed_runs_are_heeded);
    RUN_TEST(folders_are_compared_file_by_file);
    RUN_TEST(times_that_cannot_be_give_no_ratio);
    RUN_TEST(charts_are_whole_or_not_there);
    RUN_TEST(malformed_files_are_named_with_their_line);
    command_run("rm -rf $T");
}
