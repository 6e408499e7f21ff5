/* bench_report: see bench_report.h; and `assay compare`. */
#include "bench_report.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/freshness.h"
#include "verb.h"

enum { OTHERS = 3 }; /* kernels that the fastest is compared with in words */

/* "memory", or "FMA" if arithmetic is nearer to its roof; "-" if neither is known. */
static const char *get_roof(const result_row *r) {
    double memory = r->gb_s / r->roof_gb_s, fma = r->gflop_s / r->roof_gflop_s;
    return isnan(r->pct_roof) ? "-" : fma > memory || isnan(memory) ? "FMA" : "memory";
}

typedef struct {
    result_row row;
    const char *roof;
    char labels[128]; /* "emulated, busy" of "emulated+busy" */
    double iqr;       /* percent */
} view;

#define ROW(member, kind, ...) FIELD(view, row.member, kind, NULL, __VA_ARGS__)
static const field view_fields[] = {
    ROW(kernel, FIELD_CHARS, "kernel"),
    ROW(shape, FIELD_CHARS, "shape", .lifts = true),
    ROW(input, FIELD_CHARS, "input", .lifts = true),
    ROW(regime, FIELD_CHARS, "regime", .lifts = true),
    ROW(cache, FIELD_CHARS, "cache", .lifts = true),
    ROW(gpu.median, FIELD_TIME, "time", .width = 9),
    FIELD(view, iqr, FIELD_PERCENT, NULL, "iqr", .width = 7),
    ROW(gpu.count, FIELD_COUNT, "n", .width = 6, .rank = 2),
    ROW(gb_s, FIELD_REAL, "GB/s", .width = 7),
    ROW(gflop_s, FIELD_REAL, "GFLOP/s", .width = 7, .rank = 4),
    ROW(pct_roof, FIELD_REAL, "% roof", .width = 7),
    FIELD(view, roof, FIELD_TEXT, NULL, "roof", .width = 6, .rank = 3),
    FIELD(view, labels, FIELD_CHARS, NULL, "labels", .width = 13, .is_painted = true),
};

void bench_print_start(sink *s, FILE *out, const bench_list *cases,
                       const bench_settings *settings) {
    *s = (sink){.record = RECORD(view_fields), .out = out, .streams = true, .heads = 1};
    for (size_t i = 0; i < cases->count; i++) {
        const bench_case *c = &cases->items[i];
        view v = {.row = result_row_new()};
        result_row *r = &v.row;
        shape_get_text(&c->timed.shape, r->shape, sizeof r->shape);
        snprintf(r->input, sizeof r->input, "%s", distribution_get_name(c->timed.inputs));
        snprintf(r->regime, sizeof r->regime, "%s", timing_get_regime_name(c->regime));
        snprintf(r->cache, sizeof r->cache, "%s", timing_get_cache_name(c->cache));
        for (size_t k = 0; k <= settings->rival_count; k++) {
            snprintf(r->kernel, sizeof r->kernel, "%s",
                     k > 0 ? settings->rivals[k - 1].name : c->timed.kernel->name);
            sink_fit(s, &v);
        }
    }
}

void bench_print_row(sink *s, const result_row *r) {
    view v = {.row = *r, .roof = get_roof(r), .iqr = 100 * (r->gpu.q3 - r->gpu.q1) / r->gpu.median};
    size_t used = 0;
    if (!(r->gflop_s > 0)) /* 0: not described */
        v.row.gflop_s = NAN;
    for (const char *p = r->message[0] ? "NOT TIMED" : r->labels; *p && used + 3 < sizeof v.labels;
         p++)
        used +=
            (size_t)snprintf(v.labels + used, sizeof v.labels - used, *p == '+' ? ", " : "%c", *p);
    sink_add(s, &v, r->message[0] ? PAINT_BAD : PAINT_DIM);
    if (r->message[0])
        sink_note(s, 4, r->message);
}

void bench_print_markdown(FILE *out, const results_meta *m, const result_row *rows, size_t count) {
    sink s = {.record = RECORD(view_fields), .out = out, .is_markdown = true};
    fprintf(out, "%s (%s), %s, commit %s, seed %s\n\n", results_meta_find(m, "device"),
            results_meta_find(m, "cpu"), results_meta_find(m, "date"),
            results_meta_find(m, "commit"), results_meta_find(m, "seed"));
    for (size_t i = 0; i < count; i++)
        bench_print_row(&s, &rows[i]);
    sink_end(&s);
}

