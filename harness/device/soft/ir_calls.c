/* ir_calls: see ir_calls.h. What a variable hands over may be without a value only if the variable is
 * watched, and what takes it is watched in turn: this goes on until nothing new is found. */
#include "ir_calls.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

/* Text ----------------------------------------------------------------------------------------- */

static span cut(span s, const char *from) {
    return (span){from, (size_t)(s.at + s.bytes - from)};
}

/* `@f(i32 %a, { float, i8 } %b)`: the names of the arguments, empty where one is a constant. */
static size_t split_arguments(span s, span out[IR_MOST_PARAMS]) {
    const char *open = ir_find(s, "("), *end = s.at + s.bytes;
    size_t count = 0;
    int depth = 0;
    span last = {end, 0};
    for (const char *p = open ? open + 1 : end; p < end && depth >= 0; p++) {
        if (*p == '%') {
            span rest = cut(s, p), name = ir_take_local(&rest);
            last = depth == 0 ? name : last;
            p = name.at + name.bytes - 1;
        }
        depth += strchr("([{<", *p) ? 1 : strchr(")]}>", *p) ? -1 : 0;
        if ((depth == 0 && *p == ',') || depth < 0) {
            if (count < IR_MOST_PARAMS)
                out[count++] = last;
            last = (span){end, 0};
        }
    }
    return count;
}

/* `... @name(`; empty where the function is not named. */
static span find_callee(span line) {
    const char *at = memchr(line.at, '@', line.bytes);
    span rest = cut(line, at ? at : line.at + line.bytes);
    const size_t n = rest.bytes ? strcspn(rest.at, "(), ") : 0;
    return (span){rest.at, n < rest.bytes && rest.at[n] == '(' ? n : 0};
}

bool ir_is_call(span line) {
    span name, value;
    return ir_begins(line, "  call ") ||
           (ir_split_definition(line, &name, &value) && ir_begins(value, "call "));
}

void ir_routine_read(ir_routine *r) {
    const span head = r->body.lines[0];
    r->name = find_callee(head);
    r->param_count = split_arguments(cut(head, r->name.at), r->params);
    if (r->is_own)
        ir_function_read(&r->body);
}

void ir_routine_free(ir_routine *r) {
    ir_function_forget(&r->body);
    free(r->members.list);
    free(r->transfers);
}

/* Copies in registers -------------------------------------------------------------------------- */

static ir_routine *find_routine(const ir_routines *all, span name) {
    for (size_t i = 0; i < all->count && name.bytes; i++)
        if (all->list[i].is_own && ir_is_same(all->list[i].name, name))
            return &all->list[i];
    return NULL;
}

ir_routine *ir_find_callee(const ir_routines *all, span line, span args[IR_MOST_PARAMS]) {
    const span name = find_callee(line);
    ir_routine *g = find_routine(all, name);
    return g && split_arguments(cut(line, name.at), args) == g->param_count ? g : NULL;
}

static void add(ir_routine *r, ir_transfer t) {
    *ARRAY_ADD(r->transfers, r->transfer_count, r->transfer_room) = t;
}

/* The compiler's own variable that a struct is handed over from, and not a member that the kernel
 * names. */
static bool is_copy(const variable *v) {
    return ir_begins(v->name, "%retval") || ir_begins(v->name, "%agg.tmp") ||
           ir_begins(v->name, "%byval-temp") || ir_find(v->name, ".coerce");
}

/* Is the value loaded from such a variable that is watched? */
static bool find_given(const ir_function *f, span name, ir_transfer *out) {
    span value;
    while (ir_find_definition(f, name, &out->line, &value) &&
           (ir_begins(value, "trunc ") || ir_begins(value, "zext ")))
        name = ir_take_local(&value);
    if (!ir_find_definition(f, name, &out->line, &value) || !ir_begins(value, "load "))
        return false;
    const span type = ir_get_type(f->types, cut(value, value.at + strlen("load ")));
    const char *pointer = ir_find(cut(value, type.at + type.bytes), "ptr %");
    span rest = pointer ? cut(value, pointer) : (span){value.at, 0};
    out->place = ir_take_local(&rest);
    out->bytes = ir_measure(f->types, type, NULL);
    const address *a = ir_find_address(f, out->place);
    return a && is_copy(&f->variables[a->variable]) && ir_is_watched(&f->variables[a->variable]);
}

