/* part_experiments: each experiment with question, conclusion, charts, numbers and data, of all
 * devices together: conclusions and numbers side by side, charts below each other, since half a
 * page is too narrow for them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "page_parts.h"

/* Charts -------------------------------------------------------------------------------------- */

static void print_charts(page *p, FILE *out, const store_folder *f, const store_file *file) {
    if (store_get_failure(file) || page_print_charts(p, out, f, file->name) > 0)
        return; /* a chart is of an earlier run, if the last one failed */
    fputs("<p class=\"note\">", out);
    html_printf(out, "There is no chart of this experiment on %.160s. ", f->device);
    html_print_prose(out, "Charts are drawn with gnuplot when an experiment has run.");
    fputs("</p>\n", out);
}

/* Numbers ------------------------------------------------------------------------------------- */

/* The metrics of all devices side by side: one row for each metric that any of them has. */
static bool is_first(const page *p, const char *experiment, size_t folder, const char *metric) {
    for (size_t f = 0; f < folder; f++) {
        const store_file *file = store_find(&p->store->folders[f], STORE_EXPERIMENT, experiment);
        if (file && store_find_metric(file, metric))
            return false;
    }
    return true;
}

static void print_metric(const page *p, FILE *out, const char *experiment, const store_metric *m) {
    fputs("<tr><td><code>", out);
    html_print(out, m->name);
    fputs("</code></td>", out);
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = store_find(&p->store->folders[f], STORE_EXPERIMENT, experiment);
        const store_metric *here = file ? store_find_metric(file, m->name) : NULL;
        char number[48] = "-", text[96];
        if (here)
            html_format_number(here->value, number, sizeof number);
        bool has_unit = here && here->unit[0] && strcmp(here->unit, "count") != 0;
        snprintf(text, sizeof text, "%s%s%s", number, has_unit ? " " : "",
                 has_unit ? here->unit : "");
        html_print_number_cell(out, here ? here->value : NAN, text);
    }
    fputs("</tr>\n", out);
}

static bool has_metrics(const page *p, const char *experiment) {
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = store_find(&p->store->folders[f], STORE_EXPERIMENT, experiment);
        if (file && file->metric_count > 0)
            return true;
    }
    return false;
}

static void print_metrics(const page *p, FILE *out, const char *experiment) {
    if (!has_metrics(p, experiment))
        return;
    html_column *columns = array_new(1 + p->store->count, sizeof *columns);
    char(*titles)[200] = array_new(1 + p->store->count, sizeof *titles);
    size_t count = 1;
    columns[0] = (html_column){"number", false, NULL};
    for (size_t f = 0; f < p->store->count; f++, count++) {
        const store_folder *folder = &p->store->folders[f];
        snprintf(titles[count], sizeof titles[0], "%s%s",
                 p->store->count > 1 ? folder->device : "value",
                 folder->emulated ? " (emulated)" : "");
        columns[count] = (html_column){titles[count], true, NULL};
    }
    html_start_table(out, columns, count, "Numbers that the conclusion and the claims rest on");
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = store_find(&p->store->folders[f], STORE_EXPERIMENT, experiment);
        for (size_t i = 0; file && i < file->metric_count; i++)
            if (is_first(p, experiment, f, file->metrics[i].name))
                print_metric(p, out, experiment, &file->metrics[i]);
    }
    html_end_table(out);
    free(columns);
    free(titles);
}

/* An experiment ------------------------------------------------------------------------------- */

static void print_fact(FILE *out, const char *title, const char *value) {
    fprintf(out, "<p><strong>%s</strong> ", title);
    html_print_prose(out, value);
    fputs("</p>\n", out);
}

/* A smoke run must not look like a measurement. */
static void print_level(FILE *out, const char *level) {
    if (strcmp(level, "smoke") == 0)
        fputs("<p class=\"note\">This was a smoke run: it shows that the experiment works, and its "
              "numbers mean nothing.</p>\n",
              out);
    else
        print_fact(out, "Length of the run:",
                   strcmp(level, "quick") == 0 ? "quick: fewer points, less time for each" : level);
}