/* A kernel that adds to its output has more to do than one that does not. */
static bool accumulates(const bench_list *cases, const char *name) {
    for (size_t i = 0; i < cases->count; i++)
        if (strcmp(cases->items[i].timed.kernel->name, name) == 0)
            return cases->items[i].timed.kernel->accumulates;
    return false;
}

static bool is_alike(const result_row *a, const result_row *b, const bench_list *cases) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->format, b->format) == 0 &&
           strcmp(a->shape, b->shape) == 0 && strcmp(a->input, b->input) == 0 &&
           strcmp(a->regime, b->regime) == 0 && strcmp(a->cache, b->cache) == 0 &&
           accumulates(cases, a->kernel) == accumulates(cases, b->kernel);
}

/* The spread of the samples relative to the median; of normal ones the standard deviation. */
static double get_spread(const result_row *r) {
    return (r->gpu.q3 - r->gpu.q1) / 1.349 / r->gpu.median;
}

static int compare_times(const void *a, const void *b) {
    const result_row *x = *(const result_row *const *)a, *y = *(const result_row *const *)b;
    return (x->gpu.median > y->gpu.median) - (x->gpu.median < y->gpu.median);
}

/* rows: from the fastest to the slowest. */
static void print_group(FILE *out, const result_row *const *rows, size_t count) {
    const result_row *best = rows[0];
    char text[1200], near[80] = "", percent[24];
    int used = 0;
    if (!isnan(best->pct_roof))
        snprintf(near, sizeof near, " (%s %% of the %s roof)",
                 format_number(best->pct_roof, 3, percent, sizeof percent), get_roof(best));
    used = snprintf(text, sizeof text, "%s %s, %s, %s: %s%s is", best->op, best->shape,
                    best->regime, best->cache, best->kernel, near);
    for (size_t i = 1; i < count && i <= OTHERS; i++) {
        double ratio = rows[i]->gpu.median / best->gpu.median;
        double spread = ratio * hypot(get_spread(best), get_spread(rows[i]));
        bool is_last = i == OTHERS || i + 1 == count;
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s %.2f ± %.2f times as fast as %s",
                     i == 1    ? ""
                     : is_last ? " and"
                               : ",",
                     ratio, spread, rows[i]->kernel);
    }
    if (count > OTHERS + 1)
        snprintf(text + used, sizeof text - (size_t)used, "; %zu more %s slower",
                 count - OTHERS - 1, count == OTHERS + 2 ? "is" : "are");
    table_print_text(out, table_find_limit(out), 0, text);
}

/* A number above its roof says that the count of bytes or the roof is wrong, or that other units did
 * the work. */
static void print_above(FILE *out, const result_row *r) {
    bool is_memory = strcmp(get_roof(r), "memory") == 0;
    char text[600], value[24], limit[24];
    snprintf(
        text, sizeof text, "%s is above the %s roof: %s %s where the fastest %s %s. %s", r->name,
        get_roof(r), format_number(is_memory ? r->gb_s : r->gflop_s, 3, value, sizeof value),
        is_memory ? "GB/s" : "GFLOP/s",
        is_memory ? "plain read, copy or triad has" : "plain multiply-adds have",
        format_number(is_memory ? r->roof_gb_s : r->roof_gflop_s, 3, limit, sizeof limit),
        is_memory ? "It is a better loop than those, or the roof was measured in a slower moment."
                  : "Matrix units can do more than multiply-adds; otherwise the count of its "
                    "operations is wrong.");
    table_print_text(out, table_find_limit(out), 0, text);
}

void bench_print_summary(FILE *out, const result_row *rows, size_t count, const bench_list *cases) {
    const result_row **alike = calloc(count + 1, sizeof *alike);
    bool *is_told = calloc(count + 1, sizeof *is_told);
    assert(alike && is_told);
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        for (size_t k = i; k < count; k++)
            if (rows[k].gpu.count > 0 && !is_told[k] && is_alike(&rows[i], &rows[k], cases)) {
                alike[found++] = &rows[k];
                is_told[k] = true;
            }
        qsort(alike, found, sizeof *alike, compare_times);
        if (found > 1)
            print_group(out, alike, found);
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].pct_roof > 100)
            print_above(out, &rows[i]);
    free(alike);
    free(is_told);
}

/* Comparisons --------------------------------------------------------------------------------- */

typedef struct {
    comparison_row row;
    const char *verdict;
    char interval[48], why[640];
} comparison_view;