/* What the line stores, if that was handed over and may be without a value. */
static bool find_taken(const ir_routines *all, const ir_routine *r, span name, ir_transfer *out) {
    const ir_function *f = &r->body;
    size_t line;
    span value;
    for (size_t k = 0; k < r->param_count; k++)
        if (r->takes >> k & 1 && ir_is_same(r->params[k], name)) {
            out->slot = 1 + (int)k;
            return true;
        }
    if (!ir_find_definition(f, name, &line, &value))
        return false;
    if (ir_begins(value, "trunc "))
        return find_taken(all, r, ir_take_local(&value), out);
    if (ir_begins(value, "extractvalue ")) {
        const span type = ir_get_type(f->types, cut(value, value.at + strlen("extractvalue ")));
        span rest = cut(value, type.at + type.bytes), member;
        const span from = ir_take_local(&rest);
        int64_t offset;
        if (!ir_begins(rest, ", ") ||
            !ir_find_member(f->types, type, strtoull(rest.at + 2, NULL, 10), &member, &offset))
            return false;
        out->offset = (uint64_t)offset;
        name = from;
    }
    if (!ir_find_definition(f, name, &line, &value) || !ir_begins(value, "call "))
        return false;
    const ir_routine *callee = find_routine(all, find_callee(value));
    out->slot = 0;
    return callee && callee->gives;
}

static bool link_store(const ir_routines *all, ir_routine *r, size_t i) {
    ir_function *f = &r->body;
    span rest = cut(f->lines[i], f->lines[i].at + strlen("  store "));
    const span type = ir_get_type(f->types, rest);
    rest = cut(rest, type.at + type.bytes);
    ir_transfer t = {.line = i, .bytes = ir_measure(f->types, type, NULL), .is_store = true};
    if (!find_taken(all, r, ir_take_local(&rest), &t))
        return false;
    t.place = ir_take_local(&rest);
    const unsigned long bits = type.at[0] == 'i' ? strtoul(type.at + 1, NULL, 10) : 0;
    t.bytes = bits ? (bits + 7) / 8 : t.bytes;
    add(r, t);
    const address *a = ir_find_address(f, t.place);
    if (!a || ir_is_watched(&f->variables[a->variable]))
        return false;
    f->variables[a->variable].is_unset = f->variables[a->variable].is_copy = true;
    return true;
}

/* A larger result is stored where the caller says. */
static bool link_result(ir_routine *r, span to) {
    const address *a = ir_find_address(&r->body, to);
    variable *v = a ? &r->body.variables[a->variable] : NULL;
    const bool is_own = ir_is_same(to, r->params[0]) && ir_find(r->body.lines[0], " sret(");
    if (is_own ? r->gives : !v || ir_is_watched(v))
        return false;
    if (is_own)
        r->gives = true;
    else
        v->is_unset = v->is_copy = true;
    return true;
}

static bool link_call(const ir_routines *all, ir_routine *r, size_t i) {
    span args[IR_MOST_PARAMS], to, from, bytes;
    ir_routine *g = ir_find_callee(all, r->body.lines[i], args);
    bool is_new = false;
    if (ir_is_copy(&r->body, r->body.lines[i], &to, &from, &bytes))
        return link_result(r, to);
    if (g && g->gives && ir_find(r->body.lines[i], " sret("))
        is_new = link_result(r, args[0]);
    for (size_t k = 0; g && k < g->param_count; k++) {
        ir_transfer t = {.slot = 1 + (int)k};
        if (!args[k].bytes || !find_given(&r->body, args[k], &t))
            continue;
        add(r, t);
        is_new = is_new || !(g->takes >> k & 1);
        g->takes |= 1u << k;
    }
    return is_new;
}

static bool link_return(ir_routine *r, size_t i) {
    span rest = cut(r->body.lines[i], r->body.lines[i].at + strlen("  ret "));
    const span type = ir_get_type(r->body.types, rest);
    ir_transfer t = {.slot = 0};
    rest = cut(rest, type.at + type.bytes);
    if (!type.bytes || !find_given(&r->body, ir_take_local(&rest), &t))
        return false;
    add(r, t);
    const bool is_new = !r->gives;
    return r->gives = true, is_new;
}

static bool link_routine(const ir_routines *all, ir_routine *r) {
    bool is_new = false, any;
    do {
        any = false;
        r->transfer_count = 0;
        for (size_t i = 0; i < r->body.line_count; i++) {
            const span line = r->body.lines[i];
            if (ir_begins(line, "  store ") ? link_store(all, r, i)
                : ir_begins(line, "  ret ") ? link_return(r, i)
                : ir_is_call(line)          ? link_call(all, r, i)
                                            : false)
                any = true;
        }
        if (any)
            ir_spread_copies(&r->body);
        is_new = is_new || any;
    } while (any);
    return is_new;
}

void ir_link(ir_routines *all) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < all->count; i++)
            if (all->list[i].is_own && link_routine(all, &all->list[i]))
                is_new = true;
    }
}
