/* ir_function: see ir_function.h.
 *
 * Watched are arrays and structs with arrays, variables without a value, and what is copied from
 * one of those. A vector or struct that is filled with the pattern and then given all its members
 * in the same block has a value. */
#include "ir_function.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

enum { MOST_STORES = 64 };

/* Addresses ------------------------------------------------------------------------------------ */

static ir_value *find_slot(const ir_function *f, span name) {
    for (uint64_t h = ir_hash(name);; h++) {
        ir_value *v = &f->values[h & (f->capacity - 1)];
        if (!v->name.bytes || ir_is_same(v->name, name))
            return v;
    }
}

/* NULL: the function defines no such value. */
static const ir_value *find_value(const ir_function *f, span name) {
    const ir_value *v = name.bytes && f->capacity ? find_slot(f, name) : NULL;
    return v && v->name.bytes ? v : NULL;
}

const ir_value *ir_find_address(const ir_function *f, span name) {
    const ir_value *v = find_value(f, name);
    return v && v->variable >= 0 ? v : NULL;
}

/* What defines the value: `load i32, ...`; empty if nothing does. */
static span find_definition(const ir_function *f, span name) {
    const ir_value *v = find_value(f, name);
    return v ? ir_get_instruction(f->lines[v->line]) : (span){name.at, 0};
}

/* The first variable that the text names, or a part of one. */
static const ir_value *find_first(const ir_function *f, span s) {
    while (s.bytes) {
        const ir_value *a = ir_find_address(f, ir_take_local(&s));
        if (a)
            return a;
    }
    return NULL;
}

/* Names of the compiler's own variables have a dot or are numbers. */
static bool is_of_source(span name) {
    return !ir_find(name, ".") && !isdigit((unsigned char)name.at[1]);
}

static int read_alloca(ir_function *f, span name, span value) {
    const char *end = ir_find(value, ", align ");
    if (!end || ir_find(value, "inalloca"))
        return -1;
    span type = ir_skip(value, "alloca ");
    type.bytes = (size_t)(end - type.at);
    const uint64_t bytes = ir_measure(f->types, type, NULL);
    if (!bytes)
        return -1;
    *ARRAY_ADD(f->variables, f->count, f->room) =
        (variable){.name = name,
                   .type = type,
                   .bytes = bytes,
                   .debug = -1,
                   .is_array = is_of_source(name) && ir_has_array(f->types, type)};
    return (int)f->count - 1;
}

bool ir_is_derived(span value) {
    return ir_begins(value, "getelementptr ") || ir_begins(value, "bitcast ");
}

static void read_values(ir_function *f) {
    for (f->capacity = 64; f->capacity < 2 * f->line_count;)
        f->capacity *= 2;
    f->values = array_new(f->capacity, sizeof *f->values);
    for (size_t i = 0; i < f->line_count; i++) {
        ir_value v = {.line = i, .variable = -1};
        span value;
        if (!ir_split_definition(f->lines[i], &v.name, &value))
            continue;
        const ir_value *from = ir_is_derived(value) ? find_first(f, value) : NULL;
        if (ir_begins(value, "alloca ")) {
            v.variable = read_alloca(f, v.name, value);
        } else if (from) {
            const char *path = ir_find(value, ", i"), *end = ir_find(value, ", !dbg");
            v.variable = from->variable;
            v.path = path && end > path ? (span){path, (size_t)(end - path)} : from->path;
        }
        *find_slot(f, v.name) = v;
    }
}

/* Where the line stores to, or what a call takes first; NULL if that is not a variable. */
const ir_value *ir_find_target(const ir_function *f, span line) {
    if (!ir_begins(line, "  store "))
        return find_first(f, line);
    const char *end = ir_find(line, ", align ");
    span last = {line.at, 0};
    for (span s = {line.at, end ? (size_t)(end - line.at) : line.bytes}; s.bytes;) {
        const span name = ir_take_local(&s);
        last = name.bytes ? name : last;
    }
    return ir_find_address(f, last);
}

/* Values --------------------------------------------------------------------------------------- */

/* What a line does to a variable. */
typedef enum { LEAVES, FILLS_PART, FILLS, USES } effect;

