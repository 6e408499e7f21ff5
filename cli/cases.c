/* cases: see cases.h. Owns enumeration and filters; runs nothing. */
#include "cases.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "options.h"

static void add_case(case_list *l, size_t *room, const op *o, const kernel *k, const shape *s,
                     distribution inputs) {
    test_case c = {.op = o, .kernel = k, .shape = *s, .inputs = inputs};
    kernel_case named = {.op = o, .kernel = k, .shape = *s, .inputs = inputs};
    case_get_name(&named, c.name, sizeof c.name);
    for (size_t i = l->count; i-- > 0 && l->items[i].kernel == k;)
        if (strcmp(l->items[i].name, c.name) == 0)
            return;
    if (l->count == *room) {
        *room = *room ? *room * 2 : 256;
        l->items = realloc(l->items, *room * sizeof *l->items);
        assert(l->items);
    }
    l->items[l->count++] = c;
}

static bool is_given(const shape *s) {
    static const shape none;
    return memcmp(s, &none, sizeof none) != 0;
}

static case_list list_all(void) {
    case_list l = {NULL, 0};
    size_t room = 0;
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        for (size_t k = 0; k < o->kernel_count; k++) {
            const shape_list *shapes = op_get_shapes(o, &o->kernels[k]);
            for (size_t s = 0; s < shapes->count; s++)
                add_case(&l, &room, o, &o->kernels[k], &shapes->items[s], INPUT_NORMAL);
            for (int d = 0; is_given(&shapes->any_input) && d < INPUT_COUNT; d++)
                add_case(&l, &room, o, &o->kernels[k], &shapes->any_input, (distribution)d);
        }
    }
    return l;
}

void cases_free(case_list *l) {
    free(l->items);
    *l = (case_list){NULL, 0};
}

bool cases_match(const char *filter, const test_case *c) {
    if (registry_find_op(filter) || registry_find_kernel(filter, NULL))
        return strcmp(c->op->name, filter) == 0 || strcmp(c->kernel->name, filter) == 0;
    if (strpbrk(filter, "*?["))
        return fnmatch(filter, c->name, 0) == 0;
    return strstr(c->name, filter) != NULL;
}

/* Adds a word to a list in a text, once, with a line break now and then. */
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

static bool refuse_filter(const char *filter, err *e) {
    const char *names[512], *nearest;
    size_t count = 0;
    char valid[4000] = "";
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++) {
            if (count < sizeof names / sizeof *names)
                names[count++] = registry[i]->kernels[k].name;
            list_word(valid, sizeof valid, registry[i]->kernels[k].name);
        }
    if ((nearest = options_find_nearest(filter, names, count)))
        err_set(e, EXIT_USAGE, "no case matches '%.60s'; did you mean %s? The kernels are:", filter,
                nearest);
    else
        err_set(e, EXIT_USAGE, "no case matches '%.60s'. The kernels are:", filter);
    return err_set_detail(e, valid);
}

static bool refuse_shape(const case_list *matched, const char *wanted, err *e) {
    char valid[4000] = "", text[64];
    for (size_t i = 0; i < matched->count; i++) {
        shape_get_text(&matched->items[i].shape, text, sizeof text);
        list_word(valid, sizeof valid, text);
    }
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
    bool *has_matched = calloc(q->filter_count + 1, sizeof *has_matched);
    assert(has_matched);
    for (size_t i = 0; i < l->count; i++) {
        bool is_wanted = q->filter_count == 0;
        for (size_t f = 0; f < q->filter_count; f++)
            if (cases_match(q->filters[f], &l->items[i]))
                is_wanted = has_matched[f] = true;
        if (is_wanted)
            l->items[kept++] = l->items[i];
    }
    l->count = kept;
    size_t f = 0;
    while (f < q->filter_count && has_matched[f])
        f++;
    free(has_matched);
    return f == q->filter_count || refuse_filter(q->filters[f], e);
}

static bool apply_shape(const char *wanted, case_list *l, err *e) {
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        char text[64];
        shape_get_text(&l->items[i].shape, text, sizeof text);
        if (strcmp(text, wanted) == 0)
            l->items[kept++] = l->items[i];
    }
    if (kept == 0)
        return refuse_shape(l, wanted, e);
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
                               "no case is left: the shape given is run with input 'normal' only, "
                               "not with '%s'",
                               name);
}

static void drop_skips(case_list *l) {
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        const test_case *c = &l->items[i];
        if (!c->op->accepts || c->op->accepts(c->kernel, &c->shape, NULL))
            l->items[kept++] = *c;
    }
    l->count = kept;
}

/* Keeps the first shapes of each kernel and the one that is run with every distribution. */
static void apply_quick(case_list *l) {
    enum { SHAPES = 6 };
    const kernel *last = NULL;
    size_t kept = 0, shapes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const test_case *c = &l->items[i];
        if (c->kernel != last)
            shapes = 0;
        last = c->kernel;
        bool has_every =
            memcmp(&c->shape, &op_get_shapes(c->op, c->kernel)->any_input, sizeof c->shape) == 0;
        if (has_every || shapes++ < SHAPES)
            l->items[kept++] = *c;
    }
    l->count = kept;
}

bool cases_find(const case_query *q, case_list *out, err *e) {
    *out = list_all();
    if (!q->with_skips)
        drop_skips(out);
    bool ok = apply_filters(q, out, e) && (!q->shape || apply_shape(q->shape, out, e)) &&
              (!q->input || apply_input(q->input, out, e));
    if (ok && q->quick)
        apply_quick(out);
    if (ok && out->count == 0)
        ok = err_set(e, EXIT_CANNOT, "the registry has no kernels");
    if (!ok)
        cases_free(out);
    return ok;
}

bool cases_parse(const char *name, test_case *out) {
    char parts[3][sizeof out->name];
    int end = 0;
    *out = (test_case){.op = NULL};
    if (strlen(name) >= sizeof out->name ||
        sscanf(name, "%[^/]/%[^/]/%[^/]%n", parts[0], parts[1], parts[2], &end) != 3 || name[end])
        return false;
    snprintf(out->name, sizeof out->name, "%s", name);
    out->kernel = registry_find_kernel(parts[0], &out->op);
    return out->kernel && shape_parse(parts[1], &out->shape) &&
           distribution_find(parts[2], &out->inputs);
}
