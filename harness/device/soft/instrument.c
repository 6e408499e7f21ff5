/* instrument: see instrument.h.
 *
 * Only functions of the kernel's own files are touched, and there
 *   - an array, or a struct with one, moves to where a pointer that leaves it is seen;
 *   - a variable without a value stays on the stack, but the optimiser is not told that its address
 *     is that of a variable: it would keep it in a register, and accesses would not be checked;
 *   - filling such a variable with the pattern becomes a call that marks its bytes as unset.
 * Both end at the function's return. Other variables are left to the optimiser.
 *
 * Tables of constants get a gap on both sides, and the kernel a list of them: a pointer that left its
 * table is known by its address. */
#include "instrument.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/array.h"
#include "ir_escape.h"
#include "ir_member.h"

/* An access with this note is not checked; the number is beyond those of the module. */
#define UNSEEN_NODE "!2000000000"
#define UNSEEN ", !nosanitize " UNSEEN_NODE

typedef struct {
    FILE *out;
    const char *module, *metadata;
    ir_types types;
    bool is_opaque; /* pointers have no types */
    int made;       /* constants and values so far */
    ir_routines routines;
    size_t current;              /* routine */
    const ir_function *function; /* its lines */
    char note[32];               /* that follows where a variable is filled with the pattern */
    FILE *more;                  /* constants, which come last */
    char *constants;
    size_t constant_bytes;
    FILE *tables; /* their list */
    char *table_list;
    size_t table_list_bytes;
    int table_count;
    bool has_table_list;
} instrument;

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
    const char *debug = ir_find(define, "!dbg !");
    if (!debug)
        return false;
    const char *function = find_metadata(m, strtol(debug + 6, NULL, 10));
    const char *file = find_metadata(m, read_reference(function, "file: !"));
    span name = {file, strcspn(file, "\n")};
    return name.bytes && !ir_find(name, "/device/shim/") && !ir_find(name, "\"entry of ") &&
           !ir_find(name, "/soft/abi.h");
}

/* Variables ------------------------------------------------------------------------------------ */

/* LLVM numbers names that occur twice: `%sum5` may be the second `sum`. */
static bool is_name_certain(const instrument *m, span name) {
    span base = name;
    while (base.bytes > 1 && isdigit((unsigned char)base.at[base.bytes - 1]))
        base.bytes--;
    for (size_t i = 0; i < m->function->count && base.bytes < name.bytes; i++) {
        span other = m->function->variables[i].name; /* of a parameter x: %x.addr */
        const char *dot = ir_find(other, ".addr");
        if (ir_is_same((span){other.at, dot ? (size_t)(dot - other.at) : other.bytes}, base))
            return false;
    }
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
    const char *dot = memchr(v->name.at, '.', v->name.bytes), *end = v->name.at + v->name.bytes;
    const bool is_param = dot && ir_is_same((span){dot, (size_t)(end - dot)}, (span){".addr", 5});
    int bytes = (int)((is_param ? dot : end) - v->name.at) - 1, used;
    if (dot && !is_param)
        used = snprintf(text, sizeof text, "a temporary value");
    else if (is_name_certain(m, (span){v->name.at, (size_t)bytes + 1}))
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
        fprintf(m->out, "i8* %%assay.at.%zu", (size_t)(v - m->function->variables));
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
    const size_t n = (size_t)(v - m->function->variables);
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
    if (v->is_copy && m->is_opaque)
        fprintf(m->out, "  call void @__assay_name(ptr %.*s, %s)\n", name, v->name.at,
                name_variable(m, v).text);
}

/* Where the life of a variable begins that there may be old pointers to, and where it ends. */
static void print_life(instrument *m, const variable *v, const char *hook) {
    fprintf(m->out, "  call void @__assay_%s(", hook);
    print_address(m, v);
    fprintf(m->out, ", i64 %llu)\n", (unsigned long long)v->bytes);
}

static void print_ends(instrument *m) {
    for (size_t i = m->function->count; i-- > 0;) {
        const variable *v = &m->function->variables[i];
        if (!ir_is_watched(v))
            continue;
        if (v->escapes)
            print_life(m, v, "leave");
        fprintf(m->out, "  call void @__assay_end(");
        print_address(m, v);
        fprintf(m->out, ", i64 %llu)\n", (unsigned long long)v->bytes);
    }
}

