/* page_shared: what several parts of a page print: links to files, origins, devices, charts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "page_parts.h"

const char *page_get_cell(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

double page_get_number(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value = NAN;
    return csv_find_column(f, title, &column, NULL) && csv_get_double(f, row, column, &value, NULL)
               ? value
               : NAN;
}

void page_print_note(FILE *out, const char *sentence) {
    fputs("<p class=\"note\">", out);
    html_print_prose(out, sentence);
    fputs("</p>\n", out);
}

/* Files --------------------------------------------------------------------------------------- */

static void print_link(const page *p, FILE *out, const store_folder *f, const char *name,
                       const char *text) {
    char path[PATH_MAX + 160], whole[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    html_print_link(out, p->folder, realpath(path, whole) ? whole : path, text);
}

void page_print_file(const page *p, FILE *out, const store_folder *f, const char *name) {
    print_link(p, out, f, name, name);
}

void page_print_table_files(const page *p, FILE *out, const store_folder *f,
                            const store_file *file) {
    const char *name = strrchr(file->path, '/') + 1;
    char samples[160];
    page_print_file(p, out, f, name);
    fprintf(out, " (%zu rows)", csv_count_rows(file->csv));
    snprintf(samples, sizeof samples, "%.*s.samples.csv", (int)strlen(name) - 4, name);
    if (store_has(f, samples)) {
        fputs(", ", out);
        print_link(p, out, f, samples, "samples");
    }
}

void page_print_staleness(FILE *out, const store_file *file) {
    if (file->origin.stale + file->origin.unknown == 0)
        return;
    fputc(' ', out);
    html_print_badge(out, "bad", file->origin.stale > 0 ? "stale" : "origin unknown");
}

void page_print_origin(FILE *out, const store_file *file) {
    const file_origin *o = &file->origin;
    char warning[320];
    if (o->rows == 0)
        return;
    file_origin_get_warning(o, warning, sizeof warning);
    fputs("<p class=\"dim\">", out);
    html_printf(out, "Commit %s%s, measured on %.10s.", o->commits[0],
                o->commit_count > 1 ? " and others" : "", o->first);
    page_print_staleness(out, file);
    html_printf(out, " %s", warning);
    fputs("</p>\n", out);
}

/* Dates are texts that sort. */
void page_print_dates(const page *p, FILE *out, const store_folder *only) {
    const char *first = NULL, *last = NULL;
    for (size_t f = 0; f < p->store->count; f++)
        for (size_t i = 0; i < p->store->folders[f].count; i++) {
            const char *date = csv_get_meta(p->store->folders[f].files[i].csv, "date");
            if (!date || (only && only != &p->store->folders[f]))
                continue;
            first = !first || strcmp(date, first) < 0 ? date : first;
            last = !last || strcmp(date, last) > 0 ? date : last;
        }
    if (!first)
        fputs("at an unknown time", out);
    else if (strncmp(first, last, 10) == 0)
        html_printf(out, "on %.10s", first);
    else
        html_printf(out, "from %.10s to %.10s", first, last);
}

/* Devices ------------------------------------------------------------------------------------- */

/* Is there a folder before it of the same device? Then it has a few files of another model. */
static bool is_again(const page *p, const store_folder *f) {
    for (const store_folder *b = p->store->folders; b < f; b++)
        if (strcmp(b->device, f->device) == 0)
            return true;
    return false;
}

bool page_is_folded(const page *p, const store_folder *f) {
    bool is_any_real = false;
    for (size_t i = 0; i < p->store->count; i++)
        is_any_real = is_any_real || !p->store->folders[i].emulated;
    return (f->emulated && is_any_real) || is_again(p, f);
}

void page_start_device(const page *p, FILE *out, const store_folder *f) {
    bool is_folded = page_is_folded(p, f);
    if (p->store->count < 2)
        return;
    fputs(is_folded ? "<details class=\"emulated\"><summary>" : "<h3>", out);
    html_print(out, f->device);
    if (is_again(p, f))
        html_printf(out, ", %s", path_get_name(f->path));
    if (f->emulated)
        fputs(" <span class=\"badge unknown\">emulated</span>", out);
    fputs(is_folded ? "</summary>\n" : "</h3>\n", out);
}

void page_end_device(const page *p, FILE *out, const store_folder *f) {
    if (p->store->count > 1 && page_is_folded(p, f))
        fputs("</details>\n", out);
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

/* As an image: whatever the file contains cannot run, fetch or reach into the page. Of a device that is
 * folded away only the links: its charts are as large as those that people look at. */
static void print_chart(const page *p, FILE *out, const store_folder *f, const char *what,
                        const char *name) {
    char path[PATH_MAX + 160], label[400];
    err why = {.code = EXIT_OK};
    size_t bytes = 0;
    if (page_is_folded(p, f)) {
        fputs("<figure>", out);
        print_chart_links(p, out, f, name);
        fputs("</figure>\n", out);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    snprintf(label, sizeof label, "Chart of %.120s on %.120s", what, f->device);
    char *text = os_read_file(path, &bytes, &why);
    if (text && (!strstr(text, "<svg") || !strstr(text, "</svg>")))
        err_set(&why, EXIT_USAGE, "%.160s is not a whole SVG file", path);
    fputs("<figure>", out);
    if (why.text[0]) {
        page_print_note(out, why.text);
    } else {
        fputs("<div class=\"chart\">", out);
        html_print_svg(out, text, bytes, label);
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
