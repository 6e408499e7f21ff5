/* part_kernels: verdicts of check and validate, kernels that spill on an M1, what limits kernels, and their lines
 * with what they do to memory. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
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

static void print_check(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    const csv_file *c = file->csv;
    size_t wrong = 0, cases = 0;
    double margin = NAN;
    const char *nearest = "";
    char text[HTML_NUMBER];
    for (size_t r = 0; r < csv_count_rows(c); r++) {
        const double own = csv_find_double(c, r, "margin");
        if (is_skipped(c, r))
            continue;
        cases++;
        wrong += !is_right(c, r);
        if (own > margin || isnan(margin)) {
            margin = own;
            nearest = csv_find_text(c, r, "kernel");
        }
    }
    html(out,
         "<p><strong>Results.</strong> %zu of %zu cases are right; the largest margin is %s, of ",
         cases - wrong, cases, html_format_number(margin, text));
    html_print_name(out, nearest);
    fputs(". ", out);
    page_end_source(p, out, f, file);
    if (wrong == 0)
        return;
    html_start_table(out, "Cases that are wrong", "kernel", "shape", "input", "why", NULL);
    for (size_t r = 0; r < csv_count_rows(c); r++)
        if (!is_right(c, r) && !is_skipped(c, r))
            html(out, "<tr><td>%s<td>%s<td>%s<td>%s\n", csv_find_text(c, r, "kernel"),
                 csv_find_text(c, r, "shape"), csv_find_text(c, r, "input"),
                 csv_find_text(c, r, "message"));
    html_end_table(out);
}

/* Validation ---------------------------------------------------------------------------------- */

static void print_validation(const page *p, FILE *out, const store_folder *f,
                             const store_file *file) {
    const csv_file *c = file->csv;
    const page_verdict v = page_count(f);
    const char *canaries = csv_get_meta(c, "canaries");
    html(out,
         "<p><strong>Memory.</strong> Every load and store was watched in %zu cases; %zu failed. ",
         v.validated, v.failed);
    if (canaries)
        html(out,
             "Before that, kernels with planted bugs were run to confirm that validation "
             "finds them: %.80s. ",
             canaries);
    if (csv_count_rows(c) == 0)
        fputs("Nothing was found. ", out);
    page_end_source(p, out, f, file);
    if (csv_count_rows(c) == 0)
        return;
    html_start_table(out, "Findings, the first 100", "class", "where", "case", "what", "#times",
                     NULL);
    for (size_t r = 0; r < csv_count_rows(c) && r < 100; r++)
        html(out, "<tr><td>%s<td>%s:%s<td>%s<td>%s<td class=n>%s\n", csv_find_text(c, r, "class"),
             csv_find_text(c, r, "file"), csv_find_text(c, r, "line"), csv_find_text(c, r, "case"),
             csv_find_text(c, r, "text"), csv_find_text(c, r, "count"));
    html_end_table(out);
}

/* Kernels that use scratch memory on an M1, as Mesa's compiler sees it. */
static void print_agx(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    const csv_file *c = file->csv;
    size_t spilling = 0;
    for (size_t r = 0; r < csv_count_rows(c); r++)
        spilling += csv_find_double(c, r, "scratch_bytes") > 0;
    html(
        out,
        "<p><strong>Registers.</strong> %zu of %zu kernels spill or use scratch memory on an M1 by "
        "Mesa's compiler, which is not Apple's. ",
        spilling, csv_count_rows(c));
    page_end_source(p, out, f, file);
    fputs("<details><summary>Those that spill</summary><p>", out);
    for (size_t r = 0; r < csv_count_rows(c); r++)
        if (csv_find_double(c, r, "scratch_bytes") > 0)
            html(out, "<code>%s</code> ", csv_find_text(c, r, "kernel"));
    fputs("</p></details>\n", out);
}

void page_print_right(const page *p, FILE *out, const store_folder *f) {
    static const struct {
        store_kind kind;
        void (*print)(const page *p, FILE *out, const store_folder *f, const store_file *file);
        const char *missing;
    } parts[] = {{STORE_CHECK, print_check,
                  "Nothing was checked: `assay check --csv FILE` writes what is shown here."},
                 {STORE_VALIDATE, print_validation,
                  "Nothing was validated: `assay validate --csv FILE` writes what is shown here."},
                 {STORE_AGX, print_agx, NULL}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const store_file *file = store_find(f, parts[i].kind, NULL);
        if (file)
            parts[i].print(p, out, f, file);
        else if (parts[i].missing)
            page_print_note(out, parts[i].missing);
    }
}

