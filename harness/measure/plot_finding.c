/* plot_finding: the title of a chart, which says what its numbers show (plot.h). */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "plot.h"

/* Sentences with metrics ----------------------------------------------------------------------- */

static double find_metric(const csv_file *f, const char *name) {
    const char *key, *value;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++) {
        char found[64];
        double number;
        if (strcmp(key, "metric") == 0 && sscanf(value, "%63s = %lf", found, &number) == 2 &&
            strcmp(found, name) == 0)
            return number;
    }
    return NAN;
}

static double get_cell(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value;
    return csv_find_column(f, title, &column, NULL) && csv_get_double(f, row, column, &value, NULL)
               ? value
               : NAN;
}

static const char *get_text(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

static double find_largest(const csv_file *f, const char *title) {
    double most = NAN;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        most = fmax(most, get_cell(f, r, title));
    return most;
}

/* Are the quartiles of a metric on both sides of 0? */
static bool is_unclear(const csv_file *f, const char *name) {
    const char *key, *value;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++) {
        char found[64];
        double low, high;
        if (strcmp(key, "spread") == 0 &&
            sscanf(value, "%63s = %lf to %lf", found, &low, &high) == 3 && strcmp(found, name) == 0)
            return low <= 0 && high >= 0;
    }
    return false;
}

/* Adds the text of one {...}; false if its number is not known. */
static bool fill(const csv_file *f, const char *field, char *out, size_t size) {
    char name[64], number[32];
    size_t length = strcspn(field, "|");
    snprintf(name, sizeof name, "%.*s", (int)length, field);
    double value = strncmp(name, "max:", 4) == 0 ? find_largest(f, name + 4) : find_metric(f, name);
    bool is_more = strcmp(field + length, "|more") == 0;
    bool is_change = strcmp(field + length, "|change") == 0;
    format_number(is_more || is_change ? fabs(value) : value, 3, number, sizeof number);
    if (is_change && is_unclear(f, name))
        snprintf(out, size, "no clear difference");
    else if (is_change)
        snprintf(out, size, "%c%s %%", value < 0 ? '-' : '+', number);
    else
        snprintf(out, size, "%s%s", number, !is_more ? "" : value < 0 ? " % less" : " % more");
    return isfinite(value);
}

static bool fill_sentence(const csv_file *f, const char *sentence, char *text, size_t size) {
    size_t used = 0;
    for (const char *p = sentence; *p && used + 1 < size;) {
        if (*p != '{') {
            text[used++] = *p++;
            continue;
        }
        char field[80], value[48];
        size_t length = strcspn(++p, "}");
        snprintf(field, sizeof field, "%.*s", (int)length, p);
        if (!fill(f, field, value, sizeof value))
            return false;
        used += (size_t)snprintf(text + used, size - used, "%s", value);
        p += length + 1;
    }
    text[used < size ? used : size - 1] = 0;
    return used < size;
}

/* Sentences from rows -------------------------------------------------------------------------- */

/* A row with a time. Rows that do the same (op, format, shape, input, regime, cache) are a group. */
typedef struct {
    const char *key[6], *kernel;
    double ns;
    size_t group; /* the first row of its group */
} timed_row;

static bool is_same_group(const timed_row *a, const timed_row *b) {
    for (size_t i = 0; i < sizeof a->key / sizeof *a->key; i++)
        if (strcmp(a->key[i], b->key[i]) != 0)
            return false;
    return true;
}

static timed_row *list_rows(const csv_file *f, size_t *count) {
    static const char *const titles[] = {"op", "format", "shape", "input", "regime", "cache"};
    timed_row *rows = array_new(csv_count_rows(f) + 1, sizeof *rows);
    size_t column;
    bool has_matrix =
        csv_find_column(f, "matrix", &column, NULL); /* a shape may have tokens, too */
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        timed_row *row = &rows[*count];
        row->ns = get_cell(f, r, "gpu_ns");
        if (!(row->ns > 0))
            continue;
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
            row->key[i] = get_text(f, r, i == 2 && has_matrix ? "matrix" : titles[i]);
        row->kernel = get_text(f, r, "kernel");
        row->group = 0;
        while (!is_same_group(&rows[row->group], row))
            row->group++;
        ++*count;
    }
    return rows;
}

typedef struct {
    const timed_row *best, *worst;
    double ours, theirs; /* the fastest, ns; NaN: there is none */
} group;

