/* description_read: the lines of a description. Owns their grammar; expressions stay as they are. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "description.h"
#include "harness/base/line.h"

/* Comma-separated expressions. */
static bool split(char *text, int line, expressions *out) {
    const char *parts[DESCRIBE_AXES];
    if (!line_split(text, parts, DESCRIBE_AXES, &out->count))
        return false;
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = (described_expression){.text = parts[i], .line = line};
    return true;
}

/* Lines --------------------------------------------------------------------------------------- */

static bool read_op(description *d, char *rest, int line, err *e) {
    char *colon = strchr(rest, ':');
    if (colon)
        *colon = 0;
    line_trim_end(rest);
    d->op.name = rest;
    d->op.about = colon ? line_skip_blanks(colon + 1) : "";
    return line_is_name(rest) || describe_refuse(d, line, e,
                                                 "the name of an op has letters, digits and _, not "
                                                 "'%.40s'; what it computes follows a colon",
                                                 rest);
}

static bool read_dims(description *d, char *rest, int line, err *e) {
    for (char *word; *(word = line_take_word(&rest));) {
        if (!line_is_name(word) || d->dim_count == SHAPE_DIMS)
            return describe_refuse(d, line, e,
                                   "dims are up to %d names of sizes, as in: dims rows "
                                   "dim",
                                   SHAPE_DIMS);
        size_t used = strlen(d->dim_text);
        snprintf(d->dim_text + used, sizeof d->dim_text - used, "%s%s", used ? " x " : "", word);
        d->dims[d->dim_count++] = word;
    }
    return true;
}

static bool read_shape(const description *d, const char *word, shape *out, int line, err *e) {
    return (shape_parse(word, out) && shape_count_dims(out) == d->dim_count) ||
           describe_refuse(d, line, e,
                           "'%.40s' is not a shape of %zu sizes such as 3x576; dims come before "
                           "shapes",
                           word, d->dim_count);
}

static bool read_shapes(description *d, char *rest, int line, err *e) {
    for (char *word; *(word = line_take_word(&rest)); d->op.shapes.count++) {
        if (d->op.shapes.count == DESCRIBE_SHAPES)
            return describe_refuse(d, line, e, "more than %d shapes", DESCRIBE_SHAPES);
        if (!read_shape(d, word, &d->shapes[d->op.shapes.count], line, e))
            return false;
    }
    return true;
}

static bool read_inputs(description *d, char *rest, int line, err *e) {
    return read_shape(d, rest, &d->op.shapes.any_input, line, e);
}

/* A word of a kernel line and what follows it. */
static bool read_kernel_part(kernel *k, described_grid *g, const char *word, char *text) {
    if (strcmp(word, "about") == 0)
        k->about = text;
    else if (strcmp(word, "format") == 0)
        return *(g->format = text) != 0;
    else if (strcmp(word, "group") == 0)
        return split(text, g->line, &g->group) && g->group.count <= 3;
    else if (strcmp(word, "threadgroup") == 0)
        return split(text, g->line, &g->threadgroup);
    else {
        bool is_grid = strcmp(word, "threads") == 0 || strcmp(word, "groups") == 0 ||
                       strcmp(word, "dispatch") == 0;
        if (!is_grid || g->grid_kind)
            return false;
        g->grid_kind = word[0];
        return split(text, g->line, &g->grid) && g->grid.count <= 3;
    }
    return true;
}

/* The threads of a group of an op are literals: `list` and `lint` know them without a shape. */
static bool count_group(description *d, const described_grid *g, uint32_t *count, err *e) {
    uint64_t product = 1;
    for (size_t i = 0; i < g->group.count; i++) {
        const char *text = g->group.items[i].text;
        if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 4)
            return describe_refuse(d, g->line, e, "the threads of a group are numbers, not '%.40s'",
                                   text);
        product *= strtoul(text, NULL, 10);
    }
    *count = (uint32_t)product;
    return (product > 0 && product <= 1024) ||
           describe_refuse(d, g->line, e, "a group has 1 to 1024 threads, not %llu",
                           (unsigned long long)product);
}

