/* Tests of `assay judge`: cheats are refused for their reasons, honest kernels are accepted, a seed
 * repeats a verdict, and hostile texts end in a sentence. Times are never judged. */
#include <greatest.h>

#include "harness/check/shapes.h"
#include "kernels/kernels.h"
#include "transcript.h"

SUITE(judge_suite);

TEST held_out_shapes_are_taken_not_listed_and_follow_from_the_seed(void) {
    shape one[HELD_OUT_MOST], same[HELD_OUT_MOST], other[HELD_OUT_MOST];
    const kernel *k = op_find_kernel(&rmsnorm_op, "rmsnorm_rows");
    size_t n = shapes_make_held_out(&rmsnorm_op, k, 1, 8, one);
    ASSERT_EQ(8u, n);
    ASSERT_EQ(n, shapes_make_held_out(&rmsnorm_op, k, 1, 8, same));
    ASSERT_EQ(n, shapes_make_held_out(&rmsnorm_op, k, 2, 8, other));
    ASSERT_MEM_EQ(one, same, n * sizeof *one);
    ASSERT(memcmp(one, other, n * sizeof *one) != 0);
    bool is_longer = false;
    for (size_t i = 0; i < n; i++) {
        ASSERT(op_takes(&rmsnorm_op, k, &one[i], NULL));
        is_longer = is_longer || one[i].dim[1] > 16384;
    }
    ASSERT(is_longer);
    PASS();
}

SUITE(judge_suite) {
    RUN_TEST(held_out_shapes_are_taken_not_listed_and_follow_from_the_seed);
    transcript_run("judge");
}
