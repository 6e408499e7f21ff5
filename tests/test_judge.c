/* Tests of `assay judge`: cheats are refused for their reasons, honest kernels are accepted, a seed
 * repeats a verdict, and hostile texts end in a sentence. Times are never judged. */
#include <greatest.h>

#include "command.h"
#include "harness/check/shapes.h"
#include "kernels/kernels.h"

SUITE(judge_suite);

#define JUDGE "$A judge --device soft --untimed "
#define CHEATS "$H/tests/cheats/"

/* Every eighth; CI judges all. */
TEST cheats_are_refused_for_the_expected_reason(void) {
    ASSERT_RUN("ls " CHEATS "*.metal | wc -l | awk '{exit $1 < 60}'", 0);
    ASSERT_RUN("rm -f $T; python3 $H/tests/judge_cheats.py $A --device soft --csv $T buffer_copy "
               "matvec_split_q4_0_groups $(ls " CHEATS " | awk 'NR % 8 == 1' | sed 's/.metal$//')",
               0);
    ASSERT_SAYS("8 cheats, 0 accepted; 1 honest kernels, 0 refused; 0 verdicts not as expected");
    ASSERT_SAYS("1 kernels are skipped, which this device cannot run: matvec_split_q4_0_groups");
    ASSERT_RUN("python3 $H/tests/judge_cheats.py $A --device soft --csv $T buffer_copy; rm $T", 0);
    ASSERT_SAYS("0 honest kernels");
    ASSERT_RUN("python3 $H/tests/judge_cheats.py $A mull", 2);
    PASS();
}

TEST a_refusal_says_what_differs_where_and_how_to_repeat_it(void) {
    ASSERT_RUN(
        JUDGE CHEATS "knows_shapes.metal --op rmsnorm --base rmsnorm_rows_simdgroup --seed 5", 1);
    ASSERT_SAYS("REJECT knows_shapes.metal:cheat against rmsnorm_rows_simdgroup: check: 'y'");
    ASSERT_SAYS("(held out)");
    ASSERT_SAYS("element          expected          found      tolerance   of 'y' (buffer 2)");
    ASSERT_SAYS("knows_shapes.metal --base rmsnorm_rows_simdgroup --seed 5");
    ASSERT_RUN(JUDGE CHEATS "keeps_output.metal --op residual_add --json", 1);
    ASSERT_SAYS("\"stage\": \"check\"");
    ASSERT_SAYS("reads 'out' (buffer 2), which it may only write");
    ASSERT_RUN(JUDGE CHEATS "race_that_works.metal --op rmsnorm --base rmsnorm_rows_simdgroup "
                            "--json",
               1);
    ASSERT_SAYS("\"stage\": \"validate\"");
    ASSERT_SAYS("\"finding\": \"race in threadgroup\"");
    PASS();
}

TEST a_folder_gives_a_ranking_and_is_timed(void) {
    ASSERT_RUN(
        "rm -rf $T; mkdir -p $T/c; cp $H/kernels/buffer_copy.metal " CHEATS
        "skips_tail.metal $T/c; "
        "$A judge --device soft $T/c --op buffer_copy --shape 576 --budget 0.01 --again 0.02; "
        "test $? -ne 1",
        0);
    ASSERT_SAYS("slower or unclear, 1 rejected");
    ASSERT_SAYS("check: 'dst' (buffer 1): element");
    PASS();
}

TEST mistakes_and_hostile_texts_end_in_a_sentence(void) {
    ASSERT_RUN("rm -rf $T; mkdir -p $T; $A judge", 2);
    ASSERT_RUN("$A judge $H/kernels/buffer_copy.metal", 2);
    ASSERT_SAYS("--op OP says what the candidate computes");
    ASSERT_RUN("$A judge $T/none.metal --op softmax", 2);
    ASSERT_RUN(
        "printf 'kernel void c(device const float *s [[buffer(0)]], device float *d "
        "[[buffer(1)]], constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) "
        "{ for (uint k = 0; k < n + 1; k = k) if (i < n) d[i] = s[i]; }' > $T/e.metal; " JUDGE
        "$T/e.metal --op buffer_copy --timeout 3",
        1);
    ASSERT_SAYS("REJECT");
    ASSERT_RUN("printf 'kernel void c(' > $T/p.metal; " JUDGE "$T/p.metal --op buffer_copy", 1);
    ASSERT_SAYS("compile");
    PASS();
}

