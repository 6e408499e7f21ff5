/* Tests of the house: includes point down (tests/arrows.awk has the table), and no room has more lines than
 * tests/budget.tsv allows. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

SUITE(arrows_suite);

#define LOOK                                                                                       \
    "find cli experiments harness include kernels project reference report runner "                \
    "-name '*.[chm]' ! -path '*/msl/include/*' | xargs awk -f \"$H/tests/arrows.awk\""

TEST no_include_points_up_and_headers_make_no_circle(void) {
    ASSERT_RUN("cd \"$H\" && " LOOK, 0);
    PASS();
}

/* Each line is planted in a tree of its own. */
TEST an_include_that_points_up_is_refused(void) {
    static const struct {
        const char *file, *include, *says;
    } planted[] = {
        {"harness/base/os.c", "harness/device/device.h",
         "harness/base/os.c:1: harness/base/ may not include harness/device/device.h"},
        {"harness/measure/bench.c", "project/project.h", "may not include project/project.h"},
        {"harness/check/op.h", "../../kernels/ops.h", "may not include kernels/ops.h"},
        {"harness/device/soft/pool.c", "harness/device/cuda/cuda.h", "may not include"},
        {"reference/rope.c", "kernels/rope.h", "may not include kernels/rope.h"},
        {"kernels/rope.c", "runner/model.h", "may not include runner/model.h"},
        {"project/load.c", "runner/model.h", "may not include runner/model.h"},
        {"runner/model.c", "experiments/lab.h", "may not include experiments/lab.h"},
        {"report/page.c", "cli/verb.h", "may not include cli/verb.h"},
        {"cli/verb.h", "verb.h", "circle: cli/verb.h cli/verb.h"},
    };
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        char line[1000];
        snprintf(line, sizeof line,
                 "rm -rf \"$T\"; for r in cli experiments harness include kernels project "
                 "reference report runner %.*s; do mkdir -p \"$T/$r\"; done; cd \"$T\" && "
                 "echo '#include \"%s\"' > %s && " LOOK "; s=$?; rm -rf \"$T\"; test $s -ne 0",
                 (int)(strrchr(planted[i].file, '/') - planted[i].file), planted[i].file,
                 planted[i].include, planted[i].file);
        ASSERT_RUN(line, 0);
        ASSERT_SAYS(planted[i].says);
    }
    PASS();
}

TEST no_room_has_more_lines_than_its_budget(void) {
    ASSERT_RUN("cd \"$H\" && tests/budget.sh", 0);
    ASSERT_RUN(
        "printf 'room\\tlines\\twhy\\nreference+import\\t7\\t\\n' > $T; \"$H\"/tests/budget.sh $T",
        1);
    ASSERT_SAYS("7  too many");
    PASS();
}

SUITE(arrows_suite) {
    RUN_TEST(no_include_points_up_and_headers_make_no_circle);
    RUN_TEST(an_include_that_points_up_is_refused);
    RUN_TEST(no_room_has_more_lines_than_its_budget);
}
