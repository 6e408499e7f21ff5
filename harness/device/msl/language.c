/* language: C++ that is not MSL, where it can be seen in the tokens: recursion, virtual methods,
 * kernels that return a value, have another's name or call kernels, threadgroup variables with a first value, buffers by value,
 * buffer indices past the last, helpers that are declared and never defined.
 *
 * Calls are told by name. Of a name that has several functions (overloads, templates, methods)
 * nothing is said: which one is meant only the compiler knows. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    at name;
    at body, end; /* of the definition; NOT_FOUND: only declared */
    size_t definitions;
    size_t declarations;
    bool is_plain;    /* no template, kernel or operator */
    bool is_kernel;   /* and nothing else has the name */
    bool is_template; /* of functions that would be plain */
    int state;        /* of the search: 0 new, 1 on the way, 2 done */
} function;

typedef struct {
    const msl_unit *unit;
    remark_list *out;
    function *list;
    size_t count, room;
} functions;

static bool is_same(const tokens *t, at a, at b) {
    return t->list[a].bytes == t->list[b].bytes &&
           memcmp(token_text(t, a), token_text(t, b), t->list[a].bytes) == 0;
}

static function *find_function(const functions *f, at name) {
    for (size_t i = 0; i < f->count; i++)
        if (is_same(&f->unit->tokens, f->list[i].name, name))
            return &f->list[i];
    return NULL;
}

/* What stands before the name tells what it is. */
static bool is_plain_function(const tokens *t, const decl *d) {
    static const char *const words[] = {"kernel",  "operator", "friend", "using",
                                        "typedef", "virtual",  "extern", NULL};
    if (d->name == NOT_FOUND || t->list[d->name].kind != TOKEN_WORD ||
        token_is(t, token_before(d->name), "::") || token_is(t, token_before(d->name), "~"))
        return false;
    for (at i = d->begin; i < d->name; i++)
        if (token_is_one_of(t, i, words))
            return false;
    return true;
}

static bool visit(void *context, const decl *d, const char *prefix) {
    functions *f = context;
    const tokens *t = &f->unit->tokens;
    (void)prefix;
    if (d->kind != DECL_FUNCTION || d->name == NOT_FOUND)
        return true;
    function *known = find_function(f, d->name);
    if (!known) {
        known = ARRAY_ADD(f->list, f->count, f->room);
        *known = (function){.name = d->name,
                            .body = NOT_FOUND,
                            .is_plain = true,
                            .is_kernel = true,
                            .is_template = true};
    }
    bool is_template = token_is(t, d->begin, "template"), is_plain = is_plain_function(t, d);
    bool is_kernel = false;
    for (at i = d->begin; i < d->name; i++)
        is_kernel = is_kernel || token_is(t, i, "kernel");
    known->declarations++;
    known->is_kernel = known->is_kernel && is_kernel;
    known->is_plain = known->is_plain && is_plain && !is_template;
    known->is_template = known->is_template && is_plain && is_template;
    if (d->body != NOT_FOUND) {
        known->definitions++;
        known->body = d->body;
        known->end = d->end;
    }
    return true;
}

static bool is_member(const tokens *t, at i) {
    at before = token_before(i);
    return token_is(t, before, ".") || token_is(t, before, "->") || token_is(t, before, "::");
}

static void tell(const functions *f, at i, const char *rule, const char *what) {
    const tokens *t = &f->unit->tokens;
    remark_add(f->out, REMARK_ERROR, token_file(t, i), t->list[i].line, 1, rule, "'%.*s' %s",
               (int)t->list[i].bytes, token_text(t, i), what);
}

/* A template that calls its own name without naming arguments, where the name has one meaning only:
 * no other function, nothing of the language, no choice at compile time that could end it. */
static bool calls_itself(const functions *f, const function *one) {
    static const char *const library[] = {
        "abs",   "all",   "any",   "ceil",     "clamp", "cos",    "cross", "distance",  "dot",
        "exp",   "exp2",  "fabs",  "floor",    "fma",   "fmax",   "fmin",  "fract",     "isnan",
        "log",   "log2",  "max",   "min",      "mix",   "length", "pow",   "normalize", "round",
        "rsqrt", "rint",  "sin",   "sqrt",     "sign",  "select", "tan",   "simd_sum",  "simd_max",
        "tanh",  "trunc", "isinf", "simd_min", NULL};
    const tokens *t = &f->unit->tokens;
    if (!one->is_template || one->definitions != 1 || one->declarations != 1 ||
        token_is_one_of(t, one->name, library))
        return false;
    bool found = false;
    for (at i = one->name; i < one->end; i++) {
        if (token_is(t, i, "constexpr") || token_is(t, i, "..."))
            return false;
        found = found || (i > one->body && t->list[i].kind == TOKEN_WORD &&
                          token_is(t, i + 1, "(") && !is_member(t, i) && is_same(t, i, one->name));
    }
    return found;
}

