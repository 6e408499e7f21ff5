#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/measure/comparison.h"
#include "harness/measure/timing.h"
#include "runner/tokenizer/tokenizer.h"

/* Choices ----------------------------------------------------------------------------------- */

static void add_choice(void *context, const choice *c) {
    choice_list *l = context;
    for (size_t i = 0; i < l->count; i++)
        if (choice_compare(&l->items[i], c) == 0)
            return;
    *ARRAY_ADD(l->items, l->count, l->capacity) = *c;
}

static model *open_with(const tuner *t, const tuned *table, const choice_watch *watch, err *e) {
    model_options o = {.tuned = table, .watch = watch};
    for (size_t i = 0; i < t->test_count; i++) {
        uint32_t needed = bench_find_context(&t->tests[i].test, 1);
        o.context = needed > o.context ? needed : o.context;
    }
    return model_new(t->lib, t->file, &o, e);
}

/* Records the tapes of a test and plays nothing. */
static bool list_choices(tuner *t, size_t i, err *e) {
    choice_list *own = &t->tests[i].choices;
    choice_watch watch = {add_choice, own};
    const bench_test *b = &t->tests[i].test;
    model *m = open_with(t, t->table, &watch, e);
    bool ok = m && model_prepare(m, b->depth, b->prompt, b->generate, true, e);
    model_free(m);
    for (size_t k = 0; k < own->count; k++)
        add_choice(&t->choices, &own->items[k]);
    return ok;
}

bool tuner_open(tuner *t, library *lib, const gguf *g, const bench_test *tests, size_t count,
                tuned *table, const tune_settings *s, err *e) {
    model_shape sizes;
    *t = (tuner){.lib = lib, .file = g, .settings = *s, .table = table};
    if (!model_read_shape(g, &sizes, e))
        return false;
    for (size_t i = 0; i < count && t->test_count < TUNE_TESTS; i++)
        if (!sizes.context || bench_find_context(&tests[i], 1) <= sizes.context)
            t->tests[t->test_count++].test = tests[i];
    if (t->test_count == 0)
        return err_set(e, EXIT_USAGE, "no test fits into the model's context of %u tokens",
                       sizes.context);
    for (size_t i = 0; i < t->test_count; i++)
        if (!list_choices(t, i, e))
            return false;
    return true;
}

void tuner_close(tuner *t) {
    model_free(t->model);
    for (size_t i = 0; i < t->test_count; i++)
        free(t->tests[i].choices.items);
    free(t->choices.items);
    tuned_free(t->table);
}

/* Comparing --------------------------------------------------------------------------------- */

static bool take(void *context, timing_sample *out, err *e) {
    uint64_t ns = 0;
    bool ok = bench_player_play(context, &ns, e);
    *out = (timing_sample){.gpu_ns = (double)ns, .wall_ns = (double)ns, .gpu_is_wall = true};
    return ok;
}

/* The least time of a few plays, in ns: what an interrupted one cannot hide. */
static bool play_a_few(bench_player *p, double *least, err *e) {
    *least = INFINITY;
    for (int i = 0; i < 3; i++) {
        uint64_t ns;
        if (!bench_player_play(p, &ns, e))
            return false;
        *least = fmin(*least, (double)ns);
    }
    return true;
}

/* Samples of both, interleaved, on the caller's clock: that is what a user waits for. */
static bool time_both(const tuner *t, bench_player players[2], verdict_case *out, err *e) {
    enum { LEAST = 15, MOST = 200 };
    const double most_s = 60, far = 1.5 /* times as slow: more samples would not change that */;
    const timing_source sources[] = {{take, &players[0]}, {take, &players[1]}};
    timing_result taken[2] = {{.samples = NULL}, {.samples = NULL}};
    timing_plan plan = timing_plan_new();
    double least[2];
    if (!play_a_few(&players[0], &least[0], e) || !play_a_few(&players[1], &least[1], e))
        return false;
    double ratio = least[1] / least[0];
    if (ratio > far) {
        *out = (verdict_case){.interval = {ratio, ratio, ratio}, .verdict = VERDICT_SLOWER};
        return true;
    }
    double slower_s = 1e-9 * fmax(least[0], least[1]);
    plan.budget_s = fmax(t->settings.budget_s, fmin(1.5 * (double)LEAST * slower_s, most_s));
    plan.min_samples = LEAST;
    plan.max_samples = MOST;
    plan.target = t->settings.min_effect / 400;
    plan.on_cpu = device_get_facts(library_get_device(t->lib))->emulated;
    bool ok = timing_run(&plan, sources, 2, taken, e);
    double *was = timing_list_clock(&taken[0], CLOCK_WALL),
           *now = timing_list_clock(&taken[1], CLOCK_WALL);
    *out = (verdict_case){.base = series_new(was, taken[0].count),
                          .now = series_new(now, taken[1].count),
                          .paired = true};
    if (ok)
        verdict_decide(out, 1, t->settings.min_effect / 100, t->settings.seed);
    free(was);
    free(now);
    timing_result_free(&taken[0]);
    timing_result_free(&taken[1]);
    return ok;
}

