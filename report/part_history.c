/* part_history: small drawings of the cases of bench: samples as a histogram, runs as a line with the
 * change from the run before, and verdicts against baselines. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/measure/comparison.h"
#include "page_parts.h"

/* Samples ------------------------------------------------------------------------------------- */

enum { BINS = 20, BIN_WIDTH = 5, HEIGHT = 28 };

static void start_drawing(FILE *out, double width) {
    fprintf(out, "<td><svg class=\"small\" viewBox=\"0 0 %g %d\"><title>", width, HEIGHT);
}

void page_print_samples(FILE *out, const timing_sample *samples, size_t count) {
    double low = INFINITY, high = 0;
    size_t bins[BINS] = {0}, most = 1;
    char from[32], to[32];
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, samples[i].gpu_ns);
        high = fmax(high, samples[i].gpu_ns);
    }
    if (count < 2) {
        fputs("<td>-</td>", out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = high > low ? (size_t)((double)BINS * (samples[i].gpu_ns - low) / (high - low))
                               : BINS / 2;
        size_t *bin = &bins[at < BINS ? at : BINS - 1];
        most = ++*bin > most ? *bin : most;
    }
    start_drawing(out, BINS * BIN_WIDTH);
    html_printf(out, "%zu samples from %s to %s", count, format_time(low, from, sizeof from),
                format_time(high, to, sizeof to));
    fprintf(out, "</title><path d=\"M0 %d", HEIGHT);
    for (size_t i = 0, last = 0; i < BINS; last = bins[i++]) {
        if (bins[i] != last)
            fprintf(out, "V%.0f", (double)HEIGHT * (1 - (double)bins[i] / (double)most));
        if (i + 1 == BINS || bins[i + 1] != bins[i])
            fprintf(out, "H%zu", (i + 1) * BIN_WIDTH);
    }
    fprintf(out, "V%dz\"/></svg></td>", HEIGHT);
}

/* Runs ---------------------------------------------------------------------------------------- */

enum { SHOWN_RUNS = 24, WIDTH = 120, EDGE = 4 };

typedef struct {
    const char *date, *hash;
    double median, low, high;
} run;

struct case_history {
    size_t count;
    run runs[];
};

/* In the order of the file, which only grows. */
case_history *page_new_history(const store_folder *f, const char *name) {
    const store_file *file = store_find(f, STORE_HISTORY, NULL);
    size_t rows = file ? csv_count_rows(file->csv) : 0;
    case_history *h = array_new(1, sizeof *h + rows * sizeof *h->runs);
    for (size_t r = 0; r < rows; r++)
        if (strcmp(page_get_cell(file->csv, r, "case"), name) == 0)
            h->runs[h->count++] = (run){
                page_get_cell(file->csv, r, "date"), page_get_cell(file->csv, r, "kernel_hash"),
                page_get_number(file->csv, r, "median_ns"), page_get_number(file->csv, r, "low_ns"),
                page_get_number(file->csv, r, "high_ns")};
    return h;
}

/* Medians as a line, 95 % intervals as strokes, a square where the source changed. */
static void print_line(FILE *out, const case_history *h) {
    size_t first = h->count > SHOWN_RUNS ? h->count - SHOWN_RUNS : 0, count = h->count - first;
    const run *runs = h->runs + first, *last = &runs[count - 1];
    double least = INFINITY, most = 0, step = (double)(WIDTH - 2 * EDGE) / (double)(count - 1);
    char from[32], to[32];
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, runs[i].low);
        most = fmax(most, runs[i].high);
    }
    double middle = (least + most) / 2,
           scale = (HEIGHT - 2 * EDGE) / fmax(most - least, 0.02 * middle);
#define Y(value) (HEIGHT / 2 - ((value)-middle) * scale)
    start_drawing(out, WIDTH);
    html_printf(out, "%zu runs from %.10s (%s) to %.10s (%s)", count, runs[0].date,
                format_time(runs[0].median, from, sizeof from), last->date,
                format_time(last->median, to, sizeof to));
    fputs("</title><path class=\"line\" d=\"", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%c%.0f %.1f", i ? 'L' : 'M', (double)EDGE + (double)i * step,
                Y(runs[i].median));
    for (size_t i = 0; i < count; i++)
        fprintf(out, "M%.0f %.1fV%.1f", (double)EDGE + (double)i * step, Y(runs[i].low),
                Y(runs[i].high));
    fputs("\"/><path d=\"", out);
    for (size_t i = 1; i < count; i++)
        if (strcmp(runs[i].hash, runs[i - 1].hash) != 0)
            fprintf(out, "M%.0f %.1fh6v6h-6z", (double)EDGE + (double)i * step - 3,
                    Y(runs[i].median) - 3);
