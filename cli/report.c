#include "report.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/check/findings.h"
#include "harness/measure/made_of.h"
#include "harness/measure/results.h"
#include "output.h"
#include "places.h"
#include "verb.h"

/* Of a case, and of a kernel or an op. */
static const table_column titles[REPORT_COLUMNS] = {
    {.title = "kernel", .lifts = true},
    {.title = "shape", .lifts = true},
    {.title = "input", .lifts = true},
    {.title = "verdict"},
    {.title = "max abs", .right = true, .width = 9, .rank = 1},
    {.title = "max rel", .right = true, .width = 9, .rank = 4},
    {.title = "max ulp", .right = true, .width = 9, .rank = 2},
    {.title = "nmse", .right = true, .width = 9, .rank = 5},
    {.title = "margin", .right = true, .width = 9},
    {.title = "worst", .right = true, .width = 9, .rank = 3}};
static const table_column sums[] = {{.title = "kernel"},
                                    {.title = "verdict"},
                                    {.title = "cases", .right = true, .width = 6},
                                    {.title = "margin", .right = true, .width = 9},
                                    {.title = "time", .right = true, .width = 9}};
enum { VERDICT_COLUMN = 3, SUMS_VERDICT = 1, SUMS_COLUMNS = sizeof sums / sizeof *sums };
enum { REPORT_FINDINGS = 8, REPORT_FAILURES = 20 };

static void add_csv_header(csv *c) {
    static const char *const names[] = {"op",      "kernel",   "shape",   "input",     "seed",
                                        "verdict", "elements", "bad",     "nonfinite", "unwritten",
                                        "max_abs", "max_rel",  "max_ulp", "nmse",      "margin",
                                        "worst",   "message",  "made_of"};
    csv_add_row(c, names, sizeof names / sizeof *names);
}

static void start_table(report *r, FILE *out, const case_list *cases) {
    bool has_cases = r->detail == REPORT_CASES;
    memcpy(r->columns, has_cases ? titles : sums, has_cases ? sizeof titles : sizeof sums);
    r->rows = table_new(out, r->columns, has_cases ? REPORT_COLUMNS : SUMS_COLUMNS);
    r->rows.heads = has_cases ? REPORT_COLUMNS : 0; /* before any column goes */
    if (r->detail == REPORT_OPS)
        r->columns[0].title = "op";
    for (size_t i = 0; i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        char text[64];
        table_fit(&r->columns[0], r->detail == REPORT_OPS ? c->op->name : c->kernel->name);
        if (has_cases) {
            shape_get_text(&c->shape, text, sizeof text);
            table_fit(&r->columns[1], text);
            table_fit(&r->columns[2], distribution_get_name(c->inputs));
        }
    }
    table_fit(&r->columns[has_cases ? VERDICT_COLUMN : SUMS_VERDICT], "FAIL");
}

/* Not before the first row: what is printed before it is no part of the table. */
static void show_header(report *r) {
    if (r->has_header)
        return;
    table_print_header(&r->rows);
    r->has_header = true;
}

static void set_command(report *r, const char *name, const suite_settings *s,
                        const device_facts *f) {
    char seed[40] = "";
    if (s->run.seed != 1)
        snprintf(seed, sizeof seed, " --seed %" PRIu64, s->run.seed);
    snprintf(r->again, sizeof r->again, "assay %s%s%.40s%s%s%s", name,
             s->run.device ? " --device " : "", s->run.device ? s->run.device : "",
             f->math == MATH_SAFE ? "" : " --math ",
             f->math == MATH_SAFE ? "" : math_mode_get_name(f->math), seed);
}

void report_start(report *r, const char *name, const suite_settings *s, const device_facts *f,
                  const case_list *cases, csv *file) {
    *r = (report){.seed = s->run.seed,
                  .csv = file,
                  .api = f->api,
                  .is_last = true,
                  .show_skips = s->skipped,
                  .detail = s->quiet || s->json ? REPORT_VERDICT
                            : s->verbose        ? REPORT_CASES
                            : s->ops            ? REPORT_OPS
                                                : REPORT_KERNELS};
    set_command(r, name, s, f);
    r->failures = open_memstream(&r->failure_text, &r->failure_size);
    assert(r->failures);
    start_table(r, s->json ? stderr : stdout, cases);
    if (file)
        add_csv_header(file);
}

