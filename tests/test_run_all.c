/* Tests of run_all.sh: a copy of it runs in a folder of its own, with a fake `make` and tools/deps.sh,
 * and with a fake assay that logs its arguments and exits as told, or with the real one. The PATH has
 * only the programs that the script itself needs, so that gnuplot and clang are there or not as a test
 * wants. */
#include <greatest.h>
#include <stdio.h>

#include "command.h"

SUITE(run_all_suite);

#define SETUP                                                                                      \
    "rm -rf \"$T\" && mkdir -p \"$T/bin\" \"$T/tools\" \"$T/results\" && cd \"$T\" && "            \
    "cp \"$H/run_all.sh\" . && cp \"$H/results/claims.csv\" results && "                           \
    "printf '#!/bin/sh\\nexit ${FAKE_DEPS:-0}\\n' > tools/deps.sh && "                             \
    "printf '#!/bin/sh\\nexit ${FAKE_MAKE:-0}\\n' > bin/make && chmod +x bin/make && "             \
    "for p in sh date dirname mkdir getconf uname cat; do ln -s \"$(command -v $p)\" bin/$p; done"

/* FAKE_FAIL is a list such as "check=1 report=3". */
#define FAKE_ASSAY                                                                                 \
    "printf '%s\\n' '#!/bin/sh' 'echo \"$*\" >> calls' "                                           \
    "'[ \"$*\" = \"info --field results\" ] && echo results/fake' "                                \
    "'for f in ${FAKE_FAIL:-}; do [ \"${f%=*}\" = \"$1\" ] && exit \"${f#*=}\"; done' 'exit 0' "   \
    "> assay && chmod +x assay"
#define GNUPLOT " && ln -s \"$(command -v sh)\" bin/gnuplot"
#define FAKED(settings) "cd \"$T\" && rm -f calls; " settings " PATH=\"$T/bin\" sh ./run_all.sh"

#define ALL_CALLS                                                                                  \
    "info|info --field results|check -q --math fast --csv results/fake/check.csv|"                 \
    "validate -q --quick --csv results/fake/validate.csv|model check|"                             \
    "experiment all --quick --resume|"                                                             \
    "plot results/fake|claims|report|run -p The old smith -n 96 --temp 0.7 --seed 2 --echo|"       \
    "model bench -p 8,64 -n 32 -r 3|"

static void clear(void) {
    command_run("rm -rf \"$T\"");
}

/* What assay was asked for, with | for the ends of lines. */
static const char *get_calls(void) {
    command_run("tr '\\n' '|' < \"$T/calls\"");
    return command_get_output();
}

TEST every_step_runs_once_in_order(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY GNUPLOT, 0);
    ASSERT_RUN(FAKED(""), 0);
    ASSERT_SAYS("10 of 10");
    ASSERT_SAYS("10 commands succeeded");
    ASSERT_SAYS("\nrun_all: 10 steps ok, 0 failed, 0 skipped\n");
    ASSERT_SAYS("\n  validate ");
    ASSERT(!command_says("  skipped") && !command_says("  failed"));
    ASSERT_STR_EQ(ALL_CALLS, get_calls());
    ASSERT_RUN(FAKED("") " --full", 0);
    get_calls();
    ASSERT_SAYS("|validate -q --full --csv results/fake/validate.csv|");
    ASSERT_SAYS("|experiment all --resume|");
    clear();
    PASS();
}

TEST a_failed_step_stops_none_of_the_others(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY GNUPLOT, 0);
    ASSERT_RUN(FAKED("FAKE_FAIL='check=1 experiment=5 plot=3'"), 1);
    ASSERT_SAYS("  failed  check: assay check exited with 1 (a kernel or the model is wrong)");
    ASSERT_SAYS("  failed  experiments: assay experiment exited with 5");
    ASSERT_SAYS("  failed  charts: assay plot exited with 3 (this machine cannot run it)");
    ASSERT_SAYS("7 commands succeeded");
    ASSERT_SAYS("  experiments      0 s  failed\n");
    ASSERT_SAYS("\nrun_all: 7 steps ok, 3 failed, 0 skipped\n");
    ASSERT_STR_EQ(ALL_CALLS, get_calls());
    clear();
    PASS();
}

TEST the_exit_status_is_the_worst_whatever_the_order(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY GNUPLOT, 0);
    ASSERT_RUN(FAKED("FAKE_FAIL='check=5 report=3'"), 3);
    ASSERT_RUN(FAKED("FAKE_FAIL='check=3 report=5'"), 3);
    ASSERT_RUN(FAKED("FAKE_FAIL='check=3 report=2 run=1'"), 1);
    ASSERT_RUN(FAKED("FAKE_FAIL='check=139 report=1'"), 139);
    ASSERT_SAYS("assay crashed");
    ASSERT_RUN(FAKED("FAKE_FAIL='check=4'"), 4);
    clear();
    PASS();
}

