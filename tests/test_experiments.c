/* The experiments: each runs and leaves files that can be read; test_conclusions.c has what they
 * conclude. How long something takes is no test. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "experiments/experiment.h"
#include "harness/base/csv.h"
#include "transcript.h"

SUITE(experiments_suite);

static err e;

static const char *get_folder(void) {
    static char folder[600];
    snprintf(folder, sizeof folder, "%s/results", getenv("T"));
    return folder;
}

/* --- runs --- */

TEST all_experiments_run(void) {
    ASSERT_RUN("rm -rf $T; $A experiment all --smoke --device soft --out $T/results", 0);
    char done[64];
    snprintf(done, sizeof done, "%zu of %zu experiments done", experiment_count, experiment_count);
    ASSERT(experiment_count >= 15);
    ASSERT_SAYS(done);
    ASSERT_SAYS("its times say nothing about a GPU");
    PASS();
}

TEST its_file_says_where_its_numbers_come_from(const experiment *x) {
    static const char *const keys[] = {"schema",     "device", "api", "commit", "seed",    "date",
                                       "experiment", "claim",  "how", "level",  "question"};
    char path[800];
    const char *key, *value;
    snprintf(path, sizeof path, "%s/%s.csv", get_folder(), x->name);
    csv_file *f = csv_read(path, &e);
    ASSERTm(e.text, f);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ASSERTm(keys[i], csv_get_meta(f, keys[i]) && csv_get_meta(f, keys[i])[0]);
    ASSERT_STR_EQ(x->name, csv_get_meta(f, "experiment"));
    ASSERT_STR_EQ("smoke", csv_get_meta(f, "level"));
    ASSERT_EQ(x->has_model, csv_get_meta(f, "model") != NULL);
    size_t conclusions = 0, metrics = 0, column;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++) {
        char name[64], unit[16];
        double number;
        conclusions += strcmp(key, "conclusion") == 0;
        if (strcmp(key, "metric") == 0) {
            ASSERT_EQm(value, 3, sscanf(value, "%63s = %lf %15s", name, &number, unit));
            metrics++;
        }
    }
    ASSERT(conclusions >= 1 && conclusions <= 2);
    ASSERT(metrics >= 2);
    ASSERT(csv_count_rows(f) >= 2);
    ASSERTm(e.text, csv_find_column(f, "n", &column, &e));
    ASSERTm(e.text, csv_find_column(f, "labels", &column, &e));
    ASSERTm(e.text, csv_find_column(f, "made_of", &column, &e));
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *made_of = csv_get_text(f, r, column);
        ASSERTm(made_of, strstr(made_of, "kernel:") && strstr(made_of, " description:") &&
                             strstr(made_of, " device:soft=") && strstr(made_of, " experiment:"));
        ASSERT_EQm(made_of, x->has_model, strstr(made_of, " runner:") != NULL);
    }
    csv_file_free(f);
    PASS();
}

TEST every_sample_is_kept(const experiment *x) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s.samples.csv", get_folder(), x->name);
    csv_file *f = csv_read(path, &e);
    ASSERTm(e.text, f);
    ASSERT(csv_count_rows(f) >= 4);
    size_t column;
    double ns;
    ASSERTm(e.text, csv_find_column(f, "wall_ns", &column, &e));
    for (size_t r = 0; r < csv_count_rows(f); r++)
        ASSERTm(e.text, csv_get_double(f, r, column, &ns, &e) && ns > 0);
    csv_file_free(f);
    PASS();
}

/* --- sheets --- */

static sheet *made;

