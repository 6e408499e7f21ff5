/* Tests of harness/base/csv_read and harness/measure/results: what is read back is what was
 * written, what is malformed is said in one sentence with its line, and a writer that was killed
 * loses nothing. */
#include <fcntl.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/device/source_hash.h"
#include "harness/measure/results.h"

SUITE(results_suite);

static err e;
static char folder[1024];

static csv_file *parse(const char *text) {
    e = (err){.code = EXIT_OK};
    return csv_parse(text, strlen(text), "some.csv", &e);
}

TEST a_csv_with_metadata_and_quotes_is_read(void) {
    csv_file *f = parse("# device: Apple M4, 10 cores\n# a remark\r\n# seed: 7\n"
                        "name,value\r\n\"a, \"\"b\"\"\nc\",1.5\r\nplain,nan");
    ASSERTm(e.text, f);
    ASSERT_STR_EQ("Apple M4, 10 cores", csv_get_meta(f, "device"));
    ASSERT_STR_EQ("7", csv_get_meta(f, "seed"));
    ASSERT(!csv_get_meta(f, "date"));
    ASSERT_EQ(2u, csv_count_rows(f));
    ASSERT_EQ(2u, csv_count_columns(f));
    ASSERT_STR_EQ("a, \"b\"\nc", csv_get_text(f, 0, 0));
    ASSERT_EQ_FMT((size_t)5, csv_get_line(f, 0), "%zu");
    ASSERT_EQ_FMT((size_t)7, csv_get_line(f, 1), "%zu");
    size_t column;
    double value;
    ASSERT(csv_find_column(f, "value", &column, &e) && column == 1);
    ASSERT(csv_get_double(f, 0, 1, &value, &e) && value == 1.5);
    ASSERT(csv_get_double(f, 1, 1, &value, &e) && isnan(value));
    ASSERT(!csv_get_double(f, 1, 0, &value, &e));
    ASSERT_STR_EQ("some.csv:7: 'plain' in column 'name' is not a number", e.text);
    csv_file_free(f);
    PASS();
}

TEST what_csv_writes_csv_reads(void) {
    static const char *const texts[] = {"", "a", ",", "\"", "\n", "\"\"", "a\r\nb", " x ", "#"};
    enum { COUNT = sizeof texts / sizeof *texts };
    char path[1100];
    csv *c = csv_new();
    for (int i = 0; i < COUNT; i++) {
        char title[8];
        snprintf(title, sizeof title, "c%d", i);
        csv_add_text(c, title);
    }
    csv_end_row(c);
    for (int i = 0; i < COUNT; i++)
        csv_add_text(c, texts[i]);
    csv_end_row(c);
    snprintf(path, sizeof path, "%s/texts.csv", folder);
    ASSERT(csv_write(c, path, &e));
    csv_free(c);
    csv_file *f = csv_read(path, &e);
    ASSERTm(e.text, f);
    for (size_t i = 0; i < COUNT; i++)
        ASSERT_STR_EQ(texts[i], csv_get_text(f, 0, i));
    csv_file_free(f);
    PASS();
}

TEST malformed_csv_is_refused_with_its_line(void) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "some.csv:1: there is no header row"},
        {"# only: meta\n", "some.csv:2: there is no header row"},
        {"a,b\n1,2\n3\n", "some.csv:3: 1 field where the header has 2"},
        {"a,b\n1,2,3\n", "some.csv:2: 3 fields where the header has 2"},
        {"a,b\n1,\"2\n\n", "some.csv:2: a quoted field is not closed"},
        {"a,b\n1,\"2\"x\n", "some.csv:2: text after the closing quote"},
        {"a,b\n1,2\"x\n", "some.csv:2: a quote inside a field"},
        {"a,b\n\"x\ny\",1\n1\n", "some.csv:4: 1 field"},
        {"a,b\r1,2\n", "some.csv:1: a carriage return without"},
        {"a,a\n1,2\n", "some.csv:1: two columns of the header have the same name"},
        {"a,\n1,2\n", "some.csv:1: a column of the header has no name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERTm(bad[i].text, !parse(bad[i].text));
        ASSERT_EQ(EXIT_USAGE, e.code);
        ASSERTm(e.text, strncmp(e.text, bad[i].says, strlen(bad[i].says)) == 0);
    }
    ASSERT(!csv_parse("a\n\0\n", 4, "some.csv", &e));
    ASSERTm(e.text, strstr(e.text, "not a text file"));
    ASSERT(!csv_read("/no/such/file.csv", &e) && e.code == EXIT_USAGE);
    PASS();
}

