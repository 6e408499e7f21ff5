/* instrument: see instrument.h.
 *
 * Only functions of the kernel's own files are touched, and there
 *   - an array, or a struct with one, moves from the stack to where a pointer that leaves it is seen;
 *   - a variable without a value stays on the stack, but the optimiser is not told that its address is
 *     that of a variable: it would keep it in a register, and accesses would not be checked;
 *   - filling such a variable with the pattern becomes a call that marks its bytes as unset.
 * Both end at the function's return. A vector or struct that is filled and then given all its members
 * in the same block has a value, and is left to the optimiser.
 *
 * Tables of constants get a pattern on both sides, by which a pointer that left them is known. */
#include "instrument.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/array.h"
#include "ir_layout.h"

enum { MOST_STORES = 64, TABLE_GAP = 1024 };

typedef struct {
    span name, type;
    uint64_t bytes;
    long debug; /* where it is declared, as a number of the metadata; -1: not known */
    bool is_array, is_unset;
    bool is_skipped; /* a case of a switch jumps over its declaration */
} variable;

/* A value of the function that is a variable's address, or that of a part of it. */
typedef struct {
    span name, path; /* path: which part, as it is written; empty for all of it */
    int variable;
} address;

typedef struct {
    FILE *out;
    const char *module, *metadata;
    ir_types types;
    char note[32];  /* ", !annotation !7" */
    bool is_opaque; /* pointers have no types */
    bool has_lives; /* it says where variables begin and end */
    int made;       /* constants so far */
    span *lines;    /* of one function */
    size_t line_count, line_room;
    variable *variables;
    size_t count, room;
    address *addresses; /* a hash table */
    size_t capacity;
    char *constants; /* that follow after the function */
    size_t constant_bytes;
    FILE *more;
} instrument;

/* Text ----------------------------------------------------------------------------------------- */

