#include "bench_cases.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

/* Sizes ------------------------------------------------------------------------------------- */

/* How many sizes a shape of the kernel has: the fewest and the most in the registry. */
static void count_sizes(const op *o, const kernel *k, size_t *least, size_t *most) {
    const shape_list *shapes = op_get_shapes(o, k);
    *least = SHAPE_DIMS;
    *most = 1;
    for (size_t i = 0; i < shapes->count; i++) {
        size_t used = shape_count_dims(&shapes->items[i]);
        *least = used < *least ? used : *least;
        *most = used > *most ? used : *most;
    }
}

/* A shape of the command line as a shape of this kernel; false if it does not fit. The size of the
 * batch may be missing. */
static bool fit_shape(const op *o, const kernel *k, const shape *given, size_t count, shape *out) {
    size_t least, most;
    int batch = op_find_batch_dim(o);
    count_sizes(o, k, &least, &most);
    *out = *given;
    if (count >= least && count <= most)
        return true;
    if (batch < 0 || count + 1 != most)
        return false;
    for (size_t i = most - 1; i > (size_t)batch; i--)
        out->dim[i] = given->dim[i - 1];
    out->dim[batch] = 1;
    return true;
}

/* The list ---------------------------------------------------------------------------------- */

typedef struct {
    const bench_query *query;
    word_list shapes, regimes, caches;
    axes axes;
    distribution input;
    bool *filter_used;
    bench_list *out;
} search;

void bench_cases_free(bench_list *l) {
    free(l->items);
    *l = (bench_list){.items = NULL};
}

static void set_name(bench_case *c) {
    snprintf(c->name, sizeof c->name, "%s/%s/%s", c->timed.name, timing_get_regime_name(c->regime),
             timing_get_cache_name(c->cache));
}

bench_case bench_cases_new(const kernel_case *t, timing_regime r, timing_cache cache) {
    bench_case c = {.timed = *t, .regime = r, .cache = cache};
    set_name(&c);
    return c;
}

void bench_cases_add(bench_list *l, const bench_case *c) {
    for (size_t i = l->count; i-- > 0;)
        if (strcmp(l->items[i].name, c->name) == 0)
            return;
    if ((l->count & (l->count - 1)) == 0) { /* room for the next power of 2 */
        l->items = realloc(l->items, (l->count ? l->count * 2 : 1) * sizeof *l->items);
        assert(l->items);
    }
    l->items[l->count++] = *c;
}

/* True for a word in the list, or for any word if the list is empty or "all". */
static bool is_wanted(word_list *l, const char *name, bool by_default) {
    bool wanted = l->count == 0 && by_default;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->words[i], name) == 0 || strcmp(l->words[i], "all") == 0)
            wanted = l->used[i] = true;
    return wanted;
}

static void add_states(search *s, const kernel_case *t) {
    for (int r = 0; r < TIMING_REGIMES; r++)
        for (int c = 0; c < TIMING_CACHES; c++) {
            bench_case b = bench_cases_new(t, (timing_regime)r, (timing_cache)c);
            if (is_wanted(&s->regimes, timing_get_regime_name(b.regime), r == TIMING_CHAINED) &&
                is_wanted(&s->caches, timing_get_cache_name(b.cache), c == TIMING_WARM))
                bench_cases_add(s->out, &b);
        }
}

/* Was it asked for? */
static bool is_matched(search *s, const kernel_case *t) {
    bool matched = s->query->filter_count == 0;
    for (size_t i = 0; i < s->query->filter_count; i++)
        if (cases_match(s->query->filters[i], t))
            matched = s->filter_used[i] = true;
    return matched;
}

/* Counts it if the kernel does not take the shape, or adds it in every state. */
static bool add_case(search *s, const op *o, const kernel *k, const shape *sizes) {
    kernel_case c = case_new(o, k, sizes, s->input);
    err why;
    if (!is_matched(s, &c))
        return true;
    if (op_takes(o, k, sizes, &why)) {
        add_states(s, &c);
        return true;
    }
    bool is_asked = s->shapes.count > 0 || s->axes.batch_count > 0;
    if (is_asked && s->out->skipped++ == 0)
        snprintf(s->out->first_skip, sizeof s->out->first_skip, "%s %.100s", c.name, why.text);
    return false;
}

