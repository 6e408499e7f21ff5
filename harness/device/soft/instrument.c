/* instrument: reports private variables to checked mode.
 *
 * A kernel's variables are found in the text of its module as clang makes it, before any
 * optimisation. There every declaration of the language is the same: an alloca for the variable,
 * and, because clang is asked to fill variables that have no value with a pattern, instructions
 * with the note "auto-init" where such a variable comes to life.
 *
 * Only functions of the kernel's own files are touched, and there
 *   - an array, or a struct with one, moves to where a pointer that leaves it is seen;
 *   - a variable without a value stays on the stack, but the optimiser does not know that its address
 *     is that of a variable: it would keep it in a register, and accesses would not be checked;
 *   - filling such a variable with the pattern becomes a call that marks its bytes as unset.
 * Both end at the function's return. Other variables are left to the optimiser.
 *
 * Tables of constants get a gap on both sides, and the kernel a list of them: a pointer that left its
 * table is known by its address. */
#include "compile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/array.h"
#include "ir_function.h"

/* An access with this note is not checked; the number is beyond those of the module. */
#define UNSEEN_NODE "!2000000000"
#define UNSEEN ", !nosanitize " UNSEEN_NODE

typedef struct {
    FILE *out;
    const char *module;
    ir_metadata metadata;
    ir_types types;
    int made; /* constants and values so far */
    ir_functions functions;
    const ir_function *function; /* that is printed */
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

/* Is the function that this line begins one of the kernel's own, and not of the shim? */
static bool is_of_kernel(const instrument *m, span define) {
    const char *file =
        ir_follow(&m->metadata, ir_follow(&m->metadata, define.at, "!dbg !"), "file: !");
    return *file && !ir_is_shim_file((span){file, strcspn(file, "\n")});
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

/* A new constant of bytes: its name. */
typedef struct {
    char text[48];
} reference;

static reference print_constant(instrument *m, const unsigned char *data, uint64_t bytes) {
    reference r;
    snprintf(r.text, sizeof r.text, "@assay.constant.%d", m->made++);
    fprintf(m->more, "%s = private unnamed_addr constant [%llu x i8] c\"", r.text,
            (unsigned long long)bytes);
    for (uint64_t i = 0; i < bytes; i++)
        fprintf(m->more, "\\%02X", data[i]);
    fprintf(m->more, "\"\n");
    return r;
}

/* Says which variable it is: 'sum' of line 7. */
static reference name_variable(instrument *m, const variable *v) {
    char text[160];
    const int most = 80;
    const char *dot = memchr(v->name.at, '.', v->name.bytes);
    const bool is_param = dot && ir_is_same(ir_cut(v->name, dot), (span){".addr", 5});
    const span name = {v->name.at, is_param ? (size_t)(dot - v->name.at) : v->name.bytes};
    int bytes = (int)name.bytes - 1, used;
    if (dot && !is_param)
        used = snprintf(text, sizeof text, "a temporary value");
    else if (is_name_certain(m, name))
        used = snprintf(text, sizeof text, "'%.*s'", bytes < most ? bytes : most, name.at + 1);
    else
        used = snprintf(text, sizeof text, "the variable");
    const bool is_placed = v->debug >= 0 && (size_t)v->debug < m->metadata.count;
    const char *place = is_placed ? m->metadata.lines[v->debug] : NULL;
    const long line = place ? ir_read_number(place, "line: ") : -1;
    if (line > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, " of line %ld", line);
    return print_constant(m, (const unsigned char *)text, (uint64_t)used + 1);
}

static void print_unset(instrument *m, const variable *v) {
    span element = v->type;
    uint64_t count;
    while (ir_split_array(element, &element, &count))
        continue;
    const uint64_t period = ir_measure(&m->types, element, NULL);
    unsigned char *values = array_new(1, period);
    ir_measure(&m->types, element, values);
    const reference marks = print_constant(m, values, period), what = name_variable(m, v);
    free(values);
    fprintf(m->out, "  call void @__assay_unset(ptr %.*s, i64 %llu, ptr %s, i32 %llu, ptr %s)\n",
            SPELL(v->name), (unsigned long long)v->bytes, marks.text, (unsigned long long)period,
            what.text);
}

static void print_alloca(instrument *m, const variable *v, span line) {
    const size_t n = (size_t)(v - m->function->variables);
    if (v->is_array) {
        fprintf(m->out, "  %.*s = call ptr @__assay_reserve(i64 %llu, ptr %s)\n", SPELL(v->name),
                (unsigned long long)v->bytes, name_variable(m, v).text);
        return;
    }
    fprintf(m->out,
            "  %%assay.stack.%zu%.*s\n"
            "  %.*s = call ptr asm sideeffect \"\", \"=r,0\"(ptr %%assay.stack.%zu)\n",
            n, SPELL(ir_cut(line, v->name.at + v->name.bytes)), SPELL(v->name), n);
    if (v->is_skipped)
        print_unset(m, v);
    if (v->is_copy)
        fprintf(m->out, "  call void @__assay_name(ptr %.*s, ptr %s)\n", SPELL(v->name),
                name_variable(m, v).text);
}

/* The variable is ended, or its life begins or ends and there may be old pointers to it. */
static void print_life(instrument *m, const variable *v, const char *hook) {
    fprintf(m->out, "  call void @__assay_%s(ptr %.*s, i64 %llu)\n", hook, SPELL(v->name),
            (unsigned long long)v->bytes);
}

static void print_ends(instrument *m) {
    for (size_t i = m->function->count; i-- > 0;) {
        const variable *v = &m->function->variables[i];
        if (ir_is_watched(v) && v->escapes)
            print_life(m, v, "leave");
        if (ir_is_watched(v))
            print_life(m, v, "end");
    }
}

/* A small copy would become a load and a store of a number, with what is unset in it. */
static bool print_copy(instrument *m, span line) {
    span to, from, bytes, name, value;
    if (!ir_is_copy(m->function, line, &to, &from, &bytes))
        return false;
    if (ir_split_definition(line, &name, &value))
        fprintf(m->out, "  %.*s", SPELL(name));
    else
        fprintf(m->out, "  %%assay.copy.%d", m->made++);
    fprintf(m->out, " = call ptr @__tsan_memcpy(ptr %.*s, ptr %.*s, i64 %.*s)%.*s\n", SPELL(to),
            SPELL(from), SPELL(bytes), SPELL(ir_cut(line, ir_find(line, ", !dbg "))));
    return true;
}

/* Asks whether an index stays inside of a member array. */
static void print_index(instrument *m, size_t n) {
    const span line = m->function->lines[n];
    span index;
    uint64_t count;
    if (ir_is_element(m->function, n, &index, &count))
        fprintf(m->out, "  call void @__assay_index(%.*s, i64 %llu)%.*s\n", SPELL(index),
                (unsigned long long)count, SPELL(ir_cut(line, ir_find(line, ", !dbg "))));
}

/* Tells the function that a line calls where the arrays end that it is given pointers to. */
static void print_bounds(instrument *m, size_t n) {
    span args[IR_MOST_PARAMS];
    const ir_function *f = m->function;
    const ir_function *g =
        ir_is_call(f->lines[n]) ? ir_find_called(&m->functions, f->lines[n], args) : NULL;
    for (size_t k = 0, own; g && k < g->param_count; k++) {
        const ir_pointer *p = ir_find_pointer(&f->members, args[k]);
        if (!g->elements[k].bytes || g->is_mixed[k])
            continue;
        if (p) {
            const int made = m->made++;
            fprintf(
                m->out,
                "  %%assay.low.%d = ptrtoint ptr %.*s to i64\n"
                "  %%assay.high.%d = add i64 %%assay.low.%d, %llu\n"
                "  call void @__assay_bound(i32 %zu, i64 %%assay.low.%d, i64 %%assay.high.%d)\n",
                made, SPELL(args[k]), made, made,
                (unsigned long long)(p->count * ir_measure(&m->types, p->element, NULL)), k, made,
                made);
        } else if (ir_is_of_param(f, args[k], &own)) {
            fprintf(m->out,
                    "  call void @__assay_bound(i32 %zu, i64 %%assay.low.p%zu, i64 "
                    "%%assay.high.p%zu)\n",
                    k, own, own);
        }
    }
}

/* In that function: takes the bounds that its caller passed, and asks of each access whether it is inside. */
static void print_within(instrument *m, size_t n, bool is_after) {
    const ir_function *f = m->function;
    size_t k;
    span at, name = {NULL, 0}, value;
    uint64_t bytes;
    const span debug = ir_get_debug(f->lines[n]);
    ir_split_definition(f->lines[n], &name, &value);
    if (is_after && ir_is_param_store(f, n, &k))
        fprintf(m->out,
                "  %%assay.low.p%zu = call i64 @__assay_low(i32 %zu)\n"
                "  %%assay.high.p%zu = call i64 @__assay_high(i32 %zu)\n",
                k, k, k, k);
    else if (debug.bytes && ir_is_param_access(f, n, &k, &at, &bytes) &&
             is_after == ir_is_same(at, name))
        fprintf(m->out,
                "  call void @__assay_within(ptr %.*s, i64 %llu, i64 %%assay.low.p%zu, i64 "
                "%%assay.high.p%zu)%.*s\n",
                SPELL(at), (unsigned long long)bytes, k, k, SPELL(debug));
}

/* Reports a store of this many bits, on behalf of this line. */
static void print_store(instrument *m, const char *hook, span to, unsigned long bits, span line) {
    m->made++;
    fprintf(m->out, "  call void @%s(ptr %.*s, i64 %lu)%.*s\n", hook, SPELL(to), bits / 8,
            SPELL(ir_get_debug(line)));
}

/* A struct of 6 bytes that a function returns is stored as an i48, which the sanitizer's pass does
 * not know. A store to a bit-field begins with a load of its neighbours, which need no value and is
 * not checked: it is a part of the store. Bytes have marks and bits have none, so that neighbours
 * count as set from then on. True if the line's own access is not to be checked. */
static bool print_stores(instrument *m, size_t n) {
    const span line = m->function->lines[n], type = ir_skip(line, "  store i");
    const char *place = ir_find(line, ", ptr %"), *align = ir_find(line, ", align ");
    unsigned long bits = type.bytes ? strtoul(type.at, NULL, 10) : 0;
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
static void print_transfer(instrument *m, size_t line, bool is_after) {
    for (size_t i = 0; i < m->function->transfer_count; i++) {
        const ir_transfer *t = &m->function->transfers[i];
        if (t->line == line && t->is_store == is_after)
            fprintf(m->out, "  call void @__assay_%s(ptr %.*s, i64 %llu, i32 %d, i64 %llu)\n",
                    is_after ? "take" : "give", SPELL(t->place), (unsigned long long)t->bytes,
                    t->slot, (unsigned long long)t->offset);
    }
}

/* A line of the kernel's that no watched variable begins or ends with. */
static void print_line(instrument *m, size_t n) {
    const span line = m->function->lines[n];
    if (print_copy(m, line))
        return;
    if (ir_begins(line, "  ret "))
        print_ends(m);
    print_index(m, n);
    const bool is_unseen = print_stores(m, n);
    print_transfer(m, n, false);
    print_bounds(m, n);
    print_within(m, n, false);
    fprintf(m->out, "%.*s%s\n", SPELL(line), is_unseen ? UNSEEN : "");
    print_transfer(m, n, true);
    print_within(m, n, true);
}

/* Filling with the pattern is dropped everywhere: what is left of it fills variables that are given a
 * value, or that are the shim's. */
static bool is_filling(const instrument *m, span line) {
    return m->note[0] && ir_find(line, m->note);
}

static void print_own_function(instrument *m) {
    int filled = -1; /* of several such lines in a row the first makes the call */
    for (size_t i = 0; i < m->function->line_count; i++) {
        const span line = m->function->lines[i];
        span name, value;
        const bool defines = ir_split_definition(line, &name, &value), fills = is_filling(m, line);
        const ir_value *a =
            fills || ir_find(line, "@llvm.lifetime.") ? ir_find_target(m->function, line)
            : defines && ir_begins(value, "alloca ")  ? ir_find_address(m->function, name)
                                                      : NULL;
        const variable *v = a ? &m->function->variables[a->variable] : NULL;
        const bool is_told = v && ir_is_watched(v);
        if (fills && is_told && a->variable != filled)
            print_unset(m, v);
        if (fills || !defines || !ir_is_derived(value))
            filled = fills && a ? a->variable : -1;
        if (fills)
            continue;
        if (is_told && defines)
            print_alloca(m, v, line);
        else if (is_told && v->escapes)
            print_life(m, v, ir_find(line, "@llvm.lifetime.end") ? "leave" : "begin");
        else if (!is_told)
            print_line(m, i);
    }
}

static void print_function(instrument *m) {
    if (m->function->is_own) {
        print_own_function(m);
        return;
    }
    for (size_t i = 0; i < m->function->line_count; i++)
        if (!is_filling(m, m->function->lines[i]))
            fprintf(m->out, "%.*s\n", SPELL(m->function->lines[i]));
}

/* The number of the note "auto-init", if any variable is filled. */
static void find_note(instrument *m) {
    const char *p = strstr(m->module, " = !{!\"auto-init\"}"), *number = p;
    while (number && number > m->module && number[-1] != '!')
        number--;
    if (p)
        snprintf(m->note, sizeof m->note, ", !annotation !%.*s", (int)(p - number), number);
}

/* `@t = internal constant [4 x float] [...], align 16`: a constant of the kernel gets a gap on both
 * sides. */
static bool print_table(instrument *m, span line) {
    const char *linkage = ir_find(line, " = ");
    const char *align = ir_find(line, ", align "), *comdat = ir_find(line, ", comdat");
    span value = ir_find_after(line, " constant ");
    if (!ir_begins(line, "@_Z") || ir_begins(line, "@_ZN5assay") || ir_begins(line, "@_ZN5metal") ||
        !linkage || !value.bytes || !align || ir_find(line, " external "))
        return false;
    value.bytes = (size_t)((comdat ? comdat : align) - value.at);
    const span type = ir_get_type(&m->types, value);
    const span name = {line.at, (size_t)(linkage - line.at)};
    const uint64_t bytes = ir_measure(&m->types, type, NULL);
    char whole[600];
    if (!bytes || type.bytes > 400)
        return false;
    const int n = m->made++;
    snprintf(whole, sizeof whole, "<{ [%d x i8], %.*s, [%d x i8] }>", SOFT_TABLE_GAP, SPELL(type),
             SOFT_TABLE_GAP);
    fprintf(m->out,
            "@assay.table.%d = internal constant %s <{ [%d x i8] zeroinitializer, %.*s, "
            "[%d x i8] zeroinitializer }>, align 256\n%.*s = internal alias %.*s, "
            "ptr getelementptr (%s, ptr @assay.table.%d, i32 0, i32 1)\n",
            n, whole, SOFT_TABLE_GAP, SPELL(value), SOFT_TABLE_GAP, SPELL(name), SPELL(type), whole,
            n);
    fprintf(m->tables, "{ ptr, i64 } { ptr %.*s, i64 %llu }, ", SPELL(name),
            (unsigned long long)bytes);
    m->table_count++;
    return true;
}

/* What shim/cpu/start.h declares: the list of all tables. */
static void print_table_list(instrument *m) {
    fprintf(
        m->out,
        "@assay.tables = internal constant [%d x { ptr, i64 }] [%s{ ptr, i64 } zeroinitializer]\n"
        "@assay_tables = hidden alias [0 x %%struct.soft_table], ptr @assay.tables\n",
        m->table_count + 1, m->table_list);
}

static void read_functions(instrument *m) {
    const bool has_lives = strstr(m->module, "@llvm.lifetime.start") != NULL;
    ir_function *f = NULL;
    for (const char *p = m->module; *p;) {
        const span line = ir_take_line(&p);
        if (ir_begins(line, "define ")) {
            f = ARRAY_ADD(m->functions.list, m->functions.count, m->functions.room);
            *f = (ir_function){
                .is_own = is_of_kernel(m, line), .types = &m->types, .has_lives = has_lives};
            memcpy(f->note, m->note, sizeof m->note);
        }
        if (f)
            *ARRAY_ADD(f->lines, f->line_count, f->line_room) = line;
        if (f && ir_begins(line, "}")) {
            ir_function_read(f);
            f = NULL;
        }
    }
    ir_functions_link(&m->functions);
}

/* Functions in the order of the text, and all else as it is but for tables. */
static void print_module(instrument *m) {
    m->function = m->functions.list;
    for (const char *p = m->module; *p;) {
        const span line = ir_take_line(&p);
        const bool is_list = ir_begins(line, "@assay_tables = ");
        m->has_table_list = m->has_table_list || is_list;
        if (ir_begins(line, "define ")) {
            print_function(m);
            const span last = m->function->lines[m->function->line_count - 1];
            p = last.at + last.bytes + (last.at[last.bytes] == '\n');
            m->function++;
        } else if (!is_list && !print_table(m, line)) {
            fprintf(m->out, "%.*s\n", SPELL(line));
        }
    }
}

/* Of shim/cpu/checked.h. */
static const char hooks[] = "declare hidden ptr @__assay_reserve(i64, ptr)\n"
                            "declare hidden void @__assay_unset(ptr, i64, ptr, i32, ptr)\n"
                            "declare hidden void @__assay_end(ptr, i64)\n"
                            "declare hidden void @__assay_index(i64, i64)\n"
                            "declare hidden void @__assay_store(ptr, i64)\n"
                            "declare hidden void @__assay_bits(ptr, i64)\n"
                            "declare hidden void @__assay_bound(i32, i64, i64)\n"
                            "declare hidden i64 @__assay_low(i32)\n"
                            "declare hidden i64 @__assay_high(i32)\n"
                            "declare hidden void @__assay_within(ptr, i64, i64, i64)\n"
                            "declare hidden void @__assay_begin(ptr, i64)\n"
                            "declare hidden void @__assay_leave(ptr, i64)\n"
                            "declare hidden void @__assay_name(ptr, ptr)\n"
                            "declare hidden void @__assay_give(ptr, i64, i32, i64)\n"
                            "declare hidden void @__assay_take(ptr, i64, i32, i64)\n"
                            "declare hidden ptr @__tsan_memcpy(ptr, ptr, i64)\n";

char *instrument_module(const char *module) {
    instrument m = {.module = module};
    char *text = NULL;
    size_t bytes;
    m.out = open_memstream(&text, &bytes);
    m.more = open_memstream(&m.constants, &m.constant_bytes);
    m.tables = open_memstream(&m.table_list, &m.table_list_bytes);
    if (!m.out || !m.more || !m.tables)
        abort();
    ir_types_read(&m.types, module);
    ir_metadata_read(&m.metadata, module);
    find_note(&m);
    read_functions(&m);
    print_module(&m);
    fclose(m.more);
    fclose(m.tables);
    if (m.has_table_list)
        print_table_list(&m);
    fprintf(m.out, "%s\n%s" UNSEEN_NODE " = !{}\n", m.constants, hooks);
    fclose(m.out);
    free(m.constants);
    free(m.table_list);
    for (size_t i = 0; i < m.functions.count; i++)
        ir_function_free(&m.functions.list[i]);
    free(m.functions.list);
    free(m.types.list);
    free(m.metadata.lines);
    return text;
}
