/* bench: see bench.h. First the side that times, in a worker, then the side that hands out cases.
 *
 * What is timed interleaved with a kernel of ours, an earlier version of it (the base) or kernels of others
 * (rivals), is checked before the case is timed. Where one is wrong or crashes, the case is handed out again without
 * it, to another worker. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comparison.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "harness/check/check.h"

/* Tasks and answers ---------------------------------------------------------------------------

   prepare:C   compiles what case C needs, before anything is timed; there is no answer
   roof        the roof alone
   M:C         times case C and, interleaved, the others of the mask M

   Both sides are the same program, so an answer is the bytes of a struct, followed by samples:
   rows[i].gpu.count of each side. */

#define WIRE_PREPARE "prepare:"
#define WIRE_ROOF "roof"

enum { WIRE_SIDES = 1 + BENCH_OTHERS, WIRE_TASK = 300 };

/* Why the base or a rival is not timed with a case. */
typedef struct {
    err why;      /* EXIT_OK: it is */
    bool skipped; /* it is not for the case, or the base does not have it */
    bool has_run; /* and may have written anywhere */
} other_verdict;

typedef struct {
    bool
        made; /* else the error says why not, or others are refused; with fewer sides than asked for, why
                  others are missing */
    bool skipped;    /* not made, because this device cannot run the case as written */
    bool uncompiled; /* not made, because there is no pipeline: the kernel's other cases fail too */
    err error;
    roof_facts roof; /* of WIRE_ROOF */
    size_t sides;
    result_row rows[WIRE_SIDES]; /* ours, then the others */
    other_verdict others[BENCH_OTHERS];
} wire_answer;

static void *pack(const wire_answer *a, const timing_sample *const *samples, size_t *bytes) {
    memory_file *all = memory_file_new();
    for (size_t i = 0; i < a->sides; i++)
        fwrite(samples[i], sizeof **samples, a->rows[i].gpu.count, all->out);
    return worker_pack(a, sizeof *a, all, bytes);
}

/* The answer, and where the samples of its sides are, in the bytes of an outcome; NULL if they are not a valid
 * answer. */
static const wire_answer *unpack(const worker_outcome *o, const timing_sample **samples) {
    const wire_answer *a = o->answer;
    if (o->bytes < sizeof *a || a->sides > WIRE_SIDES)
        return NULL;
    const timing_sample *at = (const void *)(a + 1);
    size_t left = (o->bytes - sizeof *a) / sizeof *at;
    for (size_t i = 0; i < a->sides; i++) {
        size_t count = a->rows[i].gpu.count;
        if (count > left)
            return NULL;
        samples[i] = at;
        at += count;
        left -= count;
    }
    return (const char *)at == (const char *)o->answer + o->bytes ? a : NULL;
}

/* The base -------------------------------------------------------------------------------------- */

/* The only kernel of an op that the other version of the op does not have; else NULL. */
static const kernel *find_only(const op *o, const op *other) {
    const kernel *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < o->kernel_count; i++)
        if (!op_find_kernel(other, o->kernels[i].name)) {
            only = &o->kernels[i];
            count++;
        }
    return count == 1 ? only : NULL;
}

static const kernel *find_kernel(const bench_base *b, const kernel_case *ours, const op **from) {
    const kernel *found = NULL;
    for (size_t i = 0; i < b->op_count && !found; i++)
        if ((found = op_find_kernel(b->ops[i], ours->kernel->name)))
            *from = b->ops[i];
    for (size_t i = 0; i < b->op_count && !found; i++)
        if (strcmp(b->ops[i]->name, ours->op->name) == 0 &&
            find_only(ours->op, b->ops[i]) == ours->kernel) {
            found = find_only(b->ops[i], ours->op);
            *from = b->ops[i];
        }
    return found;
}

/* Without descriptions of its own: the file is there and has the kernel. */
static bool has_kernel(library *lib, const kernel *k) {
    char path[PATH_MAX];
    if (!library_find_path(lib, k->file, path, sizeof path, NULL) || access(path, F_OK) != 0)
        return false;
    const msl_unit *u = library_find_unit(lib, k->file, NULL);
    return !u || msl_find_kernel(u, k->name, NULL); /* what cannot be read is reported later */
}

