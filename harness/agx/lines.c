/* lines: where instructions are from. See agx.h.
 *
 * llc writes no lines into a module, but prints its last form of it with them. Both have the same instructions in the
 * same order. Mesa prints a kernel in three forms that follow each other, each once for the kernel and once for
 * what runs once per launch:
 * - NIR: values %0, %1, ... and, where it changes, the place in the module ("// 0x94c");
 * - its compiler's instructions before registers are given out, of which value 7 is NIR's %7, and larger numbers are
 *   made in between;
 * - the same instructions with registers, in the same order, with moves, waits and spills among them: one for each
 *   instruction of the disassembly. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"
#include "harness/base/array.h"

typedef struct {
    uint32_t *items;
    size_t count, room;
} offset_list;

enum { MOST_VALUES = 1 << 20 };

static bool starts_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

static bool has_text(const char *line, const char *end, const char *text) {
    const char *found = strstr(line, text);
    return found && found < end;
}

static uint32_t *reach(offset_list *l, size_t at) {
    while (l->count <= at)
        *ARRAY_ADD(l->items, l->count, l->room) = 0;
    return &l->items[at];
}

static uint32_t get(const offset_list *l, size_t at) {
    return at < l->count ? l->items[at] : 0;
}

/* A module -------------------------------------------------------------------------------------- */

enum { HEADER = 5, LABEL = 248, FUNCTION_END = 56 };

/* Instructions that llc prints among those of a function, and that a module has outside of them. */
static bool is_outside_functions(const char *name, const char *end) {
    static const char *const heads[] = {
        "OpType",     "OpConstant",   "OpSpecConstant",  "OpName",          "OpMemberName",
        "OpDecorate", "OpEntryPoint", "OpExecutionMode", "OpCapability",    "OpExtension",
        "OpUndef",    "OpLabel",      "OpExtInstImport", "OpMemberDecorate"};
    static const char variable[] = "OpVariable ", call[] = "OpFunctionCall",
                      function[] = "OpFunction";
    if (starts_with(name, variable)) { /* 7: in the function */
        const char *space = strstr(name, ", ");
        return !space || space > end || strncmp(space, ", 7", 3) != 0;
    }
    if (starts_with(name, function))
        return !starts_with(name, call);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (starts_with(name, heads[i]))
            return true;
    return false;
}

/* The name of the instruction of a line such as `  %8:iid = nuw OpIAddS %2:type, ...`; NULL: it has none. */
static const char *find_name(const char *line, const char *end) {
    const char *name = starts_with(line, "  ") ? strstr(line, " Op") : NULL;
    return name && name < end && !is_outside_functions(name + 1, end) ? name + 1 : NULL;
}

/* Of "a.h:13:2" or "a.h:13" the part without the column; "" if the line is 0. */
static agx_place cut_column(const char *at, const char *stop) {
    const char *p = stop;
    while (p > at && isdigit((unsigned char)p[-1]))
        p--;
    const char *line = p;
    if (p > at)
        p--; /* the colon */
    const char *before = p;
    while (p > at && isdigit((unsigned char)p[-1]))
        p--;
    if (p > at && p[-1] == ':' && p < before)
        stop = before, line = p;
    return (agx_place){.text = at, .length = *line == '0' ? 0 : (int)(stop - at)};
}

/* Of `debug-location !9; a.h:13:2 @[ b.metal:7:1 ]` the first that is not of the shim: where Metal's functions are
 * called. */
static agx_place find_place(const char *line, const char *end) {
    static const char mark[] = "debug-location !", between[] = " @[ ", entry[] = "entry of ";
    const char *at = strstr(line, mark);
    at = at && at < end ? strstr(at, "; ") : NULL;
    while (at && at < end) {
        at += at[0] == ';' ? strlen("; ") : strlen(between);
        const char *next = strstr(at, between), *stop = next && next < end ? next : end;
        while (stop > at && (stop[-1] == ']' || stop[-1] == ' '))
            stop--;
        const char *shim = strstr(at, "/shim/");
        if ((!shim || shim > stop) && !starts_with(at, entry) && *at != '<')
            return cut_column(at, stop);
        at = next;
    }
    return (agx_place){.length = 0};
}

