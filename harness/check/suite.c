#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canary.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "harness/device/cuda/sanitizer.h"
#include "harness/device/validation.h"
#include "warn.h"

/* The worker's side ------------------------------------------------------------------------- */

/* What travels back, followed by findings. Both sides are the same program, so it is the bytes of
 * structs. */
typedef struct {
    bool made, uncompiled; /* uncompiled: there is no pipeline, so the other cases fail too */
    check_result result;
    err error;
    size_t finding_count;
} answer;

typedef struct {
    const suite *suite;
    library *lib;
    library *canaries; /* NULL until there is one to play */
} server;

static bool check_captured(const server *s, const kernel_case *c, answer *a) {
    device *d = library_get_device(s->lib);
    const char *capture = s->suite->capture;
    if (capture && !device_start_capture(d, capture, &a->error))
        return false;
    bool made = check_case(s->lib, c, NULL, s->suite->seed, &a->result, &a->error);
    if (capture)
        device_stop_capture(d);
    return made;
}

static const char canary_prefix[] = "canary/";

/* A canary that is caught passes. */
static void check_canary(server *s, const char *name, answer *a) {
    bool is_caught = false;
    if (!s->canaries)
        s->canaries = canary_new_library(library_get_device(s->lib), &a->error);
    for (size_t i = 0; s->canaries && i < canary_count; i++)
        if (strcmp(canaries[i].kernel, name) == 0)
            a->made = canary_play(s->canaries, &canaries[i], &is_caught, a->result.message,
                                  sizeof a->result.message, &a->error);
    a->result.verdict = is_caught ? CHECK_PASS : CHECK_FAIL;
}

static void *check_named_case(void *context, const char *name, size_t *bytes, bool *retire) {
    server *s = context;
    answer a = {.made = false};
    kernel_case c;
    size_t prefix = strlen(canary_prefix);
    if (strncmp(name, canary_prefix, prefix) == 0)
        check_canary(s, name + prefix, &a);
    else if (s->suite->find(name, &c))
        a.made = check_captured(s, &c, &a);
    else
        err_set(&a.error, EXIT_USAGE, "no case is called '%.160s'", name);
    a.uncompiled = !a.made && library_has_failed(s->lib);
    if (!a.made)
        device_tell_loss(library_get_device(s->lib), &a.error);
    const finding_list *found = device_get_findings(library_get_device(s->lib));
    /* A wrong kernel may have written anywhere. */
    bool is_canary = strncmp(name, canary_prefix, prefix) == 0;
    *retire = !a.made || a.result.verdict == CHECK_FAIL ||
              device_is_lost(library_get_device(s->lib)) ||
              (sanitizer_is_watching() && (is_canary || found->count > 0));
    a.finding_count = found->count;
    *bytes = sizeof a + found->count * sizeof *found->items;
    char *all = array_new(1, *bytes);
    memcpy(all, &a, sizeof a);
    if (found->count > 0)
        memcpy(all + sizeof a, found->items, found->count * sizeof *found->items);
    return all;
}

static bool start_watching(const suite *s, err *e) {
    return sanitizer_get_tool() ? sanitizer_enter(s->arguments, e) : validation_start_log(e);
}

exit_code suite_serve(const suite *s, err *e) {
    warn_agx_compile(s->agx);
    device *d = start_watching(s, e) ? device_open(s->device, e) : NULL;
    server own = {s, d ? library_new(d, NULL, e) : NULL, NULL};
    bool ok = own.lib && worker_serve(check_named_case, &own, e);
    library_free(own.canaries);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}

/* The side that hands out cases ------------------------------------------------------------- */

typedef struct {
    const case_list *cases;
    const suite_listener *listener;
    finding_list *findings;
} delivery;

static void gather(finding_list *all, const finding_list *found, const char *case_name) {
    for (size_t i = 0; all && i < found->count; i++) {
        finding f = found->items[i];
        snprintf(f.kernel, sizeof f.kernel, "%.127s", case_name);
        finding_add(all, &f);
    }
}

