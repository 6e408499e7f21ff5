/* cases: see cases.h. Owns enumeration and filters; runs nothing. */
#include "cases.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/check/shapes.h"
#include "kernels/kernels.h"

static void add_case(case_list *l, size_t *room, const op *o, const kernel *k, const shape *s,
                     distribution inputs) {
    kernel_case c = case_new(o, k, s, inputs);
    for (size_t i = l->count; i-- > 0 && l->items[i].kernel == k;)
        if (strcmp(l->items[i].name, c.name) == 0)
            return;
    *ARRAY_ADD(l->items, l->count, *room) = c;
}

static bool is_given(const shape *s) {
    static const shape none;
    return memcmp(s, &none, sizeof none) != 0;
}

typedef struct {
    const axes *axes;
    case_list cases;
    size_t room;
} lister;

/* The shape with each requested batch, if the op has one. Kernels of one token are included: what
 * they do not take is skipped with a reason. */
static void add_batches(lister *l, const op *o, const kernel *k, const shape *s,
                        distribution inputs) {
    if (op_find_batch_dim(o) < 0 || l->axes->batch_count == 0)
        add_case(&l->cases, &l->room, o, k, s, inputs);
    else
        for (size_t i = 0; i < l->axes->batch_count; i++) {
            shape sized = axes_set_batch(o, s, l->axes->batches[i]);
            add_case(&l->cases, &l->room, o, k, &sized, inputs);
        }
}

static void add_edges(lister *l, const op *o, const kernel *k) {
    shape edges[EDGE_SHAPES];
    size_t count = shapes_make_edges(o, k, edges);
    for (size_t i = 0; i < count; i++)
        add_batches(l, o, k, &edges[i], INPUT_NORMAL);
}

static case_list list_all(const axes *a) {
    lister l = {.axes = a};
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        for (size_t j = 0; j < o->kernel_count; j++) {
            const kernel *k = &o->kernels[j];
            const shape_list *shapes = op_get_shapes(o, k);
            if (!axes_take_kernel(a, k))
                continue;
            for (size_t s = 0; s < shapes->count; s++)
                add_batches(&l, o, k, &shapes->items[s], INPUT_NORMAL);
            for (int d = 0; is_given(&shapes->any_input) && d < INPUT_COUNT; d++)
                if (d != INPUT_UNIFORM && d < INPUT_UNEVEN) /* show what held-out cases do */
                    add_batches(&l, o, k, &shapes->any_input, (distribution)d);
            add_edges(&l, o, k);
        }
    }
    return l.cases;
}

void cases_free(case_list *l) {
    free(l->items);
    *l = (case_list){NULL, 0};
}

bool cases_match(const char *filter, const kernel_case *c) {
    if (registry_find_op(filter) || registry_find_kernel(filter, NULL))
        return strcmp(c->op->name, filter) == 0 || strcmp(c->kernel->name, filter) == 0;
    if (strpbrk(filter, "*?["))
        return fnmatch(filter, c->name, 0) == 0;
    return *filter && strstr(c->name, filter) != NULL; /* '' is a variable that is not set */
}

/* Adds a word to a list in a text unless it is there, breaking lines as needed. */
static void list_word(char *text, size_t size, const char *word) {
    size_t used = strlen(text), length = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += length)
        if ((p == text || p[-1] == ' ') &&
            (p[length] == 0 || p[length] == '\n' || p[length] == ' '))
            return;
    const char *line = strrchr(text, '\n');
    bool is_full = used - (line ? (size_t)(line + 1 - text) : 0) + length > 90;
    snprintf(text + used, size - used, "%s%s", is_full || !used ? (used ? "\n  " : "  ") : " ",
             word);
}

static bool is_matched(const char *filter, const case_list *l) {
    size_t i = 0;
    while (i < l->count && !cases_match(filter, &l->items[i]))
        i++;
    return i < l->count;
}

static bool refuse_filter(const char *filter, err *e) {
    static const axes any;
    case_list all = list_all(&any);
    bool is_known = is_matched(filter, &all);
    cases_free(&all);
    return axes_refuse_filter("op, kernel or case", filter, is_known, e);
}

