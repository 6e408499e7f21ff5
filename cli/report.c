#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/check/suite.h"
#include "harness/device/cuda/sanitizer.h"
#include "harness/device/validation.h"
#include "harness/measure/freshness.h"
#include "harness/measure/results.h"
#include "verb.h"

/* Of a case. */
typedef struct {
    const char *op, *kernel, *input, *shown, *verdict, *message, *made_of;
    char shape[72];
    uint64_t seed;
    comparison n;
    double worst; /* NaN: nothing was compared */
} row;

#define NUMBER(member, ...)                                                                        \
    FIELD(row, n.member, FIELD_REAL, __VA_ARGS__, .width = 9, .format = "%.3g")
static const field case_fields[] = {
    FIELD(row, op, FIELD_TEXT, "op"),
    FIELD(row, kernel, FIELD_TEXT, "kernel", "kernel", .lifts = true),
    FIELD(row, shape, FIELD_CHARS, "shape", "shape", .lifts = true),
    FIELD(row, input, FIELD_TEXT, "input", "input", .lifts = true),
    FIELD(row, seed, FIELD_COUNT, "seed"),
    FIELD(row, shown, FIELD_TEXT, NULL, "verdict", .is_painted = true),
    FIELD(row, verdict, FIELD_TEXT, "verdict"),
    FIELD(row, n.count, FIELD_COUNT, "elements"),
    FIELD(row, n.bad, FIELD_COUNT, "bad"),
    FIELD(row, n.nonfinite, FIELD_COUNT, "nonfinite"),
    FIELD(row, n.unwritten, FIELD_COUNT, "unwritten"),
    NUMBER(max_abs, "max_abs", "max abs", .rank = 1),
    NUMBER(max_rel, "max_rel", "max rel", .rank = 4),
    NUMBER(max_ulp, "max_ulp", "max ulp", .rank = 2),
    NUMBER(nmse, "nmse", "nmse", .rank = 5),
    NUMBER(margin, "margin", "margin"),
    FIELD(row, n.worst, FIELD_COUNT, "worst"),
    FIELD(row, worst, FIELD_REAL, NULL, "worst", .width = 9, .rank = 3, .format = "%.0f"),
    FIELD(row, message, FIELD_TEXT, "message"),
    FIELD(row, made_of, FIELD_TEXT, "made_of"),
};
static const record case_record = RECORD(case_fields);

static const field sum_fields[] = {
    FIELD(report_sum, name, FIELD_TEXT, NULL, "kernel"),
    FIELD(report_sum, verdict, FIELD_TEXT, NULL, "verdict", .is_painted = true),
    FIELD(report_sum, cases, FIELD_COUNT, NULL, "cases", .width = 6),
    FIELD(report_sum, margin, FIELD_REAL, NULL, "margin", .width = 9),
    FIELD(report_sum, ns, FIELD_TIME, NULL, "time", .width = 9),
};
enum { CASE_COLUMNS = 10, REPORT_FINDINGS = 8, REPORT_FAILURES = 20, REPORT_COMMANDS = 50 };

/* n: the numbers of a comparison, or NULL if none was made. */
static row make_row(const report *r, const kernel_case *c, const char *verdict,
                    const comparison *n) {
    row v = {.op = c->op->name,
             .kernel = c->kernel->name,
             .input = distribution_get_name(c->inputs),
             .shown = strcmp(verdict, "fail") == 0 ? "FAIL" : verdict,
             .verdict = verdict,
             .seed = r->settings->run.seed,
             .n = {.max_abs = NAN, .max_rel = NAN, .max_ulp = NAN, .nmse = NAN, .margin = NAN},
             .worst = n ? (double)n->worst : NAN};
    if (n)
        v.n = *n;
    shape_get_text(&c->shape, v.shape, sizeof v.shape);
    return v;
}

static void start_table(report *r, const case_list *cases) {
    r->rows = (sink){
        .record = RECORD(sum_fields), .out = r->settings->json ? stderr : stdout, .streams = true};
    if (r->detail == REPORT_CASES) {
        r->rows.record = case_record;
        r->rows.heads = CASE_COLUMNS; /* before any column goes */
    }
    for (size_t i = 0; i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        const row v = make_row(r, c, "fail", NULL);
        const report_sum sum = {.name = c->kernel->name, .verdict = "FAIL"};
        sink_fit(&r->rows, r->detail == REPORT_CASES ? (const void *)&v : &sum);
    }
}

void report_start(report *r, const char *name, const suite_settings *s, const device_facts *f,
                  const case_list *cases) {
    *r = (report){.settings = s,
                  .facts = f,
                  .verb = name,
                  .began_ns = os_now_ns(),
                  .wanted = cases->count,
                  .is_last = true,
                  .detail = s->quiet || s->json ? REPORT_VERDICT
                            : s->verbose        ? REPORT_CASES
                                                : REPORT_KERNELS};
    if (r->detail != REPORT_VERDICT)
        report_print_header(f, s->run.seed);
    r->failures = memory_file_new();
    r->commands = memory_file_new();
    start_table(r, cases);
    fflush(stdout);
}

