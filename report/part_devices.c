/* part_devices: where the numbers come from, what is missing, and the files. */
#include <string.h>

#include "page_parts.h"

/* Devices ------------------------------------------------------------------------------------- */

/* All values of a key in a folder, each once. */
static void print_values(FILE *out, const store_folder *f, const char *key) {
    enum { SHOWN = 4 };
    const char *seen[SHOWN];
    size_t count = 0;
    bool is_cut = false;
    for (size_t i = 0; i < f->count; i++) {
        const char *value = csv_get_meta(f->files[i].csv, key);
        size_t k = 0;
        while (value && k < count && strcmp(seen[k], value) != 0)
            k++;
        if (!value || k < count)
            continue;
        if (count == SHOWN) {
            is_cut = true;
            break;
        }
        fputs(count ? "<br>" : "", out);
        html_print(out, value);
        seen[count++] = value;
    }
    fputs(is_cut ? "<br>and others" : count == 0 ? "<span class=\"dim\">not said</span>" : "", out);
}

/* The first and the last: texts that sort. */
static void print_dates(FILE *out, const store_folder *f) {
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < f->count; i++) {
        const char *date = csv_get_meta(f->files[i].csv, "date");
        first = date && (!first || strcmp(date, first) < 0) ? date : first;
        last = date && (!last || strcmp(date, last) > 0) ? date : last;
    }
    if (!first)
        fputs("<span class=\"dim\">not said</span>", out);
    else if (strcmp(first, last) == 0)
        html_print(out, first);
    else
        html_printf(out, "%s to %s", first, last);
}

bool page_print_devices(page *p, FILE *out, err *e) {
    (void)e;
    static const char *const keys[] = {"device", "api",      "driver",        "os",    "cpu",
                                       "cache",  "compiler", "host compiler", "model", "commit",
                                       "assay",  "seed",     "date"};
    static const char *const titles[] = {
        "device", "reached through",  "driver",           "system",
        "CPU",    "last-level cache", "kernel compiler",  "compiler of Assay",
        "model",  "commit",           "version of Assay", "seed of inputs",
        "dates"};
    fputs(
        "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"Devices\"><table><tbody>\n",
        out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        fprintf(out, "<tr><th scope=\"row\">%s</th>", titles[i]);
        for (size_t f = 0; f < p->store->count; f++) {
            fputs("<td class=\"wide\">", out);
            if (strcmp(keys[i], "date") == 0)
                print_dates(out, &p->store->folders[f]);
            else
                print_values(out, &p->store->folders[f], keys[i]);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("<tr><th scope=\"row\">times are</th>", out);
    for (size_t f = 0; f < p->store->count; f++)
        fputs(store_find_meta(&p->store->folders[f], "virtual")
                  ? "<td>of a virtual GPU: not those of the GPU itself</td>"
              : p->store->folders[f].emulated ? "<td>emulated: a CPU runs the GPU's threads</td>"
                                              : "<td>of the device itself</td>",
              out);
    fputs("</tr>\n</tbody></table></div>\n", out);
    return true;
}

/* What is missing ----------------------------------------------------------------------------- */

static size_t print_missing_kinds(FILE *out, const store_folder *f) {
    static const struct {
        store_kind kind;
        const char *sentence;
    } wanted[] = {
        {STORE_CHECK,
         "no results of `assay check --csv FILE`: it is not known whether the kernels are right"},
        {STORE_VALIDATE,
         "no results of `assay validate --csv FILE`: kernels were not tested for memory errors"},
        {STORE_BENCH, "no results of `assay bench`: kernels were not timed one by one"},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (store_find(f, wanted[i].kind, NULL))
            continue;
        fputs("<li>", out);
        html_printf(out, "%s: ", f->device);
        html_print_prose(out, wanted[i].sentence);
        fputs("</li>\n", out);
        count++;
    }
    return count;
}

static size_t print_missing_experiments(const page *p, FILE *out, const store_folder *f) {
    size_t count = 0;
    for (size_t i = 0; i < p->content->experiment_count; i++) {
        const char *name = p->content->experiments[i];
        if (store_find(f, STORE_EXPERIMENT, name))
            continue;
        char sentence[200];
        snprintf(sentence, sizeof sentence, "%.80s was not run: `assay experiment %.80s`", name,
                 name);
        fputs("<li>", out);
        html_printf(out, "%s: ", f->device);
        html_print_prose(out, sentence);
        fputs("</li>\n", out);
        count++;
    }
    return count;
}

static size_t print_missing_charts(FILE *out, const store_folder *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (f->files[i].kind != STORE_EXPERIMENT || store_get_failure(&f->files[i]) ||
            store_find_chart(f, f->files[i].name, 0))
            continue;
        fputs("<li>", out);
        html_printf(out, "%s: %s has no chart", f->device, f->files[i].name);
        fputs("</li>\n", out);
        count++;
    }
    return count;
}

bool page_print_missing(page *p, FILE *out, err *e) {
    (void)e;
    size_t count = p->store->skipped_count;
    fputs("<ul>\n", out);
    if (count > 0)
        fprintf(
            out,
            "<li>%zu file%s could not be read: see <a href=\"#failures\">what failed</a></li>\n",
            count, count == 1 ? "" : "s");
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        count += print_missing_kinds(out, f);
        count += print_missing_experiments(p, out, f);
        count += print_missing_charts(out, f);
    }
    fputs(count ? "</ul>\n" : "<li>Nothing that Assay can make.</li></ul>\n", out);
    return true;
}

/* Files --------------------------------------------------------------------------------------- */

bool page_print_files(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        fputs("<h3>", out);
        html_print(out, f->device);
        fputs("</h3>\n<ul>\n", out);
        for (size_t k = 0; k < f->count; k++) {
            fputs("<li>", out);
            page_print_file(p, out, f, strrchr(f->files[k].path, '/') + 1);
            fprintf(out, " (%zu rows)", csv_count_rows(f->files[k].csv));
            fputs("</li>\n", out);
        }
        for (size_t k = 0; k < f->other_count; k++) {
            fputs("<li>", out);
            page_print_file(p, out, f, f->others[k]);
            fputs("</li>\n", out);
        }
        fputs("</ul>\n", out);
        for (size_t k = 0; k < f->count; k++)
            if (f->files[k].kind == STORE_OTHER) {
                fputs("<details><summary>", out);
                html_print(out, f->files[k].name);
                fputs("</summary>\n", out);
                page_print_rows(p, out, f, &f->files[k]);
                fputs("</details>\n", out);
            }
    }
    return true;
}
