/* Tests of harness/measure/plot and the scripts in plots/: what a chart says, and that no
 * text leaves it. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "experiments/experiment.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
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

TEST a_finding_states_metrics_and_no_difference_within_its_spread(void) {
    static const char *const cases[][3] = {
        {"storage_modes", PRIVATE("# spread: private_gain_pct = 4 to 6\n"),
         "Private instead of shared scratch: +4.9 % in tokens per second (344 and 328)"},
        {"storage_modes", PRIVATE("# spread: private_gain_pct = -1 to 6\n"),
         "Private instead of shared scratch: no clear difference in tokens per second (344 and "
         "328)"},
        {"fusion",
         "# metric: fused_row_slowdown_pct = 12 %\n# metric: fused_group_slowdown_pct = -3 "
         "%\na\n1\n",
         "RMSNorm fused into the products of a SmolLM layer takes 12 % more time per row, 3 % less "
         "per group of 8"},
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

/* Texts in charts ------------------------------------------------------------------------------ */

/* Widths of Helvetica in 1/1000 of its size, by kinds of letters. */
static double get_width(const char *text, double size, bool is_bold) {
    double width = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '&') /* one character */
            p += strcspn(p, ";");
        width += strchr("ijl'|.,:;! ()[]ft/-", *p) ? 0.29
                 : strchr("mwMW%@", *p)            ? 0.87
                 : *p >= 'A' && *p <= 'Z'          ? 0.70
                                                   : 0.556;
    }
    return width * size * (is_bold ? 1.07 : 1);
}

/* The next text of an SVG by gnuplot: <g transform="translate(x,y) rotate(-90)" ... font-size="12"
 * text-anchor="end"> <text>...</text>. Its box is from (x0, y0) to (x1, y1). */
typedef struct {
    char text[400];
    double x0, y0, x1, y1, size;
} svg_text;

static bool read_text(const char **at, svg_text *t) {
    const char *start = strstr(*at, "<text>"), *group = NULL;
    for (const char *p = *at; start && (p = strstr(p, "<g transform=")) && p < start; p++)
        group = p;
    if (!start || !group)
        return false;
    const char *size = strstr(group, "font-size=\""), *anchor = strstr(group, "text-anchor=\"");
    const char *turn = strstr(group, "rotate("), *bold = strstr(group, "font-weight=\"bold\"");
    double x = NAN, y = NAN, angle = 0;
    snprintf(t->text, sizeof t->text, "%.*s", (int)strcspn(start + 6, "<"), start + 6);
    if (sscanf(group, "<g transform=\"translate(%lf,%lf)", &x, &y) != 2 || !size || size > start ||
        !anchor || anchor > start)
        return false;
    if (turn && turn < start)
        angle = strtod(turn + 7, NULL) * acos(-1) / 180;
    t->size = strtod(size + 11, NULL);
    double width = get_width(t->text, t->size, bold && bold < start);
    double before = anchor[13] == 'e' ? width : anchor[13] == 'm' ? width / 2 : 0;
    double ends[2][2] = {{x - before * cos(angle), y - before * sin(angle)},
                         {x + (width - before) * cos(angle), y + (width - before) * sin(angle)}};
    t->x0 = fmin(ends[0][0], ends[1][0]) - fabs(sin(angle)) * t->size * 0.7;
    t->x1 = fmax(ends[0][0], ends[1][0]);
    t->y0 = fmin(ends[0][1], ends[1][1]) - cos(angle) * t->size * 0.7;
    t->y1 = fmax(ends[0][1], ends[1][1]);
    *at = start + 6;
    return true;
}

/* "" if every text is inside and large enough; else the first that is not. */
static const char *find_cut(const char *path) {
    static char cut[700];
    char *svg = os_read_file(path, NULL, &e);
    double width = 0, height = 0;
    size_t texts = 0;
    const char *box = svg ? strstr(svg, "viewBox=\"0 0 ") : NULL, *at = svg;
    svg_text t;
    cut[0] = 0;
    if (!box || sscanf(box, "viewBox=\"0 0 %lf %lf", &width, &height) != 2)
        snprintf(cut, sizeof cut, "%s: no viewBox", path);
    for (; !cut[0] && read_text(&at, &t); texts++)
        if (t.x0 < 0 || t.y0 < 0 || t.x1 > width || t.y1 > height)
            snprintf(cut, sizeof cut, "%s: '%s' is from %.0f,%.0f to %.0f,%.0f in %.0fx%.0f", path,
                     t.text, t.x0, t.y0, t.x1, t.y1, width, height);
        else if (strstr(t.text, "e+0"))
            snprintf(cut, sizeof cut, "%s: '%s' has an exponent", path, t.text);
        else if (t.size * fmin(1, 880 / width) < 11.5) /* as wide as GitHub shows it */
            snprintf(cut, sizeof cut, "%s: '%s' has %.1f pixels", path, t.text, t.size);
    if (!cut[0] && texts < 5)
        snprintf(cut, sizeof cut, "%s: only %zu texts were found", path, texts);
    free(svg);
    return cut;
}