void report_keep_rows(report *r) {
    r->csv = report_start_csv(r->facts, r->settings->run.seed);
    record_add_titles(&case_record, r->csv);
}

static void print_sum(report *r, report_sum *sum) {
    if (sum->is_printed || r->detail != REPORT_KERNELS)
        return;
    sum->verdict = sum->failed ? "FAIL" : "pass";
    sink_add(&r->rows, sum, sum->failed ? PAINT_BAD : PAINT_GOOD);
    sum->is_printed = true;
}

/* Cases of a kernel follow each other. Where they come several times, a kernel's line waits for the last. */
static report_sum *find_sum(report *r, const kernel_case *c) {
    if (r->sum_count > 0 && r->sums[r->current].kernel == c->kernel)
        return &r->sums[r->current];
    if (r->sum_count > 0 && r->is_last)
        print_sum(r, &r->sums[r->current]);
    for (r->current = 0; r->current < r->sum_count; r->current++)
        if (r->sums[r->current].kernel == c->kernel)
            return &r->sums[r->current];
    report_sum *sum = ARRAY_ADD(r->sums, r->sum_count, r->sum_room);
    *sum = (report_sum){.kernel = c->kernel, .name = c->kernel->name, .margin = NAN};
    return sum;
}

static void add_to_sum(report *r, const kernel_case *c, const check_result *result, bool passed) {
    report_sum *sum = find_sum(r, c);
    sum->cases++;
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
            !made_of_add_one(text, lib, "device", r->facts->api, NULL))
            text[0] = 0; /* a file that is gone has no sum */
        last = c->kernel;
    }
    library_free(lib);
    return text;
}