TEST without_gnuplot_only_the_charts_are_skipped(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY, 0);
    ASSERT_RUN(FAKED("FAKE_DEPS=1"), 0);
    ASSERT_SAYS("  skipped charts: gnuplot is missing: install the package gnuplot-nox");
    ASSERT_SAYS("  missing tools: see");
    ASSERT_SAYS("9 commands succeeded");
    ASSERT_SAYS("\nrun_all: 9 steps ok, 0 failed, 1 skipped\n");
    get_calls();
    ASSERT_SAYS("|report|");
    ASSERT(!command_says("plot"));
    clear();
    PASS();
}

TEST a_device_without_validation_skips_it(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY GNUPLOT, 0);
    ASSERT_RUN(FAKED("FAKE_FAIL='validate=3'"), 0);
    ASSERT_SAYS("  skipped validate: this device cannot do it; its message is above");
    ASSERT_SAYS("\nrun_all: 9 steps ok, 0 failed, 1 skipped\n");
    ASSERT_RUN(FAKED("FAKE_FAIL='validate=1'"), 1);
    ASSERT_SAYS("  failed  validate: assay validate exited with 1");
    clear();
    PASS();
}

TEST a_failed_build_is_said_and_nothing_old_is_run(void) {
    ASSERT_RUN(SETUP " && " FAKE_ASSAY, 0);
    ASSERT_RUN(FAKED("FAKE_MAKE=2"), 3);
    ASSERT_SAYS("  failed  build: the compiler's message is above");
    ASSERT_RUN("test ! -e \"$T/calls\"", 0);
    ASSERT_RUN("rm \"$T/bin/make\"; " FAKED(""), 3);
    ASSERT_SAYS("failed  build");
    clear();
    PASS();
}

TEST bad_arguments_are_a_usage_error(void) {
    ASSERT_RUN(SETUP, 0);
    ASSERT_RUN("PATH=\"$T/bin\" sh \"$T/run_all.sh\" --fast", 2);
    ASSERT_SAYS("usage: ./run_all.sh [--full]");
    ASSERT_RUN("PATH=\"$T/bin\" sh \"$T/run_all.sh\" --full --full", 2);
    clear();
    PASS();
}

/* The real program, with no compiler for the software device: all it can do is write the report. */
TEST without_clang_and_gnuplot_the_report_is_still_written(void) {
    ASSERT_RUN(SETUP " && ln -s \"$A\" assay && ln -s \"$H/kernels\" \"$H/harness\" \"$H/report\" "
                     "\"$H/plots\" .",
               0);
    ASSERT_RUN(FAKED("ASSAY_HOME=\"$T\" ASSAY_DEVICE=soft ASSAY_CLANG="), 3);
    ASSERT_SAYS("no clang found");
    ASSERT_SAYS("  failed  info: assay info exited with 3");
    ASSERT_SAYS("  skipped check: there is no device to run kernels on");
    ASSERT_SAYS("  skipped charts: gnuplot is missing");
    ASSERT_SAYS("  failed  report: assay claims exited with 5");
    ASSERT_SAYS("results/report.html\n");
    ASSERT_RUN("cat \"$T/results/report.html\"", 0);
    ASSERT_SAYS("<title>Assay report: nothing measured yet</title>");
    ASSERT_SAYS("Nothing has been measured yet: no kernel was checked");
    ASSERT(!command_says("{{"));
    clear();
    PASS();
}

/* The real program, over a project of one kernel. Of the experiments, which take minutes, one runs. */
TEST the_real_program_takes_every_step_and_writes_the_report(void) {
    ASSERT_RUN(SETUP
               " && \"$A\" init p && mv p/* . && "
               "printf '%s\\n' '#!/bin/sh' "
               "'[ \"$1 $2\" != \"experiment all\" ] || set -- experiment split_dispatch --smoke' "
               "'exec \"$A\" \"$@\"' > assay && chmod +x assay",
               0);
    int status = command_run("cd \"$T\" && ASSAY_DEVICE=soft "
                             "PATH=\"$T/bin:$PATH\" sh ./run_all.sh");
    ASSERTm(command_get_output(), status == 0 || status == 5); /* 5: no claim can be judged by it */
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_SAYS("# canaries: ");
    ASSERT_SAYS("  check ");
    ASSERT(!command_says("  failed  check") && !command_says("  failed  validate") &&
           !command_says("  failed  model") && !command_says("  failed  experiments") &&
           !command_says("  failed  charts") && !command_says("  failed  text"));
    ASSERT_RUN("grep -c 'softcap' \"$T/results/report.html\"", 0);
    clear();
    PASS();
}