static void print_row(report *r, const kernel_case *c, const char *verdict, paint p,
                      const comparison *n) {
    if (r->detail != REPORT_CASES)
        return;
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
    show_header(r);
    table_print_row(&r->rows, cells, VERDICT_COLUMN, p);
}

static void print_sum(report *r, report_sum *sum) {
    char cases[32], margin[32] = "-", time[32];
    const char *const cells[] = {r->detail == REPORT_OPS ? sum->op->name : sum->kernel->name,
                                 sum->failed ? "FAIL" : "pass", cases, margin,
                                 format_time(sum->ns, time, sizeof time)};
    if (sum->is_printed || (r->detail != REPORT_KERNELS && r->detail != REPORT_OPS))
        return;
    snprintf(cases, sizeof cases, "%zu", sum->passed + sum->failed);
    if (sum->margin >= 0)
        format_number(sum->margin, 3, margin, sizeof margin);
    show_header(r);
    table_print_row(&r->rows, cells, SUMS_VERDICT, sum->failed ? PAINT_BAD : PAINT_GOOD);
    sum->is_printed = true;
}

static bool is_of(const report *r, const report_sum *sum, const kernel_case *c) {
    return r->detail == REPORT_OPS ? sum->op == c->op : sum->kernel == c->kernel;
}

/* Cases of a kernel follow each other. Where they come several times, a kernel's line waits for the last. */
static report_sum *find_sum(report *r, const kernel_case *c) {
    if (r->sum_count > 0 && is_of(r, &r->sums[r->current], c))
        return &r->sums[r->current];
    if (r->sum_count > 0 && r->is_last)
        print_sum(r, &r->sums[r->current]);
    for (r->current = 0; r->current < r->sum_count; r->current++)
        if (is_of(r, &r->sums[r->current], c))
            return &r->sums[r->current];
    report_sum *sum = ARRAY_ADD(r->sums, r->sum_count, r->sum_room);
    *sum = (report_sum){.op = c->op, .kernel = c->kernel, .margin = -1};
    return sum;
}

