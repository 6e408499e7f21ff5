/* cases: see cases.h. Owns enumeration and filters; runs nothing. */
#include "cases.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/check/shapes.h"
#include "kernels/formats/formats.h"
#include "kernels/ops.h"
#include "options.h"

/* Axes ------------------------------------------------------------------------------------------- */

static bool words_split(const char *text, const char *name, word_list *out, err *e) {
    out->count = 0;
    for (const char *p = text; p && *p;) {
        size_t length = strcspn(p, ",");
        if (length == 0 || length >= WORD_SIZE || out->count == WORDS_MAX)
            return err_set(e, EXIT_USAGE, "--%s takes a comma-separated list, not '%.60s'", name,
                           text);
        snprintf(out->words[out->count], WORD_SIZE, "%.*s", (int)length, p);
        out->used[out->count++] = false;
        p += length + (p[length] == ',');
    }
    return true;
}

/* A shape of an op that counts tokens, with this batch. Kernels of one token leave that dimension
 * out, and for a batch of 1 it stays out. */
static shape axes_set_batch(const op *o, const shape *s, uint32_t batch) {
    shape sized = *s;
    int at = op_find_batch_dim(o);
    if (s->dim[at] != 0 || batch != 1)
        sized.dim[at] = batch;
    return sized;
}

/* Formats are written as in the names of kernels, in upper or lower case. */
static void lower(char *text) {
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

void axes_get_format(const kernel *k, char *text, size_t size) {
    snprintf(text, size, "%s", k->format ? k->format->name : "");
    lower(text);
}

/* Is it one of all ops and kernels, or variants? */
static bool check_name(const char *what, const char *name, bool is_variant, err *e) {
    const char **names = NULL;
    size_t room = 0, count = 0;
    for (size_t i = 0; i < registry_count; i++) {
        *ARRAY_ADD(names, count, room) = registry[i]->name;
        for (const kernel *k = registry[i]->kernels;
             k < registry[i]->kernels + registry[i]->kernel_count; k++) {
            *ARRAY_ADD(names, count, room) = k->name;
            if (is_variant && k->variant)
                *ARRAY_ADD(names, count, room) = k->variant;
        }
    }
    bool ok = options_find_name(what, name, names, count, "assay list shows them all", e) < count;
    free(names);
    return ok;
}

bool cases_refuse_op(const char *name, err *e) {
    const char **names = array_new(registry_count + 1, sizeof *names);
    for (size_t i = 0; i < registry_count; i++)
        names[i] = registry[i]->name;
    options_find_name("op", name, names, registry_count, "assay list shows them all", e);
    free(names);
    return false;
}

bool axes_refuse_filter(const char *what, const char *filter, bool is_known, err *e) {
    return (is_known || check_name(what, filter, false, e)) &&
           err_set(e, EXIT_USAGE,
                   "'%.60s' has no kernel with the given format, variant, accumulation and batch; "
                   "assay list shows what it has",
                   filter);
}

static bool has_word(const word_list *l, const char *word) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->words[i], word) == 0)
            return true;
    return false;
}

static bool has_variant(const word_list *l, const kernel *k) {
    return has_word(l, k->name) || (k->variant && has_word(l, k->variant));
}

bool axes_take_kernel(const axes *a, const kernel *k) {
    char format[32];
    axes_get_format(k, format, sizeof format);
    return (a->formats.count == 0 || has_word(&a->formats, format)) &&
           (!a->has_accumulate || k->accumulates == a->accumulates) &&
           (a->variants.count == 0 || has_variant(&a->variants, k));
}

#define NAME(format, ...) #format,
static const char *const formats[] = {FORMATS(NAME)};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static bool parse_batches(const char *text, axes *a, err *e) {
    word_list words;
    if (!words_split(text, "batch", &words, e))
        return false;
    for (size_t i = 0; i < words.count; i++) {
        char *end;
        unsigned long n = strtoul(words.words[i], &end, 10);
        if (!isdigit((unsigned char)words.words[i][0]) || *end || n < 1 || n > 65536)
            return err_set(e, EXIT_USAGE, "--batch takes numbers from 1 to 65536, not '%s'",
                           words.words[i]);
        a->batches[a->batch_count++] = (uint32_t)n;
    }
    return true;
}

