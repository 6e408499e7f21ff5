/* cmd_check: `assay check`, every case against its oracle, and `assay validate`, every case under the device's
 * own validation, canaries first. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/root.h"
#include "harness/check/lint.h"
#include "harness/check/rival.h"
#include "harness/check/suite.h"
#include "harness/device/cuda/sanitizer.h"
#include "harness/measure/freshness.h"
#include "kernels/ops.h"
#include "report.h"
#include "verb.h"

/* Of the verb that runs. */
static suite_settings settings = {.run = {.find = cases_parse, .seed = 1}};

static bool strict;

static const option options_of_check[] = {
    SUITE_OPTIONS(settings),
    TEXT_OPTION("csv", &settings.csv, "FILE", "also write the rows to a file"),
    AGX_OPTION(&settings.run.agx),
    FLAG_OPTION("strict", &strict,
                "also lint the kernels' files: its errors fail the run, a file that cannot be "
                "linted warns"),
    TEXT_OPTION("capture", &settings.run.capture, "F.gputrace",
                "also capture the GPU's work of one case for Xcode (Metal only)"),
};

static uint64_t max_findings = 50;
static bool trace_nan, full, has_names;
static size_t left_out; /* kernels that --quick leaves to --full */

static const option options_of_validate[] = {
    SUITE_OPTIONS(settings),
    {"max-findings", OPTION_NUMBER, &max_findings, "N", "list N findings at most (default 50)", 1,
     100000},
    FLAG_OPTION("full", &full,
                "every case of every kernel, also under compute-sanitizer (default there: one)"),
    FLAG_OPTION("trace-nan", &trace_nan, "also report where finite values give a NaN or infinity"),
    FLAG_OPTION("strict", &strict,
                "milder findings, such as two stores of one value, fail the run too"),
    TEXT_OPTION("csv", &settings.csv, "FILE", "also write the findings to a file"),
    TEXT_OPTION("sarif", &settings.sarif, "FILE.sarif",
                "also write findings and failed cases as SARIF 2.1.0, for code scanning"),
};

/* Runs `go` with the cases that are asked for; in a worker, serves. The options are those of the verb, timeout_s its
 * default. */
static exit_code run_suite(const char *name, const option *options, size_t option_count,
                           double timeout_s, case_query query,
                           exit_code (*go)(case_list *cases, const device_facts *f, err *e),
                           err *e) {
    case_list cases;
    device_facts facts;
    suite *run = &settings.run;
    run->timeout_s = run->timeout_s > 0 ? run->timeout_s : timeout_s;
    run->arguments = options_list_values(name, options, option_count, NULL);
    if (settings.worker)
        return suite_serve(run, e);
    if (!cases_find(&query, &cases, e))
        return e->code;
    bool ok = report_can_write(&settings, e) && suite_find_device(run, &facts, e);
    if (ok) {
        run->device = facts.spec;
        run->arguments = options_list_values(name, options, option_count, NULL);
    }
    exit_code code = ok ? go(&cases, &facts, e) : e->code;
    cases_free(&cases);
    return code;
}
#define RUN_SUITE(name, options, timeout_s, names, count, go, e)                                   \
    run_suite(name, options, sizeof options / sizeof *options, timeout_s,                          \
              (case_query)SUITE_QUERY(settings, names, count), go, e)

/* check --------------------------------------------------------------------------------------- */

/* A trace of many cases is too large to be useful. Metal reads the variable when a worker
 * starts. */
static bool prepare_capture(const case_list *cases, err *e) {
    if (!settings.run.capture)
        return true;
    if (cases->count != 1)
        return err_set(e, EXIT_USAGE,
                       "--capture is for one case, and %zu match: name one in full, such as %.120s",
                       cases->count, cases->items[0].name);
    return setenv("METAL_CAPTURE_ENABLED", "1", 1) == 0;
}

/* Errors of lint and files that it cannot judge, for people, as annotations and among the outcomes. */
static void keep_remark(const remark *m, const kernel_case *c, outcome_list *out) {
    const bool is_error = m->kind == REMARK_ERROR;
    if (!is_error && strcmp(m->rule, LINT_NOT_LINTED) != 0)
        return;
    remark_list one = {(remark *)(uintptr_t)m, 1, 1};
    place_list places = {.count = 0};
    outcome *o = ARRAY_ADD(out->items, out->count, out->room);
    *o = (outcome){.kind = is_error ? OUTCOME_FAIL : OUTCOME_SKIP,
                   .op = c->op,
                   .kernel = c->kernel,
                   .has_findings = true};
    snprintf(o->name, sizeof o->name, "lint/%.160s:%d:%d/%s", c->kernel->file, m->line, m->column,
             m->rule);
    snprintf(o->message, sizeof o->message, "%s", m->text);
    fprintf(stderr, "%s: %s:%d: %s\n", is_error ? "error" : "warning", m->file, m->line, m->text);
    places_add_remarks(&places, &one);
    places_annotate(stderr, &places);
    places_free(&places);
}