static bool refuse_shape(const case_list *matched, const char *wanted, err *e) {
    char valid[480] = "", text[64];
    size_t i = 0;
    for (; i < matched->count && strlen(valid) + 80 < sizeof valid; i++) {
        shape_get_text(&matched->items[i].shape, text, sizeof text);
        list_word(valid, sizeof valid, text);
    }
    if (i < matched->count)
        list_word(valid, sizeof valid, "...");
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

/* Keeps the cases of l that a filter matches. */
static bool apply_filters(const case_query *q, case_list *l, err *e) {
    size_t kept = 0;
    bool *has_matched = array_new(q->filter_count + 1, sizeof *has_matched);
    for (size_t i = 0; i < l->count; i++) {
        bool is_wanted = q->filter_count == 0;
        for (size_t f = 0; f < q->filter_count; f++)
            if (cases_match(q->filters[f], &l->items[i]))
                is_wanted = has_matched[f] = true;
        if (is_wanted)
            l->items[kept++] = l->items[i];
    }
    size_t f = 0, room = l->count;
    kernel_case named;
    l->count = kept;
    for (; f < q->filter_count && (has_matched[f] || cases_parse(q->filters[f], &named)); f++)
        if (!has_matched[f]) /* a case that is not listed, such as one with a random shape */
            *ARRAY_ADD(l->items, l->count, room) = named;
    free(has_matched);
    return f == q->filter_count || refuse_filter(q->filters[f], e);
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

static bool apply_shapes(const char *shapes, case_list *l, err *e) {
    word_list words;
    size_t kept = 0;
    if (!words_split(shapes, "shape", &words, e))
        return false;
    for (size_t i = 0; i < l->count; i++) {
        bool is_wanted = false;
        for (size_t w = 0; w < words.count; w++)
            if (has_shape(&l->items[i], words.words[w]))
                is_wanted = words.used[w] = true;
        if (is_wanted)
            l->items[kept++] = l->items[i];
    }
    for (size_t w = 0; w < words.count; w++)
        if (!words.used[w])
            return refuse_shape(l, words.words[w], e);
    l->count = kept;
    return true;
}

static bool apply_input(const char *name, case_list *l, err *e) {
    distribution d;
    if (!find_input(name, &d, e))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].inputs == d)
            l->items[kept++] = l->items[i];
    l->count = kept;
    return kept > 0 || err_set(e, EXIT_USAGE,
                               "no case is left: the given shape is run only with input 'normal', "
                               "not with '%s'",
                               name);
}

static void drop_skips(case_list *l) {
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        if (op_takes(l->items[i].op, l->items[i].kernel, &l->items[i].shape, NULL))
            l->items[kept++] = l->items[i];
    l->count = kept;
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
    return axes_refuse_name("kernel", name, e);
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

static uint32_t get_longest(const shape *s) {
    uint32_t longest = 0;
    for (int i = 0; i < SHAPE_DIMS; i++)
        longest = s->dim[i] > longest ? s->dim[i] : longest;
    return longest;
}

/* What held-out shapes are run with, in turn; the longest ones (held_out.c) with
 * usual values and with mixed ones. */
static const distribution held_out_inputs[] = {INPUT_UNEVEN, INPUT_NORMAL,    INPUT_MIXED,
                                               INPUT_LARGE,  INPUT_DENORMALS, INPUT_UNEVEN,
                                               INPUT_MIXED,  INPUT_NEGATIVE};

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
        add_case(&all, &room, c->op, c->kernel, &c->shape, c->inputs);
        if (i + 1 < l->count && c[1].kernel == c->kernel)
            continue;
        size_t n = shapes_make_held_out(c->op, c->kernel, seed, count, drawn);
        for (size_t k = 0; k < n; k++)
            add_case(&all, &room, c->op, c->kernel, &drawn[k],
                     held_out_inputs[k % (sizeof held_out_inputs / sizeof *held_out_inputs)]);
        add_case(&all, &room, c->op, c->kernel, &longest, INPUT_LEVEL);
        longest = (shape){{0}};
    }
    if (count > 0) {
        cases_free(l);
        *l = all;
    }
}

bool cases_find(const case_query *q, case_list *out, err *e) {
    axes a;
    size_t extra;
    if (!axes_parse(&q->axes, &a, e) || !read_extra(q->extra, &extra, e))
        return false;
    *out = list_all(&a);
    if (!q->with_skips)
        drop_skips(out);
    bool ok = apply_filters(q, out, e) && (!q->shapes || apply_shapes(q->shapes, out, e)) &&
              (!q->input || apply_input(q->input, out, e));
    if (ok && q->quick)
        apply_quick(out);
    if (ok && out->count == 0)
        ok = err_set(e, EXIT_USAGE,
                     "no kernel has the given format, variant, accumulation and batch");
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
