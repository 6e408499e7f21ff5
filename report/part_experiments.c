/* part_experiments: each experiment as its conclusion, which opens into question, charts and numbers of
 * all devices: conclusions side by side, charts below each other, since half a page is
 * too narrow for them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "page.h"

/* Of the folder with this number; NULL if it has none. */
static const store_file *find_file(const page *p, size_t folder, const char *experiment) {
    return store_find(&p->store->folders[folder], STORE_EXPERIMENT, experiment);
}

/* An experiment ------------------------------------------------------------------------------- */

static void print_fact(FILE *out, const char *title, const char *value) {
    html(out, "<p><strong>%s</strong> ", title);
    html_print_prose(out, value);
    fputs("</p>\n", out);
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
        print_fact(out, "Length of the run:", level);
    fputs("<p>", out);
    page_end_source(p, out, f, file);
    page_end_device(p, out, f);
    fputs("</div>\n", out);
}

/* Closed, the conclusion of the device that was measured last, of those that are not folded away. */
static void print_experiment(const page *p, FILE *out, const char *name) {
    static const char *const facts[][2] = {
        {"question", "Question:"}, {"claim", "Published:"}, {"how", "How it is measured:"}};
    const store_file *file, *first = NULL;
    const store_folder *of = NULL;
    for (size_t f = p->store->count; f-- > 0;)
        if ((file = find_file(p, f, name)) &&
            (!first || !page_is_folded(p, &p->store->folders[f]))) {
            first = file;
            of = &p->store->folders[f];
        }
    const bool is_smoke = strcmp(csv_find_meta(first->csv, "level"), "smoke") == 0;
    html(out, "<details class=\"card\" id=\"x-%s\"><summary><strong>%s</strong>", name, name);
    page_print_staleness(out, first);
    fputs("<br><span class=\"said\">", out);
    print_conclusions(out, first, 1);
    fprintf(out, "</span>%s%s</summary>\n<div class=\"devices\">\n",
            of->emulated ? " <span class=\"badge unknown\">emulated</span>" : "",
            is_smoke ? " <span class=\"badge unknown\">smoke run: the numbers mean nothing</span>"
                     : "");
    for (size_t f = 0; f < p->store->count; f++)
        if ((file = find_file(p, f, name)))
            print_finding(p, out, &p->store->folders[f], file);
    fputs("</div>\n", out);
    for (size_t f = 0; f < p->store->count; f++)
        if ((file = find_file(p, f, name)) &&
            !store_get_failure(file)) /* else it is of an earlier run */
            page_print_charts(p, out, &p->store->folders[f], name);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *value = csv_find_meta(first->csv, facts[i][0]);
        if (*value && strcmp(value, "-") != 0)
            print_fact(out, facts[i][1], value);
    }
    fputs("</details>\n", out);
}

void page_print_experiments(const page *p, FILE *out) {
    size_t count = 0;
    for (size_t f = 0, k; f < p->store->count; f++)
        for (size_t i = 0; i < p->store->folders[f].count; i++) {
            const store_file *file = &p->store->folders[f].files[i];
            for (k = 0; k < f && !find_file(p, k, file->name);)
                k++;
            if (k < f || find_file(p, f, file->name) != file) /* there already, or another table */
                continue;
            count++;
            print_experiment(p, out, file->name);
        }
    if (count == 0)
        page_print_note(out, "There are none. `assay experiment all` runs them.");
}