/* An op names the file of each kernel. A launch may name the format of its weights instead. */
static bool read_kernel(description *d, char *rest, int line, err *e) {
    static const char *const words[] = {"format",   "group",       "threads", "groups",
                                        "dispatch", "threadgroup", "about",   NULL};
    bool is_op = d->kind == DESCRIBES_OP;
    if (d->op.kernel_count == DESCRIBE_KERNELS)
        return describe_refuse(d, line, e, "more than %d kernels", DESCRIBE_KERNELS);
    kernel *k = &d->kernels[d->op.kernel_count];
    described_grid *g = &d->grids[d->op.kernel_count++];
    *g = (described_grid){.line = line};
    *k = (kernel){.name = line_take_word(&rest), .about = ""};
    if (is_op)
        k->file = line_take_word(&rest);
    bool ok = line_is_name(k->name) && (!is_op || strstr(k->file, ".metal"));
    while (ok && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        bool is_about = strcmp(word, "about") == 0;
        char *text = is_about ? line_skip_blanks(rest) : line_take_until(&rest, words + is_op);
        ok = read_kernel_part(k, g, word, text);
        if (is_about)
            rest += strlen(rest);
    }
    if (!ok || g->group.count == 0 || !g->grid_kind || (is_op && g->format))
        return describe_refuse(d, line, e,
                               "a kernel is given as: kernel NAME %s group THREADS "
                               "threads|groups|dispatch COUNT [threadgroup BYTES, ...]",
                               is_op ? "FILE.metal" : "[format F]");
    return !is_op || count_group(d, g, &k->group, e);
}

static bool add_argument(description *d, const described_argument *a, err *e) {
    if (!line_is_name(a->name))
        return describe_refuse(d, a->line, e, "a name has letters, digits and _, not '%.40s'",
                               a->name);
    const described_argument *other = describe_find_argument(d, a->name);
    if (other)
        return describe_refuse(d, a->line, e, "'%.40s' is given twice: see line %d", a->name,
                               other->line);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].index == a->index)
            return describe_refuse(d, a->line, e, "buffer index %d is that of '%.40s' already",
                                   a->index, d->arguments[i].name);
    if (d->argument_count == DESCRIBE_ARGUMENTS || a->index < 0 || a->index >= LAUNCH_BUFFERS)
        return describe_refuse(d, a->line, e,
                               "buffer index %d is too large, or there are more than "
                               "%d buffers and values",
                               a->index, DESCRIBE_ARGUMENTS);
    d->arguments[d->argument_count++] = *a;
    return true;
}

/* The one after the last. */
static int get_next_index(const description *d) {
    return d->argument_count ? d->arguments[d->argument_count - 1].index + 1 : 0;
}

static bool read_type(const description *d, const char *word, elem *type, int line, err *e) {
    return elem_find(word, type) ||
           describe_refuse(d, line, e,
                           "there is no type '%.40s' (valid: f32 f16 bf16 i8 u8 i16 u16 "
                           "i32 u32 i64 u64)",
                           word);
}

