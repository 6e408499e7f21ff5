/* judge: see judge.h. Owns the order of the stages and what is kept of a refusal; each stage is
 * someone else's: lint, rival, check, the checked mode of the software device. */
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "harness/device/validation.h"
#include "lint.h"
#include "rival.h"

/* Checked mode is slow: larger cases are only checked, except the largest that is not larger than
 * settings.validate_most: what a kernel does only where there is much work it must not do unseen. */
#define VALIDATE_WORK 65536.0
/* Of held-out cases: the work of some grows faster than their shapes. */
#define CHECK_FLOPS 0x1p29
#define VALIDATE_FLOPS 0x1p24
#define REACHED " (checked "
#define CASES_SHARE 0.6 /* of its time; the last case may take longer, and then it is timed */
enum { MAX_TEXT = 1 << 20 };

static const char *const stage_names[JUDGE_STAGES] = {"text",     "compile", "lint", "check",
                                                      "validate", "run",     "time"};

const char *judge_get_stage_name(judge_stage s) {
    return stage_names[s];
}

typedef struct {
    const judge_settings *settings;
    judge_candidate given;
    judge_answer *out;
    char path[2 * PATH_MAX]; /* path:kernel */
    char name[128];          /* of the kernel, as the launch says */
    rival candidate;
    case_list cases;
    judge_parts parts;
    size_t failed; /* the case that refused it */
    uint64_t ends_ns;
} trial;

/* Refuses the candidate: false, with e untouched. */
static bool refuse(trial *t, judge_stage stage, const char *reason) {
    t->out->is_right = false;
    t->out->stage = stage;
    snprintf(t->out->reason, sizeof t->out->reason, "%s", reason);
    return false;
}

/* The text --------------------------------------------------------------------------------------- */

static void keep_remark(trial *t, const remark *m) {
    snprintf(t->out->file, sizeof t->out->file, "%.127s", path_get_name(m->file));
    snprintf(t->out->class, sizeof t->out->class, "%.31s", m->rule ? m->rule : "");
    t->out->line = m->line;
}

/* A kernel is in a file once however often it is asked for, so the name decides. */
static bool choose_kernel(trial *t, const lint_report *r) {
    const char *wanted = t->given.kernel;
    const lint_kernel *found = NULL;
    char text[400];
    for (size_t i = 0; i < r->kernel_count; i++)
        if (strcmp(r->kernels[i].name, wanted ? wanted : t->given.base) == 0)
            found = &r->kernels[i];
    if (!found && !wanted && r->kernel_count == 1)
        found = &r->kernels[0];
    if (!found) {
        int used = snprintf(text, sizeof text,
                            r->kernel_count == 0 ? "the file has no kernel"
                            : wanted             ? "the file has no kernel %.80s: it has"
                                     : "the file has several kernels, name one with --kernel:",
                            wanted);
        for (size_t i = 0; i < r->kernel_count && used < 300; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s %.60s", i ? "," : "",
                             r->kernels[i].name);
        return refuse(t, JUDGE_TEXT, text);
    }
    snprintf(t->out->kernel, sizeof t->out->kernel, "%s", found->name);
    snprintf(t->out->file, sizeof t->out->file, "%.127s", path_get_name(t->given.path));
    t->out->line = found->line;
    return true;
}

static bool read_report(trial *t, const lint_report *r) {
    t->out->warnings = remark_count(&r->remarks, REMARK_WARNING);
    for (size_t i = 0; i < r->remarks.count; i++) {
        const remark *m = &r->remarks.items[i];
        if (m->kind != REMARK_ERROR)
            continue;
        keep_remark(t, m);
        return refuse(t, r->compiled ? JUDGE_LINT : JUDGE_COMPILE, m->text);
    }
    if (r->compiled && !r->strict.taken) {
        char text[500];
        snprintf(text, sizeof text, "it compiles, but cannot be linted: %s", r->strict.why);
        return refuse(t, JUDGE_LINT, text);
    }
    return r->compiled ? choose_kernel(t, r) : refuse(t, JUDGE_COMPILE, "it does not compile");
}

