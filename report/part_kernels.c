/* part_kernels: verdicts of check and validate, kernels that spill on an M1, and lines of kernels with what they
 * do to memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/path.h"
#include "page.h"

/* Counting ------------------------------------------------------------------------------------ */

static bool is_right(const csv_file *f, size_t row) {
    return strcmp(csv_find_text(f, row, "verdict"), "pass") == 0;
}

/* A case that its kernel does not take was not run: it counts neither way. */
static bool is_skipped(const csv_file *f, size_t row) {
    return strcmp(csv_find_text(f, row, "verdict"), "skip") == 0;
}

static size_t get_count(const csv_file *f, const char *key) {
    const char *text = csv_get_meta(f, key);
    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

page_verdict page_count(const store_folder *f) {
    page_verdict v = {.checked = 0};
    for (const store_file *file = f->files; file < f->files + f->count; file++) {
        const csv_file *c = file->csv;
        for (size_t r = 0; file->kind == STORE_CHECK && r < csv_count_rows(c); r++) {
            v.checked += !is_skipped(c, r);
            v.wrong += !is_skipped(c, r) && !is_right(c, r);
        }
        if (file->kind != STORE_VALIDATE)
            continue;
        v.failed += get_count(c, "failed");
        v.validated += get_count(c, "passed") + get_count(c, "failed");
        v.findings += csv_count_rows(c);
    }
    return v;
}

/* Kernels against the reference --------------------------------------------------------------- */

typedef struct {
    const char *kernel;
    size_t cases, wrong;
    double margin, ulp; /* the largest; NaN if no case has one */
} kernel_sum;

/* One per kernel, in the order of the file; the caller frees it. */
static kernel_sum *sum_kernels(const csv_file *f, size_t *count) {
    kernel_sum *list = array_new(csv_count_rows(f) + 1, sizeof *list);
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name = csv_find_text(f, r, "kernel");
        size_t i = 0;
        while (i < *count && strcmp(list[i].kernel, name) != 0)
            i++;
        if (i == *count)
            list[(*count)++] = (kernel_sum){.kernel = name, .margin = NAN, .ulp = NAN};
        if (is_skipped(f, r))
            continue;
        list[i].cases++;
        list[i].wrong += !is_right(f, r);
        list[i].margin = fmax(list[i].margin, csv_find_double(f, r, "margin"));
        list[i].ulp = fmax(list[i].ulp, csv_find_double(f, r, "max_ulp"));
    }
    return list;
}

static void print_sum(FILE *out, const kernel_sum *s) {
    html(out, "<tr><td>%s</td>", s->kernel);
    html_print_number(out, (double)s->cases, "");
    html_print_number(out, (double)s->wrong, "");
    html_print_number(out, s->margin, "");
    html_print_number(out, s->ulp, "");
    fputs("</tr>\n", out);
}

static void print_wrong(FILE *out, const csv_file *f) {
    html_start_table(out, "Cases that are wrong", "kernel", "shape", "input", "why", NULL);
    for (size_t r = 0; r < csv_count_rows(f); r++)
        if (!is_right(f, r) && !is_skipped(f, r))
            page_print_row(out,
                           "<tr><td>{kernel}</td><td>{shape}</td><td>{input}</td><td>{message}</td>"
                           "</tr>\n",
                           f, r);
    html_end_table(out);
}

static void print_check(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    size_t count, wrong = 0, cases = 0;
    double margin = NAN;
    char caption[320], text[HTML_NUMBER];
    kernel_sum *sums = sum_kernels(file->csv, &count);
    for (size_t i = 0; i < count; i++) {
        wrong += sums[i].wrong;
        cases += sums[i].cases;
        margin = fmax(margin, sums[i].margin);
    }
    html(out,
         "<p><strong>Results.</strong> %zu of %zu cases of %zu kernels are right; the largest "
         "margin is %s. ",
         cases - wrong, cases, count, html_format_number(margin, text));
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    page_print_origin(out, file);
    if (wrong > 0)
        print_wrong(out, file->csv);
    fputs("<details><summary>Every kernel</summary>\n", out);
    snprintf(caption, sizeof caption, "Kernels against their reference on %.160s", f->device);
    html_start_table(out, caption, "kernel", "#cases", "#wrong",
                     "#largest margin|the largest error divided by the tolerance",
                     "#largest error, ulp|in units of the last place of the output's format", NULL);
    for (size_t i = 0; i < count; i++)
        print_sum(out, &sums[i]);
    html_end_table(out);
    fputs("</details>\n", out);
    free(sums);
}

/* Validation ---------------------------------------------------------------------------------- */

static void print_findings(FILE *out, const csv_file *f) {
    enum { MOST = 100 };
    html_start_table(out, "Findings", "class", "where", "case", "what", "#times", NULL);
    for (size_t r = 0; r < csv_count_rows(f) && r < MOST; r++)
        page_print_row(out,
                       "<tr><td>{class}</td><td>{file}:{line}</td><td>{case}</td><td>{text}</td>"
                       "{#count}</tr>\n",
                       f, r);
    html_end_table(out);
    if (csv_count_rows(f) > MOST)
        html(out, "<p class=\"dim\">The first %d of %zu.</p>\n", MOST, csv_count_rows(f));
}