/* The options of a buffer; of a value or struct only `at`. */
static bool read_options(const description *d, described_argument *a, char *rest) {
    static const char *const words[] = {"below", "from", "at", "overread", NULL};
    bool is_buffer = a->kind <= ARGUMENT_BOTH, is_ours = is_buffer && d->kind == DESCRIBES_OP;
    while (*(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        if (strcmp(word, "overread") == 0 && a->kind == ARGUMENT_IN) {
            a->may_overread = true;
            continue;
        }
        char *text = line_take_until(&rest, words), *end;
        if (!*text)
            return false;
        if (strcmp(word, "below") == 0 && is_ours && a->kind != ARGUMENT_OUT)
            a->below = (described_expression){.text = text, .line = a->line};
        else if (strcmp(word, "from") == 0 && is_ours)
            a->from = text;
        else if (strcmp(word, "at") == 0 && isdigit((unsigned char)text[0])) {
            a->index = (int)strtol(text, &end, 10);
            if (*end)
                return false;
        } else
            return false;
    }
    return true;
}

/* TYPE[SIZE, ...]; *rest is then what follows. */
static bool read_array(const description *d, described_argument *a, char **rest, err *e) {
    char *type = line_skip_blanks(*rest), *open = strchr(type, '['), *close = open;
    int depth = 0;
    for (; close && *close; close++) {
        depth += (*close == '[') - (*close == ']');
        if (depth == 0)
            break;
    }
    if (!close || !*close)
        return describe_refuse(d, a->line, e,
                               "a buffer is given as: in NAME TYPE[SIZE], such as x "
                               "f32[rows, dim]");
    *open = *close = 0;
    *rest = close + 1;
    line_trim_end(type);
    return read_type(d, type, &a->type, a->line, e) &&
           (split(open + 1, a->line, &a->sizes) ||
            describe_refuse(d, a->line, e, "'%.40s' needs 1 to %d sizes in its brackets", a->name,
                            DESCRIBE_AXES));
}

static bool read_buffer(description *d, argument_kind kind, char *rest, int line, err *e) {
    described_argument a = {.kind = kind, .line = line, .index = get_next_index(d)};
    bool is_op = d->kind == DESCRIBES_OP;
    a.name = line_take_word(&rest);
    if (is_op && !read_array(d, &a, &rest, e))
        return false;
    if (!read_options(d, &a, rest))
        return describe_refuse(d, line, e,
                               "after '%.40s' come only %sat INDEX, and overread of an input",
                               a.name, is_op ? "below N, from FILE, " : "");
    if (is_op && kind != ARGUMENT_OUT && !elem_is_float(a.type) && !a.below.text && !a.from)
        return describe_refuse(d, line, e,
                               "'%.40s' holds whole numbers: say below what, as in "
                               "below 100, or give a file",
                               a.name);
    return add_argument(d, &a, e);
}

static bool read_in(description *d, char *rest, int line, err *e) {
    return read_buffer(d, ARGUMENT_IN, rest, line, e);
}

static bool read_out(description *d, char *rest, int line, err *e) {
    return read_buffer(d, ARGUMENT_OUT, rest, line, e);
}

static bool read_inout(description *d, char *rest, int line, err *e) {
    return read_buffer(d, ARGUMENT_BOTH, rest, line, e);
}

/* TYPE = EXPRESSION, and what follows. */
static bool read_scalar(description *d, char **rest, elem *type, described_expression *value,
                        int line, const char *form, err *e) {
    static const char *const words[] = {"at", NULL};
    const char *name = line_take_word(rest), *equals = line_take_word(rest);
    *value = (described_expression){.text = line_take_until(rest, words), .line = line};
    if (strcmp(equals, "=") != 0 || !*value->text)
        return describe_refuse(d, line, e, "expected: %s", form);
    return read_type(d, name, type, line, e);
}

static bool read_value(description *d, char *rest, int line, err *e) {
    static const char form[] = "value NAME TYPE = EXPRESSION";
    described_argument a = {.kind = ARGUMENT_VALUE, .line = line, .index = get_next_index(d)};
    a.name = line_take_word(&rest);
    if (!read_scalar(d, &rest, &a.type, &a.value, line, form, e))
        return false;
    if (!read_options(d, &a, rest))
        return describe_refuse(d, line, e, "expected: %s", form);
    return add_argument(d, &a, e);
}

static bool read_struct(description *d, char *rest, int line, err *e) {
    described_argument a = {.kind = ARGUMENT_STRUCT, .line = line, .index = get_next_index(d)};
    a.name = line_take_word(&rest);
    a.first_field = d->field_count;
    if (!read_options(d, &a, rest))
        return describe_refuse(d, line, e, "expected: struct NAME, and its lines field");
    return add_argument(d, &a, e);
}

static bool read_field(description *d, char *rest, int line, err *e) {
    described_argument *a = d->argument_count ? &d->arguments[d->argument_count - 1] : NULL;
    const char *name = line_take_word(&rest);
    if (!a || a->kind != ARGUMENT_STRUCT)
        return describe_refuse(d, line, e, "the field '%.40s' does not follow a line struct NAME",
                               name);
    if (d->field_count == DESCRIBE_FIELDS || (d->kind == DESCRIBES_OP && !line_is_name(name)))
        return describe_refuse(d, line, e, "more than %d fields, or '%.40s' is not a name",
                               DESCRIBE_FIELDS, name);
    described_scalar *f = &d->fields[d->field_count++];
    snprintf(f->name, sizeof f->name, "%.40s.%.40s", a->name, name);
    a->field_count++;
    return read_scalar(d, &rest, &f->type, &f->value, line, "field NAME TYPE = EXPRESSION", e) &&
           (!*rest || describe_refuse(d, line, e, "nothing comes after a field's value"));
}

static bool read_constant(description *d, char *rest, int line, err *e) {
    static const char form[] = "constant INDEX TYPE = EXPRESSION";
    const char *index = line_take_word(&rest);
    if (d->constant_count == DESCRIBE_CONSTANTS || !*index || strlen(index) > 5 ||
        strspn(index, "0123456789") != strlen(index))
        return describe_refuse(d, line, e,
                               "more than %d function constants, or not of the form: %s",
                               DESCRIBE_CONSTANTS, form);
    described_scalar *c = &d->constants[d->constant_count++];
    c->index = atoi(index);
    for (const described_scalar *other = d->constants; other < c; other++)
        if (other->index == c->index)
            return describe_refuse(d, line, e, "constant %d is given twice", c->index);
    return read_scalar(d, &rest, &c->type, &c->value, line, form, e) &&
           (!*rest || describe_refuse(d, line, e, "nothing comes after a constant's value"));
}

static bool read_extra(description *d, char *rest, int line, const char **list, size_t *count,
                       err *e) {
    if (!*rest || *count == DESCRIBE_EXTRAS)
        return describe_refuse(d, line, e,
                               "include and define take one thing each, %d times at most",
                               DESCRIBE_EXTRAS);
    list[(*count)++] = rest;
    return true;
}

static bool read_include(description *d, char *rest, int line, err *e) {
    return read_extra(d, rest, line, d->includes, &d->include_count, e);
}

static bool read_define(description *d, char *rest, int line, err *e) {
    return read_extra(d, rest, line, d->macros, &d->macro_count, e);
}

static const struct {
    const char *word;
    line_reader *read;
    description_kind kind; /* what has such lines */
} readers[] = {
    {"op", read_op, DESCRIBES_EITHER},
    {"dims", read_dims, DESCRIBES_OP},
    {"shapes", read_shapes, DESCRIBES_OP},
    {"inputs", read_inputs, DESCRIBES_OP},
    {"needs", describe_read_needs, DESCRIBES_EITHER},
    {"kernel", read_kernel, DESCRIBES_EITHER},
    {"in", read_in, DESCRIBES_EITHER},
    {"out", read_out, DESCRIBES_EITHER},
    {"inout", read_inout, DESCRIBES_EITHER},
    {"value", read_value, DESCRIBES_EITHER},
    {"struct", read_struct, DESCRIBES_EITHER},
    {"field", read_field, DESCRIBES_EITHER},
    {"constant", read_constant, DESCRIBES_EITHER},
    {"include", read_include, DESCRIBES_LAUNCH},
    {"define", read_define, DESCRIBES_LAUNCH},
    {"let", describe_read_let, DESCRIBES_OP},
    {"oracle", describe_read_oracle, DESCRIBES_OP},
    {"rtol", describe_read_rtol, DESCRIBES_OP},
    {"atol", describe_read_atol, DESCRIBES_OP},
    {"exact", describe_read_exact, DESCRIBES_OP},
    {"terms", describe_read_terms, DESCRIBES_OP},
    {"roundings", describe_read_roundings, DESCRIBES_OP},
    {"flops", describe_read_flops, DESCRIBES_OP},
};

static bool read_line(description *d, char *line, int at_line, err *e) {
    char *rest, *word = line_take_keyword(line, &rest), valid[200];
    size_t used = 0;
    if (!*word)
        return true;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (!(readers[i].kind & d->kind))
            continue;
        if (strcmp(readers[i].word, word) == 0)
            return readers[i].read(d, rest, at_line, e);
        used += (size_t)snprintf(valid + used, sizeof valid - used, " %s", readers[i].word);
    }
    return describe_refuse(d, at_line, e, "there is no line '%.40s' (valid:%s)", word, valid);
}