/* False with the candidate refused, or with e set. */
static bool lint_text(trial *t, const msl_extras *extras, err *e) {
    char *text = os_read_source(t->given.path, MAX_TEXT, NULL, e);
    linter *l = text ? linter_new(e) : NULL;
    lint_report r = {.compiled = false};
    msl_extras own = *extras;
    err why = {.code = EXIT_OK};
    free(text);
    bool ok = l && msl_ask_language(&own.language, e);
    worker_note(WORKER_COMPILER);
    if (ok && !linter_check(l, t->given.path, &own, &r, &why)) {
        snprintf(t->out->detail, sizeof t->out->detail, "%.1023s", why.detail);
        ok = refuse(t, JUDGE_COMPILE, why.text);
    } else if (ok) {
        ok = read_report(t, &r);
        lint_report_free(&r);
    }
    worker_note("");
    linter_free(l);
    return ok;
}

static bool open_candidate(trial *t, const char *name, err *e) {
    const judge_settings *s = t->settings;
    err why = {.code = EXIT_OK};
    snprintf(t->path, sizeof t->path, "%s:%s", t->given.path, name);
    if (rival_open(&t->candidate, t->path, &s->launch, s->launch ? 1 : 0, &why))
        return true;
    if (s->launch) {
        *e = why;
        return false;
    }
    return refuse(t, JUDGE_TEXT, why.text);
}

/* A launch says where the includes are, and so is read first; without one the text says which kernel
 * there is. */
static bool read_candidate(trial *t, err *e) {
    const char *described = t->settings->launch;
    char only[128];
    msl_extras ours;
    err why = {.code = EXIT_OK};
    if (!described)
        return rival_find_our_extras(&ours, e) && lint_text(t, &ours, e) &&
               open_candidate(t, t->out->kernel, e);
    if (!t->given.kernel && !rival_find_kernel(t->given.path, described, only, sizeof only, &why)) {
        if (why.code == EXIT_WRONG)
            return refuse(t, JUDGE_TEXT, why.text);
        *e = why;
        return false;
    }
    if (!open_candidate(t, t->given.kernel ? t->given.kernel : only, e))
        return false;
    snprintf(t->name, sizeof t->name, "%s", t->candidate.kernel);
    t->given.kernel = t->name;
    return lint_text(t, &t->candidate.extras, e);
}

/* Cases ------------------------------------------------------------------------------------------ */

static bool find_cases(trial *t, err *e) {
    const judge_settings *s = t->settings;
    if (!s->find(t->given.base, s->random, s->seed, &t->cases, &t->parts, e))
        return false;
    check_sort_cases(t->cases.items, t->parts.listed);
    check_sort_cases(t->cases.items + t->parts.listed, t->parts.kinds - t->parts.listed);
    return true;
}

static bool is_held_out(const trial *t, size_t i) {
    return i >= t->parts.listed && i < t->parts.timed;
}

/* A shape that is timed may be one of the others, too. */
static bool is_repeated(const trial *t, size_t i) {
    for (size_t k = t->parts.timed; k < t->cases.count && i < t->parts.timed; k++)
        if (strcmp(t->cases.items[k].name, t->cases.items[i].name) == 0)
            return !is_held_out(t, i); /* whose scalars vary */
    return false;
}

typedef struct {
    judge_stage stage;
    device *device;
    library *base, *own;
} bench_top;

/* Of held-out cases also the numbers that an op has one value for, such as an epsilon: a kernel or a launch
 * that has them written down is wrong. Before the candidate is recorded, whose launch may give them under
 * their names. */
static void vary_values(const trial *t, const kernel_case *c, tape *played) {
    rng random = rng_new(t->settings->seed, c->name);
    for (size_t i = 0; i < played->count; i++)
        for (int k = 0; k < LAUNCH_BUFFERS; k++) {
            launch *l = &played->launches[i];
            const binding *b = &l->args[k];
            float value;
            if (b->kind != BIND_BYTES || b->type != ELEM_F32 || b->inline_bytes != sizeof value)
                continue;
            memcpy(&value, l->inline_bytes + b->inline_at, sizeof value);
            value *= (float)exp2(8 * rng_uniform(&random) - 4); /* 1/16 to 16 times as large */
            memcpy(l->inline_bytes + b->inline_at, &value, sizeof value);
        }
}

static bool is_too_much(const bench_top *b, const tape *t) {
    double flops = 0;
    for (size_t i = 0; i < t->count; i++)
        flops += (double)t->launches[i].flops;
    return flops > (b->stage == JUDGE_VALIDATE ? VALIDATE_FLOPS : CHECK_FLOPS);
}

/* A case with the candidate in the place of its kernel. */
typedef struct {
    trial *trial;
    const bench_top *top;
    const kernel_case *wanted;
    rival_problem problem;
} replaced;