static void print_device_name(const page *p, FILE *out, const store_folder *f) {
    if (p->store->count < 2)
        return;
    fputs("<h4>", out);
    html_print(out, f->device);
    fputs(f->emulated ? " <span class=\"badge unknown\">emulated</span></h4>\n" : "</h4>\n", out);
}

static void print_finding(page *p, FILE *out, const store_folder *f, const store_file *file) {
    const char *key, *value;
    const char *model = csv_get_meta(file->csv, "model"), *level = csv_get_meta(file->csv, "level");
    fputs("<div>", out);
    print_device_name(p, out, f);
    if (store_get_failure(file)) {
        fputs("<p class=\"failed\"><strong>Failed:</strong> ", out);
        html_print(out, store_get_failure(file));
        fputs("</p></div>\n", out);
        return;
    }
    fputs("<p class=\"found\"><strong>Found:</strong>", out);
    for (size_t i = 0; csv_list_meta(file->csv, i, &key, &value); i++)
        if (strcmp(key, "conclusion") == 0) {
            fputc(' ', out);
            html_print_prose(out, value);
        }
    fputs(csv_get_meta(file->csv, "conclusion") ? "</p>\n" : " the file has no conclusion.</p>\n",
          out);
    if (model)
        print_fact(out, "Model:", model);
    if (level)
        print_level(out, level);
    page_print_origin(out, file);
    fputs("</div>\n", out);
}

static void print_data(page *p, FILE *out, const store_folder *f, const store_file *file) {
    fputs("<details><summary>The data", out);
    if (p->store->count > 1)
        html_printf(out, " of %.160s", f->device);
    fprintf(out, ": %zu rows</summary>\n", csv_count_rows(file->csv));
    page_print_rows(p, out, f, file);
    fputs("<p>Raw: ", out);
    page_print_file(p, out, f, strrchr(file->path, '/') + 1);
    fputs("</p></details>\n", out);
}

/* Calls print for the file of an experiment of each device that has one. */
static void print_each(page *p, FILE *out, const char *name,
                       void (*print)(page *p, FILE *out, const store_folder *f,
                                     const store_file *file)) {
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = store_find(&p->store->folders[f], STORE_EXPERIMENT, name);
        if (file)
            print(p, out, &p->store->folders[f], file);
    }
}

static void print_experiment(page *p, FILE *out, const char *name) {
    static const char *const keys[] = {"question", "claim", "how"};
    static const char *const titles[] = {"Question:", "Published:", "How it is measured:"};
    const store_file *any = NULL;
    for (size_t f = 0; f < p->store->count && !any; f++)
        any = store_find(&p->store->folders[f], STORE_EXPERIMENT, name);
    fputs("<article class=\"card\" id=\"x-", out);
    html_print(out, name);
    fputs("\"><h3>", out);
    html_print(out, name);
    fputs("</h3>\n", out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = csv_get_meta(any->csv, keys[i]);
        if (value && *value && strcmp(value, "-") != 0)
            print_fact(out, titles[i], value);
    }
    for (size_t i = 0; i < p->store->together_count; i++)
        page_print_charts(p, out, &p->store->together[i], name);
    fputs("<div class=\"devices\">\n", out);
    print_each(p, out, name, print_finding);
    fputs("</div>\n", out);
    print_each(p, out, name, print_charts);
    print_metrics(p, out, name);
    print_each(p, out, name, print_data);
    fputs("</article>\n", out);
}

bool page_print_experiments(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->name_count; i++)
        print_experiment(p, out, p->names[i]);
    if (p->name_count == 0) {
        fputs("<p class=\"note\">", out);
        html_print_prose(out, "There are none. `assay experiment all` runs them.");
        fputs("</p>\n", out);
    }
    return true;
}
