/* bench_others: the base and rivals are checked, each in a worker of its own if it crashes, before
 * anything is timed: one that is wrong is not timed, and does not keep ours from being timed. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_wire.h"
#include "harness/base/worker.h"

typedef struct {
    const bench_settings *settings;
    other_verdict *verdicts; /* (cases, others) */
    size_t *places;          /* of each task: where in verdicts */
} checking;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    const checking *c = context;
    other_verdict *v = &c->verdicts[c->places[task]];
    static wire_answer a;
    timing_sample *none[WIRE_SIDES];
    v->refused = true;
    if (o->failure[0])
        snprintf(v->why, sizeof v->why, "%s", o->failure);
    else if (!wire_unpack(o->answer, o->bytes, &a, none))
        snprintf(v->why, sizeof v->why, "%s", WORKER_OTHER_BUILD);
    else if (!a.made && a.error.code == EXIT_USAGE && c->settings->rival_count > 0) {
        *e = a.error;
        return false;
    } else {
        v->refused = !a.made;
        v->skipped = a.skipped;
        snprintf(v->why, sizeof v->why, "%s", a.made ? "" : a.error.text);
    }
    return true;
}

/* The first case with the same kernel, shape and input: regime and cache do not matter here. */
static size_t find_first(const bench_list *cases, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(cases->items[k].timed.name, cases->items[i].timed.name) == 0)
            return k;
    return i;
}

other_verdict *bench_check_others(const bench_settings *s, const bench_list *cases, err *e) {
    size_t others = bench_count_others(s), all = cases->count * others, count = 0;
    checking own = {s, calloc(all + 1, sizeof *own.verdicts), calloc(all + 1, sizeof *own.places)};
    char(*texts)[WIRE_TASK] = calloc(all + 1, sizeof *texts);
    const char **tasks = calloc(all + 1, sizeof *tasks);
    assert(own.verdicts && own.places && texts && tasks);
    for (size_t i = 0; i < cases->count; i++)
        for (size_t r = 0; r < others; r++) {
            const bench_case *c = &cases->items[i];
            if (!(bench_get_others(s, c) >> r & 1) || find_first(cases, i) != i)
                continue;
            snprintf(texts[count], sizeof *texts, "check:%zu:%s", r, c->name);
            tasks[count] = texts[count];
            own.places[count++] = i * others + r;
        }
    progress shown = progress_new(
        stderr, s->base_folder ? "cases of the base checked" : "third-party kernels checked",
        count);
    worker_plan plan = {.arguments = s->arguments,
                        .tasks = tasks,
                        .count = count,
                        .jobs = 1,
                        .timeout_s = s->timeout_s,
                        .deliver = deliver,
                        .context = &own,
                        .progress = &shown};
    bool ok = count == 0 || worker_run(&plan, e);
    for (size_t i = 0; i < cases->count; i++)
        memcpy(&own.verdicts[i * others], &own.verdicts[find_first(cases, i) * others],
               find_first(cases, i) == i ? 0 : others * sizeof *own.verdicts);
    free(tasks);
    free(texts);
    free(own.places);
    if (ok)
        return own.verdicts;
    free(own.verdicts);
    return NULL;
}
