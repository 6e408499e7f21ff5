/* comparison: see comparison.h. */
#include "comparison.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "freshness.h"
#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/stats.h"
#include "publish.h"

const char *verdict_get_name(verdict_kind v) {
    static const char *const names[VERDICT_COUNT] = {"same",      "faster",  "slower",
                                                     "ambiguous", "missing", "new"};
    return names[v];
}

static bool has_enough(const verdict_case *c) {
    return c->base.count >= VERDICT_MIN_SAMPLES && c->now.count >= VERDICT_MIN_SAMPLES;
}

/* A ratio needs times above 0: a clock that is too coarse gives others. */
static bool has_zero(const series *s) {
    for (size_t i = 0; i < s->count; i++)
        if (!(s->samples[i] > 0))
            return true;
    return false;
}

static bool has_runs(const verdict_case *c) {
    return c->base.runs > 1 || c->now.runs > 1;
}

/* Samples are looked at again as they are added: each look has its share of the level. */
static double find_level(const verdict_case *c) {
    return VERDICT_LEVEL / (double)(c->looks > 1 ? c->looks : 1);
}

static void measure_runs(verdict_case *c) {
    series base = c->base, now = c->now;
    if (base.runs < 2)
        base = (series){base.samples, base.count, &c->base.count, 1};
    if (now.runs < 2)
        now = (series){now.samples, now.count, &c->now.count, 1};
    c->interval = significance_compare_runs(&base, &now, find_level(c), &c->ranks.p);
}

static void measure(verdict_case *c, uint64_t seed) {
    const series *base = &c->base, *now = &c->now;
    const bool is_coarse = has_zero(base) || has_zero(now);
    if (!c->obstacle && is_coarse)
        c->obstacle = "a sample is 0: the clock is too coarse for it";
    c->base_median = stats_compute(base->samples, base->count).median;
    c->now_median = stats_compute(now->samples, now->count).median;
    c->ranks = (rank_test){.u = NAN, .p = NAN};
    c->interval = (ratio_interval){NAN, NAN, NAN};
    if (is_coarse)
        return;
    if (has_runs(c) && has_enough(c)) {
        measure_runs(c);
        return;
    }
    c->interval = significance_find_ratio(base->samples, base->count, now->samples, now->count,
                                          c->paired, VERDICT_BOOTSTRAPS, find_level(c), seed);
    if (has_enough(c) && !c->obstacle)
        c->ranks = c->paired ? significance_test_pairs(now->samples, base->samples, base->count)
                             : significance_test_series(now->samples, now->count, base->samples,
                                                        base->count);
}

static verdict_kind choose(const verdict_case *c, double min_effect, const char **reason) {
    const ratio_interval *i = &c->interval;
    const double most = 1 + min_effect, least = 1 / most;
    const bool is_large = i->ratio > most || i->ratio < least;
    const bool is_clear = i->low > 1 || i->high < 1;
    *reason = c->obstacle;
    if (c->now.count == 0)
        return VERDICT_MISSING;
    if (c->base.count == 0 && !c->obstacle)
        return VERDICT_NEW;
    if (c->obstacle)
        return VERDICT_AMBIGUOUS;
    if (!has_enough(c)) {
        *reason = "there are fewer than 5 samples on one side";
        return VERDICT_AMBIGUOUS;
    }
    if (i->low >= least && i->high <= most) {
        *reason =
            c->busy
                ? "within the smallest effect, but the machine was busy, which hides differences"
                : "the whole interval is within the smallest effect";
        return c->busy ? VERDICT_AMBIGUOUS : VERDICT_SAME;
    }
    if (is_large && is_clear && c->p < find_level(c)) {
        *reason = "beyond the smallest effect, the interval is clear of 1, and the test agrees";
        return i->ratio > 1 ? VERDICT_SLOWER : VERDICT_FASTER;
    }
    *reason =
        !is_large
            ? "the interval reaches beyond the smallest effect: more samples or runs are needed"
        : is_clear ? "the test does not agree, corrected for the number of cases"
                   : "the interval contains 1: more samples or runs are needed";
    return VERDICT_AMBIGUOUS;
}

void verdict_decide(verdict_case *cases, size_t count, double min_effect, uint64_t seed) {
    assert(min_effect > 0);
    double *p = array_new(count + 1, sizeof *p);
    for (size_t i = 0; i < count; i++) {
        measure(&cases[i], seed);
        p[i] = cases[i].ranks.p;
    }
    significance_correct(p, count);
    for (size_t i = 0; i < count; i++) {
        cases[i].p = p[i];
        cases[i].verdict = choose(&cases[i], min_effect, &cases[i].reason);
    }
    free(p);
}