static tape *record(void *context, const kernel_case *c, check_result *r, err *e) {
    replaced *x = context;
    const bool is_described = x->trial->settings->launch;
    const trial *t = x->trial;
    const bool is_other = is_held_out(t, (size_t)(x->wanted - t->cases.items));
    if (is_other && is_too_much(x->top, c->tape)) {
        check_skip(r, "it is too much work");
        return NULL;
    }
    if (is_other)
        vary_values(t, c, c->tape);
    tape *own = tape_new(x->top->own);
    err why = {.code = EXIT_OK};
    if (rival_record(&t->candidate, c, own, &x->problem, &why))
        return own;
    if (is_described && why.code == EXIT_CANNOT) /* its line 'needs' */
        check_skip(r, "%s", why.text);
    else
        *e = why;
    tape_free(own);
    return NULL;
}

static bool check_one(trial *t, const bench_top *b, const kernel_case *c, check_result *r, err *e) {
    replaced x = {.trial = t, .top = b, .wanted = c};
    return check_case(b->base, c, &(check_stand_in){record, &x}, t->settings->seed, r, e);
}

/* The class and the line of the first finding. */
static void keep_place(trial *t, const bench_top *b) {
    judge_answer *a = t->out;
    const finding_list *found = device_get_findings(b->device);
    for (size_t k = found->count; k-- > 0;) {
        const finding *f = &found->items[k];
        if (finding_is_mild(f->what) || f->line == 0)
            continue;
        snprintf(a->class, sizeof a->class, "%.31s", finding_get_name(f->what));
        snprintf(a->file, sizeof a->file, "%s", f->file);
        a->line = f->line;
    }
}

/* What is wrong, and where. */
static bool refuse_case(trial *t, const bench_top *b, size_t i, const check_result *r) {
    judge_answer *a = t->out;
    const char *colon = strstr(r->message, ": ");
    bool is_named = strncmp(r->message, "kernel ", 7) == 0 && colon;
    a->is_held_out = is_held_out(t, i);
    snprintf(a->case_name, sizeof a->case_name, "%s", t->cases.items[i].name);
    t->failed = i;
    if (r->worst.bad > 0) {
        snprintf(a->buffer, sizeof a->buffer, "%s", r->buffer);
        a->shown = r->worst.shown;
        memcpy(a->first, r->worst.first, sizeof a->first);
    }
    keep_place(t, b);
    return refuse(t, b->stage, is_named ? colon + 2 : r->message);
}

/* What went wrong before there was anything to compare. Whose fault is it? */
static bool refuse_error(trial *t, const bench_top *b, size_t i, const err *why, err *e) {
    bool is_theirs = library_has_failed(b->own) && why->code != EXIT_INTERRUPTED;
    if (!is_theirs && (why->code == EXIT_CANNOT || why->code == EXIT_INTERRUPTED ||
                       (why->code == EXIT_USAGE && t->settings->launch))) {
        *e = *why;
        return false;
    }
    snprintf(t->out->case_name, sizeof t->out->case_name, "%s", t->cases.items[i].name);
    snprintf(t->out->detail, sizeof t->out->detail, "%.1023s", why->detail);
    return refuse(t,
                  is_theirs                 ? JUDGE_COMPILE
                  : why->code == EXIT_USAGE ? JUDGE_TEXT
                                            : JUDGE_RUN,
                  why->text);
}

/* A case as its own kernel is given it. */
static tape *record_base(void *context, const kernel_case *c, check_result *r, err *e) {
    const replaced *x = context;
    (void)r;
    (void)e;
    if (is_held_out(x->trial, (size_t)(x->wanted - x->trial->cases.items)))
        vary_values(x->trial, c, c->tape);
    return c->tape;
}

/* An op may take a shape, or draw inputs, that its oracle or its own kernels do not get right; that is
 * not held against a candidate. */
static bool does_base_fail(trial *t, const bench_top *b, size_t i) {
    check_result r;
    err why = {.code = EXIT_OK};
    replaced x = {.trial = t, .top = b, .wanted = &t->cases.items[i]};
    const check_stand_in base = {record_base, &x};
    return !check_case(b->base, x.wanted, &base, t->settings->seed, &r, &why) ||
           r.verdict == CHECK_FAIL;
}

/* The largest listed case that is validated. The listed ones are sorted. */
static size_t find_largest(const trial *t) {
    size_t i = t->parts.listed;
    const double most = (double)t->settings->validate_most;
    while (i > 1 && shape_count_values(&t->cases.items[i - 1].shape) > most)
        i--;
    return i > 0 ? i - 1 : 0;
}