/* What a case of ours was in the base: the kernel of its name, or the only one of its op that is gone now
 * where ours is the only new one (it was renamed), launched as the base's own description says. An
 * error if the base does not have it. */
static bool find_base(const bench_base *b, library *lib, const kernel_case *ours, kernel_case *out,
                      err *e) {
    const op *from = ours->op;
    if (b->error.code != EXIT_OK) {
        *e = b->error;
        return false;
    }
    const kernel *k = b->ops                          ? find_kernel(b, ours, &from)
                      : has_kernel(lib, ours->kernel) ? ours->kernel
                                                      : NULL;
    if (!k)
        return err_set(e, EXIT_USAGE, "%.80s is not in the base", ours->kernel->name);
    if (strcmp(from->dims, ours->op->dims) != 0)
        return err_set(e, EXIT_USAGE, "the sizes of the base's %.60s are %.60s, not %.60s", k->name,
                       from->dims, ours->op->dims);
    *out = case_new(from, k, &ours->shape, ours->inputs);
    memcpy(out->name, ours->name, sizeof out->name); /* the inputs follow from it */
    return true;
}

static bool is_same_place(const binding *a, const binding *b) {
    return a->kind == b->kind && a->access == b->access && a->type == b->type &&
           (a->kind != BIND_BUFFER ||
            (a->at.bytes == b->at.bytes && a->at.buffer->bytes == b->at.buffer->bytes &&
             a->at.offset == b->at.offset));
}

static bool are_same_contents(const slice *a, const slice *b, bool *same, err *e) {
    char *x = array_new(a->bytes + 1, 1), *y = array_new(a->bytes + 1, 1);
    bool ok = buffer_download(a->buffer, a->offset, x, a->bytes, e) &&
              buffer_download(b->buffer, b->offset, y, a->bytes, e);
    *same = ok && memcmp(x, y, a->bytes) == 0;
    free(x);
    free(y);
    return ok;
}

/* Lets the base work on our buffers where they are the same in number, size and contents: a second set
 * would map to the caches differently, and that would look like a difference between kernels. */
static bool share_buffers(const tape *ours, tape *base, err *e) {
    bool same = ours->count == base->count;
    for (size_t i = 0; same && i < ours->count; i++)
        for (int j = 0; same && j < LAUNCH_BUFFERS; j++) {
            const binding *a = &ours->launches[i].args[j], *b = &base->launches[i].args[j];
            same = is_same_place(a, b);
            if (same && a->kind == BIND_BUFFER && !are_same_contents(&a->at, &b->at, &same, e))
                return false;
        }
    for (size_t i = 0; same && i < ours->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (ours->launches[i].args[j].kind == BIND_BUFFER)
                base->launches[i].args[j].at = ours->launches[i].args[j].at;
    return true;
}

/* The worker ------------------------------------------------------------------------------------ */

/* Samples, where a verdict depends on them. */
enum { COMPARED_LEAST = 61, COMPARED_MOST = 2000 };

#define WINDOW_S 5.0 /* a roof older than this is measured again */
#define ROOF_S 0.05  /* for each of its parts */

typedef struct {
    const bench_settings *settings;
    bench_finder *find;
    const bench_base *base;
    library *lib, *base_lib;
    library *rival_libs[BENCH_OTHERS];
    kernel rival_kernels[BENCH_OTHERS]; /* as rows name them */
    meter *meter;
} server;

/* A case and what is timed with it: sides[0] is ours. */
typedef struct {
    bench_case timed;
    measurement sides[WIRE_SIDES];
    rival_problem problems[WIRE_SIDES];
    size_t count;
} contest;

static meter *new_meter(const server *s, const roof_kernels *k) {
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = TIMING_SAMPLE_S,
                       .roof_s = fmin(ROOF_S, s->settings->budget_s),
                       .window_s = WINDOW_S,
                       .fresh = s->settings->fresh ? rng_draw_seed() | 1 : 0};
    o.plan.budget_s = s->settings->budget_s;
    if (s->base_lib || s->settings->rival_count > 0) {
        o.plan.min_samples = COMPARED_LEAST;
        o.plan.max_samples = COMPARED_MOST;
    }
    return meter_new(s->lib, k, &o);
}

