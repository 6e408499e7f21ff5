/* ir_calls: see ir_link in ir_function.h. What a variable hands over may be without a value only if the
 * variable is watched, and what takes it is watched in turn: this goes on until nothing new is found. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "ir_function.h"

static void add(ir_function *f, ir_transfer t) {
    *ARRAY_ADD(f->transfers, f->transfer_count, f->transfer_room) = t;
}

/* The compiler's own variable that a struct is handed over from, and not a member that the kernel
 * names. */
static bool is_copy(const variable *v) {
    return ir_begins(v->name, "%retval") || ir_begins(v->name, "%agg.tmp") ||
           ir_begins(v->name, "%byval-temp") || ir_find(v->name, ".coerce");
}

/* Is the value loaded from such a variable that is watched? */
static bool find_given(const ir_function *f, span name, ir_transfer *out) {
    span value = ir_find_definition(f, name);
    while (ir_begins(value, "trunc ") || ir_begins(value, "zext ")) {
        name = ir_take_local(&value);
        value = ir_find_definition(f, name);
    }
    if (!ir_begins(value, "load "))
        return false;
    const span type = ir_get_type(f->types, ir_skip(value, "load "));
    span rest = ir_cut(value, ir_find(ir_cut(value, type.at + type.bytes), "ptr %"));
    out->line = ir_find_value(f, name)->line;
    out->place = ir_take_local(&rest);
    out->bytes = ir_measure(f->types, type, NULL);
    const ir_value *a = ir_find_address(f, out->place);
    return a && is_copy(&f->variables[a->variable]) && ir_is_watched(&f->variables[a->variable]);
}

/* What the line stores, if that was handed over and may be without a value. */
static bool find_taken(const ir_functions *all, const ir_function *f, span name, ir_transfer *out) {
    span args[IR_MOST_PARAMS], value = ir_find_definition(f, name);
    for (size_t k = 0; k < f->param_count; k++)
        if (f->takes >> k & 1 && ir_is_same(f->params[k], name)) {
            out->slot = 1 + (int)k;
            return true;
        }
    if (ir_begins(value, "trunc "))
        return find_taken(all, f, ir_take_local(&value), out);
    if (ir_begins(value, "extractvalue ")) {
        const span type = ir_get_type(f->types, ir_skip(value, "extractvalue "));
        span rest = ir_cut(value, type.at + type.bytes);
        const span from = ir_take_local(&rest);
        ir_part member;
        if (!ir_begins(rest, ", ") ||
            !ir_find_member(f->types, type, strtoull(rest.at + 2, NULL, 10), &member) ||
            member.is_packed)
            return false;
        out->offset = member.offset;
        value = ir_find_definition(f, from);
    }
    const ir_function *called = ir_begins(value, "call ") ? ir_find_called(all, value, args) : NULL;
    out->slot = 0;
    return called && called->gives;
}

/* The value of a variable that is not watched yet comes from one that is: true if that is new. */
static bool watch(ir_function *f, span place) {
    const ir_value *a = ir_find_address(f, place);
    if (!a || ir_is_watched(&f->variables[a->variable]))
        return false;
    return f->variables[a->variable].is_unset = f->variables[a->variable].is_copy = true;
}

static bool link_store(const ir_functions *all, ir_function *f, size_t i) {
    const span type = ir_get_type(f->types, ir_skip(f->lines[i], "  store "));
    span rest = ir_cut(f->lines[i], type.at + type.bytes);
    ir_transfer t = {.line = i, .bytes = ir_measure(f->types, type, NULL), .is_store = true};
    if (!find_taken(all, f, ir_take_local(&rest), &t))
        return false;
    t.place = ir_take_local(&rest);
    const unsigned long bits = type.at[0] == 'i' ? strtoul(type.at + 1, NULL, 10) : 0;
    t.bytes = bits ? (bits + 7) / 8 : t.bytes;
    add(f, t);
    return watch(f, t.place);
}

/* A larger result is stored where the caller says. */
static bool link_result(ir_function *f, span to) {
    if (!ir_is_same(to, f->params[0]) || !ir_find(f->lines[0], " sret("))
        return watch(f, to);
    const bool is_new = !f->gives;
    f->gives = true;
    return is_new;
}

static bool link_call(const ir_functions *all, ir_function *f, size_t i) {
    span args[IR_MOST_PARAMS], to, from, bytes;
    ir_function *g = ir_find_called(all, f->lines[i], args);
    bool is_new = false;
    if (ir_is_copy(f, f->lines[i], &to, &from, &bytes))
        return link_result(f, to);
    if (g && g->gives && ir_find(f->lines[i], " sret("))
        is_new = link_result(f, args[0]);
    for (size_t k = 0; g && k < g->param_count; k++) {
        ir_transfer t = {.slot = 1 + (int)k};
        if (!args[k].bytes || !find_given(f, args[k], &t))
            continue;
        add(f, t);
        is_new = is_new || !(g->takes >> k & 1);
        g->takes |= 1u << k;
    }
    return is_new;
}

static bool link_return(ir_function *f, size_t i) {
    const span type = ir_get_type(f->types, ir_skip(f->lines[i], "  ret "));
    span rest = ir_cut(f->lines[i], type.at + type.bytes);
    ir_transfer t = {.slot = 0};
    if (!type.bytes || !find_given(f, ir_take_local(&rest), &t))
        return false;
    add(f, t);
    const bool is_new = !f->gives;
    f->gives = true;
    return is_new;
}

static bool link_function(const ir_functions *all, ir_function *f) {
    bool is_new = false, any;
    do {
        any = false;
        f->transfer_count = 0;
        for (size_t i = 0; i < f->line_count; i++)
            if (ir_begins(f->lines[i], "  store ") ? link_store(all, f, i)
                : ir_begins(f->lines[i], "  ret ") ? link_return(f, i)
                : ir_is_call(f->lines[i])          ? link_call(all, f, i)
                                                   : false)
                any = true;
        if (any)
            ir_spread_copies(f);
        is_new = is_new || any;
    } while (any);
    return is_new;
}

void ir_link(ir_functions *all) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < all->count; i++)
            if (all->list[i].is_own && link_function(all, &all->list[i]))
                is_new = true;
    }
}
