/* call: attributes, subscripts, and the functions and methods of Python that sources are made with. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* Attributes and subscripts -------------------------------------------------------------------- */

value *get_attribute(importer *im, value *of, const char *name) {
    if (strcmp(name, "metal_kernel") == 0 || strcmp(name, "compile_shader") == 0) {
        value *v = value_new(im, V_MAKER);
        v->name = name;
        return v;
    }
    if (of->home && of->kind != V_FUNCTION)
        for (const struct binding *b = of->home->first; b; b = b->next)
            if (strcmp(b->name, name) == 0)
                return b->value;
    bool is_module = of->kind == V_UNKNOWN && of->name && strlen(of->name) < 12;
    if (is_module && type_find(name)) {
        value *v = value_new(im, V_TYPE);
        v->name = type_find(name);
        return v;
    }
    if (is_module && strcmp(of->name, "math") == 0 && (!strcmp(name, "pi") || !strcmp(name, "inf")))
        return value_float(im, *name == 'p' ? acos(-1) : INFINITY);
    if (of->kind == V_UNKNOWN || of->kind == V_ARRAY) {
        value *v = array_attribute(im, of, name);
        if (v)
            return v;
    }
    if (of->kind != V_UNKNOWN) {
        value *v = value_new(im, V_METHOD);
        v->name = name;
        v->self = of;
        return v;
    }
    value *v = value_unknown(im, of->name ? keep_print(im, "%s.%s", of->name, name) : name);
    v->self = of;
    if (!of->home)
        of->home = scope_new(im, NULL);
    scope_bind(im, of->home, name, v);
    return v;
}

/* DTYPE_TO_METAL of torch._inductor.codegen.mps: the name of an element type in MSL. */
static value *name_torch_type(importer *im, const value *type) {
    static const char *const names[][2] = {
        {"float32", "float"}, {"float16", "half"}, {"bfloat16", "bfloat"}, {"int64", "long"},
        {"int32", "int"},     {"int16", "short"},  {"int8", "char"},       {"uint8", "uchar"},
        {"uint16", "ushort"}, {"uint32", "uint"},  {"uint64", "ulong"},    {"bool_", "bool"}};
    size_t i = 0;
    while (type->kind == V_TYPE && i + 1 < sizeof names / sizeof *names &&
           strcmp(names[i][0], type->name) != 0)
        i++;
    return value_string(im, names[i][1], strlen(names[i][1]), 0);
}

value *get_item(importer *im, value *of, value *index) {
    if (of->kind == V_SHAPE)
        return array_shape_item(im, of, value_whole(im, index, 0));
    if (of->kind == V_LIST || of->kind == V_STRING) {
        int64_t n = of->kind == V_LIST ? (int64_t)of->list.count : (int64_t)of->s.bytes;
        int64_t i = value_whole(im, index, 0);
        i = i < 0 ? i + n : i;
        if (i < 0 || i >= n)
            return value_unknown(im, NULL);
        return of->kind == V_LIST ? of->list.items[i]
                                  : value_string(im, of->s.text + i, 1, of->s.places[i]);
    }
    if (of->kind == V_DICT) {
        for (size_t i = of->list.count; i-- > 0;)
            if (value_equals(of->list.keys[i], index))
                return of->list.items[i];
        return of->list.count ? of->list.items[of->list.count - 1] : value_unknown(im, NULL);
    }
    if (of->kind == V_UNKNOWN && of->name && strcmp(of->name, "DTYPE_TO_METAL") == 0)
        return name_torch_type(im, index);
    value *v = value_unknown(im, of->name ? keep_print(im, "%s[]", of->name) : NULL);
    if (of->kind == V_ARRAY) {
        array_of(im, v)->type = of->array->type;
        v->kind = V_ARRAY;
    }
    return v;
}

/* Methods of strings --------------------------------------------------------------------------- */

static value *string_join(importer *im, const value *between, const value *list) {
    value *out = value_new(im, V_STRING);
    chars_add(im, &out->s, "", 0, 0);
    for (size_t i = 0; i < list->list.count; i++) {
        value *item = list->list.items[i];
        if (i)
            chars_append(im, &out->s, &between->s);
        if (item->kind == V_STRING)
            chars_append(im, &out->s, &item->s);
        else
            return value_unknown(im, NULL);
    }
    return out;
}