#define COMPARED(member, kind, ...) FIELD(comparison_view, row.member, kind, __VA_ARGS__)
#define COMPARISON_FIELDS(name_, base, now, ratio_, note_)                                         \
    {                                                                                              \
        COMPARED(key, FIELD_CHARS, "case", name_),                                                 \
            FIELD(comparison_view, verdict, FIELD_TEXT, "verdict", "verdict", .is_painted = true), \
            COMPARED(test.base_median, FIELD_TIME, "base_ns", base),                               \
            COMPARED(test.now_median, FIELD_TIME, "now_ns", now),                                  \
            COMPARED(test.interval.ratio, FIELD_REAL, "ratio", ratio_, .format = "%.3f"),          \
            COMPARED(test.interval.low, FIELD_REAL, "low"),                                        \
            COMPARED(test.interval.high, FIELD_REAL, "high"), COMPARED(test.p, FIELD_REAL, "p"),   \
            FIELD(comparison_view, interval, FIELD_CHARS, NULL, "interval", .rank = 2),            \
            COMPARED(note, FIELD_CHARS, "note", note_, .lifts = true),                             \
            FIELD(comparison_view, why, FIELD_CHARS, "why")                                        \
    }
enum { COMPARISON_COLUMNS = 11 };
static const field comparison_fields[2][COMPARISON_COLUMNS] = {
    COMPARISON_FIELDS("case", "base", "now", "ratio", "note"),
    COMPARISON_FIELDS("ours", "their time", "our time", "ours/theirs", "theirs")};

static paint choose_paint(verdict_kind v) {
    return v == VERDICT_SLOWER || v == VERDICT_MISSING ? PAINT_BAD
           : v == VERDICT_FASTER                       ? PAINT_GOOD
           : v == VERDICT_AMBIGUOUS                    ? PAINT_DIM
                                                       : PAINT_NONE;
}

static void add_comparisons(sink *s, const comparison_list *l, const comparison_options *o) {
    s->record = (record){comparison_fields[o->against], COMPARISON_COLUMNS};
    for (size_t i = 0; i < l->count; i++) {
        const verdict_case *t = &l->rows[i].test;
        const ratio_interval *r = &t->interval;
        comparison_view v = {.row = l->rows[i], .verdict = verdict_get_name(t->verdict)};
        snprintf(v.interval, sizeof v.interval, isnan(r->ratio) ? "-" : "%.3f to %.3f", r->low,
                 r->high);
        verdict_explain(t, o->min_effect, v.why, sizeof v.why);
        sink_add(s, &v, choose_paint(t->verdict));
        if (o->explain || t->verdict == VERDICT_AMBIGUOUS)
            sink_note(s, 4, o->explain ? v.why : t->reason);
    }
    sink_end(s);
}

/* The rows, which have been decided, as a list. */
static void comparison_add_json(json *j, const char *key, const comparison_list *l,
                                const comparison_options *o) {
    sink s = {.json = j};
    json_open(j, key, '[');
    add_comparisons(&s, l, o);
    json_close(j);
}

/* JSON has no NaN and no infinity: unknown values are null. */
static void add_result(json *j, const result_row *r) {
    json_open(j, NULL, '{');
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        char text[MADE_OF];
        bool is_number;
        result_get_column(r, i, text, sizeof text, &is_number);
        if (is_number)
            fputs(*text ? text : "null", json_add_key(j, result_get_title(i)));
        else
            json_add_text(j, result_get_title(i), text);
    }
    json_close(j);
}

void bench_print_json(FILE *out, const results_meta *m, const result_row *rows, size_t count,
                      comparison_list *compared, const comparison_options *o) {
    json j = json_start(out, '{');
    json_open(&j, "meta", '{');
    for (size_t i = 0; i < m->count; i++)
        json_add_text(&j, m->facts[i].key, m->facts[i].value);
    json_close(&j);
    json_open(&j, "rows", '[');
    for (size_t i = 0; i < count; i++)
        add_result(&j, &rows[i]);
    json_close(&j);
    if (compared->count > 0) {
        comparison_decide(compared, o->min_effect, o->seed);
        comparison_add_json(&j, "compared", compared, o);
    }
    json_close(&j);
}

comparison_row *bench_compare(comparison_list *l, const char *key, const result_row *base,
                              const timing_sample *base_samples, const result_row *now,
                              const timing_sample *samples) {
    comparison_row *c = comparison_add(l, key);
    c->test.paired = base->gpu.count == now->gpu.count;
    c->test.looks = BENCH_LOOKS;
    comparison_add_run(c, &c->base, base_samples, base->gpu.count, CLOCK_GPU, base->labels);
    comparison_add_run(c, &c->now, samples, now->gpu.count, CLOCK_GPU, now->labels);
    return c;
}

exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out) {
    size_t counts[VERDICT_COUNT] = {0};
    comparison_decide(l, o->min_effect, o->seed);
    for (size_t i = 0; i < l->count; i++)
        counts[l->rows[i].test.verdict]++;
    if (o->json) {
        json j = verb_open_json(out, "compare", NULL, o->seed);
        json_add_real(&j, "min_effect", o->min_effect);
        comparison_add_json(&j, "cases", l, o);
        for (int v = 0; v < VERDICT_COUNT; v++)
            json_add_count(&j, verdict_get_name((verdict_kind)v), counts[v]);
        json_close(&j);
    } else {
        sink s = {.out = out, .is_markdown = o->markdown, .heads = 1};
        add_comparisons(&s, l, o);
        fputs(o->markdown ? "\n" : "", out);
        for (int v = 0; v < VERDICT_COUNT; v++)
            fprintf(out, "%s%zu %s", v ? ", " : "", counts[v], verdict_get_name((verdict_kind)v));
        fputc('\n', out);
    }
    size_t compared = counts[VERDICT_SAME] + counts[VERDICT_FASTER];
    return counts[VERDICT_SLOWER] > 0 ? EXIT_REGRESSION
           : counts[VERDICT_AMBIGUOUS] + counts[VERDICT_MISSING] > 0 || compared == 0
               ? EXIT_INCONCLUSIVE
               : EXIT_OK;
}

bool bench_files_find_rows(const char *out, const char *name, const device_facts *f, char *path,
                           size_t size, err *e) {
    char folder[PATH_MAX];
    if (out)
        return path_print(path, size, e, "%s", out);
    return results_find_folder(f->name, folder, sizeof folder, e) &&
           path_print(path, size, e, "%s/%s.csv", folder, name);
}

/* Baselines --------------------------------------------------------------------------------- */

static bool get_folder(const char *rows, char *folder, size_t size, err *e) {
    const char *slash = strrchr(rows, '/');
    int length = slash ? (int)(slash + 1 - rows) : 0;
    return path_print(folder, size, e, "%.*sbaselines", length, rows);
}

static bool is_name(const char *text) {
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
            return false;
    return isalnum((unsigned char)text[0]) && strlen(text) <= 64;
}

bool bench_files_find_named(const char *rows, const char *name, char *path, size_t size, err *e) {
    char folder[PATH_MAX];
    if (!is_name(name))
        return err_set(e, EXIT_USAGE,
                       "a baseline is named with letters, digits, '-', '_' and '.', not '%.60s'",
                       name);
    return get_folder(rows, folder, sizeof folder, e) &&
           path_print(path, size, e, "%s/%s.csv", folder, name);
}

/* "main, before" */
static void list_names(const char *rows, char *text, size_t size) {
    char folder[PATH_MAX];
    struct dirent **found = NULL;
    size_t used = 0;
    int count = get_folder(rows, folder, sizeof folder, NULL)
                    ? scandir(folder, &found, NULL, alphasort)
                    : 0;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        const char *name = found[i]->d_name;
        bool is_rows =
            name[0] != '.' && path_ends_with(name, ".csv") && !strstr(name, ".samples.csv");
        if (is_rows && used + strlen(name) < size)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                                     (int)strlen(name) - 4, name);
        free(found[i]);
    }
    free(found);
}

bool bench_files_find_baseline(const char *rows, const char *text, char *path, size_t size,
                               bool *is_folder, err *e) {
    *is_folder = os_is_folder(text);
    if (!*is_folder && !path_ends_with(text, ".csv") && strchr(text, '/'))
        return err_set(e, EXIT_USAGE,
                       "there is no folder of kernels %.140s; a base that has none yet is an empty "
                       "folder",
                       text);
    if (*is_folder || path_ends_with(text, ".csv")) {
        if (!path_print(path, size, e, "%s", text))
            return false;
    } else {
        char names[120];
        if (!bench_files_find_named(rows, text, path, size, e))
            return false;
        list_names(rows, names, sizeof names);
        if (access(path, F_OK) != 0)
            return err_set(e, EXIT_USAGE,
                           "no baseline is called '%.40s'%s%s; `assay bench --save NAME` makes one",
                           text, names[0] ? "; there are " : "", names);
    }
    return *is_folder || !os_is_same_file(path, rows) ||
           err_set(e, EXIT_USAGE,
                   "the baseline %.100s is the file that this run writes: keep it under a name "
                   "(bench --save NAME), or write to another file with --out",
                   text);
}

