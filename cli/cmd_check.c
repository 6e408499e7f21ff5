/* cmd_check: `assay check`. Every case in a worker, one row each, in order.
 *
 * The one surprise: with the hidden option --worker this verb is the other side of itself: it reads
 * names of cases and answers with results (harness/worker.h). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness/check.h"
#include "harness/csv.h"
#include "harness/os.h"
#include "harness/progress.h"
#include "harness/worker.h"
#include "report.h"
#include "verb.h"

static struct {
    uint64_t seed, jobs;
    const char *csv, *device, *shape, *input;
    double timeout_s;
    bool worker;
} settings = {.seed = 1, .timeout_s = 60};

static const option options[] = {
    {"seed", OPTION_NUMBER, &settings.seed, "N", "seed of the inputs (default 1)", 0, UINT64_MAX},
    {"shape", OPTION_TEXT, &settings.shape, "S", "only cases of this shape, such as 3x576", 0, 0},
    {"input", OPTION_TEXT, &settings.input, "D",
     "only this input: uniform, normal, zeros, denormals, large", 0, 0},
    {"csv", OPTION_TEXT, &settings.csv, "FILE", "also write the rows to a file", 0, 0},
    {"device", OPTION_TEXT, &settings.device, "D",
     "soft, metal, cuda or auto (default ASSAY_DEVICE, else auto)", 0, 0},
    {"jobs", OPTION_NUMBER, &settings.jobs, "N",
     "workers at the same time (default: up to 8 on the software device, 1 on a GPU)", 1, 256},
    {"timeout", OPTION_SECONDS, &settings.timeout_s, "S",
     "give a case up after so many seconds (default 60)", 0, 0},
    {"worker", OPTION_FLAG, &settings.worker, NULL, NULL, 0, 0},
};

/* The worker's side ------------------------------------------------------------------------- */

/* What travels back. Both sides are the same program, so it can be the bytes of a struct. */
typedef struct {
    bool made;
    check_result result;
    err error;
} answer;

static void *check_named_case(void *context, const char *name, size_t *bytes, bool *retire) {
    library *lib = context;
    answer *a = calloc(1, sizeof *a);
    assert(a);
    *bytes = sizeof *a;
    test_case c;
    if (cases_find_one(name, &c))
        a->made = check_case(lib, c.op, c.kernel, &c.shape, c.inputs, settings.seed, &a->result,
                             &a->error);
    else
        err_set(&a->error, EXIT_USAGE, "no case is called '%.160s'", name);
    /* A kernel that is wrong may have written anywhere. */
    *retire = !a->made || a->result.verdict != CHECK_PASS;
    return a;
}

