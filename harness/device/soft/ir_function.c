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

const ir_value *ir_find_value(const ir_function *f, span name) {
    const ir_value *v = name.bytes && f->capacity ? find_slot(f, name) : NULL;
    return v && v->name.bytes ? v : NULL;
}

const ir_value *ir_find_address(const ir_function *f, span name) {
    const ir_value *v = ir_find_value(f, name);
    return v && v->variable >= 0 ? v : NULL;
}

span ir_find_definition(const ir_function *f, span name) {
    const ir_value *v = ir_find_value(f, name);
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

void ir_spread_copies(ir_function *f) {
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
    ir_spread_copies(f);
}

void ir_function_free(ir_function *f) {
    free(f->values);
    free(f->variables);
    free(f->lines);
    free(f->members.list);
    free(f->transfers);
}
