/* part_times: the times of bench, with small drawings of each case: its samples as a histogram, its runs as a
 * line with the change from the run before; and what changed since the commit before, for the top of the page. */
#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/measure/results.h"
#include "page.h"

/* Samples as a histogram ---------------------------------------------------------------------- */

enum { BINS = 20, BIN_WIDTH = 5, HEIGHT = 28 };

typedef struct {
    const timing_sample *items;
    size_t count;
    const char *name; /* of what the case is compared with */
    double low, high;
} sample_set;

static sample_set new_set(const result_case *c, const char *name) {
    sample_set s = {c ? c->samples : NULL, c ? c->count : 0, name, INFINITY, 0};
    for (size_t i = 0; i < s.count; i++) {
        s.low = fmin(s.low, s.items[i].gpu_ns);
        s.high = fmax(s.high, s.items[i].gpu_ns);
    }
    return s;
}

static void start_drawing(FILE *out, double width) {
    fprintf(out, "<svg class=\"small\" role=\"img\" viewBox=\"0 0 %g %d\"><title>", width, HEIGHT);
}

/* From `foot` upwards, or, if the height is below 0, downwards. */
static void print_histogram(FILE *out, const sample_set *s, double low, double high, double foot,
                            double height) {
    size_t bins[BINS] = {0}, most = 1;
    for (size_t i = 0; i < s->count; i++) {
        size_t at = high > low ? (size_t)((double)BINS * (s->items[i].gpu_ns - low) / (high - low))
                               : BINS / 2;
        size_t *bin = &bins[at < BINS ? at : BINS - 1];
        most = ++*bin > most ? *bin : most;
    }
    fprintf(out, "d=\"M0 %.0f", foot);
    for (size_t i = 0, last = 0; i < BINS; last = bins[i++]) {
        if (bins[i] != last)
            fprintf(out, "V%.0f", foot - height * (double)bins[i] / (double)most);
        if (i + 1 == BINS || bins[i + 1] != bins[i])
            fprintf(out, "H%zu", (i + 1) * BIN_WIDTH);
    }
    fprintf(out, "V%.0fz\"/>", foot);
}

/* What it is compared with below, on the same axis. */
static void print_samples(FILE *out, const sample_set *now, const sample_set *base) {
    const bool has_base = base->count > 1;
    const double low = has_base ? fmin(now->low, base->low) : now->low,
                 high = has_base ? fmax(now->high, base->high) : now->high;
    char from[HTML_NUMBER], to[HTML_NUMBER];
    if (now->count < 2) {
        fputs("<td>-</td>", out);
        return;
    }
    fputs("<td>", out);
    start_drawing(out, BINS * BIN_WIDTH);
    html(out, "%zu samples from %s to %s", now->count, html_format_time(now->low, from),
         html_format_time(now->high, to));
    if (has_base)
        html(out, "; below: %zu of %s from %s to %s", base->count, base->name,
             html_format_time(base->low, from), html_format_time(base->high, to));
    fputs("</title><path ", out);
    print_histogram(out, now, low, high, has_base ? HEIGHT / 2 : HEIGHT,
                    has_base ? HEIGHT / 2 : HEIGHT);
    if (has_base) {
        fputs("<path class=\"base\" ", out);
        print_histogram(out, base, low, high, HEIGHT / 2, -HEIGHT / 2);
    }
    fputs("</svg>", out);
    if (has_base)
        html(out, "<small>below: %s</small>", base->name);
    fputs("</td>", out);
}

/* What `assay bench --save` kept beside the results of a device. */
static results_list *read_baselines(const store_folder *f, size_t *count) {
    char path[PATH_MAX + 32];
    glob_t found;
    snprintf(path, sizeof path, "%s/baselines/*.samples.csv", f->path);
    *count = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    results_list *lists = array_new(*count + 1, sizeof *lists);
    for (size_t i = 0; i < *count; i++) {
        const char *samples = found.gl_pathv[i];
        snprintf(path, sizeof path, "%.*s.csv", (int)(strlen(samples) - strlen(".samples.csv")),
                 samples);
        if (!results_read(path, &lists[i], NULL))
            lists[i] = (results_list){.count = 0};
    }
    globfree(&found);
    return lists;
}