/* Is the case one that this stage must run? Others of checked mode, which is slow, it runs while there is
 * time. */
static bool is_needed(const trial *t, bool validates, size_t i) {
    return !validates || i == 0 || i >= t->parts.timed || i == find_largest(t);
}

/* A kernel that hangs does so with a small case, too. What only takes long is not refused: see deliver. */
static void note_reached(const trial *t, bool may_be_slow) {
    char text[WORKER_NOTE_BYTES];
    snprintf(text, sizeof text, REACHED "%zu, validated %zu of %zu)", t->out->checked,
             t->out->validated, t->cases.count);
    worker_set_reached(may_be_slow ? text : "");
}

/* Those that are timed are checked last and validated first. False with the candidate refused, or with e
 * set. */
static bool check_all(trial *t, const bench_top *b, err *e) {
    const bool validates = b->stage == JUDGE_VALIDATE;
    judge_answer *a = t->out;
    size_t *passed_cases = validates ? &a->validated : &a->checked;
    for (size_t k = 0; k < t->cases.count; k++) {
        const size_t i = (k + (validates ? t->parts.timed : 0)) % t->cases.count;
        const kernel_case *c = &t->cases.items[i];
        const bool is_late = k > 0 && os_now_ns() > t->ends_ns,
                   is_needed_here = is_needed(t, validates, i);
        check_result r;
        err why = {.code = EXIT_OK};
        const bool is_small = shape_count_values(&c->shape) <= VALIDATE_WORK &&
                              (i < t->parts.kinds || i >= t->parts.timed);
        if (is_repeated(t, i) || (!is_needed_here && !is_small))
            continue;
        if (is_late && is_needed_here)
            return err_set(e, EXIT_INCONCLUSIVE,
                           "%.60s: the time was up after %zu of %zu cases were checked and %zu "
                           "validated, all of them right: give it more with --timeout",
                           a->kernel, a->checked, t->cases.count, a->validated);
        a->untried += is_late;
        if (is_late)
            continue;
        note_reached(t, validates || i >= t->parts.timed);
        bool made = check_one(t, b, c, &r, &why);
        bool passed = made && r.verdict == CHECK_PASS;
        if ((made && r.verdict == CHECK_SKIP) ||
            (!passed && why.code == EXIT_CANNOT && is_held_out(t, i)))
            continue;
        if (!passed) {
            bool is_refused = made ? refuse_case(t, b, i, &r) : refuse_error(t, b, i, &why, e);
            if (e->code == EXIT_OK && does_base_fail(t, b, i)) {
                a->is_right = true;
                continue;
            }
            return is_refused;
        }
        *passed_cases += 1;
        a->held_out += !validates && is_held_out(t, i);
    }
    return *passed_cases > 0 ||
           err_set(e, EXIT_CANNOT, "no case of %.80s can be run on the device %.40s", t->given.base,
                   device_get_facts(b->device)->api);
}

static bool open_top(const trial *t, judge_stage stage, const char *name, bench_top *b, err *e) {
    setenv("MTL_SHADER_VALIDATION", stage == JUDGE_VALIDATE ? "1" : "0", 1);
    *b = (bench_top){.stage = stage, .device = device_open(name, e)};
    bool ok = b->device && (b->base = library_new(b->device, NULL, e)) &&
              (b->own = rival_new_library(&t->candidate, b->device, e));
    if (ok)
        *e = (err){.code = EXIT_OK}; /* devices that `auto` tried before are not errors */
    return ok;
}

static void close_top(const bench_top *b) {
    library_free(b->own);
    library_free(b->base);
    device_close(b->device);
}

static bool run_stage(trial *t, judge_stage stage, const char *name, err *e) {
    bench_top b;
    bool ok = open_top(t, stage, name, &b, e) && check_all(t, &b, e);
    close_top(&b);
    return ok;
}

/* Of a case with wrong elements: the line that stored the first, or what else checked mode has against
 * it. The verdict stands, whatever happens here. */
static void locate(trial *t) {
    const kernel_case *c = &t->cases.items[t->failed];
    bench_top b;
    check_result r;
    err unused;
    if (shape_count_values(&c->shape) > VALIDATE_WORK)
        return;
    if (open_top(t, JUDGE_VALIDATE, "soft", &b, &unused) && check_one(t, &b, c, &r, &unused) &&
        r.verdict == CHECK_FAIL)
        keep_place(t, &b);
    close_top(&b);
}