/* Every file of the kernels. */
static bool lint_files(const case_list *cases, outcome_list *out, err *e) {
    msl_extras extras;
    library *lib = library_new(NULL, NULL, e);
    linter *l = lib && rival_find_our_extras(&extras, e) ? linter_new(e) : NULL;
    bool ok = l && msl_ask_language(&extras.language, e);
    const char *last = "";
    for (size_t i = 0; ok && i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        char path[PATH_MAX];
        lint_report r = {.compiled = false};
        if (strcmp(c->kernel->file, last) == 0)
            continue;
        last = c->kernel->file;
        ok = library_find_path(lib, last, path, sizeof path, e) &&
             (access(path, F_OK) != 0 || linter_check(l, path, &extras, &r, e));
        for (size_t k = 0; ok && k < r.remarks.count; k++)
            keep_remark(&r.remarks.items[k], c, out);
        lint_report_free(&r);
    }
    linter_free(l);
    library_free(lib);
    return ok;
}

static exit_code check_cases(case_list *cases, const device_facts *f, err *e) {
    report r;
    size_t errors = 0;
    if (!prepare_capture(cases, e) || !cases_keep_offered(cases, f, e))
        return e->code;
    report_start(&r, "check", &settings, f, cases);
    if (strict && !lint_files(cases, &r.outcomes, e))
        return e->code;
    for (size_t i = 0; i < r.outcomes.count; i++)
        errors += r.outcomes.items[i].kind == OUTCOME_FAIL;
    if (settings.csv)
        report_keep_rows(&r);
    suite_listener listener = report_get_listener(&r);
    bool ok = suite_run(&settings.run, cases, &listener, NULL, e);
    ok = ok && (!r.csv || csv_write(r.csv, settings.csv, e));
    ok = report_end(&r, NULL, e) && ok && report_check_ran(&r, e);
    report_free(&r);
    return !ok ? e->code : r.failed > 0 || errors > 0 ? EXIT_WRONG : EXIT_OK;
}

static exit_code run_check(const char *const *names, size_t count, err *e) {
    return RUN_SUITE("check", options_of_check, 60, names, count, check_cases, e);
}

VERB(
    verb_check, "check", run_check, .names = "[FILTER...]",
    .about = "run kernels against their oracles: exit status 1 if any is wrong",
    .notes =
        "A case is kernel/shape/input. FILTER is the name of a kernel or of an op, a part of a\n"
        "case's name, or a glob over it: 'matvec*/*/zeros'. Without one, everything is checked. A\n"
        "line per kernel shows the largest error of its cases divided by its tolerance (margin)\n"
        "and the time that the device took. With -v a row per case shows the largest absolute,\n"
        "relative and ULP error of an output, its normalised mean squared error, and where the\n"
        "largest error is. Failures come last. The same seed gives the same rows. ASSAY_KERNELS\n"
        "names another kernels folder.\n",
    VERB_OPTIONS(options_of_check), .math = "safe", .runs_ops = true);

/* validate ------------------------------------------------------------------------------------ */

/* Where the rows go: with --json, stdout has only the object. */
static FILE *get_out(void) {
    return settings.json ? stderr : stdout;
}

/* On GPUs the reports are in files of this folder. */
static char folder[1024];
static const log_format *format;

/* Every worker must have confirmed that validation is on, and a report that came too late for the
 * row of its case still counts as a finding. */
static bool check_reports(finding_list *found, bool is_over, err *e) {
    validation_count count;
    finding_list all = {0};
    if (!folder[0])
        return true;
    bool ok = validation_read_folder(folder, format, &count, &all, e);
    if (ok && (count.files == 0 || count.banners < count.files))
        ok = err_set(e, EXIT_WRONG,
                     "%zu of %zu workers did not confirm that %s is on, so nothing is called clean",
                     count.files - count.banners, count.files, format->engine);
    uint64_t told = 0;
    for (size_t i = 0; i < found->count; i++)
        told += found->items[i].count;
    for (size_t i = 0; ok && is_over && told < count.reports && i < all.count; i++)
        finding_add(found, &all.items[i]);
    finding_free(&all);
    return ok;
}

/* The GPU of a virtual Mac may have no validation, and then Metal prints no banner: that is not a
 * failure of the kernels. False with the reason. */
