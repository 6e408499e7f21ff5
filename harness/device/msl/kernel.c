/* kernel: finds kernels and everything else that has a host name, and reads parameters: kinds, indices,
 * gates, types.
 *
 * A parameter that cannot be launched (a texture, stage_in) is a problem of its kernel, not of the
 * file: the message is kept until that kernel is asked for. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters ---------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
#define MSL_KIND(NAME, attribute) #attribute,
    MSL_KINDS(MSL_KIND)
#undef MSL_KIND
};
enum { KINDS = sizeof kind_names / sizeof *kind_names, NO_INDEX = -1 };

/* One parameter while it is read. */
typedef struct {
    const msl_unit *unit;
    const char *kernel;
    at begin, end, name;
    msl_param *out;
    bool has_kind;
    char **problem;
} reading;

const char *param_spell_kind(msl_kind kind) {
    return kind_names[kind];
}

/* The first problem is kept. */
static void complain(const reading *r, const char *what) {
    if (!*r->problem)
        *r->problem =
            text_format("kernel %.60s: parameter %.40s (%.40s) %s", r->kernel,
                        r->out->name[0] ? r->out->name : "without a name", r->out->type, what);
}

static bool find_kind(const tokens *t, at name, msl_kind *kind) {
    for (int k = 0; k < KINDS; k++)
        if (token_is(t, name, kind_names[k])) {
            *kind = (msl_kind)k;
            return true;
        }
    *kind = MSL_THREADS_PER_GRID;
    if (token_is(t, name, "dispatch_threads_per_grid"))
        return true;
    *kind = MSL_THREADS_PER_SIMDGROUP;
    return token_is(t, name, "thread_execution_width");
}

/* Type, address space and the like, from the tokens that are not attributes. */
static void read_type(reading *r) {
    const tokens *t = &r->unit->tokens;
    msl_param *p = r->out;
    text type = {0};
    at last = NOT_FOUND;
    bool pointed = false;
    for (at i = r->begin; i < r->end && !token_is(t, i, "="); i++) {
        if (attribute_begins(t, i)) {
            i = t->list[i].pair;
            continue;
        }
        if (token_is(t, i, "threadgroup"))
            p->space = MSL_SPACE_THREADGROUP;
        else if (token_is(t, i, "device"))
            p->space = MSL_SPACE_DEVICE;
        else if (token_is(t, i, "constant"))
            p->space = MSL_SPACE_CONSTANT;
        else if (token_is(t, i, "const"))
            p->is_const = p->is_const || !pointed;
        else if (token_is_one_of(t, i, "* [ &"))
            pointed = true;
        p->is_reference = p->is_reference || token_is(t, i, "&");
        p->is_coherent = p->is_coherent || token_is(t, i, "coherent");
        bool is_space = token_is_one_of(t, i, "device constant thread threadgroup coherent");
        if (token_is(t, i, "coherent") && token_is(t, i + 1, "("))
            i = t->list[i + 1].pair;
        else if (!is_space && i != r->name) {
            if (last != NOT_FOUND && tokens_want_blank(t, last, i))
                text_add(&type, " ", 1);
            text_add(&type, token_text(t, i), t->list[i].bytes);
            last = i;
        }
    }
    p->is_const = p->is_const || p->space == MSL_SPACE_CONSTANT;
    char *joined = text_take(&type);
    snprintf(p->type, sizeof p->type, "%s", joined);
    free(joined);
    if (strncmp(p->type, "tensor<", 7) == 0 || strncmp(p->type, "metal::tensor<", 14) == 0)
        complain(r, "is a tensor that the host makes, and only those that a kernel makes from a "
                    "pointer (tensor_inline) are supported");
    if (!pointed && p->space != MSL_SPACE_NONE)
        complain(r, "has an address space and is neither a pointer nor a reference");
    if (!pointed)
        p->space = MSL_SPACE_NONE;
}

static void read_index(const reading *r, const attribute *a, int limit) {
    const tokens *t = &r->unit->tokens;
    scope s = {.unit = r->unit};
    int64_t value = -1;
    if (a->open == NOT_FOUND || !constant_evaluate(&s, a->open + 1, t->list[a->open].pair, &value))
        complain(r, "has an index whose value is unknown");
    else if (value < 0 || value >= limit)
        complain(r, limit == MSL_BUFFERS ? "has a buffer index that is not within 0 to 30"
                                         : "has a threadgroup index that is not within 0 to 7");
    else
        r->out->index = (int)value;
}

