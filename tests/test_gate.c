/* Tests of the gate of a pull request (tools/gate.sh, which action.yml runs), over a made-up history of a
 * project with one kernel: `base` is the project before, `new` after. What is slower or faster has many
 * times the work, so that a busy machine cannot hide it; what is neither may not be called slower. */
#include <greatest.h>
#include <stdio.h>

#include "command.h"

SUITE(gate_suite);

/* y = x, after 200 rounds of work per element. */
#define PROJECT                                                                                    \
    "rm -rf \"$T\" && mkdir -p \"$T/base\" \"$T/bin\" && cd \"$T\" && "                            \
    "ln -s \"$A\" bin/assay && : > base/assay.project && "                                         \
    "printf '%s\\n' 'op spin: y = x' 'dims n' 'shapes 1 33 2048' "                                 \
    "'kernel spin spin.metal group 64 threads n' 'in x f32[n]' 'out y f32[n]' 'value n u32 = n' "  \
    "'value rounds u32 = 200' 'oracle y[i] = x[i]' > base/spin.op && "                             \
    "printf '%s\\n' '#include <metal_stdlib>' 'using namespace metal;' "                           \
    "'kernel void spin(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],' "      \
    "'                 constant uint &n [[buffer(2)]], constant uint &rounds [[buffer(3)]],' "     \
    "'                 uint i [[thread_position_in_grid]]) {' '    if (i >= n)' '        "         \
    "return;' "                                                                                    \
    "'    float h = x[i];' '    for (uint k = 0; k < rounds; k++)' "                               \
    "'        h = h * 0.999f + 0.001f;' '    y[i] = h == 12345.0f ? 0.0f : x[i];' '}' "            \
    "> base/spin.metal && cp -R base new && cd new && "
#define GATE                                                                                       \
    " && cd .. && PATH=\"$T/bin:$PATH\" GITHUB_STEP_SUMMARY=\"$T/summary.md\" "                    \
    "sh \"$H/tools/gate.sh\" new soft out base 10 > log 2>&1; s=$?; cat log summary.md; exit $s"
#define CASE "spin/2048/normal/chained/warm"

TEST a_new_kernel_is_timed_and_green(void) {
    int status = command_run(PROJECT "sed 's/spin/twirl/g' spin.metal > twirl.metal && "
                                     "sed 's/spin/twirl/g' spin.op > twirl.op" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_RUN("cd \"$T\" && cmp out/comment.md summary.md && cat out/comment.md", 0);
    ASSERT_SAYS("| check | ok | 6 passed, 0 failed |");
    ASSERT_SAYS("| twirl/2048/normal/chained/warm | new | - |");
    ASSERT_SAYS("twirl is not in the base |");
    ASSERT_FALSEm(command_get_output(), command_says("**slower**"));
    ASSERT_RUN("grep -c ^twirl/ \"$T/out/bench.csv\"", 0);
    PASS();
}

/* The base has its own launch: 64 threads per threadgroup, not 1. */
TEST a_changed_launch_is_a_change(void) {
    int status =
        command_run(PROJECT "sed -i.bak -e 's/group 64/group 1/' -e 's/= 200/= 4/' spin.op && "
                            "sed -i.bak 's/= 200/= 4/' ../base/spin.op" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 4, status, "%d");
    ASSERT_SAYS("| " CASE " | **slower** |");
    ASSERT_SAYS("description changed");
    PASS();
}

TEST a_slower_kernel_fails_the_gate(void) {
    int status = command_run(PROJECT "sed -i.bak 's/k < rounds/k < 10 * rounds/' spin.metal" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 4, status, "%d");
    ASSERT_SAYS(
        "| bench | **slower** | 0 same, 0 faster, 1 slower, 0 ambiguous, 0 missing, 0 new |");
    ASSERT_SAYS("| " CASE " | **slower** |");
    ASSERT_SAYS("kernel changed");
    PASS();
}

/* With a new parameter: the base is launched without it. */
TEST a_faster_kernel_with_a_new_parameter_is_green(void) {
    int status = command_run(
        PROJECT "sed -i.bak -e 's/rounds \\[\\[buffer(3)\\]\\],/& constant uint \\&part "
                "[[buffer(4)]],/' -e 's/k < rounds/k < rounds \\/ part/' spin.metal && "
                "echo 'value part u32 = 20' >> spin.op" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("| " CASE " | faster |");
    ASSERT_SAYS("kernel and description changed");
    PASS();
}

TEST a_renamed_kernel_is_compared_with_what_it_was(void) {
    int status =
        command_run(PROJECT "sed -i.bak 's/void spin/void whirl/' spin.metal && mv spin.metal "
                            "whirl.metal && sed -i.bak 's/kernel spin spin.metal/kernel whirl "
                            "whirl.metal/' spin.op" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("| whirl/2048/normal/chained/warm | ");
    ASSERT_SAYS("was spin");
    ASSERT_SAYS(", 0 missing, 0 new");
    PASS();
}

TEST the_pull_request_that_adds_the_project_is_green(void) {
    int status = command_run(PROJECT "rm -r ../base" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("| " CASE " | new |");
    ASSERT_SAYS("none of these kernels is in the base base");
    PASS();
}

/* A base that cannot be timed is no reason to fail, and no reason to call anything compared. */
TEST the_repair_of_a_broken_kernel_is_green(void) {
    int status = command_run(PROJECT "sed -i.bak 's/: x\\[i\\]/: 2/' ../base/spin.metal" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("| bench | cannot tell |");
    ASSERT_SAYS("| " CASE " | ambiguous |");
    status = command_run(PROJECT "echo nonsense >> ../base/spin.metal" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("| " CASE " | ambiguous |");
    PASS();
}

TEST what_is_wrong_fails_the_gate_and_has_a_category_of_its_own(void) {
    int status =
        command_run(PROJECT "sed -i.bak 's/i >= n/i > n/' spin.metal && rm -r ../base" GATE);
    ASSERT_EQ_FMTm(command_get_output(), 1, status, "%d");
    ASSERT_SAYS("| lint | ok | 1 file: 1 kernel, 1 compiles, 0 errors, 0 warnings |");
    ASSERT_SAYS("| validate | **failed** (1) |");
    ASSERT_SAYS("```\nspin/1/normal: kernel spin: wrote outside 'y': 0 bytes past its end");
    ASSERT_SAYS("\nspin/1/normal: load outside at spin.metal:");
    ASSERT_RUN("cd \"$T\" && grep -h '\"automationDetails\"' out/*.sarif", 0);
    ASSERT_SAYS("\"id\": \"assay/lint/new/\"");
    ASSERT_SAYS("\"id\": \"assay/validate/soft/new/\"");
    PASS();
}

SUITE(gate_suite) {
    command_use_one_thread();
    RUN_TEST(a_new_kernel_is_timed_and_green);
    RUN_TEST(a_changed_launch_is_a_change);
    RUN_TEST(a_slower_kernel_fails_the_gate);
    RUN_TEST(a_faster_kernel_with_a_new_parameter_is_green);
    RUN_TEST(a_renamed_kernel_is_compared_with_what_it_was);
    RUN_TEST(the_pull_request_that_adds_the_project_is_green);
    RUN_TEST(the_repair_of_a_broken_kernel_is_green);
    RUN_TEST(what_is_wrong_fails_the_gate_and_has_a_category_of_its_own);
    command_run("rm -rf \"$T\"");
}
