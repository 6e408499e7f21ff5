/* part_experiments: each experiment as its conclusion, which opens into question, charts and numbers of
 * all devices: conclusions and numbers side by side, charts below each other, since half a page is
 * too narrow for them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "page.h"

/* Of the folder with this number; NULL if it has none. */
static const store_file *find_file(const page *p, size_t folder, const char *experiment) {
    return store_find(&p->store->folders[folder], STORE_EXPERIMENT, experiment);
}

/* Numbers ------------------------------------------------------------------------------------- */

/* The metrics of all devices side by side: one row for each metric that any of them has. */
static bool is_first(const page *p, const char *experiment, size_t folder, const char *metric) {
    for (size_t f = 0; f < folder; f++) {
        const store_file *file = find_file(p, f, experiment);
        if (file && store_find_metric(file, metric))
            return false;
    }
    return true;
}

static void print_metric(const page *p, FILE *out, const char *experiment, const store_metric *m) {
    html(out, "<tr><td><code>%s</code></td>", m->name);
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = find_file(p, f, experiment);
        const store_metric *here = file ? store_find_metric(file, m->name) : NULL;
        char number[HTML_NUMBER] = "-", text[96];
        if (here)
            html_format_number(here->value, number);
        bool has_unit = here && here->unit[0] && strcmp(here->unit, "count") != 0;
        snprintf(text, sizeof text, "%s%s%s", number, has_unit ? " " : "",
                 has_unit ? here->unit : "");
        html_print_cell(out, here ? here->value : NAN, text);
    }
    fputs("</tr>\n", out);
}

static void start_metrics(const page *p, FILE *out) {
    html_open_table(out, "Numbers that the conclusion and the claims rest on");
    html_add_column(out, false, "number", NULL);
    for (size_t f = 0; f < p->store->count; f++) {
        const store_folder *folder = &p->store->folders[f];
        char title[200];
        snprintf(title, sizeof title, "%s%s", p->store->count > 1 ? folder->device : "value",
                 folder->emulated ? " (emulated)" : "");
        html_add_column(out, true, title, NULL);
    }
    html_start_rows(out);
}

static void print_metrics(const page *p, FILE *out, const char *experiment) {
    bool is_started = false;
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = find_file(p, f, experiment);
        for (size_t i = 0; file && i < file->metric_count; i++) {
            if (!is_first(p, experiment, f, file->metrics[i].name))
                continue;
            if (!is_started)
                start_metrics(p, out);
            is_started = true;
            print_metric(p, out, experiment, &file->metrics[i]);
        }
    }
    if (is_started)
        html_end_table(out);
}

/* An experiment ------------------------------------------------------------------------------- */

static void print_fact(FILE *out, const char *title, const char *value) {
    html(out, "<p><strong>%s</strong> ", title);
    html_print_prose(out, value);
    fputs("</p>\n", out);
}

/* A smoke run must not look like a measurement. */
static void print_level(FILE *out, const char *level) {
    if (strcmp(level, "smoke") == 0)
        page_print_note(out, "This was a smoke run: it shows that the experiment works, and its "
                             "numbers mean nothing.");
    else
        print_fact(out, "Length of the run:",
                   strcmp(level, "quick") == 0 ? "quick: fewer points, less time for each" : level);
}

static void print_conclusions(FILE *out, const store_file *file, size_t most) {
    const char *key, *value, *failure = store_get_failure(file);
    if (failure)
        html(out, "<strong class=\"failed\">Failed:</strong> %s", failure);
    else if (!csv_get_meta(file->csv, "conclusion"))
        fputs("The file has no conclusion.", out);
    for (size_t i = 0; !failure && most > 0 && csv_list_meta(file->csv, i, &key, &value); i++)
        if (strcmp(key, "conclusion") == 0) {
            most--;
            html_print_prose(out, value);
            fputc(' ', out);
        }
}

static void print_finding(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    const char *model = csv_get_meta(file->csv, "model"), *level = csv_get_meta(file->csv, "level");
    fputs("<div>", out);
    page_start_device(p, out, f);
    fputs("<p><strong>Found:</strong> ", out);
    print_conclusions(out, file, SIZE_MAX);
    fputs("</p>\n", out);
    for (const store_file *other = f->files; other < f->files + f->count; other++)
        if (other != file && strcmp(other->name, file->name) == 0 && store_get_failure(other))
            html(out, "<p class=\"note\">A later run failed: %s</p>\n", store_get_failure(other));
    if (model)
        print_fact(out, "Model:", model);
    if (level)
        print_level(out, level);
    page_print_origin(out, file);
    fputs("<p>", out);
    page_print_table_files(p, out, f, file);
    fputs("</p>", out);
    page_end_device(p, out, f);
    fputs("</div>\n", out);
}

/* A chart is of an earlier run, if the last one failed. */
static void print_charts(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    if (!store_get_failure(file) && page_print_charts(p, out, f, file->name) == 0)
        html(out,
             "<p class=\"note\">There is no chart of this experiment on %.160s. Charts are drawn "
             "with gnuplot when an experiment has run.</p>\n",
             f->device);
}

/* What stands there when it is closed: of a GPU, if there is one that has it. */
static void print_head(const page *p, FILE *out, const char *name) {
    const store_folder *f = NULL;
    const store_file *file = NULL;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *here = &p->store->folders[i];
        const store_file *any = find_file(p, i, name);
        if (any && (!file || (f->emulated && !here->emulated))) {
            f = here;
            file = any;
        }
    }
    const char *level = csv_get_meta(file->csv, "level");
    bool is_smoke = level && strcmp(level, "smoke") == 0;
    html(out, "<summary><strong>%s</strong>", name);
    page_print_staleness(out, file);
    fputs("<br><span class=\"said\">", out);
    print_conclusions(out, file, 1);
    if (f->emulated || is_smoke)
        html(out, " <span class=\"dim\">(%s%s%s)</span>", f->emulated ? "emulated" : "",
             f->emulated && is_smoke ? ", " : "",
             is_smoke ? "smoke run: the numbers mean nothing" : "");
    fputs("</span></summary>\n", out);
}

static void print_experiment(const page *p, FILE *out, const char *name) {
    static const char *const facts[][2] = {
        {"question", "Question:"}, {"claim", "Published:"}, {"how", "How it is measured:"}};
    const store_file *file, *any = NULL;
    html(out, "<details class=\"card\" id=\"x-%s\">", name);
    print_head(p, out, name);
    fputs("<div class=\"devices\">\n", out);
    for (size_t f = 0; f < p->store->count; f++)
        if ((file = find_file(p, f, name))) {
            any = any ? any : file;
            print_finding(p, out, &p->store->folders[f], file);
        }
    fputs("</div>\n", out);
    for (size_t i = 0; i < p->store->together_count; i++)
        page_print_charts(p, out, &p->store->together[i], name);
    for (size_t f = 0; f < p->store->count; f++)
        if ((file = find_file(p, f, name)))
            print_charts(p, out, &p->store->folders[f], file);
    print_metrics(p, out, name);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *value = csv_get_meta(any->csv, facts[i][0]);
        if (value && *value && strcmp(value, "-") != 0)
            print_fact(out, facts[i][1], value);
    }
    fputs("</details>\n", out);
}

void page_print_experiments(const page *p, FILE *out) {
    for (size_t i = 0; i < p->name_count; i++)
        print_experiment(p, out, p->names[i]);
    if (p->name_count == 0)
        page_print_note(out, "There are none. `assay experiment all` runs them.");
}
