#include "tune_choices.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "runner/synth.h"
#include "runner/variants.h"

/* Models ------------------------------------------------------------------------------------ */

static bool add_model(const tune_query *q, library *lib, const char *path, choice_list *out,
                      err *e) {
    uint32_t tokens[OPTION_LIST_MAX];
    gguf *g = gguf_open(path, e);
    for (size_t i = 0; i < q->tokens.count; i++)
        tokens[i] = (uint32_t)q->tokens.items[i];
    bool ok = g && tune_list_model(lib, g, tokens, q->tokens.count, out, e);
    gguf_free(g);
    return ok;
}

/* The layers of a model are alike but for the first. */
static bool add_preset(const tune_query *q, library *lib, const char *name, const char *folder,
                       choice_list *out, err *e) {
    char path[PATH_MAX];
    const synth_shape *s = synth_find_shape(name, e);
    synth_options o = {.seed = q->seed, .layers = 2};
    return s && (o.type = convert_find_type(q->type, e)) &&
           path_print(path, sizeof path, e, "%s/%s.gguf", folder, name) &&
           synth_write_model(s, path, &o, e) && add_model(q, lib, path, out, e);
}

static bool add_presets(const tune_query *q, library *lib, choice_list *out, err *e) {
    char folder[PATH_MAX];
    word_list names;
    if (!words_split(q->presets, "preset", &names, e) || !os_make_scratch(folder, sizeof folder, e))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < names.count; i++)
        ok = add_preset(q, lib, names.words[i], folder, out, e);
    os_remove_folder(folder);
    return ok;
}

/* Of a model of 7 billion, one token and eight. */
static void add_large(choice_list *out) {
    static const shape sizes[] = {{{4096, 4096}}, {{14336, 4096}}, {{4096, 14336}}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int adds = 0; adds < 2; adds++)
            for (uint32_t tokens = 1; tokens <= 8; tokens += 7) {
                choice c = {&matvec_op, &format_q4_0, adds, sizes[i]};
                c.shape.dim[2] = tokens;
                choice_list_add(out, &c);
            }
}

/* Shapes ------------------------------------------------------------------------------------ */

static size_t count_dims(const op *o) {
    size_t count = 1;
    for (const char *p = o->dims; (p = strstr(p, " x ")); p += 3)
        count++;
    return count;
}

/* The shape with every number of tokens, where those are missing at its end. */
static void add_tokens(const tune_query *q, choice c, size_t given, choice_list *out) {
    bool is_tokens;
    int at = choice_find_slide(c.op, &is_tokens);
    if (!is_tokens || (size_t)at != given) {
        choice_list_add(out, &c);
        return;
    }
    for (size_t i = 0; i < q->tokens.count; i++) {
        c.shape.dim[at] = (uint32_t)q->tokens.items[i];
        choice_list_add(out, &c);
    }
}

static bool has_format(const op *o) {
    return o->kernels[0].format != NULL;
}

static void add_formats(const tune_query *q, const axes *a, choice c, size_t given,
                        choice_list *out) {
    size_t count = has_format(c.op) && a->formats.count > 0 ? a->formats.count : 1;
    for (size_t i = 0; i < count; i++)
        for (int adds = 0; adds < 2; adds++) {
            c.format = !has_format(c.op)       ? NULL
                       : a->formats.count == 0 ? &format_q4_0
                                               : choice_find_format(a->formats.words[i]);
            c.accumulates = adds;
            if (!a->has_accumulate || a->accumulates == c.accumulates)
                add_tokens(q, c, given, out);
        }
}

static bool add_shapes(const tune_query *q, choice_list *out, err *e) {
    word_list shapes;
    axes a;
    if (!words_split(q->shapes, "shape", &shapes, e) || !axes_parse(&q->axes, &a, e))
        return false;
    if (q->filter_count == 0)
        return err_set(e, EXIT_USAGE, "--shape needs the op: assay tune matvec --shape %s",
                       shapes.words[0]);
    for (size_t f = 0; f < q->filter_count; f++) {
        choice c = {.op = registry_find_op(q->filters[f])};
        if (!c.op || !variants_has_rule(c.op))
            return err_set(e, EXIT_USAGE, "models have no choice of an op '%.60s'", q->filters[f]);
        for (size_t i = 0; i < shapes.count; i++) {
            if (!shape_parse(shapes.words[i], &c.shape) || shape_count_values(&c.shape) > 4e9 ||
                shape_count_dims(&c.shape) > count_dims(c.op))
                return err_set(e, EXIT_USAGE, "'%s' is not a shape of %s: its sizes are %s",
                               shapes.words[i], c.op->name, c.op->dims);
            add_formats(q, &a, c, shape_count_dims(&c.shape), out);
        }
    }
    return true;
}

/* What remains ------------------------------------------------------------------------------ */

static bool is_matched(const char *filter, const choice *c) {
    char text[CHOICE_TEXT];
    choice_get_text(c, text, sizeof text);
    return registry_find_op(filter) ? strcmp(c->op->name, filter) == 0
                                    : strstr(text, filter) != NULL;
}

static bool keep_matching(const tune_query *q, choice_list *l, err *e) {
    bool used[OPTION_LIST_MAX] = {false};
    size_t kept = 0, most = q->filter_count < OPTION_LIST_MAX ? q->filter_count : OPTION_LIST_MAX;
    for (size_t i = 0; i < l->count; i++) {
        const kernel *ways[CHOICE_WAYS];
        bool is_wanted = most == 0;
        for (size_t f = 0; f < most; f++)
            if (is_matched(q->filters[f], &l->items[i]))
                is_wanted = used[f] = true;
        if (is_wanted && choice_list_ways(&l->items[i], ways) > 1)
            l->items[kept++] = l->items[i];
    }
    l->count = kept;
    for (size_t f = 0; f < most; f++)
        if (!used[f])
            return err_set(e, EXIT_USAGE,
                           "'%.60s' matches no choice; assay tune --list shows what there is",
                           q->filters[f]);
    return kept > 0 || err_set(e, EXIT_USAGE, "nothing to choose: every op has one way only");
}

bool tune_choices_find(const tune_query *q, library *lib, choice_list *out, err *e) {
    *out = (choice_list){.items = NULL};
    bool ok;
    if (q->shapes)
        ok = add_shapes(q, out, e);
    else if (q->model)
        ok = add_model(q, lib, q->model, out, e);
    else {
        ok = add_presets(q, lib, out, e);
        if (!device_get_facts(library_get_device(lib))->emulated)
            add_large(out);
    }
    ok = ok && keep_matching(q, out, e);
    choice_list_sort(out);
    if (!ok)
        choice_list_free(out);
    return ok;
}