void verdict_explain(const verdict_case *c, double min_effect, char *text, size_t size) {
    if (c->verdict == VERDICT_MISSING || c->verdict == VERDICT_NEW) {
        snprintf(text, size,
                 c->verdict == VERDICT_NEW ? "new: not timed in the base"
                                           : "missing: timed in the base but not here");
        return;
    }
    if (isnan(c->interval.ratio)) {
        snprintf(text, size, "%s: %s", verdict_get_name(c->verdict), c->reason);
        return;
    }
    char test[120] = "no test", base[32], now[32];
    if (has_runs(c) && !isnan(c->ranks.p))
        snprintf(test, sizeof test, "Student's t over %zu and %zu runs: p %.2g, %.2g after Holm",
                 c->base.runs > 1 ? c->base.runs : 1, c->now.runs > 1 ? c->now.runs : 1, c->ranks.p,
                 c->p);
    else if (!isnan(c->ranks.p))
        snprintf(test, sizeof test, "%s p %.2g (%s), %.2g after Holm",
                 c->paired ? "interleaved: sign test" : "Mann-Whitney", c->ranks.p,
                 c->ranks.exact ? "exact" : "normal", c->p);
    snprintf(text, size,
             "%s: median %s (n %zu) to %s (n %zu), ratio %.4f, %g%% interval %.4f to "
             "%.4f; %s; smallest effect %g%%: %s",
             verdict_get_name(c->verdict), format_time(c->base_median, base, sizeof base),
             c->base.count, format_time(c->now_median, now, sizeof now), c->now.count,
             c->interval.ratio, 100 - 100 * find_level(c), c->interval.low, c->interval.high, test,
             min_effect * 100, c->reason);
}

/* Many cases ------------------------------------------------------------------------------------ */

comparison_row *comparison_add(comparison_list *l, const char *key) {
    comparison_row *r = ARRAY_ADD(l->rows, l->count, l->room);
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
    *l = (comparison_list){.count = 0};
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
    c.base = (series){base->samples, base->count, base->runs, base->run_count};
    c.now = (series){now->samples, now->count, now->runs, now->run_count};
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

/* Result files --------------------------------------------------------------------------------- */

/* Files of one side, each with the name that pairs it with the other side: its name without
 * folders, or empty if no folder was given: then all files are runs of one thing, whatever they are
 * called. Files of the same name are runs of the same. */
typedef struct {
    char name[256];
    results_list list;
} source;

typedef struct {
    source *items;
    size_t count, room;
} source_list;

static void sources_free(source_list *l) {
    for (size_t i = 0; i < l->count; i++)
        results_list_free(&l->items[i].list);
    free(l->items);
    *l = (source_list){.count = 0};
}

static bool add_source(source_list *l, const char *name, const char *path, err *e) {
    source *s = ARRAY_ADD(l->items, l->count, l->room);
    *s = (source){.name = ""};
    snprintf(s->name, sizeof s->name, "%s", name);
    return results_read(path, &s->list, e); /* empty, if it cannot be read */
}

/* NAME.csv that has NAME.samples.csv beside it. */
static bool take_file(void *context, const char *path, err *e) {
    char samples[PATH_MAX];
    return path_ends_with(path, ".samples.csv") ||
           !results_find_samples_path(path, samples, sizeof samples, NULL) ||
           access(samples, F_OK) != 0 || add_source(context, path_get_name(path), path, e);
}

static bool read_folder(const char *folder, source_list *out, err *e) {
    publish_finish_all(folder);
    return folder_walk(folder, ".csv", folder_skip_all, take_file, out, e) &&
           (out->count > 0 ||
            err_set(e, EXIT_USAGE, "the folder %.160s has no NAME.csv with NAME.samples.csv in it",
                    folder));
}

static bool read_side(const char *const *paths, size_t count, bool has_folders, source_list *out,
                      err *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = os_is_folder(paths[i])
                 ? read_folder(paths[i], out, e)
                 : add_source(out, has_folders ? path_get_name(paths[i]) : "", paths[i], e);
    }
    return ok;
}

/* The first run of a case on one side; with its file. */
static const result_case *find_case(const source_list *l, const char *name, const char *key,
                                    const source **from) {
    for (size_t i = 0; i < l->count; i++) {
        const result_case *c =
            strcmp(l->items[i].name, name) == 0 ? results_list_find(&l->items[i].list, key) : NULL;
        if (c && c->count) {
            *from = &l->items[i];
            return c;
        }
    }
    return NULL;
}