static bool run_test(const tuner *t, const bench_test *test, model *with, tune_comparison *out,
                     err *e) {
    bench_player players[2] = {{.tokens = NULL}, {.tokens = NULL}};
    verdict_case v;
    bool ok = bench_player_open(&players[0], t->model, test, TOKEN_NONE, t->settings.seed, e) &&
              bench_player_open(&players[1], with, test, TOKEN_NONE, t->settings.seed, e) &&
              time_both(t, players, &v, e);
    bench_player_close(&players[0]);
    bench_player_close(&players[1]);
    if (!ok)
        return false;
    size_t i = out->count++;
    out->items[i].gain = 1 / v.interval.ratio;
    out->items[i].low = 1 / v.interval.high;
    out->items[i].high = 1 / v.interval.low;
    bench_test_get_name(test, out->items[i].test, sizeof out->items[i].test);
    out->best = out->items[i].gain > out->items[out->best].gain ? i : out->best;
    out->is_faster = out->is_faster || v.verdict == VERDICT_FASTER;
    out->is_slower =
        v.verdict == VERDICT_SLOWER ||
        (v.verdict == VERDICT_AMBIGUOUS && !(v.interval.ratio <= 1 + t->settings.min_effect / 100));
    return true;
}

/* Does a test choose otherwise with one table than with another? */
static bool is_changed(const tuner *t, const choice_list *l, const tuned *table) {
    const device_facts *f = device_get_facts(library_get_device(t->lib));
    const variants_basis was = {.facts = f, .table = t->table}, now = {.facts = f, .table = table};
    for (size_t i = 0; i < l->count; i++)
        if (variants_find(&was, &l->items[i], NULL) != variants_find(&now, &l->items[i], NULL))
            return true;
    return false;
}

/* The model with a table against the model with what is accepted. */
static bool compare(const tuner *t, const tuned *table, model *with, tune_comparison *out, err *e) {
    for (size_t i = 0; i < t->test_count && !out->is_slower; i++)
        if (is_changed(t, &t->tests[i].choices, table) &&
            !run_test(t, &t->tests[i].test, with, out, e))
            return false;
    return true;
}

static void note_gain(tuned_row *r, const tune_comparison *c) {
    snprintf(r->gain, sizeof r->gain, "%.6g", c->items[c->best].gain);
    snprintf(r->low, sizeof r->low, "%.6g", c->items[c->best].low);
    snprintf(r->high, sizeof r->high, "%.6g", c->items[c->best].high);
    snprintf(r->test, sizeof r->test, "%s", c->items[c->best].test);
}

bool tuner_try(tuner *t, const tuned_row *r, tune_comparison *out, bool *is_kept, err *e) {
    tuned_row row = *r;
    tuned *table = tuned_copy(t->table);
    tuned_put(table, r);
    *out = (tune_comparison){.count = 0};
    if (!t->model)
        t->model = open_with(t, t->table, NULL, e);
    model *m = t->model ? open_with(t, table, NULL, e) : NULL;
    bool ok = m && compare(t, table, m, out, e);
    *is_kept = ok && out->is_faster && !out->is_slower;
    if (*is_kept) {
        note_gain(&row, out);
        tuned_put(table, &row);
    }
    model_free(*is_kept ? t->model : m);
    tuned_free(*is_kept ? t->table : table);
    t->model = *is_kept ? m : t->model;
    t->table = *is_kept ? table : t->table;
    return ok;
}