static void add_to_sum(report *r, const kernel_case *c, const check_result *result, bool passed) {
    report_sum *sum = find_sum(r, c);
    sum->passed += passed;
    sum->failed += !passed;
    r->passed += passed;
    r->failed += !passed;
    if (result) {
        sum->margin = fmax(sum->margin, result->worst.margin);
        sum->ns += (double)result->gpu_ns;
    }
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

/* A tool's output, indented. */
static void print_tool_output(report *r, const char *text) {
    for (const char *line = text; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(r->failures, "      %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
}

static void print_elements(report *r, const check_result *result) {
    for (size_t i = 1; i < result->worst.shown; i++) { /* the message has the first */
        const bad_element *b = &result->worst.first[i];
        fprintf(r->failures, "      element %zu: expected %.9g, ", b->index, b->want);
        if (b->unwritten)
            fprintf(r->failures, "never written\n");
        else
            fprintf(r->failures, "got %.9g, tolerance %.3g\n", b->got, b->tolerance);
    }
}

static void add_skip(report *r, const kernel_case *c, const char *reason) {
    if (r->skipped++ == 0)
        snprintf(r->first_skip, sizeof r->first_skip, "%.80s %.110s", c->name, reason);
    if (r->show_skips)
        fprintf(r->rows.out, "skipped %s: %s\n", c->name, reason);
    add_csv_row(r, c, "skip", NULL, reason);
}

/* How many more cases of the kernel have failed than the one that is told. */
static void end_failure(report *r) {
    size_t tried = r->failed_more - r->untried;
    if (tried > 0 && r->failure_count <= REPORT_FAILURES)
        fprintf(r->failures, "      %zu more of its cases failed%s\n", tried,
                r->detail == REPORT_CASES ? "" : "; -v shows them");
    if (r->untried > 0 && r->failure_count <= REPORT_FAILURES)
        fprintf(r->failures, "      %zu more of its cases were not run\n", r->untried);
    r->failed_more = r->untried = 0;
}

static void print_place(report *r, const kernel_case *c) {
    int line;
    char *path = places_find_kernel(c->kernel, &line);
    if (line > 0)
        fprintf(r->failures, "      the kernel begins at %s:%d\n", path, line);
    else
        fprintf(r->failures, "      the kernel is in %s\n", path);
    free(path);
}

/* A kernel's first failure is told with its details, if there is room for them. */
static void tell_failure(report *r, const kernel_case *c, const case_report *what,
                         const check_result *result, const char *message) {
    char line[1200];
    if (r->failed_kernel == c->kernel) {
        r->failed_more++;
        r->untried += what->is_untried;
        return;
    }
    end_failure(r);
    r->failed_kernel = c->kernel;
    if (r->failure_count++ >= REPORT_FAILURES)
        return;
    snprintf(line, sizeof line, "%s: %s%s%s", c->name, r->tool ? r->tool : "", r->tool ? ": " : "",
             message);
    table_print_text(r->failures, table_find_limit(r->rows.out), 2, line);
    if (!r->lists_findings)
        findings_print(r->failures, &what->findings, REPORT_FINDINGS);
    if (result)
        print_elements(r, result);
    else if (!what->failure)
        print_tool_output(r, what->error.detail);
    print_place(r, c);
    fprintf(r->failures, "      to run it alone: %s %s\n", r->again, c->name);
}

static void print_failures(report *r) {
    end_failure(r);
    fclose(r->failures);
    if (r->failure_count > 0)
        fprintf(r->rows.out, "%sfailed:\n%s", r->detail == REPORT_VERDICT ? "" : "\n",
                r->failure_text);
    if (r->failure_count > REPORT_FAILURES)
        fprintf(r->rows.out, "  and %zu more kernels\n", r->failure_count - REPORT_FAILURES);
    free(r->failure_text);
}

static void add_row(report *r, const kernel_case *c, const case_report *what) {
    const check_result *result = what->made && !what->failure ? &what->result : NULL;
    if (r->outcomes)
        outcome_add(r->outcomes, c, what);
    if (result && result->warning[0] && r->warned_kernel != c->kernel) {
        fprintf(stderr, "warning: %s\n", result->warning);
        r->warned_kernel = c->kernel;
    }
    if (result && result->verdict == CHECK_PASS) {
        add_to_sum(r, c, result, true);
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
    add_to_sum(r, c, n ? result : NULL, false);
    if (!what->is_untried)
        print_row(r, c, "FAIL", PAINT_BAD, n);
    tell_failure(r, c, what, result, message);
    add_csv_row(r, c, "fail", n, message);
}

void report_end_rows(report *r) {
    for (size_t i = 0; i < r->sum_count; i++)
        print_sum(r, &r->sums[i]);
}

void report_end(report *r) {
    report_end_rows(r);
    print_failures(r);
    fprintf(r->rows.out, "%zu passed, %zu failed", r->passed, r->failed);
    if (r->skipped > 0)
        fprintf(r->rows.out, ", %zu skipped", r->skipped);
    fputc('\n', r->rows.out);
    fflush(r->rows.out); /* annotations follow on stderr, which must begin a line */
    free(r->sums);
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

bool report_can_write(const suite_settings *s, err *e) {
    return (!s->csv || os_check_writable(s->csv, e)) &&
           (!s->junit || os_check_writable(s->junit, e));
}

csv *report_start_csv(const device_facts *f, uint64_t seed) {
    csv *c = csv_new();
    results_meta m = results_meta_new(ASSAY_VERSION, f, seed);
    for (size_t i = 0; i < m.count; i++)
        csv_add_meta(c, m.facts[i].key, m.facts[i].value);
    return c;
}

void report_print_header(const device_facts *f, uint64_t seed) {
    char line[400];
    snprintf(line, sizeof line, "# device: %s (%s%s)", f->name, f->api,
             f->validates ? ", checked" : "");
    table_print_text(stdout, table_find_limit(stdout), 0, line);
    snprintf(line, sizeof line, "# compiler: %s", f->compiler);
    table_print_text(stdout, table_find_limit(stdout), 0, line);
    printf("# seed: %" PRIu64 "\n", seed);
}
