/* What results are made of: planted changes make numbers stale, reworded comments do not. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/source_hash.h"
#include "harness/measure/freshness.h"
#include "transcript.h"

SUITE(freshness_suite);

static err e;

TEST comments_and_white_space_do_not_count(void) {
    static const char *const same[] = {
        "int f(int a) { return a; }", "int f(int a){return a;}",
        "/* what\n * it does */\nint f(int  a) {\n  return a; // it\n}\n"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[120];
        snprintf(text, sizeof text, "%s", same[i]);
        ASSERT_EQ(strlen("int f(int a){return a;}"), source_strip(text, false));
        ASSERT_STR_EQ("int f(int a){return a;}", text);
    }
    PASS();
}

TEST what_is_in_a_literal_counts(void) {
    char text[80] = "puts(\"a // b\\\" /* c\"); char q = '\"'; /* gone */";
    source_strip(text, false);
    ASSERT_STR_EQ("puts(\"a // b\\\" /* c\");char q='\"';", text);
    char op[80] = "op  sum: all # of them\ndims n";
    source_strip(op, true);
    ASSERT_STR_EQ("op sum:all dims n", op);
    PASS();
}

TEST the_program_knows_the_sources_it_was_built_from(void) {
    static const char *const parts[] = {"description:product/product", "description:*",
                                        "experiment:decode", "device:soft", "runner:model"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        size_t i = 0;
        while (i < built_part_count && strcmp(built_parts[i].name, parts[k]) != 0)
            i++;
        ASSERT(i < built_part_count);
        for (size_t other = 0; other < built_part_count; other++)
            ASSERT(other == i || strcmp(built_parts[other].sum, built_parts[i].sum) != 0);
    }
    PASS();
}

TEST parts_are_read_and_compared(void) {
    const char *at = "kernel:a+b=12 device:cuda=34";
    made_of_part p;
    ASSERT(made_of_read(&at, &p));
    ASSERT_STR_EQ("kernel", p.part);
    ASSERT_STR_EQ("a+b", p.names);
    ASSERT_STR_EQ("12", p.sum);
    ASSERT(made_of_read(&at, &p) && !made_of_read(&at, &p));
    at = "no parts at all";
    ASSERT(!made_of_read(&at, &p));
    char text[80];
    made_of_compare("kernel:a=1 device:soft=2", "kernel:a=1 device:soft=2", text, sizeof text);
    ASSERT_STR_EQ("same source", text);
    made_of_compare("kernel:a=1 device:soft=2", "kernel:a=3 device:soft=4", text, sizeof text);
    ASSERT_STR_EQ("kernel and device changed", text);
    made_of_compare("", "kernel:a=3", text, sizeof text);
    ASSERT_STR_EQ("", text);
    PASS();
}

TEST a_row_is_stale_when_a_part_has_another_sum(void) {
    freshness *f = freshness_new(&e);
    char changes[80];
    ASSERT(f);
    ASSERT_EQ(ORIGIN_UNKNOWN, freshness_judge(f, "", changes, sizeof changes));
    ASSERT_EQ(ORIGIN_STALE,
              freshness_judge(f, "kernel:rmsnorm=0 experiment:gone=0", changes, sizeof changes));
    ASSERT_STR_EQ("kernel rmsnorm, experiment gone", changes);
    ASSERT_EQ(ORIGIN_FRESH, freshness_judge(f, "kernel:?=0", changes, sizeof changes));
    freshness_free(f);
    PASS();
}

SUITE(freshness_suite) {
    RUN_TEST(comments_and_white_space_do_not_count);
    RUN_TEST(what_is_in_a_literal_counts);
    RUN_TEST(the_program_knows_the_sources_it_was_built_from);
    RUN_TEST(parts_are_read_and_compared);
    RUN_TEST(a_row_is_stale_when_a_part_has_another_sum);
    transcript_run("freshness");
}