/* A small copy would become a load and a store of a number, with what is unset in it. */
static bool print_copy(instrument *m, span line) {
    span to, from, bytes, name, value;
    if (!ir_is_copy(m->function, line, &to, &from, &bytes))
        return false;
    const char *pointer = m->is_opaque ? "ptr" : "i8*", *debug = ir_find(line, ", !dbg ");
    if (!m->is_opaque && !ir_begins(line, "  call void @llvm.memcpy."))
        return false;
    if (ir_split_definition(line, &name, &value))
        fprintf(m->out, "  %.*s", (int)name.bytes, name.at);
    else
        fprintf(m->out, "  %%assay.copy.%d", m->made++);
    fprintf(m->out, " = call %s @__tsan_memcpy(%s %.*s, %s %.*s, i64 %.*s)%.*s\n", pointer, pointer,
            (int)to.bytes, to.at, pointer, (int)from.bytes, from.at, (int)bytes.bytes, bytes.at,
            debug ? (int)(line.at + line.bytes - debug) : 0, debug ? debug : "");
    return true;
}

/* Asks whether an index stays inside of a member array. */
static void print_index(instrument *m, const ir_routine *r, size_t n) {
    const span line = m->function->lines[n];
    span index;
    uint64_t count;
    if (!ir_is_element(m->function, &r->members, n, &index, &count))
        return;
    const char *debug = ir_find(line, ", !dbg ");
    fprintf(m->out, "  call void @__assay_index(%.*s, i64 %llu)%.*s\n", (int)index.bytes, index.at,
            (unsigned long long)count, (int)(line.at + line.bytes - debug), debug);
}

/* Tells the function that a line calls where the arrays end that it is given pointers to. */
static void print_bounds(instrument *m, const ir_routine *r, size_t n) {
    span args[IR_MOST_PARAMS];
    const span line = m->function->lines[n];
    const bool is_own_call = m->is_opaque && r->is_own && ir_is_call(line);
    const ir_routine *g = is_own_call ? ir_find_callee(&m->routines, line, args) : NULL;
    for (size_t k = 0; g && k < g->param_count; k++) {
        const ir_pointer *p = ir_find_pointer(&r->members, args[k]);
        size_t own;
        if (!g->elements[k].bytes || g->is_mixed[k])
            continue;
        const int to = (int)k;
        if (p) {
            const int made = m->made++;
            fprintf(m->out,
                    "  %%assay.low.%d = ptrtoint ptr %.*s to i64\n"
                    "  %%assay.high.%d = add i64 %%assay.low.%d, %llu\n"
                    "  call void @__assay_bound(i32 %d, i64 %%assay.low.%d, i64 %%assay.high.%d)\n",
                    made, (int)args[k].bytes, args[k].at, made, made,
                    (unsigned long long)(p->count * ir_measure(&m->types, p->element, NULL)), to,
                    made, made);
        } else if (ir_is_of_param(r, args[k], &own)) {
            fprintf(m->out,
                    "  call void @__assay_bound(i32 %d, i64 %%assay.low.p%zu, i64 "
                    "%%assay.high.p%zu)\n",
                    to, own, own);
        }
    }
}

/* In that function: takes what it was told, and asks of each access whether it is inside. */
static void print_within(instrument *m, const ir_routine *r, size_t n, bool is_after) {
    size_t k;
    span at, name = {NULL, 0}, value;
    uint64_t bytes;
    const char *debug = ir_find(m->function->lines[n], ", !dbg ");
    if (!m->is_opaque || !r->is_own)
        return;
    ir_split_definition(m->function->lines[n], &name, &value);
    if (is_after && ir_is_param_store(r, n, &k))
        fprintf(m->out,
                "  %%assay.low.p%zu = call i64 @__assay_low(i32 %zu)\n"
                "  %%assay.high.p%zu = call i64 @__assay_high(i32 %zu)\n",
                k, k, k, k);
    else if (debug && ir_is_param_access(r, n, &k, &at, &bytes) && is_after == ir_is_same(at, name))
        fprintf(m->out,
                "  call void @__assay_within(ptr %.*s, i64 %llu, i64 %%assay.low.p%zu, i64 "
                "%%assay.high.p%zu)%.*s\n",
                (int)at.bytes, at.at, (unsigned long long)bytes, k, k,
                (int)strcspn(debug + 2, ",\n") + 2, debug);
}