static void print_validation(const page *p, FILE *out, const store_folder *f,
                             const store_file *file) {
    page_verdict v = page_count(f);
    const char *canaries = csv_get_meta(file->csv, "canaries");
    fputs("<p><strong>Memory.</strong> Every load and store was watched", out);
    if (v.validated > 0)
        html(out, " in %zu cases; %zu failed", v.validated, v.failed);
    fputs(". ", out);
    if (canaries)
        html(out,
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

/* A warning for each kernel that uses scratch memory on an M1, as Mesa's compiler sees it. */
static void print_agx(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    const csv_file *c = file->csv;
    const char *compiler = csv_get_meta(c, "agx compiler");
    size_t compiled = 0, spilling = 0;
    for (size_t r = 0; r < csv_count_rows(c); r++) {
        compiled += csv_find_double(c, r, "threads") > 0;
        spilling += csv_find_double(c, r, "scratch_bytes") > 0;
    }
    html(out,
         "<p><strong>Registers (Mesa's compiler, M1).</strong> Of %zu kernels %zu compile, and %zu "
         "of these spill or use scratch memory. It is not Apple's compiler. ",
         csv_count_rows(c), compiled, spilling);
    if (compiler)
        html(out, "%.120s. ", compiler);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    if (spilling == 0)
        return;
    html_start_table(out, "Warning: scratch memory (Mesa's compiler, M1)", "kernel",
                     "#scratch|bytes of memory per thread", "#spills|stores of spilled registers",
                     "#fills|loads of spilled registers", "#registers|of 16 bits, per thread",
                     "#threads|that have room on a core", NULL);
    for (size_t r = 0; r < csv_count_rows(c); r++)
        if (csv_find_double(c, r, "scratch_bytes") > 0)
            page_print_row(out,
                           "<tr><td>{kernel}</td>{#scratch_bytes}{#spills}{#fills}"
                           "{#half_registers}{#threads}</tr>\n",
                           c, r);
    html_end_table(out);
}

void page_print_right(const page *p, FILE *out, const store_folder *f) {
    for (const store_file *file = f->files; file < f->files + f->count; file++) {
        if (file->kind == STORE_VALIDATE)
            print_validation(p, out, f, file);
        if (file->kind == STORE_CHECK)
            print_check(p, out, f, file);
        if (file->kind == STORE_AGX)
            print_agx(p, out, f, file);
    }
    if (!store_find(f, STORE_CHECK, NULL))
        page_print_note(out, "Nothing was checked: `assay check --csv FILE` writes what is "
                             "shown here.");
    if (!store_find(f, STORE_VALIDATE, NULL))
        page_print_note(out, "Nothing was validated: `assay validate --csv FILE` writes what "
                             "is shown here.");
}

/* What lines do to memory ---------------------------------------------------------------------
 *
 * From the counts that `assay profile --csv` wrote to profile_lines.csv. A bar is the line's part of the sectors
 * of its case. */

enum { MOST_LINES = 8 };

static double get_sectors(const csv_file *c, size_t row) {
    return csv_find_double(c, row, "load_sectors") + csv_find_double(c, row, "store_sectors");
}

static void print_counts(FILE *out, const csv_file *c, size_t row) {
    const double measured = csv_find_double(c, row, "measured_ns");
    char text[32];
    page_print_row(out, "<h3><code>{case}</code></h3>\n<p>{text}", c, row);
    if (!isnan(measured))
        html(out, " It was measured: %s.", format_time(measured, text, sizeof text));
    fputs("</p>\n<table class=\"bars\"><caption>Sectors, by line</caption><tbody>\n", out);
}

static void print_line(FILE *out, const csv_file *c, size_t row, size_t sum) {
    const double all = get_sectors(c, sum), share = all > 0 ? 100 * get_sectors(c, row) / all : 0;
    const double instructions = csv_find_double(c, sum, "instructions");
    const double work =
        instructions > 0 ? 100 * csv_find_double(c, row, "instructions") / instructions : 0;
    html(out,
         "<tr><th scope=\"row\">%s:%s</th><td><span class=\"bar d0\" style=\"width:%.1f%%\"></span>"
         "%.3g %%, instructions %.3g %% <code>%s</code></td></tr>\n",
         path_get_name(csv_find_text(c, row, "file")), csv_find_text(c, row, "line"), share * 0.4,
         share, work, csv_find_text(c, row, "text"));
}

/* Rows are a case with line 0, then its lines, those with most sectors first. */
static void print_cases(FILE *out, const csv_file *c) {
    size_t sum = 0, shown = 0;
    bool is_open = false;
    for (size_t row = 0; row < csv_count_rows(c); row++) {
        if (strcmp(csv_find_text(c, row, "line"), "0") == 0) {
            fputs(is_open ? "</tbody></table>\n" : "", out);
            print_counts(out, c, row);
            is_open = true;
            sum = row;
            shown = 0;
        } else if (is_open && shown++ < MOST_LINES) {
            print_line(out, c, row, sum);
        }
    }
    fputs(is_open ? "</tbody></table>\n" : "", out);
}

void page_print_profile(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_OTHER, "profile_lines");
    if (file) {
        print_cases(out, file->csv);
        page_print_table_files(p, out, f, file);
    } else
        page_print_note(out,
                        "Nothing was counted: `assay profile CASE --csv profile_lines.csv`, in "
                        "the folder of results, writes what is shown here.");
}