/* --- .ci/front_door, which runs the README's commands and judges them --- */

#define DOOR                                                                                       \
    "rm -rf \"$T\" && mkdir -p \"$T/bin\" \"$T/.ci\" \"$T/tools\" \"$T/results\" && cd \"$T\" && " \
    "cp \"$H/.ci/front_door\" .ci && cp \"$H/README.md\" . && "                                    \
    "printf 'test:\\n\\t@exit $(FAKE_TEST)\\n' > Makefile && "                                     \
    "printf 'exit 0\\n' > tools/clang.sh && printf '#!/bin/sh\\n' > bin/gnuplot && "               \
    "printf '%s\\n' '#!/bin/sh' 'eval \"${FAKE_RUN:-}\"' 'echo page > results/report.html' "       \
    "'echo \"run_all: ${FAKE_STEPS:-10 steps ok, 0 failed, 0 skipped}\" >&2' > run_all.sh && "     \
    "chmod +x run_all.sh bin/gnuplot"
#define ENTERED(settings) "cd \"$T\" && " settings " PATH=\"$T/bin:$PATH\" sh .ci/front_door log"

TEST the_front_door_is_open_when_both_commands_of_the_readme_end_well(void) {
    ASSERT_RUN(DOOR, 0);
    ASSERT_RUN(ENTERED(""), 0);
    ASSERT_SAYS("./run_all.sh exited with 0");
    ASSERT_SAYS("make test exited with 0");
    ASSERT_RUN(ENTERED("FAKE_TEST=1"), 1);
    ASSERT_SAYS("front door: 'make test' failed");
    ASSERT_RUN(ENTERED("FAKE_RUN='exit 5'"), 1);
    ASSERT_SAYS("./run_all.sh exited with 5");
    ASSERT_SAYS("front door: run_all.sh wrote no results/report.html");
    ASSERT_RUN(ENTERED("FAKE_STEPS='9 steps ok, 1 failed, 0 skipped'"), 1);
    ASSERT_RUN(
        "cd \"$T\" && sed -i.bak 's/^make test/make check/' README.md && sh .ci/front_door log", 1);
    ASSERT_SAYS("does not print ./run_all.sh and make test");
    clear();
    PASS();
}

TEST a_step_may_only_be_skipped_where_the_machine_cannot_do_it(void) {
    ASSERT_RUN(DOOR, 0);
    ASSERT_RUN(ENTERED("FAKE_RUN='echo run_all: skipped charts: gnuplot is missing'"), 1);
    ASSERT_SAYS("front door: run_all.sh skipped 'charts', which this machine can do");
    ASSERT_RUN(ENTERED("FAKE_RUN='echo run_all: skipped validate: this device cannot do it'"), 1);
    ASSERT_RUN("cd \"$T\" && echo 'echo Apple Paravirtual device' > assay && chmod +x assay", 0);
    ASSERT_RUN(ENTERED("FAKE_RUN='echo run_all: skipped validate: this device cannot do it'"), 0);
    ASSERT_RUN(ENTERED("FAKE_RUN='echo run_all: skipped check: there is no device'"), 1);
    ASSERT_RUN("echo 'exit 1' > \"$T/tools/clang.sh\"", 0);
    ASSERT_RUN(ENTERED("FAKE_RUN='echo run_all: skipped check: there is no device'"), 0);
    clear();
    PASS();
}

SUITE(run_all_suite) {
    RUN_TEST(the_front_door_is_open_when_both_commands_of_the_readme_end_well);
    RUN_TEST(a_step_may_only_be_skipped_where_the_machine_cannot_do_it);
    RUN_TEST(every_step_runs_once_in_order);
    RUN_TEST(a_failed_step_stops_none_of_the_others);
    RUN_TEST(the_exit_status_is_the_worst_whatever_the_order);
    RUN_TEST(a_device_without_validation_skips_it);
    RUN_TEST(without_gnuplot_only_the_charts_are_skipped);
    RUN_TEST(a_failed_build_is_said_and_nothing_old_is_run);
    RUN_TEST(bad_arguments_are_a_usage_error);
    RUN_TEST(without_clang_and_gnuplot_the_report_is_still_written);
    RUN_TEST(the_real_program_takes_every_step_and_writes_the_report);
}
