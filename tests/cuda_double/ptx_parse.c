/* ptx_parse: reads the PTX of one module with one entry, as clang prints it. */
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"

typedef struct {
    char name[48];
    uint32_t index;    /* register or instruction */
    uint32_t function; /* of a register */
} label;

typedef struct {
    ptx_program *program;
    label *registers, *labels;
    size_t register_count, label_count;
    char *log;
    size_t log_size;
    uint32_t line;
    uint32_t functions; /* so far: each has its own registers */
    bool has_failed;
} parser;

/* Room for one more. */
static void *grow(void *array, size_t count, size_t size) {
    if (count & (count - 1) && count)
        return array;
    array = realloc(array, (count ? 2 * count : 1) * size);
    assert(array);
    return array;
}

/* The first failure is kept, with its line. */
__attribute__((format(printf, 2, 3))) static void fail(parser *p, const char *format, ...) {
    if (p->has_failed)
        return;
    p->has_failed = true;
    int used = snprintf(p->log, p->log_size, "line %u: ", p->line);
    va_list args;
    va_start(args, format);
    vsnprintf(p->log + used, p->log_size - (size_t)used, format, args);
    va_end(args);
}

/* Names ----------------------------------------------------------------------------------------- */

/* Made if it is new. */
static uint32_t find_register(parser *p, const char *name) {
    for (size_t i = p->register_count; i-- > 0;)
        if (p->registers[i].function == p->functions && strcmp(p->registers[i].name, name) == 0)
            return p->registers[i].index;
    p->registers = grow(p->registers, p->register_count, sizeof *p->registers);
    label *l = &p->registers[p->register_count];
    snprintf(l->name, sizeof l->name, "%.47s", name);
    l->function = p->functions;
    l->index = (uint32_t)p->register_count++;
    return l->index;
}

static bool is_declared(const parser *p, const char *name) {
    for (size_t i = 0; i < p->register_count; i++)
        if (strcmp(p->registers[i].name, name) == 0)
            return true;
    return false;
}

/* ".reg .b16 tmp;" names one; those of ".reg .b32 %r<9>;" are known by their percent sign. */
static void declare_registers(parser *p, char *text) {
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t\n,", &rest); word; word = strtok_r(NULL, " \t\n,", &rest))
        if (word[0] != '.' && word[0] != '%')
            find_register(p, word);
}