/* What passes of LLVM moved or merged has lost its line, and what the entry does for the kernel has none: such an
 * instruction is for its first user, or else for what it uses. */
typedef struct {
    const char *line, *name, *end;
} llc_line;

static bool find_module_value(const char **p, const char *end, size_t *value) {
    const char *found = *p < end ? memchr(*p, '%', (size_t)(end - *p)) : NULL;
    *p = found ? found + 1 : end;
    *value = found ? strtoul(found + 1, NULL, 10) : 0;
    return found != NULL && *value < MOST_VALUES;
}

static void take_place(agx_places *p, size_t to, size_t from) {
    const uint32_t offset = p->items[to].offset;
    p->items[to] = p->items[from];
    p->items[to].offset = offset;
    p->items[to].is_near = true;
}

static void fill_module(agx_places *p, const llc_line *lines) {
    offset_list users = {.items = NULL}, makers = {.items = NULL}; /* an instruction + 1 */
    size_t value;
    for (size_t i = p->count; i-- > 0;) {
        const char *at = lines[i].line;
        if (p->items[i].length == 0 && find_module_value(&at, lines[i].name, &value) &&
            *reach(&users, value))
            take_place(p, i, users.items[value] - 1);
        for (at = lines[i].name;
             p->items[i].length > 0 && find_module_value(&at, lines[i].end, &value);)
            *reach(&users, value) = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < p->count; i++) {
        const char *at = lines[i].name;
        while (p->items[i].length == 0 && find_module_value(&at, lines[i].end, &value))
            if (*reach(&makers, value))
                take_place(p, i, makers.items[value] - 1);
        at = lines[i].line;
        if (p->items[i].length > 0 && find_module_value(&at, lines[i].name, &value))
            *reach(&makers, value) = (uint32_t)i + 1;
    }
    free(users.items);
    free(makers.items);
}

/* Whether llc's name can be that of the module's instruction; only a few are known here. */
static bool is_instruction(const char *name, uint32_t code) {
    static const struct {
        const char *name;
        uint32_t code;
    } known[] = {{"OpLoad", 61},
                 {"OpStore", 62},
                 {"OpPhi", 245},
                 {"OpBranch", 249},
                 {"OpBranchConditional", 250}};
    const size_t length = strcspn(name, " \n");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code ||
            (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0))
            return known[i].code == code && strncmp(known[i].name, name, length) == 0;
    return true;
}

/* The next instruction of a function from *at on; false at the end. */
static bool find_next(const uint32_t *words, size_t count, size_t *at, bool *is_inside) {
    for (; *at < count && words[*at] >> 16; *at += words[*at] >> 16) {
        const uint32_t code = words[*at] & 0xFFFF;
        if (code == LABEL || code == FUNCTION_END)
            *is_inside = code == LABEL;
        else if (*is_inside)
            return true;
    }
    return false;
}

bool agx_read_places(const char *printed, const uint32_t *words, size_t count, agx_places *out) {
    size_t at = HEADER;
    bool is_inside = false;
    struct {
        llc_line *items;
        size_t count, room;
    } lines = {.items = NULL};
    bool ok = true;
    *out = (agx_places){.items = NULL};
    for (const char *line = printed, *end; ok && *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        const char *name = find_name(line, end);
        if (!name)
            continue;
        ok = find_next(words, count, &at, &is_inside) && is_instruction(name, words[at] & 0xFFFF);
        if (!ok)
            break;
        agx_place place = find_place(line, end);
        place.offset = (uint32_t)(at * sizeof *words);
        *ARRAY_ADD(out->items, out->count, out->room) = place;
        *ARRAY_ADD(lines.items, lines.count, lines.room) = (llc_line){line, name, end};
        at += words[at] >> 16;
    }
    ok = ok && !find_next(words, count, &at, &is_inside);
    if (ok)
        fill_module(out, lines.items);
    free(lines.items);
    return ok;
}

static int compare_offsets(const void *key, const void *item) {
    const uint32_t a = *(const uint32_t *)key, b = ((const agx_place *)item)->offset;
    return (a > b) - (a < b);
}

