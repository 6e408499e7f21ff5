#include "comparison.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

comparison_row *comparison_add(comparison_list *l, const char *key) {
    l->rows = realloc(l->rows, (l->count + 1) * sizeof *l->rows);
    assert(l->rows);
    comparison_row *r = &l->rows[l->count++];
    *r = (comparison_row){.note = ""};
    snprintf(r->key, sizeof r->key, "%s", key);
    return r;
}

void comparison_add_note(comparison_row *r, const char *text, const char *more) {
    size_t used = strlen(r->note);
    if (*text || *more)
        snprintf(r->note + used, sizeof r->note - used, "%s%s%s", used ? ", " : "", text, more);
}

void comparison_add_run(comparison_row *r, comparison_side *side, const timing_sample *samples,
                        size_t count, timing_clock clock, const char *labels) {
    if (count == 0)
        return;
    const char *suspicion = timing_find_suspicion(labels);
    /* A GPU's own clock goes on counting only its work. */
    side->busy |= suspicion && strcmp(suspicion, "busy") == 0 &&
                  (strstr(labels, "emulated") || strstr(labels, "gpu_is_wall"));
    side->samples = realloc(side->samples, (side->count + count) * sizeof *side->samples);
    side->runs = realloc(side->runs, (side->run_count + 1) * sizeof *side->runs);
    assert(side->samples && side->runs);
    for (size_t i = 0; i < count; i++)
        side->samples[side->count++] = timing_get_clock(&samples[i], clock);
    side->runs[side->run_count++] = count;
    if (suspicion && side->suspect++ == 0)
        comparison_add_note(r, side == &r->base ? "base was " : "now was ", suspicion);
}

void comparison_free(comparison_list *l) {
    for (size_t i = 0; i < l->count; i++) {
        free(l->rows[i].base.samples);
        free(l->rows[i].base.runs);
        free(l->rows[i].now.samples);
        free(l->rows[i].now.runs);
    }
    free(l->rows);
    *l = (comparison_list){NULL, 0};
}

/* A disturbance that comes and goes makes runs differ, and that counts; one that a single run or all
 * runs of one side had looks like a change. */
static const char *find_doubt(const comparison_side *base, const comparison_side *now) {
    if (base->run_count <= 1 && now->run_count <= 1 && base->suspect + now->suspect > 0)
        return "a run was disturbed (busy, throttled or ramp): time both interleaved (bench "
               "--baseline FOLDER), take several runs per side, or wait for a quiet machine";
    if ((base->suspect == base->run_count) != (now->suspect == now->run_count))
        return "all runs of one side were disturbed (busy, throttled or ramp), and not all of the "
               "other: take runs of both in turn";
    return NULL;
}

static verdict_case make_test(const comparison_row *r) {
    verdict_case c = r->test;
    const comparison_side *base = &r->base, *now = &r->now;
    c.base = base->samples;
    c.now = now->samples;
    c.base_count = base->count;
    c.now_count = now->count;
    c.base_runs = base->runs;
    c.now_runs = now->runs;
    c.base_run_count = base->run_count;
    c.now_run_count = now->run_count;
    c.busy = c.paired && !r->is_same_source && (base->busy || now->busy);
    if (!c.obstacle && !c.paired && base->run_count > 0 && now->run_count > 0)
        c.obstacle = find_doubt(base, now);
    return c;
}

void comparison_decide(comparison_list *l, double min_effect, uint64_t seed) {
    verdict_case *all = array_new(l->count + 1, sizeof *all);
    for (size_t i = 0; i < l->count; i++)
        all[i] = make_test(&l->rows[i]);
    verdict_decide(all, l->count, min_effect, seed);
    for (size_t i = 0; i < l->count; i++) {
        l->rows[i].test = all[i];
        if (all[i].busy && all[i].verdict == VERDICT_AMBIGUOUS)
            comparison_add_note(&l->rows[i], "the machine was busy", "");
    }
    free(all);
}
