/* cmd_mutants: `assay mutants`. How many planted mistakes do check and validate catch? */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/base/worker.h"
#include "harness/check/suite.h"
#include "harness/measure/results.h"
#include "mutant_report.h"
#include "report.h"
#include "suite_options.h"
#include "verb.h"

static const char *csv_path, *extra, *worker_folder;
static uint64_t sample, seed = 1, jobs;
static double timeout_s = 10;
static bool resume, json;

static const option options[] = {
    {"sample", OPTION_NUMBER, &sample, "N", "try only N of them, drawn at random (default: all)", 1,
     1000000},
    RANDOM_SEED_OPTION(&seed, "the sample and of the inputs"),
    HELD_OUT_OPTION(&extra),
    TEXT_OPTION("csv", &csv_path, "FILE", "also write one row per mutant to a file"),
    FLAG_OPTION("json", &json, "print one JSON object; the table goes to stderr"),
    FLAG_OPTION("resume", &resume,
                "continue a run: skip the mutants that the --csv file has, and add the others"),
    {"jobs", OPTION_NUMBER, &jobs, "N", "workers at the same time (default: one per CPU, up to 8)",
     1, 256},
    SECONDS_OPTION("timeout", &timeout_s, "S",
                   "CPU seconds after which a mutant counts as endless (default 10)"),
    {"worker", OPTION_TEXT, &worker_folder, NULL, NULL, 0, 0},
};

#define PASS_SCORE 0.95

enum { SAVE_NS = 1000000000 };

typedef struct {
    const mutant_list *list;
    const device_facts *facts;
    mutant_known known;
    const kernel **plain; /* unmutated kernels: their tasks follow those of the mutants */
    size_t plain_count;
    mutant_outcome *outcomes;
    size_t tried;  /* the outcome of this many, from the first on, is known */
    size_t before; /* of which this many were tried by an earlier run */
    uint64_t saved_ns;
} delivery;

/* A kernel that fails without a mutation says nothing about its mutants, so each one is also run
 * unmutated, before any mutant. */
static void find_plain(delivery *s) {
    size_t room = s->list->count * MUTANT_KERNELS;
    s->plain = array_new(room + 1, sizeof *s->plain);
    for (size_t i = 0; i < s->list->count; i++) {
        const mutant *m = &s->list->items[i];
        for (size_t k = 0; k < m->kernel_count && k < MUTANT_KERNELS; k++) {
            size_t j = 0;
            while (j < s->plain_count && s->plain[j] != m->kernels[k])
                j++;
            if (j == s->plain_count)
                s->plain[s->plain_count++] = m->kernels[k];
        }
    }
}

/* A survivor on the project's list has a known reason to survive. */
static void mark_known(const delivery *s, size_t i) {
    mutant_outcome *o = &s->outcomes[i];
    if (o->fate == MUTANT_KNOWN)
        o->fate = MUTANT_SURVIVED; /* by the list of an earlier run */
    char *reason =
        o->fate == MUTANT_SURVIVED ? mutant_find_known(&s->known, &s->list->items[i]) : NULL;
    if (reason && *reason == '=')
        o->fate = MUTANT_KNOWN;
    if (reason)
        snprintf(o->by, sizeof o->by, "%.190s", reason + strspn(reason, "=! "));
    free(reason);
}

static bool save(const delivery *s, err *e) {
    mutant_list done = *s->list;
    done.count = s->tried;
    csv *file = report_start_csv(s->facts, seed);
    mutant_add_csv(file, &done, s->outcomes);
    bool ok = csv_write(file, csv_path, e);
    csv_free(file);
    return ok;
}

