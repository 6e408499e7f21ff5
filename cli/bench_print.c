#include "bench_print.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json.h"

static const char *const titles[BENCH_COLUMNS] = {"kernel", "shape",  "input",   "regime",
                                                  "cache",  "time",   "iqr",     "n",
                                                  "GB/s",   "% roof", "GFLOP/s", "labels"};
enum { FIRST_NUMBER = 5, LAST_NUMBER = 10, NUMBER_WIDTH = 9 };

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
    format_number(r->pct_roof, 3, cells[9], size);
    format_number(r->gflop_s > 0 ? r->gflop_s : NAN, 3, cells[10], size); /* 0: not described */
    snprintf(cells[11], size, "%s", r->message[0] ? "NOT TIMED" : r->labels);
}

void bench_table_start(bench_table *t, FILE *out, const bench_list *cases,
                       const bench_settings *s) {
    for (int i = 0; i < BENCH_COLUMNS; i++) {
        bool is_number = i >= FIRST_NUMBER && i <= LAST_NUMBER;
        t->columns[i] = (table_column){
            .title = titles[i], .right = is_number, .width = is_number ? NUMBER_WIDTH : 0};
    }
    for (size_t i = 0; i < cases->count; i++) {
        const bench_case *c = &cases->items[i];
        char text[64];
        shape_get_text(&c->timed.shape, text, sizeof text);
        table_fit(&t->columns[0], c->timed.kernel->name);
        table_fit(&t->columns[1], text);
        table_fit(&t->columns[2], distribution_get_name(c->timed.inputs));
        table_fit(&t->columns[3], timing_get_regime_name(c->regime));
        table_fit(&t->columns[4], "cache");
    }
    for (size_t i = 0; i < s->rival_count; i++)
        table_fit(&t->columns[0], s->rivals[i].name);
    t->rows = table_new(out, t->columns, BENCH_COLUMNS);
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
        fprintf(t->rows.out, "    %s\n", r->message);
}

void bench_print_head(FILE *out, const results_meta *m) {
    for (size_t i = 0; i < m->count; i++)
        fprintf(out, "# %s: %s\n", m->facts[i].key, m->facts[i].value);
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
        fprintf(out, "| %s ", titles[i]);
    fputs("|\n", out);
    for (int i = 0; i < BENCH_COLUMNS; i++)
        fputs(i >= FIRST_NUMBER && i <= LAST_NUMBER ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (size_t r = 0; r < count; r++) {
        char cells[BENCH_COLUMNS][128];
        format_row(&rows[r], cells);
        for (int i = 0; i < BENCH_COLUMNS; i++)
            fprintf(out, "| %s ", cells[i]);
        fputs("|\n", out);
    }
}
