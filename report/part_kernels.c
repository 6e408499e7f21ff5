/* part_kernels: verdicts of check and validate, and the times of bench. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/measure/results.h"
#include "page_parts.h"

/* Counting ------------------------------------------------------------------------------------ */

static const char *get_cell(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

static bool is_right(const csv_file *f, size_t row) {
    return strcmp(get_cell(f, row, "verdict"), "pass") == 0;
}

/* A case that its kernel does not take was not run: it counts neither way. */
static bool is_skipped(const csv_file *f, size_t row) {
    return strcmp(get_cell(f, row, "verdict"), "skip") == 0;
}

page_verdict page_count_checks(const store_folder *f) {
    page_verdict v = {.cases = 0};
    for (size_t i = 0; i < f->count; i++) {
        const csv_file *c = f->files[i].csv;
        if (f->files[i].kind != STORE_CHECK)
            continue;
        v.is_known = true;
        for (size_t r = 0; r < csv_count_rows(c); r++) {
            v.cases += !is_skipped(c, r);
            v.wrong += !is_skipped(c, r) && !is_right(c, r);
        }
    }
    return v;
}

static size_t get_count(const csv_file *f, const char *key) {
    const char *text = csv_get_meta(f, key);
    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

page_verdict page_count_validations(const store_folder *f) {
    page_verdict v = {.cases = 0};
    for (size_t i = 0; i < f->count; i++) {
        if (f->files[i].kind != STORE_VALIDATE)
            continue;
        v.is_known = true;
        v.wrong += get_count(f->files[i].csv, "failed");
        v.cases += get_count(f->files[i].csv, "passed") + get_count(f->files[i].csv, "failed");
    }
    return v;
}

size_t page_count_findings(const store_folder *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->files[i].kind == STORE_VALIDATE)
            count += csv_count_rows(f->files[i].csv);
    return count;
}

/* Kernels against the reference --------------------------------------------------------------- */

typedef struct {
    const char *kernel;
    size_t cases, wrong;
    double margin, ulp; /* the largest; NaN if no case has one */
} kernel_sum;

static double get_larger(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

static bool add_case(kernel_sum *s, const csv_file *f, size_t row, err *e) {
    size_t margin, ulp;
    double value;
    if (is_skipped(f, row))
        return true;
    s->cases++;
    s->wrong += !is_right(f, row);
    if (!csv_find_column(f, "margin", &margin, e) || !csv_get_double(f, row, margin, &value, e))
        return false;
    s->margin = get_larger(s->margin, value);
    if (!csv_find_column(f, "max_ulp", &ulp, e) || !csv_get_double(f, row, ulp, &value, e))
        return false;
    s->ulp = get_larger(s->ulp, value);
    return true;
}

/* One per kernel, in the order of the file; the caller frees it. */
static bool sum_kernels(const csv_file *f, kernel_sum **out, size_t *count, err *e) {
    kernel_sum *list = array_new(csv_count_rows(f) + 1, sizeof *list);
    *out = list;
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name = get_cell(f, r, "kernel");
        size_t i = 0;
        while (i < *count && strcmp(list[i].kernel, name) != 0)
            i++;
        if (i == *count)
            list[(*count)++] = (kernel_sum){.kernel = name, .margin = NAN, .ulp = NAN};
        if (!add_case(&list[i], f, r, e))
            return false;
    }
    return true;
}

static void print_sum(FILE *out, const kernel_sum *s) {
    char text[48];
    fputs("<tr><td class=\"id\">", out);
    html_print(out, s->kernel);
    fputs("</td><td>", out);
    html_print_badge(out, s->wrong ? "bad" : "good", s->wrong ? "wrong" : "right");
    fputs("</td>", out);
    snprintf(text, sizeof text, "%zu", s->cases);
    html_print_number_cell(out, (double)s->cases, text);
    snprintf(text, sizeof text, "%zu", s->wrong);
    html_print_number_cell(out, (double)s->wrong, text);
    html_format_number(s->margin, text, sizeof text);
    html_print_number_cell(out, s->margin, text);
    html_format_number(s->ulp, text, sizeof text);
    html_print_number_cell(out, s->ulp, text);
    fputs("</tr>\n", out);
}

static void print_wrong(FILE *out, const csv_file *f) {
    static const html_column columns[] = {{"kernel", false, NULL},
                                          {"shape", false, NULL},
                                          {"input", false, NULL},
                                          {"why", false, NULL}};
    html_start_table(out, columns, 4, "Cases that are wrong");
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        if (is_right(f, r) || is_skipped(f, r))
            continue;
        fputs("<tr>", out);
        html_print_text_cell(out, get_cell(f, r, "kernel"));
        html_print_text_cell(out, get_cell(f, r, "shape"));
        html_print_text_cell(out, get_cell(f, r, "input"));
        html_print_text_cell(out, get_cell(f, r, "message"));
        fputs("</tr>\n", out);
    }
    html_end_table(out);
}