static bool is_constructor_of_shim(span line) {
    const char *name = ir_find(line, "@_ZN5metal");
    if (!name)
        return false;
    span call = {name, strcspn(name, "(")}, two = ir_find_after(call, "C2E");
    const span what = two.bytes ? two : ir_find_after(call, "C1E");
    return what.bytes && !ir_is_same(what, (span){"v", 1});
}

static effect judge_line(const ir_function *f, span line, int v, const ir_value **part) {
    bool is_named = false;
    for (span s = line; s.bytes && !is_named;) {
        const ir_value *a = ir_find_address(f, ir_take_local(&s));
        is_named = a && a->variable == v;
    }
    if (!is_named || ir_find(line, f->note) || ir_find(line, "@llvm.lifetime.") ||
        ir_find(line, "!nosanitize") || /* a check of the compiler's */
        ir_is_derived(ir_get_instruction(line)))
        return LEAVES;
    const ir_value *target = *part = ir_find_target(f, line);
    if (!target || target->variable != v)
        return USES;
    if (ir_begins(line, "  store ")) /* the address itself may be stored */
        return find_first(f, line) == target ? FILLS_PART : USES;
    span rest = line, first;
    do /* not the type of a result */
        first = ir_take_local(&rest);
    while (ir_begins(first, "%\"") || ir_begins(first, "%struct.") || ir_begins(first, "%class."));
    const bool is_call = ir_begins(line, "  call ") && ir_find_address(f, first) == target;
    if (is_call &&
        ((ir_find(line, " sret(") && !target->path.bytes) || is_constructor_of_shim(line)))
        return FILLS;
    return USES;
}

static uint64_t count_values(const ir_function *f, const variable *v) {
    unsigned char *marks = array_new(1, v->bytes);
    uint64_t n = 0;
    ir_measure(f->types, v->type, marks);
    for (uint64_t i = 0; i < v->bytes; i++)
        n += marks[i] != 0;
    free(marks);
    return n;
}

/* Follows the blocks of an expression: the arms of `?:`, `&&` and `||`, and the reports of the
 * compiler's checks. *depth: 0 where every path comes to. False: it is another kind of block. */