static group find_group(const timed_row *rows, size_t count, size_t first) {
    group g = {.best = &rows[first], .worst = &rows[first], .ours = NAN, .theirs = NAN};
    for (const timed_row *r = rows + first; r < rows + count; r++) {
        if (r->group != first)
            continue;
        /* Kernels of others are named FILE.metal:KERNEL. */
        double *side = strstr(r->kernel, ".metal:") ? &g.theirs : &g.ours;
        *side = fmin(*side, r->ns);
        g.best = r->ns < g.best->ns ? r : g.best;
        g.worst = r->ns > g.worst->ns ? r : g.worst;
    }
    return g;
}

/* "1.2 to 3.4", or "1.2" where both are the same. */
static const char *format_range(double low, double high, char *text, size_t size) {
    char a[32], b[32];
    format_number(low, 3, a, sizeof a);
    format_number(high, 3, b, sizeof b);
    snprintf(text, size, strcmp(a, b) == 0 ? "%s" : "%s to %s", a, b);
    return text;
}

/* Ours and theirs where there are both, else the fastest and the slowest. */
static bool find_rows(const csv_file *f, char *text, size_t size) {
    size_t count, groups = 0, both = 0, faster = 0;
    timed_row *rows = list_rows(f, &count);
    double low = INFINITY, high = 0, spread = 1;
    char range[80];
    for (size_t r = 0; r < count; r++) {
        if (rows[r].group != r)
            continue;
        group g = find_group(rows, count, r);
        double ratio = g.theirs / g.ours;
        groups++;
        spread = fmax(spread, g.worst->ns / g.best->ns);
        if (!isfinite(ratio))
            continue;
        both++;
        faster += ratio > 1;
        low = fmin(low, ratio);
        high = fmax(high, ratio);
    }
    if (both > 0)
        snprintf(text, size,
                 "Our fastest kernel is faster than theirs in %zu of %zu cases: %s times as fast",
                 faster, both, format_range(low, high, range, sizeof range));
    else if (groups < count)
        snprintf(text, size,
                 "%zu kernels in %zu groups: the fastest of a group is up to %s times as fast as "
                 "the slowest",
                 count, groups, format_number(spread, 3, range, sizeof range));
    else
        snprintf(text, size, "Times of %zu %s", count, count == 1 ? "case" : "cases");
    free(rows);
    return count > 0;
}

static bool find_check(const csv_file *f, char *text, size_t size) {
    size_t passed = 0, failed = 0;
    double worst = 0;
    char margin[32];
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *verdict = get_text(f, r, "verdict");
        passed += strcmp(verdict, "pass") == 0;
        failed += strcmp(verdict, "fail") == 0;
        worst = fmax(worst, get_cell(f, r, "margin"));
    }
    snprintf(
        text, size,
        "%zu of %zu checked cases are within their tolerance; the largest error is %s %% of it",
        passed, passed + failed, format_number(floor(1000 * worst) / 10, 4, margin, sizeof margin));
    return passed + failed > 0;
}

/* "random weights in the shape of 7b, seed 1" is 7b. */
static int get_model_name(const char *model, const char **name) {
    static const char prefix[] = "random weights in the shape of ";
    bool is_random = strncmp(model, prefix, strlen(prefix)) == 0;
    *name = model + (is_random ? strlen(prefix) : 0);
    return (int)(is_random ? strcspn(*name, ",") : strlen(model));
}

/* The rates of all models in the test of writing 128 tokens, or else in the first one. */
static bool find_models(const csv_file *f, char *text, size_t size) {
    if (csv_count_rows(f) == 0 || strcmp(get_text(f, 0, "op"), "model") != 0)
        return false;
    const char *test = get_text(f, 0, "variant");
    size_t models = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        test = strcmp(get_text(f, r, "variant"), "tg128") == 0 ? "tg128" : test;
    int n = snprintf(text, size, "Tokens per second in %s: ", test);
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name;
        char rate[32];
        double per_s =
            1e9 * strtod(strlen(test) > 2 ? test + 2 : "", NULL) / get_cell(f, r, "gpu_ns");
        if (strcmp(get_text(f, r, "variant"), test) != 0 || !(per_s > 0) || (size_t)n + 96 > size)
            continue;
        int length = get_model_name(get_text(f, r, "model"), &name);
        n += snprintf(text + n, size - (size_t)n, "%s%.*s %s", models++ ? ", " : "", length, name,
                      format_number(per_s, 3, rate, sizeof rate));
    }
    return models > 0;
}

void plot_find(const char *name, const char *sentence, const csv_file *f, char *text, size_t size) {
    const char *conclusion = csv_get_meta(f, "conclusion"), *question = csv_get_meta(f, "question");
    if (sentence && fill_sentence(f, sentence, text, size))
        return;
    if (conclusion || question)
        snprintf(text, size, "%s", conclusion ? conclusion : question);
    else if (!find_check(f, text, size) && !find_models(f, text, size) && !find_rows(f, text, size))
        snprintf(text, size, "%s", name);
}
