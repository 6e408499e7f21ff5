/* cmd_compare: `assay compare`. Runs of bench or of an experiment against other runs, from their
 * files. */
#include <stdio.h>
#include <string.h>

#include "bench_print.h"
#include "verb.h"

static struct {
    double min_effect;
    bool explain, markdown, json;
    const char *clock;
    uint64_t seed;
    size_t split;
} settings = {.min_effect = 3, .seed = 1};

static const option options[] = {
    PERCENT_OPTION("min-effect", &settings.min_effect, "PERCENT",
                   "smallest change worth a verdict (default 3)"),
    TEXT_OPTION("clock", &settings.clock, "C", "gpu, encode or wall (default gpu)"),
    FLAG_OPTION("explain", &settings.explain, "the numbers and the rule of each verdict"),
    FLAG_OPTION("json", &settings.json, "print one JSON object instead of the table"),
    FLAG_OPTION("md", &settings.markdown, "print Markdown instead of the table"),
    SEED_OPTION(&settings.seed, "the bootstrap"),
    {"", OPTION_SPLIT, &settings.split, NULL, NULL, 0, 0},
};

static bool find_clock(timing_clock *out, err *e) {
    *out = CLOCK_GPU;
    for (int i = 0; settings.clock && i < CLOCK_COUNT; i++)
        if (strcmp(settings.clock, timing_get_clock_name((timing_clock)i)) == 0) {
            *out = (timing_clock)i;
            return true;
        }
    return !settings.clock ||
           err_set(e, EXIT_USAGE, "no clock is called '%.40s'; there are gpu, encode and wall",
                   settings.clock);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    comparison_list l = {NULL, 0};
    timing_clock clock;
    size_t first = settings.split ? settings.split : 1;
    if ((!settings.split && count != 2) || first >= count)
        return err_code(
            e, EXIT_USAGE,
            "compare takes two result files or folders, BASE and NEW, or several runs per "
            "side: BASE... -- NEW...");
    exit_code code;
    if (find_clock(&clock, e) &&
        comparison_read(names, first, names + first, count - first, clock, &l, e)) {
        comparison_options o = {.min_effect = settings.min_effect / 100,
                                .explain = settings.explain,
                                .markdown = settings.markdown,
                                .json = settings.json,
                                .seed = settings.seed};
        code = comparison_print(&l, &o, stdout);
    } else
        code = e->code;
    comparison_free(&l);
    return code;
}

VERB(
    verb_compare, "compare", .names = "BASE... [--] NEW...",
    .about = "compare runs of bench or of experiments: which cases are slower, and is it certain?",
    .notes =
        "BASE and NEW are NAME.csv files of bench or of experiments, with their NAME.samples.csv\n"
        "beside them, or folders of such. `--` separates several runs per side:\n"
        "    assay compare base1.csv base2.csv base3.csv -- new1.csv new2.csv new3.csv\n"
        "Rows of the same name in column `case` are compared. A case is slower when the ratio of\n"
        "medians is beyond the smallest effect, its 99% interval is clear of 1, and a test agrees\n"
        "after Holm's correction over all cases; same when the whole interval is within the\n"
        "smallest effect; otherwise it is ambiguous. Several runs per side are compared run by\n"
        "run: Student's t over their medians. One run per side: a bootstrap and a\n"
        "Mann-Whitney test, wider where neighbouring samples resemble each other, and ambiguous\n"
        "if the run was disturbed (labels busy, throttled, ramp). Exit status: 4 if one is\n"
        "slower, else 5 if one is ambiguous or missing, else 0.\n",
    VERB_OPTIONS(options), .reads_results = true);
