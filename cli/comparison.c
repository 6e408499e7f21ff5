/* comparison: see comparison.h. */
#include "comparison.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/table.h"

enum { COLUMNS = 7, VERDICT_COLUMN = 1 };
static const char *const titles[COLUMNS] = {"case",  "verdict",  "base us", "now us",
                                            "ratio", "interval", "note"};

comparison_row *comparison_add(comparison_list *l, const char *key) {
    l->rows = realloc(l->rows, (l->count + 1) * sizeof *l->rows);
    assert(l->rows);
    comparison_row *r = &l->rows[l->count++];
    *r = (comparison_row){.note = ""};
    snprintf(r->key, sizeof r->key, "%s", key);
    return r;
}

static void note(comparison_row *r, const char *side, const char *label) {
    size_t used = strlen(r->note);
    snprintf(r->note + used, sizeof r->note - used, "%s%s was %s", used ? ", " : "", side, label);
}

void comparison_add_run(comparison_row *r, comparison_side *side, const timing_sample *samples,
                        size_t count, timing_clock clock, const char *labels) {
    if (count == 0)
        return;
    const char *suspicion = labels ? timing_find_suspicion(labels) : NULL;
    side->samples = realloc(side->samples, (side->count + count) * sizeof *side->samples);
    side->runs = realloc(side->runs, (side->run_count + 1) * sizeof *side->runs);
    assert(side->samples && side->runs);
    for (size_t i = 0; i < count; i++)
        side->samples[side->count++] = timing_get_clock(&samples[i], clock);
    side->runs[side->run_count++] = count;
    if (suspicion && side->suspect++ == 0)
        note(r, side == &r->base ? "base" : "now", suspicion);
}

void comparison_free(comparison_list *l) {
    for (size_t i = 0; i < l->count; i++) {
        free(l->rows[i].base.samples);
        free(l->rows[i].base.runs);
        free(l->rows[i].now.samples);
        free(l->rows[i].now.runs);
    }
    free(l->rows);
    *l = (comparison_list){NULL, 0};
}

/* A disturbance that comes and goes makes runs differ, and that counts; one that a single run or all
 * runs of one side had looks like a change. */
static const char *find_doubt(const comparison_side *base, const comparison_side *now) {
    if (base->run_count <= 1 && now->run_count <= 1 && base->suspect + now->suspect > 0)
        return "a run was disturbed (busy, throttled or ramp): time both interleaved (bench "
               "--baseline FOLDER), take several runs per side, or wait for a quiet machine";
    if ((base->suspect == base->run_count) != (now->suspect == now->run_count))
        return "all runs of one side were disturbed (busy, throttled or ramp), and not all of the "
               "other: take runs of both in turn";
    return NULL;
}

static verdict_case make_test(const comparison_row *r) {
    verdict_case c = r->test;
    const comparison_side *base = &r->base, *now = &r->now;
    c.base = base->samples;
    c.now = now->samples;
    c.base_count = base->count;
    c.now_count = now->count;
    c.base_runs = base->runs;
    c.now_runs = now->runs;
    c.base_run_count = base->run_count;
    c.now_run_count = now->run_count;
    if (!c.obstacle && !c.paired && base->run_count > 0 && now->run_count > 0)
        c.obstacle = find_doubt(base, now);
    return c;
}

static void decide(comparison_list *l, const comparison_options *o) {
    verdict_case *all = calloc(l->count + 1, sizeof *all);
    assert(all);
    for (size_t i = 0; i < l->count; i++)
        all[i] = make_test(&l->rows[i]);
    verdict_decide(all, l->count, o->min_effect, o->seed);
    for (size_t i = 0; i < l->count; i++)
        l->rows[i].test = all[i];
    free(all);
}

static void format_number(char cell[320], int digits, double value) {
    if (isnan(value))
        snprintf(cell, 320, "-");
    else
        snprintf(cell, 320, "%.*g", digits, value);
}

static void format_cells(const comparison_row *r, char cells[COLUMNS][320]) {
    const verdict_case *t = &r->test;
    snprintf(cells[0], 320, "%s", r->key);
    snprintf(cells[1], 320, "%s", verdict_get_name(t->verdict));
    format_number(cells[2], 4, t->base_median * 1e-3);
    format_number(cells[3], 4, t->now_median * 1e-3);
    format_number(cells[4], 4, t->interval.ratio);
    snprintf(cells[5], 320, "%.3f to %.3f", t->interval.low, t->interval.high);
    if (isnan(t->interval.ratio))
        snprintf(cells[5], 320, "-");
    snprintf(cells[6], 320, "%s", r->note);
}

static void print_markdown(const comparison_list *l, FILE *out) {
    for (int i = 0; i < COLUMNS; i++)
        fprintf(out, "| %s ", titles[i]);
    fputs("|\n|---|---|---:|---:|---:|---|---|\n", out);
    for (size_t i = 0; i < l->count; i++) {
        char cells[COLUMNS][320];
        format_cells(&l->rows[i], cells);
        for (int c = 0; c < COLUMNS; c++)
            fprintf(out, "| %s ", cells[c]);
        fputs("|\n", out);
    }
}

static void print_table(const comparison_list *l, const comparison_options *o, FILE *out) {
    table_column columns[COLUMNS];
    char cells[COLUMNS][320];
    for (int c = 0; c < COLUMNS; c++)
        columns[c] = (table_column){.title = titles[c], .right = c >= 2 && c <= 4};
    for (size_t i = 0; i < l->count; i++) {
        format_cells(&l->rows[i], cells);
        for (int c = 0; c < COLUMNS; c++)
            table_fit(&columns[c], cells[c]);
    }
    table t = {out, columns, COLUMNS, table_wants_colour(out)};
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
            fprintf(out, "    %s\n", text);
    }
}

exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out) {
    size_t counts[VERDICT_COUNT] = {0};
    decide(l, o);
    if (o->markdown)
        print_markdown(l, out);
    else
        print_table(l, o, out);
    for (size_t i = 0; i < l->count; i++)
        counts[l->rows[i].test.verdict]++;
    fputs(o->markdown ? "\n" : "", out);
    for (int v = 0; v < VERDICT_COUNT; v++)
        fprintf(out, "%s%zu %s", v ? ", " : "", counts[v], verdict_get_name((verdict_kind)v));
    fputc('\n', out);
    size_t compared = counts[VERDICT_SAME] + counts[VERDICT_FASTER];
    if (counts[VERDICT_SLOWER] > 0)
        return EXIT_REGRESSION;
    return counts[VERDICT_AMBIGUOUS] + counts[VERDICT_MISSING] > 0 || compared == 0
               ? EXIT_INCONCLUSIVE
               : EXIT_OK;
}
