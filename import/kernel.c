/* kernel: the calls that make kernels, and the calls that launch them. */
#include <string.h>

#include "internal.h"

static value *argument_at(const value_list *args, const value *named, size_t index,
                          const char *name) {
    value *v = dict_find(named, name);
    return v ? v : index < args->count ? args->items[index] : NULL;
}

static bool take_names(kernel_site *k, value *from, value_list *out, const char *what,
                       importer *im) {
    bool ok = from && from->kind == V_LIST;
    for (size_t i = 0; ok && i < from->list.count; i++)
        ok = from->list.items[i]->kind == V_STRING;
    if (ok)
        *out = from->list;
    else if (!k->trouble)
        k->trouble = keep_print(im, "%s is not a list of names that the file spells out", what);
    return ok;
}

static bool names_equal(const value_list *a, const value_list *b) {
    for (size_t i = 0; i < a->count; i++)
        if (i >= b->count || !value_equals(a->items[i], b->items[i]))
            return false;
    return a->count == b->count;
}

static kernel_site *find_same(const importer *im, const kernel_site *k) {
    for (kernel_site *s = im->sites; s; s = s->next)
        if (s->file == k->file && s->at == k->at && !s->trouble == !k->trouble &&
            (k->trouble || (s->source.bytes == k->source.bytes &&
                            memcmp(s->source.text, k->source.text, k->source.bytes) == 0 &&
                            names_equal(&s->inputs, &k->inputs))))
            return s;
    return NULL;
}

value *kernel_make(reader *r, const value *maker, value_list *args, value *named, uint32_t at) {
    importer *im = r->im;
    kernel_site *k = keep(im, sizeof *k);
    *k = (kernel_site){.file = r->tokens->file,
                       .line = r->tokens->items[at].line,
                       .at = at,
                       .is_torch = *maker->name == 'c',
                       .name = ""};
    value *source = argument_at(args, named, k->is_torch ? 0 : 3, "source");
    value *header = argument_at(args, named, 4, "header");
    value *name = argument_at(args, named, 0, "name");
    value *atomic = argument_at(args, named, 6, "atomic_outputs");
    if (source && source->kind == V_STRING)
        k->source = source->s;
    else
        k->trouble = "its source is not a text that the file spells out";
    if (header && header->kind == V_STRING)
        k->header = header->s;
    else if (header && !k->is_torch && header->kind != V_NONE && !k->trouble)
        k->trouble = "its header is not a text that the file spells out";
    if (!k->is_torch) {
        k->name = name && name->kind == V_STRING ? name->s.text : "";
        k->is_atomic = atomic && value_truth(atomic) == TRUE_VALUE;
        take_names(k, argument_at(args, named, 1, "input_names"), &k->inputs, "input_names", im);
        take_names(k, argument_at(args, named, 2, "output_names"), &k->outputs, "output_names", im);
    }
    kernel_site *same = find_same(im, k);
    if (!same) {
        *im->last_site = k;
        im->last_site = &k->next;
        same = k;
    }
    value *v = value_new(im, V_KERNEL);
    v->site = same;
    return v;
}

void kernel_launch(importer *im, value *kernel, value *named, int line) {
    kernel_site *k = kernel->site;
    value *shapes = dict_find(named, "output_shapes"), *types = dict_find(named, "output_dtypes");
    value *templates = dict_find(named, "template");
    if (k->is_torch || !dict_find(named, "grid"))
        return;
    /* A template argument has a name that the user may have given a value. */
    for (size_t i = 0; templates && templates->kind == V_LIST && i < templates->list.count; i++) {
        value *pair = templates->list.items[i];
        if (pair->kind == V_LIST && pair->list.count == 2 && pair->list.items[0]->kind == V_STRING)
            scope_bind(im, scope_new(im, NULL), pair->list.items[0]->s.text, pair->list.items[1]);
    }
    if (!k->launch) {
        k->launch = named;
        k->launch_line = line;
    }
    kernel->list.count = 0;
    for (size_t i = 0; i < k->outputs.count; i++) {
        value *shape = shapes && i < shapes->list.count ? shapes->list.items[i] : NULL;
        value *type = types && i < types->list.count ? types->list.items[i] : NULL;
        const char *type_name = type && type->kind == V_TYPE ? type->name : "float32";
        if (shape && shape->kind == V_SHAPE)
            shape = array_shape_list(im, shape, -1);
        bool is_known = shape && shape->kind == V_LIST;
        value *out = is_known ? array_value(im, &shape->list, type_name) : value_unknown(im, NULL);
        if (!is_known)
            array_of(im, out)->type = type_name;
        list_add(im, &kernel->list, NULL, out);
    }
}

void kernel_launch_from(importer *im, kernel_site *library, const char *name,
                        const value_list *args, value *named, int line) {
    library_launch **at = &library->launches;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->kernel, name) == 0)
            return;
    *at = keep(im, sizeof **at);
    **at = (library_launch){.kernel = name, .named = named, .line = line};
    for (size_t i = 0; i < args->count; i++)
        list_add(im, &(*at)->args, NULL, args->items[i]);
}

static bool is_name(const py_token *t, const char *name) {
    return t->kind == PY_NAME && t->bytes == strlen(name) && memcmp(t->begin, name, t->bytes) == 0;
}

bool kernel_is_unreached(const importer *im, const py_tokens *tokens, uint32_t at) {
    const py_token *t = &tokens->items[at];
    if ((!is_name(t, "metal_kernel") && !is_name(t, "compile_shader")) || t[1].begin[0] != '(' ||
        (at > 0 && is_name(t - 1, "def")))
        return false;
    for (const kernel_site *k = im->sites; k; k = k->next)
        if (k->file == tokens->file && k->at == at + 1)
            return false;
    return true;
}

bool kernel_lacks_launch(const importer *im, const py_tokens *tokens) {
    for (const kernel_site *k = im->sites; k; k = k->next)
        if (k->file == tokens->file && (!k->launch || k->trouble))
            return true;
    for (uint32_t i = 0; i + 1 < tokens->count; i++)
        if (kernel_is_unreached(im, tokens, i))
            return true;
    return false;
}
