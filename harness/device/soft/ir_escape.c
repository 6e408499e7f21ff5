/* ir_escape: see ir_find_escapes in ir_function.h. A pointer that is stored in a variable can be used for as long as that
 * variable lives, and wherever what is in it goes. Flow and paths are not looked at. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "ir_function.h"

enum { MOST_SOURCES = 8, MOST_STEPS = 12 };

/* What a pointer is: the address of a variable, what was stored in one, or a parameter. */
typedef struct {
    enum { ADDRESS, CONTENTS, PARAMETER } kind;
    int n;
} source;

typedef struct {
    source list[MOST_SOURCES];
    size_t count;
} sources;

typedef struct {
    source from;
    int to; /* variable */
} edge;

/* Where a pointer goes beyond the variables of the function. */
enum { KEPT = 1, RETURNED = 2 };

typedef struct {
    const ir_functions *all;
    ir_function *f;
    edge *edges;
    size_t count, room;
    unsigned char *address, *contents, parameter[IR_MOST_PARAMS]; /* KEPT, RETURNED */
    size_t *ends; /* of each variable, the last line that says so; 0: none */
} escape;

static void find_sources(const escape *e, span name, int steps, sources *out);

static void add_source(sources *s, source one) {
    if (s->count < MOST_SOURCES)
        s->list[s->count++] = one;
}

/* The arguments that a function of the kernel returns. */
static void find_returned(const escape *e, span value, int steps, sources *out) {
    span args[IR_MOST_PARAMS];
    const ir_function *g = ir_find_called(e->all, value, args);
    for (size_t k = 0; g && k < g->param_count; k++)
        if (g->returns >> k & 1)
            find_sources(e, args[k], steps, out);
}

static void find_sources(const escape *e, span name, int steps, sources *out) {
    const ir_value *a = ir_find_address(e->f, name);
    if (steps > MOST_STEPS)
        return;
    if (a) {
        add_source(out, (source){ADDRESS, a->variable});
        return;
    }
    for (size_t k = 0; k < e->f->param_count && name.bytes; k++)
        if (ir_is_same(e->f->params[k], name))
            add_source(out, (source){PARAMETER, (int)k});
    span value = ir_find_definition(e->f, name);
    const bool is_choice = ir_begins(value, "phi ptr") || ir_begins(value, "select ");
    if (ir_begins(value, "load ptr, ptr ")) {
        a = ir_find_address(e->f, ir_take_local(&value));
        if (a)
            add_source(out, (source){CONTENTS, a->variable});
    } else if (ir_begins(value, "call ")) {
        find_returned(e, value, steps + 1, out);
    } else if (ir_is_derived(value) || is_choice) {
        span rest = is_choice ? value : ir_cut(value, ir_find(value, "ptr %"));
        for (bool more = rest.bytes; more && rest.bytes; more = is_choice)
            find_sources(e, ir_take_local(&rest), steps + 1, out);
    }
}

static void leak(escape *e, span name, unsigned char how) {
    sources s = {.count = 0};
    find_sources(e, name, 0, &s);
    for (size_t i = 0; i < s.count; i++) {
        unsigned char *flags = s.list[i].kind == ADDRESS    ? e->address
                               : s.list[i].kind == CONTENTS ? e->contents
                                                            : e->parameter;
        flags[s.list[i].n] |= how;
    }
}

static void note_store(escape *e, span name, span to) {
    const ir_value *a = ir_find_address(e->f, to);
    sources s = {.count = 0};
    if (!a) {
        leak(e, name, KEPT);
        return;
    }
    find_sources(e, name, 0, &s);
    for (size_t i = 0; i < s.count; i++)
        *ARRAY_ADD(e->edges, e->count, e->room) = (edge){s.list[i], a->variable};
}