static bool parse_accumulate(const char *text, axes *a, err *e) {
    if (!text)
        return true;
    a->has_accumulate = true;
    a->accumulates = strcmp(text, "yes") == 0;
    return a->accumulates || strcmp(text, "no") == 0 ||
           err_set(e, EXIT_USAGE, "--accumulate is yes or no, not '%.40s'", text);
}

bool axes_parse(const axes_query *q, axes *out, err *e) {
    memset(out, 0, sizeof *out);
    if (!words_split(q->formats, "format", &out->formats, e) ||
        !words_split(q->variants, "variant", &out->variants, e))
        return false;
    for (size_t i = 0; i < out->formats.count; i++) {
        lower(out->formats.words[i]);
        if (options_find_name("weight format", out->formats.words[i], formats, FORMAT_COUNT,
                              "assay list shows them all", e) == FORMAT_COUNT)
            return false;
    }
    for (size_t i = 0; i < out->variants.count; i++)
        if (!check_name("kernel or variant", out->variants.words[i], true, e))
            return false;
    return parse_accumulate(q->accumulate, out, e) && parse_batches(q->batches, out, e);
}

/* Cases that are checked ------------------------------------------------------------------------- */

/* What was asked for, and what of it has been found. */
typedef struct {
    const char *const *filters;
    size_t filter_count;
    bool *has_matched; /* each filter */
    word_list shapes, regimes, caches;
    axes axes;
    bool has_input, with_skips;
    distribution input;
    case_list cases;
    size_t room;
    bench_list *timed;
} search;

static search *start_search(const char *const *filters, size_t count) {
    search *s = array_new(1, sizeof *s);
    *s = (search){.filters = filters, .filter_count = count};
    s->has_matched = array_new(count + 1, sizeof *s->has_matched);
    return s;
}

static void end_search(search *s) {
    free(s->has_matched);
    free(s);
}

/* Does this filter match this case? */
static bool matches(const char *filter, const kernel_case *c) {
    if (registry_find_op(filter) || registry_find_kernel(filter, NULL))
        return strcmp(c->op->name, filter) == 0 || strcmp(c->kernel->name, filter) == 0;
    if (strpbrk(filter, "*?["))
        return fnmatch(filter, c->name, 0) == 0;
    return *filter && strstr(c->name, filter) != NULL; /* '' is a variable that is not set */
}

static bool is_matched(search *s, const kernel_case *c) {
    bool matched = s->filter_count == 0;
    for (size_t f = 0; f < s->filter_count; f++)
        if (matches(s->filters[f], c))
            matched = s->has_matched[f] = true;
    return matched;
}

/* The whole shape, or without its batch. */
static bool has_shape(const kernel_case *c, const char *wanted) {
    char text[64];
    shape s = c->shape;
    int at = op_find_batch_dim(c->op);
    shape_get_text(&s, text, sizeof text);
    if (strcmp(text, wanted) == 0)
        return true;
    if (at < 0)
        return false;
    for (int i = at; i < SHAPE_DIMS; i++)
        s.dim[i] = i + 1 < SHAPE_DIMS ? s.dim[i + 1] : 0;
    shape_get_text(&s, text, sizeof text);
    return strcmp(text, wanted) == 0;
}

static bool has_wanted_shape(search *s, const kernel_case *c) {
    bool wanted = s->shapes.count == 0;
    for (size_t w = 0; w < s->shapes.count; w++)
        if (has_shape(c, s->shapes.words[w]))
            wanted = s->shapes.used[w] = true;
    return wanted && (!s->has_input || c->inputs == s->input);
}

/* Unless the list has it. */
static void add_new(case_list *l, size_t *room, const kernel_case *c) {
    for (size_t i = l->count; i-- > 0 && l->items[i].kernel == c->kernel;)
        if (strcmp(l->items[i].name, c->name) == 0)
            return;
    *ARRAY_ADD(l->items, l->count, *room) = *c;
}

/* A case that is checked. False: the kernel does not take the shape. */
static bool add_case(search *s, const kernel_case *c) {
    bool is_taken = op_takes(c->op, c->kernel, &c->shape, NULL);
    if ((s->with_skips || is_taken) && is_matched(s, c) && has_wanted_shape(s, c))
        add_new(&s->cases, &s->room, c);
    return is_taken;
}

static bool time_case(search *s, const kernel_case *c);