bool bench_files_read_baseline(const char *path, const char *called, const device_facts *f,
                               results_list *out, err *e) {
    if (!results_read(path, out, e))
        return false;
    const char *was = results_meta_find(&out->meta, "device");
    return strcmp(was, f->name) == 0 ||
           err_set(e, EXIT_USAGE, "the baseline %.80s is from another device: '%.60s', not '%.60s'",
                   called, was, f->name);
}

results *bench_files_open(const char *path, const results_meta *m, err *e) {
    char moved[PATH_MAX];
    results *file = results_merge(path, m, moved, sizeof moved, e);
    if (file && moved[0])
        fprintf(stderr, "%s was measured under other conditions: it is %s now\n", path, moved);
    return file;
}

static bool is_true(const result_row *r, const results_meta *m, const device_facts *f,
                    freshness *fresh) {
    char changes[80];
    /* A part that has no name here (?) may have changed. */
    return r->gpu.count > 0 && !strchr(r->made_of, '?') && strcmp(r->device, f->name) == 0 &&
           strcmp(r->math, math_mode_get_name(f->math)) == 0 &&
           freshness_is_same_program(r->build, r->commit, m) &&
           freshness_judge(fresh, r->made_of, changes, sizeof changes) == ORIGIN_FRESH;
}

bool bench_files_drop_finished(const char *rows, const results_meta *m, const device_facts *f,
                               bench_list *l, size_t *kept, err *e) {
    results_list there;
    size_t all = l->count;
    *kept = 0;
    if (access(rows, F_OK) != 0)
        return true;
    if (!results_read(rows, &there, e))
        return false;
    freshness *fresh = freshness_new(e);
    bool ok = fresh && results_check_resume(rows, &there.meta, m, e);
    l->count = 0;
    for (size_t i = 0; ok && i < all; i++) {
        const result_case *row = results_list_find(&there, l->items[i].name);
        if (!row || !is_true(&row->row, m, f, fresh))
            l->items[l->count++] = l->items[i];
    }
    freshness_free(fresh);
    results_list_free(&there);
    *kept = all - l->count;
    return ok;
}

/* compare: runs of bench or of an experiment against other runs, from their files ---------------- */

static struct {
    comparison_options shown;
    const char *clock;
    size_t split;
} settings = {.shown = {.min_effect = 3, .seed = 1}};

static const option options[] = {
    PERCENT_OPTION("min-effect", &settings.shown.min_effect, "PERCENT",
                   "smallest change worth a verdict (default 3)"),
    TEXT_OPTION("clock", &settings.clock, "C", "gpu, encode or wall (default gpu)"),
    FLAG_OPTION("explain", &settings.shown.explain, "the numbers and the rule of each verdict"),
    FLAG_OPTION("json", &settings.shown.json, "print one JSON object instead of the table"),
    FLAG_OPTION("md", &settings.shown.markdown, "print Markdown instead of the table"),
    SEED_OPTION(&settings.shown.seed, "the bootstrap"),
    PLAIN_OPTION("", OPTION_SPLIT, &settings.split, NULL, NULL),
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
    comparison_list l = {.count = 0};
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
        settings.shown.min_effect /= 100;
        code = comparison_print(&l, &settings.shown, stdout);
    } else
        code = e->code;
    comparison_free(&l);
    return code;
}

VERB(
    verb_compare, "compare", run_verb, .names = "BASE... [--] NEW...",
    .about = "compare runs of bench or of experiments: which cases are slower, and is it certain?",
    .notes =
        "BASE and NEW are NAME.csv files of bench or of experiments, with their NAME.samples.csv\n"
        "beside them, or folders of such. `--` separates several runs per side:\n"
        "    assay compare base1.csv base2.csv base3.csv -- new1.csv new2.csv new3.csv\n"
        "Rows of the same name in column `case` are compared. A case is slower when the ratio of\n"
        "medians is beyond the smallest effect, its 99% interval is clear of 1, and a test agrees\n"
        "after Holm's correction over all cases; same when the whole interval is within the\n"
        "smallest effect; otherwise it is ambiguous. Several runs per side are compared run by\n"
        "run: Student's t over their medians. One run per side: a bootstrap and a Mann-Whitney\n"
        "test, wider where neighbouring samples resemble each other, and ambiguous if the run was\n"
        "disturbed (labels busy, throttled, ramp). Exit status: 4 if one is slower, else 5 if one\n"
        "is ambiguous or missing, else 0.\n",
    VERB_OPTIONS(options), .reads_results = true);
