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

const char *ir_find(span s, const char *word) {
    size_t n = strlen(word);
    for (const char *p = s.at, *end = s.at + s.bytes; p + n <= end; p++) {
        p = memchr(p, word[0], (size_t)(end - p) - n + 1);
        if (!p)
            return NULL;
        if (memcmp(p, word, n) == 0)
            return p;
    }
    return NULL;
}

bool ir_begins(span s, const char *word) {
    return s.bytes >= strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

bool ir_is_same(span a, span b) {
    return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

/* The next local name in the text, `%x` or `%"x y"`; empty if there is none. s becomes the rest. */
span ir_take_local(span *s) {
    const char *p = memchr(s->at, '%', s->bytes), *end = s->at + s->bytes;
    if (!p)
        return *s = (span){end, 0};
    const char *q = p + 1;
    if (q < end && *q == '"')
        for (q++; q < end && *q++ != '"';)
            ;
    else
        while (q < end && (isalnum((unsigned char)*q) || strchr("-$._", *q)))
            q++;
    *s = (span){q, (size_t)(end - q)};
    return (span){p, (size_t)(q - p)};
}

/* Addresses ------------------------------------------------------------------------------------ */

static uint64_t hash_name(span name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.bytes; i++)
        h = (h ^ (unsigned char)name.at[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static address *find_slot(const ir_function *f, span name) {
    for (uint64_t h = hash_name(name);; h++) {
        address *a = &f->addresses[h & (f->capacity - 1)];
        if (!a->name.bytes || ir_is_same(a->name, name))
            return a;
    }
}

static definition *find_defined(const ir_function *f, span name) {
    for (uint64_t h = hash_name(name);; h++) {
        definition *d = &f->definitions[h & (f->capacity - 1)];
        if (!d->name.bytes || ir_is_same(d->name, name))
            return d;
    }
}

bool ir_find_definition(const ir_function *f, span name, size_t *line, span *value) {
    const definition *d = name.bytes ? find_defined(f, name) : NULL;
    if (!d || !d->name.bytes)
        return false;
    *line = d->line;
    return ir_split_definition(f->lines[d->line], &name, value);
}

const address *ir_find_address(const ir_function *f, span name) {
    const address *a = name.bytes ? find_slot(f, name) : NULL;
    return a && a->name.bytes ? a : NULL;
}

/* The first variable that the text names, or a part of one. */
static const address *find_first(const ir_function *f, span s) {
    while (s.bytes) {
        const address *a = ir_find_address(f, ir_take_local(&s));
        if (a)
            return a;
    }
    return NULL;
}

/* What is defined by the line, and what of; false if it defines nothing. */
bool ir_split_definition(span line, span *name, span *value) {
    if (!ir_begins(line, "  %"))
        return false;
    span rest = line;
    *name = ir_take_local(&rest);
    if (!ir_begins(rest, " = "))
        return false;
    *value = (span){rest.at + 3, rest.bytes - 3};
    return true;
}

/* Names of the compiler's own variables have a dot or are numbers. */
static bool is_of_source(span name) {
    return !ir_find(name, ".") && !isdigit((unsigned char)name.at[1]);
}

static void read_alloca(ir_function *f, span name, span value) {
    const char *type = value.at + strlen("alloca "), *end = ir_find(value, ", align ");
    if (!end || ir_find(value, "inalloca"))
        return;
    span spelled = {type, (size_t)(end - type)};
    uint64_t bytes = ir_measure(f->types, spelled, NULL);
    if (!bytes)
        return;
    *find_slot(f, name) = (address){.name = name, .variable = (int)f->count};
    *ARRAY_ADD(f->variables, f->count, f->room) =
        (variable){.name = name,
                   .type = spelled,
                   .bytes = bytes,
                   .debug = -1,
                   .is_array = is_of_source(name) && ir_has_array(f->types, spelled)};
}

bool ir_is_derived(span value) {
    return ir_begins(value, "getelementptr ") || ir_begins(value, "bitcast ");
}

static void read_addresses(ir_function *f) {
    for (f->capacity = 64; f->capacity < 2 * f->line_count;)
        f->capacity *= 2;
    f->addresses = array_new(f->capacity, sizeof *f->addresses);
    f->definitions = array_new(f->capacity, sizeof *f->definitions);
    f->count = 0;
    for (size_t i = 0; i < f->line_count; i++) {
        span name, value;
        if (!ir_split_definition(f->lines[i], &name, &value))
            continue;
        *find_defined(f, name) = (definition){name, i};
        if (ir_begins(value, "alloca ")) {
            read_alloca(f, name, value);
        } else if (ir_is_derived(value)) {
            const address *a = find_first(f, value);
            const char *path = ir_find(value, ", i"), *end = ir_find(value, ", !dbg");
            if (a && path && end > path)
                *find_slot(f, name) = (address){name, {path, (size_t)(end - path)}, a->variable};
            else if (a)
                *find_slot(f, name) = (address){name, a->path, a->variable};
        }
    }
}

/* Where the line stores to, or what a call takes first; NULL if that is not a variable. */
const address *ir_find_target(const ir_function *f, span line) {
    if (!ir_begins(line, "  store "))
        return find_first(f, line);
    const char *end = ir_find(line, ", align ");
    const address *last = NULL;
    for (span s = {line.at, end ? (size_t)(end - line.at) : line.bytes}; s.bytes;) {
        span name = ir_take_local(&s);
        last = name.bytes ? ir_find_address(f, name) : last;
    }
    return last;
}

/* Values --------------------------------------------------------------------------------------- */

/* What a line does to a variable. */
typedef enum { LEAVES, FILLS_PART, FILLS, USES } effect;

static bool is_constructor_of_shim(span line) {
    const char *name = ir_find(line, "@_ZN5metal");
    if (!name)
        return false;
    span call = {name, strcspn(name, "(")};
    const char *two = ir_find(call, "C2E"), *one = ir_find(call, "C1E");
    const char *what = two ? two : one;
    return what && strncmp(what + 3, "v(", 2) != 0;
}

static effect judge_line(const ir_function *f, span line, int v, const address **part) {
    bool is_named = false;
    for (span s = line; s.bytes && !is_named;) {
        const address *a = ir_find_address(f, ir_take_local(&s));
        is_named = a && a->variable == v;
    }
    span name, value;
    if (!is_named || ir_find(line, f->note) || ir_find(line, "@llvm.lifetime.") ||
        ir_find(line, "!nosanitize") || /* a check of the compiler's */
        (ir_split_definition(line, &name, &value) && ir_is_derived(value)))
        return LEAVES;
    const address *target = *part = ir_find_target(f, line);
    if (!target || target->variable != v)
        return USES;
    span after = {line.at + 8, line.bytes - 8};
    if (ir_begins(line, "  store ")) {
        const address *first = find_first(f, after); /* the address itself may be stored */
        return first == target ? FILLS_PART : USES;
    }
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

/* How many bytes the line stores. */
static uint64_t measure_store(const ir_function *f, span line) {
    span type = {line.at + strlen("  store "), line.bytes - strlen("  store ")};
    return ir_measure(f->types, type, NULL);
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

static bool is_load(span line) {
    span name, value;
    return ir_split_definition(line, &name, &value) && ir_begins(value, "load ");
}

/* Is all of the variable stored after line i, on every path and before it is used? */
static bool has_value(const ir_function *f, size_t i, int v) {
    span seen[MOST_STORES];
    size_t count = 0;
    int depth = 0;
    uint64_t stored = 0, wanted = count_values(f, &f->variables[v]);
    while (++i < f->line_count && count < MOST_STORES) {
        const address *part;
        if (f->lines[i].bytes && !ir_begins(f->lines[i], "  ")) {
            if (!follow_label(f->lines[i], &depth))
                return false;
            continue;
        }
        const effect what = judge_line(f, f->lines[i], v, &part);
        bool is_new = true;
        for (size_t k = 0; k < count && what != LEAVES && part; k++)
            is_new = is_new && !ir_is_same(seen[k], part->path);
        if (what == LEAVES || (what == USES && !is_new && is_load(f->lines[i])))
            continue;
        if (what == USES || (what == FILLS && depth == 0))
            return what == FILLS;
        if (depth > 0)
            continue;
        seen[count++] = part->path;
        stored += is_new ? measure_store(f, f->lines[i]) : 0;
        if (stored >= wanted)
            return true;
    }
    return false;
}

static void find_unset(ir_function *f) {
    for (size_t i = 0; i < f->line_count; i++) {
        if (!ir_find(f->lines[i], f->note))
            continue;
        const address *a = ir_find_target(f, f->lines[i]);
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
        const address *a =
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
    const address *a = ir_find_address(f, name);
    return a && ir_is_watched(&f->variables[a->variable]);
}

/* A copy of a variable is as unset as the variable. */
bool ir_is_copy(const ir_function *f, span line, span *to, span *from, span *bytes) {
    const char *vector = ir_find(line, "@_ZN5metal3vecI");
    span callee = {vector, vector ? strcspn(vector, "(") : 0}, name, value, rest = line;
    if (ir_begins(line, "  call void @llvm.memcpy.")) {
        const char *size = ir_find(line, ", i64 ");
        *bytes = (span){size ? size + 6 : line.at, size ? strcspn(size + 6, ",") : 0};
    } else if (ir_find(callee, "C2ERKS1_") || ir_find(callee, "C1ERKS1_") ||
               ir_find(callee, "aSERKS1_")) {
        const char *size = ir_find((span){callee.at, (size_t)(line.at + line.bytes - callee.at)},
                                   " dereferenceable(");
        *bytes = (span){size ? size + 17 : line.at, size ? strcspn(size + 17, ")") : 0};
    } else {
        return false;
    }
    if (ir_split_definition(line, &name, &value))
        rest = value;
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
            const address *a;
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
        const address *a = debug ? find_first(f, f->lines[i]) : NULL;
        if (a && f->variables[a->variable].debug < 0)
            f->variables[a->variable].debug = strtol(debug + 6, NULL, 10);
    }
}

void ir_function_read(ir_function *f) {
    read_addresses(f);
    find_places(f);
    find_unset(f);
    find_skipped(f);
    ir_spread_copies(f);
}

void ir_function_forget(ir_function *f) {
    free(f->addresses);
    free(f->definitions);
    free(f->variables);
    free(f->lines);
    *f = (ir_function){0};
}