/* The shape with each batch that is wanted, if the op has one. Kernels of one token are included: what they do not
 * take is skipped with a reason. False if the kernel takes none of them. */
static bool add_batches(search *s, const op *o, const kernel *k, const shape *sizes,
                        distribution inputs) {
    const bool is_batched = op_find_batch_dim(o) >= 0 && s->axes.batch_count > 0;
    bool has_any = false;
    for (size_t i = 0; i < (is_batched ? s->axes.batch_count : 1); i++) {
        const shape sized = is_batched ? axes_set_batch(o, sizes, s->axes.batches[i]) : *sizes;
        const kernel_case c = case_new(o, k, &sized, inputs);
        has_any |= s->timed ? time_case(s, &c) : add_case(s, &c);
    }
    return has_any;
}

static bool is_given(const shape *s) {
    static const shape none;
    return memcmp(s, &none, sizeof none) != 0;
}

static void add_kernel(search *s, const op *o, const kernel *k) {
    const shape_list *shapes = op_get_shapes(o, k);
    shape edges[EDGE_SHAPES];
    for (size_t i = 0; i < shapes->count; i++)
        add_batches(s, o, k, &shapes->items[i], INPUT_NORMAL);
    for (int d = 0; is_given(&shapes->any_input) && d < INPUT_COUNT; d++)
        if (d != INPUT_UNIFORM && d < INPUT_UNEVEN) /* show what held-out cases do */
            add_batches(s, o, k, &shapes->any_input, (distribution)d);
    size_t count = shapes_make_edges(o, k, edges);
    for (size_t i = 0; i < count; i++)
        add_batches(s, o, k, &edges[i], INPUT_NORMAL);
}

/* Calls `add` with each kernel of the axes. */
static void visit_kernels(search *s, void (*add)(search *s, const op *o, const kernel *k)) {
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            if (axes_take_kernel(&s->axes, &registry[i]->kernels[k]))
                add(s, registry[i], &registry[i]->kernels[k]);
}

void cases_free(case_list *l) {
    free(l->items);
    *l = (case_list){NULL, 0};
}

/* Adds a word to a list in a text unless it is there. */
static void list_word(char *text, size_t size, const char *word) {
    size_t used = strlen(text), length = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += length)
        if ((p == text || p[-1] == ' ') &&
            (p[length] == 0 || p[length] == '\n' || p[length] == ' '))
            return;
    snprintf(text + used, size - used, "%s%s", used ? " " : "  ", word);
}

static bool refuse_filter(const char *filter, err *e) {
    search *all = start_search(&filter, 1);
    all->with_skips = true;
    visit_kernels(all, add_kernel);
    bool is_known = all->has_matched[0];
    cases_free(&all->cases);
    end_search(all);
    return axes_refuse_filter("op, kernel or case", filter, is_known, e);
}

/* Lists those of the cases that all else was asked of. */
static bool refuse_shape(const case_query *q, const char *wanted, err *e) {
    char valid[480] = "", text[64];
    size_t i = 0;
    case_list matched;
    case_query others = *q;
    others.shapes = others.input = others.extra = NULL;
    others.quick = false;
    if (!cases_find(&others, &matched, e))
        return false;
    for (; i < matched.count && strlen(valid) + 80 < sizeof valid; i++) {
        shape_get_text(&matched.items[i].shape, text, sizeof text);
        list_word(valid, sizeof valid, text);
    }
    if (i < matched.count)
        list_word(valid, sizeof valid, "...");
    cases_free(&matched);
    err_set(e, EXIT_USAGE, "no case has the shape '%.60s'. The shapes are:", wanted);
    return err_set_detail(e, valid);
}

static bool find_input(const char *name, distribution *d, err *e) {
    if (distribution_find(name, d))
        return true;
    char valid[128] = "";
    for (int i = 0; i < INPUT_COUNT; i++)
        list_word(valid, sizeof valid, distribution_get_name((distribution)i));
    return err_set(e, EXIT_USAGE, "no input is called '%.40s'; there are%s", name, valid + 1);
}

/* Whatever was asked for has to match something. A filter may also be the name of a case that is not listed,
 * such as one with a random shape. */