/* Follows calls; one that leads back to a function on the way is a recursion. */
static void follow(const functions *f, function *from) {
    const tokens *t = &f->unit->tokens;
    from->state = 1;
    for (at i = from->body; i < from->end; i++) {
        if (t->list[i].kind != TOKEN_WORD || !token_is(t, i + 1, "(") || is_member(t, i))
            continue;
        function *to = find_function(f, i);
        if (!to || !to->is_plain || to->definitions != 1)
            continue;
        if (to->state == 1)
            tell(f, i, "recursion", "calls itself in the end, and MSL has no recursion");
        else if (to->state == 0)
            follow(f, to);
    }
    from->state = 2;
}

/* Also with template arguments. */
static void check_calls(const functions *f, const kernel *k) {
    const tokens *t = &f->unit->tokens;
    for (at i = k->where.body + 1; i < k->where.end; i++) {
        if (t->list[i].kind != TOKEN_WORD || is_member(t, i))
            continue;
        at angle = token_is(t, i + 1, "<") ? tokens_close_angle(t, i + 1) : i;
        const function *to = find_function(f, i);
        if (to && to->is_kernel && angle != NOT_FOUND && token_is(t, angle + 1, "("))
            tell(f, i, "kernel-call", "is a kernel, and a kernel cannot call a kernel");
    }
}

static bool is_called(const functions *f, at name) {
    const tokens *t = &f->unit->tokens;
    for (at i = 0; i < t->count; i++)
        if (i != name && t->list[i].kind == TOKEN_WORD && token_is(t, i + 1, "(") &&
            !is_member(t, i) && is_same(t, i, name))
            return true;
    return false;
}

static void check_functions(const msl_unit *u, remark_list *out) {
    functions f = {.unit = u, .out = out};
    decl_visit(&u->tokens, visit, &f);
    for (size_t i = 0; i < f.count; i++) {
        function *one = &f.list[i];
        if ((one->is_plain || one->is_template) && one->definitions == 0 &&
            is_called(&f, one->name))
            tell(&f, one->name, "undefined", "is declared and called, and nothing defines it");
        if (one->is_plain && one->definitions == 1 && one->state == 0)
            follow(&f, one);
        if (calls_itself(&f, one))
            tell(&f, one->name, "recursion", "calls itself, and MSL has no recursion");
    }
    for (size_t i = 0; i < u->kernel_count; i++)
        check_calls(&f, &u->kernels[i]);
    free(f.list);
}

static void check_words(const msl_unit *u, remark_list *out) {
    const tokens *t = &u->tokens;
    functions f = {.unit = u, .out = out};
    for (at i = 0; i < t->count; i++) {
        if (t->list[i].kind != TOKEN_WORD)
            continue;
        if (token_is(t, i, "virtual"))
            tell(&f, i, "language", "is not part of MSL: it has no virtual methods");
    }
}

/* Is it a class of this file? */
static bool is_class(const tokens *t, const char *type) {
    static const char *const words[] = {"struct", "class", "union", "enum", NULL};
    type += strncmp(type, "const ", 6) == 0 ? 6 : 0;
    for (at i = 0; i + 1 < t->count; i++)
        if (token_is_one_of(t, i, words) && token_is(t, i + 1, type))
            return true;
    return false;
}

static void check_kernel(const msl_unit *u, const kernel *k, remark_list *out) {
    const tokens *t = &u->tokens;
    functions f = {.unit = u, .out = out};
    bool is_void = false;
    for (at i = k->where.begin; i < k->where.name; i++)
        is_void = is_void || token_is(t, i, "void");
    if (!is_void)
        tell(&f, k->where.name, "kernel-result",
             "is a kernel that returns a value; it must be void");
    for (const kernel *o = u->kernels; o < k; o++)
        if (strcmp(o->name, k->name) == 0 && o->template_open == k->template_open)
            tell(&f, k->where.name, "language",
                 "is the name of another kernel: kernels cannot be overloaded");
    for (at i = k->where.body; i < k->where.end; i++) {
        at value = token_is(t, i, "threadgroup") ? storage_find_value(u, i) : NOT_FOUND;
        if (value != NOT_FOUND)
            remark_add(
                out, REMARK_WARNING, token_file(t, i), t->list[i].line, 1, "threadgroup-value",
                "the first value of a threadgroup variable is taken by Apple's compiler, and "
                "MSL promises none: one thread stores it, then a barrier");
    }
    for (size_t i = 0; i < k->count; i++) {
        const msl_param *p = &k->params[i];
        if (p->kind != MSL_BUFFER)
            continue;
        uint32_t alignment; /* textures and the like are no buffers, and have no size */
        bool is_value = !strpbrk(p->type, "*&[") &&
                        (p->space != MSL_SPACE_NONE || type_size(p->type, &alignment) > 0 ||
                         is_class(t, p->type));
        if (is_value)
            remark_add(out, REMARK_ERROR, token_file(t, k->where.name), t->list[k->where.name].line,
                       1, "buffer-value",
                       "kernel %s: %s is a buffer and %s is no pointer or reference", k->name,
                       p->name, p->type);
    }
}

void language_check(const msl_unit *u, remark_list *out) {
    for (size_t i = 0; i < u->kernel_count; i++)
        check_kernel(u, &u->kernels[i], out);
    check_words(u, out);
    check_functions(u, out);
}