static bool is_same_work(const result_row *a, const result_row *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->format, b->format) == 0 &&
           strcmp(a->shape, b->shape) == 0 && strcmp(a->regime, b->regime) == 0 &&
           strcmp(a->cache, b->cache) == 0;
}

/* A kernel of others (FILE.metal:KERNEL) that was timed interleaved with it, else what was saved last before it. */
static sample_set find_base(const results_list *timed, const results_list *saved, size_t count,
                            const result_row *r) {
    const result_case *best = NULL;
    for (size_t i = 0; i < timed->count && !strstr(r->kernel, ".metal:"); i++)
        if (strstr(timed->cases[i].row.kernel, ".metal:") && is_same_work(&timed->cases[i].row, r))
            best = &timed->cases[i];
    if (best)
        return new_set(best, best->row.kernel);
    for (size_t i = 0; i < count; i++) {
        const result_case *c = results_list_find(&saved[i], r->name);
        if (c && strcmp(c->row.device, r->device) == 0 && strcmp(c->row.date, r->date) < 0 &&
            (!best || strcmp(c->row.date, best->row.date) > 0))
            best = c;
    }
    return new_set(best, best ? best->row.samples : NULL);
}

/* Runs as a line, with the change from the run before ----------------------------------------- */

enum { SHOWN_RUNS = 24, WIDTH = 120, EDGE = 4 };

typedef struct {
    const char *date, *commit, *hash, *labels;
    double median, low, high;
} run;

static run read_run(const csv_file *c, size_t row) {
    return (run){csv_find_text(c, row, "date"),        csv_find_text(c, row, "commit"),
                 csv_find_text(c, row, "kernel_hash"), csv_find_text(c, row, "labels"),
                 csv_find_double(c, row, "median_ns"), csv_find_double(c, row, "low_ns"),
                 csv_find_double(c, row, "high_ns")};
}

/* b against a, in percent: the interval is that of both medians' intervals. */
static double find_change(const run *a, const run *b, double *low, double *high) {
    *low = 100 * (b->low / a->high - 1);
    *high = 100 * (b->high / a->low - 1);
    return 100 * (b->median / a->median - 1);
}

/* Medians as a line, 95 % intervals as strokes, a square where the source changed. */
static void print_line(FILE *out, const run *runs, size_t count) {
    const run *last = &runs[count - 1];
    double least = INFINITY, most = 0, step = (double)(WIDTH - 2 * EDGE) / (double)(count - 1);
    char from[HTML_NUMBER], to[HTML_NUMBER];
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, runs[i].low);
        most = fmax(most, runs[i].high);
    }
    double middle = (least + most) / 2,
           scale = (HEIGHT - 2 * EDGE) / fmax(most - least, 0.02 * middle);
#define Y(value) (HEIGHT / 2 - ((value)-middle) * scale)
    fputs("<td>", out);
    start_drawing(out, WIDTH);
    html(out, "%zu runs from %.10s (%s) to %.10s (%s)", count, runs[0].date,
         html_format_time(runs[0].median, from), last->date, html_format_time(last->median, to));
    fputs("</title><path class=\"line\" d=\"", out);
    for (size_t i = 0; i < count; i++) /* down and up are the interval */
        fprintf(out, "%c%.0f %.1fV%.1fV%.1fV%.1f", i ? 'L' : 'M', (double)EDGE + (double)i * step,
                Y(runs[i].median), Y(runs[i].low), Y(runs[i].high), Y(runs[i].median));
    fputs("\"/><path d=\"", out);
    for (size_t i = 1; i < count; i++)
        if (strcmp(runs[i].hash, runs[i - 1].hash) != 0)
            fprintf(out, "M%.0f %.1fh6v6h-6z", (double)EDGE + (double)i * step - 3,
                    Y(runs[i].median) - 3);
#undef Y
    fputs("\"/></svg></td>", out);
}

/* Of the last run against the one before. */
static void print_change(FILE *out, const run *was, const run *is) {
    double low, high, change = find_change(was, is, &low, &high);
    fprintf(out, "<td class=\"n%s\" data-v=%.4g>%+.1f %%<br><small>%+.1f to %+.1f</small></td>",
            low > 0    ? " slower"
            : high < 0 ? " faster"
                       : "",
            change, change, low, high);
}

