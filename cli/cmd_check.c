/* cmd_check: `assay check`. Every case against its oracle. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/os.h"
#include "places.h"
#include "report.h"
#include "suite_options.h"
#include "verb.h"

static suite_settings settings = {.run = {.find = cases_parse, .seed = 1, .timeout_s = 60}};

static const option options[] = {
    SUITE_OPTIONS(settings),
    TEXT_OPTION("csv", &settings.csv, "FILE", "also write the rows to a file"),
    FLAG_OPTION(
        "agx", &settings.run.agx,
        "ask Mesa's compiler (`assay agx`) whether threadgroups are too large for an M1, also "
        "if that takes a second per kernel"),
    TEXT_OPTION("capture", &settings.run.capture, "F.gputrace",
                "also capture the GPU's work of one case for Xcode (Metal only)"),
};

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

/* What other programs read. An interrupted run has its cases too. */
static bool write_outcomes(const outcome_list *outcomes, const device_facts *f, uint64_t began_ns,
                           err *e) {
    place_list places = {.count = 0};
    if (settings.json)
        outcome_print_json(stdout, "check", f, settings.run.seed, outcomes, NULL);
    places_add_outcomes(&places, outcomes);
    places_annotate(stderr, &places);
    places_free(&places);
    return !settings.junit || outcome_write_junit(settings.junit, "check", f, outcomes,
                                                  (double)(os_now_ns() - began_ns) * 1e-9, e);
}

static exit_code check_cases(const case_list *cases, const device_facts *f, err *e) {
    outcome_list outcomes = {.count = 0};
    uint64_t began_ns = os_now_ns();
    if (!settings.json && !settings.quiet)
        report_print_header(f, settings.run.seed);
    csv *file = settings.csv ? report_start_csv(f, settings.run.seed) : NULL;
    report r;
    report_start(&r, "check", &settings, f, cases, file);
    r.outcomes = &outcomes;
    settings.run.device = f->spec;
    settings.run.arguments = LIST_VALUES("check", options);
    fflush(stdout);
    suite_listener listener = report_get_listener(&r);
    bool ok = suite_run(&settings.run, cases, &listener, NULL, e);
    report_end(&r);
    if (ok && file)
        ok = csv_write(file, settings.csv, e);
    csv_free(file);
    ok = write_outcomes(&outcomes, f, began_ns, ok ? e : NULL) && ok;
    outcome_free(&outcomes);
    ok = ok && report_check_ran(&r, e);
    return !ok ? e->code : r.failed > 0 ? EXIT_WRONG : EXIT_OK;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (settings.worker) {
        settings.run.arguments = LIST_VALUES("check", options);
        return suite_serve(&settings.run, e);
    }
    case_query query = SUITE_QUERY(settings, names, count);
    case_list cases;
    device_facts facts;
    if (!cases_find(&query, &cases, e))
        return e->code;
    bool ok = report_can_write(&settings, e) && prepare_capture(&cases, e) &&
              suite_find_device(&settings.run, &facts, e) && cases_keep_offered(&cases, &facts, e);
    exit_code code = ok ? check_cases(&cases, &facts, e) : e->code;
    cases_free(&cases);
    return code;
}

VERB(
    verb_check, "check", .names = "[FILTER...]",
    .about = "run kernels against their oracles: exit status 1 if any is wrong",
    .notes =
        "A case is kernel/shape/input. FILTER is the name of a kernel or of an op, a part of a\n"
        "case's name, or a glob over it: 'matvec*/*/zeros'. Without one, everything is checked.\n"
        "A line per kernel shows the largest error of its cases divided by its tolerance (margin)\n"
        "and the time that the device took. With -v a row per case shows the largest absolute,\n"
        "relative and ULP error of an output, its normalised mean squared error, and where the\n"
        "largest error is. Failures come last. The same seed gives the same rows. ASSAY_KERNELS\n"
        "names another kernels folder.\n",
    VERB_OPTIONS(options), .math = "safe", .runs_ops = true);