/* `oracle {`: the lines up to one that begins with a `}` are C. */
static bool is_block(const char *line) {
    int end = 0;
    return sscanf(line, " oracle { %n", &end) == 0 && end > 0 && line[end] == 0;
}

bool describe_read(description *d, description_kind kind, const char *path, char *text, err *e) {
    int at_line = 1;
    const char *slash = strrchr(path, '/');
    d->kind = kind;
    d->path = path;
    d->file = slash ? slash + 1 : path;
    described_rule *block = NULL;
    for (char *line = text, *next; line; line = next, at_line++) {
        next = strchr(line, '\n');
        if (block) {
            if (line[0] == '}') {
                line[0] = 0; /* ends the C */
                block = NULL;
            }
            next = next ? next + 1 : NULL;
            continue;
        }
        if (next)
            *next++ = 0;
        if (kind == DESCRIBES_OP && is_block(line) && d->rule_count < DESCRIBE_RULES) {
            block = &d->rules[d->rule_count++];
            *block = (described_rule){.line = at_line + 1, .block = next ? next : ""};
        } else if (!read_line(d, line, at_line, e))
            return false;
    }
    if (block)
        return describe_refuse(d, block->line - 1, e,
                               "the C after oracle { has no end: a line "
                               "that begins with }");
    return describe_check(d, at_line - 1, e);
}