/* What a run before this one found out. A file that is not there is an empty one. */
static bool read_before(delivery *s, err *e) {
    if (!resume || access(csv_path, F_OK) != 0)
        return true;
    csv_file *f = csv_read(csv_path, e);
    bool ok = f != NULL;
    const results_meta now = results_meta_new(ASSAY_VERSION, s->facts, seed);
    static const char *const keys[] = {"compiler", "build", "seed"};
    for (size_t i = 0; ok && i < sizeof keys / sizeof *keys; i++) {
        const char *was = csv_get_meta(f, keys[i]), *is = results_meta_find(&now, keys[i]);
        if (!was || strcmp(was, is) != 0)
            ok = err_set(e, EXIT_USAGE, "%.120s is of another %s (%.40s, not %.40s): remove it",
                         csv_path, keys[i], was ? was : "unknown", is);
    }
    ok = ok && mutant_read_csv(f, s->list, s->outcomes, &s->before, e);
    s->tried = s->before;
    for (size_t i = 0; ok && i < s->before; i++)
        mark_known(s, i);
    csv_file_free(f);
    return ok;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    mutant_outcome got = {.fate = MUTANT_CRASHED};
    if (o->failure[0]) {
        bool is_late = strstr(o->failure, "SIGXCPU") || strstr(o->failure, "timed out");
        got.fate = is_late ? MUTANT_TIMED_OUT : MUTANT_CRASHED;
        snprintf(got.by, sizeof got.by, "%.95s", o->failure);
    } else if (o->bytes == sizeof got) {
        memcpy(&got, o->answer, sizeof got);
    } else {
        return err_set(e, EXIT_CANNOT, WORKER_OTHER_BUILD);
    }
    if (got.fate == MUTANT_FATES)
        return err_set(e, EXIT_CANNOT, "%s", got.by);
    if (task >= s->plain_count) {
        s->outcomes[s->tried] = got;
        mark_known(s, s->tried++);
        uint64_t now = os_now_ns();
        if (!resume || now - s->saved_ns < SAVE_NS)
            return true;
        s->saved_ns = now;
        return save(s, e);
    }
    if (got.fate == MUTANT_EQUIVALENT || got.fate == MUTANT_SURVIVED)
        return true;
    return err_set(e, EXIT_WRONG,
                   "the kernel %.60s is wrong even without a mutation (%.100s): see assay check",
                   s->plain[task]->name, got.by);
}

static bool run_workers(delivery *s, const char *scratch, const char *const *tasks, size_t count,
                        err *e) {
    worker_folder = scratch;
    progress shown = progress_new(stderr, "mutants", count);
    worker_plan plan = {.arguments = LIST_VALUES("mutants", options),
                        .tasks = tasks,
                        .count = count,
                        .jobs = jobs ? (int)jobs : worker_count_jobs(8),
                        .timeout_s = 60 + 10 * timeout_s, /* compilers and other work included */
                        .deliver = deliver,
                        .context = s,
                        .progress = &shown};
    return worker_run(&plan, e);
}

static bool run_tasks(delivery *s, const char *scratch, err *e) {
    size_t count = s->plain_count + s->list->count - s->before;
    char **tasks = array_new(count + 1, sizeof *tasks);
    for (size_t i = 0; i < count; i++) {
        bool is_plain = i < s->plain_count;
        const mutant *m = is_plain ? NULL : &s->list->items[i - s->plain_count + s->before];
        tasks[i] = mutant_get_task(i, m, is_plain ? s->plain[i] : NULL);
    }
    bool ok = run_workers(s, scratch, (const char *const *)tasks, count, e);
    for (size_t i = 0; i < count; i++)
        free(tasks[i]);
    free(tasks);
    return ok;
}

static bool read_known(mutant_known *out, err *e) {
    char home[PATH_MAX - 64], path[PATH_MAX];
    bool is_project = root_find_project(home, sizeof home);
    if (!is_project && !os_find_home(home, sizeof home, e))
        return false;
    snprintf(path, sizeof path, "%s/%smutants-known.txt", home, is_project ? "" : "tests/");
    if (is_project && access(path, F_OK) != 0) {
        out->text = strdup("");
        return out->text != NULL;
    }
    return mutant_read_known(path, out, e);
}