/* A number of other code than this, or of code that no commit has. */
static void note_origin(comparison_row *c, freshness *fresh, const char *side,
                        const result_row *r) {
    char changes[80];
    bool is_stale = freshness_judge(fresh, r->made_of, changes, sizeof changes) == ORIGIN_STALE;
    if (is_stale)
        comparison_add_note(c, side, " is stale");
    if (path_ends_with(r->commit, "-dirty"))
        comparison_add_note(c, side, " has uncommitted changes");
}

void comparison_note_pair(comparison_row *c, const results_meta *base, const result_row *b,
                          const results_meta *now, const result_row *n) {
    char changes[80];
    static const char *const keys[] = {"driver", "os", "compiler", "cpu"};
    if (strcmp(results_meta_find(base, "device"), results_meta_find(now, "device")) != 0) {
        c->test.obstacle = "they are from different devices";
        snprintf(c->note, sizeof c->note, "other device: %.50s", results_meta_find(base, "device"));
        return;
    }
    made_of_compare(b->made_of, n->made_of, changes, sizeof changes);
    comparison_add_note(c, changes, "");
    if (strcmp(b->math, n->math) != 0)
        comparison_add_note(c, "other math", "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(results_meta_find(base, keys[i]), results_meta_find(now, keys[i])) == 0)
            continue;
        comparison_add_note(c, "other ", keys[i]);
        if (i >= 2)
            c->test.obstacle = "another compiler or CPU, not the kernel, may be the difference: "
                               "time both here";
    }
}

/* Runs of one side must be of one device and one source; else they are not runs of the same. */
static void add_runs(comparison_row *row, comparison_side *side, const source_list *l,
                     const char *name, const char *key, timing_clock clock) {
    const source *first = NULL;
    const result_case *as = find_case(l, name, key, &first);
    for (size_t i = 0; i < l->count; i++) {
        const source *s = &l->items[i];
        const result_case *c = strcmp(s->name, name) == 0 ? results_list_find(&s->list, key) : NULL;
        if (c)
            comparison_add_note(row, c->row.message, "");
        if (!c || !c->count)
            continue;
        comparison_add_run(row, side, c->samples, c->count, clock, c->row.labels);
        if (strcmp(c->row.made_of, as->row.made_of) != 0 ||
            strcmp(results_meta_find(&s->list.meta, "device"),
                   results_meta_find(&first->list.meta, "device")) != 0)
            row->test.obstacle = "the runs of one side are of different sources or devices";
    }
}

static void add_case(comparison_list *l, freshness *fresh, const source_list *base,
                     const source_list *now, const char *name, const char *key,
                     timing_clock clock) {
    const source *from = NULL, *to = NULL;
    const result_case *b = find_case(base, name, key, &from), *n = find_case(now, name, key, &to);
    char whole[600];
    snprintf(whole, sizeof whole, "%s%s%s", name, name[0] ? ":" : "", key);
    comparison_row *c = comparison_add(l, whole);
    add_runs(c, &c->base, base, name, key, clock);
    add_runs(c, &c->now, now, name, key, clock);
    if (!b || !n)
        return;
    comparison_note_pair(c, &from->list.meta, &b->row, &to->list.meta, &n->row);
    note_origin(c, fresh, "base", &b->row);
    note_origin(c, fresh, "new", &n->row);
}

/* Every case of the base, then those that only the other side has, each once. Cases without a time on
 * either side are left out. */
static void pair_up(const source_list *base, const source_list *now, timing_clock clock,
                    freshness *fresh, comparison_list *l) {
    const source_list *sides[2] = {base, now};
    const source *first = NULL;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < sides[side]->count; i++) {
            const source *s = &sides[side]->items[i];
            for (size_t c = 0; c < s->list.count; c++) {
                const char *key = s->list.cases[c].row.name;
                bool is_first = find_case(sides[side], s->name, key, &first) && first == s;
                if (is_first && (side == 0 || !find_case(base, s->name, key, &first)))
                    add_case(l, fresh, base, now, s->name, key, clock);
            }
        }
}

static bool has_folder(const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (os_is_folder(paths[i]))
            return true;
    return false;
}

bool comparison_read(const char *const *base, size_t base_count, const char *const *now,
                     size_t now_count, timing_clock clock, comparison_list *out, err *e) {
    source_list a = {.count = 0}, b = {.count = 0};
    bool has_folders = has_folder(base, base_count) || has_folder(now, now_count);
    *out = (comparison_list){.count = 0};
    freshness *fresh = freshness_new(e);
    bool ok = fresh && read_side(base, base_count, has_folders, &a, e) &&
              read_side(now, now_count, has_folders, &b, e);
    if (ok)
        pair_up(&a, &b, clock, fresh, out);
    freshness_free(fresh);
    sources_free(&a);
    sources_free(&b);
    return ok;
}