static void note_line(escape *e, size_t i) {
    span line = e->f->lines[i], args[IR_MOST_PARAMS], rest = line;
    if (ir_begins(line, "  store ptr %")) {
        const span value = ir_take_local(&rest);
        note_store(e, value, ir_take_local(&rest));
    } else if (ir_begins(line, "  ret ptr %")) {
        leak(e, ir_take_local(&rest), RETURNED);
    } else if (ir_begins(line, "  call void @llvm.lifetime.end")) {
        const ir_value *a = ir_find_target(e->f, line);
        if (a)
            e->ends[a->variable] = i;
    } else if (ir_begins(line, "  call void @llvm.memcpy.")) {
        const ir_value *to = ir_find_address(e->f, ir_take_local(&rest));
        const ir_value *from = ir_find_address(e->f, ir_take_local(&rest));
        if (to && from)
            *ARRAY_ADD(e->edges, e->count, e->room) =
                (edge){{CONTENTS, from->variable}, to->variable};
        else if (from)
            e->contents[from->variable] |= KEPT;
    } else if (ir_is_call(line)) {
        const ir_function *g = ir_find_called(e->all, line, args);
        for (size_t k = 0; g && k < g->param_count; k++)
            if (g->keeps >> k & 1)
                leak(e, args[k], KEPT);
    }
}

/* Does anything happen between the end of v and that of q? */
static bool outlives(const escape *e, int q, int v) {
    const size_t last = e->f->line_count - 2; /* where it returns */
    const size_t first = e->ends[v] ? e->ends[v] : last, end = e->ends[q] ? e->ends[q] : last;
    for (size_t i = first; i < end; i++) {
        const span line = e->f->lines[i];
        if (ir_begins(line, "  ") && !ir_begins(line, "  br ") && !ir_begins(line, "  ret ") &&
            !ir_find(line, "@llvm.lifetime.end"))
            return true;
    }
    return false;
}

/* What becomes of the pointers in variable q, which may point to v (-1: to anything). */
static unsigned char follow(const escape *e, int q, int v, bool *seen, bool *is_late) {
    unsigned char how = e->contents[q];
    seen[q] = true;
    *is_late = *is_late || (v >= 0 && q != v && outlives(e, q, v));
    for (size_t i = 0; i < e->count; i++) {
        const edge *n = &e->edges[i];
        if (n->from.kind == CONTENTS && n->from.n == q && !seen[n->to])
            how |= follow(e, n->to, v, seen, is_late);
    }
    return how;
}

static bool solve(escape *e) {
    bool is_new = false, *seen = array_new(e->f->count + 1, sizeof *seen);
    for (size_t i = 0; i < e->count; i++) {
        const edge *n = &e->edges[i];
        bool is_late = false;
        if (n->from.kind == CONTENTS)
            continue;
        memset(seen, 0, e->f->count);
        const bool is_variable = n->from.kind == ADDRESS;
        unsigned char how = follow(e, n->to, is_variable ? n->from.n : -1, seen, &is_late);
        if (is_variable)
            e->address[n->from.n] |= how | (is_late ? KEPT : 0);
        else
            e->parameter[n->from.n] |= how;
    }
    free(seen);
    for (size_t i = 0; i < e->f->count; i++)
        e->f->variables[i].escapes = e->address[i] != 0;
    for (size_t k = 0; k < e->f->param_count; k++) {
        const uint32_t bit = 1u << k, kept = e->parameter[k] & KEPT ? bit : 0,
                       returned = e->parameter[k] & RETURNED ? bit : 0;
        is_new = is_new || (kept & ~e->f->keeps) || (returned & ~e->f->returns);
        e->f->keeps |= kept;
        e->f->returns |= returned;
    }
    return is_new;
}

static bool look_at(const ir_functions *all, ir_function *f) {
    const size_t count = f->count + 1;
    escape e = {.all = all, .f = f};
    e.address = array_new(count, 1);
    e.contents = array_new(count, 1);
    e.ends = array_new(count, sizeof *e.ends);
    for (size_t i = 0; i < f->line_count; i++)
        note_line(&e, i);
    const bool is_new = solve(&e);
    free(e.address);
    free(e.contents);
    free(e.ends);
    free(e.edges);
    return is_new;
}

void ir_find_escapes(ir_functions *all) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < all->count; i++)
            if (all->list[i].is_own && look_at(all, &all->list[i]))
                is_new = true;
    }
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->list[i].count; k++) {
            variable *v = &all->list[i].variables[k];
            v->is_array = v->is_array || v->escapes;
        }
}
