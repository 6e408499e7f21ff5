/* param: reads the parameter list of a kernel: kinds, indices, gates, types.
 *
 * A parameter that cannot be launched (a texture, stage_in) is a problem of its kernel, not of the
 * file: the message is kept until that kernel is asked for. */
#include "internal.h"

#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [MSL_BUFFER] = "buffer",
    [MSL_THREADGROUP] = "threadgroup",
    [MSL_THREAD_POSITION_IN_GRID] = "thread_position_in_grid",
    [MSL_THREAD_POSITION_IN_THREADGROUP] = "thread_position_in_threadgroup",
    [MSL_THREADGROUP_POSITION_IN_GRID] = "threadgroup_position_in_grid",
    [MSL_THREADS_PER_THREADGROUP] = "threads_per_threadgroup",
    [MSL_DISPATCH_THREADS_PER_THREADGROUP] = "dispatch_threads_per_threadgroup",
    [MSL_THREADGROUPS_PER_GRID] = "threadgroups_per_grid",
    [MSL_THREADS_PER_GRID] = "threads_per_grid",
    [MSL_THREAD_INDEX_IN_THREADGROUP] = "thread_index_in_threadgroup",
    [MSL_SIMDGROUP_INDEX_IN_THREADGROUP] = "simdgroup_index_in_threadgroup",
    [MSL_THREAD_INDEX_IN_SIMDGROUP] = "thread_index_in_simdgroup",
    [MSL_THREADS_PER_SIMDGROUP] = "threads_per_simdgroup",
    [MSL_SIMDGROUPS_PER_THREADGROUP] = "simdgroups_per_threadgroup",
    [MSL_DISPATCH_SIMDGROUPS_PER_THREADGROUP] = "dispatch_simdgroups_per_threadgroup",
    [MSL_THREAD_INDEX_IN_QUADGROUP] = "thread_index_in_quadgroup",
    [MSL_QUADGROUP_INDEX_IN_THREADGROUP] = "quadgroup_index_in_threadgroup",
    [MSL_QUADGROUPS_PER_THREADGROUP] = "quadgroups_per_threadgroup",
    [MSL_GRID_ORIGIN] = "grid_origin",
    [MSL_GRID_SIZE] = "grid_size",
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
    if (*r->problem)
        return;
    text t = {0};
    text_print(&t, "kernel %.60s: parameter %.40s (%.40s) %s", r->kernel,
               r->out->name[0] ? r->out->name : "without a name", r->out->type, what);
    *r->problem = text_take(&t);
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

/* Words that are never the name of a parameter. */
static bool is_type_word(const tokens *t, at i) {
    static const char *const words[] = {"const",       "volatile", "device",   "constant", "thread",
                                        "threadgroup", "struct",   "unsigned", "signed",   "bool",
                                        "char",        "short",    "int",      "long",     "float",
                                        "half",        "uint",     "ushort",   "uchar",    "ulong",
                                        "void",        "restrict", "typename", "auto",     NULL};
    return token_is_one_of(t, i, words);
}

at param_find_name(const tokens *t, at begin, at end) {
    at name = NOT_FOUND;
    uint32_t words = 0; /* that can be a type's name or the parameter's */
    bool typed = false;
    for (at i = begin; i < end && !token_is(t, i, "="); i++) {
        if (attribute_begins(t, i)) {
            i = attribute_skip(t, i) - 1;
        } else if (token_is(t, i, "(") && (token_is(t, i + 1, "*") || token_is(t, i + 1, "&"))) {
            at inside = t->list[i].pair - 1;
            return t->list[inside].kind == TOKEN_WORD ? inside : NOT_FOUND;
        } else if (token_is(t, i, "(") || token_is(t, i, "[")) {
            i = t->list[i].pair;
        } else if (token_is(t, i, "<")) {
            at close = tokens_close_angle(t, i);
            i = close < end ? close : i;
            name = NOT_FOUND;
        } else if (t->list[i].kind != TOKEN_WORD) {
            name = NOT_FOUND;
        } else if (is_type_word(t, i)) {
            static const char *const qualifiers[] = {"const",  "volatile", "restrict",    "device",
                                                     "thread", "constant", "threadgroup", NULL};
            typed = typed || !token_is_one_of(t, i, qualifiers);
            name = NOT_FOUND;
        } else {
            words += !token_is(t, i - 1, "::");
            name = token_is(t, i - 1, "::") && i > begin ? NOT_FOUND : i;
        }
    }
    return words + typed > 1 ? name : NOT_FOUND;
}

