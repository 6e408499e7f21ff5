/* ir_member: see ir_find_members in ir_function.h. In the module such a pointer is made in two steps,
 *     %a = getelementptr inbounds %struct.S, ptr %s, i32 0, i32 1
 *     %arraydecay = getelementptr inbounds [4 x float], ptr %a, i64 0, i64 0
 * and then stored in a variable. A variable that is stored to once, and whose address is not taken,
 * points there wherever it is loaded. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "ir_function.h"

/* What is known of the pointer variables of a function. */
typedef struct {
    int stores;
    bool is_taken; /* its address goes elsewhere */
    const ir_pointer *value;
} holder;

const ir_pointer *ir_find_pointer(const ir_pointers *p, span name) {
    for (size_t i = 0; i < p->count; i++)
        if (ir_is_same(p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

/* The operand that a getelementptr or a load begins from. */
static span find_base(span value) {
    span rest = ir_cut(value, ir_find(value, "ptr %"));
    return ir_take_local(&rest);
}

static const char step_start[] = "getelementptr inbounds ";

/* `getelementptr inbounds %struct.S, ptr %s, i32 0, i32 1`, where member 1 is an array. */
static bool is_member(const ir_function *f, span value, ir_part *member) {
    const span number = ir_find_after(value, ", i32 0, i32 "), text = ir_skip(value, step_start);
    if (!text.bytes || !number.bytes || *text.at != '%')
        return false;
    return ir_find_member(f->types, ir_get_type(f->types, text), strtoull(number.at, NULL, 10),
                          member) &&
           member->is_followed && member->type.at[0] == '[';
}

/* Adds what the line defines, if it is a member array or a pointer to its first element. */
static void read_line(const ir_function *f, span line, ir_pointers *members, ir_pointers *firsts) {
    span name, value;
    ir_part part;
    if (!ir_split_definition(line, &name, &value))
        return;
    if (is_member(f, value, &part)) {
        *ARRAY_ADD(members->list, members->count, members->room) = (ir_pointer){name, part.type, 0};
        return;
    }
    const ir_pointer *member = ir_begins(value, "getelementptr ") && members->count
                                   ? ir_find_pointer(members, find_base(value))
                                   : NULL;
    ir_pointer first = {.name = name};
    if (member && ir_find(value, ", i64 0, i64 0,") &&
        ir_split_array(member->element, &first.element, &first.count))
        *ARRAY_ADD(firsts->list, firsts->count, firsts->room) = first;
}

static void read_use(const ir_function *f, span line, const ir_pointers *firsts, holder *holders) {
    const ir_value *a = ir_find_target(f, line);
    const span value = ir_get_instruction(line);
    const bool is_store = ir_begins(line, "  store ");
    span rest = line;
    if (is_store && a) {
        const ir_pointer *first = ir_find_pointer(firsts, ir_take_local(&rest));
        holders[a->variable].stores++;
        if (first && !a->path.bytes)
            holders[a->variable].value = first;
    }
    const bool is_known = is_store || ir_find(line, "@llvm.lifetime.") ||
                          ir_begins(value, "load ") || ir_begins(value, "alloca ") ||
                          ir_begins(value, "bitcast ");
    while (rest.bytes) {
        const ir_value *used = ir_find_address(f, ir_take_local(&rest));
        if (used && (!is_known || (is_store && used != a)))
            holders[used->variable].is_taken = true;
    }
}

static void find_members(ir_function *f) {
    ir_pointers members = {0}, firsts = {0}, *out = &f->members;
    for (size_t i = 0; i < f->line_count; i++)
        read_line(f, f->lines[i], &members, &firsts);
    holder *holders = array_new(f->count + 1, sizeof *holders);
    for (size_t i = 0; i < f->line_count && firsts.count; i++)
        if (!ir_find(f->lines[i], f->note))
            read_use(f, f->lines[i], &firsts, holders);
    for (size_t i = 0; i < f->line_count && firsts.count; i++) {
        span name, value;
        if (!ir_split_definition(f->lines[i], &name, &value) || !ir_begins(value, "load "))
            continue;
        const ir_value *a = ir_find_address(f, find_base(value));
        const holder *h = a && !a->path.bytes ? &holders[a->variable] : NULL;
        if (h && h->value && h->stores == 1 && !h->is_taken)
            *ARRAY_ADD(out->list, out->count, out->room) =
                (ir_pointer){name, h->value->element, h->value->count};
    }
    for (size_t i = 0; i < firsts.count; i++)
        *ARRAY_ADD(out->list, out->count, out->room) = firsts.list[i];
    free(holders);
    free(members.list);
    free(firsts.list);
}

/* `getelementptr inbounds float, ptr %p, i64 %n`, of elements of this type. */
static bool is_step(span value, span element) {
    const span type = ir_skip(value, step_start);
    return type.bytes > element.bytes && type.at[element.bytes] == ',' &&
           ir_is_same((span){type.at, element.bytes}, element);
}

/* Is what line n defines kept as an address, as in `end = &p[4]`? That is no access. */
static bool is_kept(const ir_function *f, size_t n, span name) {
    for (size_t i = n + 1; i < f->line_count; i++) {
        span rest = f->lines[i];
        if (ir_begins(rest, "  store ") && ir_is_same(ir_take_local(&rest), name) &&
            !ir_begins(rest, ", align ")) /* a constant is stored there */
            return true;
    }
    return false;
}

bool ir_is_element(const ir_function *f, size_t n, span *index, uint64_t *count) {
    span name, value;
    if (!f->members.count || !ir_split_definition(f->lines[n], &name, &value) ||
        !ir_begins(value, step_start) || !ir_begins(name, "%arrayidx"))
        return false;
    const ir_pointer *from = ir_find_pointer(&f->members, find_base(value));
    const char *operand = ir_find(value, ", i64 "), *end = ir_find(value, ", !dbg ");
    if (!from || !operand || !end || end < operand || !is_step(value, from->element))
        return false;
    *index = (span){operand + 2, (size_t)(end - operand - 2)};
    *count = from->count;
    return !memchr(index->at, ',', index->bytes) && !is_kept(f, n, name);
}

/* Parameters ----------------------------------------------------------------------------------- */

/* The variable that parameter k is stored in; -1: none. */
static int find_holder(const ir_function *f, size_t k) {
    for (size_t i = 0; i < f->line_count; i++) {
        span rest = f->lines[i];
        if (!ir_begins(rest, "  store ptr %") || !ir_is_same(ir_take_local(&rest), f->params[k]))
            continue;
        const ir_value *a = ir_find_address(f, ir_take_local(&rest));
        return a && !a->path.bytes ? a->variable : -1;
    }
    return -1;
}

/* Was the value loaded from the variable, perhaps with steps after that? */
static bool is_from(const ir_function *f, span name, int home, span element) {
    span value = ir_find_definition(f, name);
    while (is_step(value, element))
        value = ir_find_definition(f, find_base(value));
    const ir_value *a =
        ir_begins(value, "load ptr, ptr ") ? ir_find_address(f, ir_take_local(&value)) : NULL;
    return a && a->variable == home;
}

/* Does the variable hold its parameter, or what is made of it, and nothing else? */
static bool is_steady(const ir_function *f, int home, size_t k, span element) {
    for (size_t i = 0; i < f->line_count; i++) {
        const span line = f->lines[i];
        const span value = ir_get_instruction(line);
        span rest = line;
        if (ir_begins(value, "alloca ") || ir_begins(value, "load ptr, ptr "))
            continue;
        const bool is_store = ir_begins(line, "  store ptr %");
        const span stored = is_store ? ir_take_local(&rest) : (span){line.at, 0};
        for (span used = ir_take_local(&rest); used.bytes; used = ir_take_local(&rest)) {
            const ir_value *a = ir_find_address(f, used);
            if (a && a->variable == home &&
                !(is_store &&
                  (ir_is_same(stored, f->params[k]) || is_from(f, stored, home, element))))
                return false;
        }
    }
    return true;
}

bool ir_is_of_param(const ir_function *f, span name, size_t *k) {
    for (*k = 0; *k < f->param_count; ++*k) {
        const span element = f->elements[*k];
        if (!element.bytes || f->is_mixed[*k])
            continue;
        const int home = find_holder(f, *k);
        if (home >= 0 && is_from(f, name, home, element) && is_steady(f, home, *k, element))
            return true;
    }
    return false;
}

bool ir_is_param_store(const ir_function *f, size_t n, size_t *k) {
    span rest = f->lines[n];
    if (!ir_begins(rest, "  store ptr %"))
        return false;
    const span stored = ir_take_local(&rest);
    for (*k = 0; *k < f->param_count; ++*k)
        if (f->elements[*k].bytes && !f->is_mixed[*k] && ir_is_same(f->params[*k], stored))
            return true;
    return false;
}

bool ir_is_param_access(const ir_function *f, size_t n, size_t *k, span *at, uint64_t *bytes) {
    const span line = f->lines[n];
    span name, value, type;
    const bool defines = ir_split_definition(line, &name, &value);
    if (defines && ir_begins(name, "%arrayidx") && ir_begins(value, step_start)) {
        *at = name; /* of an element that is used, and not only pointed to */
        if (is_kept(f, n, name) || !ir_is_of_param(f, name, k))
            return false;
        type = f->elements[*k];
    } else {
        span rest = ir_begins(line, "  store ") ? ir_skip(line, "  store ")
                    : defines                   ? ir_skip(value, "load ")
                                                : (span){line.at, 0};
        type = ir_get_type(f->types, rest);
        rest = ir_cut(rest, ir_find(rest, ", ptr %"));
        *at = ir_take_local(&rest);
        if (!at->bytes || ir_begins(*at, "%arrayidx") || !ir_is_of_param(f, *at, k) ||
            !ir_is_same(type, f->elements[*k]))
            return false;
    }
    *bytes = ir_measure(f->types, type, NULL);
    return *bytes > 0;
}

static bool link_arguments(const ir_functions *all, const ir_function *f, span line) {
    span args[IR_MOST_PARAMS];
    ir_function *g = ir_is_call(line) ? ir_find_called(all, line, args) : NULL;
    bool is_new = false;
    for (size_t k = 0; g && k < g->param_count; k++) {
        const ir_pointer *p = ir_find_pointer(&f->members, args[k]);
        size_t own;
        if (!p && !ir_is_of_param(f, args[k], &own))
            continue;
        const span element = p ? p->element : f->elements[own];
        const bool is_first = !g->elements[k].bytes;
        if (is_first)
            g->elements[k] = element;
        const bool is_mixed = !ir_is_same(g->elements[k], element);
        is_new = is_new || is_first || (is_mixed && !g->is_mixed[k]);
        g->is_mixed[k] = g->is_mixed[k] || is_mixed;
    }
    return is_new;
}

void ir_find_members(ir_functions *all) {
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].is_own)
            find_members(&all->list[i]);
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < all->count; i++)
            for (size_t n = 0; n < all->list[i].line_count && all->list[i].is_own; n++)
                is_new = link_arguments(all, &all->list[i], all->list[i].lines[n]) || is_new;
    }
}

