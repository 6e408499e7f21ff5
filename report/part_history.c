/* part_history: how the times of bench developed: a trend per case, and verdicts against baselines. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/measure/comparison.h"
#include "page_parts.h"

/* Trends -------------------------------------------------------------------------------------- */

#define WIDTH 220.0
#define HEIGHT 44.0
#define EDGE 5.0

typedef struct {
    const char *date, *commit, *hash;
    double median, low, high;
} point;

static const char *get_cell(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

static double get_number(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value = NAN;
    return csv_find_column(f, title, &column, NULL) && csv_get_double(f, row, column, &value, NULL)
               ? value
               : NAN;
}

/* All runs of a case, in the order of the file, which only grows. */
static size_t list_points(const csv_file *f, const char *name, point *out) {
    size_t count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        if (strcmp(get_cell(f, r, "case"), name) == 0)
            out[count++] = (point){get_cell(f, r, "date"),        get_cell(f, r, "commit"),
                                   get_cell(f, r, "kernel_hash"), get_number(f, r, "median_ns"),
                                   get_number(f, r, "low_ns"),    get_number(f, r, "high_ns")};
    return count;
}

/* In the colour of the text: it follows the theme. A square is the first run of another source. */
static void print_trend(FILE *out, const char *name, const point *points, size_t count) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, points[i].low);
        most = fmax(most, points[i].high);
    }
    double middle = (least + most) / 2, span = fmax(most - least, 0.02 * middle);
    fprintf(
        out,
        "<td><svg class=\"trend\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
        "aria-label=\"",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    html_printf(out, "%.200s: %zu runs", name, count);
    fputs("\"><polyline fill=\"none\" stroke=\"currentColor\" stroke-width=\"1\" points=\"", out);
#define X(i) (EDGE + (double)(i) * (WIDTH - 2 * EDGE) / (double)(count > 1 ? count - 1 : 1))
#define Y(value) (HEIGHT / 2 - ((value)-middle) * (HEIGHT - 2 * EDGE) / span)
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%.1f,%.1f ", X(i), Y(points[i].median));
    fputs("\"/>", out);
    for (size_t i = 0; i < count; i++) {
        const point *p = &points[i];
        char text[64];
        bool is_other = i > 0 && strcmp(p->hash, points[i - 1].hash) != 0;
        fprintf(out,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\"/>",
                X(i), X(i), Y(p->low), Y(p->high));
        if (is_other)
            fprintf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"currentColor\">",
                    X(i) - 3.5, Y(p->median) - 3.5);
        else
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"currentColor\">", X(i),
                    Y(p->median));
        fputs("<title>", out);
        html_printf(out, "%.24s, commit %.32s: %s%s", p->date, p->commit,
                    format_time(p->median, text, sizeof text), is_other ? ", source changed" : "");
        fputs(is_other ? "</title></rect>" : "</title></circle>", out);
    }
#undef X
#undef Y
    fputs("</svg></td>", out);
}

static void print_case(FILE *out, const char *name, const point *points, size_t count) {
    const point *first = &points[0], *last = &points[count - 1];
    char text[64];
    double change = 100 * (last->median / first->median - 1);
    size_t sources = 1;
    for (size_t i = 1; i < count; i++)
        sources += strcmp(points[i].hash, points[i - 1].hash) != 0;
    fputs("<tr>", out);
    html_print_text_cell(out, name);
    print_trend(out, name, points, count); /* second, so that a phone shows it */
    snprintf(text, sizeof text, "%+.1f %%", change);
    html_print_number_cell(out, change, text);
    html_format_number((double)count, text, sizeof text);
    html_print_number_cell(out, (double)count, text);
    html_format_number((double)sources, text, sizeof text);
    html_print_number_cell(out, (double)sources, text);
    html_print_number_cell(out, first->median, format_time(first->median, text, sizeof text));
    html_print_number_cell(out, last->median, format_time(last->median, text, sizeof text));
    fputs("</tr>\n", out);
}

static bool is_first(const csv_file *f, size_t row) {
    const char *name = get_cell(f, row, "case");
    for (size_t r = 0; r < row; r++)
        if (strcmp(get_cell(f, r, "case"), name) == 0)
            return false;
    return true;
}

static void print_history(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    static const html_column columns[] = {
        {"case", false, NULL},
        {"trend", false, "medians over runs with 95 % intervals; a square: the source changed"},
        {"change", true, "of the last against the first"},
        {"runs", true, NULL},
        {"sources", true, "versions of the kernel's source that were timed, one after the other"},
        {"first", true, "median of the first run"},
        {"last", true, "median of the last run"}};
    size_t rows = csv_count_rows(file->csv), shown = 0, once = 0;
    point *points = array_new(rows + 1, sizeof *points);
    char caption[240];
    snprintf(caption, sizeof caption, "Trends on %.160s%s", f->device,
             f->emulated ? " (emulated)" : "");
    for (size_t r = 0; r < rows; r++) {
        if (!is_first(file->csv, r))
            continue;
        size_t count = list_points(file->csv, get_cell(file->csv, r, "case"), points);
        if (count < 2) {
            once++;
            continue;
        }
        if (shown++ == 0)
            html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
        print_case(out, get_cell(file->csv, r, "case"), points, count);
    }
    if (shown > 0)
        html_end_table(out);
    fputs("<p class=\"dim\">", out);
    if (once > 0)
        fprintf(out,
                "%zu case%s timed once so far: a second <code>assay bench</code> starts a trend. ",
                once, once == 1 ? " was" : "s were");
    fputs("Every run: ", out);
    page_print_file(p, out, f, strrchr(file->path, '/') + 1);
    fputs("</p>\n", out);
    free(points);
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

static void print_baselines(FILE *out, const store_folder *f, const store_file *file) {
    char folder[PATH_MAX + 16], path[2 * PATH_MAX];
    struct dirent **names = NULL;
    snprintf(folder, sizeof folder, "%s/baselines", f->path);
    int count = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name, *base = path, *now = file->path;
        comparison_list l = {NULL, 0};
        err why = {.code = EXIT_OK};
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (is_baseline(name) && comparison_read(&base, 1, &now, 1, CLOCK_GPU, &l, &why)) {
            char title[200];
            snprintf(title, sizeof title, "%.*s", (int)strlen(name) - 4, name);
            print_verdicts(out, title, &l);
        } else if (why.text[0]) {
            fputs("<p class=\"note\">", out);
            html_print(out, why.text);
            fputs("</p>\n", out);
        }
        comparison_free(&l);
        free(names[i]);
    }
    free(names);
}

void page_print_history(const page *p, FILE *out, const store_folder *f, const store_file *bench) {
    for (size_t i = 0; i < f->count; i++)
        if (f->files[i].kind == STORE_HISTORY)
            print_history(p, out, f, &f->files[i]);
    print_baselines(out, f, bench);
}