static void read_attributes(reading *r) {
    const tokens *t = &r->unit->tokens;
    msl_param *p = r->out;
    attribute a = attribute_start(r->begin);
    while (attribute_next(t, r->end, &a)) {
        msl_kind kind;
        if (token_is(t, a.name, "function_constant") && a.open != NOT_FOUND) {
            tokens_spell(t, a.open + 1, t->list[a.open].pair, p->gate, sizeof p->gate);
        } else if (find_kind(t, a.name, &kind)) {
            p->kind = kind;
            r->has_kind = p->is_numbered = true;
            if (kind == MSL_BUFFER)
                read_index(r, &a, MSL_BUFFERS);
            else if (kind == MSL_THREADGROUP)
                read_index(r, &a, MSL_THREADGROUPS);
        } else if (!token_is(t, a.name, "maybe_unused")) {
            char what[96];
            snprintf(what, sizeof what, "is [[%.*s]], which is not supported",
                     TOKEN_SPELL(t, a.name));
            complain(r, what);
        }
    }
}

static void read_param(reading *r) {
    const tokens *t = &r->unit->tokens;
    msl_param *p = r->out;
    *p = (msl_param){.kind = MSL_BUFFER, .index = NO_INDEX, .line = t->list[r->begin].line};
    r->name = decl_find_param_name(t, r->begin, r->end);
    if (r->name != NOT_FOUND) {
        tokens_spell(t, r->name, r->name + 1, p->name, sizeof p->name);
        p->line = t->list[r->name].line;
    }
    read_type(r);
    read_attributes(r);
    bool memory = p->space != MSL_SPACE_NONE;
    if (!r->has_kind && !memory)
        complain(r, "has no attribute, and is not a pointer or reference to device, constant or "
                    "threadgroup memory");
    if (r->has_kind && p->kind <= MSL_THREADGROUP && !memory)
        complain(r, "is not a pointer or reference to memory, and only those are supported");
    if (!r->has_kind && p->space == MSL_SPACE_THREADGROUP)
        p->kind = MSL_THREADGROUP;
    if (p->kind > MSL_THREADGROUP) {
        p->dimensions = type_count_dimensions(p->type);
    } else {
        char pointee[sizeof p->type];
        uint32_t alignment;
        type_get_pointee(p->type, pointee, sizeof pointee);
        p->value_bytes = type_size(pointee, &alignment);
    }
}

/* Parameters without an index take the smallest ones that are free, in order. */
static void number_params(msl_param *params, size_t count, msl_kind kind, int limit,
                          const char *kernel_name, char **problem) {
    uint64_t taken = 0;
    for (size_t i = 0; i < count; i++)
        if (params[i].kind == kind && params[i].index >= 0)
            taken |= 1ull << params[i].index;
    int next = 0;
    for (size_t i = 0; i < count; i++) {
        if (params[i].kind != kind || params[i].index >= 0)
            continue;
        while (taken >> next & 1)
            next++;
        if (next >= limit && !*problem)
            *problem =
                text_format("kernel %.60s: parameter %.40s would be %s %d, and the last is %d",
                            kernel_name, params[i].name, kind_names[kind], next, limit - 1);
        if (next >= limit)
            return;
        params[i].index = next++;
    }
}

static size_t read_params(const msl_unit *u, at open, const char *kernel_name, msl_param **out,
                          char **problem) {
    const tokens *t = &u->tokens;
    at close = t->list[open].pair;
    size_t count = 0, room = 0;
    msl_param *params = NULL;
    for (at i = open + 1, end; i < close; i = end + 1) {
        end = tokens_end_item(t, i, close);
        if (end == i || (end == i + 1 && token_is(t, i, "void")))
            continue;
        reading r = {u,     kernel_name, i, end, NOT_FOUND, ARRAY_ADD(params, count, room),
                     false, problem};
        read_param(&r);
    }
    if (count > MSL_PARAMS && !*problem)
        *problem = text_format("kernel %.60s has %zu parameters, and %d is the most", kernel_name,
                               count, MSL_PARAMS);
    count = count > MSL_PARAMS ? MSL_PARAMS : count;
    number_params(params, count, MSL_BUFFER, MSL_BUFFERS, kernel_name, problem);
    number_params(params, count, MSL_THREADGROUP, MSL_THREADGROUPS, kernel_name, problem);
    *out = params;
    return count;
}

/* Kernels: an entry by itself, under its own name or its host_name; a template of a kernel gives one
 * entry for each explicit instantiation that has a host_name. Functions of the graphics stages are
 * dropped: they are not C++, and are never launched here. ------------------------------------- */

/* What the head of a function says. */
typedef struct {
    bool kernel, graphics;
    char *host_name;
    at max_total;
    at template_open;
} head;

/* An explicit instantiation, until all kernels are known. */
typedef struct {
    const decl *where;
    char *host_name;
} instantiation;

typedef struct {
    instantiation *list;
    size_t count, room;
} instantiations;