TEST random_bytes_never_do_harm(void) {
    static const char letters[] = "a,\"\n\r#: 1";
    unsigned state = 1;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t n = (state >> 4) % sizeof text;
        for (size_t i = 0; i < n; i++) {
            state = state * 1664525u + 1013904223u;
            text[i] = letters[(state >> 16) % (sizeof letters - 1)];
        }
        csv_file_free(csv_parse(text, n, "random", &e));
    }
    PASS();
}

/* Results ----------------------------------------------------------------------------------- */

static result_row make_row(const char *kernel, const double *samples, size_t count) {
    result_row r = {.op = "matvec_q4_0",
                    .device = "a device, of glass",
                    .shape = "576x576",
                    .batch = NAN,
                    .input = "normal",
                    .regime = "chained",
                    .cache = "cold",
                    .encode_ns = 12.5,
                    .wall = {.median = 1e6, .q1 = 9e5, .q3 = NAN},
                    .repeats = 100,
                    .copies = 3,
                    .bytes = 123456789012,
                    .flops = 663552,
                    .gb_s = 93.25,
                    .gflop_s = 331,
                    .roof_gb_s = 120,
                    .pct_roof = 77.5,
                    .launch_ns = 1500,
                    .submit_ns = 1e5,
                    .stop = "steady",
                    .labels = "emulated+busy",
                    .made_of = "kernel:rmsnorm=01234567"};
    snprintf(r.name, sizeof r.name, "%s/576x576/normal/chained/cold", kernel);
    snprintf(r.kernel, sizeof r.kernel, "%s", kernel);
    r.gpu = stats_compute(samples, count);
    if (count == 0)
        snprintf(r.message, sizeof r.message, "crashed: \"SIGSEGV\", and\nmore");
    return r;
}

static const double times[] = {100.25, 101, 99, 100, 100.5, 130};
enum { COUNT = sizeof times / sizeof *times };

static bool add(results *r, const char *kernel, size_t count) {
    timing_sample samples[COUNT];
    for (size_t i = 0; i < count; i++)
        samples[i] = (timing_sample){.gpu_ns = times[i], .encode_ns = 5, .wall_ns = times[i] * 2};
    result_row row = make_row(kernel, times, count);
    return results_add(r, &row, samples, count, &e);
}

static results_meta make_meta(const char *commit, const char *date) {
    results_meta m = {.count = 0};
    results_meta_add(&m, "schema", "2");
    results_meta_add(&m, "device", "a device, of glass");
    results_meta_add(&m, "commit", commit);
    results_meta_add(&m, "date", date);
    return m;
}

static const char *make_path(const char *name) {
    static char path[1100];
    snprintf(path, sizeof path, "%s/sub/%s", folder, name);
    return path;
}

TEST results_come_back_as_they_were_written(void) {
    const char *path = make_path("a.csv");
    results_meta m = make_meta("abc", "today");
    char moved[256];
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r);
    ASSERT(add(r, "one", COUNT) && add(r, "broken", 0) && add(r, "two", 5));
    results_close(r);
    results_list l;
    ASSERTm(e.text, results_read(path, &l, &e));
    ASSERT_EQ_FMT((size_t)3, l.count, "%zu");
    ASSERT_STR_EQ("a device, of glass", results_meta_find(&l.meta, "device"));
    const result_case *c = results_list_find(&l, "one/576x576/normal/chained/cold");
    ASSERT(c && c->count == COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ASSERT(c->samples[i].gpu_ns == times[i] && c->samples[i].wall_ns == times[i] * 2);
    ASSERT(c->row.gpu.median == 100.375 && c->row.bytes == 123456789012 && c->row.pct_roof == 77.5);
    ASSERT(c->row.wall.q1 == 9e5 && isnan(c->row.wall.q3) && isnan(c->row.batch));
    ASSERT_STR_EQ("emulated+busy", c->row.labels);
    ASSERT_STR_EQ("a.samples.csv", c->row.samples);
    c = results_list_find(&l, "broken/576x576/normal/chained/cold");
    ASSERT(c && c->count == 0 && isnan(c->row.gpu.median));
    ASSERT_STR_EQ("crashed: \"SIGSEGV\", and more", c->row.message);
    ASSERT_STR_EQ("", c->row.samples);
    ASSERT(!results_list_find(&l, "three/576x576/normal/chained/cold"));
    results_list_free(&l);
    PASS();
}