static bool check_found(search *s, const case_query *q, err *e) {
    kernel_case named;
    for (size_t f = 0; f < s->filter_count; f++) {
        if (s->has_matched[f])
            continue;
        if (!cases_parse(s->filters[f], &named))
            return refuse_filter(s->filters[f], e);
        if (has_wanted_shape(s, &named))
            *ARRAY_ADD(s->cases.items, s->cases.count, s->room) = named;
    }
    for (size_t w = 0; w < s->shapes.count; w++)
        if (!s->shapes.used[w])
            return refuse_shape(q, s->shapes.words[w], e);
    if (s->cases.count > 0)
        return true;
    return q->input ? err_set(e, EXIT_USAGE,
                              "no case is left: the given shape is run only with input 'normal', "
                              "not with '%s'",
                              q->input)
                    : err_set(e, EXIT_USAGE,
                              "no kernel has the given format, variant, accumulation and batch");
}

bool cases_find_kernel(const char *name, const char *extra, uint64_t seed, case_list *out, err *e) {
    const case_query query = {.filters = &name, .filter_count = 1, .extra = extra, .seed = seed};
    if (!cases_find(&query, out, e))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].kernel->name, name) == 0)
            out->items[kept++] = out->items[i];
    out->count = kept;
    if (kept > 0)
        return true;
    cases_free(out);
    return axes_refuse_filter("kernel", name, false, e);
}

bool cases_keep_offered(case_list *l, const device_facts *d, err *e) {
    size_t kept = 0;
    err why = {.code = EXIT_OK};
    for (size_t i = 0; i < l->count; i++)
        if (device_offers(d, l->items[i].kernel->needs, &why))
            l->items[kept++] = l->items[i];
    bool ok = kept > 0 || err_set(e, why.code, "%s %s", l->items[0].kernel->name, why.text);
    l->count = kept;
    return ok;
}

/* Is it of the shape that is run with every distribution, whatever its batch? */
static bool is_any_input(const kernel_case *c) {
    shape s = c->shape;
    const shape *any = &op_get_shapes(c->op, c->kernel)->any_input;
    int at = op_find_batch_dim(c->op);
    if (at >= 0)
        s.dim[at] = any->dim[at];
    return memcmp(&s, any, sizeof s) == 0;
}

/* Keeps the first shapes of each kernel, and the one that is run with every distribution with those that
 * are most unlike each other. */
static void apply_quick(case_list *l) {
    enum { SHAPES = 4 };
    const kernel *last = NULL;
    size_t kept = 0, shapes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const kernel_case *c = &l->items[i];
        if (c->kernel != last)
            shapes = 0;
        last = c->kernel;
        bool is_kept = is_any_input(c) ? c->inputs == INPUT_NORMAL || c->inputs == INPUT_LARGE ||
                                             c->inputs == INPUT_ZEROS
                                       : shapes++ < SHAPES;
        if (is_kept)
            l->items[kept++] = *c;
    }
    l->count = kept;
}

/* Large shapes have more threadgroups, and edge shapes leave some of them partly full. */
void cases_keep_one(case_list *l) {
    size_t kept = 0;
    apply_quick(l);
    for (size_t i = 0; i < l->count; i++) {
        const kernel_case *c = &l->items[i], *best = kept > 0 ? &l->items[kept - 1] : NULL;
        bool is_better = c->inputs == INPUT_NORMAL && op_takes(c->op, c->kernel, &c->shape, NULL);
        if (!best || best->kernel != c->kernel)
            l->items[kept++] = *c;
        else if (is_better && (best->inputs != INPUT_NORMAL ||
                               !op_takes(best->op, best->kernel, &best->shape, NULL) ||
                               shape_count_values(&c->shape) > shape_count_values(&best->shape)))
            l->items[kept - 1] = *c;
    }
    l->count = kept;
}

/* The same template, instantiated for other weights or another output? */
static bool is_same_template(const kernel *a, const kernel *b) {
    return a->variant && b->variant && strcmp(a->variant, b->variant) == 0 &&
           !a->tokens == !b->tokens && a->format && b->format &&
           (a->format != b->format || a->accumulates != b->accumulates);
}

/* Do the kernels of the op that are kept have all that this one is made of? */
static bool is_represented(const case_list *kept, const kernel_case *c) {
    bool has_template = false, has_format = false, has_file = false, has_sum = false;
    for (size_t i = 0; i < kept->count; i++) {
        const kernel *k = kept->items[i].kernel;
        if (kept->items[i].op != c->op)
            continue;
        has_template = has_template || is_same_template(k, c->kernel);
        has_format = has_format || k->format == c->kernel->format;
        has_file = has_file || strcmp(k->file, c->kernel->file) == 0;
        has_sum = has_sum || k->accumulates == c->kernel->accumulates;
    }
    return has_template && has_format && has_file && has_sum;
}

