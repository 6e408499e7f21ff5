/* tune: see tune.h. The side that hands out choices. */
#include "tune.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"

typedef struct {
    const choice_list *choices;
    tune_deliver *deliver;
    void *context;
} delivery;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    const delivery *d = context;
    const choice *c = &d->choices->items[task];
    tune_outcome *out = array_new(1, sizeof *out);
    if (!o->failure[0] && o->bytes == sizeof *out)
        memcpy(out, o->answer, sizeof *out);
    else
        snprintf(out->why, sizeof out->why, "%s", o->failure[0] ? o->failure : WORKER_OTHER_BUILD);
    out->row.choice = *c;
    if (out->made && !(out->row.way = choice_find_way(c, out->ways[out->chosen].name, NULL))) {
        out->made = false;
        snprintf(out->why, sizeof out->why, WORKER_OTHER_BUILD);
    }
    bool ok = d->deliver(d->context, c, out, e);
    free(out);
    return ok;
}

/* Compiling --------------------------------------------------------------------------------- */

enum { KERNELS = 512, COMPILERS = 8 };

/* One that fails is found again when it is to be timed. */
static bool ignore(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)context;
    (void)task;
    (void)o;
    (void)e;
    return true;
}

static size_t list_kernels(const choice_list *choices, const kernel *out[KERNELS]) {
    size_t count = 0;
    for (size_t i = 0; i < choices->count; i++) {
        const kernel *ways[CHOICE_WAYS];
        size_t way_count = choice_list_ways(&choices->items[i], ways);
        for (size_t k = 0; k < way_count; k++) {
            size_t at = 0;
            while (at < count && out[at] != ways[k])
                at++;
            if (at == count && !choice_is_apart(ways[k])) {
                assert(count < KERNELS);
                out[count++] = ways[k];
            }
        }
    }
    return count;
}

static bool compile(const char *const *arguments, const tune_settings *s,
                    const choice_list *choices, err *e) {
    const kernel *kernels[KERNELS];
    size_t count = list_kernels(choices, kernels);
    char(*texts)[CHOICE_TEXT] = array_new(count, sizeof *texts);
    const char **tasks = array_new(count, sizeof *tasks);
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], TUNE_COMPILE "%s", kernels[i]->name);
        tasks[i] = texts[i];
    }
    int cpus = os_count_cpus();
    progress shown = progress_new(stderr, "kernels compiled", count);
    worker_plan plan = {.arguments = arguments,
                        .tasks = tasks,
                        .count = count,
                        .jobs = cpus < COMPILERS ? cpus : COMPILERS,
                        .timeout_s = s->timeout_s,
                        .deliver = ignore,
                        .progress = &shown};
    bool ok = worker_run(&plan, e);
    free(tasks);
    free(texts);
    return ok;
}

/* Timing ------------------------------------------------------------------------------------ */

bool tune_run(const tune_settings *s, const device_facts *f, const choice_list *choices,
              tune_deliver *deliver_one, void *context, err *e) {
    char(*texts)[CHOICE_TEXT] = array_new(choices->count, sizeof *texts);
    const char **tasks = array_new(choices->count, sizeof *tasks);
    for (size_t i = 0; i < choices->count; i++) {
        choice_get_text(&choices->items[i], texts[i], sizeof texts[i]);
        tasks[i] = texts[i];
    }
    char seed[32], budget[32], effect[32];
    snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    snprintf(budget, sizeof budget, "%g", s->budget_s);
    snprintf(effect, sizeof effect, "%g", s->min_effect);
    const char *arguments[] = {"tune",     "--worker", "--device",
                               f->spec,    "--seed",   seed,
                               "--budget", budget,     "--min-effect",
                               effect,     "--math",   math_mode_get_name(s->math),
                               "--out",    s->table,   s->cache ? "--cache" : NULL,
                               s->cache,   NULL};
    delivery own = {choices, deliver_one, context};
    bool is_compiled = compile(arguments, s, choices, e);
    progress shown = progress_new(stderr, "choices", choices->count);
    worker_plan plan = {.arguments = arguments,
                        .tasks = tasks,
                        .count = choices->count,
                        .jobs = 1,
                        .timeout_s = s->timeout_s,
                        .deliver = deliver,
                        .context = &own,
                        .progress = &shown};
    bool ok = is_compiled && worker_run(&plan, e);
    free(tasks);
    free(texts);
    return ok;
}
