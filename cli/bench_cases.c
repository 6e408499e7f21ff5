/* bench_cases: see bench_cases.h. */
#include "bench_cases.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MAX_WORDS = 64, WORD = 96 };

/* A list with commas, cut into words. */
typedef struct {
    char words[MAX_WORDS][WORD];
    bool used[MAX_WORDS];
    size_t count;
} word_list;

static bool split(const char *text, const char *what, word_list *out, err *e) {
    out->count = 0;
    for (const char *p = text; p && *p;) {
        size_t length = strcspn(p, ",");
        if (length == 0 || length >= WORD || out->count == MAX_WORDS)
            return err_set(e, EXIT_USAGE, "--%s takes words with commas between them, not '%.60s'",
                           what, text);
        snprintf(out->words[out->count], WORD, "%.*s", (int)length, p);
        out->used[out->count++] = false;
        p += length + (p[length] == ',');
    }
    return true;
}

/* Sizes ------------------------------------------------------------------------------------- */

/* How many sizes a shape of the kernel has: the least and the most of those in the registry. */
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

/* A shape of the command line as one of this kernel; false if it is none. One size may be missing:
 * that of the batch. */
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
    word_list shapes, batches, variants, regimes, caches;
    distribution input;
    bool *filter_used;
    bench_list *out;
} search;

void bench_cases_free(bench_list *l) {
    free(l->items);
    *l = (bench_list){NULL, 0};
}

static void set_name(bench_case *c) {
    char sizes[64];
    shape_get_text(&c->test.shape, sizes, sizeof sizes);
    snprintf(c->test.name, sizeof c->test.name, "%s/%s/%s", c->test.kernel->name, sizes,
             distribution_get_name(c->test.inputs));
    snprintf(c->name, sizeof c->name, "%s/%s/%s", c->test.name, timing_get_regime_name(c->regime),
             timing_get_cache_name(c->cache));
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

/* True for a word that stands in the list, or for any if the list is empty or "all". */
static bool is_wanted(word_list *l, const char *name, bool by_default) {
    bool wanted = l->count == 0 && by_default;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->words[i], name) == 0 || strcmp(l->words[i], "all") == 0)
            wanted = l->used[i] = true;
    return wanted;
}

static void add_states(search *s, const test_case *t) {
    bool is_matched = s->query->filter_count == 0;
    for (size_t i = 0; i < s->query->filter_count; i++)
        if (cases_match(s->query->filters[i], t))
            is_matched = s->filter_used[i] = true;
    for (int r = 0; is_matched && r < TIMING_REGIMES; r++)
        for (int c = 0; c < TIMING_CACHES; c++) {
            bench_case b = {.test = *t, .regime = (timing_regime)r, .cache = (timing_cache)c};
            set_name(&b);
            if (is_wanted(&s->regimes, timing_get_regime_name(b.regime), r == TIMING_CHAINED) &&
                is_wanted(&s->caches, timing_get_cache_name(b.cache), c == TIMING_WARM))
                bench_cases_add(s->out, &b);
        }
}