/* Reports a store of this many bits, on behalf of this line. */
static void print_store(instrument *m, const char *hook, span to, unsigned long bits, span line) {
    if (m->is_opaque)
        fprintf(m->out, "  call void @%s(ptr %.*s", hook, (int)to.bytes, to.at);
    else
        fprintf(m->out,
                "  %%assay.odd.%d = bitcast i%lu* %.*s to i8*\n"
                "  call void @%s(i8* %%assay.odd.%d",
                m->made, bits, (int)to.bytes, to.at, hook, m->made);
    m->made++;
    const char *debug = ir_find(line, ", !dbg ");
    const size_t end = debug ? strcspn(debug + 2, ",\n") + 2 : 0;
    fprintf(m->out, ", i64 %lu)%.*s\n", bits / 8, (int)end, debug ? debug : "");
}

/* A struct of 6 bytes that a function returns is stored as an i48, which the sanitizer's pass does
 * not know. A store to a bit-field begins with a load of its neighbours, which need no value and is
 * not checked: it is a part of the store. Bytes have marks and bits have none, so that neighbours
 * count as set from then on. True if the line's own access is not to be checked. */
static bool print_stores(instrument *m, size_t n) {
    const span line = m->function->lines[n];
    const char *type = line.at + strlen("  store i"), *align = ir_find(line, ", align ");
    unsigned long bits = ir_begins(line, "  store i") ? strtoul(type, NULL, 10) : 0;
    const char *place = ir_find(line, m->is_opaque ? ", ptr %" : "* %");
    if (bits >= 8 && (bits & (bits - 1)) && place && align) {
        span rest = {place, (size_t)(align - place)};
        print_store(m, "__assay_store", ir_take_local(&rest), bits, line);
    }
    span to;
    if (!ir_is_bit_field_store(m->function, n, &to, &bits))
        return false;
    print_store(m, "__assay_bits", to, bits, line);
    return true;
}

/* What a struct that is handed over in registers lacks goes with it. */
static void print_transfer(instrument *m, const ir_routine *r, size_t line, bool is_after) {
    for (size_t i = 0; i < r->transfer_count; i++) {
        const ir_transfer *t = &r->transfers[i];
        if (t->line == line && t->is_store == is_after)
            fprintf(m->out, "  call void @__assay_%s(ptr %.*s, i64 %llu, i32 %d, i64 %llu)\n",
                    is_after ? "take" : "give", (int)t->place.bytes, t->place.at,
                    (unsigned long long)t->bytes, t->slot, (unsigned long long)t->offset);
    }
}

/* Lines of the function. Filling with the pattern is dropped everywhere: what is left of it fills
 * variables that are given a value, or that are the shim's. */
static void print_function(instrument *m, const ir_routine *r) {
    const bool is_own = r->is_own;
    int filled = -1; /* of several such lines in a row the first makes the call */
    for (size_t i = 0; i < m->function->line_count; i++) {
        const span line = m->function->lines[i];
        span name, value;
        const bool defines = ir_split_definition(line, &name, &value);
        const bool fills = m->function->note[0] && ir_find(line, m->function->note);
        const address *a = is_own && (fills || ir_find(line, "@llvm.lifetime."))
                               ? ir_find_target(m->function, line)
                           : is_own && defines && ir_begins(value, "alloca ")
                               ? ir_find_address(m->function, name)
                               : NULL;
        const variable *v = a ? &m->function->variables[a->variable] : NULL;
        const bool is_told = v && ir_is_watched(v);
        if (fills) {
            if (is_told && a->variable != filled)
                print_unset(m, v);
            filled = a ? a->variable : -1;
            continue;
        }
        if (!defines || !ir_is_derived(value))
            filled = -1;
        if (is_told && defines) {
            print_alloca(m, v, line);
        } else if (is_told && v->escapes) {
            print_life(m, v, ir_find(line, "@llvm.lifetime.end") ? "leave" : "begin");
        } else if (!is_told && !(is_own && print_copy(m, line))) {
            if (is_own && ir_begins(line, "  ret "))
                print_ends(m);
            if (is_own)
                print_index(m, r, i);
            const bool is_unseen = is_own && print_stores(m, i);
            print_transfer(m, r, i, false);
            print_bounds(m, r, i);
            print_within(m, r, i, false);
            fprintf(m->out, "%.*s%s\n", (int)line.bytes, line.at, is_unseen ? UNSEEN : "");
            print_transfer(m, r, i, true);
            print_within(m, r, i, true);
        }
    }
}