static void print_trend(FILE *out, const store_folder *f, const store_file *of, const char *name) {
    char path[sizeof of->name + 16];
    snprintf(path, sizeof path, "%s.history", of->name);
    const store_file *file = store_find(f, STORE_HISTORY, path);
    const size_t rows = file ? csv_count_rows(file->csv) : 0;
    run *runs = array_new(rows + 1, sizeof *runs);
    size_t count = 0;
    for (size_t r = 0; r < rows; r++) /* in the order of the file, which only grows */
        if (strcmp(csv_find_text(file->csv, r, "case"), name) == 0)
            runs[count++] = read_run(file->csv, r);
    const size_t shown = count < SHOWN_RUNS ? count : SHOWN_RUNS;
    if (count > 1) {
        print_line(out, runs + count - shown, shown);
        print_change(out, &runs[count - 2], &runs[count - 1]);
    } else
        fputs("<td>-</td><td class=n>-</td>", out);
    free(runs);
}

/* What changed -------------------------------------------------------------------------------- */

/* The last row of a case (NULL: of any) before `end`, in a commit or, if is_other, in any other; SIZE_MAX: there is none. */
static size_t find_last(const csv_file *c, size_t end, const char *name, const char *commit,
                        bool is_other) {
    size_t row = end;
    while (row-- > 0 && ((strcmp(csv_find_text(c, row, "commit"), commit) == 0) == is_other ||
                         (name && strcmp(csv_find_text(c, row, "case"), name) != 0)))
        ;
    return row;
}

/* Cases of the last commit against their last run in the commit before. One has changed if its medians are more than
 * 3 % apart and their intervals do not meet. */
static void print_history(FILE *out, const store_folder *f, const store_file *file) {
    const csv_file *c = file->csv;
    const size_t rows = csv_count_rows(c), last = find_last(c, rows, NULL, "", true);
    const char *now = last < rows ? csv_find_text(c, last, "commit") : "", *worst = NULL;
    const size_t before = find_last(c, rows, NULL, now, true);
    const char *was = before < rows ? csv_find_text(c, before, "commit") : "";
    size_t faster = 0, slower = 0, same = 0, disturbed = 0;
    double most = 3, low, high;
    for (size_t r = before < rows ? rows : 0; r-- > 0;) {
        const char *name = csv_find_text(c, r, "case");
        const size_t base = strcmp(csv_find_text(c, r, "commit"), now) == 0 &&
                                    find_last(c, rows, name, now, false) == r
                                ? find_last(c, r, name, was, false)
                                : SIZE_MAX;
        if (base == SIZE_MAX)
            continue;
        const run a = read_run(c, base), b = read_run(c, r);
        const double change = find_change(&a, &b, &low, &high);
        const bool is_known = !timing_find_suspicion(a.labels) && !timing_find_suspicion(b.labels);
        const bool is_slower = is_known && change > 3 && low > 0;
        disturbed += !is_known;
        slower += is_slower;
        faster += is_known && change < -3 && high < 0;
        same += is_known && !is_slower && !(change < -3 && high < 0);
        if (is_slower && change > most) {
            most = change;
            worst = name;
        }
    }
    if (faster + slower + same + disturbed == 0)
        return;
    html(
        out,
        "<p>%s, %.*s: <strong>%zu faster, %zu slower</strong> since commit %.12s of %.10s, by more "
        "than 3 %%; %zu unchanged, %zu disturbed",
        f->device, (int)strcspn(file->name, "."), file->name, faster, slower, was,
        csv_find_text(c, before, "date"), same, disturbed);
    html(out, worst ? ". Slowest: <code>%s</code> %+.1f %%.</p>\n" : ".</p>\n", worst, most);
}

void page_print_changes(const page *p, FILE *out) {
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++)
        for (size_t i = 0; i < f->count; i++)
            if (f->files[i].kind == STORE_HISTORY)
                print_history(out, f, &f->files[i]);
}

/* Times --------------------------------------------------------------------------------------- */