static bool print_check(const page *p, FILE *out, const store_folder *f, const store_file *file,
                        err *e) {
    static const html_column columns[] = {
        {"kernel", false, NULL},
        {"verdict", false, NULL},
        {"cases", true, NULL},
        {"wrong", true, NULL},
        {"largest margin", true, "the largest error divided by the tolerance"},
        {"largest error, ulp", true, "in units of the last place of the output's format"}};
    kernel_sum *sums = NULL;
    size_t count = 0, wrong = 0;
    page_print_origin(out, file);
    bool ok = sum_kernels(file->csv, &sums, &count, e);
    if (ok) {
        char caption[320];
        for (size_t i = 0; i < count; i++)
            wrong += sums[i].wrong;
        if (wrong > 0)
            print_wrong(out, file->csv);
        snprintf(caption, sizeof caption, "Kernels against their reference on %.160s", f->device);
        html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
        for (size_t i = 0; i < count; i++)
            print_sum(out, &sums[i]);
        html_end_table(out);
        fputs("<p>Every case: ", out);
        page_print_file(p, out, f, strrchr(file->path, '/') + 1);
        fputs("</p>\n", out);
    }
    free(sums);
    return ok;
}

/* Validation ---------------------------------------------------------------------------------- */

static void print_validation(const page *p, FILE *out, const store_folder *f,
                             const store_file *file) {
    page_verdict v = page_count_validations(f);
    page_print_origin(out, file);
    const char *canaries = csv_get_meta(file->csv, "canaries");
    fputs("<p><strong>Memory.</strong> Every load and store was watched", out);
    if (v.cases > 0)
        fprintf(out, " in %zu cases; %zu failed", v.cases, v.wrong);
    fputs(". ", out);
    if (canaries)
        html_printf(out,
                    "Before that, kernels with planted bugs were run to confirm that validation "
                    "finds them: %.80s. ",
                    canaries);
    if (csv_count_rows(file->csv) == 0)
        fputs("Nothing was found. ", out);
    fputs("Findings: ", out);
    page_print_file(p, out, f, strrchr(file->path, '/') + 1);
    fputs("</p>\n", out);
    if (csv_count_rows(file->csv) > 0)
        page_print_rows(p, out, f, file);
}

static void print_none(FILE *out, const char *sentence) {
    fputs("<p class=\"note\">", out);
    html_print_prose(out, sentence);
    fputs("</p>\n", out);
}

bool page_print_right(page *p, FILE *out, err *e) {
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        if (p->store->count > 1) {
            fputs("<h3>", out);
            html_print(out, f->device);
            fputs("</h3>\n", out);
        }
        for (size_t k = 0; k < f->count; k++)
            if (f->files[k].kind == STORE_VALIDATE)
                print_validation(p, out, f, &f->files[k]);
        if (!store_find(f, STORE_VALIDATE, NULL))
            print_none(out, "Nothing was validated: `assay validate --csv FILE` writes what is "
                            "shown here.");
        for (size_t k = 0; k < f->count; k++)
            if (f->files[k].kind == STORE_CHECK && !print_check(p, out, f, &f->files[k], e))
                return false;
        page_print_charts(p, out, f, "check");
        if (!store_find(f, STORE_CHECK, NULL))
            print_none(out, "Nothing was checked: `assay check --csv FILE` writes what is shown "
                            "here.");
    }
    return true;
}

