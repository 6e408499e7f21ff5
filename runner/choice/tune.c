#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/measure/timing.h"
#include "runner/tokenizer/tokenizer.h"
#include "variants.h"

/* Choices ----------------------------------------------------------------------------------- */

void choice_list_add(choice_list *l, const choice *c) {
    for (size_t i = 0; i < l->count; i++)
        if (choice_compare(&l->items[i], c) == 0)
            return;
    *ARRAY_ADD(l->items, l->count, l->capacity) = *c;
}

void choice_list_free(choice_list *l) {
    free(l->items);
    *l = (choice_list){.items = NULL};
}

static void observe(void *context, const choice *c) {
    choice_list_add(context, c);
}

static uint32_t find_context(const tuner *t) {
    uint32_t most = 0;
    for (size_t i = 0; i < t->test_count; i++) {
        uint32_t needed = bench_find_context(&t->tests[i].test, 1);
        most = needed > most ? needed : most;
    }
    return most;
}

/* Records the tapes of a test and plays nothing. */
static bool list_choices(const tuner *t, tune_test *test, err *e) {
    choice_watch watch = {observe, &test->choices};
    model_options o = {.context = find_context(t), .tuned = t->table, .watch = &watch};
    const bench_test *b = &test->test;
    model *m = model_new(t->lib, t->file, &o, e);
    bool ok = m && model_prepare(m, b->depth, b->prompt, b->generate, true, e);
    model_free(m);
    return ok;
}

choice_list tuner_list_choices(const tuner *t) {
    choice_list all = {.items = NULL};
    for (size_t i = 0; i < t->test_count; i++)
        for (size_t k = 0; k < t->tests[i].choices.count; k++)
            choice_list_add(&all, &t->tests[i].choices.items[k]);
    return all;
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
        if (!list_choices(t, &t->tests[i], e))
            return false;
    return true;
}

void tuner_close(tuner *t) {
    model_free(t->model);
    for (size_t i = 0; i < t->test_count; i++)
        choice_list_free(&t->tests[i].choices);
    tuned_free(t->table);
}

/* Comparing --------------------------------------------------------------------------------- */

enum { FEW = 3, LEAST = 15, MOST = 200 };
#define MOST_S 60.0
#define FAR 1.5 /* times as slow */

static bool take(void *context, timing_sample *out, err *e) {
    uint64_t ns = 0;
    bool ok = bench_player_play(context, &ns, e);
    *out = (timing_sample){.gpu_ns = (double)ns, .wall_ns = (double)ns, .gpu_is_wall = true};
    return ok;
}

/* The least time of a few plays, in ns: what an interrupted one cannot hide. */
static bool play_a_few(bench_player *p, double *least, err *e) {
    *least = INFINITY;
    for (int i = 0; i < FEW; i++) {
        uint64_t ns;
        if (!bench_player_play(p, &ns, e))
            return false;
        *least = fmin(*least, (double)ns);
    }
    return true;
}

/* Samples of both, interleaved, on the caller's clock: that is what a user waits for. */
static bool time_both(const tuner *t, bench_player *without, bench_player *with, verdict_case *out,
                      err *e) {
    const timing_source sources[] = {{take, without}, {take, with}};
    timing_result results[2] = {{.samples = NULL}, {.samples = NULL}};
    timing_plan plan = timing_plan_new();
    double least[2];
    if (!play_a_few(without, &least[0], e) || !play_a_few(with, &least[1], e))
        return false;
    if (least[1] > FAR * least[0]) { /* more samples would not change that */
        double ratio = least[1] / least[0];
        *out = (verdict_case){.interval = {ratio, ratio, ratio}, .verdict = VERDICT_SLOWER};
        return true;
    }
    double slower_s = 1e-9 * fmax(least[0], least[1]);
    plan.budget_s = fmax(t->settings.budget_s, fmin(1.5 * (double)LEAST * slower_s, MOST_S));
    plan.min_samples = LEAST;
    plan.max_samples = MOST;
    plan.target = t->settings.min_effect / 400;
    plan.on_cpu = device_get_facts(library_get_device(t->lib))->emulated;
    bool ok = timing_run(&plan, sources, 2, results, e);
    double *was = timing_list_clock(&results[0], CLOCK_WALL),
           *now = timing_list_clock(&results[1], CLOCK_WALL);
    *out = (verdict_case){.base = was,
                          .now = now,
                          .base_count = results[0].count,
                          .now_count = results[1].count,
                          .paired = true};
    if (ok)
        verdict_decide(out, 1, t->settings.min_effect / 100, t->settings.seed);
    free(was);
    free(now);
    timing_result_free(&results[0]);
    timing_result_free(&results[1]);
    return ok;
}