static bool open_base(server *s, contest *c, err *e) {
    measurement *ours = &c->sides[0], *base = &c->sides[c->count];
    kernel_case found;
    if (!find_base(s->base, s->base_lib, &c->timed.timed, &found, e))
        return false;
    c->count++;
    if (!measurement_open(base, s->base_lib, &found, s->settings->seed, c->timed.regime,
                          c->timed.cache, e))
        return false;
    base->like = ours;
    return share_buffers(ours->tape, base->tape, e);
}

/* The rival works on our buffers too. */
static bool open_rival(server *s, contest *c, size_t number, err *e) {
    measurement *ours = &c->sides[0], *x = &c->sides[c->count];
    rival_problem *p = &c->problems[c->count++];
    *x = (measurement){.regime = ours->regime, .cache = ours->cache, .like = ours};
    kernel_case made = case_new(c->timed.timed.op, &s->rival_kernels[number], &c->timed.timed.shape,
                                c->timed.timed.inputs);
    snprintf(x->key, sizeof x->key, "%s/%s/%s", made.name, timing_get_regime_name(x->regime),
             timing_get_cache_name(x->cache));
    made.tape = x->tape = tape_new(s->rival_libs[number]);
    x->built = made;
    return rival_record(&s->settings->rivals[number], &ours->built, x->tape, p, e);
}

static bool open_ours(server *s, contest *c, const char *name, err *e) {
    *c = (contest){.count = 1};
    return s->find(name, &c->timed, e) &&
           measurement_open(&c->sides[0], s->lib, &c->timed.timed, s->settings->seed,
                            c->timed.regime, c->timed.cache, e);
}

static void close_contest(contest *c) {
    for (size_t i = c->count; i-- > 0;)
        measurement_close(&c->sides[i]);
}

/* Opens the base or a rival and checks it. One that cannot be launched on the inputs of the case, but compiles, is
 * not for it. */
static bool check_other(server *s, contest *c, size_t number, other_verdict *v) {
    const check_options o = {.unordered = c->timed.timed.op->unordered};
    const size_t before = c->count;
    check_result result;
    if (!(s->base_lib ? open_base(s, c, &v->why) : open_rival(s, c, number, &v->why)))
        v->skipped = s->base_lib
                         ? s->base->error.code == EXIT_OK && !library_has_failed(s->base_lib)
                         : v->why.code == EXIT_CANNOT;
    else if (!device_can_play(c->sides[before].tape, &v->why))
        v->skipped = true;
    else {
        v->has_run = true;
        if (check_tape(c->sides[before].tape, &o, &result, &v->why)) {
            if (result.verdict == CHECK_PASS) {
                v->why.code = EXIT_OK;
                return true;
            }
            err_set(&v->why, EXIT_WRONG, "%.250s", result.message);
        }
        device_tell_loss(library_get_device(s->lib), &v->why);
    }
    while (c->count > before) {
        measurement_close(&c->sides[--c->count]);
        c->sides[c->count] = (measurement){.key = ""};
    }
    return false;
}

/* Is there a verdict, also if it is held against those of all other cases? */
static bool is_decided(const server *s, const measurement *ours, const measurement *base) {
    double *now = timing_list_clock(&ours->result, CLOCK_GPU),
           *was = timing_list_clock(&base->result, CLOCK_GPU);
    verdict_case c = {.base = series_new(was, base->result.count),
                      .now = series_new(now, ours->result.count),
                      .paired = true,
                      .looks = BENCH_LOOKS};
    verdict_decide(&c, 1, s->settings->min_effect / 100, s->settings->seed);
    free(now);
    free(was);
    return c.verdict == VERDICT_SAME ||
           (c.verdict != VERDICT_AMBIGUOUS &&
            c.p * (double)s->settings->compared < VERDICT_LEVEL / (double)BENCH_LOOKS);
}

