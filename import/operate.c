/* operate: what operators give, of values that are known and of those that are not. */
#include <math.h>
#include <string.h>

#include "internal.h"

static double divide_down(double a, double b) {
    return b == 0 ? 0 : floor(a / b);
}

static value *compute(importer *im, const char *op, double a, double b, bool is_int) {
    int64_t x = (int64_t)a, y = (int64_t)b;
    double f = 0;
    if (strcmp(op, "<<") == 0 || strcmp(op, ">>") == 0)
        return value_int(im, y < 0 || y > 62 ? 0 : *op == '<' ? x * ((int64_t)1 << y) : x >> y);
    switch (*op) {
    case '+':
        f = a + b;
        break;
    case '-':
        f = a - b;
        break;
    case '*':
        f = op[1] ? pow(a, b) : a * b;
        is_int = is_int && !(op[1] && b < 0);
        break;
    case '/':
        f = op[1] ? divide_down(a, b) : b == 0 ? 0 : a / b;
        is_int = is_int && op[1];
        break;
    case '%':
        f = a - b * divide_down(a, b);
        break;
    default:
        return value_int(im, *op == '&' ? (x & y) : *op == '|' ? (x | y) : (x ^ y));
    }
    return is_int && fabs(f) < 9e18 ? value_int(im, (int64_t)f) : value_float(im, f);
}

static value *repeat(importer *im, const value *v, int64_t times) {
    value *out = value_new(im, v->kind);
    if (v->kind == V_STRING)
        chars_add(im, &out->s, "", 0, 0);
    for (int64_t i = 0; i < times && i < 4096; i++) {
        if (v->kind == V_STRING)
            chars_append(im, &out->s, &v->s);
        for (size_t k = 0; k < v->list.count; k++)
            list_add(im, &out->list, NULL, v->list.items[k]);
    }
    return out;
}

static value *join_values(importer *im, const value *a, const value *b) {
    value *out = value_new(im, a->kind);
    if (a->kind == V_STRING) {
        chars_append(im, &out->s, &a->s);
        chars_append(im, &out->s, &b->s);
        return out;
    }
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < (side ? b : a)->list.count; i++)
            list_add(im, &out->list, NULL, (side ? b : a)->list.items[i]);
    return out;
}

value *value_operate(importer *im, const char *op, value *a, value *b) {
    if (a->kind == V_SHAPE)
        a = array_shape_list(im, a, -1);
    if (b->kind == V_SHAPE)
        b = array_shape_list(im, b, -1);
    bool a_repeats = a->kind == V_STRING || a->kind == V_LIST;
    if (*op == '+' && a->kind == b->kind && a_repeats)
        return join_values(im, a, b);
    if (strcmp(op, "*") == 0 && a_repeats)
        return repeat(im, a, value_whole(im, b, 0));
    if (a->kind == V_ARRAY || b->kind == V_ARRAY)
        return a->kind == V_ARRAY ? a : b;
    double x, y;
    bool x_int, y_int;
    if (a->kind == V_UNKNOWN || b->kind == V_UNKNOWN) {
        if (a_repeats || b->kind == V_STRING || b->kind == V_LIST)
            return value_unknown(im, NULL);
        value *later = value_unknown(im, NULL);
        later->op = op;
        later->self = a;
        later->right = b;
        return later;
    }
    if (!value_number(im, a, &x, &x_int) || !value_number(im, b, &y, &y_int))
        return value_unknown(im, NULL);
    value *v = compute(im, op, x, y, x_int && y_int);
    v->is_assumed = a->is_assumed || b->is_assumed;
    return v;
}

/* ndim of an array: a guard says how many axes it must have. */
static void learn_axes(importer *im, const char *op, value *a, value *b) {
    if (*op == '!' && a->kind == V_UNKNOWN && a->self && b->kind == V_INT && b->i > 0 &&
        b->i <= ARRAY_AXES && a->name && strcmp(a->name, "ndim") == 0)
        array_shape_list(im, array_attribute(im, a->self, "shape"), (int)b->i);
}

static bool contains(const value *list, const value *item, bool *is_known) {
    bool found = false;
    *is_known = list->kind == V_LIST || list->kind == V_DICT || list->kind == V_STRING;
    if (list->kind == V_STRING)
        return item->kind == V_STRING && strstr(list->s.text, item->s.text);
    for (size_t i = 0; i < list->list.count; i++)
        found |=
            value_equals(list->kind == V_DICT ? list->list.keys[i] : list->list.items[i], item);
    *is_known &= item->kind != V_UNKNOWN && !item->is_assumed;
    return found;
}

value *value_compare(importer *im, const char *op, value *a, value *b) {
    double x, y;
    bool ints, known = true, result;
    learn_axes(im, op, a, b);
    if (strcmp(op, "is") == 0 || strcmp(op, "is not") == 0) {
        /* What is unknown may be None, and a kernel may be missing: both ways are read. */
        known = a->kind != V_KERNEL && a->kind != V_UNKNOWN && a->kind != V_ARRAY;
        result = value_equals(a, b) == (op[2] == 0);
    } else if (strcmp(op, "in") == 0 || strcmp(op, "not in") == 0) {
        result = contains(b, a, &known) == (*op == 'i');
    } else if (a->kind == V_UNKNOWN || b->kind == V_UNKNOWN || a->is_assumed || b->is_assumed ||
               a->kind == V_SHAPE || b->kind == V_SHAPE || a->kind == V_ARRAY) {
        known = result = false;
    } else if (strcmp(op, "==") == 0 || strcmp(op, "!=") == 0) {
        result = value_equals(a, b) == (*op == '=');
    } else {
        known = value_number(im, a, &x, &ints) && value_number(im, b, &y, &ints);
        result = known && (*op == '<' ? (op[1] ? x <= y : x < y) : op[1] ? x >= y : x > y);
    }
    return known ? value_bool(im, result) : value_unknown(im, "condition");
}