/* Whatever byte the writer was killed at, what is whole is read, and a resumed run finds it. */
TEST a_killed_writer_leaves_a_readable_file_at_every_byte(void) {
    char path[1100], samples_path[1100];
    snprintf(path, sizeof path, "%s", make_path("k.csv"));
    ASSERT(results_find_samples_path(path, samples_path, sizeof samples_path, &e));
    results_meta m = make_meta("abc", "today");
    char moved[256];
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r && add(r, "one", COUNT));
    size_t rows_bytes, samples_bytes, rows_all, samples_all;
    free(os_read_file(path, &rows_bytes, &e));
    free(os_read_file(samples_path, &samples_bytes, &e));
    ASSERT(add(r, "two", COUNT));
    results_close(r);
    char *rows = os_read_file(path, &rows_all, &e),
         *samples = os_read_file(samples_path, &samples_all, &e);
    /* Samples come first, then the row. */
    for (size_t cut = samples_bytes; cut <= samples_all; cut++) {
        ASSERT(os_write_file(path, rows, rows_bytes, &e));
        ASSERT(os_write_file(samples_path, samples, cut, &e));
        results_list l;
        ASSERTm(e.text, results_read(path, &l, &e));
        ASSERT_EQ_FMT((size_t)1, l.count, "%zu");
        results_list_free(&l);
    }
    for (size_t cut = rows_bytes; cut <= rows_all; cut++) {
        ASSERT(os_write_file(path, rows, cut, &e));
        ASSERT(os_write_file(samples_path, samples, samples_all, &e));
        results_list l;
        ASSERTm(e.text, results_read(path, &l, &e));
        ASSERT(results_list_find(&l, "one/576x576/normal/chained/cold"));
        ASSERT_EQ(cut == rows_all,
                  results_list_find(&l, "two/576x576/normal/chained/cold") != NULL);
        results_list_free(&l);
        results *again = results_merge(path, &m, moved, sizeof moved, &e);
        ASSERTm(e.text, again && !moved[0] && add(again, "two", COUNT));
        results_close(again);
        ASSERTm(e.text, results_read(path, &l, &e));
        ASSERT_EQ_FMT((size_t)2, l.count, "%zu");
        results_list_free(&l);
    }
    free(rows);
    free(samples);
    PASS();
}