/* A tool's output, indented. */
static void print_tool_output(report *r, const char *text) {
    for (const char *line = text; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(r->failures->out, "      %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
}

static void print_elements(report *r, const check_result *result) {
    for (size_t i = 1; i < result->worst.shown; i++) { /* the message has the first */
        const bad_element *b = &result->worst.first[i];
        fprintf(r->failures->out, "      element %zu: expected %.9g, ", b->index, b->want);
        if (b->unwritten)
            fprintf(r->failures->out, "never written\n");
        else
            fprintf(r->failures->out, "got %.9g, tolerance %.3g\n", b->got, b->tolerance);
    }
}

/* How many more cases of the kernel have failed than the one that is reported. */
static void end_failure(report *r) {
    size_t tried = r->failed_more - r->untried;
    if (tried > 0 && r->failure_count <= REPORT_FAILURES)
        fprintf(r->failures->out, "      %zu more of its cases failed%s\n", tried,
                r->detail == REPORT_CASES ? "" : "; -v shows them");
    if (r->untried > 0 && r->failure_count <= REPORT_FAILURES)
        fprintf(r->failures->out, "      %zu more of its cases were not run\n", r->untried);
    r->failed_more = r->untried = 0;
}

static void print_place(report *r, const kernel_case *c) {
    int line;
    char *path = places_find_kernel(c->kernel, &line);
    if (line > 0)
        fprintf(r->failures->out, "      the kernel begins at %s:%d\n", path, line);
    else
        fprintf(r->failures->out, "      the kernel is in %s\n", path);
    free(path);
}

/* A kernel's first failure is reported with its details, if there is room for them. */
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
    table_print_text(r->failures->out, table_find_limit(r->rows.out), 2, line);
    if (!r->lists_findings)
        findings_print(r->failures->out, &what->findings, REPORT_FINDINGS);
    if (result)
        print_elements(r, result);
    else if (!what->failure)
        print_tool_output(r, what->error.detail);
    print_place(r, c);
}

/* A line per case that failed: the command that runs it alone. Several tools run the same cases. */
static void add_command(report *r, const char *name) {
    char end[300];
    snprintf(end, sizeof end, " %s\n", name);
    fflush(r->commands->out);
    if (strstr(r->commands->text, end) || r->command_count++ >= REPORT_COMMANDS)
        return;
    fprintf(r->commands->out, "FAILED assay %s", r->verb);
    options_print_given(r->commands->out);
    fputs(end, r->commands->out);
}

static void print_failures(report *r) {
    end_failure(r);
    fflush(r->failures->out);
    if (r->failure_count > 0)
        fprintf(r->rows.out, "%sfailed:\n%s", r->detail == REPORT_VERDICT ? "" : "\n",
                r->failures->text);
    if (r->failure_count > REPORT_FAILURES)
        fprintf(r->rows.out, "  and %zu more kernels\n", r->failure_count - REPORT_FAILURES);
    fflush(r->commands->out);
    fputs(r->commands->text, r->rows.out);
    if (r->command_count > REPORT_COMMANDS)
        fprintf(r->rows.out, "and %zu more; --json lists them\n",
                r->command_count - REPORT_COMMANDS);
    memory_file_free(r->commands);
    memory_file_free(r->failures);
}

static void add_row(report *r, const kernel_case *c, const case_report *what) {
    const check_result *result = what->made && !what->failure ? &what->result : NULL;
    const outcome *o = outcome_add(&r->outcomes, c, what);
    const bool passed = o->kind == OUTCOME_PASS, is_skipped = o->kind == OUTCOME_SKIP;
    row v = make_row(r, c,
                     passed       ? "pass"
                     : is_skipped ? "skip"
                                  : "fail",
                     o->has_numbers ? &o->numbers : NULL);
    v.message = passed ? "" : o->message;
    if (result && result->warning[0] && r->warned_kernel != c->kernel) {
        fprintf(stderr, "warning: %s\n", result->warning);
        r->warned_kernel = c->kernel;
    }
    if (is_skipped) {
        if (r->skipped++ == 0)
            snprintf(r->first_skip, sizeof r->first_skip, "%.80s %.110s", c->name, v.message);
        if (r->settings->skipped)
            fprintf(r->rows.out, "skipped %s: %s\n", c->name, v.message);
    } else
        add_to_sum(r, c, o->has_numbers ? result : NULL, passed);
    if (!is_skipped && r->detail == REPORT_CASES && !what->is_untried)
        sink_add(&r->rows, &v, passed ? PAINT_GOOD : PAINT_BAD);
    if (!is_skipped && !passed)
        tell_failure(r, c, what, result, v.message);
    if (!is_skipped && !passed && !what->is_untried)
        add_command(r, c->name);
    if (r->csv) {
        v.made_of = find_made_of(r, c);
        record_add_csv(&case_record, &v, r->csv);
    }
}

void report_end_rows(report *r) {
    for (size_t i = 0; i < r->sum_count; i++)
        print_sum(r, &r->sums[i]);
}

static bool write_files(const report *r, const finding_list *found, err *e) {
    static const finding_list none;
    const suite_settings *s = r->settings;
    place_list places = {.count = 0};
    char name[48];
    snprintf(name, sizeof name, "%s/%s", r->verb, r->facts->api);
    places_add_findings(&places, found ? found : &none, validation_is_strict());
    places_add_outcomes(&places, &r->outcomes);
    if (s->json)
        outcome_print_json(stdout, r->verb, r->facts, s->run.seed, &r->outcomes, found);
    places_annotate(stderr, &places);
    bool ok = (!s->sarif || places_write_sarif(s->sarif, name, &places, e)) &&
              (!s->junit || outcome_write_junit(s->junit, r->verb, r->facts, &r->outcomes,
                                                (double)(os_now_ns() - r->began_ns) * 1e-9, e));
    places_free(&places);
    return ok;
}

bool report_end(report *r, const finding_list *found, err *e) {
    const suite_settings *s = r->settings;
    const bool is_stopped = e->code == EXIT_INTERRUPTED;
    const size_t run = r->passed + r->failed + r->skipped;
    report_end_rows(r);
    fflush(r->rows.out); /* what follows on stderr must begin a line */
    verb_end_compiling();
    print_failures(r);
    fflush(r->rows.out);
    const bool ok = write_files(r, found, e->code == EXIT_OK ? e : NULL);
    if (!is_stopped) {
        fprintf(r->rows.out, "%zu passed, %zu failed", r->passed, r->failed);
        if (r->skipped > 0)
            fprintf(r->rows.out, ", %zu skipped", r->skipped);
        fputc('\n', r->rows.out);
        return ok;
    }
    const char *file = s->junit ? s->junit : s->sarif;
    return err_set(e, EXIT_INTERRUPTED, "interrupted after %zu of %zu cases; %s%.120s", run,
                   r->tool ? r->wanted * SANITIZER_TOOLS : r->wanted,
                   ok && file ? "they are in " : "nothing was saved", ok && file ? file : "");
}

void report_free(report *r) {
    outcome_free(&r->outcomes);
    csv_free(r->csv);
    free(r->sums);
}

bool report_check_ran(const report *r, err *e) {
    return r->passed + r->failed > 0 || r->skipped == 0 ||
           err_set(e, EXIT_CANNOT, "nothing was checked: %s (all %zu cases were skipped)",
                   r->first_skip, r->skipped);
}

static bool deliver(void *context, const kernel_case *c, const case_report *r, err *e) {
    add_row(context, c, r);
    return verb_flush(e);
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
    const results_meta m = results_meta_new(ASSAY_VERSION, f, seed);
    results_add_head(c, &m);
    return c;
}

void report_print_header(const device_facts *f, uint64_t seed) {
    char lines[800];
    snprintf(lines, sizeof lines, "# device: %s (%s%s), seed %" PRIu64 "\n# compiler: %s\n",
             f->name, f->api, f->validates ? ", checked" : "", seed, f->compiler);
    verb_print_lines(stdout, lines, false);
}
