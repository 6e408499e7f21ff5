/* array: what a file says about arrays: element types and sizes. Where it says nothing, an axis has 32
 * elements, the first of three and more 2, and elements are float32. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { AXIS = 32, FIRST_AXIS = 2 };

const char *type_find(const char *name) {
    static const char *const types[] = {"float32", "float16", "bfloat16", "int8",   "uint8",
                                        "int16",   "uint16",  "int32",    "uint32", "int64",
                                        "uint64",  "bool_",   "complex64"};
    static const char *const aliases[][2] = {
        {"float", "float32"}, {"half", "float16"},    {"uint", "uint32"},  {"int", "int32"},
        {"short", "int16"},   {"ushort", "uint16"},   {"char", "int8"},    {"uchar", "uint8"},
        {"bool", "bool_"},    {"bfloat", "bfloat16"}, {"size_t", "uint64"}};
    size_t n = strlen(name);
    n -= n > 2 && strcmp(name + n - 2, "_t") == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == n && strncmp(types[i], name, n) == 0)
            return types[i];
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i][0], name) == 0)
            return aliases[i][1];
    return NULL;
}

static value *new_axis(importer *im) {
    value *v = value_int(im, AXIS);
    v->is_assumed = true;
    return v;
}

array_facts *array_of(importer *im, value *v) {
    if (v->kind == V_UNKNOWN) {
        array_facts *a = keep(im, sizeof *a);
        if (v->op) { /* of two operands, the one that is an array, or both */
            value *like =
                v->self->kind == V_ARRAY || v->self->kind == V_UNKNOWN ? v->self : v->right;
            v->op = NULL;
            *a = *array_of(im, like);
        } else {
            const char *says = v->name ? assume_find(im, v->name) : NULL;
            a->type = says ? type_find(says) : NULL;
            for (int i = 0; i < 2; i++)
                a->dims[a->ndim++] = new_axis(im);
        }
        v->kind = V_ARRAY;
        v->array = a;
    }
    return v->kind == V_ARRAY ? v->array : NULL;
}

value *array_value(importer *im, value_list *dims, const char *type) {
    value *v = value_new(im, V_ARRAY);
    array_facts *a = v->array = keep(im, sizeof *a);
    a->is_firm = a->is_touched = true;
    a->type = type;
    for (size_t i = 0; dims && i < dims->count && a->ndim < ARRAY_AXES; i++) {
        value *d = value_int(im, value_whole(im, dims->items[i], AXIS));
        d->is_assumed = dims->items[i]->is_assumed;
        a->dims[a->ndim++] = d;
    }
    return v;
}

int64_t array_size(const array_facts *a) {
    int64_t n = 1;
    for (int i = 0; i < a->ndim; i++)
        n = n > INT32_MAX ? n : n * a->dims[i]->i;
    return n;
}

/* At least this many axes; new ones in front. */
static void grow(importer *im, array_facts *a, int ndim) {
    for (; a->ndim < ndim && a->ndim < ARRAY_AXES && !a->is_firm; a->ndim++) {
        memmove(a->dims + 1, a->dims, (size_t)a->ndim * sizeof *a->dims);
        a->dims[0] = new_axis(im);
    }
}

static void make_firm(importer *im, array_facts *a, int ndim) {
    if (a->is_firm || ndim < 0)
        return;
    grow(im, a, ndim);
    if (a->ndim > ndim)
        memmove(a->dims, a->dims + (a->ndim - ndim), (size_t)ndim * sizeof *a->dims);
    a->ndim = ndim;
    a->is_firm = true;
    if (ndim >= 3 && a->dims[0]->is_assumed)
        a->dims[0]->i = FIRST_AXIS;
}

value *array_shape_list(importer *im, value *shape, int unpack) {
    array_facts *a = shape->self->array;
    value *list = value_new(im, V_LIST);
    make_firm(im, a, unpack);
    for (int i = 0; i < a->ndim; i++)
        list_add(im, &list->list, NULL, a->dims[i]);
    return list;
}

value *array_shape_item(importer *im, value *shape, int64_t index) {
    array_facts *a = shape->self->array;
    grow(im, a, index < 0 ? (int)-index : (int)index + 1);
    index = index < 0 ? index + a->ndim : index;
    return index >= 0 && index < a->ndim ? a->dims[index] : value_int(im, AXIS);
}