/* Each of the SVG files that the last command named on a line of its own. */
static const char *find_cut_in_output(size_t *charts) {
    static char list[8192];
    snprintf(list, sizeof list, "%s", command_get_output());
    *charts = 0;
    for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, ".svg")) {
            const char *cut = find_cut(line);
            ++*charts;
            if (cut[0])
                return cut;
        }
    return "";
}

/* The stored results of a GPU: all kinds of charts, with long names and many rows. */
TEST every_text_is_inside_its_chart(void) {
    size_t charts;
    if (!plot_is_available())
        SKIPm("gnuplot is not installed");
    ASSERT_RUN("rm -rf $T/h200 && $A plot $H/results/nvidia-h200 --out $T/h200", 0);
    const char *cut = find_cut_in_output(&charts);
    ASSERT_STR_EQ("", cut);
    ASSERTm(command_get_output(), charts >= 15);
    PASS();
}

TEST every_text_of_two_devices_is_inside_their_chart(void) {
    size_t charts;
    if (!plot_is_available())
        SKIPm("gnuplot is not installed");
    ASSERT_RUN("rm -rf $T/other $T/both && mkdir -p $T/other && H2=$H/results/nvidia-h200 && "
               "for x in against batch_scaling bandwidth fusion matvec_ladder op_breakdown decode; "
               "do sed 's/matvec_q4_0_per_thread/matvec_q4_0_tiled_stream_accumulate/g; "
               "s/NVIDIA H200/software Metal device (64 threads)/; s/^# api: .*/# api: soft/' "
               "$H2/$x.csv > $T/other/$x.csv && "
               "$A plot $H2/$x.csv $T/other/$x.csv --out $T/both || exit 1; done",
               0);
    const char *cut = find_cut_in_output(&charts);
    ASSERT_STR_EQ("", cut);
    ASSERT_EQ_FMT((size_t)7, charts, "%zu");
    PASS();
}

TEST a_text_outside_is_found(void) {
    static const char head[] = "<svg viewBox=\"0 0 100 50\"/>";
    static const char *const texts[] = {
        "translate(5,20)\" font-size=\"12\" text-anchor=\"end",
        "translate(60,20)\" font-size=\"12\" text-anchor=\"start",
        "translate(50,5)\" font-size=\"12\" text-anchor=\"middle",
        "translate(20,45) rotate(-90)\" font-size=\"12\" text-anchor=\"end",
        "translate(50,30)\" font-size=\"9\" text-anchor=\"middle",
        "translate(50,30)\" font-size=\"12\" text-anchor=\"middle"};
    for (size_t i = 0; i < 6; i++) {
        char line[2048];
        ASSERT(command_run("mkdir -p $T && rm -f $T/cut.svg && echo $T/cut.svg") == 0);
        char path[600];
        snprintf(path, sizeof path, "%.*s", (int)strcspn(command_get_output(), "\n"),
                 command_get_output());
        int n = snprintf(line, sizeof line, "%s", head);
        for (int k = 0; k < 5; k++)
            n += snprintf(line + n, sizeof line - (size_t)n,
                          "<g transform=\"%s\"><text>nine char</text></g>", texts[i]);
        ASSERTm(e.text, os_write_file(path, line, (size_t)n, &e));
        ASSERT_EQ_FMTm(texts[i], i < 5, find_cut(path)[0] != 0, "%d");
    }
    PASS();
}

SUITE(plot_suite) {
    RUN_TEST(a_sentence_has_no_exponents_and_the_units_of_people);
    RUN_TEST(numbers_have_no_exponent);
    RUN_TEST(a_finding_states_metrics_and_no_difference_within_its_spread);
    RUN_TEST(models_are_named_with_their_rates);
    RUN_TEST(kernels_of_others_are_compared_with_our_fastest);
    RUN_TEST(without_the_numbers_the_conclusion_is_the_title);
    RUN_TEST(a_text_outside_is_found);
    RUN_TEST(every_text_is_inside_its_chart);
    RUN_TEST(every_text_of_two_devices_is_inside_their_chart);
    transcript_run("plot");
}