static bool are_decided(const server *s, const contest *c) {
    for (size_t i = 1; i < c->count; i++)
        if (!is_decided(s, &c->sides[0], &c->sides[i]))
            return false;
    return true;
}

/* A case that is ambiguous is timed again until it is not, or until its time is up. */
static bool decide(server *s, contest *c, err *e) {
    bool ok = true;
    for (int look = 1; ok && look < BENCH_LOOKS && !are_decided(s, c); look++)
        ok = meter_time_again(s->meter, c->sides, c->count,
                              s->settings->again_s / (BENCH_LOOKS - 1), e);
    return ok;
}

static bool time_contest(server *s, contest *c, err *e) {
    return meter_time(s->meter, c->sides, c->count, e) && decide(s, c, e);
}

/* Another may be right alone and wrong when it is run many times: then ours is timed without, and the
 * error is about the others. */
static void *time_case(server *s, uint32_t mask, const char *name, size_t *bytes, bool *retire) {
    static wire_answer a;
    static contest c;
    err alone;
    const timing_sample *samples[WIRE_SIDES];
    a = (wire_answer){.made = false};
    bool is_open = open_ours(s, &c, name, &a.error), is_spoiled = false;
    for (size_t i = 0; i < BENCH_OTHERS && is_open; i++)
        if (mask >> i & 1 && !check_other(s, &c, i, &a.others[i]))
            is_spoiled = is_spoiled || a.others[i].has_run;
    a.made = is_open && !is_spoiled && time_contest(s, &c, &a.error);
    *retire = !a.made; /* a kernel that is wrong may have written anywhere */
    if (!a.made && !is_spoiled && c.count > 1 && a.error.code == EXIT_WRONG &&
        !device_is_lost(library_get_device(s->lib))) { /* a lost one times nothing more */
        close_contest(&c);
        a.made = open_ours(s, &c, name, &alone) && time_contest(s, &c, &alone);
        if (!a.made)
            a.error = alone;
    }
    for (size_t i = 0; a.made && i < c.count; i++) {
        samples[i] = c.sides[i].result.samples;
        a.made = meter_fill_row(s->meter, &c.sides[i], &a.rows[i], &a.error);
    }
    a.skipped = !a.made && c.sides[0].tape && !device_can_play(c.sides[0].tape, NULL);
    a.uncompiled = !a.made && library_has_failed(s->lib);
    *retire = *retire || !a.made;
    if (!a.made)
        device_tell_loss(library_get_device(s->lib), &a.error);
    a.sides = a.made ? c.count : 0;
    void *all = pack(&a, samples, bytes);
    close_contest(&c);
    return all;
}

/* Errors are those of the case, which reports them when it is timed. */
static void prepare_case(const server *s, const char *name) {
    bench_case c;
    kernel_case base;
    err ignored;
    if (!s->find(name, &c, &ignored))
        return;
    bool has_base = s->base_lib && find_base(s->base, s->base_lib, &c.timed, &base, &ignored);
    case_open(&c.timed, s->lib, s->settings->seed, &ignored);
    case_close(&c.timed);
    if (!has_base)
        return;
    case_open(&base, s->base_lib, s->settings->seed, &ignored);
    case_close(&base);
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    server *s = context;
    roof *r = NULL;
    unsigned number;
    int used = 0;
    *bytes = 0;
    if (strncmp(task, WIRE_PREPARE, strlen(WIRE_PREPARE)) == 0) {
        prepare_case(s, task + strlen(WIRE_PREPARE));
        return NULL;
    }
    if (sscanf(task, "%x:%n", &number, &used) == 1 && used > 0)
        return time_case(s, number, task + used, bytes, retire);
    static wire_answer a;
    a = (wire_answer){.made = false};
    a.made = meter_find_roof(s->meter, &r, &a.error);
    if (a.made)
        a.roof = *roof_get_facts(r);
    *retire = !a.made;
    return pack(&a, NULL, bytes);
}