const agx_place *agx_find_place(const agx_places *p, uint32_t offset) {
    const agx_place *found =
        p->count ? bsearch(&offset, p->items, p->count, sizeof *p->items, compare_offsets) : NULL;
    return found && found->length > 0 ? found : NULL;
}

/* NIR ------------------------------------------------------------------------------------------- */

/* What has no value: NIR's name and that of the instructions made of it. They are paired in their order. */
static const struct {
    const char *nir, *with, *code, *without;
} effects[] = {
    {"@store_agx", "", "device_store", NULL},
    {"@store_shared", "", "local_store", NULL},
    {"@store_scratch", "", "stack_store", NULL},
    {"@store_preamble", "", "uniform_store", NULL},
    {"if %", "", "if_", "#0.000000, #0.000000"},
    {"@barrier", "execution_scope=WORKGROUP", "threadgroup_barrier", NULL},
};
enum { EFFECTS = sizeof effects / sizeof *effects, FUNCTIONS = 2 };

typedef struct {
    offset_list values, effects[EFFECTS];
} function;

typedef struct {
    int block;
    const char *line, *name, *end;
    int name_length;
    uint32_t offset; /* in the module; 0: not known */
    bool is_near;    /* it is that of a neighbour */
} instruction;

typedef struct {
    instruction *items;
    size_t count, room;
} listing;

/* Mesa prints a place before the first of several instructions that have it, and nothing before those that have none.
 * What has none was made for what is before it. Constants are made once for all that use them: one that
 * was made for something earlier says nothing about the instructions after it. */
typedef struct {
    uint32_t printed, now;
} nir_place;

static void read_nir_line(function *f, const char *line, const char *end, nir_place *at) {
    static const char place[] = "// 0x";
    const char *p = line + strspn(line, " ");
    if (starts_with(p, place)) {
        at->printed = (uint32_t)strtoul(p + strlen(place), NULL, 16);
        return;
    }
    const bool is_constant = has_text(p, end, " = load_const ");
    if (at->printed && (!is_constant || at->printed > at->now))
        at->now = at->printed;
    for (size_t k = 0; k < EFFECTS; k++)
        if (starts_with(p, effects[k].nir) && has_text(p, end, effects[k].with)) {
            const bool is_if = effects[k].nir[0] == 'i';
            uint32_t offset = is_if ? get(&f->values, strtoul(p + 4, NULL, 10)) : at->now;
            *reach(&f->effects[k], f->effects[k].count) = offset;
            at->printed = is_if ? at->printed : 0;
            return;
        }
    /* "32x3   %1 = @load_global_invocation_id" */
    p += strspn(p, "0123456789x");
    p += strspn(p, " ");
    if (*p == '%' && has_text(p, end, " = ") && strtoul(p + 1, NULL, 10) < MOST_VALUES) {
        *reach(&f->values, strtoul(p + 1, NULL, 10)) = at->printed ? at->printed : at->now;
        at->printed = 0;
    }
}

/* Instructions ---------------------------------------------------------------------------------- */

/* "   13, _ = split 12d" or "   device_store 42, 51d, ..." */
static void add_instruction(listing *l, int block, const char *line, const char *end) {
    const char *equals = strstr(line, " = "), *name = line + strspn(line, " ");
    if (equals && equals < end)
        name = equals + 3;
    *ARRAY_ADD(l->items, l->count, l->room) =
        (instruction){.block = block,
                      .line = line,
                      .name = name,
                      .end = end,
                      .name_length = (int)strcspn(name, " \n")};
}

/* The next number of a value in [*p, end): not of an immediate, uniform or register. */
static bool find_value(const char **p, const char *end, size_t *value) {
    while (*p < end) {
        const char *word = *p + strspn(*p, " ,$^");
        *p = word + strcspn(word, " ,\n");
        if (word < end && isdigit((unsigned char)*word)) {
            *value = strtoul(word, NULL, 10);
            if (*value < MOST_VALUES) /* else a constant */
                return true;
        }
        if (*p == word)
            return false;
    }
    return false;
}

