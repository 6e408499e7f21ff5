/* part_summary: the head of the page, and what a reader with one minute should know. */
#include <string.h>

#include "page_parts.h"

bool page_print_title(page *p, FILE *out, err *e) {
    (void)e;
    fputs("Assay report: ", out);
    if (p->store->count == 1)
        html_print(out, p->store->folders[0].device);
    else
        fprintf(out, "%zu devices", p->store->count);
    return true;
}

/* Dates are texts that sort. */
bool page_print_date(page *p, FILE *out, err *e) {
    (void)e;
    const char *first = NULL, *last = NULL;
    for (size_t f = 0; f < p->store->count; f++)
        for (size_t i = 0; i < p->store->folders[f].count; i++) {
            const char *date = csv_get_meta(p->store->folders[f].files[i].csv, "date");
            if (!date)
                continue;
            first = !first || strcmp(date, first) < 0 ? date : first;
            last = !last || strcmp(date, last) > 0 ? date : last;
        }
    if (!first)
        fputs("The files do not say when they were made.", out);
    else if (strncmp(first, last, 10) == 0)
        html_printf(out, "Measured on %.10s.", first);
    else
        html_printf(out, "Measured from %.10s to %.10s.", first, last);
    return true;
}

/* Questions and answers ----------------------------------------------------------------------- */

static void start_answer(FILE *out, const char *question) {
    fprintf(out, "<dt>%s</dt><dd>", question);
}

static void print_right(FILE *out, const store_folder *f) {
    page_verdict v = page_count_checks(f);
    start_answer(out, "Do the kernels compute the right thing?");
    if (!v.is_known || v.cases == 0) {
        html_print_badge(out, "unknown", "not known");
        html_print_prose(out, " There are no results of `assay check` in this folder.");
    } else if (v.wrong == 0) {
        html_print_badge(out, "good", "yes");
        fprintf(out, " All %zu cases agree with the reference.", v.cases);
    } else {
        html_print_badge(out, "bad", "no");
        fprintf(out, " %zu of %zu cases are wrong; <a href=\"#right\">which</a>.", v.wrong,
                v.cases);
    }
    fputs("</dd>\n", out);
}

static void print_clean(FILE *out, const store_folder *f) {
    page_verdict v = page_count_validations(f);
    size_t findings = page_count_findings(f);
    start_answer(out, "Do they touch only what they may?");
    if (!v.is_known) {
        html_print_badge(out, "unknown", "not known");
        html_print_prose(out, " There are no results of `assay validate` in this folder.");
    } else if (findings == 0 && v.wrong == 0) {
        html_print_badge(out, "good", "yes");
        if (v.cases > 0)
            fprintf(out, " Nothing was found in %zu cases with every memory access watched.",
                    v.cases);
        else
            fputs(" Nothing was found with every memory access watched.", out);
    } else {
        html_print_badge(out, "bad", "no");
        fprintf(out, " %zu finding%s, %zu case%s failed; <a href=\"#right\">which</a>.", findings,
                findings == 1 ? "" : "s", v.wrong, v.wrong == 1 ? "" : "s");
    }
    fputs("</dd>\n", out);
}

static void print_fast(FILE *out, const store_folder *f) {
    size_t experiments = 0, cases = 0;
    for (size_t i = 0; i < f->count; i++) {
        experiments += f->files[i].kind == STORE_EXPERIMENT && !store_get_failure(&f->files[i]);
        if (f->files[i].kind == STORE_BENCH)
            cases += csv_count_rows(f->files[i].csv);
    }
    start_answer(out, "How fast is it?");
    if (experiments + cases == 0) {
        html_print_badge(out, "unknown", "not known");
        fputs(" Nothing was timed.", out);
    } else if (f->emulated) {
        html_print_badge(out, "unknown", "emulated");
        fprintf(
            out,
            " %zu experiment%s and %zu kernel case%s were run on a CPU that emulates a GPU. Their "
            "times show how the harness works and say <strong>nothing about a GPU</strong>.",
            experiments, experiments == 1 ? "" : "s", cases, cases == 1 ? "" : "s");
    } else {
        html_print_badge(out, "plain", "measured");
        fprintf(out,
                " %zu experiment%s and %zu kernel case%s were timed on this device: see <a "
                "href=\"#found\">what was found</a>.",
                experiments, experiments == 1 ? "" : "s", cases, cases == 1 ? "" : "s");
    }
    fputs("</dd>\n", out);
}

