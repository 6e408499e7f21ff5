/* Tests of `assay bench` and `assay compare` through the command line: files, axes, mistakes, exit
 * status. Times are never judged: verdicts are tested on files with known samples. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/measure/results.h"

SUITE(bench_suite);

#define BENCH_FOR(budget) "$A bench --device soft --budget " budget " --out $T/b.csv "
#define BENCH BENCH_FOR("0.01")

static err e;

TEST bench_writes_rows_and_samples_and_continues_where_it_stopped(void) {
    ASSERT_RUN("rm -rf $T; " BENCH "'ffn_silu/*' --shape 64", 0);
    ASSERT_SAYS("ffn_silu  64");
    ASSERT_SAYS("emulated");
    ASSERT_SAYS("1 timed, 0 not timed");
    ASSERT_RUN("grep -c "
               "'^ffn_silu/64/normal/chained/"
               "warm,.*,b.samples.csv,,2[^,]*,[^,]*,[0-9a-f]*,[0-9.e+]*,kernel:ffn_silu=[^,]*$' "
               "$T/b.csv",
               0);
    ASSERT_RUN("grep -c ^ffn_silu/64/normal/chained/warm,0, $T/b.samples.csv", 0);
    ASSERT_RUN(
        "for key in schema device api driver compiler os cpu 'host compiler' commit seed date "
        "cache; do grep -q \"^# $key: .\" $T/b.csv || { echo no $key; exit 1; }; done",
        0);
    ASSERT_RUN(BENCH "'ffn_silu/*' --shape 64,96 --resume", 0);
    ASSERT_SAYS("1 of 2 cases are already there");
    ASSERT_SAYS("1 timed");
    ASSERT_RUN("grep -c ^ffn_silu/ $T/b.csv", 0);
    ASSERT_SAYS("2");
    ASSERT_RUN(BENCH "ffn_silu --seed 2 --resume", 2);
    ASSERT_SAYS("its seed was '1' and is '2' now");
    PASS();
}

TEST a_run_that_is_killed_can_be_read_and_resumed(void) {
    /* In the background until the first row is there, then killed without a word. */
    ASSERT_RUN(
        "rm -rf $T; " BENCH_FOR("0.05") "'ffn_silu/*' --shape all > /dev/null 2>&1 & pid=$!; i=0; "
                                        "until grep -q ^ffn_silu/ $T/b.csv 2> /dev/null || test "
                                        "$((i += 1)) -gt 600; do "
                                        "sleep 0.1; done; kill -9 $pid; wait $pid 2> /dev/null; "
                                        "grep -c ^ffn_silu/ $T/b.csv",
        0);
    ASSERT_RUN("$A compare $T/b.csv $T/b.csv > /dev/null; test $? -ne 2", 0);
    ASSERT_RUN(BENCH_FOR("0.05") "'ffn_silu/*' --shape all --resume", 0);
    ASSERT_SAYS("of 8 cases are already there");
    ASSERT_RUN("test $(grep -c ^ffn_silu/ $T/b.csv) -eq 8", 0);
    PASS();
}

/* Only what differs in the kernel alone is compared. */
TEST a_run_ends_with_how_many_times_as_fast_the_fastest_is(void) {
    ASSERT_RUN(BENCH "'ffn_silu*' --shape 64,96", 0);
    ASSERT_SAYS("\nffn_silu 64, chained, warm: ffn_silu");
    ASSERT_SAYS("\nffn_silu 96, chained, warm: ffn_silu");
    ASSERT_SAYS(" % of the ");
    ASSERT_SAYS(" roof) is ");
    ASSERT_SAYS(" times as fast as ffn_silu");
    ASSERT_RUN(BENCH "'ffn_silu/*' --shape 64,96", 0); /* one kernel */
    ASSERT_FALSEm(command_get_output(), command_says(" times as fast as "));
    PASS();
}