TEST a_sheet_keeps_what_it_was_given(void) {
    made = sheet_new();
    sheet_add_row(made);
    sheet_put_text(made, "case", "first");
    sheet_put_text(made, "a", "x, \"y\"");
    sheet_add_row(made);
    sheet_put_text(made, "case", "second");
    sheet_put(made, "b", 1234567890123.0);
    sheet_put(made, "c", NAN);
    ASSERT_STR_EQ("", sheet_get_text(made, 0, "b"));
    ASSERT(isnan(sheet_get(made, 1, "c")) && isnan(sheet_get(made, 0, "a")));
    ASSERT(isnan(sheet_get_metric(made, "nothing")));
    ASSERT_EQ(1, sheet_find_row(made, "b", "1234567890123", NULL));
    ASSERT_EQ(SIZE_MAX, sheet_find_row(made, "a", "z", NULL));
    char path[800];
    snprintf(path, sizeof path, "%s/sheet/sheet.csv", get_folder());
    ASSERTm(e.text, sheet_write(made, &(results_meta){.count = 0}, path, NULL, &e));
    csv_file *f = csv_read(path, &e);
    ASSERTm(e.text, f);
    ASSERT_STR_EQ("first", csv_get_text(f, 0, 0));
    ASSERT_STR_EQ("x, \"y\"", csv_get_text(f, 0, RESULT_COLUMNS));
    ASSERT_STR_EQ("1234567890123", csv_get_text(f, 1, RESULT_COLUMNS + 1));
    ASSERT_STR_EQ("", csv_get_text(f, 1, RESULT_COLUMNS + 2));
    csv_file_free(f);
    sheet_free(made);
    PASS();
}

/* Every row that is written can be read as any other, with its samples. */
TEST its_rows_are_those_of_any_result(const experiment *x) {
    char path[800];
    results_list l;
    snprintf(path, sizeof path, "%s/%s.csv", get_folder(), x->name);
    ASSERTm(e.text, results_read(path, &l, &e));
    for (size_t i = 0; i < l.count; i++) {
        const result_row *r = &l.cases[i].row;
        ASSERT_STR_EQ(results_meta_find(&l.meta, "device"), r->device);
        ASSERTm(r->name, (r->gpu.count > 0) != (r->message[0] != 0));
        ASSERTm(r->name, r->gpu.count == 0 || (r->gpu.median > 0 && r->wall.median > 0));
        ASSERTm(r->name, r->gpu.count == 0 || (r->labels[0] && r->math[0] && r->samples[0]));
    }
    results_list_free(&l);
    PASS();
}

static bool write_sheet(const char *name, double ns) {
    char path[800];
    timing_sample samples[40];
    measurement c = {.key = "a case"};
    results_meta m = {.count = 0};
    snprintf(path, sizeof path, "%s/%s", get_folder(), name);
    results_meta_add(&m, "schema", "2");
    results_meta_add(&m, "device", "d");
    made = sheet_new();
    sheet_add_row(made);
    for (int i = 0; i < 40; i++)
        samples[i] = (timing_sample){.gpu_ns = ns * (1 + 0.0005 * (i * 7 % 20)), .wall_ns = 1};
    sheet_put_text(made, "case", c.key);
    sheet_put(made, "n", 40);
    sheet_put(made, "gpu_ns", ns);
    sheet_put(made, "gpu_q1_ns", 0.9 * ns);
    sheet_put(made, "gpu_q3_ns", 1.1 * ns);
    sheet_put(made, "mood", 7);
    sheet_add_samples(made, c.key, samples, 40);
    bool ok = sheet_write(made, &m, path, NULL, &e);
    sheet_free(made);
    return ok;
}

TEST rows_of_experiments_can_be_compared_and_charted(void) {
    ASSERTm(e.text, write_sheet("made/a.csv", 1000) && write_sheet("made/b.csv", 1300));
    ASSERT_RUN("$A compare $T/results/made/a.csv $T/results/made/b.csv", 4);
    ASSERT_SAYS("a case  slower");
    ASSERT_RUN("$A compare $T/results $T/results > $T/compared; test $? -ne 2", 0);
    ASSERT_RUN("grep 'prefill.csv:prompt/4' $T/compared", 0);
    PASS();
}

TEST two_rows_of_one_name_are_refused(void) {
    made = sheet_new();
    for (int i = 0; i < 2; i++) {
        sheet_add_row(made);
        sheet_put_text(made, "case", "twin");
    }
    ASSERT(!sheet_write(made, &(results_meta){.count = 0}, "/nowhere/x.csv", NULL, &e));
    ASSERTm(e.text, strstr(e.text, "two rows are the case 'twin'"));
    sheet_add_row(made);
    sheet_free(made);
    made = sheet_new();
    sheet_add_row(made);
    ASSERT(!sheet_write(made, &(results_meta){.count = 0}, "/nowhere/x.csv", NULL, &e));
    ASSERTm(e.text, strstr(e.text, "row 1 has no name"));
    sheet_free(made);
    PASS();
}