static void print_claim_counts(FILE *out, const page *p, const store_folder *f) {
    claim_counts c = claims_count(p->content->claims, f);
    char text[256];
    claim_format_counts(&c, text, sizeof text);
    start_answer(out, "Do the published claims hold?");
    html_print(out, text);
    fputs(f->emulated ? ", most of them because they are about time, and this is not a GPU" : "",
          out);
    fputs("; <a href=\"#claims\">each of them</a>.</dd>\n", out);
}

/* On top: what of the page is not about the code as it is now. */
bool page_print_doubts(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        file_origin sum = store_sum_origins(f);
        char warning[320];
        file_origin_get_warning(&sum, warning, sizeof warning);
        if (!warning[0])
            continue;
        fputs("<p class=\"note\"><strong>Not all numbers are of the code as it is now.</strong> ",
              out);
        html_printf(out, "%s: %s.", f->device, warning);
        fputs("</p>\n", out);
    }
    return true;
}

bool page_print_summary(page *p, FILE *out, err *e) {
    (void)e;
    fputs("<div class=\"cards\">\n", out);
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        const char *os = store_find_meta(f, "os"), *cpu = store_find_meta(f, "cpu");
        fputs("<div class=\"card\"><h3>", out);
        html_print(out, f->device);
        fputs(" ", out);
        if (f->emulated)
            html_print_badge(out, "unknown", "emulated");
        fputs("</h3><p class=\"dim\">", out);
        html_print(out, cpu ? cpu : "CPU not named");
        fputs(", ", out);
        html_print(out, os ? os : "system not named");
        fputs("</p><dl>\n", out);
        print_right(out, f);
        print_clean(out, f);
        print_fast(out, f);
        print_claim_counts(out, p, f);
        fputs("</dl></div>\n", out);
    }
    fputs("</div>\n", out);
    return true;
}

/* What was found ------------------------------------------------------------------------------ */

static void print_conclusions(FILE *out, const store_file *file) {
    const char *key, *value, *failure = store_get_failure(file);
    bool is_any = failure != NULL;
    if (failure) {
        fputs("<strong class=\"failed\">Failed:</strong> ", out);
        html_print(out, failure);
    }
    for (size_t i = 0; csv_list_meta(file->csv, i, &key, &value); i++) {
        if (strcmp(key, "conclusion") != 0)
            continue;
        fputs(is_any ? "<br>" : "", out);
        html_print(out, value);
        is_any = true;
    }
    if (!is_any)
        fputs("<span class=\"dim\">The file has no conclusion.</span>", out);
}

static void print_row(FILE *out, const page *p, const char *name, const store_folder *f) {
    const store_file *file = store_find(f, STORE_EXPERIMENT, name);
    if (!file)
        return;
    fputs("<tr><td class=\"id\"><a href=\"#x-", out);
    html_print(out, name);
    fputs("\">", out);
    html_print(out, name);
    fputs("</a></td>", out);
    if (p->store->count > 1)
        html_print_text_cell(out, f->device);
    fputs("<td class=\"wide\">", out);
    if (file->origin.stale + file->origin.unknown > 0) {
        html_print_badge(out, "bad", file->origin.stale > 0 ? "stale" : "origin unknown");
        fputc(' ', out);
    }
    print_conclusions(out, file);
    const char *level = csv_get_meta(file->csv, "level");
    bool is_smoke = level && strcmp(level, "smoke") == 0;
    if (f->emulated || is_smoke)
        fprintf(out, " <span class=\"dim\">(%s%s%s)</span>", f->emulated ? "emulated" : "",
                f->emulated && is_smoke ? ", " : "",
                is_smoke ? "smoke run: the numbers mean nothing" : "");
    fputs("</td></tr>\n", out);
}

bool page_print_found(page *p, FILE *out, err *e) {
    (void)e;
    static const html_column columns[] = {
        {"experiment", false, NULL}, {"device", false, NULL}, {"conclusion", false, NULL}};
    static const html_column alone[] = {{"experiment", false, NULL}, {"conclusion", false, NULL}};
    bool is_many = p->store->count > 1;
    if (p->name_count == 0) {
        fputs("<p class=\"note\">", out);
        html_print_prose(out, "No experiment has been run. `assay experiment all` runs them.");
        fputs("</p>\n", out);
        return true;
    }
    html_start_table(out, is_many ? columns : alone, is_many ? 3 : 2,
                     "What each experiment concludes");
    for (size_t i = 0; i < p->name_count; i++)
        for (size_t f = 0; f < p->store->count; f++)
            print_row(out, p, p->names[i], &p->store->folders[f]);
    html_end_table(out);
    return true;
}
