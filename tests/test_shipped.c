/* Tests of the recipes of bugs that shipped (tests/shipped) and of the tool that runs them, over a made-up
 * clone: the projects themselves are not here. */
#include <greatest.h>

#include "command.h"

SUITE(shipped_suite);

#define TOOL "sh \"$H/tools/shipped.sh\" --program \"$A\" "

TEST every_recipe_can_be_read_and_has_its_row(void) {
    ASSERT_RUN(TOOL "--parse", 0);
    ASSERT_SAYS(" recipes\n");
    ASSERT_RUN("cd \"$H/tests/shipped\" && for f in *-*; do "
               "fix=$(sed -n 's/^fix  *//p' $f) kernel=$(sed -n 's/^kernel  *//p' $f); "
               "grep -F \"| $fix\" ../../docs/shipped-bugs.md | grep -qF \"\\`$kernel\\`\" || "
               "{ echo \"$f has no row in docs/shipped-bugs.md\"; exit 1; }; done",
               0);
    PASS();
}

/* A kernel without a guard, in a string of another language; the next commit adds the guard. */
#define CLONE                                                                                      \
    "rm -rf \"$T\" && mkdir -p \"$T/made\" \"$T/recipes\" && cd \"$T/made\" && git init -q . && "  \
    "printf '%s\\n' 'SOURCE = \"\"\"' 'kernel void copy(device const float *x [[buffer(0)]],' "    \
    "'        device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],' "                    \
    "'        uint i [[thread_position_in_grid]]) {' '    y[i] = x[i];' '}' '\"\"\"' "             \
    "> k.py && git add k.py && c='git -c user.name=a -c user.email=a@b commit -qm' && $c one && "  \
    "sed 's/^    y/    if (i < n) y/' k.py > k && mv k k.py && git add k.py && $c two && "         \
    "printf '%s\\n' 'project made' \"fix $(git rev-parse HEAD)\" 'bug no guard' 'file k.py' "      \
    "'cut SOURCE | \"\"\"' 'before #include <metal_stdlib>' 'before using namespace metal;' "      \
    "'kernel copy' 'launch --grid 1 --group 32 --arg 0=f32[20]:ramp --arg 1=f32[20]' "             \
    "'launch --arg 2=u32:20' 'found store outside.*' 'line y\\[i\\] = x' > ../recipes/made-up "    \
    "&& cd .. && "
#define RUN TOOL "--clones . --recipes recipes "

TEST a_planted_bug_is_found_and_its_fix_is_clean(void) {
    ASSERT_RUN(CLONE RUN "--doc page.md && cat page.md", 0);
    ASSERT_SAYS("1 found, 0 missed, 0 wrong, 0 skipped\n");
    ASSERT_SAYS("**1 of 1 are found: 1 by validation at their line, 0 by their values. No fixed "
                "text has a finding.**");
    ASSERT_SAYS("| `copy` | no guard | store outside |");
    PASS();
}

TEST a_result_that_is_not_the_expected_one_fails(void) {
    ASSERT_RUN(
        CLONE "sed -i.b 's/^line .*/line nowhere/' recipes/made-up && rm recipes/*.b && " RUN, 1);
    ASSERT_SAYS("made-up                          WRONG: with the bug ");
    ASSERT_RUN(CLONE "echo 'fixed HEAD^' >> recipes/made-up && " RUN, 1);
    ASSERT_SAYS("WRONG: with the bug found; fixed: found\n");
    ASSERT_RUN(CLONE "echo 'sed s/copy/other/' >> recipes/made-up && " RUN, 1);
    ASSERT_SAYS("WRONG: with the bug assay: ");
    ASSERT_RUN(CLONE "mv made gone && " RUN, 0);
    ASSERT_SAYS("skipped: no clone of made\n");
    PASS();
}

/* Without a GPU no tool answers, and the page says so. */
TEST what_a_sanitizer_says_is_a_column_of_the_page(void) {
    ASSERT_RUN(CLONE RUN "--export texts && rm -rf clones && " TOOL "--recipes recipes "
                         "--sanitizer out.csv --texts texts && cat out.csv && ls texts/made-up",
               0);
    ASSERT_SAYS("recipe,tool,says\nmade-up,initcheck,");
    ASSERT_SAYS("made-up,memcheck,");
    ASSERT_SAYS("made-up,racecheck,");
    ASSERT_SAYS("made-up,synccheck,");
    ASSERT_SAYS("kernel.metal");
    ASSERT_RUN(CLONE
               "printf '%s\n' '# A GPU' recipe,tool,says 'made-up,memcheck,found: store outside' "
               "made-up,racecheck,nothing > recipes/sanitizer.csv && " RUN "--doc page.md && "
               "cat page.md",
               0);
    ASSERT_SAYS("on an NVIDIA GPU (A GPU):\n**1 of 1 at their line and 0 at another one**");
    ASSERT_SAYS("| store outside | store outside (memcheck) |");
    ASSERT_SAYS("**1 of 1 are found: 1 by validation at their line, 0 by their values.");
    PASS();
}

TEST mistakes_in_a_recipe_are_named(void) {
    ASSERT_RUN(CLONE "printf 'colour red\\nfix twice\\n' >> recipes/made-up && "
                     "sed -i.b '/^kernel/d' recipes/made-up && rm recipes/*.b && " RUN "--parse",
               1);
    ASSERT_SAYS("made-up: line 12: unknown key colour\n");
    ASSERT_SAYS("made-up: line 13: a second fix\n");
    ASSERT_SAYS("made-up: no line kernel\n");
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

SUITE(shipped_suite) {
    RUN_TEST(every_recipe_can_be_read_and_has_its_row);
    if (command_run("git --version") != 0)
        return;
    RUN_TEST(a_planted_bug_is_found_and_its_fix_is_clean);
    RUN_TEST(a_result_that_is_not_the_expected_one_fails);
    RUN_TEST(what_a_sanitizer_says_is_a_column_of_the_page);
    RUN_TEST(mistakes_in_a_recipe_are_named);
}