/* The shape with each batch that is wanted; false if the kernel takes none of them. */
static bool add_batches(search *s, const op *o, const kernel *k, const shape *sizes) {
    if (op_find_batch_dim(o) < 0 || s->axes.batch_count == 0)
        return add_case(s, o, k, sizes);
    bool has_any = false;
    for (size_t i = 0; i < s->axes.batch_count; i++) {
        shape sized = axes_set_batch(o, sizes, s->axes.batches[i]);
        has_any = add_case(s, o, k, &sized) || has_any;
    }
    return has_any;
}

static void add_shapes(search *s, const op *o, const kernel *k) {
    bool is_all = s->shapes.count == 1 && strcmp(s->shapes.words[0], "all") == 0;
    const shape_list *shapes = op_get_shapes(o, k);
    if (is_all) {
        for (size_t i = 0; i < shapes->count; i++)
            add_batches(s, o, k, &shapes->items[i]);
        return;
    }
    if (s->shapes.count == 0) { /* the last that it takes */
        for (size_t i = shapes->count; i-- > 0;)
            if (add_batches(s, o, k, &shapes->items[i]) || s->axes.batch_count > 0)
                return;
        return;
    }
    for (size_t i = 0; i < s->shapes.count; i++) {
        shape given, fitted;
        shape_parse(s->shapes.words[i], &given);
        if (fit_shape(o, k, &given, shape_count_dims(&given), &fitted) &&
            add_batches(s, o, k, &fitted))
            s->shapes.used[i] = true;
    }
}

/* Mistakes ---------------------------------------------------------------------------------- */

static bool check_words(const search *s, err *e) {
    timing_regime r;
    timing_cache c;
    shape sizes;
    for (size_t i = 0; i < s->regimes.count; i++)
        if (strcmp(s->regimes.words[i], "all") && !timing_find_regime(s->regimes.words[i], &r))
            return err_set(e, EXIT_USAGE,
                           "no regime is called '%s'; there are single, chained, independent, all",
                           s->regimes.words[i]);
    for (size_t i = 0; i < s->caches.count; i++)
        if (strcmp(s->caches.words[i], "all") && !timing_find_cache(s->caches.words[i], &c))
            return err_set(e, EXIT_USAGE,
                           "no cache state is called '%s'; there are warm, cold, all",
                           s->caches.words[i]);
    for (size_t i = 0; i < s->shapes.count; i++)
        if (strcmp(s->shapes.words[i], "all") &&
            (!shape_parse(s->shapes.words[i], &sizes) || shape_count_values(&sizes) > 1e12))
            return err_set(e, EXIT_USAGE,
                           "'%s' is not a shape: expected for example 576x576, at most 1e12 values",
                           s->shapes.words[i]);
    return true;
}

/* Anything that was asked for and matches no case. */
static bool check_use(const search *s, err *e) {
    const bench_query *q = s->query;
    for (size_t i = 0; i < q->filter_count; i++) {
        case_query one = {.filters = &q->filters[i], .filter_count = 1};
        case_list ignored;
        if (s->filter_used[i])
            continue;
        if (!cases_find(&one, &ignored, e)) /* lists the valid ones */
            return false;
        cases_free(&ignored);
        return err_set(e, EXIT_USAGE,
                       "'%.60s' matches no case of the shapes and variants asked for",
                       q->filters[i]);
    }
    for (size_t i = 0; i < s->shapes.count; i++)
        if (strcmp(s->shapes.words[i], "all") && !s->shapes.used[i])
            return err_set(e, EXIT_USAGE, "no kernel that was asked for takes the shape '%s'",
                           s->shapes.words[i]);
    if (s->out->count > 0)
        return true;
    return q->filter_count > 0 ? axes_refuse_filter("op, kernel or case", q->filters[0], true, e)
                               : err_set(e, EXIT_USAGE, "no case is left to time");
}