static bool is_named(const instruction *i, const char *name) {
    return (size_t)i->name_length == strlen(name) && strncmp(i->name, name, strlen(name)) == 0;
}

static bool is_effect(const instruction *i, size_t k) {
    return starts_with(i->name, effects[k].code) &&
           !(effects[k].without && has_text(i->name, i->end, effects[k].without));
}

static void place_effects(listing *l, const function *f) {
    for (size_t k = 0; k < EFFECTS; k++) {
        size_t count = 0, next = 0;
        for (size_t i = 0; i < l->count; i++)
            count += is_effect(&l->items[i], k);
        for (size_t i = 0; i < l->count && count == f->effects[k].count; i++)
            if (is_effect(&l->items[i], k))
                l->items[i].offset = f->effects[k].items[next++];
    }
}

/* By the values that instructions have; those that only the compiler knows are for their first user. */
static void place_values(listing *l, const function *f) {
    offset_list used = {.items = NULL};
    for (size_t n = l->count; n-- > 0;) {
        instruction *i = &l->items[n];
        size_t value;
        for (const char *p = i->line; !i->offset && find_value(&p, i->name, &value);)
            i->offset = value < f->values.count ? f->values.items[value] : get(&used, value);
        for (const char *p = i->name + i->name_length; i->offset && find_value(&p, i->end, &value);)
            *reach(&used, value) = i->offset;
    }
    free(used.items);
}

/* With registers -------------------------------------------------------------------------------- */

static bool is_same(const instruction *before, const instruction *after) {
    static const char *const lowered[][2] = {{"icmp", "icmpsel"}, {"fcmp", "fcmpsel"}};
    for (size_t k = 0; k < sizeof lowered / sizeof *lowered; k++)
        if (is_named(before, lowered[k][0]))
            return is_named(after, lowered[k][1]);
    return before->name_length == after->name_length &&
           strncmp(before->name, after->name, (size_t)after->name_length) == 0;
}

static bool is_one_of(const instruction *i, const char *const *names) {
    while (*names && !is_named(i, *names))
        names++;
    return *names != NULL;
}

/* What giving out registers adds. */
static const char *const added[] = {"mov1",       "mov_imm",     "xor",          "get_sr", "wait",
                                    "stack_load", "stack_store", "stack_adjust", NULL};
static const char *const pseudo[] = {"phi", "collect", "split", "mov", "mov_imm", "begin_cf", NULL};

/* Block by block: each of `after` is the next of `before` with that name, or was added. */
static void pair(const listing *before, listing *after) {
    size_t from = 0;
    int block = -1;
    for (size_t n = 0; n < after->count; n++) {
        instruction *i = &after->items[n];
        if (i->block != block)
            for (block = i->block; from < before->count && before->items[from].block < block;)
                from++;
        while (from < before->count && before->items[from].block == block &&
               is_one_of(&before->items[from], pseudo))
            from++;
        size_t at = from, most = is_one_of(i, added) ? from + 1 : before->count;
        while (at < most && at < before->count && before->items[at].block == block &&
               !is_same(&before->items[at], i))
            at++;
        if (at < most && at < before->count && before->items[at].block == block) {
            i->offset = before->items[at].offset;
            from = at + 1;
        }
    }
}

/* Moves, waits and fills are for what follows in the block, or else for what is before them; so is an instruction whose
 * place Mesa lost. A spill is for what is before it. */
static void fill_gaps(listing *l) {
    static const char *const flow[] = {"else_", "pop_exec", "jmp_", "while_",
                                       "break", "stop",     "if_"};
    for (size_t n = 0; n < l->count; n++) {
        instruction *i = &l->items[n];
        bool is_flow = false;
        for (size_t k = 0; k < sizeof flow / sizeof *flow; k++)
            is_flow |= starts_with(i->name, flow[k]);
        const instruction *next = i + 1, *last = l->items + l->count;
        if (i->offset || is_flow)
            continue;
        while (next < last && next->block == i->block && !next->offset)
            next++;
        const bool has_next = next < last && next->block == i->block;
        const bool has_before = n > 0 && i[-1].block == i->block && i[-1].offset;
        const bool is_spill = is_named(i, "stack_store");
        i->is_near = has_next || has_before;
        i->offset = has_before && (is_spill || !has_next) ? i[-1].offset
                    : has_next                            ? next->offset
                                                          : 0;
    }
}