TEST a_device_has_one_folder(void) {
    char folder[96];
    results_get_folder("software Metal device, 2 threads", folder, sizeof folder);
    ASSERT_STR_EQ("software-metal-device-2-threads", folder);
    results_get_folder("Apple M4 (10 cores)", folder, sizeof folder);
    ASSERT_STR_EQ("apple-m4-10-cores", folder);
    PASS();
}

/* --- a token as a timeline --- */

static double get(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value = NAN;
    return csv_find_column(f, title, &column, &e) && csv_get_double(f, row, column, &value, &e)
               ? value
               : NAN;
}

static bool is_at(const csv_file *f, size_t row, const char *title, const char *text) {
    size_t column;
    return csv_find_column(f, title, &column, &e) &&
           strcmp(csv_get_text(f, row, column), text) == 0;
}

/* At the depth of a smoke run, so that both are of the same tape. */
TEST a_trace_has_the_launches_of_a_token_one_after_the_other(void) {
    char path[800];
    ASSERT_RUN("M=$H/models/assay-tiny.gguf; $A trace -m $M -d 3 --device soft --out "
               "$T/trace.json --csv $T/trace.csv && $A experiment op_breakdown -m $M --smoke "
               "--device soft --out $T/tiny",
               0);
    ASSERT_RUN("command -v python3 > /dev/null || exit 0; python3 -m json.tool $T/trace.json", 0);
    snprintf(path, sizeof path, "%s/trace.csv", getenv("T"));
    csv_file *t = csv_read(path, &e);
    ASSERTm(e.text, t);
    snprintf(path, sizeof path, "%s/tiny/op_breakdown.csv", getenv("T"));
    csv_file *b = csv_read(path, &e);
    ASSERTm(e.text, b);
    size_t ops = 0, name;
    ASSERT(csv_find_column(b, "op", &name, &e));
    for (size_t r = 0; r < csv_count_rows(b); r++) {
        double bytes = 0, launches = 0;
        if (is_at(b, r, "kind", "token"))
            ASSERT_EQ_FMT(get(b, r, "launches"), (double)csv_count_rows(t), "%g");
        if (!is_at(b, r, "kind", "op"))
            continue;
        for (size_t i = 0; i < csv_count_rows(t); i++)
            if (is_at(t, i, "op", csv_get_text(b, r, name))) {
                bytes += get(t, i, "bytes");
                launches++;
            }
        ASSERT_EQ_FMT(get(b, r, "bytes"), bytes, "%g");
        ASSERT_EQ_FMT(get(b, r, "launches"), launches, "%g");
        ops++;
    }
    ASSERT(ops > 4);
    double end = 0;
    for (size_t i = 0; i < csv_count_rows(t); i++) {
        ASSERT_IN_RANGE(end + get(t, i, "gap_ns"), get(t, i, "start_ns"), 1e-3);
        ASSERT(get(t, i, "gap_ns") >= 0 && get(t, i, "duration_ns") >= 0);
        end = get(t, i, "start_ns") + get(t, i, "duration_ns");
    }
    char count[32];
    snprintf(count, sizeof count, "%zu\n", csv_count_rows(t));
    ASSERT_RUN("grep -c '\"ph\": \"X\"' $T/trace.json", 0);
    ASSERT_SAYS(count);
    ASSERTm("how the times were made", strstr(csv_get_meta(t, "how"), "timed alone"));
    csv_file_free(t);
    csv_file_free(b);
    PASS();
}

SUITE(experiments_suite) {
    command_use_one_thread();
    RUN_TEST(all_experiments_run);
    for (size_t i = 0; i < experiment_count; i++) {
        RUN_TEST1(its_file_says_where_its_numbers_come_from, experiments[i]);
        RUN_TEST1(every_sample_is_kept, experiments[i]);
        RUN_TEST1(its_rows_are_those_of_any_result, experiments[i]);
    }
    RUN_TEST(a_trace_has_the_launches_of_a_token_one_after_the_other);
    RUN_TEST(a_sheet_keeps_what_it_was_given);
    RUN_TEST(rows_of_experiments_can_be_compared_and_charted);
    RUN_TEST(two_rows_of_one_name_are_refused);
    RUN_TEST(a_device_has_one_folder);
    transcript_run("experiments");
}
