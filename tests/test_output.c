/* Tests of what the command line is made of: options, CSV files, tables, progress. */
#include <greatest.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/progress.h"
#include "harness/base/record.h"

SUITE(output_suite);

static uint64_t seed;
static const char *file;
static bool flag;
static double seconds;
static option_list words_given;

static const option options[] = {
    {"seed", OPTION_NUMBER, &seed, "N", "a number", 1, 1000},
    {"csv", OPTION_TEXT, &file, "FILE", "a file", 0, 0},
    {"md", OPTION_FLAG, &flag, NULL, "a flag", 0, 0},
    {"timeout", OPTION_SECONDS, &seconds, "S", "seconds", 0, 0},
    {"list", OPTION_LIST, &words_given, "W", "words", 0, 0},
    {"worker", OPTION_FLAG, &flag, NULL, NULL, 0, 0},
};

static err e;
static bool help;
static const char *left[16];

/* Parses a line of words; returns how many are left, -1 on an error. */
static int parse(const char *line) {
    static char words[256];
    int count = 0;
    seed = 0, file = NULL, flag = false, seconds = 0, help = false, words_given.count = 0;
    e = (err){.code = EXIT_OK};
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        left[count++] = w;
    return options_parse(options, sizeof options / sizeof *options, &count, left, &help, &e) ? count
                                                                                             : -1;
}

TEST values_follow_a_blank_or_an_equals_sign(void) {
    ASSERT_EQ(0, parse("--seed 7 --csv=a.csv --md --timeout 0.5"));
    ASSERT(seed == 7 && flag && seconds == 0.5);
    ASSERT_STR_EQ("a.csv", file);
    ASSERT_EQ(0, parse("--seed=9"));
    ASSERT(seed == 9);
    PASS();
}

TEST what_is_not_an_option_is_left_in_order(void) {
    ASSERT_EQ(3, parse("one --seed 7 two -- --three"));
    ASSERT_STR_EQ("one", left[0]);
    ASSERT_STR_EQ("two", left[1]);
    ASSERT_STR_EQ("--three", left[2]);
    PASS();
}

/* What was not given is not passed on, and a name may begin with dashes. */
TEST a_worker_is_given_every_option_and_name_again(void) {
    static const char *const names[] = {"--name", NULL};
    static const char *const wanted[] = {"verb",          "--seed=7", "--csv=a=b",
                                         "--timeout=0.5", "--list=x", "--list=y",
                                         "--worker",      "--",       "--name"};
    ASSERT_EQ(0, parse("--timeout .5 --list x --seed 7 --csv a=b --list y"));
    const char *const *got = options_list_values("verb", options, 6, names);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ASSERT_STR_EQ(wanted[i], got[i]);
    ASSERT_EQ(NULL, got[sizeof wanted / sizeof *wanted]);
    ASSERT_EQ(0, parse(""));
    got = options_list_values("verb", options, 6, NULL);
    ASSERT_STR_EQ("--worker", got[1]);
    ASSERT_STR_EQ("--", got[2]);
    ASSERT_EQ(NULL, got[3]);
    PASS();
}

TEST numbers_are_read_strictly(void) {
    static const char *const bad[] = {
        "--seed=",       "--seed 7x",    "--seed -1",
        "--seed +1",     "--seed 0x10",  "--seed 0",
        "--seed 1001",   "--seed 1.5",   "--seed 99999999999999999999999",
        "--timeout 0",   "--timeout -1", "--timeout nan",
        "--timeout inf", "--timeout 1s", "--timeout 0x1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_EQm(bad[i], -1, parse(bad[i]));
        ASSERT_EQ(EXIT_USAGE, e.code);
    }
    PASS();
}

TEST an_unknown_option_is_answered_with_the_nearest_and_the_valid_ones(void) {
    ASSERT_EQ(-1, parse("--sed 7"));
    ASSERTm(e.text, strstr(e.text, "--sed;") && strstr(e.text, "did you mean --seed?"));
    ASSERTm(e.text, strstr(e.text, "--csv") && !strstr(e.text, "--worker"));
    ASSERT_EQ(-1, parse("--colour"));
    ASSERTm(e.text, !strstr(e.text, "did you mean"));
    ASSERT_EQ(-1, parse("-s 7"));
    PASS();
}

TEST a_value_given_twice_is_refused(void) {
    ASSERT_EQ(-1, parse("--seed 7 --seed 8"));
    ASSERTm(e.text, strstr(e.text, "--seed is given twice"));
    ASSERT_EQ(0, parse("--md --md"));
    PASS();
}

TEST a_missing_value_and_a_value_too_many_are_refused(void) {
    ASSERT_EQ(-1, parse("--seed"));
    ASSERTm(e.text, strstr(e.text, "needs a value"));
    ASSERT_EQ(-1, parse("--md=yes"));
    ASSERTm(e.text, strstr(e.text, "takes no value"));
    PASS();
}