static bool is_space_word(const tokens *t, at i) {
    static const char *const words[] = {"device",      "constant", "thread",
                                        "threadgroup", "coherent", NULL};
    return token_is_one_of(t, i, words);
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
            i = attribute_skip(t, i) - 1;
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
        else if (token_is(t, i, "*") || token_is(t, i, "[") || token_is(t, i, "&"))
            pointed = true;
        p->is_reference = p->is_reference || token_is(t, i, "&");
        if (is_space_word(t, i) && token_is(t, i, "coherent") && token_is(t, i + 1, "("))
            i = t->list[i + 1].pair;
        else if (!is_space_word(t, i) && i != r->name) {
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
            char *gate = tokens_join(t, a.open + 1, t->list[a.open].pair);
            snprintf(p->gate, sizeof p->gate, "%s", gate);
            free(gate);
        } else if (find_kind(t, a.name, &kind)) {
            p->kind = kind;
            r->has_kind = p->is_numbered = true;
            if (kind == MSL_BUFFER)
                read_index(r, &a, MSL_BUFFERS);
            else if (kind == MSL_THREADGROUP)
                read_index(r, &a, MSL_THREADGROUPS);
        } else {
            char what[96];
            snprintf(what, sizeof what, "is [[%.*s]], which is not supported",
                     (int)t->list[a.name].bytes, token_text(t, a.name));
            if (!token_is(t, a.name, "maybe_unused"))
                complain(r, what);
        }
    }
}

static void read_param(reading *r) {
    const tokens *t = &r->unit->tokens;
    msl_param *p = r->out;
    *p = (msl_param){.kind = MSL_BUFFER, .index = NO_INDEX, .line = t->list[r->begin].line};
    r->name = param_find_name(t, r->begin, r->end);
    if (r->name != NOT_FOUND) {
        char *name = token_copy(t, r->name);
        snprintf(p->name, sizeof p->name, "%s", name);
        free(name);
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
        if (next >= limit) {
            text t = {0};
            text_print(&t, "kernel %.60s: parameter %.40s would be %s %d, and the last is %d",
                       kernel_name, params[i].name, kind_names[kind], next, limit - 1);
            if (!*problem)
                *problem = text_take(&t);
            free(t.data);
            return;
        }
        params[i].index = next++;
    }
}

size_t param_read_all(const msl_unit *u, at open, const char *kernel_name, msl_param **out,
                      char **problem) {
    const tokens *t = &u->tokens;
    at close = t->list[open].pair;
    size_t count = 0, room = 0;
    msl_param *params = NULL;
    for (at i = open + 1; i < close;) {
        at end = tokens_end_item(t, i, close);
        bool nothing = end == i + 1 && token_is(t, i, "void");
        if (end > i && !nothing) {
            params = array_grow(params, count, &room, sizeof *params);
            reading r = {.unit = u,
                         .kernel = kernel_name,
                         .begin = i,
                         .end = end,
                         .out = &params[count++],
                         .problem = problem};
            read_param(&r);
        }
        i = end + 1;
    }
    if (count > MSL_PARAMS && !*problem) {
        text why = {0};
        text_print(&why, "kernel %.60s has %zu parameters, and %d is the most", kernel_name, count,
                   MSL_PARAMS);
        *problem = text_take(&why);
    }
    count = count > MSL_PARAMS ? MSL_PARAMS : count;
    number_params(params, count, MSL_BUFFER, MSL_BUFFERS, kernel_name, problem);
    number_params(params, count, MSL_THREADGROUP, MSL_THREADGROUPS, kernel_name, problem);
    *out = params;
    return count;
}