/* What limits kernels -------------------------------------------------------------------------
 *
 * From profile.csv: what a launch would take if only that limit counted, as `assay profile` expects it of this GPU,
 * beside what it took. Of the kernels of the traced token, or, without a trace, of those that took longest. */

static const struct {
    const char *column, *name, *advice;
} limits[] = {
    {"memory_ns", "memory", "Move fewer bytes: smaller weights, or one kernel for two ops."},
    {"issue_ns", "issue",
     "Do more per instruction: wider loads, weights decoded once for several rows."},
    {"latency_ns", "latency",
     "Overlap the waits: more simdgroups, or more independent loads per lane."},
    {"cache_ns", "cache", "Ask the cache for fewer sectors: 16 bytes per lane, side by side."},
    {"threadgroup_memory_ns", "threadgroup memory",
     "Remove bank conflicts, or keep values in registers."},
};
enum { LIMITS = sizeof limits / sizeof *limits, MOST_KERNELS = 6 };

typedef struct {
    char name[128];
    double ns;
} hot_kernel;

static int compare_kernels(const void *a, const void *b) {
    double x = ((const hot_kernel *)a)->ns, y = ((const hot_kernel *)b)->ns;
    return (x < y) - (x > y);
}

/* One per name up to a '/', the longest first; the caller frees them. */
static hot_kernel *list_kernels(const csv_file *c, const char *names, const char *times,
                                size_t *count) {
    hot_kernel *list = array_new(csv_count_rows(c) + 1, sizeof *list);
    for (size_t r = *count = 0; r < csv_count_rows(c); r++) {
        const char *name = csv_find_text(c, r, names);
        hot_kernel k = {.ns = csv_find_double(c, r, times)};
        size_t i = 0;
        snprintf(k.name, sizeof k.name, "%.*s", (int)strcspn(name, "/"), name);
        while (i < *count && strcmp(list[i].name, k.name) != 0)
            i++;
        if (i == *count)
            list[(*count)++] = k;
        else
            list[i].ns += k.ns;
    }
    qsort(list, *count, sizeof *list, compare_kernels);
    return list;
}

/* Its case that took longest. */
static bool find_case(const csv_file *c, const char *kernel, size_t *out) {
    const size_t length = strlen(kernel);
    double most = -1;
    for (size_t r = 0; r < csv_count_rows(c); r++) {
        const char *name = csv_find_text(c, r, "case");
        const double ns = csv_find_double(c, r, "measured_ns");
        if (strncmp(name, kernel, length) == 0 && name[length] == '/' && ns > most) {
            most = ns;
            *out = r;
        }
    }
    return most >= 0;
}

static void print_limits(FILE *out, const csv_file *c, size_t row) {
    const double measured = csv_find_double(c, row, "measured_ns"),
                 predicted = csv_find_double(c, row, "predicted_ns");
    const char *bound = csv_find_text(c, row, "bound"), *advice = "";
    double whole = measured;
    char is[HTML_NUMBER], expected[HTML_NUMBER];
    for (size_t i = 0; i < LIMITS; i++)
        whole = fmax(whole, csv_find_double(c, row, limits[i].column));
    fputs("<div><table class=\"bars limits\"><caption><code>", out);
    html_print_name(out, csv_find_text(c, row, "case"));
    html(out, "</code> took %s; %s expected</caption><tbody>\n", html_format_time(measured, is),
         html_format_time(predicted, expected));
    for (size_t i = 0; i < LIMITS; i++) {
        const double ns = csv_find_double(c, row, limits[i].column);
        const bool binds = *bound && strncmp(bound, limits[i].name, strlen(bound)) == 0;
        advice = binds ? limits[i].advice : advice;
        html(
            out,
            "<tr><th scope=\"row\">%s</th><td><span class=\"bar %s\" style=\"width:%.1f%%\"></span>"
            "<small>%s%s</small></td></tr>\n",
            limits[i].name, binds ? "d1" : "d0", isnan(ns) ? 0 : 60 * ns / whole,
            isnan(ns) ? "not stored" : html_format_time(ns, is), binds ? ", binds" : "");
    }
    fputs("</tbody></table>\n<p>", out);
    if (measured > 1.5 * predicted)
        html(out,
             "It takes %.2g times as long as expected, and the counts do not show why: read its "
             "machine code (<code>assay profile --code</code>).",
             measured / predicted);
    else
        fputs(advice, out);
    fputs("</p></div>\n", out);
}