bool bench_cases_find(const bench_query *q, bench_list *out, err *e) {
    *out = (bench_list){.items = NULL};
    search *s = calloc(1, sizeof *s);
    assert(s);
    *s = (search){.query = q, .out = out, .input = INPUT_NORMAL};
    s->filter_used = calloc(q->filter_count + 1, sizeof *s->filter_used);
    assert(s->filter_used);
    bool ok = words_split(q->shapes, "shape", &s->shapes, e) &&
              words_split(q->regimes, "regime", &s->regimes, e) &&
              words_split(q->caches, "cache", &s->caches, e) && check_words(s, e) &&
              axes_parse(&q->axes, &s->axes, e);
    if (ok && q->input && !distribution_find(q->input, &s->input))
        ok = err_set(e, EXIT_USAGE,
                     "no input is called '%.40s'; there are uniform, normal, zeros, "
                     "denormals, large, negative, uneven, level",
                     q->input);
    for (size_t i = 0; ok && i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            if (axes_take_kernel(&s->axes, &registry[i]->kernels[k]))
                add_shapes(s, registry[i], &registry[i]->kernels[k]);
    ok = ok && check_use(s, e);
    free(s->filter_used);
    free(s);
    if (!ok)
        bench_cases_free(out);
    return ok;
}

/* Takes the last part of a name off it; "" if there is only one. */
static const char *take_last(char *name) {
    char *slash = strrchr(name, '/');
    if (!slash)
        return "";
    *slash = 0;
    return slash + 1;
}

bool bench_cases_parse(const char *name, bench_case *out, err *e) {
    char text[sizeof out->name];
    *out = (bench_case){.regime = TIMING_SINGLE};
    bool is_whole = snprintf(text, sizeof text, "%s", name) < (int)sizeof text;
    const char *cache = take_last(text), *regime = take_last(text);
    if (is_whole && timing_find_cache(cache, &out->cache) &&
        timing_find_regime(regime, &out->regime) && cases_parse(text, &out->timed)) {
        set_name(out);
        return true;
    }
    return err_set(e, EXIT_USAGE, "there is no case '%.160s' to time", name);
}

/* Kernels of others ------------------------------------------------------------------------- */

bool bench_against_open(const option_list *against, const option_list *launches, bench_settings *s,
                        err *e) {
    static rival rivals[BENCH_OTHERS];
    if (launches->count > 0 && against->count == 0)
        return err_set(e, EXIT_USAGE,
                       "--launch describes the kernel of --against, which is missing");
    if (against->count > BENCH_OTHERS)
        return err_set(e, EXIT_USAGE, "--against is given %zu times, and %d is the limit",
                       against->count, BENCH_OTHERS);
    for (size_t i = 0; i < against->count; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(against->items[k], against->items[i]) == 0)
                return err_set(e, EXIT_USAGE, "--against %.100s is given twice", against->items[i]);
        if (!rival_open(&rivals[i], against->items[i], launches->items, launches->count, e))
            return false;
    }
    s->rivals = rivals;
    s->rival_count = against->count;
    return true;
}

static bool takes(const rival *r, const kernel_case *c) {
    char format[32];
    if (!r->op)
        return true;
    axes_get_format(c->kernel, format, sizeof format);
    return strcmp(r->op, c->op->name) == 0 && r->adds == c->kernel->accumulates &&
           (!r->format || strcmp(r->format, format) == 0);
}

bool bench_against_choose(const bench_settings *s, bench_list *cases, err *e) {
    size_t kept = 0;
    if (s->rival_count == 0)
        return true;
    for (size_t i = 0; i < cases->count; i++) {
        bench_case *c = &cases->items[i];
        for (size_t r = 0; r < s->rival_count; r++)
            c->rivals |= takes(&s->rivals[r], &c->timed) ? 1u << r : 0;
        if (c->rivals)
            cases->items[kept++] = *c;
    }
    cases->count = kept;
    const rival *first = &s->rivals[0];
    return kept > 0 ||
           err_set(e, EXIT_USAGE,
                   "none of the cases asked for is what %.80s computes: op %.40s%s%.20s, %s output",
                   first->kernel, first->op ? first->op : "any", first->format ? ", format " : "",
                   first->format ? first->format : "",
                   first->adds ? "added to its" : "replacing its");
}
