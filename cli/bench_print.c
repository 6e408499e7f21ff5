/* bench_print: what `bench`, `compare` and `model bench` say about times. See bench_print.h. */
#include "bench_print.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "output.h"

enum { OTHERS = 3 }; /* kernels that the fastest is compared with in words */

/* "memory", or "FMA" if arithmetic is nearer to its roof; "-" if neither is known. */
static const char *get_roof(const result_row *r) {
    double memory = r->gb_s / r->roof_gb_s, fma = r->gflop_s / r->roof_gflop_s;
    return isnan(r->pct_roof) ? "-" : fma > memory || isnan(memory) ? "FMA" : "memory";
}

/* Rows of bench ------------------------------------------------------------------------------- */

typedef struct {
    const char *kernel, *input, *regime, *cache, *roof;
    char shape[64], labels[128];
    double ns, iqr, gb_s, gflop_s, pct_roof;
    size_t count;
} view;

static const field view_fields[] = {
    FIELD(view, kernel, FIELD_TEXT, NULL, "kernel"),
    FIELD(view, shape, FIELD_CHARS, NULL, "shape", .lifts = true),
    FIELD(view, input, FIELD_TEXT, NULL, "input", .lifts = true),
    FIELD(view, regime, FIELD_TEXT, NULL, "regime", .lifts = true),
    FIELD(view, cache, FIELD_TEXT, NULL, "cache", .lifts = true),
    FIELD(view, ns, FIELD_TIME, NULL, "time", .width = 9),
    FIELD(view, iqr, FIELD_PERCENT, NULL, "iqr", .width = 7),
    FIELD(view, count, FIELD_COUNT, NULL, "n", .width = 6, .rank = 2),
    FIELD(view, gb_s, FIELD_REAL, NULL, "GB/s", .width = 7),
    FIELD(view, gflop_s, FIELD_REAL, NULL, "GFLOP/s", .width = 7, .rank = 4),
    FIELD(view, pct_roof, FIELD_REAL, NULL, "% roof", .width = 7),
    FIELD(view, roof, FIELD_TEXT, NULL, "roof", .width = 6, .rank = 3),
    FIELD(view, labels, FIELD_CHARS, NULL, "labels", .width = 13, .is_painted = true),
};

void bench_print_start(sink *s, FILE *out, const bench_list *cases,
                       const bench_settings *settings) {
    *s = (sink){.record = RECORD(view_fields), .out = out, .streams = true, .heads = 1};
    for (size_t i = 0; i < cases->count; i++) {
        const bench_case *c = &cases->items[i];
        view v = {.kernel = c->timed.kernel->name,
                  .input = distribution_get_name(c->timed.inputs),
                  .regime = timing_get_regime_name(c->regime),
                  .cache = timing_get_cache_name(c->cache)};
        shape_get_text(&c->timed.shape, v.shape, sizeof v.shape);
        sink_fit(s, &v);
        for (size_t k = 0; k < settings->rival_count; k++) {
            v.kernel = settings->rivals[k].name;
            sink_fit(s, &v);
        }
    }
}

void bench_print_row(sink *s, const result_row *r) {
    view v = {.kernel = r->kernel,
              .input = r->input,
              .regime = r->regime,
              .cache = r->cache,
              .roof = get_roof(r),
              .ns = r->gpu.median,
              .iqr = 100 * (r->gpu.q3 - r->gpu.q1) / r->gpu.median,
              .count = r->gpu.count,
              .gb_s = r->gb_s,
              .gflop_s = r->gflop_s > 0 ? r->gflop_s : NAN, /* 0: not described */
              .pct_roof = r->pct_roof};
    size_t used = 0; /* "emulated, busy" of "emulated+busy" */
    snprintf(v.shape, sizeof v.shape, "%s", r->shape);
    for (const char *p = r->message[0] ? "NOT TIMED" : r->labels; *p && used + 3 < sizeof v.labels;
         p++)
        used +=
            (size_t)snprintf(v.labels + used, sizeof v.labels - used, *p == '+' ? ", " : "%c", *p);
    sink_add(s, &v, r->message[0] ? PAINT_BAD : PAINT_DIM);
    if (r->message[0])
        sink_note(s, 4, r->message);
}

void bench_print_head(FILE *out, const results_meta *m) {
    char line[2000];
    for (size_t i = 0; i < m->count; i++) {
        snprintf(line, sizeof line, "# %s: %s", m->facts[i].key, m->facts[i].value);
        table_print_text(out, table_find_limit(out), 0, line);
    }
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

/* In sentences -------------------------------------------------------------------------------- */

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
    const char *name, *verdict, *note;
    double base_ns, now_ns, ratio, low, high, p;
    char interval[48], why[640];
} comparison_view;

#define COMPARISON_FIELDS(name_, base, now, ratio_, note_)                                         \
    {                                                                                              \
        FIELD(comparison_view, name, FIELD_TEXT, "case", name_),                                   \
            FIELD(comparison_view, verdict, FIELD_TEXT, "verdict", "verdict", .is_painted = true), \
            FIELD(comparison_view, base_ns, FIELD_TIME, "base_ns", base),                          \
            FIELD(comparison_view, now_ns, FIELD_TIME, "now_ns", now),                             \
            FIELD(comparison_view, ratio, FIELD_REAL, "ratio", ratio_, .format = "%.3f"),          \
            FIELD(comparison_view, low, FIELD_REAL, "low"),                                        \
            FIELD(comparison_view, high, FIELD_REAL, "high"),                                      \
            FIELD(comparison_view, p, FIELD_REAL, "p"),                                            \
            FIELD(comparison_view, interval, FIELD_CHARS, NULL, "interval", .rank = 2),            \
            FIELD(comparison_view, note, FIELD_TEXT, "note", note_, .lifts = true),                \
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
        comparison_view v = {.name = l->rows[i].key,
                             .verdict = verdict_get_name(t->verdict),
                             .note = l->rows[i].note,
                             .base_ns = t->base_median,
                             .now_ns = t->now_median,
                             .ratio = r->ratio,
                             .low = r->low,
                             .high = r->high,
                             .p = t->p};
        snprintf(v.interval, sizeof v.interval, isnan(r->ratio) ? "-" : "%.3f to %.3f", r->low,
                 r->high);
        verdict_explain(t, o->min_effect, v.why, sizeof v.why);
        sink_add(s, &v, choose_paint(t->verdict));
        if (o->explain)
            sink_note(s, 4, v.why);
    }
    sink_end(s);
}

void comparison_add_json(json *j, const char *key, const comparison_list *l,
                         const comparison_options *o) {
    sink s = {.json = j};
    json_open(j, key, '[');
    add_comparisons(&s, l, o);
    json_close(j);
}

exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out) {
    size_t counts[VERDICT_COUNT] = {0};
    comparison_decide(l, o->min_effect, o->seed);
    for (size_t i = 0; i < l->count; i++)
        counts[l->rows[i].test.verdict]++;
    if (o->json) {
        json j = output_open_json(out, "compare", NULL, o->seed);
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
