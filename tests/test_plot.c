/* Tests of harness/measure/plot and the scripts in plots/: what a chart says. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "experiments/experiment.h"
#include "harness/base/format.h"
#include "harness/measure/plot.h"
#include "transcript.h"

SUITE(plot_suite);

static err e;
static char found[400];

static const char *find(const char *name, const char *text) {
    csv_file *f = csv_parse(text, strlen(text), "test", &e);
    snprintf(found, sizeof found, "%s", e.text);
    if (f)
        plot_find(name, experiment_find(name) ? experiment_find(name)->finding : NULL, f, found,
                  sizeof found);
    csv_file_free(f);
    return found;
}

TEST numbers_have_no_exponent(void) {
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {
        {12938.1, 3, "12938"},  {1294, 3, "1294"},     {999.6, 3, "1000"}, {5.144, 2, "5.1"},
        {0.427, 3, "0.427"},    {0.0002, 3, "0.0002"}, {8, 3, "8"},        {-17.608, 3, "-17.6"},
        {3127.5976, 4, "3128"}, {NAN, 3, "-"},         {0, 3, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        ASSERT_STR_EQ(cases[i].text,
                      format_number(cases[i].value, cases[i].digits, text, sizeof text));
    }
    PASS();
}

TEST a_sentence_has_no_exponents_and_the_units_of_people(void) {
    char text[120], small[8];
    ASSERT_STR_EQ("1310 GB/s in 3.4 µs, 2 × as fast; 1e-05 of 121100 tok/s",
                  format_text("1.31e+03 GB/s in 3.4 us, 2 x as fast; 1e-05 of 1.211e+05 tok/s",
                              text, sizeof text));
    ASSERT_STR_EQ("use+4 4 usual x 0x1", format_text("use+4 4 usual x 0x1", text, sizeof text));
    ASSERT_STR_EQ("1000000", format_text("1e+09 us", small, sizeof small)); /* cut, not overrun */
    PASS();
}

/* Findings ------------------------------------------------------------------------------------- */

#define PRIVATE(spread)                                                                            \
    "# metric: private_gain_pct = 4.9 %\n" spread                                                  \
    "# metric: tok_s_private = 344.1 tok/s\n# metric: tok_s_shared = 328 tok/s\na\n1\n"
#define TOKEN(missing)                                                                             \
    "# metric: token_us = 354 us\n# metric: kernels_pct = 76.3 %\n# metric: launches_pct = 29.6 "  \
    "%\n"                                                                                          \
    "# metric: idle_pct = 2.7 %\n# metric: missing_pct = " missing " %\na\n1\n"

TEST a_finding_states_metrics_and_no_difference_within_its_spread(void) {
    static const char *const cases[][3] = {
        {"storage_modes", PRIVATE("# spread: private_gain_pct = 4 to 6\n"),
         "Private instead of shared scratch: +4.9 % in tokens per second (344 and 328)"},
        {"storage_modes", PRIVATE("# spread: private_gain_pct = -1 to 6\n"),
         "Private instead of shared scratch: too noisy to tell a difference in tokens per second "
         "(344 and 328)"},
        {"storage_modes", PRIVATE("# spread: private_gain_pct = -1 to 2.9\n"),
         "Private instead of shared scratch: no clear difference in tokens per second (344 and "
         "328)"},
        {"storage_modes", "# level: smoke\n" PRIVATE(""),
         "storage_modes: a smoke run, whose numbers mean nothing"},
        {"op_breakdown", TOKEN("-8.6"),
         "A token takes 354 µs: kernels 76.3 %, launches 29.6 %, idle 2.7 %; 108.6 % in all, since "
         "launches overlap"},
        {"op_breakdown", TOKEN("0.5"),
         "A token takes 354 µs: kernels 76.3 %, launches 29.6 %, idle 2.7 %"},
        {"fusion",
         "# metric: fused_row_slowdown_pct = 12 %\n# metric: fused_group_slowdown_pct = -3 %\n"
         "# metric: tok_s_fused = 978 tok/s\n# metric: tok_s_separate = 1546 tok/s\na\n1\n",
         "RMSNorm fused into the products of a SmolLM layer takes 12 % more time per row, 3 % less "
         "per group of 8; whole tokens, fused per row: 978 instead of 1546 per second"},
        {"split_dispatch",
         "# metric: launch_serial_us = 1.5 us\n# metric: most_launches_ratio = 9 x\nlaunches\n1\n"
         "72\n",
         "Each additional launch costs 1.5 µs: 72 launches take 9 times as long as one"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_STR_EQ(cases[i][2], find(cases[i][0], cases[i][1]));
    PASS();
}

TEST models_are_named_with_their_rates(void) {
    static const char rows[] =
        "op,model,variant,gpu_ns\nmodel,small,pp8,10\nmodel,small,tg128,128000000\n"
        "model,\"random weights in the shape of 7b, seed 1\",tg128,512000000\n";
    ASSERT_STR_EQ("Tokens per second in tg128: small 1000, 7b 250", find("model_bench", rows));
    PASS();
}

TEST kernels_of_others_are_compared_with_our_fastest(void) {
    static const char rows[] = "op,kernel,shape,regime,cache,gpu_ns\n"
                               "mv,ours,a,chained,cold,200\nmv,ours_too,a,chained,cold,100\n"
                               "mv,their.metal:k,a,chained,cold,250\n"
                               "mv,ours,b,chained,cold,100\nmv,their.metal:k,b,chained,cold,50\n"
                               "mv,ours,c,chained,cold,100\n";
    ASSERT_STR_EQ(
        "Our fastest kernel is faster than theirs in 1 of 2 cases: 0.5 to 2.5 times as fast",
        find("against", rows));
    PASS();
}

TEST without_the_numbers_the_conclusion_is_the_title(void) {
    static const char text[] = "# question: Why?\n# conclusion: So.\n# conclusion: Too.\na\n1\n";
    ASSERT_STR_EQ("So.", find("decode", text));
    ASSERT_STR_EQ("So.", find("batch_scaling", text));
    ASSERT_STR_EQ("Why?", find("decode", "# question: Why?\na\n1\n"));
    ASSERT_STR_EQ("other", find("other", "a\n1\n"));
    PASS();
}

SUITE(plot_suite) {
    RUN_TEST(a_sentence_has_no_exponents_and_the_units_of_people);
    RUN_TEST(numbers_have_no_exponent);
    RUN_TEST(a_finding_states_metrics_and_no_difference_within_its_spread);
    RUN_TEST(models_are_named_with_their_rates);
    RUN_TEST(kernels_of_others_are_compared_with_our_fastest);
    RUN_TEST(without_the_numbers_the_conclusion_is_the_title);
    transcript_run("plot");
}