static head read_head(const tokens *t, const decl *d) {
    head h = {.max_total = NOT_FOUND, .template_open = NOT_FOUND};
    at end = d->open != NOT_FOUND ? d->open : d->head_end;
    if (token_is(t, d->begin, "template") && token_is(t, d->begin + 1, "<"))
        h.template_open = d->begin + 1;
    attribute a = attribute_start(d->begin);
    while (attribute_next(t, end, &a)) {
        h.kernel = h.kernel || token_is(t, a.name, "kernel");
        h.graphics =
            h.graphics || token_is_one_of(t, a.name, "vertex fragment mesh object intersection");
        if (token_is(t, a.name, "max_total_threads_per_threadgroup"))
            h.max_total = a.open;
        if (token_is(t, a.name, "host_name")) {
            free(h.host_name);
            h.host_name = a.open == NOT_FOUND ? text_copy("", 0)
                                              : tokens_unquote(t, a.open + 1, t->list[a.open].pair);
        }
    }
    for (at i = d->begin; i < end && i != d->name; i++) {
        at close = token_is(t, i, "<") ? tokens_close_angle(t, i) : t->list[i].pair;
        if (close != NOT_FOUND && close > i) {
            i = close;
            continue;
        }
        h.kernel = h.kernel || token_is(t, i, "kernel");
        h.graphics = h.graphics || token_is_one_of(t, i, "vertex fragment");
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
    if (strlen(host_name) >= sizeof e->signature.host_name)
        e->problem = text_format("the host name %.60s... is longer than %zu bytes", host_name,
                                 sizeof e->signature.host_name - 1);
    return e;
}

static void set_function(entry *e, const char *first, const char *second) {
    e->address = text_format("&%s%s", first, second);
    snprintf(e->signature.function, sizeof e->signature.function, "%s", e->address + 1);
}

/* An instantiation whose template arguments are deduced: the parameters' types choose it. */
static void cast_function(const msl_unit *u, entry *e, at open) {
    msl_param *params;
    size_t count = read_params(u, open, e->signature.host_name, &params, &e->problem);
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
    bool has_tensors =
        tokens_have(&u->tokens, d->open, d->end, "mpp tensor_ops matmul2d tensor_inline");
    return has_tensors && u->language < 400
               ? text_format("kernel %s uses tensors, which are of Metal 4: --language 4.0", name)
               : NULL;
}

static void add_kernel(msl_unit *u, const decl *d, const head *h) {
    const tokens *t = &u->tokens;
    kernel *k = ARRAY_ADD(u->kernels, u->kernel_count, u->kernel_room);
    *k = (kernel){.where = *d, .template_open = h->template_open, .max_total = h->max_total};
    k->name = text_format("%s%.*s", d->prefix, TOKEN_SPELL(t, d->name));
    k->count = read_params(u, d->open, k->name, &k->params, &k->problem);
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

static void read_decl(msl_unit *u, const decl *d, instantiations *later) {
    const tokens *t = &u->tokens;
    if (d->name == NOT_FOUND || d->kind == DECL_CLASS)
        return;
    head h = read_head(t, d);
    bool explicit_one = token_is(t, d->begin, "template") && h.template_open == NOT_FOUND;
    if (explicit_one && (h.host_name || h.kernel)) {
        drop(u, d);
        if (h.host_name) {
            *ARRAY_ADD(later->list, later->count, later->room) = (instantiation){d, h.host_name};
            return;
        }
    } else if (h.kernel && d->kind == DECL_FUNCTION && d->body != NOT_FOUND) {
        add_kernel(u, d, &h);
    } else if ((h.kernel || h.graphics) && d->kind == DECL_FUNCTION) {
        drop(u, d); /* kernels that are only declared: static and not static would clash */
    }
    free(h.host_name);
}

/* The template that is instantiated: by the last part of its name, then by parameters. */
static size_t find_template(const msl_unit *u, const decl *d, size_t params) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < u->kernel_count; i++) {
        const kernel *k = &u->kernels[i];
        const tokens *t = &u->tokens;
        if (k->template_open == NOT_FOUND || token_is(t, k->template_open + 1, ">") ||
            !token_is_same(t, d->name, k->where.name))
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
        at end = tokens_end_item(t, i, close), equals = tokens_find(t, i, end, "=");
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
            char type[sizeof p->type];
            tokens_spell(&u->tokens, arguments[k].value.begin, arguments[k].value.end, type,
                         sizeof type);
            p->value_bytes = type_size(type, &alignment);
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
    const decl *d = n->where;
    at end = d->open != NOT_FOUND ? d->open : d->head_end, first = d->name;
    size_t which = find_template(u, d, d->open != NOT_FOUND ? count_params(t, d->open) : SIZE_MAX);
    if (which == SIZE_MAX)
        return; /* of something that is not a kernel */
    while (token_is(t, first - 1, "::") && first >= 2)
        first -= 2;
    entry *e = add_entry(u, n->host_name, which, d->name);
    char *name = tokens_join(t, first, end);
    set_function(e, d->prefix, name);
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

void kernel_read_all(msl_unit *u) {
    instantiations later = {0};
    for (size_t i = 0; i < u->tokens.decl_count; i++)
        read_decl(u, &u->tokens.decls[i], &later);
    for (size_t i = 0; i < later.count; i++) {
        add_instantiation(u, &later.list[i]);
        free(later.list[i].host_name);
    }
    free(later.list);
}