size_t cases_drop_repeated(case_list *l) {
    case_list kept = {.items = l->items};
    const kernel *last = NULL, *dropped = NULL;
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const kernel_case c = l->items[i];
        if (c.kernel != last && is_represented(&kept, &c)) {
            dropped = c.kernel;
            count++;
        }
        last = c.kernel;
        if (c.kernel != dropped)
            l->items[kept.count++] = c;
    }
    l->count = kept.count;
    return count;
}

static bool read_extra(const char *text, size_t *count, err *e) {
    char end;
    unsigned n = 0;
    bool ok = !text || (sscanf(text, "random:%u%c", &n, &end) == 1 && n >= 1 && n <= HELD_OUT_MOST);
    *count = n;
    return ok || err_set(e, EXIT_USAGE, "--shapes takes random:N with N from 1 to %d, not '%.40s'",
                         HELD_OUT_MOST, text);
}

/* What held-out shapes are run with, in turn; the longest ones (held_out.c) with
 * usual values and with mixed ones. */
static const distribution held_out_inputs[CASES_KINDS] = {
    INPUT_TIES,  INPUT_NORMAL, INPUT_MIXED,    INPUT_LARGE,   INPUT_DENORMALS, INPUT_UNEVEN,
    INPUT_SMALL, INPUT_EQUAL,  INPUT_NEGATIVE, INPUT_OUTLIER, INPUT_ROWS,      INPUT_UNEVEN};

kernel_case cases_make_held_out(const kernel_case *like, const shape *s, size_t k) {
    distribution inputs = held_out_inputs[k % CASES_KINDS];
    if (k % CASES_KINDS == 0 && like->op->copies)
        inputs = INPUT_NAN;
    /* The errors of a row of blocks are alike then, and its tolerance takes them for random. */
    if (like->kernel->format && (inputs == INPUT_EQUAL || inputs == INPUT_OUTLIER))
        inputs = INPUT_NORMAL;
    return case_new(like->op, like->kernel, s, inputs);
}

static uint32_t get_longest(const shape *s) {
    uint32_t longest = 0;
    for (int i = 0; i < SHAPE_DIMS; i++)
        longest = s->dim[i] > longest ? s->dim[i] : longest;
    return longest;
}

/* After the cases of each kernel, `count` with shapes that are not listed, and one with the longest
 * that is and inputs that show in which precision it is summed. */
static void add_held_out(case_list *l, size_t count, uint64_t seed) {
    case_list all = {NULL, 0};
    size_t room = 0;
    shape longest = {{0}};
    for (size_t i = 0; count > 0 && i < l->count; i++) {
        const kernel_case *c = &l->items[i];
        shape drawn[HELD_OUT_MOST];
        if (get_longest(&c->shape) > get_longest(&longest))
            longest = c->shape;
        add_new(&all, &room, c);
        if (i + 1 < l->count && c[1].kernel == c->kernel)
            continue;
        size_t n = shapes_make_held_out(c->op, c->kernel, seed, count, drawn);
        for (size_t k = 0; k <= n; k++) {
            const kernel_case more = k < n ? cases_make_held_out(c, &drawn[k], k)
                                           : case_new(c->op, c->kernel, &longest, INPUT_LEVEL);
            add_new(&all, &room, &more);
        }
        longest = (shape){{0}};
    }
    if (count > 0) {
        cases_free(l);
        *l = all;
    }
}

bool cases_find(const case_query *q, case_list *out, err *e) {
    search *s = start_search(q->filters, q->filter_count);
    size_t extra;
    s->has_input = q->input != NULL;
    s->with_skips = q->with_skips;
    bool ok = axes_parse(&q->axes, &s->axes, e) && read_extra(q->extra, &extra, e) &&
              words_split(q->shapes, "shape", &s->shapes, e) &&
              (!q->input || find_input(q->input, &s->input, e));
    if (ok)
        visit_kernels(s, add_kernel);
    ok = ok && check_found(s, q, e);
    *out = s->cases;
    end_search(s);
    if (ok && q->quick)
        apply_quick(out);
    if (ok)
        add_held_out(out, extra, q->seed);
    else
        cases_free(out);
    return ok;
}