/* False if the bytes are not a valid answer. */
static bool read_answer(const worker_outcome *o, case_report *r) {
    answer a;
    if (o->bytes < sizeof a)
        return false;
    memcpy(&a, o->answer, sizeof a);
    if (a.finding_count > (o->bytes - sizeof a) / sizeof(finding) ||
        o->bytes != sizeof a + a.finding_count * sizeof(finding))
        return false;
    r->made = a.made;
    r->result = a.result;
    r->error = a.error;
    for (size_t i = 0; i < a.finding_count; i++) {
        finding f;
        memcpy(&f, (const char *)o->answer + sizeof a + i * sizeof f, sizeof f);
        finding_add(&r->findings, &f);
    }
    return true;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    const kernel_case *c = &s->cases->items[task];
    case_report r = {.failure = o->failure[0] ? o->failure : NULL, .is_untried = o->is_untried};
    if (!r.failure && !read_answer(o, &r))
        r.failure = WORKER_OTHER_BUILD;
    bool ok = s->listener->deliver(s->listener->context, c, &r, e);
    gather(s->findings, &r.findings, c->name);
    finding_free(&r.findings);
    return ok;
}

/* What does not compile is compiled and reported once. With a compiler's message the file is wrong;
 * without one it may be the kernel alone, which needs too much private memory. */
static worker_scope give_up(void *context, size_t task, const worker_outcome *o, char *why,
                            size_t size) {
    const delivery *s = context;
    answer a;
    if (o->bytes < sizeof a)
        return WORKER_NO_OTHERS;
    memcpy(&a, o->answer, sizeof a);
    bool is_file = a.error.detail[0] != 0, is_text = a.error.code == EXIT_USAGE;
    snprintf(why, size, is_text ? "%.50s cannot be used" : "%.50s does not compile",
             is_file || is_text ? s->cases->items[task].kernel->file : "it");
    return !a.uncompiled || (a.error.code != EXIT_WRONG && !is_text) ? WORKER_NO_OTHERS
           : is_file                                                 ? WORKER_FILE
                                                                     : WORKER_GROUP;
}

/* Compilers and oracles run on the CPU, and take most of the time on every device. Under
 * compute-sanitizer the GPU does: on an H200 8 workers took 37 s, 4 took 43 and 16 took 41. */
static int choose_jobs(const suite *s) {
    return s->jobs ? (int)s->jobs : worker_count_jobs(sanitizer_get_tool() ? 8 : 16);
}

/* Fills in what is the same for all tasks. */
static bool run_workers(const suite *s, worker_plan *plan, err *e) {
    plan->arguments = s->arguments;
    plan->jobs = choose_jobs(s);
    plan->timeout_s = s->timeout_s;
    return worker_run(plan, e);
}

bool suite_run(const suite *s, const case_list *cases, const suite_listener *listener,
               finding_list *findings, err *e) {
    const char **names = array_new(cases->count, sizeof *names);
    const char **files = array_new(cases->count, sizeof *files);
    for (size_t i = 0; i < cases->count; i++) {
        names[i] = cases->items[i].name;
        files[i] = cases->items[i].kernel->file;
    }
    delivery own = {.cases = cases, .listener = listener, .findings = findings};
    progress shown = progress_new(stderr, "cases", cases->count);
    worker_plan plan = {.tasks = names,
                        .files = files,
                        .count = cases->count,
                        .deliver = deliver,
                        .give_up = give_up,
                        .context = &own,
                        .progress = &shown};
    bool ok = run_workers(s, &plan, e);
    free(names);
    free(files);
    return ok;
}

/* Canaries ---------------------------------------------------------------------------------- */

enum { CANARY_NAME = 96, CANARY_WHY = 200 };

typedef struct {
    const canary *kernel;
    char name[CANARY_NAME], why[CANARY_WHY]; /* it was not caught */
    bool is_caught;
} bird;