/* -1: there is none. */
static int find_symbol(const parser *p, const char *name) {
    for (size_t i = 0; i < p->program->symbol_count; i++)
        if (strcmp(p->program->symbols[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void add_symbol(parser *p, const char *name, ptx_space space, size_t at) {
    ptx_program *g = p->program;
    g->symbols = grow(g->symbols, g->symbol_count, sizeof *g->symbols);
    ptx_symbol *s = &g->symbols[g->symbol_count++];
    snprintf(s->name, sizeof s->name, "%.159s", name);
    s->space = space;
    s->at = at;
}

/* Variables ------------------------------------------------------------------------------------- */

static size_t take_room(size_t *used, size_t align, size_t bytes) {
    size_t at = (*used + align - 1) / align * align;
    *used = at + bytes;
    return at;
}

static void read_values(parser *p, const char *list, size_t at, size_t step, size_t room) {
    for (size_t i = 0; list && *list && *list != '}' && (i + 1) * step <= room; i++) {
        list += strspn(list, "{, \t\n");
        if (*list == '}')
            break;
        uint64_t value = strtoull(list, NULL, 0);
        if (list[0] == '0' && (list[1] == 'f' || list[1] == 'd'))
            value = strtoull(list + 2, NULL, 16);
        else if (!isdigit((unsigned char)*list) && *list != '-')
            fail(p, "an initial value that is not a number");
        memcpy(p->program->data + at + i * step, &value, step);
        list += strcspn(list, ",}");
    }
}

/* ".visible .const .align 4 .b8 name[24] = {...};" */
static void read_variable(parser *p, char *text, ptx_space space) {
    ptx_program *g = p->program;
    size_t align = 1, step = 1, count = 1;
    char *equals = strchr(text, '='), *bracket, *name = NULL, *rest = NULL;
    char *values = equals ? strchr(equals, '{') ? strchr(equals, '{') : equals + 1 : NULL;
    if (equals)
        *equals = 0;
    for (char *word = strtok_r(text, " \t\n,;()", &rest); word;
         word = strtok_r(NULL, " \t\n,;()", &rest)) {
        if (strcmp(word, ".align") == 0) {
            word = strtok_r(NULL, " \t\n", &rest);
            align = word ? (size_t)atoi(word) : 1;
        } else if (word[0] == '.' && isdigit((unsigned char)word[strlen(word) - 1]))
            step = (size_t)atoi(strpbrk(word, "0123456789")) / 8;
        else if (word[0] != '.')
            name = word;
    }
    if (!name) {
        fail(p, "a variable without a name");
        return;
    }
    if (space == SPACE_CALL && find_symbol(p, name) >= 0)
        return;
    align = align > step ? align : step;
    if ((bracket = strchr(name, '['))) {
        *bracket = 0;
        count = (size_t)strtoul(bracket + 1, NULL, 10);
        if (count == 0)
            space = SPACE_DYNAMIC;
    }
    size_t none = 0, *used = space == SPACE_SHARED                         ? &g->shared_bytes
                             : space == SPACE_LOCAL || space == SPACE_CALL ? &g->local_bytes
                             : space == SPACE_PARAM                        ? &g->param_bytes
                             : space == SPACE_DATA                         ? &g->data_bytes
                                                                           : &none;
    if (space == SPACE_CALL) { /* 8 bytes are copied */
        align = align > 8 ? align : 8;
        count = count * step > 8 ? count : 8 / step;
        space = SPACE_LOCAL;
    }
    size_t at = take_room(used, align, step * count);
    add_symbol(p, name, space, at);
    if (space != SPACE_DATA)
        return;
    g->data = realloc(g->data, g->data_bytes);
    assert(g->data);
    memset(g->data + at, 0, step * count);
    read_values(p, values, at, step, step * count);
}

/* Instructions ---------------------------------------------------------------------------------- */

#define TEXT_OF(op, text) text,
static const char *const op_names[OP_COUNT] = {PTX_OPS(TEXT_OF)};

static bool find_op(const char *name, ptx_op *op) {
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(op_names[i], name) == 0) {
            *op = (ptx_op)i;
            return true;
        }
    return false;
}

static bool read_type(const char *word, ptx_type *t) {
    if (strcmp(word, "pred") == 0)
        *t = (ptx_type){'p', 1};
    else if (strcmp(word, "bf16") == 0)
        *t = (ptx_type){'x', 16};
    else if (strcmp(word, "f16x2") == 0)
        *t = (ptx_type){'h', 32};
    else if (strchr("usfb", word[0]) && isdigit((unsigned char)word[1]) && atoi(word + 1) <= 64)
        *t = (ptx_type){word[0], (uint8_t)atoi(word + 1)};
    else
        return false;
    return true;
}

/* One word of "cvt.rn.f32.u32" after the first. */
static void read_modifier(parser *p, ptx_insn *i, const char *word, int *types) {
    static const char *const silent[] = {
        "sync",   "global", "shared", "local",    "param", "const",   "to",      "uni",     "lo",
        "approx", "full",   "ftz",    "volatile", "nc",    "relaxed", "sys",     "gpu",     "cta",
        "ballot", "idx",    "sc",     "acq_rel",  "gl",    "weak",    "acquire", "release", NULL};
    static const struct {
        const char *word;
        ptx_rounding rounding;
        bool to_integer;
    } roundings[] = {{"rn", ROUND_NEAREST, false}, {"rm", ROUND_DOWN, false},
                     {"rz", ROUND_ZERO, false},    {"rni", ROUND_NEAREST, true},
                     {"rzi", ROUND_ZERO, true},    {"rmi", ROUND_DOWN, true},
                     {"rpi", ROUND_UP, true}};
    ptx_type t;
    if (read_type(word, &t)) {
        if ((*types)++ == 0)
            i->type = t;
        else
            i->from = t;
        return;
    }
    for (size_t n = 0; n < sizeof roundings / sizeof *roundings; n++)
        if (strcmp(word, roundings[n].word) == 0) {
            i->rounding = roundings[n].rounding;
            i->to_integer = roundings[n].to_integer;
            return;
        }
    if (strcmp(word, "sat") == 0)
        i->saturates = true;
    else if (strcmp(word, "wide") == 0)
        i->is_wide = true;
    else if (strcmp(word, "hi") == 0)
        i->is_high = true;
    else if (strcmp(word, "cc") == 0)
        i->sets_carry = true;
    else if (strcmp(word, "wrap") == 0 || strcmp(word, "clamp") == 0)
        i->wraps = word[0] == 'w';
    else if (word[0] == 'v' && isdigit((unsigned char)word[1]) && !word[2])
        i->width = (uint8_t)(word[1] - '0');
    else if (i->op == OP_SETP || i->op == OP_ATOM || i->op == OP_SHFL || i->op == OP_SHF) {
        for (size_t n = 0; silent[n]; n++)
            if (strcmp(word, silent[n]) == 0 && !(i->op == OP_SHFL && strcmp(word, "idx") == 0))
                return;
        if (i->how[0])
            fail(p, "two ways in one instruction: %s and %s", i->how, word);
        snprintf(i->how, sizeof i->how, "%.7s", word);
    } else {
        for (size_t n = 0; silent[n]; n++)
            if (strcmp(word, silent[n]) == 0)
                return;
        fail(p, "the word .%s is not known", word);
    }
}

static void read_product(parser *p, ptx_insn *i, const char *form) {
    static const struct {
        const char *form;
        uint8_t depth;
        ptx_type sum, factor;
    } known[] = {
        {"sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, {'f', 32}, {'t', 32}},
        {"sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, {'f', 32}, {'x', 16}},
        {"sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, {'f', 32}, {'f', 16}},
        {"sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, {'f', 32}, {'x', 16}},
        {"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, {'f', 32}, {'f', 16}},
        {"sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 16, {'s', 32}, {'s', 8}},
        {"sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, {'s', 32}, {'s', 8}},
        {"sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", 32, {'s', 32}, {'u', 8}},
    };
    i->op = OP_MMA;
    for (size_t n = 0; n < sizeof known / sizeof *known; n++)
        if (strcmp(form, known[n].form) == 0) {
            i->width = known[n].depth;
            i->type = known[n].sum;
            i->from = known[n].factor;
            return;
        }
    fail(p, "the product mma.%s is not known", form);
}

/* Products of a warpgroup are done at once: only ptxas looks at what awaits them. */
static void read_group_product(parser *p, ptx_insn *i, const char *form) {
    unsigned columns = 0;
    char rest[24] = "";
    i->op = OP_FENCE;
    if (strcmp(form, "fence.sync.aligned") == 0 || strcmp(form, "commit_group.sync.aligned") == 0 ||
        strcmp(form, "wait_group.sync.aligned") == 0)
        return;
    i->op = OP_WGMMA;
    if (sscanf(form, "mma_async.sync.aligned.m64n%uk16.%23s", &columns, rest) != 2 ||
        strcmp(rest, "f32.f16.f16") != 0 || columns == 0 || columns > 128 || columns % 8 != 0)
        fail(p, "the product wgmma.%s is not known", form);
    i->width = (uint8_t)columns;
}

static void read_opcode(parser *p, ptx_insn *i, char *opcode) {
    int types = 0;
    i->width = 1;
    if (find_op(opcode, &i->op))
        return;
    char *rest = NULL, *word = strtok_r(opcode, ".", &rest);
    bool is_arrival =
        strcmp(word, "barrier") == 0 && strcmp(rest, "cluster.arrive.relaxed.aligned") == 0;
    if (is_arrival) {
        i->op = OP_CLUSTER_ARRIVE;
        return;
    }
    bool is_warp = strcmp(word, "bar") == 0 && strncmp(rest, "warp", 4) == 0,
         is_prefetch =
             strcmp(word, "cp") == 0 && strcmp(rest, "async.bulk.prefetch.L2.global") == 0;
    if (is_warp || is_prefetch || strcmp(word, "membar") == 0 || strcmp(word, "nanosleep") == 0 ||
        strcmp(word, "griddepcontrol") == 0) {
        i->op = is_warp ? OP_BARWARP : OP_FENCE;
        return;
    }
    if (strcmp(word, "st") == 0 &&
        strcmp(rest, "async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32") == 0) {
        i->op = OP_SEND;
        i->width = 4;
        return;
    }
    if (strcmp(word, "mma") == 0) {
        read_product(p, i, rest);
        return;
    }
    if (strcmp(word, "wgmma") == 0) {
        read_group_product(p, i, rest);
        return;
    }
    if (!find_op(word, &i->op)) {
        fail(p, "the instruction %s is not known", word);
        return;
    }
    while (i->op != OP_BAR && i->op != OP_FENCE && (word = strtok_r(NULL, ".", &rest)))
        read_modifier(p, i, word, &types);
}

static const char *const specials[] = {
    "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
    "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%clock"};

static void read_number(const char *word, ptx_arg *a) {
    a->kind = ARG_VALUE;
    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'd' || word[1] == 'F' || word[1] == 'D'))
        a->value = (int64_t)strtoull(word + 2, NULL, 16);
    else
        a->value = (int64_t)strtoull(word, NULL, 0);
}

/* A register, number, symbol, or a sum of one of them and a number. */
static void read_arg(parser *p, ptx_insn *i, char *word) {
    if (i->count == PTX_ARGS) {
        fail(p, "too many operands");
        return;
    }
    ptx_arg *a = &i->args[i->count++];
    char *plus = strchr(word, '+');
    if (plus) {
        *plus = 0;
        a->value = strtoll(plus + 1, NULL, 0);
    }
    for (uint32_t n = 0; n < sizeof specials / sizeof *specials; n++)
        if (strcmp(word, specials[n]) == 0) {
            a->kind = ARG_SPECIAL;
            a->index = n;
            return;
        }
    if (word[0] == '%' || strcmp(word, "_") == 0) { /* _: a register that nothing reads */
        a->kind = ARG_REGISTER;
        a->index = find_register(p, word);
        return;
    }
    if (isdigit((unsigned char)word[0]) || word[0] == '-') {
        read_number(word, a);
        return;
    }
    int symbol = find_symbol(p, word);
    if (symbol < 0 && is_declared(p, word)) {
        a->kind = ARG_REGISTER;
        a->index = find_register(p, word);
        return;
    }
    if (symbol < 0)
        fail(p, "the name %s is not known", word);
    a->kind = ARG_SYMBOL;
    a->index = (uint32_t)symbol;
}

/* Branch targets are remembered by name until all labels are known. */
typedef struct {
    size_t insn;
    char name[48];
} jump;

static void read_insn(parser *p, char *text, jump **jumps, size_t *jump_count);

/* "(retval0), f, (param0, param1)": what is given goes where f has it, at most 8 bytes each. */
static void read_call(parser *p, ptx_insn *i, char *text, jump **jumps, size_t *jump_count) {
    char *words[8], *rest = NULL, line[256];
    int count = 0, first = *text == '(';
    for (char *word = strtok_r(text, " \t\n,()", &rest); word && count < 8;
         word = strtok_r(NULL, " \t\n,()", &rest))
        words[count++] = word;
    for (int n = first + 1; n < count; n++) {
        snprintf(line, sizeof line, "ld.b64 %%call, [%.48s]", words[n]);
        read_insn(p, line, jumps, jump_count);
        snprintf(line, sizeof line, "st.b64 [%.160s_param_%d], %%call", words[first],
                 n - first - 1);
        read_insn(p, line, jumps, jump_count);
    }
    ptx_program *g = p->program;
    *jumps = grow(*jumps, *jump_count, sizeof **jumps);
    (*jumps)[*jump_count].insn = g->count;
    snprintf((*jumps)[(*jump_count)++].name, 48, "%.47s", words[first]);
    g->code = grow(g->code, g->count, sizeof *g->code);
    g->code[g->count++] = *i;
    for (int n = 0; n < first; n++) {
        read_insn(p, strcpy(line, "ld.b64 %call, [func_retval0]"), jumps, jump_count);
        snprintf(line, sizeof line, "st.b64 [%.48s], %%call", words[n]);
        read_insn(p, line, jumps, jump_count);
    }
}

static void read_insn(parser *p, char *text, jump **jumps, size_t *jump_count) {
    ptx_insn i = {.line = p->line};
    char *rest = NULL;
    if (text[0] == '@') {
        i.unless = text[1] == '!' ? -1 : 1;
        char *name = strtok_r(text + (i.unless < 0 ? 2 : 1), " \t\n", &rest);
        i.predicate = find_register(p, name);
        text = rest + strspn(rest, " \t\n");
    }
    char *opcode = strtok_r(text, " \t\n", &rest);
    read_opcode(p, &i, opcode);
    if (i.op == OP_CALL) {
        read_call(p, &i, rest, jumps, jump_count);
        return;
    }
    if (i.op == OP_BRA) {
        const char *word = strtok_r(NULL, " \t,", &rest);
        *jumps = grow(*jumps, *jump_count, sizeof **jumps);
        (*jumps)[*jump_count].insn = p->program->count;
        snprintf((*jumps)[(*jump_count)++].name, 48, "%.47s", word ? word : "");
    } else {
        rest = rest ? rest + strspn(rest, " \t\n") : rest;
        i.unpacks = i.op == OP_MOV && rest && *rest == '{';
        for (char *word; !p->has_failed && (word = strtok_r(NULL, " \t\n,{}[]|", &rest));)
            read_arg(p, &i, word);
    }
    ptx_program *g = p->program;
    g->code = grow(g->code, g->count, sizeof *g->code);
    g->code[g->count++] = i;
}

static void add_label(parser *p, const char *name, size_t length) {
    p->labels = grow(p->labels, p->label_count, sizeof *p->labels);
    label *l = &p->labels[p->label_count++];
    snprintf(l->name, sizeof l->name, "%.*s", (int)length, name);
    l->index = (uint32_t)p->program->count;
}

static bool find_label(const parser *p, const char *name, uint32_t *index) {
    for (size_t i = 0; i < p->label_count; i++)
        if (strcmp(p->labels[i].name, name) == 0) {
            *index = p->labels[i].index;
            return true;
        }
    return false;
}

static void finish(parser *p, const jump *jumps, size_t jump_count) {
    ptx_program *g = p->program;
    for (size_t i = 0; i < jump_count; i++)
        if (!find_label(p, jumps[i].name, &g->code[jumps[i].insn].target))
            fail(p, "the label %s is not there", jumps[i].name);
    g->registers = (uint32_t)p->register_count;
    g->local_bytes = (g->local_bytes + 15) / 16 * 16;
}

/* Statements end in ';', labels in ':'; comments and lines that only describe are blanked. */
static void blank(char *text) {
    for (char *p = text; (p = strstr(p, "//"));)
        while (*p && *p != '\n')
            *p++ = ' ';
    static const char *const words[] = {".loc",    ".file",         ".version",
                                        ".target", ".address_size", ".pragma"};
    for (char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char *word = line + strspn(line, " \t");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncmp(word, words[i], strlen(words[i])) == 0 &&
                strchr(" \t", word[strlen(words[i])]))
                memset(word, ' ', strcspn(word, "\n"));
    }
    char *sections = strstr(text, ".section");
    if (sections)
        *sections = 0;
}

static size_t count_lines(const char *from, const char *to) {
    size_t n = 0;
    for (; from < to; from++)
        n += *from == '\n';
    return n;
}

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static void read_statement(parser *p, char *s, jump **jumps, size_t *jump_count) {
    if (begins(s, ".reg"))
        declare_registers(p, s);
    else if (s[0] != '.') {
        if (*s)
            read_insn(p, s, jumps, jump_count);
    } else if (strstr(s, ".shared"))
        read_variable(p, s, SPACE_SHARED);
    else if (strstr(s, ".local"))
        read_variable(p, s, SPACE_LOCAL);
    else if (begins(s, ".param"))
        read_variable(p, s, SPACE_CALL);
    else if (strstr(s, ".const") || strstr(s, ".global"))
        read_variable(p, s, SPACE_DATA);
    else
        fail(p, "%.40s is not known", s);
}

/* " (.param .b32 func_retval0) f(.param .b64 f_param_0)" and a body, or a semicolon. Every thread has its own
 * memory for what it gives to a function and gets from it. */
static char *read_function(parser *p, char *s) {
    const char *name = NULL;
    char *end = s;
    while (*end && *end != ';' && *end != '{') {
        end += strspn(end, " \t\n,)");
        char *word = end;
        end += strcspn(end, " \t\n(),;{");
        if (end > word && *word != '.' && !name && strncmp(word, "func_retval", 11) != 0)
            name = word;
        if (strncmp(word, ".param", 6) == 0) {
            end = word + strcspn(word, ",)");
            char variable[256];
            snprintf(variable, sizeof variable, "%.*s", (int)(end - word), word);
            read_variable(p, variable, SPACE_CALL);
        }
        end += *end == '(';
    }
    if (*end == '{' && name) {
        add_label(p, name, strcspn(name, "( \t\n"));
        p->functions++;
    }
    return *end ? end + 1 : end;
}

/* The braces of bodies go; what is in parentheses after .entry are its parameters. */
static void read_all(parser *p, char *text) {
    jump *jumps = NULL;
    size_t jump_count = 0;
    const char *start = text;
    for (char *s = text; !p->has_failed;) {
        s += strspn(s, " \t\n{}");
        if (!*s)
            break;
        p->line = (uint32_t)count_lines(start, s) + 1;
        char *colon = s[0] == '$' ? strchr(s, ':') : NULL, *end;
        if (colon) {
            add_label(p, s, (size_t)(colon - s));
            s = colon + 1;
            continue;
        }
        if (begins(s, ".visible .entry") || begins(s, ".entry")) {
            char *open = strchr(s, '('), *close = strchr(s, ')');
            const char *name = strstr(s, ".entry") + strlen(".entry");
            name += strspn(name, " \t");
            snprintf(p->program->entry, sizeof p->program->entry, "%.*s", (int)(open - name), name);
            *close = 0;
            read_variable(p, open + 1, SPACE_PARAM);
            char *body = strchr(close + 1, '{');
            *body = 0;
            const char *cluster = strstr(close + 1, ".reqnctapercluster ");
            p->program->cluster = cluster ? (uint32_t)strtoul(strchr(cluster, ' '), NULL, 10) : 1;
            s = body + 1;
            p->functions++;
            p->program->first = (uint32_t)p->program->count;
            continue;
        }
        if (strstr(s, ".func") && strstr(s, ".func") < s + strcspn(s, ";\n")) {
            s = read_function(p, strstr(s, ".func") + strlen(".func"));
            continue;
        }
        /* A variable's values stand in braces. */
        end = strchr(s, ';');
        if (!end) {
            fail(p, "a statement without an end: %.30s", s);
            break;
        }
        *end = 0;
        read_statement(p, s, &jumps, &jump_count);
        s = end + 1;
    }
    if (!p->has_failed)
        finish(p, jumps, jump_count);
    free(jumps);
}

ptx_program *ptx_parse(const char *text, char *log, size_t size) {
    parser p = {.log = log, .log_size = size};
    p.program = calloc(1, sizeof *p.program);
    char *copy = strdup(text);
    assert(p.program && copy);
    blank(copy);
    read_all(&p, copy);
    free(copy);
    free(p.registers);
    free(p.labels);
    if (!p.has_failed)
        return p.program;
    ptx_free(p.program);
    return NULL;
}

void ptx_free(ptx_program *p) {
    free(p->symbols);
    free(p->code);
    free(p->data);
    free(p);
}