/* The worker ------------------------------------------------------------------------------------- */

enum { TASK_FIELDS = 4 };

/* "number<TAB>base<TAB>kernel<TAB>path": the number makes a group of each, so that one that hangs
 * does not keep the others from being tried. */
static bool read_task(trial *t, char *task) {
    char *fields[TASK_FIELDS];
    if (!worker_cut_task(task, fields, TASK_FIELDS))
        return false;
    t->given = (judge_candidate){fields[3], *fields[2] ? fields[2] : NULL, fields[1]};
    return true;
}

static void *judge_task(void *context, const char *task, size_t *bytes, bool *retire) {
    trial *t = array_new(1, sizeof *t);
    judge_answer *out = array_new(1, sizeof *out);
    char *text = strdup(task);
    *out = (judge_answer){.is_right = true};
    t->settings = context;
    t->out = out;
    t->ends_ns = os_now_ns() + (uint64_t)(CASES_SHARE * t->settings->timeout_s * 1e9);
    child_set_budget(t->settings->compile_s);
    bool ok =
        text && read_task(t, text) && read_candidate(t, &out->error) && find_cases(t, &out->error);
    bool is_checked = ok && run_stage(t, JUDGE_CHECK, t->settings->device, &out->error);
    if (ok && !is_checked && out->shown > 0)
        locate(t);
    ok = is_checked && run_stage(t, JUDGE_VALIDATE, "soft", &out->error);
    out->is_our_failure = !ok && out->error.code != EXIT_OK;
    free(t->cases.items);
    free(text);
    free(t);
    *bytes = sizeof *out;
    *retire = true; /* a wrong kernel may have written anywhere */
    return out;
}

exit_code judge_serve(const judge_settings *s, err *e) {
    return worker_serve(judge_task, (void *)(uintptr_t)s, e) ? EXIT_OK : e->code;
}

/* The side that hands out ------------------------------------------------------------------------ */

typedef struct {
    judge_listener *hear;
    void *context;
    const judge_candidate *candidates;
} listener;

/* A task is a line of fields: others are not read. */
static bool has_marks(const judge_candidate *c) {
    return strpbrk(c->path, "\n\t") != NULL;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    const listener *l = context;
    judge_answer a = {.stage = JUDGE_RUN};
    if (has_marks(&l->candidates[task]))
        a.is_our_failure = !err_set(&a.error, EXIT_USAGE,
                                    "its name has a tab or a line end in it: it is not read");
    else if (strstr(o->failure, "timed out") &&
             (strstr(o->failure, REACHED) || !strstr(o->failure, WORKER_KERNEL)))
        a.is_our_failure =
            !err_set(&a.error, EXIT_INCONCLUSIVE, "%.80s: %s: give it more with --timeout",
                     path_get_name(l->candidates[task].path), o->failure);
    else if (o->failure[0])
        snprintf(a.reason, sizeof a.reason, "%s", o->failure);
    else if (o->bytes == sizeof a)
        memcpy(&a, o->answer, sizeof a);
    else
        return err_set(e, EXIT_CANNOT, WORKER_OTHER_BUILD);
    return l->hear(l->context, task, &a, e);
}

bool judge_run(const judge_settings *s, const judge_candidate *candidates, size_t count,
               judge_listener *hear, void *context, err *e) {
    listener own = {hear, context, candidates};
    char **tasks = array_new(count + 1, sizeof *tasks);
    for (size_t i = 0; i < count; i++) {
        const judge_candidate *c = &candidates[i];
        size_t size = strlen(c->path) + 400;
        tasks[i] = array_new(1, size);
        snprintf(tasks[i], size, "%zu\t%.128s\t%.128s\t%s", i, c->base, c->kernel ? c->kernel : "",
                 has_marks(c) ? "" : c->path);
    }
    progress shown = progress_new(stderr, "candidates", count);
    worker_plan plan = {.arguments = s->arguments,
                        .tasks = (const char *const *)tasks,
                        .count = count,
                        .jobs = s->jobs ? (int)s->jobs : worker_count_jobs(16),
                        .timeout_s = s->timeout_s,
                        .deliver = deliver,
                        .context = &own,
                        .progress = &shown};
    const bool ok = worker_run(&plan, e);
    for (size_t i = 0; i < count; i++)
        free(tasks[i]);
    free(tasks);
    return ok;
}