static value *string_replace(importer *im, const value *in, const value *from, value *to) {
    value *out = value_new(im, V_STRING);
    chars_add(im, &out->s, "", 0, 0);
    for (size_t i = 0; i < in->s.bytes;) {
        bool is_it = from->s.bytes && i + from->s.bytes <= in->s.bytes &&
                     memcmp(in->s.text + i, from->s.text, from->s.bytes) == 0;
        chars one = chars_slice(&in->s, i, i + 1);
        if (is_it)
            format_value(im, &out->s, to, "", in->s.places[i]);
        else
            chars_append(im, &out->s, &one);
        i += is_it ? from->s.bytes : 1;
    }
    return out;
}

/* Without the blanks that all lines begin with. */
static value *string_dedent(importer *im, const value *in) {
    const char *p = in->s.text;
    size_t common = SIZE_MAX;
    while (*p) {
        size_t blanks = strspn(p, " \t"), length = strcspn(p, "\n");
        if (blanks < length && blanks < common)
            common = blanks;
        p += length + (p[length] == '\n');
    }
    value *out = value_new(im, V_STRING);
    chars_add(im, &out->s, "", 0, 0);
    for (p = in->s.text; *p && common != SIZE_MAX;) {
        size_t blanks = strspn(p, " \t"), length = strcspn(p, "\n");
        size_t cut = blanks < common ? blanks : common, begin = (size_t)(p - in->s.text);
        size_t end = begin + length + (p[length] == '\n');
        chars part = chars_slice(&in->s, begin + cut, end);
        chars_append(im, &out->s, &part);
        p = in->s.text + end;
    }
    return out;
}

static value *string_strip(importer *im, const value *in, const char *name) {
    size_t begin = 0, end = in->s.bytes;
    while (begin < end && *name != 'r' && strchr(" \t\r\n", in->s.text[begin]))
        begin++;
    while (end > begin && *name != 'l' && strchr(" \t\r\n", in->s.text[end - 1]))
        end--;
    value *out = value_new(im, V_STRING);
    chars part = chars_slice(&in->s, begin, end);
    chars_append(im, &out->s, &part);
    return out;
}

static value *string_method(importer *im, value *self, const char *name, value_list *args,
                            value *named) {
    value *a = args->count > 0 ? args->items[0] : NULL,
          *b = args->count > 1 ? args->items[1] : NULL;
    if (strcmp(name, "format") == 0)
        return format_call(im, self, args, named);
    if (strcmp(name, "join") == 0 && a && a->kind == V_LIST)
        return string_join(im, self, a);
    if (strcmp(name, "replace") == 0 && b && a->kind == V_STRING)
        return string_replace(im, self, a, b);
    if (strcmp(name, "strip") == 0 || strcmp(name, "lstrip") == 0 || strcmp(name, "rstrip") == 0)
        return string_strip(im, self, name);
    if (strcmp(name, "lower") == 0 || strcmp(name, "upper") == 0)
        return self;
    return value_unknown(im, NULL);
}

/* Methods of lists and dicts ------------------------------------------------------------------- */

static value *list_method(importer *im, value *self, const char *name, value_list *args) {
    value *a = args->count > 0 ? args->items[0] : NULL;
    bool is_dict = self->kind == V_DICT, is_items = strcmp(name, "items") == 0;
    if (strcmp(name, "append") == 0 && a)
        list_add(im, &self->list, NULL, a);
    else if (strcmp(name, "insert") == 0 && args->count > 1) {
        size_t at = (size_t)value_whole(im, a, 0);
        list_add(im, &self->list, NULL, args->items[1]);
        for (size_t i = self->list.count - 1; i > at; i--) {
            value *swap = self->list.items[i];
            self->list.items[i] = self->list.items[i - 1];
            self->list.items[i - 1] = swap;
        }
    } else if ((strcmp(name, "extend") == 0 || strcmp(name, "update") == 0) && a)
        for (size_t i = 0, n = a->list.count; i < n; i++)
            list_add(im, &self->list, a->list.keys[i], a->list.items[i]);
    else if (strcmp(name, "copy") == 0) {
        value *copy = value_new(im, self->kind);
        for (size_t i = 0; i < self->list.count; i++)
            list_add(im, &copy->list, self->list.keys[i], self->list.items[i]);
        return copy;
    } else if (is_dict && strcmp(name, "get") == 0 && a) {
        for (size_t i = 0; i < self->list.count; i++)
            if (value_equals(self->list.keys[i], a))
                return self->list.items[i];
        return args->count > 1 ? args->items[1] : value_new(im, V_NONE);
    } else if (is_dict && (is_items || strcmp(name, "values") == 0 || strcmp(name, "keys") == 0)) {
        value *out = value_new(im, V_LIST);
        for (size_t i = 0; i < self->list.count; i++) {
            value *pair = value_new(im, V_LIST);
            list_add(im, &pair->list, NULL, self->list.keys[i]);
            list_add(im, &pair->list, NULL, self->list.items[i]);
            list_add(im, &out->list, NULL, is_items ? pair : pair->list.items[*name == 'v']);
        }
        return out;
    }
    return value_new(im, V_NONE);
}