#undef Y
    fputs("\"/></svg></td>", out);
}

/* Of the last run against the one before; the interval is that of both medians' intervals. */
static void print_change(FILE *out, const run *was, const run *is) {
    double change = 100 * (is->median / was->median - 1);
    double low = 100 * (is->low / was->high - 1), high = 100 * (is->high / was->low - 1);
    fprintf(out, "<td class=\"n%s\" data-v=%.4g>%+.1f %%<br><small>%+.1f to %+.1f</small></td>",
            low > 0    ? " slower"
            : high < 0 ? " faster"
                       : "",
            change, change, low, high);
}

void page_print_trend(FILE *out, case_history *h) {
    if (h->count > 1) {
        print_line(out, h);
        print_change(out, &h->runs[h->count - 2], &h->runs[h->count - 1]);
    } else
        fputs("<td>-</td><td class=n>-</td>", out);
    free(h);
}

/* Baselines ----------------------------------------------------------------------------------- */

static void print_verdict(FILE *out, const comparison_row *r) {
    const verdict_case *c = &r->test;
    char text[96];
    const char *kind = c->verdict == VERDICT_SAME || c->verdict == VERDICT_FASTER      ? "good"
                       : c->verdict == VERDICT_SLOWER || c->verdict == VERDICT_MISSING ? "bad"
                                                                                       : "unknown";
    fputs("<tr>", out);
    html_print_text_cell(out, r->key);
    fputs("<td>", out);
    html_print_badge(out, kind, verdict_get_name(c->verdict));
    fputs("</td>", out);
    html_print_number_cell(out, c->base_median, format_time(c->base_median, text, sizeof text));
    html_print_number_cell(out, c->now_median, format_time(c->now_median, text, sizeof text));
    html_format_number(c->interval.ratio, text, sizeof text);
    html_print_number_cell(out, c->interval.ratio, text);
    snprintf(text, sizeof text, "%.3f to %.3f", c->interval.low, c->interval.high);
    html_print_text_cell(out, isnan(c->interval.ratio) ? "-" : text);
    fputs("<td class=\"wide\">", out);
    html_print(out, r->note);
    fputs("</td></tr>\n", out);
}

static void print_verdicts(FILE *out, const char *name, comparison_list *l) {
    static const html_column columns[] = {
        {"case", false, NULL},
        {"verdict", false, "as `assay compare` gives it, with a smallest effect of 3 %"},
        {"baseline", true, NULL},
        {"now", true, NULL},
        {"ratio", true, NULL},
        {"99 % interval", false, NULL},
        {"note", false, NULL}};
    size_t counts[VERDICT_COUNT] = {0};
    char caption[200];
    comparison_decide(l, 0.03, 1);
    snprintf(caption, sizeof caption, "Against the baseline %.120s", name);
    html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
    for (size_t i = 0; i < l->count; i++) {
        print_verdict(out, &l->rows[i]);
        counts[l->rows[i].test.verdict]++;
    }
    html_end_table(out);
    fputs("<p class=\"dim\">", out);
    for (int v = 0; v < VERDICT_COUNT; v++)
        fprintf(out, "%s%zu %s", v ? ", " : "", counts[v], verdict_get_name((verdict_kind)v));
    fputs("</p>\n", out);
}

static bool is_baseline(const char *name) {
    size_t length = strlen(name);
    return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".csv") == 0 &&
           !strstr(name, ".samples.csv");
}

void page_print_baselines(FILE *out, const store_folder *f, const store_file *bench) {
    char folder[PATH_MAX + 16], path[2 * PATH_MAX];
    struct dirent **names = NULL;
    snprintf(folder, sizeof folder, "%s/baselines", f->path);
    int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name, *base = path, *now = bench->path;
        comparison_list l = {NULL, 0};
        err why = {.code = EXIT_OK};
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (is_baseline(name) && comparison_read(&base, 1, &now, 1, CLOCK_GPU, &l, &why)) {
            char title[200];
            snprintf(title, sizeof title, "%.*s", (int)strlen(name) - 4, name);
            print_verdicts(out, title, &l);
        } else if (why.text[0])
            page_print_note(out, why.text);
        comparison_free(&l);
        free(names[i]);
    }
    free(names);
}