static bool open_rivals(server *s, device *d, err *e) {
    for (size_t i = 0; i < s->settings->rival_count; i++) {
        s->rival_kernels[i] = (kernel){.name = s->settings->rivals[i].name, .variant = BENCH_RIVAL};
        if (!(s->rival_libs[i] = rival_new_library(&s->settings->rivals[i], d, e)))
            return false;
    }
    return true;
}

static bool open_base_library(server *s, device *d, err *e) {
    if (!s->settings->base_folder)
        return true;
    s->base_lib = s->base->sources ? library_new_of(d, s->base->sources, e)
                                   : library_new(d, s->settings->base_folder, e);
    return s->base_lib != NULL;
}

exit_code bench_serve(const bench_settings *s, bench_finder *find, const bench_base *base,
                      const roof_kernels *k, err *e) {
    server own = {.settings = s, .find = find, .base = base};
    device *d = device_open_with(s->device, &(device_options){.cpu_clock = true}, e);
    bool ok = d && (own.lib = library_new(d, NULL, e)) && open_base_library(&own, d, e) &&
              open_rivals(&own, d, e) && (own.meter = new_meter(&own, k)) &&
              worker_serve(run_task, &own, e);
    meter_free(own.meter);
    for (size_t i = 0; i < s->rival_count; i++)
        library_free(own.rival_libs[i]);
    library_free(own.base_lib);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}

/* Handing out ----------------------------------------------------------------------------------- */

typedef struct {
    char (*texts)[WIRE_TASK];
    const char **texts_of; /* as a plan takes them */
    size_t count;
} task_list;

static task_list tasks_new(size_t most) {
    return (task_list){array_new(most + 1, WIRE_TASK), array_new(most + 1, sizeof(char *)), 0};
}

/* Where the text of the next task goes. */
static char *add_task(task_list *l) {
    char *text = l->texts[l->count];
    l->texts_of[l->count++] = text;
    return text;
}

/* The plan has what is not the same for all kinds of tasks. */
static bool run_tasks(const bench_settings *s, task_list *l, worker_plan plan, progress shown,
                      err *e) {
    plan.arguments = s->arguments;
    plan.tasks = l->texts_of;
    plan.count = l->count;
    plan.timeout_s += s->timeout_s;
    plan.progress = &shown;
    bool ok = l->count == 0 || worker_run(&plan, e);
    free(l->texts);
    free(l->texts_of);
    return ok;
}

/* NULL if the worker's answer holds, else why not; *a is NULL if there is none. */
static const char *find_failure(const worker_outcome *o, const wire_answer **a,
                                const timing_sample **samples) {
    *a = o->failure[0] ? NULL : unpack(o, samples);
    return o->failure[0] ? o->failure
           : !*a         ? WORKER_OTHER_BUILD
           : (*a)->made  ? NULL
                         : (*a)->error.text;
}

/* Compiling: */

static bool ignore_outcome(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)context, (void)task, (void)o, (void)e;
    return true;
}

static bool is_smaller(const bench_case *a, const bench_case *b) {
    return shape_count_values(&a->timed.shape) < shape_count_values(&b->timed.shape);
}

/* The smallest case of each kernel, in several workers: compilers would wait for one another in the
 * one worker that times. */
static bool compile_kernels(const bench_settings *s, const bench_list *cases, err *e) {
    task_list tasks = tasks_new(cases->count);
    for (size_t i = 0, end; i < cases->count; i = end) {
        const bench_case *best = &cases->items[i];
        for (end = i; end < cases->count && cases->items[end].timed.kernel == best->timed.kernel;
             end++)
            best = is_smaller(&cases->items[end], best) ? &cases->items[end] : best;
        snprintf(add_task(&tasks), WIRE_TASK, "%s%s", WIRE_PREPARE, best->name);
    }
    if (tasks.count == 1)
        tasks.count = 0;
    return run_tasks(s, &tasks,
                     (worker_plan){.jobs = worker_count_jobs(16), .deliver = ignore_outcome},
                     progress_new(stderr, "kernels compiled", tasks.count), e);
}