TEST a_run_is_not_resumed_under_other_conditions(void) {
    results_meta m = make_meta("abc", "today"), later = make_meta("def", "tomorrow"), other = m;
    results_meta_add(&m, "seed", "1");
    results_meta_add(&later, "seed", "1");
    results_meta_add(&other, "seed", "2");
    ASSERTm(e.text, results_check_resume("r.csv", &m, &later, &e));
    ASSERT(!results_check_resume("r.csv", &m, &other, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERTm(e.text, strstr(e.text, "its seed was '1' and is '2' now"));
    PASS();
}

TEST a_second_run_keeps_the_rows_of_the_first_and_replaces_its_own(void) {
    const char *path = make_path("m.csv");
    results_meta m = make_meta("abc", "today"), later = make_meta("def", "tomorrow");
    char moved[1200];
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r && add(r, "one", COUNT) && add(r, "two", COUNT) && add(r, "three", 5));
    results_close(r);
    r = results_merge(path, &later, moved, sizeof moved, &e);
    ASSERTm(e.text, r && !moved[0] && add(r, "two", 4) && add(r, "four", 3) && add(r, "two", 5));
    results_close(r);
    results_list l;
    ASSERTm(e.text, results_read(path, &l, &e));
    ASSERT_EQ_FMT((size_t)4, l.count, "%zu");
    ASSERT_EQ_FMT((size_t)5, results_list_find(&l, "two/576x576/normal/chained/cold")->count,
                  "%zu");
    ASSERT_EQ_FMT((size_t)COUNT, results_list_find(&l, "one/576x576/normal/chained/cold")->count,
                  "%zu");
    ASSERT_STR_EQ("tomorrow", results_meta_find(&l.meta, "date"));
    results_list_free(&l);
    PASS();
}

TEST rows_of_other_conditions_are_moved_aside_and_not_lost(void) {
    const char *path = make_path("aside.csv");
    results_meta m = make_meta("abc", "today"), other = make_meta("abc", "today");
    char moved[1200];
    results_meta_add(&m, "compiler", "clang 14");
    results_meta_add(&other, "compiler", "clang 19");
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r && add(r, "one", COUNT));
    results_close(r);
    r = results_merge(path, &other, moved, sizeof moved, &e);
    ASSERTm(e.text, r && strstr(moved, "/sub/baselines/aside-2"));
    results_close(r);
    results_list l;
    ASSERTm(e.text, results_read(moved, &l, &e));
    ASSERT_EQ_FMT((size_t)1, l.count, "%zu");
    results_list_free(&l);
    ASSERTm(e.text, results_read(make_path("aside.csv"), &l, &e));
    ASSERT_EQ_FMT((size_t)0, l.count, "%zu");
    results_list_free(&l);
    PASS();
}

TEST a_second_writer_of_a_file_is_refused(void) {
    const char *path = make_path("locked.csv");
    results_meta m = make_meta("abc", "today");
    char moved[256];
    results *r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r && add(r, "one", COUNT));
    ASSERT(!results_merge(path, &m, moved, sizeof moved, &e) && e.code == EXIT_CANNOT);
    ASSERTm(e.text, strstr(e.text, "another assay is writing"));
    ASSERT(add(r, "two", COUNT));
    results_close(r);
    r = results_merge(path, &m, moved, sizeof moved, &e);
    ASSERTm(e.text, r);
    results_close(r);
    PASS();
}

static bool refuse(const char *rows, const char *samples, const char *says) {
    char path[1100], samples_path[1100];
    snprintf(path, sizeof path, "%s", make_path("bad.csv"));
    results_list l;
    return results_find_samples_path(path, samples_path, sizeof samples_path, &e) &&
           os_write_file(path, rows, strlen(rows), &e) &&
           os_write_file(samples_path, samples, strlen(samples), &e) &&
           !results_read(path, &l, &e) && e.code == EXIT_USAGE && strstr(e.text, says);
}

#define HEADER                                                                                     \
    "case,device,api,model,op,kernel,variant,format,shape,batch,input,math,regime,cache,n,gpu_ns," \
    "gpu_q1_ns,gpu_q3_ns,gpu_min_ns,gpu_p95_ns,gpu_mean_ns,gpu_mad_ns,encode_ns,wall_ns,"          \
    "wall_q1_ns,wall_q3_ns,repeats,copies,bytes,flops,gb_s,gflop_s,roof_gb_s,pct_roof,launch_ns,"  \
    "submit_ns,stop,labels,kernel_hash,samples,message\n"
#define ROW(n)                                                                                     \
    "v,d,soft,,o,k,,,1,,normal,safe,single,warm," n ",1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"  \
    "steady,,h,,\n"
#define SAMPLES "# schema: 2\ncase,i,gpu_ns,encode_ns,wall_ns\n"
#define CASE "v"

