/* parse: finds kernels and everything else that has a host name.
 *
 * A kernel is an entry by itself, under its own name or its host_name; a template of a kernel gives
 * one entry for each explicit instantiation that has a host_name. Functions of the graphics stages
 * are dropped: they are not C++, and are never launched here. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the head of a function says. */
typedef struct {
    bool kernel, graphics;
    char *host_name;
    at max_total;
    at template_open;
} head;

/* An explicit instantiation, until all kernels are known. */
typedef struct {
    decl where;
    char *host_name;
    char *prefix;
} instantiation;

typedef struct {
    msl_unit *unit;
    instantiation *list;
    size_t count, room;
} parser;

static bool is_graphics(const tokens *t, at i) {
    static const char *const words[] = {"vertex", "fragment",     "mesh",
                                        "object", "intersection", NULL};
    return token_is_one_of(t, i, words);
}

static head read_head(const tokens *t, const decl *d) {
    head h = {.max_total = NOT_FOUND, .template_open = NOT_FOUND};
    at end = d->open != NOT_FOUND ? d->open : d->head_end;
    if (token_is(t, d->begin, "template") && token_is(t, d->begin + 1, "<"))
        h.template_open = d->begin + 1;
    attribute a = attribute_start(d->begin);
    while (attribute_next(t, end, &a)) {
        h.kernel = h.kernel || token_is(t, a.name, "kernel");
        h.graphics = h.graphics || is_graphics(t, a.name);
        if (token_is(t, a.name, "max_total_threads_per_threadgroup"))
            h.max_total = a.open;
        if (token_is(t, a.name, "host_name")) {
            free(h.host_name);
            h.host_name = attribute_string(t, &a);
        }
    }
    for (at i = d->begin; i < end && i != d->name; i++) {
        at close = token_is(t, i, "<") ? tokens_close_angle(t, i) : t->list[i].pair;
        if (close != NOT_FOUND && close > i) {
            i = close;
            continue;
        }
        h.kernel = h.kernel || token_is(t, i, "kernel");
        h.graphics = h.graphics || token_is(t, i, "vertex") || token_is(t, i, "fragment");
    }
    return h;
}

static void drop(msl_unit *u, const decl *d) {
    *ARRAY_ADD(u->dropped, u->dropped_count, u->dropped_room) = (range){d->begin, d->end};
}

static entry *add_entry(msl_unit *u, const char *host_name, size_t which, at line_of) {
    entry *e = array_new(1, sizeof *e);
    *ARRAY_ADD(u->entries, u->entry_count, u->entry_room) = e;
    e->kernel = which;
    e->signature.line = u->tokens.list[line_of].line;
    snprintf(e->signature.host_name, sizeof e->signature.host_name, "%s", host_name);
    if (strlen(host_name) >= sizeof e->signature.host_name) {
        text t = {0};
        text_print(&t, "the host name %.60s... is longer than %zu bytes", host_name,
                   sizeof e->signature.host_name - 1);
        e->problem = text_take(&t);
    }
    return e;
}

static void set_function(entry *e, const char *first, const char *second) {
    text address = {0};
    text_print(&address, "&%s%s", first, second);
    e->address = text_take(&address);
    snprintf(e->signature.function, sizeof e->signature.function, "%s", e->address + 1);
}

/* An instantiation whose template arguments are deduced: the parameters' types choose it. */
static void cast_function(const msl_unit *u, entry *e, at open) {
    msl_param *params;
    size_t count = param_read_all(u, open, e->signature.host_name, &params, &e->problem);
    text cast = {0};
    text_print(&cast, "static_cast<void (*)(");
    for (size_t i = 0; i < count; i++) {
        bool add_const = params[i].space == MSL_SPACE_CONSTANT && !strstr(params[i].type, "const ");
        text_print(&cast, "%s%s%s", i ? ", " : "", add_const ? "const " : "", params[i].type);
    }
    text_print(&cast, ")>(%s)", e->address);
    free(e->address);
    e->address = text_take(&cast);
    free(params);
}