TEST axes_multiply(void) {
    ASSERT_RUN("ASSAY_CACHE_BYTES=1000000 " BENCH
               "matvec --format q4_0 --accumulate no --variant reuse --shape 8x32 --batch 1,3 "
               "--regime single,chained --cache all --md",
               0);
    static const char *const rows[] = {
        "| multi_token_matvec_q4_0_reuse | 8x32x1 | normal | single | warm |",
        "| multi_token_matvec_q4_0_reuse | 8x32x3 | normal | single | cold |",
        "| multi_token_matvec_q4_0_reuse | 8x32x3 | normal | chained | cold |"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ASSERT_SAYS(rows[i]);
    ASSERT_SAYS("8 timed");
    PASS();
}

TEST rows_can_be_json(void) {
    ASSERT_RUN(BENCH "'ffn_silu/*' --shape 64 --regime independent --math relaxed --json "
                     "2> /dev/null",
               0);
    ASSERT_SAYS("\"math\": \"relaxed\"");
    ASSERT_EQ('{', command_get_output()[0]);
    ASSERT_SAYS("\"device\": \"software Metal device");
    ASSERT_SAYS(
        "\"kernel\": \"ffn_silu\", \"variant\": \"plain\", \"format\": \"\", \"shape\": \"64\", "
        "\"batch\": null");
    ASSERT_SAYS("\"regime\": \"independent\"");
    PASS();
}

TEST mistakes_are_answered_with_what_would_have_been_right(void) {
    static const struct {
        const char *line, *says;
    } bad[] = {
        {BENCH "--regime fast", "there are single, chained, independent, all"},
        {BENCH "--cache hot", "there are warm, cold, all"},
        {BENCH "--shape 5xq", "'5xq' is not a shape"},
        {BENCH "--shape 99999999x99999999", "at most 1e12 values"},
        {BENCH "--shape 1,,2", "--shape takes a comma-separated list"},
        {BENCH "--batch 0", "--batch takes numbers from 1 to 65536"},
        {BENCH "--variant nope", "no kernel or variant is called 'nope'"},
        {BENCH "ffn_sulu", "did you mean ffn_silu?"},
        {BENCH "ffn_silu --shape 3x3x3", "matches no case of the shapes"},
        {BENCH "--input loud", "there are uniform"},
        {BENCH_FOR("0"), "--budget takes a number of seconds"},
        {BENCH "--min-effect x", "--min-effect takes a number of percent"},
        {BENCH "--baseline /no/such.csv", "cannot read /no/such.csv"},
        {BENCH "--baseline /no/such", "there is no folder of kernels /no/such"},
        {BENCH "--baseline nothing", "no baseline is called 'nothing'"},
        {BENCH "ffn_silu --save a/b", "a baseline is named with letters"},
        {"ASSAY_CACHE_BYTES=1 " BENCH "ffn_silu", "ASSAY_CACHE_BYTES is '1'"},
        {BENCH "--boudget 1", "did you mean --budget?"},
        {"$A bench ffn_silu --device soft --out $T/b.txt", "NAME.csv"},
        {"$A compare", "compare takes two result files"},
        {"$A compare a b c", "or several runs per side: BASE... -- NEW..."},
        {"$A compare a b --", "compare takes two result files"},
        {"$A compare /no/a.csv /no/b.csv", "cannot read /no/a.csv"},
        {"$A compare $H/kernels $H/kernels", "has no NAME.csv"},
        {"$A compare a.csv b.csv --clock sun", "there are gpu, encode and wall"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_RUN(bad[i].line, 2);
        ASSERT_SAYS(bad[i].says);
    }
    PASS();
}

TEST a_wrong_kernel_gets_a_reason_and_no_time(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; "
               "sed 's/return g \\/ (1.0f/return g \\/ (1.5f/' $H/kernels/ffn_silu.metal > "
               "$T/k/ffn_silu.metal; "
               "ASSAY_KERNELS=$T/k " BENCH "'ffn_silu/*' buffer_copy --shape 64",
               1);
    ASSERT_SAYS("NOT TIMED");
    ASSERT_SAYS("kernel ffn_silu: 'out'");
    ASSERT_SAYS("1 timed, 1 not timed");
    ASSERT_RUN("grep -c '^ffn_silu/.*,0,,,.*kernel ffn_silu' $T/b.csv", 0);
    PASS();
}

TEST a_base_of_kernels_is_timed_interleaved(void) {
    int status = command_run(BENCH "ffn_silu --shape 64 --baseline $H/kernels --explain");
    ASSERTm(command_get_output(), status == 0 || status == 4 || status == 5);
    ASSERT_SAYS("same source");
    ASSERT_SAYS("interleaved: sign test");
    status = command_run("cp $T/b.csv $T/old.csv; cp $T/b.samples.csv $T/old.samples.csv; " BENCH
                         "--baseline $T/old.csv");
    ASSERTm(command_get_output(), status == 0 || status == 4 || status == 5);
    ASSERT_SAYS("ffn_silu/64/normal/chained/warm");
    PASS();
}

TEST baselines_last_and_filtered_runs_merge(void) {
    ASSERT_RUN("rm -rf $T; " BENCH "'ffn_silu/*' --shape 64 --save before", 0);
    ASSERT_SAYS("baselines/before.csv");
    ASSERT_RUN(BENCH "buffer_copy --shape 64", 0);
    ASSERT_RUN("grep -c '^ffn_silu/64\\|^buffer_copy/64' $T/b.csv", 0);
    ASSERT_SAYS("2");
    ASSERT_RUN("cp -R $T/baselines $T/kept; " BENCH "--baseline before; s=$?; "
               "diff -r $T/kept $T/baselines && case $s in 0|4|5) ;; *) exit $s;; esac",
               0);
    ASSERT_SAYS("ffn_silu/64/normal/chained/warm");
    ASSERT_RUN("test $(grep -c ^ffn_silu/64 $T/b.csv) -eq 1", 0);
    ASSERT_RUN("test $(grep -c ^ffn_silu/64 $T/b.history.csv) -eq 2", 0);
    ASSERT_RUN(BENCH "--baseline $T/b.csv", 2);
    ASSERT_SAYS("is the file that this run writes");
    ASSERT_RUN(BENCH "--baseline before --save before", 2);
    ASSERT_SAYS("save under another name");
    ASSERT_RUN(BENCH "--baseline after", 2);
    ASSERT_SAYS("no baseline is called 'after'; there are before;");
    PASS();
}

TEST resuming_trusts_only_rows_that_are_still_true(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/. $T/k; ASSAY_KERNELS=$T/k " BENCH
               "'ffn_silu/*' buffer_copy --shape 64",
               0);
    ASSERT_RUN("ASSAY_KERNELS=$T/k " BENCH "'ffn_silu/*' buffer_copy --shape 64 --resume", 0);
    ASSERT_SAYS("2 of 2 cases are already there");
    ASSERT_RUN("echo 'constant int changed = 1;' >> $T/k/ffn_silu.metal; ASSAY_KERNELS=$T/k " BENCH
               "'ffn_silu/*' buffer_copy --shape 64 --resume",
               0);
    ASSERT_SAYS("1 of 2 cases are already there");
    ASSERT_RUN(
        "sed 's/,[0-9a-f]\\{12\\}\\(,[^,]*,[^,]*\\)$/,0123456789ab\\1/' $T/b.csv > $T/c.csv; mv "
        "$T/c.csv $T/b.csv; "
        "ASSAY_COMMIT=abc-dirty ASSAY_KERNELS=$T/k " BENCH
        "'ffn_silu/*' buffer_copy --shape 64 --resume",
        0);
    ASSERT_SAYS("0 of 2 cases are already there");
    PASS();
}