TEST malformed_results_are_refused_with_their_line(void) {
    ASSERTm(e.text, refuse("a,b\n1,2\n", SAMPLES, "bad.csv:1: no line '# schema: 2'"));
    ASSERTm(e.text, refuse("# schema: 9\na\n1\n", SAMPLES, "schema 9, but this assay reads"));
    ASSERTm(e.text,
            refuse("# schema: 1\na\n1\n", SAMPLES, "schema 1, but this assay reads schema 2"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("99999999999999"), SAMPLES CASE ",0,1,1,1\n",
                           "1 samples of " CASE ", but its row says 99999999999999"));
    ASSERTm(e.text,
            refuse("# schema: 2\na,b\n1,2\n", SAMPLES, "bad.csv:2: there is no column 'case'"));
    ASSERTm(e.text,
            refuse("# schema: 2\n" HEADER ROW("x"), SAMPLES, "bad.csv:3: 'x' in column 'n'"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("1.5"), SAMPLES, "bad.csv:3: column 'n'"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("-1"), SAMPLES, "bad.csv:3: column 'n'"));
    ASSERTm(e.text,
            refuse("# schema: 2\n" HEADER ROW("0") ROW("0"), SAMPLES, "bad.csv:4: the case"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("2"), SAMPLES CASE ",0,1,1,1\n",
                           "1 samples of " CASE ", but its row says 2"));
    ASSERTm(e.text,
            refuse("# schema: 2\n" HEADER ROW("1"), SAMPLES CASE ",0,1,1,1\n" CASE ",1,1,1,1\n",
                   "bad.samples.csv:4: more samples"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("1"), SAMPLES CASE ",0,-1,1,1\n",
                           "bad.samples.csv:3: a time is negative"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("1"), SAMPLES CASE ",0,nan,1,1\n",
                           "bad.samples.csv:3: a time is negative, infinite or not a number"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("1"), SAMPLES CASE ",0,1,1,inf\n",
                           "bad.samples.csv:3: a time is negative, infinite or not a number"));
    ASSERTm(e.text, refuse("# schema: 2\n" HEADER ROW("1000000000000"), SAMPLES CASE ",0,1,1,1\n",
                           "1 samples of " CASE ", but its row says 1000000000000"));
    results_list l;
    ASSERT(!results_read("no-csv.txt", &l, &e) && e.code == EXIT_USAGE);
    PASS();
}

TEST the_hash_of_a_source_is_that_of_its_includes_too(void) {
    char path[1100], included[1100], before[SOURCE_HASH_SIZE], after[SOURCE_HASH_SIZE];
    snprintf(path, sizeof path, "%s/k.metal", folder);
    snprintf(included, sizeof included, "%s/part.h", folder);
    const char *text = "#include <metal_stdlib>\n  # include \"part.h\"\nkernel void k() {}\n";
    ASSERT(os_write_file(path, text, strlen(text), &e));
    ASSERT(source_hash_find(path, NULL, after, &e)); /* part.h may be in a folder of includes */
    ASSERT(os_write_file(included, "one", 3, &e) && source_hash_find(path, NULL, before, &e));
    ASSERT(strcmp(before, after) != 0);
    ASSERT(os_write_file(included, "two", 3, &e) && source_hash_find(path, NULL, after, &e));
    ASSERT_EQ((size_t)16, strlen(before));
    ASSERT(strcmp(before, after) != 0);
    ASSERT(os_write_file(included, "one", 3, &e) && source_hash_find(path, NULL, after, &e));
    ASSERT_STR_EQ(before, after);
    PASS();
}

SUITE(results_suite) {
    if (!os_make_scratch(folder, sizeof folder, &e))
        return;
    RUN_TEST(a_csv_with_metadata_and_quotes_is_read);
    RUN_TEST(what_csv_writes_csv_reads);
    RUN_TEST(malformed_csv_is_refused_with_its_line);
    RUN_TEST(random_bytes_never_do_harm);
    RUN_TEST(results_come_back_as_they_were_written);
    RUN_TEST(a_killed_writer_leaves_a_readable_file_at_every_byte);
    RUN_TEST(a_run_is_not_resumed_under_other_conditions);
    RUN_TEST(a_second_run_keeps_the_rows_of_the_first_and_replaces_its_own);
    RUN_TEST(rows_of_other_conditions_are_moved_aside_and_not_lost);
    RUN_TEST(a_second_writer_of_a_file_is_refused);
    RUN_TEST(malformed_results_are_refused_with_their_line);
    RUN_TEST(the_hash_of_a_source_is_that_of_its_includes_too);
    os_remove_folder(folder);
}
