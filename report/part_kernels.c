/* part_kernels: verdicts of check and validate, and the times of bench. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/measure/results.h"
#include "page_parts.h"

/* Counting ------------------------------------------------------------------------------------ */

static bool is_right(const csv_file *f, size_t row) {
    return strcmp(page_get_cell(f, row, "verdict"), "pass") == 0;
}

/* A case that its kernel does not take was not run: it counts neither way. */
static bool is_skipped(const csv_file *f, size_t row) {
    return strcmp(page_get_cell(f, row, "verdict"), "skip") == 0;
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

/* One per kernel, in the order of the file; the caller frees it. */
static kernel_sum *sum_kernels(const csv_file *f, size_t *count) {
    kernel_sum *list = array_new(csv_count_rows(f) + 1, sizeof *list);
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name = page_get_cell(f, r, "kernel");
        size_t i = 0;
        while (i < *count && strcmp(list[i].kernel, name) != 0)
            i++;
        if (i == *count)
            list[(*count)++] = (kernel_sum){.kernel = name, .margin = NAN, .ulp = NAN};
        if (is_skipped(f, r))
            continue;
        list[i].cases++;
        list[i].wrong += !is_right(f, r);
        list[i].margin = get_larger(list[i].margin, page_get_number(f, r, "margin"));
        list[i].ulp = get_larger(list[i].ulp, page_get_number(f, r, "max_ulp"));
    }
    return list;
}

static void print_sum(FILE *out, const kernel_sum *s) {
    char text[48];
    fputs("<tr>", out);
    html_print_text_cell(out, s->kernel);
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
        html_print_text_cell(out, page_get_cell(f, r, "kernel"));
        html_print_text_cell(out, page_get_cell(f, r, "shape"));
        html_print_text_cell(out, page_get_cell(f, r, "input"));
        html_print_text_cell(out, page_get_cell(f, r, "message"));
        fputs("</tr>\n", out);
    }
    html_end_table(out);
}

static void print_check(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    static const html_column columns[] = {
        {"kernel", false, NULL},
        {"cases", true, NULL},
        {"wrong", true, NULL},
        {"largest margin", true, "the largest error divided by the tolerance"},
        {"largest error, ulp", true, "in units of the last place of the output's format"}};
    size_t count, wrong = 0, cases = 0;
    double margin = NAN;
    char caption[320], text[48];
    kernel_sum *sums = sum_kernels(file->csv, &count);
    for (size_t i = 0; i < count; i++) {
        wrong += sums[i].wrong;
        cases += sums[i].cases;
        margin = get_larger(margin, sums[i].margin);
    }
    html_format_number(margin, text, sizeof text);
    fprintf(out,
            "<p><strong>Results.</strong> %zu of %zu cases of %zu kernels are right; the largest "
            "margin is %s. ",
            cases - wrong, cases, count, text);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    page_print_origin(out, file);
    if (wrong > 0)
        print_wrong(out, file->csv);
    fputs("<details><summary>Every kernel</summary>\n", out);
    snprintf(caption, sizeof caption, "Kernels against their reference on %.160s", f->device);
    html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
    for (size_t i = 0; i < count; i++)
        print_sum(out, &sums[i]);
    html_end_table(out);
    fputs("</details>\n", out);
    free(sums);
}

/* Validation ---------------------------------------------------------------------------------- */