static const char *find_in(span s, const char *word) {
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

static bool begins(span s, const char *word) {
    return s.bytes >= strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

static bool is_same(span a, span b) {
    return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

/* The next local name in the text, `%x` or `%"x y"`; empty if there is none. s becomes the rest. */
static span take_local(span *s) {
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

/* The line of the metadata with this number; what follows after the '='. */
static const char *find_metadata(const instrument *m, long number) {
    char start[32];
    int n = snprintf(start, sizeof start, "\n!%ld = ", number);
    const char *p = strstr(m->metadata, start);
    return p ? p + n : "";
}

static long read_reference(const char *line, const char *field) {
    const char *p = strstr(line, field);
    return p && p < line + strcspn(line, "\n") ? strtol(p + strlen(field), NULL, 10) : -1;
}

/* Is the function that this line begins one of the kernel's own, and not of the shim? */
static bool is_of_kernel(const instrument *m, span define) {
    const char *debug = find_in(define, "!dbg !");
    if (!debug)
        return false;
    const char *function = find_metadata(m, strtol(debug + 6, NULL, 10));
    const char *file = find_metadata(m, read_reference(function, "file: !"));
    span name = {file, strcspn(file, "\n")};
    return name.bytes && !find_in(name, "/device/shim/") && !find_in(name, "\"entry of ") &&
           !find_in(name, "/soft/abi.h");
}

/* Addresses ------------------------------------------------------------------------------------ */

static address *find_slot(const instrument *m, span name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.bytes; i++)
        h = (h ^ (unsigned char)name.at[i]) * 0x100000001b3u;
    for (h ^= h >> 29;; h++) {
        address *a = &m->addresses[h & (m->capacity - 1)];
        if (!a->name.bytes || is_same(a->name, name))
            return a;
    }
}

static const address *find_address(const instrument *m, span name) {
    const address *a = name.bytes ? find_slot(m, name) : NULL;
    return a && a->name.bytes ? a : NULL;
}

/* The first variable that the text names, or a part of one. */
static const address *find_first(const instrument *m, span s) {
    while (s.bytes) {
        const address *a = find_address(m, take_local(&s));
        if (a)
            return a;
    }
    return NULL;
}

/* What is defined by the line, and what of; false if it defines nothing. */
static bool split_definition(span line, span *name, span *value) {
    if (!begins(line, "  %"))
        return false;
    span rest = line;
    *name = take_local(&rest);
    if (!begins(rest, " = "))
        return false;
    *value = (span){rest.at + 3, rest.bytes - 3};
    return true;
}

/* Has the kernel's author declared it, and not the compiler? */
static bool is_of_source(span name) {
    static const char *const others[] = {"%retval", "%tmp", "%coerce"};
    bool is_source = !find_in(name, ".") && !isdigit((unsigned char)name.at[1]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is_source = is_source && !begins(name, others[i]);
    return is_source;
}

static void read_alloca(instrument *m, span name, span value) {
    const char *type = value.at + strlen("alloca "), *end = find_in(value, ", align ");
    if (!end || find_in(value, "inalloca"))
        return;
    span spelled = {type, (size_t)(end - type)};
    uint64_t bytes = ir_measure(&m->types, spelled, NULL);
    if (!bytes)
        return;
    *find_slot(m, name) = (address){.name = name, .variable = (int)m->count};
    *ARRAY_ADD(m->variables, m->count, m->room) =
        (variable){.name = name,
                   .type = spelled,
                   .bytes = bytes,
                   .debug = -1,
                   .is_array = is_of_source(name) && ir_has_array(&m->types, spelled)};
}

static bool is_derived(span value) {
    return begins(value, "getelementptr ") || begins(value, "bitcast ");
}

static void read_addresses(instrument *m) {
    for (m->capacity = 64; m->capacity < 2 * m->line_count;)
        m->capacity *= 2;
    m->addresses = array_new(m->capacity, sizeof *m->addresses);
    m->count = 0;
    for (size_t i = 0; i < m->line_count; i++) {
        span name, value;
        if (!split_definition(m->lines[i], &name, &value))
            continue;
        if (begins(value, "alloca ")) {
            read_alloca(m, name, value);
        } else if (is_derived(value)) {
            const address *a = find_first(m, value);
            const char *path = find_in(value, ", i"), *end = find_in(value, ", !dbg");
            if (a && path && end > path)
                *find_slot(m, name) = (address){name, {path, (size_t)(end - path)}, a->variable};
            else if (a)
                *find_slot(m, name) = (address){name, a->path, a->variable};
        }
    }
}

/* Where the line stores to, or what a call takes first; NULL if that is not a variable. */
static const address *find_target(const instrument *m, span line) {
    if (!begins(line, "  store "))
        return find_first(m, line);
    const char *end = find_in(line, ", align ");
    const address *last = NULL;
    for (span s = {line.at, end ? (size_t)(end - line.at) : line.bytes}; s.bytes;) {
        span name = take_local(&s);
        last = name.bytes ? find_address(m, name) : last;
    }
    return last;
}

/* Values --------------------------------------------------------------------------------------- */

/* What a line does to a variable. */
typedef enum { LEAVES, FILLS_PART, FILLS, USES } effect;

static bool is_constructor_of_shim(span line) {
    const char *name = find_in(line, "@_ZN5metal");
    if (!name)
        return false;
    span call = {name, strcspn(name, "(")};
    const char *two = find_in(call, "C2E"), *one = find_in(call, "C1E");
    const char *what = two ? two : one;
    return what && strncmp(what + 3, "v(", 2) != 0;
}

static effect judge_line(const instrument *m, span line, int v, const address **part) {
    bool is_named = false;
    for (span s = line; s.bytes && !is_named;) {
        const address *a = find_address(m, take_local(&s));
        is_named = a && a->variable == v;
    }
    span name, value;
    if (!is_named || find_in(line, m->note) || find_in(line, "@llvm.lifetime.") ||
        (split_definition(line, &name, &value) && is_derived(value)))
        return LEAVES;
    const address *target = *part = find_target(m, line);
    if (!target || target->variable != v)
        return USES;
    span after = {line.at + 8, line.bytes - 8};
    if (begins(line, "  store ")) {
        const address *first = find_first(m, after); /* the address itself may be stored */
        return first == target ? FILLS_PART : USES;
    }
    const bool is_call = begins(line, "  call ");
    if (is_call &&
        ((find_in(line, " sret(") && !target->path.bytes) || is_constructor_of_shim(line)))
        return FILLS;
    return USES;
}

/* How many bytes the line stores. */
static uint64_t measure_store(const instrument *m, span line) {
    span type = {line.at + strlen("  store "), line.bytes - strlen("  store ")};
    return ir_measure(&m->types, type, NULL);
}

static uint64_t count_values(const instrument *m, const variable *v) {
    unsigned char *marks = array_new(1, v->bytes);
    uint64_t n = 0;
    ir_measure(&m->types, v->type, marks);
    for (uint64_t i = 0; i < v->bytes; i++)
        n += marks[i] != 0;
    free(marks);
    return n;
}

/* Is all of the variable stored after line i, in the same block and before it is used? */
static bool has_value(const instrument *m, size_t i, int v) {
    span seen[MOST_STORES];
    size_t count = 0;
    uint64_t stored = 0, wanted = count_values(m, &m->variables[v]);
    while (++i < m->line_count && begins(m->lines[i], "  ") && count < MOST_STORES) {
        const address *part;
        const effect what = judge_line(m, m->lines[i], v, &part);
        if (what == FILLS || what == USES)
            return what == FILLS;
        if (what == LEAVES)
            continue;
        bool is_new = true;
        for (size_t k = 0; k < count; k++)
            is_new = is_new && !is_same(seen[k], part->path);
        seen[count++] = part->path;
        stored += is_new ? measure_store(m, m->lines[i]) : 0;
        if (stored >= wanted)
            return true;
    }
    return false;
}

static void find_unset(instrument *m) {
    for (size_t i = 0; i < m->line_count; i++) {
        if (!find_in(m->lines[i], m->note))
            continue;
        const address *a = find_target(m, m->lines[i]);
        variable *v = a ? &m->variables[a->variable] : NULL;
        if (v && !v->is_unset && (v->is_array || !has_value(m, i, a->variable)))
            v->is_unset = true;
    }
}

static bool is_watched(const variable *v) {
    return v->is_array || v->is_unset;
}

/* Where a case of a switch jumps over a declaration, clang neither fills the variable nor says where
 * its life begins. */
static void find_skipped(instrument *m) {
    bool has_switch = false, *lives = array_new(m->count + 1, sizeof *lives);
    for (size_t i = 0; i < m->line_count; i++) {
        has_switch = has_switch || begins(m->lines[i], "  switch ");
        const address *a =
            find_in(m->lines[i], "@llvm.lifetime.start") ? find_target(m, m->lines[i]) : NULL;
        if (a)
            lives[a->variable] = true;
    }
    for (size_t i = 0; i < m->count && has_switch && m->has_lives; i++) {
        variable *v = &m->variables[i];
        v->is_skipped = !lives[i] && is_of_source(v->name);
        v->is_unset = v->is_unset || v->is_skipped;
    }
    free(lives);
}

/* `call void @llvm.memcpy...(to, from, ...)`: a copy of a variable is as unset as the variable. */
static bool find_copy(const instrument *m, span line, const address **to, const address **from) {
    if (!begins(line, "  call void @llvm.memcpy."))
        return false;
    span rest = line;
    *to = find_address(m, take_local(&rest));
    *from = find_address(m, take_local(&rest));
    return (*to && is_watched(&m->variables[(*to)->variable])) ||
           (*from && is_watched(&m->variables[(*from)->variable]));
}

static void find_copies(instrument *m) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t i = 0; i < m->line_count; i++) {
            const address *to, *from;
            if (!find_copy(m, m->lines[i], &to, &from) || !to || !from ||
                is_watched(&m->variables[to->variable]))
                continue;
            m->variables[to->variable].is_unset = is_new = true;
        }
    }
}

/* Output --------------------------------------------------------------------------------------- */

/* LLVM numbers names that occur twice: `%sum5` may be the second `sum`. */
static bool is_name_certain(const instrument *m, span name) {
    span base = name;
    while (base.bytes > 1 && isdigit((unsigned char)base.at[base.bytes - 1]))
        base.bytes--;
    for (size_t i = 0; i < m->count && base.bytes < name.bytes; i++)
        if (is_same(m->variables[i].name, base))
            return false;
    return base.bytes > 1;
}

/* A new constant of bytes: how calls refer to it. */
typedef struct {
    char text[128];
} reference;

static reference print_constant(instrument *m, const unsigned char *data, uint64_t bytes) {
    reference r;
    unsigned long long n = bytes;
    fprintf(m->more, "@assay.constant.%d = private unnamed_addr constant [%llu x i8] c\"", m->made,
            n);
    for (uint64_t i = 0; i < bytes; i++)
        fprintf(m->more, "\\%02X", data[i]);
    fprintf(m->more, "\"\n");
    if (m->is_opaque)
        snprintf(r.text, sizeof r.text, "ptr @assay.constant.%d", m->made++);
    else
        snprintf(r.text, sizeof r.text,
                 "i8* getelementptr ([%llu x i8], [%llu x i8]* @assay.constant.%d, i64 0, i64 0)",
                 n, n, m->made++);
    return r;
}

/* Says which variable it is: 'sum' of line 7. */
static reference name_variable(instrument *m, const variable *v) {
    char text[160];
    const int most = 80;
    int bytes = (int)v->name.bytes - 1, used;
    if (is_name_certain(m, v->name))
        used = snprintf(text, sizeof text, "'%.*s'", bytes < most ? bytes : most, v->name.at + 1);
    else
        used = snprintf(text, sizeof text, "the variable");
    const long line = read_reference(find_metadata(m, v->debug), "line: ");
    if (line > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, " of line %ld", line);
    return print_constant(m, (const unsigned char *)text, (uint64_t)used + 1);
}

static reference print_marks(instrument *m, span element, uint64_t bytes) {
    unsigned char *marks = array_new(1, bytes);
    ir_measure(&m->types, element, marks);
    reference r = print_constant(m, marks, bytes);
    free(marks);
    return r;
}

/* The variable's address as the hooks take it, in a call or a definition. */
static void print_address(instrument *m, const variable *v) {
    if (m->is_opaque)
        fprintf(m->out, "ptr %.*s", (int)v->name.bytes, v->name.at);
    else
        fprintf(m->out, "i8* %%assay.at.%zu", (size_t)(v - m->variables));
}

static void print_unset(instrument *m, const variable *v) {
    const span element = ir_get_element(v->type);
    const uint64_t period = ir_measure(&m->types, element, NULL);
    const reference marks = print_marks(m, element, period), what = name_variable(m, v);
    fprintf(m->out, "  call void @__assay_unset(");
    print_address(m, v);
    fprintf(m->out, ", i64 %llu, %s, i32 %llu, %s)\n", (unsigned long long)v->bytes, marks.text,
            (unsigned long long)period, what.text);
}

static void print_alloca(instrument *m, const variable *v, span line) {
    const int name = (int)v->name.bytes, type = (int)v->type.bytes;
    const size_t n = (size_t)(v - m->variables);
    const char *pointer = m->is_opaque ? "ptr" : "i8*";
    if (v->is_array) {
        const reference what = name_variable(m, v);
        if (m->is_opaque)
            fprintf(m->out, "  %.*s", name, v->name.at);
        else
            fprintf(m->out, "  %%assay.at.%zu", n);
        fprintf(m->out, " = call %s @__assay_reserve(i64 %llu, %s)\n", pointer,
                (unsigned long long)v->bytes, what.text);
        if (!m->is_opaque)
            fprintf(m->out, "  %.*s = bitcast i8* %%assay.at.%zu to %.*s*\n", name, v->name.at, n,
                    type, v->type.at);
        return;
    }
    const char *rest = v->name.at + v->name.bytes; /* of the line */
    fprintf(m->out, "  %%assay.stack.%zu%.*s\n", n, (int)(line.at + line.bytes - rest), rest);
    span of = {v->type.at, m->is_opaque ? 0 : v->type.bytes};
    const char *star = m->is_opaque ? "ptr" : "*";
    fprintf(m->out,
            "  %.*s = call %.*s%s asm sideeffect \"\", \"=r,0\"(%.*s%s %%assay.stack.%zu)\n", name,
            v->name.at, (int)of.bytes, of.at, star, (int)of.bytes, of.at, star, n);
    if (!m->is_opaque)
        fprintf(m->out, "  %%assay.at.%zu = bitcast %.*s* %.*s to i8*\n", n, type, v->type.at, name,
                v->name.at);
    if (v->is_skipped)
        print_unset(m, v);
}

static void print_ends(instrument *m) {
    for (size_t i = m->count; i-- > 0;) {
        const variable *v = &m->variables[i];
        if (!is_watched(v))
            continue;
        fprintf(m->out, "  call void @__assay_end(");
        print_address(m, v);
        fprintf(m->out, ", i64 %llu)\n", (unsigned long long)v->bytes);
    }
}

/* A small copy would become a load and a store of a number, with what is unset in it. */
static bool print_copy(instrument *m, span line) {
    const address *to, *from;
    const char *open = strchr(line.at, '('), *end = find_in(line, ", i1 ");
    if (!end || !find_copy(m, line, &to, &from))
        return false;
    const char *rest = strchr(end, ')');
    fprintf(m->out, "  %%assay.copy.%d = call %s @__tsan_memcpy%.*s%.*s\n", m->made++,
            m->is_opaque ? "ptr" : "i8*", (int)(end - open), open,
            (int)(line.at + line.bytes - rest), rest);
    return true;
}

/* Lines of the function. Filling with the pattern is dropped everywhere: what is left of it fills
 * variables that are given a value, or that are the shim's. */
static void print_function(instrument *m, bool is_own) {
    int filled = -1; /* of several such lines in a row the first makes the call */
    for (size_t i = 0; i < m->line_count; i++) {
        const span line = m->lines[i];
        span name, value;
        const bool defines = split_definition(line, &name, &value);
        const bool fills = m->note[0] && find_in(line, m->note);
        const address *a = is_own && (fills || find_in(line, "@llvm.lifetime."))
                               ? find_target(m, line)
                           : is_own && defines && begins(value, "alloca ") ? find_address(m, name)
                                                                           : NULL;
        const variable *v = a ? &m->variables[a->variable] : NULL;
        const bool is_told = v && is_watched(v);
        if (fills) {
            if (is_told && a->variable != filled)
                print_unset(m, v);
            filled = a ? a->variable : -1;
            continue;
        }
        if (!defines || !is_derived(value))
            filled = -1;
        if (is_told && defines) {
            print_alloca(m, v, line);
        } else if (!is_told && !(is_own && print_copy(m, line))) {
            if (is_own && begins(line, "  ret "))
                print_ends(m);
            fprintf(m->out, "%.*s\n", (int)line.bytes, line.at);
        }
    }
}

/* Where each variable is declared: the place of the first instruction that has to do with it. */
static void find_places(instrument *m) {
    for (size_t i = 0; i < m->line_count; i++) {
        const char *debug = find_in(m->lines[i], "!dbg !");
        const address *a = debug ? find_first(m, m->lines[i]) : NULL;
        if (a && m->variables[a->variable].debug < 0)
            m->variables[a->variable].debug = strtol(debug + 6, NULL, 10);
    }
}

static void rewrite_function(instrument *m) {
    const bool is_own = is_of_kernel(m, m->lines[0]);
    if (is_own) {
        read_addresses(m);
        find_places(m);
        find_unset(m);
        find_skipped(m);
        find_copies(m);
    }
    print_function(m, is_own);
    free(m->addresses);
    m->addresses = NULL;
}

/* The number of the note "auto-init", if any variable is filled. */
static void find_note(instrument *m) {
    const char *p = strstr(m->metadata, " = !{!\"auto-init\"}");
    const char *number = p;
    while (number && number > m->metadata && number[-1] != '!')
        number--;
    if (p)
        snprintf(m->note, sizeof m->note, ", !annotation !%.*s", (int)(p - number), number);
}

/* Bytes of the pattern that goes before and after tables, for an offset from a multiple of 16. */
static void print_pattern(instrument *m, uint64_t offset) {
    static const char pattern[] = SOFT_TABLE_PATTERN;
    fprintf(m->out, "[%d x i8] c\"", TABLE_GAP);
    for (uint64_t i = offset; i < offset + TABLE_GAP; i++)
        fprintf(m->out, "\\%02X", (unsigned char)pattern[i % 16]);
    fputc('"', m->out);
}

/* `@t = internal constant [4 x float] [...], align 16`: a constant of the kernel gets the pattern on
 * both sides. */
static bool print_table(instrument *m, span line) {
    const char *linkage = find_in(line, " = "), *constant = find_in(line, " constant ");
    const char *align = find_in(line, ", align "), *comdat = find_in(line, ", comdat");
    if (!begins(line, "@_Z") || begins(line, "@_ZN5assay") || begins(line, "@_ZN5metal") ||
        !linkage || !constant || !align || find_in(line, " external "))
        return false;
    const char *start = constant + strlen(" constant "), *end = comdat ? comdat : align;
    const span value = {start, (size_t)(end - start)}, type = ir_get_type(&m->types, value);
    const uint64_t bytes = ir_measure(&m->types, type, NULL);
    if (!bytes)
        return false;
    const int n = m->made++, name = (int)(linkage - line.at), t = (int)type.bytes;
    char whole[600];
    if (t > 400)
        return false;
    snprintf(whole, sizeof whole, "<{ [%d x i8], %.*s, [%d x i8] }>", TABLE_GAP, t, type.at,
             TABLE_GAP);
    fprintf(m->out, "@assay.table.%d = internal constant %s <{ ", n, whole);
    print_pattern(m, 0);
    fprintf(m->out, ", %.*s, ", (int)value.bytes, value.at);
    print_pattern(m, TABLE_GAP + bytes);
    fprintf(m->out, " }>, align 256\n%.*s = internal alias %.*s, ", name, line.at, t, type.at);
    if (m->is_opaque)
        fprintf(m->out, "ptr getelementptr (%s, ptr @assay.table.%d, i32 0, i32 1)\n", whole, n);
    else
        fprintf(m->out, "%.*s* getelementptr (%s, %s* @assay.table.%d, i32 0, i32 1)\n", t, type.at,
                whole, whole, n);
    return true;
}

static void rewrite_lines(instrument *m) {
    bool is_inside = false;
    for (const char *p = m->module; *p;) {
        const span line = {p, strcspn(p, "\n")};
        p += line.bytes + (p[line.bytes] == '\n');
        is_inside = is_inside || begins(line, "define ");
        if (!is_inside && print_table(m, line))
            continue;
        if (!is_inside) {
            fprintf(m->out, "%.*s\n", (int)line.bytes, line.at);
            continue;
        }
        *ARRAY_ADD(m->lines, m->line_count, m->line_room) = line;
        if (line.at[0] == '}') {
            rewrite_function(m);
            m->line_count = 0;
            is_inside = false;
        }
    }
}

char *instrument_module(const char *module) {
    instrument m = {.module = module, .metadata = strstr(module, "\n!")};
    char *text = NULL;
    size_t bytes;
    m.metadata = m.metadata ? m.metadata : "";
    m.has_lives = strstr(module, "@llvm.lifetime.start") != NULL;
    m.is_opaque = strstr(module, "ptr ") != NULL;
    m.out = open_memstream(&text, &bytes);
    m.more = open_memstream(&m.constants, &m.constant_bytes);
    if (!m.out || !m.more)
        abort();
    ir_types_read(&m.types, module);
    find_note(&m);
    rewrite_lines(&m);
    fclose(m.more);
    const char *pointer = m.is_opaque ? "ptr" : "i8*";
    fprintf(m.out,
            "%s\ndeclare hidden %s @__assay_reserve(i64, %s)\n"
            "declare hidden void @__assay_unset(%s, i64, %s, i32, %s)\n"
            "declare hidden void @__assay_end(%s, i64)\n"
            "declare hidden %s @__tsan_memcpy(%s, %s, i64)\n",
            m.constants, pointer, pointer, pointer, pointer, pointer, pointer, pointer, pointer,
            pointer);
    fclose(m.out);
    free(m.constants);
    free(m.lines);
    free(m.variables);
    free(m.types.list);
    return text;
}
