#include "report.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/check/findings.h"
#include "harness/measure/made_of.h"
#include "harness/measure/results.h"
#include "output.h"
#include "verb.h"

static const char *const titles[REPORT_COLUMNS] = {"kernel",  "shape",   "input",   "verdict",
                                                   "max abs", "max rel", "max ulp", "nmse",
                                                   "margin",  "worst"};
enum { VERDICT_COLUMN = 3, NUMBER_WIDTH = 9, REPORT_FINDINGS = 8, REPORT_FAILURES = 20 };

static void add_csv_header(csv *c) {
    static const char *const names[] = {"op",      "kernel",   "shape",   "input",     "seed",
                                        "verdict", "elements", "bad",     "nonfinite", "unwritten",
                                        "max_abs", "max_rel",  "max_ulp", "nmse",      "margin",
                                        "worst",   "message",  "made_of"};
    csv_add_row(c, names, sizeof names / sizeof *names);
}

void report_start(report *r, FILE *out, const case_list *cases, uint64_t seed, csv *file) {
    *r = (report){.seed = seed, .csv = file};
    for (int i = 0; i < REPORT_COLUMNS; i++)
        r->columns[i] = (table_column){.title = titles[i],
                                       .right = i > VERDICT_COLUMN,
                                       .width = i > VERDICT_COLUMN ? NUMBER_WIDTH : 0};
    for (size_t i = 0; i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        char text[64];
        shape_get_text(&c->shape, text, sizeof text);
        table_fit(&r->columns[0], c->kernel->name);
        table_fit(&r->columns[1], text);
        table_fit(&r->columns[2], distribution_get_name(c->inputs));
    }
    table_fit(&r->columns[VERDICT_COLUMN], "FAIL");
    r->rows = (table){.out = out,
                      .columns = r->columns,
                      .count = REPORT_COLUMNS,
                      .colour = table_wants_colour(out)};
    table_print_header(&r->rows);
    if (file)
        add_csv_header(file);
}

static void print_row(const report *r, const kernel_case *c, const char *verdict, paint p,
                      const comparison *n) {
    char shape_text[64], numbers[REPORT_COLUMNS][32];
    const char *cells[REPORT_COLUMNS] = {c->kernel->name, shape_text,
                                         distribution_get_name(c->inputs), verdict};
    shape_get_text(&c->shape, shape_text, sizeof shape_text);
    for (int i = VERDICT_COLUMN + 1; i < REPORT_COLUMNS; i++) {
        cells[i] = numbers[i];
        strcpy(numbers[i], "-");
    }
    if (n) {
        const double values[] = {n->max_abs, n->max_rel, n->max_ulp, n->nmse, n->margin};
        for (int i = 0; i < 5; i++)
            snprintf(numbers[VERDICT_COLUMN + 1 + i], sizeof numbers[0], "%.3g", values[i]);
        snprintf(numbers[REPORT_COLUMNS - 1], sizeof numbers[0], "%zu", n->worst);
    }
    table_print_row(&r->rows, cells, VERDICT_COLUMN, p);
}

/* Cases of a kernel follow each other. */
static const char *find_made_of(const report *r, const kernel_case *c) {
    static char text[MADE_OF];
    static const kernel *last;
    library *lib = last == c->kernel ? NULL : library_new(NULL, NULL, NULL);
    if (lib) {
        text[0] = 0;
        if (!made_of_add_one(text, lib, "kernel", c->kernel->file, NULL) ||
            !made_of_add_one(text, lib, "description", c->op->source, NULL) ||
            !made_of_add_one(text, lib, "device", r->api, NULL))
            text[0] = 0; /* a file that is gone has no sum */
        last = c->kernel;
    }
    library_free(lib);
    return text;
}

static void add_csv_row(const report *r, const kernel_case *c, const char *verdict,
                        const comparison *n, const char *message) {
    if (!r->csv)
        return;
    static const comparison none = {
        .max_abs = NAN, .max_rel = NAN, .max_ulp = NAN, .nmse = NAN, .margin = NAN};
    const comparison *v = n ? n : &none;
    char text[64];
    shape_get_text(&c->shape, text, sizeof text);
    csv_add_text(r->csv, c->op->name);
    csv_add_text(r->csv, c->kernel->name);
    csv_add_text(r->csv, text);
    csv_add_text(r->csv, distribution_get_name(c->inputs));
    csv_add_u64(r->csv, r->seed);
    csv_add_text(r->csv, verdict);
    csv_add_u64(r->csv, v->count);
    csv_add_u64(r->csv, v->bad);
    csv_add_u64(r->csv, v->nonfinite);
    csv_add_u64(r->csv, v->unwritten);
    csv_add_double(r->csv, v->max_abs);
    csv_add_double(r->csv, v->max_rel);
    csv_add_double(r->csv, v->max_ulp);
    csv_add_double(r->csv, v->nmse);
    csv_add_double(r->csv, v->margin);
    csv_add_u64(r->csv, v->worst);
    csv_add_text(r->csv, message);
    csv_add_text(r->csv, find_made_of(r, c));
    csv_end_row(r->csv);
}