static exit_code try_mutants(const mutant_list *l, const char *scratch, const device_facts *f,
                             err *e) {
    delivery s = {.list = l, .facts = f, .outcomes = calloc(l->count, sizeof *s.outcomes)};
    assert(s.outcomes);
    bool ok = read_known(&s.known, e) && read_before(&s, e), is_whole = false;
    if (ok) {
        if (s.before == 0) /* else the earlier run has tried them */
            find_plain(&s);
        if (!json)
            report_print_header(f, seed);
        fflush(stdout);
        is_whole = run_tasks(&s, scratch, e);
        /* Results from before an interruption are not lost. */
        ok = is_whole || (e->code == EXIT_INTERRUPTED && s.tried > 0);
    }
    err why = *e;
    mutant_list done = *l;
    done.count = s.tried;
    double score = ok ? mutant_report(json ? stderr : stdout, &done, s.outcomes) : 0;
    if (ok && json)
        mutant_print_json(stdout, f, seed, &done, s.outcomes);
    ok = ok && (!csv_path || save(&s, e));
    if (ok && !is_whole)
        *e = why;
    free(s.known.text);
    free(s.outcomes);
    free(s.plain);
    return !ok || !is_whole ? e->code : score >= PASS_SCORE ? EXIT_OK : EXIT_WRONG;
}

/* The kernels are copied first, so that editing them during the run does not disturb it. */
static bool copy_kernels(const char *scratch, char *original, size_t size, err *e) {
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib && path_print(original, size, e, "%s/original", scratch) &&
              mutants_copy(library_get_folder(lib), original, e);
    library_free(lib);
    return ok;
}

static bool find_cases(const char *name, case_list *out, err *e) {
    return cases_find_kernel(name, extra, seed, out, e);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (!mutants_prepare(e))
        return e->code;
    if (worker_folder)
        return mutant_serve(worker_folder, seed, timeout_s, find_cases, e);
    if (resume && !csv_path)
        return err_code(e, EXIT_USAGE, "--resume needs --csv FILE: the run to continue");
    case_query query = {.filters = names, .filter_count = count, .extra = extra, .seed = seed};
    const suite soft = {.device = "soft"};
    case_list cases = {NULL, 0};
    mutant_list l = {0};
    device_facts facts;
    char scratch[PATH_MAX - 64], original[PATH_MAX];
    if (!cases_find(&query, &cases, e) || !suite_find_device(&soft, &facts, e) ||
        !cases_keep_offered(&cases, &facts, e) || !os_make_scratch(scratch, sizeof scratch, e)) {
        cases_free(&cases);
        return e->code;
    }
    exit_code code = EXIT_CANNOT;
    if (copy_kernels(scratch, original, sizeof original, e) &&
        mutants_find(original, &cases, &l, e)) {
        if (sample)
            mutants_sample(&l, (size_t)sample, seed);
        code = try_mutants(&l, scratch, &facts, e);
    } else {
        code = e->code;
    }
    os_remove_folder(scratch);
    mutants_free(&l);
    cases_free(&cases);
    return code;
}

VERB(verb_mutants, "mutants", .names = "[FILTER...]",
     .about = "plant one mistake at a time in the kernels and count what check and validate catch",
     .notes =
         "Each mutant is a copy of the kernels with one edit: a bound off by one, a guard,\n"
         "barrier or term dropped, indices or nibbles swapped, another operator, constant or\n"
         "lane, a variable without its initial value, an index wrong at one edge. It is compiled,\n"
         "checked on the cases of the kernels that contain it, small cases first, and, if it\n"
         "passes, validated. A mutant with identical machine code counts as equivalent; others\n"
         "that change nothing are listed with their reasons in tests/mutants-known.txt (in a\n"
         "project, mutants-known.txt). Exit status: 1 if less than 95 percent of the rest are "
         "caught. Runs\n"
         "on the software device. The same seed gives the same mutants.\n",
     VERB_OPTIONS(options), .runs_ops = true);