static void finish_entry(msl_unit *u, entry *e, const template_argument *arguments, size_t count) {
    const kernel *k = &u->kernels[e->kernel];
    msl_signature *s = &e->signature;
    memcpy(s->params, k->params, k->count * sizeof *s->params);
    s->count = k->count;
    if (!e->problem && k->problem)
        e->problem = text_copy(k->problem, strlen(k->problem));
    scope names = {.unit = u, .arguments = arguments, .argument_count = count};
    int64_t limit;
    if (k->max_total != NOT_FOUND &&
        constant_evaluate(&names, k->max_total + 1, u->tokens.list[k->max_total].pair, &limit) &&
        limit > 0 && limit <= 65536)
        s->max_total_threads = (uint32_t)limit;
}

/* What the version of the language does not have and a file may use in kernels of its own. */
static char *find_unsupported(const msl_unit *u, const decl *d, const char *name) {
    static const char *const words[] = {"mpp", "tensor_ops", "matmul2d", "tensor_inline", NULL};
    const tokens *t = &u->tokens;
    text problem = {0};
    for (at i = d->open; i < d->end && u->language < 400; i++)
        if (t->list[i].kind == TOKEN_WORD && token_is_one_of(t, i, words)) {
            text_print(&problem, "kernel %s uses tensors, which are of Metal 4: --language 4.0",
                       name);
            return text_take(&problem);
        }
    return NULL;
}

static void add_kernel(msl_unit *u, const decl *d, const head *h, const char *prefix) {
    const tokens *t = &u->tokens;
    kernel *k = ARRAY_ADD(u->kernels, u->kernel_count, u->kernel_room);
    *k = (kernel){.where = *d, .template_open = h->template_open, .max_total = h->max_total};
    text name = {0};
    text_print(&name, "%s%.*s", prefix, (int)t->list[d->name].bytes, token_text(t, d->name));
    k->name = text_take(&name);
    k->count = param_read_all(u, d->open, k->name, &k->params, &k->problem);
    if (!k->problem)
        k->problem = find_unsupported(u, d, k->name);
    bool specialised = h->template_open != NOT_FOUND && token_is(t, h->template_open + 1, ">");
    if (h->template_open != NOT_FOUND && !(specialised && h->host_name))
        return;
    entry *e = add_entry(u, h->host_name ? h->host_name : k->name, u->kernel_count - 1, d->name);
    char *arguments = tokens_join(t, d->name + 1, d->open);
    set_function(e, k->name, arguments);
    free(arguments);
    e->where = (range){d->begin, d->end};
    finish_entry(u, e, NULL, 0);
}

static bool visit(void *context, const decl *d, const char *prefix) {
    parser *p = context;
    const tokens *t = &p->unit->tokens;
    if (d->name == NOT_FOUND || d->kind == DECL_CLASS)
        return true;
    head h = read_head(t, d);
    bool explicit_one = token_is(t, d->begin, "template") && h.template_open == NOT_FOUND;
    if (explicit_one && (h.host_name || h.kernel)) {
        drop(p->unit, d);
        if (h.host_name) {
            *ARRAY_ADD(p->list, p->count, p->room) =
                (instantiation){*d, h.host_name, text_copy(prefix, strlen(prefix))};
            h.host_name = NULL;
        }
    } else if (h.kernel && d->kind == DECL_FUNCTION && d->body != NOT_FOUND) {
        add_kernel(p->unit, d, &h, prefix);
    } else if ((h.kernel || h.graphics) && d->kind == DECL_FUNCTION) {
        drop(p->unit, d); /* kernels that are only declared: static and not static would clash */
    }
    free(h.host_name);
    return true;
}