static bool run_test(const tuner *t, const bench_test *test, model *without, model *with,
                     tune_comparison *out, err *e) {
    bench_player players[2] = {{.tokens = NULL}, {.tokens = NULL}};
    verdict_case v;
    bool ok = bench_player_open(&players[0], without, test, TOKEN_NONE, t->settings.seed, e) &&
              bench_player_open(&players[1], with, test, TOKEN_NONE, t->settings.seed, e) &&
              time_both(t, &players[0], &players[1], &v, e);
    bench_player_close(&players[0]);
    bench_player_close(&players[1]);
    if (!ok)
        return false;
    size_t i = out->count++;
    double effect = t->settings.min_effect / 100;
    out->items[i].test = test;
    out->items[i].gain = 1 / v.interval.ratio;
    out->items[i].low = 1 / v.interval.high;
    out->items[i].high = 1 / v.interval.low;
    out->items[i].verdict = v.verdict;
    out->best = out->items[i].gain > out->items[out->best].gain ? i : out->best;
    out->is_faster = out->is_faster || v.verdict == VERDICT_FASTER;
    out->is_slower = v.verdict == VERDICT_SLOWER ||
                     (v.verdict == VERDICT_AMBIGUOUS && !(v.interval.ratio <= 1 + effect));
    return true;
}

/* Does a test choose otherwise with one table than with another? */
static bool is_changed(const tuner *t, const tune_test *test, const tuned *a, const tuned *b) {
    const device_facts *f = device_get_facts(library_get_device(t->lib));
    for (size_t i = 0; i < test->choices.count; i++) {
        const choice *c = &test->choices.items[i];
        if (variants_find(&(variants_basis){.facts = f, .table = a}, c, NULL) !=
            variants_find(&(variants_basis){.facts = f, .table = b}, c, NULL))
            return true;
    }
    return false;
}

static model *open_with(const tuner *t, const tuned *table, err *e) {
    model_options o = {.context = find_context(t), .tuned = table};
    return model_new(t->lib, t->file, &o, e);
}

static bool compare(const tuner *t, const tuned *base, model *without, const tuned *table,
                    model *with, tune_comparison *out, err *e) {
    for (size_t i = 0; i < t->test_count && !out->is_slower; i++)
        if (is_changed(t, &t->tests[i], base, table) &&
            !run_test(t, &t->tests[i].test, without, with, out, e))
            return false;
    return true;
}

bool tuner_try(tuner *t, const tuned_row *r, tune_comparison *out, bool *is_kept, err *e) {
    *out = (tune_comparison){.count = 0};
    *is_kept = false;
    if (!t->model && !(t->model = open_with(t, t->table, e)))
        return false;
    tuned *table = tuned_copy(t->table);
    tuned_put(table, r);
    model *m = open_with(t, table, e);
    bool ok = m && compare(t, t->table, t->model, table, m, out, e);
    *is_kept = ok && out->is_faster && !out->is_slower;
    if (*is_kept) {
        tuned_row kept = *r;
        kept.gain = out->items[out->best].gain;
        kept.low = out->items[out->best].low;
        kept.high = out->items[out->best].high;
        bench_test_get_name(out->items[out->best].test, kept.test, sizeof kept.test);
        tuned_put(table, &kept);
    }
    model_free(*is_kept ? t->model : m);
    tuned_free(*is_kept ? t->table : table);
    t->model = *is_kept ? m : t->model;
    t->table = *is_kept ? table : t->table;
    return ok;
}

bool tuner_compare_rules(tuner *t, tune_comparison *out, err *e) {
    *out = (tune_comparison){.count = 0};
    if (!t->model && !(t->model = open_with(t, t->table, e)))
        return false;
    tuned *none = tuned_new();
    model *rules = open_with(t, none, e);
    bool ok = rules && compare(t, none, rules, t->table, t->model, out, e);
    model_free(rules);
    tuned_free(none);
    return ok;
}

void tuner_drop_rows(tuner *t) {
    tuned *kept = tuned_new();
    for (size_t r = 0; r < t->table->count; r++) {
        bool is_used = false;
        for (size_t i = 0; i < t->test_count; i++)
            for (size_t k = 0; k < t->tests[i].choices.count; k++)
                is_used =
                    is_used || choice_find_distance(&t->table->items[r].choice,
                                                    &t->tests[i].choices.items[k]) <= CHOICE_NEAR;
        if (!is_used)
            tuned_put(kept, &t->table->items[r]);
    }
    model_free(t->model); /* it has the other table */
    t->model = NULL;
    tuned_free(t->table);
    t->table = kept;
}