/* The shape with each batch that is wanted, where the kernel takes it. */
static bool add_batches(search *s, const op *o, const kernel *k, const shape *sizes) {
    int at = op_find_batch_dim(o);
    bool has_any = false;
    size_t count = at >= 0 && s->batches.count > 0 ? s->batches.count : 1;
    for (size_t i = 0; i < count; i++) {
        bench_case b = {.test = {.op = o, .kernel = k, .shape = *sizes, .inputs = s->input}};
        if (at >= 0 && s->batches.count > 0)
            b.test.shape.dim[at] = (uint32_t)strtoul(s->batches.words[i], NULL, 10);
        if (o->accepts && !o->accepts(k, &b.test.shape, NULL))
            continue;
        has_any = true;
        set_name(&b);
        add_states(s, &b.test);
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
    if (s->shapes.count == 0) {
        for (size_t i = shapes->count; i-- > 0;)
            if (add_batches(s, o, k, &shapes->items[i]))
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

static bool is_variant_wanted(word_list *l, const char *name) {
    bool wanted = l->count == 0;
    size_t length = strlen(name);
    for (size_t i = 0; i < l->count; i++) {
        size_t n = strlen(l->words[i]);
        if (strcmp(name, l->words[i]) == 0 || (n + 1 < length && name[length - n - 1] == '_' &&
                                               strcmp(name + length - n, l->words[i]) == 0))
            wanted = l->used[i] = true;
    }
    return wanted;
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
            (!shape_parse(s->shapes.words[i], &sizes) || shape_count_values(&sizes) > 4e9))
            return err_set(e, EXIT_USAGE,
                           "'%s' is not a shape: expected for example 576x576, at most 4e9 values",
                           s->shapes.words[i]);
    for (size_t i = 0; i < s->batches.count; i++) {
        char *end;
        unsigned long n = strtoul(s->batches.words[i], &end, 10);
        if (!isdigit((unsigned char)s->batches.words[i][0]) || *end || n < 1 || n > 65536)
            return err_set(e, EXIT_USAGE, "--batch takes numbers from 1 to 65536, not '%s'",
                           s->batches.words[i]);
    }
    return true;
}

/* What was asked for and is in no case. */
static bool check_use(const search *s, err *e) {
    const bench_query *q = s->query;
    for (size_t i = 0; i < q->filter_count; i++) {
        case_query one = {.filters = &q->filters[i], .filter_count = 1};
        case_list ignored;
        if (s->filter_used[i])
            continue;
        if (!cases_find(&one, &ignored, e)) /* says what there is */
            return false;
        cases_free(&ignored);
        return err_set(e, EXIT_USAGE,
                       "'%.60s' matches no case of the shapes and variants asked for",
                       q->filters[i]);
    }
    for (size_t i = 0; i < s->variants.count; i++)
        if (!s->variants.used[i])
            return err_set(e, EXIT_USAGE,
                           "no kernel is called '%s' or ends in '_%s'; assay list shows them",
                           s->variants.words[i], s->variants.words[i]);
    for (size_t i = 0; i < s->shapes.count; i++)
        if (strcmp(s->shapes.words[i], "all") && !s->shapes.used[i])
            return err_set(e, EXIT_USAGE, "no kernel that was asked for takes the shape '%s'",
                           s->shapes.words[i]);
    return s->out->count > 0 || err_set(e, EXIT_USAGE, "no case is left to time");
}

bool bench_cases_find(const bench_query *q, bench_list *out, err *e) {
    *out = (bench_list){NULL, 0};
    search *s = calloc(1, sizeof *s);
    assert(s);
    *s = (search){.query = q, .out = out, .input = INPUT_NORMAL};
    s->filter_used = calloc(q->filter_count + 1, sizeof *s->filter_used);
    assert(s->filter_used);
    bool ok = split(q->shapes, "shape", &s->shapes, e) &&
              split(q->batches, "batch", &s->batches, e) &&
              split(q->variants, "variant", &s->variants, e) &&
              split(q->regimes, "regime", &s->regimes, e) &&
              split(q->caches, "cache", &s->caches, e) && check_words(s, e);
    if (ok && q->input && !distribution_find(q->input, &s->input))
        ok = err_set(e, EXIT_USAGE,
                     "no input is called '%.40s'; there are uniform, normal, zeros, "
                     "denormals, large",
                     q->input);
    for (size_t i = 0; ok && i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            if (is_variant_wanted(&s->variants, registry[i]->kernels[k].name))
                add_shapes(s, registry[i], &registry[i]->kernels[k]);
    ok = ok && check_use(s, e);
    free(s->filter_used);
    free(s);
    if (!ok)
        bench_cases_free(out);
    return ok;
}

bool bench_cases_parse(const char *name, bench_case *out, err *e) {
    char parts[5][WORD];
    size_t used = 0;
    for (const char *p = name; used < 5 && p; used++) {
        const char *slash = strchr(p, '/');
        int length = slash ? (int)(slash - p) : (int)strlen(p);
        snprintf(parts[used], WORD, "%.*s", length, p);
        p = slash ? slash + 1 : NULL;
    }
    *out = (bench_case){.regime = TIMING_SINGLE};
    if (used == 5 && (out->test.kernel = registry_find_kernel(parts[0], &out->test.op)) &&
        shape_parse(parts[1], &out->test.shape) && distribution_find(parts[2], &out->test.inputs) &&
        timing_find_regime(parts[3], &out->regime) && timing_find_cache(parts[4], &out->cache)) {
        set_name(out);
        return true;
    }
    return err_set(e, EXIT_USAGE, "there is no case '%.160s' to time", name);
}