/* The log --------------------------------------------------------------------------------------- */

typedef struct {
    function functions[FUNCTIONS];
    size_t function; /* of NIR that is read; SIZE_MAX: none */
    listing before, after;
    int block;   /* of instructions that is read; -1: none */
    size_t part; /* of the disassembly: the kernel, or what runs once per launch */
    size_t next; /* instruction of it */
    nir_place at;
} reading;

static offset_list *get_list(function *f, size_t k) {
    return k < EFFECTS ? &f->effects[k] : &f->values;
}

static void start_listing(reading *r) {
    free(r->before.items);
    r->before = r->after;
    r->after = (listing){.items = NULL};
}

/* Instructions of the disassembly from here to the end of its part. */
static size_t count_code(const char *line) {
    size_t count = 0;
    unsigned long address;
    for (; agx_read_address(line, &address) && (count == 0 || address > 0); count++)
        line += strcspn(line, "\n") + 1;
    return count;
}

static void place_all(reading *r, const char *code) {
    const function *f = &r->functions[r->part < FUNCTIONS ? r->part : FUNCTIONS - 1];
    r->part++;
    r->next = count_code(code) == r->after.count ? 0 : r->after.count;
    place_effects(&r->before, f);
    place_values(&r->before, f);
    pair(&r->before, &r->after);
    fill_gaps(&r->after);
}

static void print_place(FILE *out, const agx_places *places, const char *home,
                        const instruction *i) {
    const agx_place *p = agx_find_place(places, i->offset);
    if (!p)
        return;
    const int skipped =
        starts_with(p->text, home) && p->text[strlen(home)] == '/' ? (int)strlen(home) + 1 : 0;
    fprintf(out, " ;%s %.*s", i->is_near || p->is_near ? "~" : "", p->length - skipped,
            p->text + skipped);
}

static void read_line(reading *r, const char *line, const char *end) {
    static const char impl[] = "impl ", block[] = "block";
    if (starts_with(line, "shader: ")) {
        for (size_t i = 0; i < FUNCTIONS; i++)
            for (size_t k = 0; k <= EFFECTS; k++)
                get_list(&r->functions[i], k)->count = 0;
        r->function = SIZE_MAX;
        r->block = -1;
        r->part = 0;
    } else if (starts_with(line, impl)) {
        r->function = r->function == SIZE_MAX ? 0 : FUNCTIONS - 1;
        r->at = (nir_place){0};
    } else if (starts_with(line, block) && end[-1] == '{') {
        r->block = (int)strtol(line + strlen(block), NULL, 10);
        if (r->block == 0)
            start_listing(r);
    } else if (r->block >= 0 && starts_with(line, "   ")) {
        add_instruction(&r->after, r->block, line, end);
    } else if (r->block < 0 && r->function < FUNCTIONS) {
        read_nir_line(&r->functions[r->function], line, end, &r->at);
    }
}

static void free_reading(reading *r) {
    for (size_t i = 0; i < FUNCTIONS; i++)
        for (size_t k = 0; k <= EFFECTS; k++)
            free(get_list(&r->functions[i], k)->items);
    free(r->before.items);
    free(r->after.items);
}

char *agx_add_lines(const char *log, const agx_places *places, const char *home) {
    reading r = {.function = SIZE_MAX, .block = -1};
    char *text = NULL;
    size_t used = 0;
    FILE *out = open_memstream(&text, &used);
    assert(out);
    for (const char *line = log, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        fprintf(out, "%.*s", (int)(end - line), line);
        unsigned long address;
        if (!agx_read_address(line, &address)) {
            read_line(&r, line, end);
        } else {
            if (address == 0)
                place_all(&r, line);
            if (r.next < r.after.count)
                print_place(out, places, home, &r.after.items[r.next++]);
        }
        fputs(*end ? "\n" : "", out);
    }
    fclose(out);
    free_reading(&r);
    return text;
}