/* Bit-fields ----------------------------------------------------------------------------------- */

/* `%bf.clear = and i32 %bf.load, -32`, `%bf.set = or i32 %bf.clear, %bf.value` */
static bool is_made_of(span value, span from) {
    return (ir_begins(value, "and i") || ir_begins(value, "or i")) &&
           ir_is_same(ir_take_local(&value), from);
}

bool ir_is_bit_field_store(const ir_function *f, size_t n, span *place, unsigned long *bits) {
    const size_t most = 40; /* lines of the value between the load and the store */
    span loaded, value;
    if (!ir_split_definition(f->lines[n], &loaded, &value) || !ir_begins(loaded, "%bf.load") ||
        !ir_begins(value, "load i"))
        return false;
    *bits = strtoul(value.at + strlen("load i"), NULL, 10);
    *place = ir_take_local(&value);
    span kept = loaded;
    for (size_t i = n + 1; place->bytes && i < f->line_count && i <= n + most; i++) {
        span line = f->lines[i], name;
        if (ir_split_definition(line, &name, &value)) {
            if (is_made_of(value, kept))
                kept = name;
        } else if (ir_begins(line, "  store i") && ir_is_same(ir_take_local(&line), kept) &&
                   ir_is_same(ir_take_local(&line), *place))
            return true;
    }
    return false;
}