#define OTHERS                                                                                     \
    "$H/tests/kernels/others.metal --op matvec --base matvec_f32 --seed 3 --held-out 4 --launch "
#define ONE_LINE                                                                                   \
    "mkdir -p $T; sed '/short\\|outside\\|crash\\|once/d' $H/tests/kernels/others.launch > "       \
    "$T/one.launch; "

TEST a_launch_file_says_how_a_candidate_is_launched(void) {
    ASSERT_RUN(JUDGE OTHERS "$H/tests/kernels/others.launch", 2);
    ASSERT_SAYS("describes 5 kernels of the candidate: name one with --kernel");
    ASSERT_RUN(ONE_LINE JUDGE OTHERS "$T/one.launch", 0);
    ASSERT_SAYS("ACCEPT others.metal:others_right against matvec_f32: right");
    ASSERT_SAYS("one.launch --seed 3");
    ASSERT_RUN(JUDGE OTHERS "$H/tests/kernels/others.launch --kernel others_short", 1);
    ASSERT_SAYS("others.metal:47, wrong value");
    ASSERT_RUN(ONE_LINE "sed s/others_right/gone/ $T/one.launch > $T/two.launch; " JUDGE OTHERS
                        "$T/two.launch",
               1);
    ASSERT_SAYS("text: there is no kernel gone");
    PASS();
}

/* Four values per thread, in a project: launched as a file says. */
#define FOUR                                                                                       \
    "rm -rf $T; $A init $T; printf '%s\n' 'op softcap: four' "                                     \
    "'kernel four group 64 threads divide_up(n, 4)' 'in x' 'out y' 'value n u32 = n' "             \
    "'value cap f32 = 30' > $T/four.launch; sed -e 's/void softcap/void four/' -e "                \
    "'s/if (i >= n)/for (uint k = 4 * i; k < min(n, 4 * i + 4); k++) y[k] = cap * "                \
    "precise::tanh(x[k] \\/ cap);/' -e '/return;/d' -e '/^    y.i/d' $T/softcap.metal > "          \
    "$T/c.metal; "

TEST kernels_of_a_project_are_judged_too(void) {
    ASSERT_RUN(FOUR JUDGE "$T/c.metal -C $T --op softcap --launch $T/four.launch", 0);
    ASSERT_SAYS("ACCEPT c.metal:four against softcap: right");
    ASSERT_RUN("sed 's/cap . precise/n * precise/' $T/softcap.metal > $T/d.metal; " JUDGE
               "$T/d.metal -C $T --op softcap",
               1);
    ASSERT_SAYS("where: d.metal:14, wrong value");
    PASS();
}

/* 2^26 templates, each with two more. */
TEST all_compiles_of_a_candidate_share_one_limit(void) {
    ASSERT_RUN(
        "rm -rf $T; mkdir -p $T; printf '%s\n' 'template <int N, int M> struct tree { static "
        "constexpr constant uint value = tree<N - 1, 2 * M>::value + "
        "tree<N - 1, 2 * M + 1>::value; };' "
        "'template <int M> struct tree<0, M> { static constexpr constant uint value = M; };' "
        "'kernel void c(device const float *s [[buffer(0)]], device float *d [[buffer(1)]], "
        "constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) "
        "{ if (i < n) d[i] = s[i] + float(tree<26, 1>::value); }' > $T/t.metal; " JUDGE
        "$T/t.metal --op buffer_copy --compile-limit 1",
        1);
    ASSERT_SAYS("compile: compiling it takes more CPU time than a kernel");
    PASS();
}

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
    ASSERT_RUN("$A check rmsnorm_rows --device soft --quick --shapes random:3 --seed random -v", 0);
    ASSERT_SAYS("uneven");
    ASSERT_RUN("$A check rmsnorm_rows --shapes some:3", 2);
    PASS();
}

SUITE(judge_suite) {
    RUN_TEST(cheats_are_refused_for_the_expected_reason);
    RUN_TEST(a_refusal_says_what_differs_where_and_how_to_repeat_it);
    RUN_TEST(a_folder_gives_a_ranking_and_is_timed);
    RUN_TEST(mistakes_and_hostile_texts_end_in_a_sentence);
    RUN_TEST(a_launch_file_says_how_a_candidate_is_launched);
    RUN_TEST(kernels_of_a_project_are_judged_too);
    RUN_TEST(all_compiles_of_a_candidate_share_one_limit);
    RUN_TEST(held_out_shapes_are_taken_not_listed_and_follow_from_the_seed);
}
