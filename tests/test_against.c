/* Tests of `bench --against`: kernels of others beside ours, checked with our oracle, and the texts
 * that describe their launches. Times are never judged. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "harness/check/expression.h"

SUITE(against_suite);

#define BENCH "$A bench --device soft --budget 0.01 --again 0.02 --out $T/a.csv "
#define MATVEC BENCH "matvec --format f32 --variant plain --batch 1 --accumulate no --shape 24x64 "
#define OTHERS "--launch $H/tests/kernels/others.launch --against $H/tests/kernels/others.metal:"

TEST a_kernel_of_others_is_timed_beside_ours(void) {
    int status = command_run("rm -rf $T; " MATVEC OTHERS "others_right");
    ASSERTm(command_get_output(), status == 0 || status == 4 || status == 5);
    ASSERT_SAYS("others.metal:others_right  24x64");
    ASSERT_SAYS("ours/theirs");
    ASSERT_SAYS("4 timed, 0 not timed");
    ASSERT_RUN("grep '^others.metal:others_right/24x64/normal/chained/warm,' $T/a.csv | "
               "grep ',third party,' | grep -c 'kernel:?='",
               0);
    ASSERT_RUN("grep -c ^others.metal:others_right/24x64/normal/chained/warm,0, $T/a.samples.csv",
               0);
    PASS();
}

TEST json_has_rows_of_both_and_what_they_were_found_to_be(void) {
    int status = command_run(BENCH "matvec_f32 --shape 24x64 --regime all --json " OTHERS
                                   "others_right 2> /dev/null > $T/a.json");
    ASSERTm(command_get_output(), status == 0 || status == 4 || status == 5);
    ASSERT_RUN("test $(grep -c '\"case\": \"others.metal:others_right/24x64.*\"third party\"' "
               "$T/a.json) -eq 3",
               0);
    ASSERT_RUN("test $(grep -c '\"case\": \"matvec_f32/24x64.*\"verdict\": .*\"ratio\": .*"
               "\"note\": \"others.metal:others_right\"' $T/a.json) -eq 3",
               0);
    PASS();
}

TEST a_wrong_one_is_not_timed_and_ours_is(void) {
    ASSERT_RUN(MATVEC OTHERS "others_short", 1);
    ASSERT_SAYS("NOT TIMED");
    ASSERT_SAYS("kernel others_short: 'y' (buffer 0): element 0 is");
    ASSERT_SAYS("2 timed, 2 not timed");
    ASSERT_FALSEm(command_get_output(), command_says("ours/theirs"));
    ASSERT_RUN("grep -c '^others.metal:others_short/.*kernel others_short: ' $T/a.csv", 0);
    PASS();
}

TEST one_that_writes_outside_is_not_timed_and_ours_is(void) {
    ASSERT_RUN(MATVEC OTHERS "others_outside", 1);
    ASSERT_SAYS("kernel others_outside: wrote outside 'y': ");
    ASSERT_SAYS("2 timed, 2 not timed");
    ASSERT_RUN(MATVEC OTHERS "others_crash", 1);
    ASSERT_SAYS("crashed");
    ASSERT_SAYS("2 timed, 2 not timed");
    PASS();
}

TEST one_that_is_right_only_once_is_not_timed_and_ours_is(void) {
    ASSERT_RUN(MATVEC OTHERS "others_once", 1);
    ASSERT_SAYS("others_once: reads 'y' (buffer 0), which it may only write");
    ASSERT_SAYS("2 timed, 2 not timed");
    PASS();
}

TEST several_are_timed_with_the_cases_that_they_are_for(void) {
    ASSERT_RUN(BENCH "matvec --shape 8x64,8x63 --variant plain --accumulate no --batch 1 "
                     "--format f32,q4_0 " OTHERS
                     "others_short --against $H/tests/kernels/others.metal:others_outside",
               1);
    ASSERT_SAYS("others_short needs in_dim % 4 == 0");
    ASSERT_SAYS("kernel others_short: 'y'");
    ASSERT_SAYS("kernel others_outside: wrote outside");
    ASSERT_SAYS("4 timed, 4 not timed, 4 skipped");
    ASSERT_FALSEm(command_get_output(), command_says("matvec_q4_0  "));
    PASS();
}

/* Each line of the description replaced, and what is said about it. */
TEST a_description_that_does_not_fit_is_refused_in_a_sentence(void) {
    static const struct {
        const char *edit, *says;
    } bad[] = {
        {"s/^needs.*/neds 1/", "t.launch:8: there is no line 'neds'"},
        {"s/^needs.*/shapes 1x1/", "t.launch:8: there is no line 'shapes' (valid: op needs kernel"},
        {"s/^constant.*/needs 1/", "t.launch:19: needs takes one expression, once"},
        {"s/^op .*/op rmsnorm/", "none of the cases asked for is what others_right computes"},
        {"s/^op .*//", "the description has no line 'op'"},
        {"s/group 32,2/group/", "t.launch:3: a kernel is given as: kernel NAME"},
        {"s/groups out_dim/groups out_dims/", "'out_dims' needs 'out_dims', which is not a value"},
        {"s/groups out_dim/groups 0/", "'0' is 0, expected a whole number from 1"},
        {"s/groups out_dim/groups 1 +/", "'1 +' ends too early"},
        {"s/^out  /in/", "the description has no line 'out or inout'"},
        {"s/^in        x/in z/", "has no buffer 'z'"},
        {"s/^in        x/out x/", "'x' is 'out' here and 'in' of matvec_f32"},
        {"s/^in        x/#/", "no line says where the input 'x' goes"},
        {"s/^in        x/in y/", "'y' is given twice"},
        {"s/at 4/at 0/", "buffer index 0 is that of 'y' already"},
        {"s/at 4/at 99/", "buffer index 99 is too large"},
        {"s/w at 4/w at 5/", "others_right: buffer 4 (matrix, const char *) is not bound"},
        {"s/rows i32/rows f64/", "there is no type 'f64'"},
        {"s/ = batch/ batch/", "expected: field NAME TYPE = EXPRESSION"},
        {"s/^struct.*//", "the field 'columns' does not follow a line struct NAME"},
        {"s/unused i16 = -1/unused i16 = 40000/", "'40000' is 40000, which does not fit into i16"},
        {"s/= in_dim$/= in_dim \\/ 0/", "'in_dim \\/ 0' divides by 0"},
        {"s/^constant.*/constant 41 i16 = 2/", "has no function constant 41"},
        {"s/^constant  40 i16/constant 40 u32/", "is short: give it as i16, not as u32"},
        {"s/^constant.*//", "others_simdgroups"},
        {"s/ threadgroup .*//", "threadgroup 0 (partial"},
        {"s/group 32,2/group 32,64/", "larger than the"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[1024], says[160];
        snprintf(line, sizeof line,
                 "sed '%s' $H/tests/kernels/others.launch > $T/t.launch; " MATVEC
                 "--launch $T/t.launch --against $H/tests/kernels/others.metal:others_right",
                 bad[i].edit);
        size_t n = 0;
        for (const char *p = bad[i].says; *p; p++)
            if (*p != '\\')
                says[n++] = *p;
        says[n] = 0;
        ASSERT_RUN(line, 2);
        ASSERT_SAYS(says);
    }
    PASS();
}

TEST mistakes_of_the_command_line_are_named(void) {
    static const struct {
        const char *line, *says;
    } bad[] = {
        {MATVEC "--against $T/no.metal:k", "no.metal"},
        {MATVEC "--against $H/tests/kernels/others.metal", "is given as FILE.metal:KERNEL"},
        {MATVEC "--against $H/tests/kernels/others.metal:others_right",
         "uses the function constant"},
        {MATVEC "--launch $H/tests/kernels/others.launch", "--against, which is missing"},
        {MATVEC OTHERS "no_such", "has no line 'kernel no_such ...'"},
        {"sed s/others_right/no_such/ $H/tests/kernels/others.launch > $T/t.launch; " MATVEC
         "--launch $T/t.launch --against $H/tests/kernels/others.metal:no_such",
         "no_such"},
        {MATVEC OTHERS "others_right --baseline $H/kernels", "--against exclude each other"},
        {MATVEC OTHERS "others_right --against $H/tests/kernels/others.metal:others_right",
         "is given twice"},
        {BENCH "matvec --format q8_0 " OTHERS "others_right", "op matvec, format f32"},
        {MATVEC "--launch $T/none.launch --against $H/tests/kernels/others.metal:others_right",
         "none.launch"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_RUN(bad[i].line, 2);
        ASSERT_SAYS(bad[i].says);
    }
    PASS();
}

TEST expressions_are_those_of_c(void) {
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"7 / 2", 3},
        {"-7 / 2", -3},
        {"-7 % 4", -3},
        {"7 / 2.0", 3.5},
        {"1 - 2 - 3", -4},
        {"0x10", 16},
        {"n * w.half", 50},
        {"n / 3 * 3", 99},
        {"divide_up(n, 8)", 13},
        {"min(n, 3)", 3},
        {"max(2, w.half)", 2},
        {"n % 32 == 4", 1},
        {"n < 4 || n >= 100", 1},
        {"n != 100 && 1", 0},
        {"!n", 0},
        {"- -3", 3},
        {"n > 5 ? 1 : 2", 1},
        {"0 ? 1 : 0 ? 2 : 3", 3},
        {"1e-5", 1e-5},
        {"1.5f", 1.5},
        {"1 << 4 | 3", 19},
        {"~5 & 15", 10},
        {"6 & 3 == 3", 0},
        {"7 ^ 2 >> 1", 6},
        {"abs(-3)", 3},
        {"abs(-2.5)", 2.5},
        {"min(2.5, n)", 2.5},
        {"int(-2.5)", -2},
        {"sum(j < 4: j * j)", 14},
        {"sum(j < 3: sum(k < j: 10 * j + k))", 51},
        {"max(j < n: j % 7)", 6},
        {"min(n < 5 ? 3 : 4, 5)", 4},
        {"n > 5 || 1 / 0", 1},
    };
    static const char *const bad[] = {
        "",
        "1 +",
        "(1",
        "1)",
        "n n",
        "m",
        "1 / 0",
        "1 % (n - 100)",
        "2.5 % 2",
        "f(1, 2)",
        "min(1)",
        "12x",
        "1 ? 2",
        "1 ? 2 ; 3",
        "@",
        "9223372036854775807",
        "9223372036854775806 * 2",
        "1 = 1",
        "1..2",
        "1 << 63",
        "2.5 & 1",
        "sum(1)",
        "sum(j < 2.5: j)",
        "sum(j < 2, j)",
        "max(j < 3: k)",
        "n[0]",
    };
    const symbol names[] = {{.name = "n", .kind = SYMBOL_WHOLE, .value = {.whole = 100}},
                            {.name = "w.half", .kind = SYMBOL_REAL, .value = {.value = 0.5}}};
    const expression_scope scope = {.symbols = names, .symbol_count = 2};
    err e;
    number got;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ASSERTm(good[i].text, expression_evaluate(good[i].text, &scope, &got, &e));
        ASSERT_EQ_FMTm(good[i].text, good[i].value, got.real, "%g");
        ASSERTm(good[i].text, got.is_real || (double)got.whole == got.real);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_FALSEm(bad[i], expression_evaluate(bad[i], &scope, &got, &e));
        ASSERTm(bad[i], e.code == EXIT_USAGE && e.text[0]);
    }
    char deep[4096];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = 0;
    ASSERT_FALSE(expression_evaluate(deep, &scope, &got, &e));
    PASS();
}

SUITE(against_suite) {
    command_use_one_thread();
    RUN_TEST(expressions_are_those_of_c);
    RUN_TEST(a_kernel_of_others_is_timed_beside_ours);
    RUN_TEST(json_has_rows_of_both_and_what_they_were_found_to_be);
    RUN_TEST(a_wrong_one_is_not_timed_and_ours_is);
    RUN_TEST(one_that_writes_outside_is_not_timed_and_ours_is);
    RUN_TEST(one_that_is_right_only_once_is_not_timed_and_ours_is);
    RUN_TEST(several_are_timed_with_the_cases_that_they_are_for);
    RUN_TEST(a_description_that_does_not_fit_is_refused_in_a_sentence);
    RUN_TEST(mistakes_of_the_command_line_are_named);
}