/* compare ----------------------------------------------------------------------------------- */

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

TEST a_closed_pipe_and_an_interrupt_end_every_verb_alike(void) {
    static const char *const verbs[] = {
        "list", "help bench", "check ffn_silu --device soft",
        "bench ffn_silu --shape 64 --budget 0.01 --device soft --out $T/p.csv",
        "lint $H/kernels/ffn_silu.metal"};
    char line[512];
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        snprintf(
            line, sizeof line,
            "mkdir -p $T; rm -f $T/go; mkfifo $T/go; { read x < $T/go; $A %s 2> $T/talk; echo $? "
            "> $T/status; } | { exec 0<&-; echo > $T/go; }; cat $T/talk; test \"$(cat "
            "$T/status)\" = 141 && test ! -s $T/talk",
            verbs[i]);
        ASSERT_RUN(line, 0);
    }
    ASSERT_RUN(
        "$A check --device soft > $T/rows 2> $T/talk & pid=$!; i=0; until grep -q pass $T/rows "
        "|| test $((i += 1)) -gt 300; do sleep 0.1; done; kill -TERM $pid; wait $pid",
        143);
    PASS();
}

SUITE(bench_suite) {
    command_use_one_thread();
    RUN_TEST(bench_writes_rows_and_samples_and_continues_where_it_stopped);
    RUN_TEST(a_run_that_is_killed_can_be_read_and_resumed);
    RUN_TEST(a_run_ends_with_how_many_times_as_fast_the_fastest_is);
    RUN_TEST(axes_multiply);
    RUN_TEST(rows_can_be_json);
    RUN_TEST(mistakes_are_answered_with_what_would_have_been_right);
    RUN_TEST(a_wrong_kernel_gets_a_reason_and_no_time);
    RUN_TEST(a_base_of_kernels_is_timed_interleaved);
    RUN_TEST(baselines_last_and_filtered_runs_merge);
    RUN_TEST(resuming_trusts_only_rows_that_are_still_true);
    RUN_TEST(verdicts_and_exit_status_follow_from_the_files);
    RUN_TEST(several_runs_per_side_are_the_unit);
    RUN_TEST(labels_of_disturbed_runs_are_heeded);
    RUN_TEST(folders_are_compared_file_by_file);
    RUN_TEST(times_that_cannot_be_give_no_ratio);
    RUN_TEST(charts_are_whole_or_not_there);
    RUN_TEST(a_closed_pipe_and_an_interrupt_end_every_verb_alike);
    RUN_TEST(malformed_files_are_named_with_their_line);
    command_run("rm -rf $T");
}