/* A tool's output, indented; not again when the next case says the same. */
static void print_tool_output(report *r, const char *text) {
    if (!*text || (r->shown && strcmp(r->shown, text) == 0))
        return;
    free(r->shown);
    r->shown = strdup(text);
    for (const char *line = text; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(r->rows.out, "      %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
}

static void print_elements(const report *r, const check_result *result) {
    for (size_t i = 0; i < result->worst.shown; i++) {
        const bad_element *b = &result->worst.first[i];
        fprintf(r->rows.out, "      %s element %zu: expected %.9g, ", result->buffer, b->index,
                b->want);
        if (b->unwritten)
            fprintf(r->rows.out, "never written\n");
        else
            fprintf(r->rows.out, "got %.9g, tolerance %.3g\n", b->got, b->tolerance);
    }
}

static void add_skip(report *r, const kernel_case *c, const char *reason) {
    if (r->skipped++ == 0)
        snprintf(r->first_skip, sizeof r->first_skip, "%.80s %.110s", c->name, reason);
    if (r->show_skips) {
        print_row(r, c, "skip", PAINT_DIM, NULL);
        fprintf(r->rows.out, "    %s: %s\n", c->name, reason);
    }
    add_csv_row(r, c, "skip", NULL, reason);
}

static void note_failure(report *r, const char *name, const char *message) {
    snprintf(*ARRAY_ADD(r->failures, r->failure_count, r->failure_room), REPORT_LINE, "%.90s: %.*s",
             name, (int)strcspn(message, "\n"), message);
}

/* One line for all cases of a kernel that were not tried. */
static void tell_untried(report *r) {
    char line[160];
    if (!r->untried)
        return;
    snprintf(line, sizeof line, "%zu case%s %s", r->untried_count, r->untried_count == 1 ? "" : "s",
             r->why_untried);
    fprintf(r->rows.out, "    %s: %s\n", r->untried->name, line);
    note_failure(r, r->untried->name, line);
    r->untried = NULL;
}

static void add_untried(report *r, const kernel_case *c, const char *why) {
    if (r->untried != c->kernel) {
        tell_untried(r);
        r->untried = c->kernel;
        r->untried_count = 0;
        snprintf(r->why_untried, sizeof r->why_untried, "%.95s", why);
    }
    r->untried_count++;
    r->failed++;
    add_csv_row(r, c, "fail", NULL, why);
}

/* Failures scroll away between rows that pass: they are listed again at the end. */
static void print_failures(const report *r) {
    if (r->failed == 0 || r->passed == 0)
        return;
    fputs("failed:\n", r->rows.out);
    for (size_t i = 0; i < r->failure_count && i < REPORT_FAILURES; i++)
        fprintf(r->rows.out, "  %s\n", r->failures[i]);
    if (r->failure_count > REPORT_FAILURES)
        fprintf(r->rows.out, "  and %zu more\n", r->failure_count - REPORT_FAILURES);
}

static void add_row(report *r, const kernel_case *c, const case_report *what) {
    const check_result *result = what->made && !what->failure ? &what->result : NULL;
    if (r->outcomes)
        outcome_add(r->outcomes, c, what);
    if (what->is_untried) {
        add_untried(r, c, what->failure);
        return;
    }
    tell_untried(r);
    if (result && result->verdict == CHECK_PASS) {
        r->passed++;
        if (!r->quiet)
            print_row(r, c, "pass", PAINT_GOOD, &result->worst);
        add_csv_row(r, c, "pass", &result->worst, "");
        return;
    }
    if (result && result->verdict == CHECK_SKIP) {
        add_skip(r, c, result->message);
        return;
    }
    /* Numbers are only those of a comparison that was made. */
    const comparison *n = result && result->buffer[0] ? &result->worst : NULL;
    const char *message = what->failure ? what->failure
                          : result      ? result->message
                                        : what->error.text;
    r->failed++;
    note_failure(r, c->name, message);
    print_row(r, c, "FAIL", PAINT_BAD, n);
    fprintf(r->rows.out, "    %s: %s\n", c->name, message);
    findings_print(r->rows.out, &what->findings, REPORT_FINDINGS);
    if (result)
        print_elements(r, result);
    else if (!what->failure)
        print_tool_output(r, what->error.detail);
    add_csv_row(r, c, "fail", n, message);
}

void report_end(report *r) {
    tell_untried(r);
    print_failures(r);
    free(r->failures);
    r->failures = NULL;
    fprintf(r->rows.out, "%zu passed, %zu failed", r->passed, r->failed);
    if (r->skipped > 0)
        fprintf(r->rows.out, ", %zu skipped", r->skipped);
    fputc('\n', r->rows.out);
    fflush(r->rows.out); /* annotations follow on stderr, which must begin a line */
    free(r->shown);
    r->shown = NULL;
}

bool report_check_ran(const report *r, err *e) {
    return r->passed + r->failed > 0 || r->skipped == 0 ||
           err_set(e, EXIT_CANNOT, "nothing was checked: %s (all %zu cases were skipped)",
                   r->first_skip, r->skipped);
}

static bool deliver(void *context, const kernel_case *c, const case_report *r, err *e) {
    add_row(context, c, r);
    return output_flush(e);
}

suite_listener report_get_listener(report *r) {
    return (suite_listener){deliver, r};
}

csv *report_start_csv(const device_facts *f, uint64_t seed) {
    csv *c = csv_new();
    results_meta m = results_meta_new(ASSAY_VERSION, f, seed);
    for (size_t i = 0; i < m.count; i++)
        csv_add_meta(c, m.facts[i].key, m.facts[i].value);
    return c;
}

void report_print_header(const device_facts *f, uint64_t seed) {
    printf("# device: %s (%s%s)\n# compiler: %s\n# seed: %" PRIu64 "\n", f->name, f->api,
           f->validates ? ", checked" : "", f->compiler, seed);
}