static bool deliver_canary(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)e;
    bird *b = (bird *)context + task;
    case_report r = {.failure = o->failure[0] ? o->failure : NULL};
    bool is_read = !r.failure && read_answer(o, &r);
    finding_free(&r.findings);
    b->is_caught = is_read && r.made && r.result.verdict == CHECK_PASS;
    snprintf(b->why, sizeof b->why, "%.199s",
             r.failure  ? r.failure
             : !is_read ? WORKER_OTHER_BUILD
             : !r.made  ? r.error.text
                        : r.result.message);
    return true;
}

/* Reports that came after the answer of their worker, which has ended by now. */
static bool hear_late_ones(bird *birds, size_t count, err *e) {
    validation_count logs;
    finding_list found = {0};
    if (!validation_read_open_folder(&sanitizer_log, &logs, &found, e))
        return false;
    for (bird *b = birds; b < birds + count; b++) {
        char why[CANARY_WHY] = "";
        size_t used = strlen(b->why);
        if (b->is_caught)
            continue;
        b->is_caught = canary_judge(b->kernel, &found, true, why, sizeof why);
        snprintf(b->why + used, CANARY_WHY - used, "; in the files: %s", why);
    }
    finding_free(&found);
    return true;
}

static bool count_caught(const bird *birds, size_t count, FILE *out, err *e) {
    const char *tool = sanitizer_get_tool();
    size_t caught = 0;
    for (size_t i = 0; i < count; i++) {
        caught += birds[i].is_caught;
        if (!birds[i].is_caught)
            fprintf(out, "%s not caught: %s\n", birds[i].name, birds[i].why);
    }
    fprintf(out, "# %s%scanaries: %zu of %zu caught\n", tool ? tool : "", tool ? ": " : "", caught,
            count);
    return caught == count ||
           err_set(e, EXIT_WRONG,
                   "%zu of %zu canaries were not caught: the validation of this device does not "
                   "work, so nothing is called clean",
                   count - caught, count);
}

/* Two canaries never end: a kernel of 128 threads that takes as long as this is endless. What a user has asked
 * for stays if it is less. */
static bool run_canaries(const suite *s, worker_plan *plan, err *e) {
    static const char name[] = "ASSAY_LOOP_SECONDS", enough[] = "0.3";
    const char *given = getenv(name);
    char before[32] = "";
    if (given)
        snprintf(before, sizeof before, "%s", given);
    if (!given || atof(given) > atof(enough))
        setenv(name, enough, 1);
    bool ok = run_workers(s, plan, e);
    if (given)
        setenv(name, before, 1);
    else
        unsetenv(name);
    return ok;
}

bool suite_play_canaries(const suite *s, const device_facts *f, FILE *out, err *e) {
    bird *birds = array_new(canary_count, sizeof *birds);
    const char **names = array_new(canary_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < canary_count; i++) {
        if (!canary_is_for(&canaries[i], f))
            continue;
        birds[count].kernel = &canaries[i];
        snprintf(birds[count].name, CANARY_NAME, "%s%s", canary_prefix, canaries[i].kernel);
        names[count] = birds[count].name;
        count++;
    }
    worker_plan plan = {
        .tasks = names, .count = count, .deliver = deliver_canary, .context = birds};
    bool ok = run_canaries(s, &plan, e) &&
              (!sanitizer_get_tool() || hear_late_ones(birds, count, e)) &&
              count_caught(birds, count, out, e);
    free(birds);
    free(names);
    return ok;
}

bool suite_find_device(const suite *s, device_facts *out, err *e) {
    device *d = device_open(s->device, e);
    if (!d)
        return false;
    *out = *device_get_facts(d);
    device_close(d);
    if (out->kind == DEVICE_CUDA && validation_is_on() && !s->validates)
        return err_set(e, EXIT_USAGE,
                       "MTL_SHADER_VALIDATION does nothing on the device 'cuda'; use `assay "
                       "validate --device cuda`");
    *e = (err){.code = EXIT_OK}; /* devices that `auto` tried before are not errors */
    return true;
}
