/* value: values of Python, texts that know where they come from, scopes, and what is assumed of names
 * that the file does not give a value. */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "internal.h"

void *keep(importer *im, size_t bytes) {
    struct block *b = array_new(1, sizeof *b + 8 + bytes);
    b->next = im->blocks;
    im->blocks = b;
    return (char *)b + (sizeof *b + 7) / 8 * 8;
}

const char *keep_text(importer *im, const char *text, size_t bytes) {
    char *copy = keep(im, bytes + 1);
    memcpy(copy, text, bytes);
    return copy;
}

const char *keep_print(importer *im, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return keep_text(im, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

value *value_new(importer *im, value_kind kind) {
    value *v = keep(im, sizeof *v);
    v->kind = kind;
    return v;
}

value *value_int(importer *im, int64_t i) {
    value *v = value_new(im, V_INT);
    v->i = i;
    return v;
}

value *value_float(importer *im, double f) {
    value *v = value_new(im, V_FLOAT);
    v->f = f;
    return v;
}

value *value_bool(importer *im, bool b) {
    value *v = value_new(im, V_BOOL);
    v->i = b;
    return v;
}

value *value_unknown(importer *im, const char *name) {
    value *v = value_new(im, V_UNKNOWN);
    v->name = name;
    return v;
}

value *value_string(importer *im, const char *text, size_t bytes, int place) {
    value *v = value_new(im, V_STRING);
    chars_add(im, &v->s, text, bytes, place);
    return v;
}

/* Texts ---------------------------------------------------------------------------------------- */

static void chars_reserve(importer *im, chars *t, size_t more) {
    if (t->bytes + more + 1 <= t->room)
        return;
    size_t room = (t->bytes + more + 16) * 2;
    char *text = keep(im, room);
    int *places = keep(im, room * sizeof *places);
    if (t->bytes) {
        memcpy(text, t->text, t->bytes);
        memcpy(places, t->places, t->bytes * sizeof *places);
    }
    *t = (chars){text, places, t->bytes, room};
}

void chars_add(importer *im, chars *t, const char *text, size_t bytes, int place) {
    chars_reserve(im, t, bytes);
    if (bytes)
        memcpy(t->text + t->bytes, text, bytes);
    for (size_t i = 0; i < bytes; i++)
        t->places[t->bytes + i] = place;
    t->bytes += bytes;
    t->text[t->bytes] = 0;
}

void chars_append(importer *im, chars *t, const chars *more) {
    chars_reserve(im, t, more->bytes);
    if (more->bytes) {
        memcpy(t->text + t->bytes, more->text, more->bytes);
        memcpy(t->places + t->bytes, more->places, more->bytes * sizeof *more->places);
    }
    t->bytes += more->bytes;
    t->text[t->bytes] = 0;
}

chars chars_slice(const chars *t, size_t begin, size_t end) {
    return (chars){t->text + begin, t->places + begin, end - begin, 0};
}

/* Lists and scopes ----------------------------------------------------------------------------- */

void list_add(importer *im, value_list *l, value *key, value *item) {
    if (l->count == l->room) {
        size_t room = l->room * 2 + 8;
        value **items = keep(im, room * sizeof *items), **keys = keep(im, room * sizeof *keys);
        for (size_t i = 0; i < l->count; i++) {
            items[i] = l->items[i];
            keys[i] = l->keys[i];
        }
        *l = (value_list){items, keys, l->count, room};
    }
    l->keys[l->count] = key;
    l->items[l->count++] = item;
}

value *dict_find(const value *dict, const char *key) {
    for (size_t i = dict ? dict->list.count : 0; i-- > 0;) {
        const value *k = dict->list.keys[i];
        if (k && k->kind == V_STRING && strcmp(k->s.text, key) == 0)
            return dict->list.items[i];
    }
    return NULL;
}

scope *scope_new(importer *im, scope *parent) {
    scope *s = keep(im, sizeof *s);
    s->parent = parent;
    return s;
}

value *scope_find(const scope *s, const char *name) {
    for (; s; s = s->parent)
        for (const struct binding *b = s->first; b; b = b->next)
            if (strcmp(b->name, name) == 0)
                return b->value;
    return NULL;
}

static void take_user_value(importer *im, value *v, const char *name) {
    const char *says = assume_find(im, name);
    if (!says || !v->is_assumed || v->kind != V_INT)
        return;
    v->i = strtoll(says, NULL, 0);
    for (size_t i = 0; i < im->assumed_count; i++)
        if (im->assumed[i].value == v)
            im->assumed[i] = im->assumed[--im->assumed_count];
}

void scope_bind(importer *im, scope *s, const char *name, value *v) {
    take_user_value(im, v, name);
    if (v->kind == V_UNKNOWN && (!v->name || strchr(v->name, '(')))
        v->name = name;
    for (struct binding *b = s->first; b; b = b->next)
        if (strcmp(b->name, name) == 0) {
            b->value = v;
            return;
        }
    struct binding *b = keep(im, sizeof *b);
    *b = (struct binding){name, v, s->first};
    s->first = b;
}

/* What a value says ---------------------------------------------------------------------------- */

bool value_equals(const value *a, const value *b) {
    if (a == b)
        return true;
    bool numbers = (a->kind == V_INT || a->kind == V_BOOL || a->kind == V_FLOAT) &&
                   (b->kind == V_INT || b->kind == V_BOOL || b->kind == V_FLOAT);
    if (numbers)
        return (a->kind == V_FLOAT ? a->f : (double)a->i) ==
               (b->kind == V_FLOAT ? b->f : (double)b->i);
    if (a->kind != b->kind)
        return false;
    if (a->kind == V_STRING)
        return a->s.bytes == b->s.bytes && memcmp(a->s.text, b->s.text, a->s.bytes) == 0;
    if (a->kind == V_TYPE)
        return strcmp(a->name, b->name) == 0;
    if (a->kind != V_LIST)
        return a->kind == V_NONE;
    for (size_t i = 0; i < a->list.count; i++)
        if (i >= b->list.count || !value_equals(a->list.items[i], b->list.items[i]))
            return false;
    return a->list.count == b->list.count;
}

int value_truth(const value *v) {
    switch (v->kind) {
    case V_NONE:
        return FALSE_VALUE;
    case V_BOOL:
    case V_INT:
        return v->i != 0;
    case V_FLOAT:
        return v->f != 0;
    case V_STRING:
        return v->s.bytes > 0;
    case V_LIST:
    case V_DICT:
        return v->list.count > 0;
    case V_UNKNOWN:
    case V_ARRAY:
        return MAYBE_VALUE;
    default:
        return TRUE_VALUE;
    }
}

/* Assumptions ---------------------------------------------------------------------------------- */

static const char *last_part(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

const char *assume_find(const importer *im, const char *name) {
    for (size_t i = 0; i < im->settings.value_count; i++) {
        const char *given = im->settings.values[i], *equals = strchr(given, '=');
        size_t n = (size_t)(equals - given);
        const char *last = last_part(name);
        if ((strlen(name) == n && strncmp(name, given, n) == 0) ||
            (strlen(last) == n && strncmp(last, given, n) == 0))
            return equals + 1;
    }
    return NULL;
}

/* Numbers for names that nothing gives one: whole, except those that kernels use as fractions. */
static double guess_number(const char *name) {
    static const struct {
        const char *part;
        double number;
    } guesses[] = {{"condition", 1}, {"eps", 1e-5},      {"scale", 0.125},  {"theta", 1e4},
                   {"bits", 4},      {"count", 2},       {"num_", 2},       {"repeat", 2},
                   {"batch", 2},     {"group_size", 32}, {"head_dim", 128}, {"dim", 128},
                   {"size", 512},    {"level", 4}};
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
        if (strstr(name, guesses[i].part))
            return guesses[i].number;
    return 32;
}

bool value_number(importer *im, value *v, double *out, bool *is_int) {
    if (v->kind == V_UNKNOWN && v->op) { /* follows from others */
        value *left = v->self, *right = v->right;
        double ignored;
        const char *op = v->op;
        v->op = NULL;
        if (!value_number(im, left, &ignored, is_int) || !value_number(im, right, &ignored, is_int))
            return false;
        *v = *value_operate(im, op, left, right);
    } else if (v->kind == V_UNKNOWN) { /* from now on it is this number */
        const char *name = v->name ? v->name : "?", *says = assume_find(im, name);
        double number = says ? strtod(says, NULL) : guess_number(last_part(name));
        bool is_whole = number == (double)(int64_t)number;
        v->kind = is_whole ? V_INT : V_FLOAT;
        v->i = (int64_t)number;
        v->f = number;
        v->is_assumed = !says;
        if (!says)
            *ARRAY_ADD(im->assumed, im->assumed_count, im->assumed_room) = (assumption){name, v};
    }
    *is_int = v->kind != V_FLOAT;
    *out = v->kind == V_FLOAT ? v->f : (double)v->i;
    return v->kind == V_INT || v->kind == V_BOOL || v->kind == V_FLOAT;
}

int64_t value_whole(importer *im, value *v, int64_t otherwise) {
    double number;
    bool is_int;
    return v && value_number(im, v, &number, &is_int) ? (int64_t)number : otherwise;
}
