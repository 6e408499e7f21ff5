#include "judge_time.h"

#include <stdio.h>
#include <string.h>

#include "bench_cases.h"
#include "harness/measure/comparison.h"

typedef struct {
    const judge_time_settings *settings;
    judge_time *out;
} listener;

static void compare(const listener *l, const bench_outcome *o, const bench_other *own) {
    comparison_list list = {.count = 0};
    comparison_row *c = comparison_add(&list, l->out->name);
    c->test.paired = o->row.gpu.count == own->row.gpu.count;
    c->test.looks = BENCH_LOOKS;
    comparison_add_run(c, &c->base, o->samples, o->row.gpu.count, CLOCK_GPU, o->row.labels);
    comparison_add_run(c, &c->now, own->samples, own->row.gpu.count, CLOCK_GPU, own->row.labels);
    comparison_decide(&list, l->settings->bench.min_effect / 100, l->settings->bench.seed);
    l->out->test = list.rows[0].test;
    l->out->samples = own->row.gpu.count;
    l->out->is_timed = true;
    snprintf(l->out->labels, sizeof l->out->labels, "%s", own->row.labels);
    comparison_free(&list);
}

/* The base is known to be right, so that its failure is not one of the candidate. */
static bool deliver(void *context, const bench_case *c, const bench_outcome *o, err *e) {
    const listener *l = context;
    const bench_other *own = &o->others[0];
    snprintf(l->out->name, sizeof l->out->name, "%s", c->name);
    if (o->other_count == 1 && own->row.gpu.count == 0 && !own->skipped)
        snprintf(l->out->refusal, sizeof l->out->refusal, "%s", own->row.message);
    else if (o->row.gpu.count == 0 || own->row.gpu.count == 0)
        return err_set(e, EXIT_CANNOT, "%.80s cannot be timed: %.160s", c->name,
                       o->row.gpu.count == 0 ? o->row.message : own->row.message);
    else
        compare(l, o, own);
    return true;
}

bool judge_time_run(const judge_time_settings *s, const device_facts *f, const char *given,
                    const kernel *base, judge_time *out, err *e) {
    bench_settings bench = s->bench;
    bench_query query = {.filters = &base->name, .filter_count = 1, .shapes = s->shape};
    bench_list cases;
    listener own = {s, out};
    const bench_listener listens = {NULL, deliver, &own};
    *out = (judge_time){.is_timed = false};
    if (!bench_set_rival(&bench, given, s->launch, e) || !bench_cases_find(&query, &cases, e))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < cases.count; i++) /* an op may have the name of a kernel */
        if (cases.items[i].timed.kernel == base && kept == 0)
            cases.items[kept++] = cases.items[i];
    cases.count = kept;
    bench_set_workers(&bench, f, cases.count);
    bool ok = bench_against_choose(&bench, &cases, e) && bench_run(&bench, f, &cases, &listens, e);
    bench_cases_free(&cases);
    return ok;
}