static bool check_virtual(const device_facts *f, err *e) {
    validation_count count;
    finding_list ignored = {0};
    err other;
    bool is_absent = f->is_virtual && folder[0] &&
                     validation_read_folder(folder, format, &count, &ignored, &other) &&
                     count.files > 0 && count.banners == 0;
    finding_free(&ignored);
    return !is_absent || err_set(e, EXIT_CANNOT,
                                 "nothing was validated: the virtual GPU '%.80s' has no shader "
                                 "validation; use --device soft, or a real Mac",
                                 f->name);
}

/* Of all tools together, where there are several. */
typedef struct {
    finding_list found;
    size_t canaries;
    report report;
} totals;

/* how has the count once or twice. */
static void add_meta(csv *file, const char *key, const char *how, size_t count) {
    char text[64];
    snprintf(text, sizeof text, how, count, count);
    csv_add_meta(file, key, text);
}

/* Findings are rows; the head says that there was a run and how many cases it covered. */
static void add_csv_counts(csv *file, const totals *all) {
    add_meta(file, "passed", "%zu", all->report.passed);
    add_meta(file, "failed", "%zu", all->report.failed);
    add_meta(file, "skipped", "%zu", all->report.skipped);
    add_meta(file, "canaries", "%zu of %zu caught", all->canaries); /* all, or nothing is clean */
    if (left_out > 0)
        add_meta(file, "left to --full", "%zu kernels", left_out);
}

/* Of all descriptions; those of a project by name, because "*" is Assay's own. */
static bool add_descriptions(char text[MADE_OF], const library *lib) {
    char root[PATH_MAX];
    if (!root_find_project(root, sizeof root))
        return made_of_add_one(text, lib, "description", "*", NULL);
    const char **names = array_new(registry_count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < registry_count; i++)
        if (count == 0 || strcmp(names[count - 1], registry[i]->source) != 0)
            names[count++] = registry[i]->source;
    bool ok = made_of_add(text, lib, "description", names, count, NULL);
    free(names);
    return ok;
}

/* Of all kernels: there are rows only where something was found. */
static void add_csv_origin(csv *file, const device_facts *f) {
    char text[MADE_OF] = "";
    library *lib = library_new(NULL, NULL, NULL);
    if (lib && made_of_add_one(text, lib, "kernel", "*", NULL) && add_descriptions(text, lib) &&
        made_of_add_one(text, lib, "device", f->api, NULL))
        csv_add_meta(file, "made of", text);
    library_free(lib);
}

static void print_all(const finding_list *found) {
    finding_list folded = places_fold(found);
    if (folded.count > 0) {
        fprintf(get_out(), "\nall findings:\n");
        findings_print(get_out(), &folded, (size_t)max_findings);
    }
    finding_free(&folded);
}

static void close_folder(void) {
    if (folder[0])
        validation_close_folder(folder);
    folder[0] = 0;
}

static bool open_folder(err *e) {
    close_folder();
    return !format || validation_open_folder(folder, sizeof folder, e);
}

static void add_totals(totals *all, const finding_list *found, const device_facts *f) {
    for (size_t i = 0; i < canary_count; i++)
        all->canaries += canary_is_for(&canaries[i], f);
    for (size_t i = 0; i < found->count; i++)
        finding_add(&all->found, &found->items[i]);
}

static exit_code validate_cases(const case_list *cases, const device_facts *f, totals *all,
                                err *e) {
    finding_list found = {0};
    size_t failed = all->report.failed;
    /* Validation is tested before it is trusted. Its canaries are not findings. */
    bool is_trusted = open_folder(e) && suite_play_canaries(&settings.run, f, get_out(), e);
    if (!check_virtual(f, e) || !is_trusted || !check_reports(&found, false, e) || !open_folder(e))
        return e->code;
    fflush(stdout);
    suite_listener listener = report_get_listener(&all->report);
    bool ok =
        suite_run(&settings.run, cases, &listener, &found, e) && check_reports(&found, true, e);
    add_totals(all, &found, f);
    ok = ok && report_check_ran(&all->report, e);
    bool is_clean =
        all->report.failed == failed && finding_count_failing(&found, validation_is_strict()) == 0;
    finding_free(&found);
    return !ok ? e->code : is_clean ? EXIT_OK : EXIT_WRONG;
}

/* All cases under each tool. One that is not looking, or finds something, does not keep the others
 * from running: the first of their errors is reported. */