static void print_findings(FILE *out, const csv_file *f) {
    static const html_column columns[] = {{"class", false, NULL},
                                          {"where", false, NULL},
                                          {"case", false, NULL},
                                          {"what", false, NULL},
                                          {"times", true, NULL}};
    enum { MOST = 100 };
    html_start_table(out, columns, 5, "Findings");
    for (size_t r = 0; r < csv_count_rows(f) && r < MOST; r++) {
        fputs("<tr>", out);
        html_print_text_cell(out, page_get_cell(f, r, "class"));
        fputs("<td>", out);
        html_printf(out, "%s:%s", page_get_cell(f, r, "file"), page_get_cell(f, r, "line"));
        fputs("</td>", out);
        html_print_text_cell(out, page_get_cell(f, r, "case"));
        html_print_text_cell(out, page_get_cell(f, r, "text"));
        html_print_number_cell(out, page_get_number(f, r, "count"), page_get_cell(f, r, "count"));
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    if (csv_count_rows(f) > MOST)
        fprintf(out, "<p class=\"dim\">The first %d of %zu.</p>\n", MOST, csv_count_rows(f));
}

static void print_validation(const page *p, FILE *out, const store_folder *f,
                             const store_file *file) {
    page_verdict v = page_count_validations(f);
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
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    page_print_origin(out, file);
    if (csv_count_rows(file->csv) > 0)
        print_findings(out, file->csv);
}

bool page_print_right(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        page_start_device(p, out, f);
        for (size_t k = 0; k < f->count; k++) {
            if (f->files[k].kind == STORE_VALIDATE)
                print_validation(p, out, f, &f->files[k]);
            if (f->files[k].kind == STORE_CHECK)
                print_check(p, out, f, &f->files[k]);
            if (f->files[k].kind == STORE_AGX)
                page_print_agx(p, out, f, &f->files[k]);
        }
        if (!store_find(f, STORE_CHECK, NULL))
            page_print_note(out, "Nothing was checked: `assay check --csv FILE` writes what is "
                                 "shown here.");
        if (!store_find(f, STORE_VALIDATE, NULL))
            page_print_note(out, "Nothing was validated: `assay validate --csv FILE` writes what "
                                 "is shown here.");
        page_end_device(p, out, f);
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

/* Kernel and, smaller, what else says under which conditions the time was taken. */
static void print_name(freshness *fresh, FILE *out, const result_row *r, bool is_mixed) {
    char changes[120];
    fputs("<tr><td>", out);
    html_print(out, r->kernel);
    fputs("<br><small>", out);
    html_printf(out, "%s %s %s", r->shape, r->regime, r->cache);
    for (const char *p = r->labels; *p; p += strcspn(p, "+")) {
        p += *p == '+';
        html_printf(out, ", %.*s", (int)strcspn(p, "+"), p);
    }
    if (r->message[0])
        html_printf(out, ", not timed: %s", r->message);
    fputs("</small>", out);
    if (is_mixed && !r->message[0] && freshness_judge(fresh, r->made_of, changes, sizeof changes)) {
        fputc(' ', out);
        html_print_badge(out, "bad", changes[0] ? "stale" : "origin unknown");
    }
    fputs("</td>", out);
}

static void print_time(const page *p, FILE *out, const store_folder *f, const store_file *file,
                       const result_row *r, const result_case *c) {
    char text[64];
    const file_origin *o = &file->origin; /* if all rows are stale, the line above says so */
    double median = r->gpu.count > 0 ? r->gpu.median : NAN;
    print_name(p->store->fresh, out, r, o->stale < o->rows && o->unknown < o->rows);
    html_print_number_cell(out, median, format_time(median, text, sizeof text));
    print_number(out, r->pct_roof, " %");
    page_print_samples(out, c ? c->samples : NULL, c ? c->count : 0);
    page_print_trend(out, page_new_history(f, r->name));
    print_number(out, 100 * (r->gpu.q3 - r->gpu.q1) / median, " %");
    print_number(out, (double)r->gpu.count, "");
    print_number(out, r->gb_s, "");
    print_number(out, r->gflop_s, "");
    fputs("</tr>\n", out);
}

/* Another kernel was faster at the same: such rows of long files are left to the file. */
static bool is_beaten(const result_row *rows, size_t count, const result_row *r) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].gpu.count > 0 && rows[i].gpu.median < r->gpu.median &&
            strcmp(rows[i].op, r->op) == 0 && strcmp(rows[i].format, r->format) == 0 &&
            strcmp(rows[i].shape, r->shape) == 0 && strcmp(rows[i].regime, r->regime) == 0 &&
            strcmp(rows[i].cache, r->cache) == 0)
            return true;
    return false;
}

static void start_times(FILE *out, const store_folder *f, const store_file *file) {
    static const html_column columns[] = {
        {"case", false,
         "the kernel; its shape; single, chained or independent launches, with a warm or a cold "
         "cache; labels"},
        {"time", true, "median GPU time"},
        {"of roof", true, "of the nearer one: bandwidth or arithmetic, measured in the same run"},
        {"samples", false, "how many samples fell into each twentieth of their range"},
        {"history", false, "medians over runs with 95 % intervals; a square: the source changed"},
        {"last change", true, "of the last run against the one before, and its interval"},
        {"spread", true, "distance between the quartiles, relative to the median"},
        {"n", true, "samples"},
        {"GB/s", true, "of the bytes that must be moved; 1 GB is 1e9 bytes"},
        {"GFLOP/s", true, NULL}};
    char caption[320];
    snprintf(caption, sizeof caption, "%.120s on %.120s%s", file->name, f->device,
             f->emulated ? " (emulated)" : "");
    fputs("<div class=\"less\"><label class=\"all\"><input type=\"checkbox\"> all columns</label>",
          out);
    html_start_table(out, columns, sizeof columns / sizeof *columns, caption);
}

static void print_times(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    enum { LONG = 60 };
    size_t count = csv_count_rows(file->csv), shown = 0;
    result_row *rows = array_new(count + 1, sizeof *rows);
    results_list samples = {.count = 0};
    bool has_samples = results_read(file->path, &samples, NULL);
    page_print_origin(out, file);
    start_times(out, f, file);
    for (size_t r = 0; r < count; r++)
        result_read_row(file->csv, r, &rows[r], NULL); /* the store has read it before */
    for (size_t r = 0; r < count; r++) {
        if (count > LONG && is_beaten(rows, count, &rows[r]))
            continue;
        shown++;
        print_time(p, out, f, file, &rows[r],
                   has_samples ? results_list_find(&samples, rows[r].name) : NULL);
    }
    html_end_table(out);
    fputs("</div><p>", out);
    if (shown < count)
        fputs("The fastest kernel of each op, format and shape. All: ", out);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    page_print_baselines(out, f, file);
    results_list_free(&samples);
    free(rows);
}

bool page_print_times(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        page_start_device(p, out, f);
        for (size_t k = 0; k < f->count; k++)
            if (f->files[k].kind == STORE_BENCH)
                print_times(p, out, f, &f->files[k]);
        if (!store_find(f, STORE_BENCH, NULL))
            page_print_note(out, "No kernels were timed one by one: `assay bench` does it.");
        page_end_device(p, out, f);
    }
    return true;
}
