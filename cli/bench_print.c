#include "bench_print.h"

#include <math.h>
#include <string.h>

#include "bench_summary.h"
#include "harness/base/format.h"
#include "harness/base/json.h"

static const table_column titles[BENCH_COLUMNS] = {
    {.title = "kernel"},
    {.title = "shape", .lifts = true},
    {.title = "input", .lifts = true},
    {.title = "regime", .lifts = true},
    {.title = "cache", .lifts = true},
    {.title = "time", .right = true, .width = 9},
    {.title = "iqr", .right = true, .width = 7},
    {.title = "n", .right = true, .width = 6, .rank = 2},
    {.title = "GB/s", .right = true, .width = 7},
    {.title = "GFLOP/s", .right = true, .width = 7, .rank = 4},
    {.title = "% roof", .right = true, .width = 7},
    {.title = "roof", .width = 6, .rank = 3},
    {.title = "labels", .width = 13}};

static void format_row(const result_row *r, char cells[BENCH_COLUMNS][128]) {
    const size_t size = 128;
    snprintf(cells[0], size, "%s", r->kernel);
    snprintf(cells[1], size, "%s", r->shape);
    snprintf(cells[2], size, "%s", r->input);
    snprintf(cells[3], size, "%s", r->regime);
    snprintf(cells[4], size, "%s", r->cache);
    format_time(r->gpu.median, cells[5], size);
    format_number(100 * (r->gpu.q3 - r->gpu.q1) / r->gpu.median, 3, cells[6], size - 1);
    if (r->gpu.count > 0)
        strcat(cells[6], "%");
    snprintf(cells[7], size, "%zu", r->gpu.count);
    format_number(r->gb_s, 3, cells[8], size);
    format_number(r->gflop_s > 0 ? r->gflop_s : NAN, 3, cells[9], size); /* 0: not described */
    format_number(r->pct_roof, 3, cells[10], size);
    snprintf(cells[11], size, "%s", bench_get_roof(r));
    size_t used = 0; /* "emulated, busy" of "emulated+busy" */
    for (const char *p = r->message[0] ? "NOT TIMED" : r->labels; *p && used + 3 < size; p++)
        used += (size_t)snprintf(cells[12] + used, size - used, *p == '+' ? ", " : "%c", *p);
    cells[12][used] = 0;
}

void bench_table_start(bench_table *t, FILE *out, const bench_list *cases,
                       const bench_settings *s) {
    memcpy(t->columns, titles, sizeof titles);
    for (size_t i = 0; i < cases->count; i++) {
        const bench_case *c = &cases->items[i];
        char text[64];
        shape_get_text(&c->timed.shape, text, sizeof text);
        table_fit(&t->columns[0], c->timed.kernel->name);
        table_fit(&t->columns[1], text);
        table_fit(&t->columns[2], distribution_get_name(c->timed.inputs));
        table_fit(&t->columns[3], timing_get_regime_name(c->regime));
        table_fit(&t->columns[4], timing_get_cache_name(c->cache));
    }
    for (size_t i = 0; i < s->rival_count; i++)
        table_fit(&t->columns[0], s->rivals[i].name);
    t->rows = table_new(out, t->columns, BENCH_COLUMNS);
    t->rows.heads = 1; /* after all columns that can go */
    table_print_header(&t->rows);
}

void bench_table_add(bench_table *t, const result_row *r) {
    char cells[BENCH_COLUMNS][128];
    const char *row[BENCH_COLUMNS];
    format_row(r, cells);
    for (int i = 0; i < BENCH_COLUMNS; i++)
        row[i] = cells[i];
    table_print_row(&t->rows, row, BENCH_COLUMNS - 1, r->message[0] ? PAINT_BAD : PAINT_DIM);
    if (r->message[0])
        table_print_text(t->rows.out, t->rows.limit, 4, r->message);
}

void bench_print_head(FILE *out, const results_meta *m) {
    char line[2000];
    for (size_t i = 0; i < m->count; i++) {
        snprintf(line, sizeof line, "# %s: %s", m->facts[i].key, m->facts[i].value);
        table_print_text(out, table_find_limit(out), 0, line);
    }
}

/* JSON -------------------------------------------------------------------------------------- */

static void print_text(FILE *out, const char *text) {
    json_print_text(out, text, strlen(text));
}

/* JSON has no NaN and no infinity: unknown values are null. */
static void print_json_field(FILE *out, const result_row *r, int i) {
    char text[512];
    bool is_number;
    result_get_column(r, i, text, sizeof text, &is_number);
    print_text(out, result_get_title(i));
    fputs(": ", out);
    if (!is_number)
        print_text(out, text);
    else
        fputs(!*text || strpbrk(text, "naif") ? "null" : text, out);
}

void bench_print_json(FILE *out, const results_meta *m, const result_row *rows, size_t count,
                      comparison_list *compared, const comparison_options *o) {
    fputs("{\n  \"meta\": {", out);
    for (size_t i = 0; i < m->count; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        print_text(out, m->facts[i].key);
        fputs(": ", out);
        print_text(out, m->facts[i].value);
    }
    fputs("\n  },\n  \"rows\": [", out);
    for (size_t r = 0; r < count; r++) {
        fputs(r ? ",\n    {" : "\n    {", out);
        for (int i = 0; i < RESULT_COLUMNS; i++) {
            fputs(i ? ", " : "", out);
            print_json_field(out, &rows[r], i);
        }
        fputc('}', out);
    }
    fputs("\n  ]", out);
    if (compared && compared->count > 0) {
        fputs(",\n  \"compared\": ", out);
        comparison_print_json_rows(compared, o, out);
    }
    fputs("\n}\n", out);
}

void bench_print_markdown(FILE *out, const results_meta *m, const result_row *rows, size_t count) {
    fprintf(out, "%s (%s), %s, commit %s, seed %s\n\n", results_meta_find(m, "device"),
            results_meta_find(m, "cpu"), results_meta_find(m, "date"),
            results_meta_find(m, "commit"), results_meta_find(m, "seed"));
    for (int i = 0; i < BENCH_COLUMNS; i++)
        fprintf(out, "| %s ", titles[i].title);
    fputs("|\n", out);
    for (int i = 0; i < BENCH_COLUMNS; i++)
        fputs(titles[i].right ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (size_t r = 0; r < count; r++) {
        char cells[BENCH_COLUMNS][128];
        format_row(&rows[r], cells);
        for (int i = 0; i < BENCH_COLUMNS; i++)
            fprintf(out, "| %s ", cells[i]);
        fputs("|\n", out);
    }
}