bool cases_parse(const char *name, kernel_case *out) {
    char parts[3][sizeof out->name];
    int end = 0;
    *out = (kernel_case){.op = NULL};
    if (strlen(name) >= sizeof out->name ||
        sscanf(name, "%[^/]/%[^/]/%[^/]%n", parts[0], parts[1], parts[2], &end) != 3 || name[end])
        return false;
    snprintf(out->name, sizeof out->name, "%s", name);
    out->kernel = registry_find_kernel(parts[0], &out->op);
    return out->kernel && shape_parse(parts[1], &out->shape) &&
           distribution_find(parts[2], &out->inputs);
}

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
    *ARRAY_ADD(l->items, l->count, l->room) = *c;
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
                bench_cases_add(s->timed, &b);
        }
}

/* Adds a case that is timed in every state, or counts it if the kernel does not take the shape. */
static bool time_case(search *s, const kernel_case *c) {
    err why;
    if (!is_matched(s, c))
        return true;
    if (op_takes(c->op, c->kernel, &c->shape, &why)) {
        add_states(s, c);
        return true;
    }
    bool is_asked = s->shapes.count > 0 || s->axes.batch_count > 0;
    if (is_asked && s->timed->skipped++ == 0)
        snprintf(s->timed->first_skip, sizeof s->timed->first_skip, "%s %.100s", c->name, why.text);
    return false;
}

static void add_shapes(search *s, const op *o, const kernel *k) {
    bool is_all = s->shapes.count == 1 && strcmp(s->shapes.words[0], "all") == 0;
    const shape_list *shapes = op_get_shapes(o, k);
    if (is_all) {
        for (size_t i = 0; i < shapes->count; i++)
            add_batches(s, o, k, &shapes->items[i], s->input);
        return;
    }
    if (s->shapes.count == 0) { /* the last that it takes */
        for (size_t i = shapes->count; i-- > 0;)
            if (add_batches(s, o, k, &shapes->items[i], s->input) || s->axes.batch_count > 0)
                return;
        return;
    }
    for (size_t i = 0; i < s->shapes.count; i++) {
        shape given, fitted;
        shape_parse(s->shapes.words[i], &given);
        if (fit_shape(o, k, &given, shape_count_dims(&given), &fitted) &&
            add_batches(s, o, k, &fitted, s->input))
            s->shapes.used[i] = true;
    }
}

static bool check_states(const search *s, err *e) {
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
    for (size_t i = 0; i < s->filter_count; i++) {
        case_query one = {.filters = &s->filters[i], .filter_count = 1};
        case_list ignored;
        if (s->has_matched[i])
            continue;
        if (!cases_find(&one, &ignored, e)) /* lists the valid ones */
            return false;
        cases_free(&ignored);
        return err_set(e, EXIT_USAGE,
                       "'%.60s' matches no case of the shapes and variants asked for",
                       s->filters[i]);
    }
    for (size_t i = 0; i < s->shapes.count; i++)
        if (strcmp(s->shapes.words[i], "all") && !s->shapes.used[i])
            return err_set(e, EXIT_USAGE, "no kernel that was asked for takes the shape '%s'",
                           s->shapes.words[i]);
    if (s->timed->count > 0)
        return true;
    return s->filter_count > 0 ? axes_refuse_filter("op, kernel or case", s->filters[0], true, e)
                               : err_set(e, EXIT_USAGE, "no case is left to time");
}

bool bench_cases_find(const bench_query *q, bench_list *out, err *e) {
    search *s = start_search(q->filters, q->filter_count);
    *out = (bench_list){.items = NULL};
    s->timed = out;
    s->input = INPUT_NORMAL;
    bool ok = words_split(q->shapes, "shape", &s->shapes, e) &&
              words_split(q->regimes, "regime", &s->regimes, e) &&
              words_split(q->caches, "cache", &s->caches, e) && check_states(s, e) &&
              axes_parse(&q->axes, &s->axes, e) &&
              (!q->input || find_input(q->input, &s->input, e));
    if (ok)
        visit_kernels(s, add_shapes);
    ok = ok && check_use(s, e);
    end_search(s);
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
