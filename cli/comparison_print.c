#include "comparison_print.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json.h"
#include "harness/base/table.h"
#include "output.h"

enum { COLUMNS = 7, VERDICT_COLUMN = 1 };
static const char *const titles[2][COLUMNS] = {
    {"case", "verdict", "base", "now", "ratio", "interval", "note"},
    {"ours", "verdict", "their time", "our time", "ours/theirs", "interval", "theirs"}};

static void format_cells(const comparison_row *r, char cells[COLUMNS][320]) {
    const verdict_case *t = &r->test;
    snprintf(cells[0], 320, "%s", r->key);
    snprintf(cells[1], 320, "%s", verdict_get_name(t->verdict));
    format_time(t->base_median, cells[2], 320);
    format_time(t->now_median, cells[3], 320);
    bool is_known = !isnan(t->interval.ratio);
    snprintf(cells[4], 320, is_known ? "%.3f" : "-", t->interval.ratio);
    snprintf(cells[5], 320, is_known ? "%.3f to %.3f" : "-", t->interval.low, t->interval.high);
    snprintf(cells[6], 320, "%s", r->note);
}

static void print_markdown(const comparison_list *l, const comparison_options *o, FILE *out) {
    for (int i = 0; i < COLUMNS; i++)
        fprintf(out, "| %s ", titles[o->against][i]);
    fputs("|\n|---|---|---:|---:|---:|---|---|\n", out);
    for (size_t i = 0; i < l->count; i++) {
        char cells[COLUMNS][320];
        format_cells(&l->rows[i], cells);
        if (l->rows[i].test.verdict == VERDICT_SLOWER)
            strcpy(cells[VERDICT_COLUMN], "**slower**");
        for (int c = 0; c < COLUMNS; c++)
            fprintf(out, "| %s ", cells[c]);
        fputs("|\n", out);
    }
}

static void print_table(const comparison_list *l, const comparison_options *o, FILE *out) {
    table_column columns[COLUMNS];
    char cells[COLUMNS][320];
    for (int c = 0; c < COLUMNS; c++)
        columns[c] = (table_column){.title = titles[o->against][c],
                                    .right = c >= 2 && c <= 4,
                                    .rank = c == 5 ? 2 : 0, /* the interval */
                                    .lifts = c == 6};
    for (size_t i = 0; i < l->count; i++) {
        format_cells(&l->rows[i], cells);
        for (int c = 0; c < COLUMNS; c++)
            table_fit(&columns[c], cells[c]);
    }
    table t = table_new(out, columns, COLUMNS);
    t.heads = 1;
    table_print_header(&t);
    for (size_t i = 0; i < l->count; i++) {
        const char *row[COLUMNS];
        format_cells(&l->rows[i], cells);
        for (int c = 0; c < COLUMNS; c++)
            row[c] = cells[c];
        verdict_kind v = l->rows[i].test.verdict;
        paint p = v == VERDICT_SLOWER || v == VERDICT_MISSING ? PAINT_BAD
                  : v == VERDICT_FASTER                       ? PAINT_GOOD
                  : v == VERDICT_AMBIGUOUS                    ? PAINT_DIM
                                                              : PAINT_NONE;
        table_print_row(&t, row, VERDICT_COLUMN, p);
        char text[640];
        verdict_explain(&l->rows[i].test, o->min_effect, text, sizeof text);
        if (o->explain)
            table_print_text(out, t.limit, 4, text);
    }
}

static void print_json_row(const comparison_row *r, const comparison_options *o, FILE *out) {
    const verdict_case *t = &r->test;
    const double values[] = {t->base_median,  t->now_median,    t->interval.ratio,
                             t->interval.low, t->interval.high, t->p};
    static const char *const keys[] = {"base_ns", "now_ns", "ratio", "low", "high", "p"};
    char why[640];
    verdict_explain(t, o->min_effect, why, sizeof why);
    json_print_field(out, "case", r->key);
    json_add_field(out, "verdict", verdict_get_name(t->verdict));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fprintf(out, ", \"%s\": ", keys[i]);
        json_print_number(out, values[i], false);
    }
    json_add_field(out, "note", r->note);
    json_add_field(out, "why", why);
}

static void print_json_rows(const comparison_list *l, const comparison_options *o, FILE *out) {
    fputc('[', out);
    for (size_t i = 0; i < l->count; i++) {
        fputs(i ? ",\n    {" : "\n    {", out);
        print_json_row(&l->rows[i], o, out);
        fputc('}', out);
    }
    fputs(l->count ? "\n  ]" : "]", out);
}

void comparison_print_json_rows(comparison_list *l, const comparison_options *o, FILE *out) {
    comparison_decide(l, o->min_effect, o->seed);
    print_json_rows(l, o, out);
}

static void print_json(const comparison_list *l, const comparison_options *o, const size_t *counts,
                       FILE *out) {
    output_start_json(out, "compare", NULL, o->seed);
    fputs(",\n  \"min_effect\": ", out);
    json_print_number(out, o->min_effect, false);
    fputs(",\n  \"cases\": ", out);
    print_json_rows(l, o, out);
    for (int v = 0; v < VERDICT_COUNT; v++)
        fprintf(out, ",\n  \"%s\": %zu", verdict_get_name((verdict_kind)v), counts[v]);
    fputs("\n}\n", out);
}

static void print_rows(const comparison_list *l, const comparison_options *o, const size_t *counts,
                       FILE *out) {
    if (o->markdown)
        print_markdown(l, o, out);
    else
        print_table(l, o, out);
    fputs(o->markdown ? "\n" : "", out);
    for (int v = 0; v < VERDICT_COUNT; v++)
        fprintf(out, "%s%zu %s", v ? ", " : "", counts[v], verdict_get_name((verdict_kind)v));
    fputc('\n', out);
}

exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out) {
    size_t counts[VERDICT_COUNT] = {0};
    comparison_decide(l, o->min_effect, o->seed);
    for (size_t i = 0; i < l->count; i++)
        counts[l->rows[i].test.verdict]++;
    if (o->json)
        print_json(l, o, counts, out);
    else
        print_rows(l, o, counts, out);
    size_t compared = counts[VERDICT_SAME] + counts[VERDICT_FASTER];
    if (counts[VERDICT_SLOWER] > 0)
        return EXIT_REGRESSION;
    return counts[VERDICT_AMBIGUOUS] + counts[VERDICT_MISSING] > 0 || compared == 0
               ? EXIT_INCONCLUSIVE
               : EXIT_OK;
}