/* The template that is instantiated: by the last part of its name, then by parameters. */
static size_t find_template(const msl_unit *u, const decl *d, size_t params) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < u->kernel_count; i++) {
        const kernel *k = &u->kernels[i];
        const tokens *t = &u->tokens;
        if (k->template_open == NOT_FOUND || token_is(t, k->template_open + 1, ">") ||
            t->list[d->name].bytes != t->list[k->where.name].bytes ||
            memcmp(token_text(t, d->name), token_text(t, k->where.name), t->list[d->name].bytes) !=
                0)
            continue;
        if (found == SIZE_MAX || k->count == params)
            found = i;
    }
    return found;
}

/* Template parameters with the arguments that an instantiation gives them, or their defaults. */
static size_t bind_arguments(const msl_unit *u, at parameters, at given, template_argument *out,
                             size_t room) {
    const tokens *t = &u->tokens;
    at close = tokens_close_angle(t, parameters);
    at given_end = token_is(t, given, "<") ? tokens_close_angle(t, given) : NOT_FOUND;
    at next = given + 1;
    size_t count = 0;
    if (close == NOT_FOUND)
        return 0;
    for (at i = parameters + 1; i < close && count < room;) {
        at end = tokens_end_item(t, i, close), equals = i;
        while (equals < end && !token_is(t, equals, "="))
            equals++;
        template_argument a = {token_before(equals), {equals + 1, end}};
        if (given_end != NOT_FOUND && next < given_end) {
            a.value = (range){next, tokens_end_item(t, next, given_end)};
            next = a.value.end + 1;
        }
        if (a.value.begin < a.value.end)
            out[count++] = a;
        i = end + 1;
    }
    return count;
}

/* Sizes that the template's own text does not tell: `device T *` with T = float. */
static void measure_params(const msl_unit *u, msl_signature *s, const template_argument *arguments,
                           size_t count) {
    for (size_t i = 0; i < s->count; i++) {
        msl_param *p = &s->params[i];
        char pointee[sizeof p->type];
        type_get_pointee(p->type, pointee, sizeof pointee);
        for (size_t k = 0; k < count && p->kind <= MSL_THREADGROUP && !p->value_bytes; k++) {
            if (!token_is(&u->tokens, arguments[k].name, pointee))
                continue;
            uint32_t alignment;
            char *type = tokens_join(&u->tokens, arguments[k].value.begin, arguments[k].value.end);
            p->value_bytes = type_size(type, &alignment);
            free(type);
        }
    }
}

static size_t count_params(const tokens *t, at open) {
    size_t count = 0;
    for (at i = open + 1; i < t->list[open].pair; i = tokens_end_item(t, i, t->list[open].pair) + 1)
        count++;
    return count;
}

static void add_instantiation(msl_unit *u, const instantiation *n) {
    const tokens *t = &u->tokens;
    const decl *d = &n->where;
    at end = d->open != NOT_FOUND ? d->open : d->head_end, first = d->name;
    size_t which = find_template(u, d, d->open != NOT_FOUND ? count_params(t, d->open) : SIZE_MAX);
    if (which == SIZE_MAX)
        return; /* of something that is not a kernel */
    while (token_is(t, first - 1, "::") && first >= 2)
        first -= 2;
    entry *e = add_entry(u, n->host_name, which, d->name);
    char *name = tokens_join(t, first, end);
    set_function(e, n->prefix, name);
    free(name);
    if (d->open == d->name + 1)
        cast_function(u, e, d->open);
    e->where = (range){d->begin, d->end};
    template_argument arguments[MSL_PARAMS];
    size_t count =
        bind_arguments(u, u->kernels[which].template_open, d->name + 1, arguments, MSL_PARAMS);
    finish_entry(u, e, arguments, count);
    measure_params(u, &e->signature, arguments, count);
}

void parse_kernels(msl_unit *u) {
    parser p = {.unit = u};
    decl_visit(&u->tokens, visit, &p);
    for (size_t i = 0; i < p.count; i++) {
        add_instantiation(u, &p.list[i]);
        free(p.list[i].host_name);
        free(p.list[i].prefix);
    }
    free(p.list);
}
