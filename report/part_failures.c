/* part_failures: what failed, at the top of the page: files that could not be read, experiments that
 * did not end well, kernels that are wrong. Nothing where nothing did. */
#include <string.h>

#include "page_parts.h"

static void print_experiments(FILE *out, const store_folder *f) {
    for (size_t i = 0; i < f->count; i++) {
        const char *why = store_get_failure(&f->files[i]);
        if (!why)
            continue;
        fputs("<li>", out);
        html_printf(out, "%s: the experiment ", f->device);
        fputs("<a href=\"#x-", out);
        html_print(out, f->files[i].name);
        fputs("\">", out);
        html_print(out, f->files[i].name);
        fputs("</a> failed: ", out);
        html_print(out, why);
        fputs("</li>\n", out);
    }
}

static void print_kernels(FILE *out, const store_folder *f) {
    page_verdict checked = page_count_checks(f), validated = page_count_validations(f);
    size_t findings = page_count_findings(f);
    if (checked.is_known && checked.wrong > 0) {
        fputs("<li>", out);
        html_printf(out, "%s: ", f->device);
        fprintf(out, "%zu of %zu cases are <a href=\"#right\">wrong</a></li>\n", checked.wrong,
                checked.cases);
    }
    if (validated.is_known && findings + validated.wrong > 0) {
        fputs("<li>", out);
        html_printf(out, "%s: ", f->device);
        fprintf(
            out, "validation has <a href=\"#right\">%zu finding%s</a>, %zu case%s failed</li>\n",
            findings, findings == 1 ? "" : "s", validated.wrong, validated.wrong == 1 ? "" : "s");
    }
}

size_t page_count_failures(const store *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const store_folder *f = &s->folders[i];
        page_verdict checked = page_count_checks(f), validated = page_count_validations(f);
        count += checked.is_known && checked.wrong > 0 ? 1 : 0;
        count += validated.is_known && page_count_findings(f) + validated.wrong > 0 ? 1 : 0;
        for (size_t k = 0; k < f->count; k++)
            count += store_get_failure(&f->files[k]) != NULL;
    }
    return count;
}

bool page_print_failures(page *p, FILE *out, err *e) {
    (void)e;
    if (page_count_failures(p->store) + p->store->skipped_count == 0)
        return true;
    fputs("<section id=\"failures\" class=\"alarm\"><h2>What failed</h2>\n<ul>\n", out);
    for (size_t i = 0; i < p->store->skipped_count; i++) {
        fputs("<li>A file was left out: ", out);
        html_print(out, p->store->skipped[i]);
        fputs("</li>\n", out);
    }
    for (size_t i = 0; i < p->store->count; i++) {
        print_experiments(out, &p->store->folders[i]);
        print_kernels(out, &p->store->folders[i]);
    }
    fputs("</ul></section>\n", out);
    return true;
}