/* Timing: */

typedef struct {
    const bench_settings *settings;
    const bench_list *cases;
    const device_facts *facts;
    const bench_listener *listener;
    size_t *places;          /* of each task: which case; cases->count: the roof */
    uint32_t *masks;         /* (cases) what a case is still to be timed with */
    bool *is_done;           /* (cases) */
    other_verdict *verdicts; /* (cases, others) */
} delivery;

/* A case that was not timed, and why; `name` is that of our kernel or of a rival. */
static result_row make_untimed(const bench_case *c, const char *name, const device_facts *f,
                               const char *why) {
    result_row r = result_row_new();
    shape_get_text(&c->timed.shape, r.shape, sizeof r.shape);
    snprintf(r.device, sizeof r.device, "%s", f->name);
    snprintf(r.api, sizeof r.api, "%s", f->api);
    snprintf(r.op, sizeof r.op, "%s", c->timed.op->name);
    snprintf(r.kernel, sizeof r.kernel, "%s", name);
    snprintf(r.math, sizeof r.math, "%s", math_mode_get_name(f->math));
    snprintf(r.input, sizeof r.input, "%s", distribution_get_name(c->timed.inputs));
    snprintf(r.regime, sizeof r.regime, "%s", timing_get_regime_name(c->regime));
    snprintf(r.cache, sizeof r.cache, "%s", timing_get_cache_name(c->cache));
    snprintf(r.name, sizeof r.name, "%s/%s/%s/%s/%s", name, r.shape, r.input, r.regime, r.cache);
    snprintf(r.message, sizeof r.message, "%s", why);
    return r;
}

/* Everything that is for the case: those that are right have been timed, in their order. */
static void add_others(const delivery *s, size_t number, const wire_answer *a,
                       const timing_sample **samples, bench_outcome *out) {
    const bench_case *c = &s->cases->items[number];
    const bench_settings *o = s->settings;
    size_t side = 1, count = bench_count_others(o);
    for (size_t i = 0; i < count; i++) {
        const other_verdict *v = &s->verdicts[number * count + i];
        const bool is_out = v->why.code != EXIT_OK;
        if (!(bench_get_others(o, c) >> i & 1))
            continue;
        bench_other *other = &out->others[out->other_count++];
        if (!is_out && a && side < a->sides) {
            *other = (bench_other){.row = a->rows[side], .samples = samples[side]};
            side++;
            continue;
        }
        const char *why = is_out ? v->why.text
                          : a    ? a->error.text
                                 : "not timed, because ours was not";
        const char *name = o->base_folder ? c->timed.kernel->name : o->rivals[i].name;
        other->row = make_untimed(c, name, s->facts, why);
        if (!o->base_folder)
            snprintf(other->row.variant, sizeof other->row.variant, BENCH_RIVAL);
        other->skipped = v->skipped || (!is_out && !a);
    }
}

static bool deliver_case(const delivery *s, size_t number, const wire_answer *a,
                         const timing_sample **samples, const char *failure, err *e) {
    const bench_case *c = &s->cases->items[number];
    static bench_outcome out;
    out = (bench_outcome){.samples = samples[0]};
    if (!failure)
        out.row = a->rows[0];
    else {
        out.row = make_untimed(c, c->timed.kernel->name, s->facts, failure);
        out.skipped = a && a->skipped;
    }
    add_others(s, number, failure ? NULL : a, samples, &out);
    s->is_done[number] = true;
    return s->listener->deliver(s->listener->context, c, &out, e);
}

/* Keeps what was found of the others. Those that have run and are wrong, or all if the worker died, are left out from
 * now on: *again. */