static exit_code serve(err *e) {
    device *d = device_open(settings.device, e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    bool ok = lib && worker_serve(check_named_case, lib, e);
    library_free(lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}

/* The side that hands out cases ------------------------------------------------------------- */

typedef struct {
    const case_list *cases;
    const size_t *case_of_task;
    size_t next; /* the first case that is not reported */
    report report;
    progress progress;
} session;

/* Cases that their kernel does not take have no task: they are reported in passing. */
static void report_skipped_until(session *s, size_t end) {
    for (; s->next < end; s->next++)
        report_add_skipped(&s->report, &s->cases->items[s->next]);
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    session *s = context;
    size_t at = s->case_of_task[task];
    case_report r = {.failure = o->failure[0] ? o->failure : NULL};
    if (!r.failure && o->bytes != sizeof(answer)) {
        r.failure = "the worker is another build of assay: was it rebuilt meanwhile?";
    } else if (!r.failure) {
        const answer *a = o->answer;
        r.made = a->made;
        r.result = a->result;
        r.error = a->error;
    }
    progress_hide(&s->progress);
    report_skipped_until(s, at);
    report_add(&s->report, &s->cases->items[at], &r);
    s->next = at + 1;
    if (fflush(stdout) != 0)
        return err_set(e, EXIT_CANNOT, "cannot write the rows: nobody reads them");
    return true;
}

static void advance(void *context, size_t done) {
    session *s = context;
    progress_update(&s->progress, done);
}

static int choose_jobs(const device_facts *f) {
    if (settings.jobs)
        return (int)settings.jobs;
    int cpus = os_count_cpus();
    return !f->emulated ? 1 : cpus < 8 ? cpus : 8;
}

static bool run_workers(session *s, const device_facts *f, err *e) {
    const char **names = calloc(s->cases->count, sizeof *names);
    size_t *case_of_task = calloc(s->cases->count, sizeof *case_of_task), count = 0;
    assert(names && case_of_task);
    for (size_t i = 0; i < s->cases->count; i++)
        if (s->cases->items[i].accepted) {
            case_of_task[count] = i;
            names[count++] = s->cases->items[i].name;
        }
    s->case_of_task = case_of_task;
    s->progress = progress_new(stderr, "cases", count);
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, settings.seed);
    const char *const arguments[] = {"check", "--worker", "--device", f->api, "--seed", seed, NULL};
    worker_plan plan = {.arguments = arguments,
                        .tasks = names,
                        .count = count,
                        .jobs = choose_jobs(f),
                        .timeout_s = settings.timeout_s,
                        .deliver = deliver,
                        .advance = advance,
                        .context = s};
    bool ok = worker_run(&plan, e);
    progress_hide(&s->progress);
    if (ok)
        report_skipped_until(s, s->cases->count);
    free(case_of_task);
    free(names);
    return ok;
}

static csv *start_csv(const device_facts *f) {
    csv *c = csv_new();
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, settings.seed);
    csv_add_meta(c, "assay", ASSAY_VERSION);
    csv_add_meta(c, "device", f->name);
    csv_add_meta(c, "api", f->api);
    csv_add_meta(c, "compiler", f->compiler);
    csv_add_meta(c, "seed", seed);
    return c;
}

static exit_code check_cases(const case_list *cases, const device_facts *f, err *e) {
    printf("# device: %s (%s)\n# compiler: %s\n# seed: %" PRIu64 "\n", f->name, f->api, f->compiler,
           settings.seed);
    csv *file = settings.csv ? start_csv(f) : NULL;
    session s = {.cases = cases};
    report_start(&s.report, stdout, cases, settings.seed, file);
    fflush(stdout);
    bool ok = run_workers(&s, f, e);
    report_end(&s.report);
    if (ok && file)
        ok = csv_write(file, settings.csv, e);
    csv_free(file);
    if (!ok)
        return e->code;
    if (s.report.failed > 0)
        return EXIT_WRONG;
    if (s.report.passed == 0)
        err_set(e, EXIT_USAGE, "nothing was checked: no kernel takes the shapes asked for");
    return s.report.passed > 0 ? EXIT_OK : EXIT_USAGE;
}

static exit_code run(const char *const *names, size_t count, err *e) {
    if (settings.worker)
        return serve(e);
    case_query query = {names, count, settings.shape, settings.input};
    case_list cases;
    if (!cases_find(&query, &cases, e))
        return e->code;
    exit_code code = EXIT_CANNOT;
    device *d = device_open(settings.device, e);
    if (d) {
        /* Workers have devices of their own; this one is only asked what it is. */
        device_facts facts = *device_get_facts(d);
        device_close(d);
        *e = (err){.code = EXIT_OK}; /* what `auto` tried before is not an error */
        code = check_cases(&cases, &facts, e);
    } else {
        code = e->code;
    }
    cases_free(&cases);
    return code;
}

const verb verb_check = {
    .name = "check",
    .names = "[FILTER...]",
    .about = "run kernels against their oracles: one row a case, exit status 1 if any is wrong",
    .notes =
        "A case is kernel/shape/input. FILTER is the name of a kernel or of an op, a part of a\n"
        "case's name, or a glob over it: 'matvec*/*/zeros'. Without one, everything is checked.\n"
        "Of each output the largest absolute, relative and ULP error, the normalised mean squared\n"
        "error, the largest error as a part of what is allowed (margin) and where that one is are\n"
        "shown. The same seed gives the same rows. ASSAY_KERNELS names another folder of "
        "kernels.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = run,
};