static void rewrite_routine(instrument *m) {
    const ir_routine *r = &m->routines.list[m->current++];
    m->function = &r->body;
    print_function(m, r);
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

static void print_table_entry(instrument *m, span name, span type, uint64_t bytes) {
    const int n = (int)name.bytes, t = (int)type.bytes;
    if (m->is_opaque)
        fprintf(m->tables, "{ ptr, i64 } { ptr %.*s", n, name.at);
    else
        fprintf(m->tables, "{ i8*, i64 } { i8* bitcast (%.*s* %.*s to i8*)", t, type.at, n,
                name.at);
    fprintf(m->tables, ", i64 %llu }, ", (unsigned long long)bytes);
    m->table_count++;
}

/* `@t = internal constant [4 x float] [...], align 16`: a constant of the kernel gets a gap on both
 * sides. */
static bool print_table(instrument *m, span line) {
    const char *linkage = ir_find(line, " = "), *constant = ir_find(line, " constant ");
    const char *align = ir_find(line, ", align "), *comdat = ir_find(line, ", comdat");
    if (!ir_begins(line, "@_Z") || ir_begins(line, "@_ZN5assay") || ir_begins(line, "@_ZN5metal") ||
        !linkage || !constant || !align || ir_find(line, " external "))
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
    snprintf(whole, sizeof whole, "<{ [%d x i8], %.*s, [%d x i8] }>", SOFT_TABLE_GAP, t, type.at,
             SOFT_TABLE_GAP);
    fprintf(m->out,
            "@assay.table.%d = internal constant %s <{ [%d x i8] zeroinitializer, %.*s, "
            "[%d x i8] zeroinitializer }>, align 256\n%.*s = internal alias %.*s, ",
            n, whole, SOFT_TABLE_GAP, (int)value.bytes, value.at, SOFT_TABLE_GAP, name, line.at, t,
            type.at);
    if (m->is_opaque)
        fprintf(m->out, "ptr getelementptr (%s, ptr @assay.table.%d, i32 0, i32 1)\n", whole, n);
    else
        fprintf(m->out, "%.*s* getelementptr (%s, %s* @assay.table.%d, i32 0, i32 1)\n", t, type.at,
                whole, whole, n);
    print_table_entry(m, (span){line.at, (size_t)name}, type, bytes);
    return true;
}

/* What shim/cpu/start.h declares: the list of all tables. */
static void print_table_list(instrument *m) {
    const char *pointer = m->is_opaque ? "ptr" : "i8*";
    fprintf(m->out,
            "@assay.tables = internal constant [%d x { %s, i64 }] [%s{ %s, i64 } zeroinitializer]\n"
            "@assay_tables = hidden alias [0 x %%struct.soft_table], ",
            m->table_count + 1, pointer, m->table_list, pointer);
    if (m->is_opaque)
        fprintf(m->out, "ptr @assay.tables\n");
    else
        fprintf(m->out,
                "[0 x %%struct.soft_table]* bitcast ([%d x { i8*, i64 }]* @assay.tables to "
                "[0 x %%struct.soft_table]*)\n",
                m->table_count + 1);
}

static void rewrite_lines(instrument *m) {
    bool is_inside = false;
    for (const char *p = m->module; *p;) {
        const span line = {p, strcspn(p, "\n")};
        p += line.bytes + (p[line.bytes] == '\n');
        is_inside = is_inside || ir_begins(line, "define ");
        if (!is_inside && print_table(m, line))
            continue;
        if (!is_inside) {
            const bool is_list = ir_begins(line, "@assay_tables = ");
            if (!is_list)
                fprintf(m->out, "%.*s\n", (int)line.bytes, line.at);
            m->has_table_list = m->has_table_list || is_list;
            continue;
        }
        if (line.at[0] == '}') {
            rewrite_routine(m);
            is_inside = false;
        }
    }
}

static void read_routines(instrument *m) {
    const bool has_lives = strstr(m->module, "@llvm.lifetime.start") != NULL;
    ir_routine *r = NULL;
    for (const char *p = m->module; *p;) {
        const span line = {p, strcspn(p, "\n")};
        p += line.bytes + (p[line.bytes] == '\n');
        if (ir_begins(line, "define ")) {
            r = ARRAY_ADD(m->routines.list, m->routines.count, m->routines.room);
            *r = (ir_routine){.is_own = is_of_kernel(m, line),
                              .body = {.types = &m->types, .has_lives = has_lives}};
            memcpy(r->body.note, m->note, sizeof m->note);
        }
        if (r)
            *ARRAY_ADD(r->body.lines, r->body.line_count, r->body.line_room) = line;
        if (r && line.at[0] == '}') {
            ir_routine_read(r);
            r = NULL;
        }
    }
    ir_find_members(&m->routines);
    if (m->is_opaque) {
        ir_link(&m->routines);
        ir_find_escapes(&m->routines);
    }
}

char *instrument_module(const char *module) {
    instrument m = {.module = module, .metadata = strstr(module, "\n!")};
    char *text = NULL;
    size_t bytes;
    m.metadata = m.metadata ? m.metadata : "";
    m.is_opaque = strstr(module, " ptr ") != NULL;
    m.out = open_memstream(&text, &bytes);
    m.more = open_memstream(&m.constants, &m.constant_bytes);
    m.tables = open_memstream(&m.table_list, &m.table_list_bytes);
    if (!m.out || !m.more || !m.tables)
        abort();
    ir_types_read(&m.types, module);
    find_note(&m);
    read_routines(&m);
    rewrite_lines(&m);
    fclose(m.more);
    fclose(m.tables);
    if (m.has_table_list)
        print_table_list(&m);
    const char *pointer = m.is_opaque ? "ptr" : "i8*";
    fprintf(m.out,
            "%s\ndeclare hidden %s @__assay_reserve(i64, %s)\n"
            "declare hidden void @__assay_unset(%s, i64, %s, i32, %s)\n"
            "declare hidden void @__assay_end(%s, i64)\n"
            "declare hidden void @__assay_index(i64, i64)\n"
            "declare hidden void @__assay_store(%s, i64)\n"
            "declare hidden void @__assay_bits(%s, i64)\n"
            "declare hidden void @__assay_bound(i32, i64, i64)\n"
            "declare hidden i64 @__assay_low(i32)\ndeclare hidden i64 @__assay_high(i32)\n"
            "declare hidden void @__assay_within(%s, i64, i64, i64)\n"
            "declare hidden void @__assay_begin(%s, i64)\n"
            "declare hidden void @__assay_leave(%s, i64)\n"
            "declare hidden void @__assay_name(%s, %s)\n"
            "declare hidden void @__assay_give(%s, i64, i32, i64)\n"
            "declare hidden void @__assay_take(%s, i64, i32, i64)\n"
            "declare hidden %s @__tsan_memcpy(%s, %s, i64)\n" UNSEEN_NODE " = !{}\n",
            m.constants, pointer, pointer, pointer, pointer, pointer, pointer, pointer, pointer,
            pointer, pointer, pointer, pointer, pointer, pointer, pointer, pointer, pointer,
            pointer);
    fclose(m.out);
    free(m.constants);
    free(m.table_list);
    for (size_t i = 0; i < m.routines.count; i++)
        ir_routine_free(&m.routines.list[i]);
    free(m.routines.list);
    free(m.types.list);
    return text;
}