static bool note_others(const delivery *s, size_t number, const worker_outcome *o,
                        const wire_answer *a, bool *again, err *e) {
    const size_t count = bench_count_others(s->settings);
    const uint32_t mask = s->masks[number];
    for (size_t i = 0; i < count && !o->is_untried; i++) {
        other_verdict *v = &s->verdicts[number * count + i];
        if (!(mask >> i & 1))
            continue;
        *v = a ? a->others[i] : (other_verdict){.has_run = true};
        if (!a)
            err_set(&v->why, EXIT_WRONG, "%.250s", o->failure);
        if (v->why.code == EXIT_USAGE && s->settings->rival_count > 0) {
            *e = v->why;
            return false;
        }
        if (v->has_run && v->why.code != EXIT_OK)
            s->masks[number] &= ~(1u << i);
    }
    *again = s->masks[number] != mask;
    return true;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    const wire_answer *a;
    const timing_sample *samples[WIRE_SIDES] = {NULL};
    const char *failure = find_failure(o, &a, samples);
    const size_t number = s->places[task];
    bool again = false;
    if (number < s->cases->count)
        return note_others(s, number, o, a, &again, e) &&
               (again || deliver_case(s, number, a, samples, failure, e));
    if (!failure)
        return !s->listener->start || s->listener->start(s->listener->context, &a->roof, e);
    err_set(e, a ? a->error.code : EXIT_CANNOT,
            "the roof cannot be measured, so nothing is timed: %.180s", failure);
    if (a)
        err_set_detail(e, a->error.detail);
    return false;
}

static worker_scope give_up(void *context, size_t task, const worker_outcome *o, char *why,
                            size_t size) {
    const delivery *s = context;
    const wire_answer *a = o->answer;
    if (s->places[task] == s->cases->count || o->bytes < sizeof *a || !a->uncompiled)
        return WORKER_NO_OTHERS;
    snprintf(why, size, "%.50s does not compile",
             s->cases->items[s->places[task]].timed.kernel->file);
    return WORKER_GROUP;
}

/* The cases that are not done; before the first of them, the roof. */
static bool time_cases(delivery *s, bool is_first, bool *is_any, err *e) {
    task_list tasks = tasks_new(s->cases->count + 1);
    if (is_first) {
        s->places[tasks.count] = s->cases->count;
        snprintf(add_task(&tasks), WIRE_TASK, WIRE_ROOF);
    }
    for (size_t i = 0; i < s->cases->count; i++)
        if (!s->is_done[i]) {
            s->places[tasks.count] = i;
            snprintf(add_task(&tasks), WIRE_TASK, "%x:%s", s->masks[i], s->cases->items[i].name);
        }
    progress shown = progress_new(stderr, "cases timed", tasks.count - is_first);
    shown.uncounted = is_first;
    *is_any = tasks.count > 0;
    const worker_plan plan = {.jobs = 1,
                              .timeout_s =
                                  bench_count_others(s->settings) > 0 ? s->settings->again_s : 0,
                              .deliver = deliver,
                              .give_up = give_up,
                              .context = s};
    return run_tasks(s->settings, &tasks, plan, shown, e);
}

bool bench_run(const bench_settings *s, const device_facts *f, const bench_list *cases,
               const bench_listener *listener, err *e) {
    const size_t others = bench_count_others(s);
    delivery own = {.settings = s, .cases = cases, .facts = f, .listener = listener};
    own.places = array_new(cases->count + 1, sizeof *own.places);
    own.masks = array_new(cases->count + 1, sizeof *own.masks);
    own.is_done = array_new(cases->count + 1, sizeof *own.is_done);
    own.verdicts = array_new(cases->count * others + 1, sizeof *own.verdicts);
    for (size_t i = 0; i < cases->count && others > 0; i++)
        own.masks[i] = bench_get_others(s, &cases->items[i]);
    bool ok = compile_kernels(s, cases, e), is_any = true;
    for (bool is_first = true; ok && is_any; is_first = false)
        ok = time_cases(&own, is_first, &is_any, e);
    free(own.places);
    free(own.masks);
    free(own.is_done);
    free(own.verdicts);
    return ok;
}