static bool follow_label(span label, int *depth) {
    static const struct {
        const char *name;
        int step;
    } kinds[] = {{"cond.true", 1}, {"land.rhs", 1},   {"lor.rhs", 1},
                 {"handler.", 1},  {"cond.false", 0}, {"cond.end", -1},
                 {"land.end", -1}, {"lor.end", -1},   {"cont", -1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ir_begins(label, kinds[i].name)) {
            *depth += kinds[i].step;
            return *depth >= 0;
        }
    return false;
}

/* Is all of the variable stored after line i, on every path and before it is used? */
static bool has_value(const ir_function *f, size_t i, int v) {
    span seen[MOST_STORES];
    size_t count = 0;
    int depth = 0;
    uint64_t stored = 0, wanted = count_values(f, &f->variables[v]);
    while (++i < f->line_count && count < MOST_STORES) {
        const ir_value *part;
        if (f->lines[i].bytes && !ir_begins(f->lines[i], "  ")) {
            if (!follow_label(f->lines[i], &depth))
                return false;
            continue;
        }
        const effect what = judge_line(f, f->lines[i], v, &part);
        bool is_new = true;
        for (size_t k = 0; k < count && what != LEAVES && part; k++)
            is_new = is_new && !ir_is_same(seen[k], part->path);
        if (what == LEAVES ||
            (what == USES && !is_new && ir_begins(ir_get_instruction(f->lines[i]), "load ")))
            continue;
        if (what == USES || (what == FILLS && depth == 0))
            return what == FILLS;
        if (depth > 0)
            continue;
        seen[count++] = part->path;
        stored += is_new ? ir_measure(f->types, ir_skip(f->lines[i], "  store "), NULL) : 0;
        if (stored >= wanted)
            return true;
    }
    return false;
}

static void find_unset(ir_function *f) {
    for (size_t i = 0; i < f->line_count; i++) {
        if (!ir_find(f->lines[i], f->note))
            continue;
        const ir_value *a = ir_find_target(f, f->lines[i]);
        variable *v = a ? &f->variables[a->variable] : NULL;
        if (v && !v->is_unset && (v->is_array || !has_value(f, i, a->variable)))
            v->is_unset = true;
    }
}

bool ir_is_watched(const variable *v) {
    return v->is_array || v->is_unset;
}

/* Where a case of a switch jumps over a declaration, clang neither fills the variable nor says
 * where its life begins. Nor does it of these temporaries of its own. */
static void find_skipped(ir_function *f) {
    bool has_switch = false, *lives = array_new(f->count + 1, sizeof *lives);
    for (size_t i = 0; i < f->line_count; i++) {
        has_switch = has_switch || ir_begins(f->lines[i], "  switch ");
        const ir_value *a =
            ir_find(f->lines[i], "@llvm.lifetime.start") ? ir_find_target(f, f->lines[i]) : NULL;
        if (a)
            lives[a->variable] = true;
    }
    for (size_t i = 0; i < f->count && has_switch && f->has_lives; i++) {
        variable *v = &f->variables[i];
        v->is_skipped = !lives[i] && is_of_source(v->name) && !ir_begins(v->name, "%retval") &&
                        !ir_begins(v->name, "%tmp") && !ir_begins(v->name, "%coerce");
        v->is_unset = v->is_unset || v->is_skipped;
    }
    free(lives);
}

static bool is_watched_address(const ir_function *f, span name) {
    const ir_value *a = ir_find_address(f, name);
    return a && ir_is_watched(&f->variables[a->variable]);
}

/* A copy of a variable is as unset as the variable. */
bool ir_is_copy(const ir_function *f, span line, span *to, span *from, span *bytes) {
    const char *vector = ir_find(line, "@_ZN5metal3vecI");
    const span callee = {vector, vector ? strcspn(vector, "(") : 0};
    if (ir_begins(line, "  call void @llvm.memcpy."))
        *bytes = ir_find_after(line, ", i64 ");
    else if (ir_find(callee, "C2ERKS1_") || ir_find(callee, "C1ERKS1_") ||
             ir_find(callee, "aSERKS1_"))
        *bytes = ir_find_after(ir_cut(line, vector), " dereferenceable(");
    else
        return false;
    bytes->bytes = bytes->bytes ? strcspn(bytes->at, ",)") : 0;
    span rest = ir_get_instruction(line);
    *to = ir_take_local(&rest);
    *from = ir_take_local(&rest);
    return bytes->bytes && from->bytes &&
           (is_watched_address(f, *to) || is_watched_address(f, *from));
}

static void spread_copies(ir_function *f) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < f->line_count; i++) {
            span to, from, bytes;
            const ir_value *a;
            if (!ir_is_copy(f, f->lines[i], &to, &from, &bytes) || !ir_find_address(f, from) ||
                !(a = ir_find_address(f, to)) || ir_is_watched(&f->variables[a->variable]))
                continue;
            variable *v = &f->variables[a->variable];
            v->is_unset = v->is_copy = is_new = true;
        }
    }
}

/* Where each variable is declared: the place of the first instruction that has to do with it. */
static void find_places(ir_function *f) {
    for (size_t i = 0; i < f->line_count; i++) {
        const char *debug = ir_find(f->lines[i], "!dbg !");
        const ir_value *a = debug ? find_first(f, f->lines[i]) : NULL;
        if (a && f->variables[a->variable].debug < 0)
            f->variables[a->variable].debug = strtol(debug + 6, NULL, 10);
    }
}

/* Functions ------------------------------------------------------------------------------------ */