/* Kernel and, smaller, what else says under which conditions the time was taken. */
static void print_name(freshness *fresh, FILE *out, const result_row *r, bool is_mixed) {
    char changes[120];
    fputs("<tr><td>", out);
    html_print_name(out, r->kernel);
    html(out, "<br><small>%s %s %s%s%s", r->shape, r->regime, r->cache, *r->labels ? ", " : "",
         r->labels);
    if (r->message[0])
        html(out, ", not timed: %s", r->message);
    fputs("</small>", out);
    if (is_mixed && !r->message[0] && freshness_judge(fresh, r->made_of, changes, sizeof changes))
        html(out, " <span class=\"badge bad\">%s</span>", changes[0] ? "stale" : "origin unknown");
    fputs("</td>", out);
}

static void print_time(const page *p, FILE *out, const store_folder *f, const store_file *file,
                       const result_row *r, const results_list *timed, sample_set base) {
    const sample_set now = new_set(results_list_find(timed, r->name), NULL);
    const file_origin *o = &file->origin; /* if all rows are stale, the line above says so */
    double median = r->gpu.count > 0 ? r->gpu.median : NAN;
    print_name(p->store->fresh, out, r, o->stale < o->rows && o->unknown < o->rows);
    if (strcmp(r->op, "model") == 0)
        html_print_number(out, round(page_get_rate(r->variant, r->wall.median)), " tok/s");
    else
        html_print_time(out, median);
    html_print_number(out, r->pct_roof, " %");
    print_samples(out, &now, &base);
    print_trend(out, f, file, r->name);
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
            is_same_work(&rows[i], r))
            return true;
    return false;
}

static void print_times(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    size_t count = csv_count_rows(file->csv), shown = 0;
    result_row *rows = array_new(count + 1, sizeof *rows);
    results_list samples = {.count = 0};
    char caption[320];
    size_t saved_count;
    results_list *saved = read_baselines(f, &saved_count);
    if (!results_read(file->path, &samples, NULL))
        samples = (results_list){.count = 0};
    page_print_origin(out, file);
    snprintf(caption, sizeof caption, "%.120s on %.120s%s", file->name, f->device,
             f->emulated ? " (emulated)" : "");
    fputs("<div class=\"less\"><label class=\"all\"><input type=\"checkbox\"> all columns</label>",
          out);
    html_start_table(
        out, caption,
        "case|the kernel; its shape; how launches follow each other; the cache; labels",
        "#time|median GPU time; of a model, tokens per second of wall time",
        "#of roof|of the nearer one: bandwidth or arithmetic, measured in the same run",
        "samples|upwards; downwards those of a rival timed interleaved or of a saved baseline",
        "history|medians over runs with 95 % intervals; a square: the source changed",
        "#last change|of the last run against the one before, and its interval",
        "#spread|distance between the quartiles, relative to the median", "#n|samples",
        "#GB/s|of the bytes that must be moved; 1 GB is 1e9 bytes", "#GFLOP/s", NULL);
    for (size_t r = 0; r < count; r++)
        result_read_row(file->csv, r, &rows[r], NULL); /* the store has read it before */
    for (size_t r = 0; r < count; r++) {
        if (count > 60 && is_beaten(rows, count, &rows[r]))
            continue;
        shown++;
        print_time(p, out, f, file, &rows[r], &samples,
                   find_base(&samples, saved, saved_count, &rows[r]));
    }
    html_end_table(out);
    fputs("</div><p>", out);
    if (shown < count)
        fputs("The fastest kernel of each op, format and shape. All: ", out);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    results_list_free(&samples);
    while (saved_count > 0)
        results_list_free(&saved[--saved_count]);
    free(saved);
    free(rows);
}

/* The last run first. */
static int compare_dates(const void *a, const void *b) {
    const store_file *const *x = a, *const *y = b;
    const int order = strcmp(csv_find_meta((*y)->csv, "date"), csv_find_meta((*x)->csv, "date"));
    return order ? order : strcmp((*x)->name, (*y)->name);
}

void page_print_times(const page *p, FILE *out, const store_folder *f) {
    const store_file **files = array_new(f->count + 1, sizeof *files);
    size_t count = 0;
    for (const store_file *file = f->files; file < f->files + f->count; file++)
        if (file->kind == STORE_BENCH)
            files[count++] = file;
    qsort(files, count, sizeof *files, compare_dates);
    for (size_t i = 0; i < count; i++)
        print_times(p, out, f, files[i]);
    free(files);
    if (count == 0)
        page_print_note(out, "No kernels were timed one by one: `assay bench` does it.");
}