/* Functions ------------------------------------------------------------------------------------ */

static value *make_range(importer *im, const value_list *args) {
    int64_t from = args->count > 1 ? value_whole(im, args->items[0], 0) : 0;
    int64_t to = args->count ? value_whole(im, args->items[args->count > 1], 0) : 0;
    int64_t step = args->count > 2 ? value_whole(im, args->items[2], 1) : 1;
    value *out = value_new(im, V_LIST);
    for (int64_t i = from; step && (step > 0 ? i < to : i > to) && out->list.count < 4096;
         i += step)
        list_add(im, &out->list, NULL, value_int(im, i));
    return out;
}

/* enumerate(list, start) and zip(list, list, ...) */
static value *make_rows(importer *im, const char *name, const value_list *args, value *named) {
    bool counts = *name == 'e';
    value *start = counts && args->count > 1 ? args->items[1] : dict_find(named, "start");
    int64_t first = start ? value_whole(im, start, 0) : 0;
    value *out = value_new(im, V_LIST);
    for (size_t i = 0; args->count && i < 4096; i++) {
        value *row = value_new(im, V_LIST);
        if (counts)
            list_add(im, &row->list, NULL, value_int(im, first + (int64_t)i));
        for (size_t k = 0; k < (counts ? 1 : args->count); k++) {
            value *from = args->items[k];
            if (from->kind == V_UNKNOWN && i < 4)
                list_add(im, &row->list, NULL, value_unknown(im, from->name));
            else if (from->kind != V_LIST || i >= from->list.count)
                return out;
            else
                list_add(im, &row->list, NULL, from->list.items[i]);
        }
        list_add(im, &out->list, NULL, row);
    }
    return out;
}

static value *find_extreme(importer *im, bool is_max, const value_list *args) {
    if (args->count == 1)
        args = &args->items[0]->list;
    value *best = NULL;
    double most = 0, x;
    bool is_int, is_assumed = false;
    for (size_t i = 0; i < args->count; i++) {
        if (!value_number(im, args->items[i], &x, &is_int))
            return value_unknown(im, NULL);
        is_assumed |= args->items[i]->is_assumed;
        if (!best || (is_max ? x > most : x < most)) {
            best = args->items[i];
            most = x;
        }
    }
    if (!best)
        return value_unknown(im, NULL);
    value *v = best->kind == V_FLOAT ? value_float(im, most) : value_int(im, (int64_t)most);
    v->is_assumed = is_assumed;
    return v;
}

static value *count_items(importer *im, value *v) {
    if (v->kind == V_SHAPE)
        v = array_shape_list(im, v, -1);
    bool is_known = v->kind == V_LIST || v->kind == V_DICT || v->kind == V_STRING;
    value *n = value_int(im, v->kind == V_STRING ? (int64_t)v->s.bytes
                             : is_known          ? (int64_t)v->list.count
                                                 : 4);
    n->is_assumed = !is_known;
    return n;
}

/* int(x), float(x), bool(x) */
static value *convert(importer *im, const char *name, value *a) {
    double x;
    bool is_int;
    if (a->kind == V_ARRAY)
        return value_unknown(im, a->name);
    if (*name == 'b')
        return value_truth(a) == MAYBE_VALUE ? value_unknown(im, a->name)
                                             : value_bool(im, value_truth(a));
    if (*name == 'i' && a->kind == V_INT)
        return a; /* still the size of an array */
    if (*name == 'f' && a->kind == V_STRING)
        return value_float(im, strcmp(a->s.text, "inf") == 0 ? INFINITY : -INFINITY);
    if (!value_number(im, a, &x, &is_int))
        return value_unknown(im, NULL);
    value *v = *name == 'i' ? value_int(im, (int64_t)x) : value_float(im, x);
    v->is_assumed = a->is_assumed;
    return v;
}

static value *product(importer *im, value *list) {
    if (list->kind == V_SHAPE)
        list = array_shape_list(im, list, -1);
    value *v = value_int(im, 1);
    for (size_t i = 0; i < list->list.count; i++)
        v = value_operate(im, "*", v, list->list.items[i]);
    return v;
}

