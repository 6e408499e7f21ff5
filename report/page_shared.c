/* page_shared: what several parts of a page print: links to files, rows, charts. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/measure/results.h"
#include "page_parts.h"

enum { MAX_ROWS = 400 };

void page_print_file(const page *p, FILE *out, const store_folder *f, const char *name) {
    char path[PATH_MAX + 160], whole[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    html_print_link(out, p->folder, realpath(path, whole) ? whole : path, name);
}

void page_print_origin(FILE *out, const store_file *file) {
    const file_origin *o = &file->origin;
    char warning[320];
    if (o->rows == 0)
        return;
    file_origin_get_warning(o, warning, sizeof warning);
    fputs("<p class=\"dim\">", out);
    html_printf(out, "Commit %s%s, measured on %.10s. ", o->commits[0],
                o->commit_count > 1 ? " and others" : "", o->first);
    if (warning[0])
        html_print_badge(out, "bad",
                         o->stale > 0     ? "stale"
                         : o->unknown > 0 ? "origin unknown"
                         : o->dirty > 0   ? "uncommitted"
                                          : "several commits");
    html_printf(out, " %s", warning);
    fputs("</p>\n", out);
}

/* Rows ---------------------------------------------------------------------------------------- */

/* A cell that is a number, or nothing. */
static bool read_number(const char *text, double *out) {
    char *end;
    *out = NAN;
    if (!*text || strcmp(text, "-") == 0)
        return true;
    *out = strtod(text, &end);
    return *end == 0 && !isspace((unsigned char)*text) && !strpbrk(text, "xXpP");
}

static bool is_number_column(const csv_file *f, size_t column) {
    double value;
    bool is_any = false;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        if (!read_number(csv_get_text(f, r, column), &value))
            return false;
        is_any = is_any || !isnan(value);
    }
    return is_any;
}

static void print_cell(FILE *out, const char *text, bool is_number) {
    double value;
    char shown[48];
    if (!is_number || !read_number(text, &value)) {
        html_print_text_cell(out, text);
        return;
    }
    html_format_number(value, shown, sizeof shown);
    html_print_number_cell(out, value, shown);
}

/* Does this column have the same value in every row? */
static bool is_constant(const csv_file *c, size_t column) {
    for (size_t r = 1; r < csv_count_rows(c); r++)
        if (strcmp(csv_get_text(c, r, column), csv_get_text(c, 0, column)) != 0)
            return false;
    return csv_count_rows(c) > 1;
}

/* Columns that are empty in this file are left out, and those with the same value in every row are
 * printed once. `shown` gets the numbers of the others. */
static size_t choose_columns(FILE *out, const csv_file *c, size_t *shown) {
    size_t count = 0, said = 0;
    bool is_wide = results_has_rows(c);
    for (size_t i = 0; i < csv_count_columns(c); i++) {
        if (strcmp(csv_get_title(c, i), "made_of") == 0) /* for programs; its verdict is shown */
            continue;
        if (!is_wide || !is_constant(c, i)) {
            shown[count++] = i;
            continue;
        }
        const char *text = csv_get_text(c, 0, i);
        if (!*text)
            continue;
        fputs(said++ ? "; " : "<p class=\"dim\">The same in every row: ", out);
        html_printf(out, "%s %.200s", csv_get_title(c, i), text);
    }
    fputs(said ? ".</p>\n" : "", out);
    return count;
}

void page_print_rows(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    const csv_file *c = file->csv;
    size_t rows = csv_count_rows(c), *shown = array_new(csv_count_columns(c), sizeof *shown);
    html_column *heads = array_new(csv_count_columns(c), sizeof *heads);
    char caption[320];
    size_t count = choose_columns(out, c, shown);
    for (size_t i = 0; i < count; i++)
        heads[i] = (html_column){csv_get_title(c, shown[i]), is_number_column(c, shown[i]), NULL};
    snprintf(caption, sizeof caption, "%.120s on %.120s, %zu row%s", file->name, f->device, rows,
             rows == 1 ? "" : "s");
    html_start_table(out, heads, count, caption);
    for (size_t r = 0; r < rows && r < MAX_ROWS; r++) {
        fputs("<tr>", out);
        for (size_t i = 0; i < count; i++)
            print_cell(out, csv_get_text(c, r, shown[i]), heads[i].is_number);
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    if (rows > MAX_ROWS) {
        fprintf(out, "<p class=\"dim\">These are the first %d of %zu rows; all are in ", MAX_ROWS,
                rows);
        page_print_file(p, out, f, strrchr(file->path, '/') + 1);
        fputs(".</p>\n", out);
    }
    free(heads);
    free(shown);
}

/* Charts -------------------------------------------------------------------------------------- */

static void print_chart_links(const page *p, FILE *out, const store_folder *f, const char *name) {
    char png[160];
    fputs("<figcaption>", out);
    html_printf(out, "%s: ", f->device);
    page_print_file(p, out, f, name);
    snprintf(png, sizeof png, "%.*s.png", (int)(strlen(name) - 4), name);
    if (store_has(f, png)) {
        fputs(", ", out);
        page_print_file(p, out, f, png);
    }
    fputs("</figcaption>", out);
}

/* As an image: whatever the file contains cannot run, fetch or reach into the page. */
static void print_chart(const page *p, FILE *out, const store_folder *f, const char *what,
                        const char *name) {
    char path[PATH_MAX + 160], label[400];
    err why = {.code = EXIT_OK};
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    snprintf(label, sizeof label, "Chart of %.120s on %.120s", what, f->device);
    char *text = os_read_file(path, &bytes, &why);
    if (text && (!strstr(text, "<svg") || !strstr(text, "</svg>")))
        err_set(&why, EXIT_USAGE, "%.160s is not a whole SVG file", path);
    fputs("<figure>", out);
    if (why.text[0]) {
        fputs("<p class=\"note\">", out);
        html_print(out, why.text);
        fputs("</p>", out);
    } else {
        fputs("<div class=\"chart\">", out);
        html_print_image(out, "image/svg+xml", text, bytes, label);
        fputs("</div>", out);
    }
    print_chart_links(p, out, f, name);
    fputs("</figure>\n", out);
    free(text);
}

size_t page_print_charts(const page *p, FILE *out, const store_folder *f, const char *what) {
    const char *name;
    size_t count = 0;
    for (; (name = store_find_chart(f, what, count)); count++)
        print_chart(p, out, f, what, name);
    return count;
}