value *array_attribute(importer *im, value *v, const char *name) {
    bool is_shape = strcmp(name, "shape") == 0, is_type = strcmp(name, "dtype") == 0;
    bool is_size = strcmp(name, "size") == 0 || strcmp(name, "nbytes") == 0;
    if (!is_shape && !is_type && !is_size && strcmp(name, "ndim") != 0) {
        if (v->kind == V_ARRAY && strcmp(name, "T") == 0)
            return v;
        return NULL;
    }
    array_facts *a = array_of(im, v);
    value *out = value_new(im, is_shape ? V_SHAPE : is_type ? V_TYPE : is_size ? V_INT : V_UNKNOWN);
    if (!is_type)
        a->is_touched = true;
    out->self = v;
    out->name = is_type ? (a->type ? a->type : "float32") : name;
    out->i = is_size ? array_size(a) : 0;
    out->is_assumed = is_size || (is_type && !a->type);
    return out;
}

static const char *find_type_argument(value_list *args, value *named) {
    value *t = dict_find(named, "dtype");
    for (size_t i = 0; !t && i < args->count; i++)
        t = args->items[i]->kind == V_TYPE ? args->items[i] : NULL;
    return t && t->kind == V_TYPE ? t->name : NULL;
}

static value *reshape(importer *im, value *self, value_list *args) {
    array_facts *a = array_of(im, self);
    if (args->count == 1 && args->items[0]->kind == V_SHAPE)
        args = &array_shape_list(im, args->items[0], -1)->list;
    else if (args->count == 1 && args->items[0]->kind == V_LIST)
        args = &args->items[0]->list;
    int64_t known = 1, total = array_size(a);
    value *out = array_value(im, args, a->type);
    for (int i = 0; i < out->array->ndim; i++)
        known *= out->array->dims[i]->i > 0 ? out->array->dims[i]->i : 1;
    for (int i = 0; i < out->array->ndim; i++)
        if (out->array->dims[i]->i < 0)
            out->array->dims[i]->i = known > 0 && total / known > 0 ? total / known : 1;
    return out;
}

value *array_method(importer *im, value *self, const char *name, value_list *args, value *named) {
    array_facts *a = array_of(im, self);
    if (strcmp(name, "reshape") == 0 && args->count > 0)
        return reshape(im, self, args);
    if (strcmp(name, "astype") == 0) {
        const char *type = find_type_argument(args, named);
        value *out = value_new(im, V_ARRAY);
        out->array = keep(im, sizeof *a);
        *out->array = *a;
        out->array->type = type ? type : a->type;
        out->name = self->name;
        return out;
    }
    return self;
}

/* mx.array and the functions that make arrays of a shape; NULL: another function. */
value *array_function(importer *im, const char *name, value_list *args, value *named) {
    static const char *const makers =
        " zeros ones full normal uniform empty randint random arange rand randn ";
    char wanted[40];
    snprintf(wanted, sizeof wanted, " %.30s ", name);
    const char *type = find_type_argument(args, named);
    value *first = args->count ? args->items[0] : NULL;
    if ((strcmp(name, "array") == 0 || strcmp(name, "tensor") == 0) && first) {
        value *list = first->kind == V_LIST ? first : value_new(im, V_LIST);
        bool is_nested = list->list.count && list->list.items[0]->kind == V_LIST;
        bool is_whole = list->list.count && list->list.items[0]->kind == V_INT;
        if (first->kind == V_UNKNOWN || first->kind == V_ARRAY)
            return first;
        value *out = array_value(im, NULL, type ? type : is_whole ? "int32" : "float32");
        if (first != list) /* a scalar: no axes */
            list_add(im, &list->list, NULL, first);
        else
            out->array->dims[out->array->ndim++] = value_int(im, (int64_t)list->list.count);
        out->array->given = is_nested ? NULL : &list->list;
        return out;
    }
    if (!strstr(makers, wanted))
        return first && first->kind == V_ARRAY ? first : NULL;
    value *shape = dict_find(named, "shape");
    shape = shape ? shape : first;
    bool is_sizes = first && args->count > 1 && args->items[1]->kind == V_INT &&
                    strchr("zoer", *name) && strcmp(name, "randint") != 0;
    if (is_sizes && first->kind == V_INT) /* torch.zeros(2, 3) */
        return array_value(im, args, type ? type : "float32");
    if (shape && shape->kind == V_SHAPE)
        shape = array_shape_list(im, shape, -1);
    value_list one = {.count = 0};
    if (shape && shape->kind != V_LIST)
        list_add(im, &one, NULL, shape);
    return array_value(im, shape && shape->kind == V_LIST ? &shape->list : &one,
                       type ? type : "float32");
}