static exit_code validate_with_tools(const case_list *cases, const device_facts *f, totals *all,
                                     err *e) {
    exit_code worst = EXIT_OK;
    for (int i = 0; i < SANITIZER_TOOLS; i++) {
        err own = {.code = EXIT_OK};
        if (!sanitizer_choose(sanitizer_tools[i], e))
            return e->code;
        all->report.tool = sanitizer_tools[i];
        all->report.is_last = i + 1 == SANITIZER_TOOLS;
        exit_code code = validate_cases(cases, f, all, &own);
        if (code == EXIT_INTERRUPTED) {
            *e = own;
            return code;
        }
        if (own.text[0])
            fprintf(get_out(), "# %s: %s\n", sanitizer_tools[i], own.text);
        if (worst == EXIT_OK)
            worst = code;
        if (e->code == EXIT_OK)
            *e = own;
    }
    return worst;
}

/* compute-sanitizer runs everything four times, each time a hundred times as slowly, so by itself it
 * gets one case of each kernel, unless cases were asked for. Elsewhere most of the time is compiling, and
 * --quick compiles each template of an op once, unless kernels were asked for. */
static void choose_cases(const device_facts *f, case_list *cases) {
    static const axes_query any;
    const bool is_cuda = f->kind == DEVICE_CUDA;
    if (is_cuda && !full && !settings.shapes && !settings.input)
        cases_keep_one(cases);
    if (!is_cuda && settings.quick && !has_names && memcmp(&settings.axes, &any, sizeof any) == 0)
        left_out = cases_drop_repeated(cases);
}

static exit_code validate_on(case_list *cases, const device_facts *f, err *e) {
    bool is_cuda = f->kind == DEVICE_CUDA;
    if (!f->validates && !is_cuda)
        return err_code(e, EXIT_CANNOT, "the device '%s' has no validation here; use --device soft",
                        f->api);
    if (!cases_keep_offered(cases, f, e))
        return e->code;
    choose_cases(f, cases);
    format = is_cuda ? &sanitizer_log : f->kind == DEVICE_METAL ? &metal_log : NULL;
    totals all = {.canaries = 0};
    report_start(&all.report, "validate", &settings, f, cases);
    all.report.lists_findings = true;
    exit_code code =
        is_cuda ? validate_with_tools(cases, f, &all, e) : validate_cases(cases, f, &all, e);
    report_end_rows(&all.report);
    print_all(&all.found);
    if (left_out > 0)
        fprintf(get_out(),
                "%zu kernels left to --full: the same templates in other formats or with +=\n",
                left_out);
    /* An error means that the run says nothing; findings alone are no error. */
    if (settings.csv && e->code == EXIT_OK) {
        csv *file = report_start_csv(f, settings.run.seed);
        add_csv_counts(file, &all);
        add_csv_origin(file, f);
        findings_add_csv(file, &all.found);
        if (!csv_write(file, settings.csv, e))
            code = e->code;
        csv_free(file);
    }
    if (!report_end(&all.report, &all.found, e))
        code = e->code;
    finding_free(&all.found);
    report_free(&all.report);
    return code;
}

static exit_code run_validate(const char *const *names, size_t count, err *e) {
    if (full && settings.quick)
        return err_code(e, EXIT_USAGE, "--quick and --full contradict each other");
    /* Read when a device is opened, here and in the workers. */
    validation_pin_environment();
    setenv("ASSAY_LOOP_SECONDS", "3", 0);
    if (trace_nan)
        setenv("ASSAY_TRACE_NAN", "1", 1);
    if (strict)
        setenv("ASSAY_STRICT", "1", 1);
    settings.run.validates = true;
    has_names = count > 0;
    exit_code code = RUN_SUITE("validate", options_of_validate, 120, names, count, validate_on, e);
    close_folder();
    return code;
}

VERB(verb_validate, "validate", run_validate, .names = "[FILTER...]",
     .about = "check kernels with every memory access watched: exit status 1 if anything is found",
     .notes =
         "First the canaries: kernels with one planted bug for each class of bugs that the\n"
         "device claims to find. One that is not caught fails the run. Then every case of\n"
         "`assay check`, with accesses watched: loads and stores outside of memory, reads of\n"
         "memory that was never written, data races, stores to read-only buffers, misaligned\n"
         "accesses, barriers that not all threads reach, shuffles from inactive lanes,\n"
         "undefined arithmetic, endless loops. The time is that of validation and says nothing\n"
         "about the kernel. MTL_SHADER_VALIDATION=1 does the same for every other verb.\n"
         "--quick without a FILTER validates each template of an op once, in one format and\n"
         "with = or +=, and says how many kernels it leaves to --full. On NVIDIA GPUs one case\n"
         "of each kernel, the largest of its edge shapes, runs under each of the four tools of\n"
         "compute-sanitizer; with --full, --shape or --input, all cases that match.\n",
     VERB_OPTIONS(options_of_validate), .math = "safe", .runs_ops = true);