/* `@f(i32 %a, { float, i8 } %b)`: the names of the arguments, empty where one is a constant. */
static size_t split_arguments(span s, span out[IR_MOST_PARAMS]) {
    const char *open = ir_find(s, "("), *end = s.at + s.bytes;
    size_t count = 0;
    int depth = 0;
    span last = {end, 0};
    for (const char *p = open ? open + 1 : end; p < end && depth >= 0; p++) {
        if (*p == '%') {
            span rest = ir_cut(s, p), name = ir_take_local(&rest);
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

ir_function *ir_find_called(const ir_functions *all, span line, span args[IR_MOST_PARAMS]) {
    const span name = ir_take_callee(&line);
    for (size_t i = 0; i < all->count && name.bytes; i++)
        if (all->list[i].is_own && ir_is_same(all->list[i].name, name))
            return split_arguments(line, args) == all->list[i].param_count ? &all->list[i] : NULL;
    return NULL;
}

void ir_function_read(ir_function *f) {
    span rest = f->lines[0];
    if (!f->is_own)
        return;
    f->name = ir_take_callee(&rest);
    f->param_count = split_arguments(rest, f->params);
    read_values(f);
    find_places(f);
    find_unset(f);
    find_skipped(f);
    spread_copies(f);
}

void ir_function_free(ir_function *f) {
    free(f->values);
    free(f->variables);
    free(f->lines);
    free(f->members.list);
    free(f->transfers);
}

/* Pointers to arrays in structs: in the module such a pointer is made in two steps,
 *     %a = getelementptr inbounds %struct.S, ptr %s, i32 0, i32 1
 *     %arraydecay = getelementptr inbounds [4 x float], ptr %a, i64 0, i64 0
 * and then stored in a variable. A variable that is stored to once, and whose address is not taken,
 * points there wherever it is loaded. ------------------------------------------------------------ */

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
    span value = find_definition(f, name);
    while (is_step(value, element))
        value = find_definition(f, find_base(value));
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

/* Calls: what functions hand each other in registers. A struct of up to 16 bytes is loaded as one or two
 * numbers, passed or returned, and stored again: a copy, which its members need no value for. What a variable
 * hands over may be without a value only if the variable is watched, and what takes it is watched in turn.
 * ------------------------------------------------------------------------------------------------- */

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
    span value = find_definition(f, name);
    while (ir_begins(value, "trunc ") || ir_begins(value, "zext ")) {
        name = ir_take_local(&value);
        value = find_definition(f, name);
    }
    if (!ir_begins(value, "load "))
        return false;
    const span type = ir_get_type(f->types, ir_skip(value, "load "));
    span rest = ir_cut(value, ir_find(ir_cut(value, type.at + type.bytes), "ptr %"));
    out->line = find_value(f, name)->line;
    out->place = ir_take_local(&rest);
    out->bytes = ir_measure(f->types, type, NULL);
    const ir_value *a = ir_find_address(f, out->place);
    return a && is_copy(&f->variables[a->variable]) && ir_is_watched(&f->variables[a->variable]);
}

/* What the line stores, if that was handed over and may be without a value. */
static bool find_taken(const ir_functions *all, const ir_function *f, span name, ir_transfer *out) {
    span args[IR_MOST_PARAMS], value = find_definition(f, name);
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
        value = find_definition(f, from);
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
            spread_copies(f);
        is_new = is_new || any;
    } while (any);
    return is_new;
}

/* Escapes: a pointer that is stored in a variable can be used for as long as that variable lives, and wherever
 * what is in it goes. Flow and paths are not looked at. -------------------------------------------------- */

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
    span value = find_definition(e->f, name);
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

static bool find_escapes(const ir_functions *all, ir_function *f) {
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

/* All of them ------------------------------------------------------------------------------------ */

static bool link_members(const ir_functions *all, ir_function *f) {
    bool is_new = false;
    for (size_t n = 0; n < f->line_count; n++)
        is_new = link_arguments(all, f, f->lines[n]) || is_new;
    return is_new;
}

/* What is found in one function may be news for those that it calls or that call it. */
static void repeat(ir_functions *all, bool (*step)(const ir_functions *, ir_function *)) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < all->count; i++)
            is_new = (all->list[i].is_own && step(all, &all->list[i])) || is_new;
    }
}

void ir_functions_link(ir_functions *all) {
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].is_own)
            find_members(&all->list[i]);
    repeat(all, link_members);
    repeat(all, link_function);
    repeat(all, find_escapes);
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->list[i].count; k++) {
            variable *v = &all->list[i].variables[k];
            v->is_array = v->is_array || v->escapes;
        }
}