static value *count_bits(importer *im, const value *v) {
    value *n = value_int(im, 0);
    n->is_assumed = v->is_assumed;
    for (int64_t rest = v->i; rest > 0; rest >>= 1)
        n->i++;
    return n;
}

static value *call_function(importer *im, const char *name, value_list *args, value *named) {
    value *a = args->count ? args->items[0] : NULL;
    if (strcmp(name, "range") == 0)
        return make_range(im, args);
    if (strcmp(name, "enumerate") == 0 || strcmp(name, "zip") == 0)
        return make_rows(im, name, args, named);
    if (strcmp(name, "hasattr") == 0)
        return value_bool(im, true);
    if (strcmp(name, "list") == 0 && !a)
        return value_new(im, V_LIST);
    if (strcmp(name, "dict") == 0 && !a)
        return named;
    if (!a)
        return value_unknown(im, NULL);
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
        return find_extreme(im, name[1] == 'a', args);
    if (strcmp(name, "len") == 0)
        return count_items(im, a);
    if (strcmp(name, "int") == 0 || strcmp(name, "float") == 0 || strcmp(name, "bool") == 0)
        return convert(im, name, a);
    if (strcmp(name, "str") == 0 || strcmp(name, "repr") == 0) {
        value *v = value_new(im, V_STRING);
        chars_add(im, &v->s, "", 0, 0);
        format_value(im, &v->s, a, "", 0);
        return v;
    }
    if (strcmp(name, "dedent") == 0 && a->kind == V_STRING)
        return string_dedent(im, a);
    if (strcmp(name, "getattr") == 0 && args->count > 1 && args->items[1]->kind == V_STRING)
        return get_attribute(im, a, args->items[1]->s.text);
    if (strcmp(name, "list") == 0 && a->kind == V_LIST)
        return list_method(im, a, "copy", args);
    if (strcmp(name, "list") == 0 || strcmp(name, "tuple") == 0 || strcmp(name, "sorted") == 0)
        return a->kind == V_SHAPE ? array_shape_list(im, a, -1) : a;
    return value_unknown(im, NULL);
}

value *call_value(reader *r, value *callee, value_list *args, value *named, uint32_t at) {
    importer *im = r->im;
    const char *dot = callee->name ? strrchr(callee->name, '.') : NULL;
    const char *last = dot ? dot + 1 : callee->name;
    value *a = args->count ? args->items[0] : NULL;
    switch (callee->kind) {
    case V_MAKER:
        return kernel_make(r, callee, args, named, at);
    case V_FUNCTION:
        return run_function(im, callee, args, named);
    case V_KERNEL:
        kernel_launch(im, callee, named, r->tokens->items[at].line);
        break;
    case V_METHOD:
        if (!callee->self)
            return call_function(im, callee->name, args, named);
        if (callee->self->kind == V_KERNEL && callee->self->site->is_torch)
            kernel_launch_from(im, callee->self->site, last, args, named,
                               r->tokens->items[at].line);
        if (callee->self->kind == V_STRING)
            return string_method(im, callee->self, last, args, named);
        if (callee->self->kind == V_LIST || callee->self->kind == V_DICT)
            return list_method(im, callee->self, last, args);
        if (callee->self->kind == V_ARRAY)
            return array_method(im, callee->self, last, args, named);
        if (strcmp(last, "bit_length") == 0 && callee->self->kind == V_INT)
            return count_bits(im, callee->self);
        break;
    case V_UNKNOWN:
        if (last && (strcmp(last, "astype") == 0 || strcmp(last, "reshape") == 0) && callee->self)
            return array_method(im, callee->self, last, args, named);
        if (last && strcmp(last, "bit_length") == 0 && callee->self &&
            value_whole(im, callee->self, 0) > 0)
            return count_bits(im, callee->self);
        if (last && strcmp(last, "is_available") == 0)
            return value_bool(im, true);
        if (last && strcmp(last, "dedent") == 0 && a && a->kind == V_STRING)
            return string_dedent(im, a);
        if (last && strcmp(last, "prod") == 0 && a)
            return product(im, a);
        if (last && (strcmp(last, "lru_cache") == 0 || strcmp(last, "compile") == 0) && a)
            return a;
        if (last && array_function(im, last, args, named))
            return array_function(im, last, args, named);
        break;
    default:
        break;
    }
    if (callee->kind == V_KERNEL && callee->list.count) {
        value *outputs = value_new(im, V_LIST);
        outputs->list = callee->list;
        return outputs;
    }
    return value_unknown(im, last ? keep_print(im, "%s()", last) : NULL);
}