TEST help_ends_the_reading(void) {
    ASSERT(parse("--help --nonsense") >= 0 && help);
    PASS();
}

TEST csv_quotes_what_needs_it_and_is_written_whole(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/assay-test-%ld.csv", (long)getpid());
    csv *c = csv_new();
    csv_add_meta(c, "device", "a\nb");
    csv_add_text(c, "name");
    csv_add_text(c, "value");
    csv_end_row(c);
    csv_add_text(c, "a,b");
    csv_add_double(c, 0.1);
    csv_end_row(c);
    csv_add_text(c, "say \"x\"\n");
    csv_add_double(c, -NAN);
    csv_end_row(c);
    csv_add_u64(c, UINT64_MAX);
    csv_add_double(c, 1.0 / 3);
    csv_end_row(c);
    ASSERTm(e.text, csv_write(c, path, &e));
    csv_free(c);
    char *text = os_read_file(path, NULL, &e);
    ASSERTm(e.text, text);
    ASSERT_STR_EQ("# device: a b\nname,value\n\"a,b\",0.1\n\"say \"\"x\"\"\n\",nan\n"
                  "18446744073709551615,0.3333333333333333\n",
                  text);
    free(text);
    unlink(path);
    PASS();
}

TEST csv_says_when_it_cannot_be_written(void) {
    csv *c = csv_new();
    ASSERT_FALSE(csv_write(c, "/no/such/folder/a.csv", &e));
    ASSERTm(e.text, strstr(e.text, "/no/such/folder/a.csv"));
    csv_free(c);
    PASS();
}

TEST table_columns_line_up_under_letters_of_several_bytes(void) {
    typedef struct {
        const char *name, *end;
        uint64_t n;
    } item;
    static const field fields[] = {FIELD(item, name, FIELD_TEXT, NULL, "name"),
                                   FIELD(item, n, FIELD_COUNT, NULL, "n", .is_painted = true),
                                   FIELD(item, end, FIELD_TEXT, NULL, "end")};
    ASSERT_EQ(4, table_get_width("\xc3\xa9\xe2\x82\xac"
                                 "ab"));
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    sink s = {.record = RECORD(fields), .out = out, .streams = true};
    sink_fit(&s, &(item){"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "", 100});
    sink_add(&s, &(item){"\xc3\xa9", "x", 7}, PAINT_BAD);
    sink_end(&s);
    fclose(out);
    ASSERT_STR_EQ("name     n  end\n\xc3\xa9        7  x\n", text);
    free(text);
    PASS();
}

TEST progress_is_silent_where_there_is_no_terminal(void) {
    FILE *out = tmpfile();
    ASSERT(out);
    progress p = progress_new(out, "cases", 10);
    progress_update(&p, 3);
    progress_hide(&p);
    ASSERT_EQ(0, ftell(out));
    fclose(out);
    PASS();
}

TEST progress_estimates_the_time_left(void) {
    progress p = {.total = 100, .done = 25, .start_ns = 1000};
    char text[48];
    progress_get_estimate(&p, 1000 + 10000000000u, text, sizeof text);
    ASSERT_STR_EQ(", about 30 s left", text);
    p.done = 0;
    progress_get_estimate(&p, 1000 + 10000000000u, text, sizeof text);
    ASSERT_STR_EQ("", text);
    /* The last of 100 has taken 40 s so far, the others 0.1 s each. */
    p.done = 99;
    p.changed_ns = 1000 + 9900000000u;
    progress_get_estimate(&p, p.changed_ns + 40000000000u, text, sizeof text);
    ASSERT_STR_EQ(", about 40 s left", text);
    double expected[2] = {10, 5};
    p = (progress){.total = 2, .start_ns = 1000, .expected_s = expected};
    progress_get_estimate(&p, 1000 + 4000000000u, text, sizeof text);
    ASSERT_STR_EQ(", about 11 s left", text);
    progress_get_estimate(&p, 1000 + 30000000000u, text, sizeof text);
    ASSERT_STR_EQ(", about 25 s left", text);
    PASS();
}

SUITE(output_suite) {
    RUN_TEST(values_follow_a_blank_or_an_equals_sign);
    RUN_TEST(what_is_not_an_option_is_left_in_order);
    RUN_TEST(a_worker_is_given_every_option_and_name_again);
    RUN_TEST(numbers_are_read_strictly);
    RUN_TEST(an_unknown_option_is_answered_with_the_nearest_and_the_valid_ones);
    RUN_TEST(a_value_given_twice_is_refused);
    RUN_TEST(a_missing_value_and_a_value_too_many_are_refused);
    RUN_TEST(help_ends_the_reading);
    RUN_TEST(csv_quotes_what_needs_it_and_is_written_whole);
    RUN_TEST(csv_says_when_it_cannot_be_written);
    RUN_TEST(table_columns_line_up_under_letters_of_several_bytes);
    RUN_TEST(progress_is_silent_where_there_is_no_terminal);
    RUN_TEST(progress_estimates_the_time_left);
}
