/* part_devices: where the numbers come from, what is missing, and the files. */
#include <string.h>

#include "page.h"

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
        if ((is_cut = count == SHOWN))
            break;
        html(out, count ? "<br>%s" : "%s", value);
        seen[count++] = value;
    }
    fputs(is_cut ? "<br>and others" : count == 0 ? "<span class=\"dim\">not said</span>" : "", out);
}

void page_print_devices(const page *p, FILE *out) {
    static const char *const facts[][2] = {{"device", "device"},
                                           {"reached through", "api"},
                                           {"driver", "driver"},
                                           {"system", "os"},
                                           {"CPU", "cpu"},
                                           {"last-level cache", "cache"},
                                           {"kernel compiler", "compiler"},
                                           {"compiler of Assay", "host compiler"},
                                           {"model", "model"},
                                           {"commit", "commit"},
                                           {"version of Assay", "assay"},
                                           {"seed of inputs", "seed"},
                                           {"dates", "date"}};
    fputs(
        "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"Devices\"><table><tbody>\n",
        out);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        html(out, "<tr><th scope=\"row\">%s</th>", facts[i][0]);
        for (size_t f = 0; f < p->store->count; f++) {
            fputs("<td class=\"wide\">", out);
            if (strcmp(facts[i][1], "date") == 0)
                page_print_dates(p, out, &p->store->folders[f]);
            else
                print_values(out, &p->store->folders[f], facts[i][1]);
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
}

/* What is missing: sections say it of what they would show. */
static size_t print_missing_experiments(const page *p, FILE *out, const store_folder *f) {
    size_t count = 0;
    for (size_t i = 0; i < p->content->experiment_count; i++) {
        const char *name = p->content->experiments[i];
        if (store_find(f, STORE_EXPERIMENT, name))
            continue;
        if (count++ == 0)
            html(out, "%s: ", f->device);
        html(out, count > 1 ? ", <code>%s</code>" : "<code>%s</code>", name);
    }
    return count;
}

void page_print_missing(const page *p, FILE *out) {
    size_t count = 0;
    for (size_t i = 0; i < p->store->count; i++) {
        fputs("<p>", out);
        size_t here = print_missing_experiments(p, out, &p->store->folders[i]);
        fputs(here ? " were not run: <code>assay experiment NAME</code>.</p>\n" : "</p>\n", out);
        count += here;
    }
    fputs(count ? "" : "<p>Every experiment was run.</p>\n", out);
}

void page_print_files(const page *p, FILE *out) {
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        html(out, "<details><summary>%s: %zu files</summary><ul>\n", f->device,
             f->count + f->other_count);
        for (size_t k = 0; k < f->count; k++) {
            fputs("<li>", out);
            page_print_table_files(p, out, f, &f->files[k]);
            page_print_staleness(out, &f->files[k]);
            fputs("</li>\n", out);
        }
        for (size_t k = 0; k < f->other_count; k++)
            if (!strstr(f->others[k], ".samples.csv")) {
                fputs("<li>", out);
                page_print_file(p, out, f, f->others[k]);
                fputs("</li>\n", out);
            }
        fputs("</ul></details>\n", out);
    }
}