/* Times --------------------------------------------------------------------------------------- */

static void print_number(FILE *out, double value, const char *unit) {
    char number[48], text[64];
    html_format_number(value, number, sizeof number);
    snprintf(text, sizeof text, "%s%s", number, isnan(value) ? "" : unit);
    html_print_number_cell(out, value, text);
}

/* "emulated+busy" with places to break the line. */
static void print_labels(FILE *out, const char *labels) {
    for (const char *p = labels; *p; p += strcspn(p, "+")) {
        p += *p == '+';
        html_printf(out, "%s%.*s", p == labels ? "" : ", ", (int)strcspn(p, "+"), p);
    }
}

static void print_time(freshness *fresh, FILE *out, const result_row *r) {
    char text[64], changes[120];
    fputs("<tr>", out);
    html_print_text_cell(out, r->kernel);
    html_print_text_cell(out, r->shape);
    fputs("<td>", out);
    html_printf(out, "%s%s%s", r->regime, r->regime[0] && r->cache[0] ? ", " : "", r->cache);
    fputs("</td>", out);
    double median = r->gpu.count > 0 ? r->gpu.median : NAN;
    html_print_number_cell(out, median, format_time(median, text, sizeof text));
    print_number(out, 100 * (r->gpu.q3 - r->gpu.q1) / median, " %");
    print_number(out, (double)r->gpu.count, "");
    print_number(out, r->gb_s, "");
    print_number(out, r->pct_roof, " %");
    print_number(out, r->gflop_s, "");
    fputs("<td>", out);
    if (r->message[0])
        html_printf(out, "not timed: %s", r->message);
    else
        print_labels(out, r->labels);
    if (!r->message[0] && freshness_judge(fresh, r->made_of, changes, sizeof changes)) {
        fputs(r->labels[0] ? " " : "", out);
        html_print_badge(out, "bad", changes[0] ? "stale" : "origin unknown");
    }
    fputs("</td></tr>\n", out);
}

static void start_times(FILE *out, const store_folder *f) {
    static const html_column columns[] = {
        {"kernel", false, NULL},
        {"shape", false, NULL},
        {"regime", false, "single, chained or independent launches, with a warm or a cold cache"},
        {"time", true, "median GPU time of a case"},
        {"spread", true, "distance between the quartiles, relative to the median"},
        {"n", true, "samples"},
        {"GB/s", true, "of the bytes that must be moved; 1 GB is 1e9 bytes"},
        {"of roof", true, "of the nearer one: bandwidth or arithmetic, measured in the same run"},
        {"GFLOP/s", true, NULL},
        {"labels", false, "conditions that make a time less trustworthy"}};
    char caption[240];
    snprintf(caption, sizeof caption, "Kernel times on %.160s%s", f->device,
             f->emulated ? " (emulated)" : "");
    html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
}

static bool print_times(const page *p, FILE *out, const store_folder *f, const store_file *file,
                        err *e) {
    page_print_charts(p, out, f, file->name);
    page_print_origin(out, file);
    start_times(out, f);
    for (size_t r = 0; r < csv_count_rows(file->csv); r++) {
        result_row row;
        if (!result_read_row(file->csv, r, &row, e))
            return false;
        print_time(p->store->fresh, out, &row);
    }
    html_end_table(out);
    page_print_history(p, out, f, file);
    return true;
}

bool page_print_times(page *p, FILE *out, err *e) {
    bool is_any = false, ok = true;
    for (size_t i = 0; i < p->store->count; i++)
        for (size_t k = 0; ok && k < p->store->folders[i].count; k++) {
            const store_file *file = &p->store->folders[i].files[k];
            if (file->kind != STORE_BENCH)
                continue;
            is_any = true;
            ok = print_times(p, out, &p->store->folders[i], file, e);
        }
    if (!is_any)
        print_none(out, "No kernels were timed one by one: `assay bench` does it.");
    return ok;
}
