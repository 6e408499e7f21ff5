/* The expressions of texts that describe launches; transcripts/against.txt has the tests of `bench --against`. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/check/expression.h"
#include "transcript.h"

SUITE(against_suite);

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
    const symbol names[] = {{.name = "n", .type = ELEM_I64, .value = {.whole = 100}},
                            {.name = "w.half", .type = ELEM_F32, .value = {.value = 0.5}}};
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
    RUN_TEST(expressions_are_those_of_c);
    transcript_run("against");
}