static void print_hot_kernels(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_OTHER, "profile"),
                     *trace = store_find(f, STORE_TRACE, NULL);
    size_t count, row, shown = 0, missing = 0;
    if (!file) {
        page_print_note(out, "The limits of each kernel (memory, issue, latency) are unknown: the "
                             "folder has no profile.csv.");
        return;
    }
    hot_kernel *list = trace ? list_kernels(trace->csv, "kernel", "duration_ns", &count)
                             : list_kernels(file->csv, "case", "measured_ns", &count);
    html(out, "<p>%s; of several shapes the one that took longest. ",
         trace ? "Kernels of the traced token, those with most of its time first"
               : "The kernels that took longest");
    page_print_table_files(p, out, f, file);
    fputs("</p>\n<div class=\"devices\">\n", out);
    for (size_t i = 0; i < count && shown < MOST_KERNELS; i++)
        if (find_case(file->csv, list[i].name, &row)) {
            shown++;
            print_limits(out, file->csv, row);
        }
    fputs("</div>\n", out);
    for (size_t i = 0; i < count; i++)
        if (!find_case(file->csv, list[i].name, &row))
            html(out, missing++ ? ", <code>%s</code>" : "<p>Not stored: <code>%s</code>",
                 list[i].name);
    fputs(missing ? ".</p>\n" : "", out);
    free(list);
}

/* What lines do to memory ---------------------------------------------------------------------
 *
 * From the counts that `assay profile --csv` wrote to profile_lines.csv. A bar is the line's part of the sectors
 * of its case; the first 8 are shown. */

static double get_sectors(const csv_file *c, size_t row) {
    return csv_find_double(c, row, "load_sectors") + csv_find_double(c, row, "store_sectors");
}

static void print_line(FILE *out, const csv_file *c, size_t row, size_t sum) {
    const double all = get_sectors(c, sum), share = all > 0 ? 100 * get_sectors(c, row) / all : 0;
    const double work =
        csv_find_double(c, row, "instructions") / csv_find_double(c, sum, "instructions");
    html(out,
         "<tr><th scope=\"row\">%s:%s</th><td><span class=\"bar d0\" style=\"width:%.1f%%\"></span>"
         "%.3g %%, instructions %.3g %% <code>%s</code></td></tr>\n",
         path_get_name(csv_find_text(c, row, "file")), csv_find_text(c, row, "line"), share * 0.4,
         share, 100 * work, csv_find_text(c, row, "text"));
}

/* Rows are a case with line 0, then its lines, those with most sectors first. */
static void print_cases(FILE *out, const csv_file *c) {
    char time[HTML_NUMBER];
    for (size_t row = 0, sum = SIZE_MAX; row < csv_count_rows(c); row++) {
        if (strcmp(csv_find_text(c, row, "line"), "0") == 0) {
            fputs(sum < row ? "</tbody></table></details>\n" : "", out);
            sum = row;
            html(out,
                 "<details><summary><code>%s</code>, by line</summary>\n<p>%s It took %s.</p>\n"
                 "<table class=\"bars\"><caption>Sectors, by line</caption><tbody>\n",
                 csv_find_text(c, row, "case"), csv_find_text(c, row, "text"),
                 html_format_time(csv_find_double(c, row, "measured_ns"), time));
        } else if (sum < row && row - sum <= 8) {
            print_line(out, c, row, sum);
        }
    }
    fputs("</tbody></table></details>\n", out);
}

void page_print_profile(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_OTHER, "profile_lines");
    if (file || store_find(f, STORE_OTHER, "profile"))
        print_hot_kernels(p, out, f);
    if (file) {
        print_cases(out, file->csv);
        page_print_table_files(p, out, f, file);
    } else
        page_print_note(out,
                        "Nothing was counted: `assay profile CASE --csv profile_lines.csv`, in "
                        "the folder of results, writes what is shown here.");
}
