/* part_times: the times of bench, with small drawings of each case: its samples as a histogram, its runs as a
 * line with the change from the run before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/measure/results.h"
#include "page.h"

/* Samples as a histogram ---------------------------------------------------------------------- */

enum { BINS = 20, BIN_WIDTH = 5, HEIGHT = 28 };

static void start_drawing(FILE *out, double width) {
    fprintf(out, "<td><svg class=\"small\" viewBox=\"0 0 %g %d\"><title>", width, HEIGHT);
}

static void print_samples(FILE *out, const timing_sample *samples, size_t count) {
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
    html(out, "%zu samples from %s to %s", count, format_time(low, from, sizeof from),
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

/* Runs as a line, with the change from the run before ----------------------------------------- */

enum { SHOWN_RUNS = 24, WIDTH = 120, EDGE = 4 };

typedef struct {
    const char *date, *hash;
    double median, low, high;
} run;

/* The runs of bench, one after the other, of one case. */
typedef struct {
    size_t count;
    run runs[];
} case_history;

/* In the order of the file, which only grows. */
static case_history *new_history(const store_folder *f, const char *name) {
    const store_file *file = store_find(f, STORE_HISTORY, NULL);
    size_t rows = file ? csv_count_rows(file->csv) : 0;
    case_history *h = array_new(1, sizeof *h + rows * sizeof *h->runs);
    for (size_t r = 0; r < rows; r++)
        if (strcmp(csv_find_text(file->csv, r, "case"), name) == 0)
            h->runs[h->count++] = (run){
                csv_find_text(file->csv, r, "date"), csv_find_text(file->csv, r, "kernel_hash"),
                csv_find_double(file->csv, r, "median_ns"), csv_find_double(file->csv, r, "low_ns"),
                csv_find_double(file->csv, r, "high_ns")};
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
    html(out, "%zu runs from %.10s (%s) to %.10s (%s)", count, runs[0].date,
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

static void print_trend(FILE *out, case_history *h) {
    if (h->count > 1) {
        print_line(out, h);
        print_change(out, &h->runs[h->count - 2], &h->runs[h->count - 1]);
    } else
        fputs("<td>-</td><td class=n>-</td>", out);
    free(h);
}

/* Times --------------------------------------------------------------------------------------- */

/* Kernel and, smaller, what else says under which conditions the time was taken. */
static void print_name(freshness *fresh, FILE *out, const result_row *r, bool is_mixed) {
    char changes[120];
    html(out, "<tr><td>%s<br><small>%s %s %s", r->kernel, r->shape, r->regime, r->cache);
    for (const char *p = r->labels; *p; p += strcspn(p, "+")) {
        p += *p == '+';
        html(out, ", %.*s", (int)strcspn(p, "+"), p);
    }
    if (r->message[0])
        html(out, ", not timed: %s", r->message);
    fputs("</small>", out);
    if (is_mixed && !r->message[0] && freshness_judge(fresh, r->made_of, changes, sizeof changes))
        html(out, " <span class=\"badge bad\">%s</span>", changes[0] ? "stale" : "origin unknown");
    fputs("</td>", out);
}

static void print_time(const page *p, FILE *out, const store_folder *f, const store_file *file,
                       const result_row *r, const result_case *c) {
    const file_origin *o = &file->origin; /* if all rows are stale, the line above says so */
    double median = r->gpu.count > 0 ? r->gpu.median : NAN;
    print_name(p->store->fresh, out, r, o->stale < o->rows && o->unknown < o->rows);
    html_print_time(out, median);
    html_print_number(out, r->pct_roof, " %");
    print_samples(out, c ? c->samples : NULL, c ? c->count : 0);
    print_trend(out, new_history(f, r->name));
    html_print_number(out, 100 * (r->gpu.q3 - r->gpu.q1) / median, " %");
    html_print_number(out, (double)r->gpu.count, "");
    html_print_number(out, r->gb_s, "");
    html_print_number(out, r->gflop_s, "");
    fputs("</tr>\n", out);
}

/* Another kernel was faster at the same: such rows of long files are left to the file. */
static bool is_beaten(const result_row *rows, size_t count, const result_row *r) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].gpu.count > 0 && rows[i].gpu.median < r->gpu.median &&
            strcmp(rows[i].op, r->op) == 0 && strcmp(rows[i].format, r->format) == 0 &&
            strcmp(rows[i].shape, r->shape) == 0 && strcmp(rows[i].regime, r->regime) == 0 &&
            strcmp(rows[i].cache, r->cache) == 0)
            return true;
    return false;
}

static void start_times(FILE *out, const store_folder *f, const store_file *file) {
    char caption[320];
    snprintf(caption, sizeof caption, "%.120s on %.120s%s", file->name, f->device,
             f->emulated ? " (emulated)" : "");
    fputs("<div class=\"less\"><label class=\"all\"><input type=\"checkbox\"> all columns</label>",
          out);
    html_start_table(
        out, caption,
        "case|the kernel; its shape; single, chained or independent launches, with a warm or a "
        "cold "
        "cache; labels",
        "#time|median GPU time",
        "#of roof|of the nearer one: bandwidth or arithmetic, measured in the same run",
        "samples|how many samples fell into each twentieth of their range",
        "history|medians over runs with 95 % intervals; a square: the source changed",
        "#last change|of the last run against the one before, and its interval",
        "#spread|distance between the quartiles, relative to the median", "#n|samples",
        "#GB/s|of the bytes that must be moved; 1 GB is 1e9 bytes", "#GFLOP/s", NULL);
}

static void print_times(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    enum { LONG = 60 };
    size_t count = csv_count_rows(file->csv), shown = 0;
    result_row *rows = array_new(count + 1, sizeof *rows);
    results_list samples = {.count = 0};
    bool has_samples = results_read(file->path, &samples, NULL);
    page_print_origin(out, file);
    start_times(out, f, file);
    for (size_t r = 0; r < count; r++)
        result_read_row(file->csv, r, &rows[r], NULL); /* the store has read it before */
    for (size_t r = 0; r < count; r++) {
        if (count > LONG && is_beaten(rows, count, &rows[r]))
            continue;
        shown++;
        print_time(p, out, f, file, &rows[r],
                   has_samples ? results_list_find(&samples, rows[r].name) : NULL);
    }
    html_end_table(out);
    fputs("</div><p>", out);
    if (shown < count)
        fputs("The fastest kernel of each op, format and shape. All: ", out);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    results_list_free(&samples);
    free(rows);
}

void page_print_times(const page *p, FILE *out, const store_folder *f) {
    for (const store_file *file = f->files; file < f->files + f->count; file++)
        if (file->kind == STORE_BENCH)
            print_times(p, out, f, file);
    if (!store_find(f, STORE_BENCH, NULL))
        page_print_note(out, "No kernels were timed one by one: `assay bench` does it.");
}
