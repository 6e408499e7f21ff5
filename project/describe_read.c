/* describe_read: the lines of a description. Owns their grammar; expressions stay as they are. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "describe_parts.h"
#include "harness/base/line.h"

bool describe_refuse(const description *d, int line, err *e, const char *format, ...) {
    char text[220];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return err_set(e, EXIT_USAGE, "%.60s:%d: %s", d->file, line, text);
}

described_argument *describe_find_argument(description *d, const char *name) {
    for (size_t i = 0; i < d->argument_count; i++)
        if (strcmp(d->arguments[i].name, name) == 0)
            return &d->arguments[i];
    return NULL;
}

bool describe_is_output(const described_argument *a) {
    return a->kind == ARGUMENT_OUT || a->kind == ARGUMENT_BOTH;
}

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

/* The threads of a group are literals: `list` and `lint` know them without a shape. */
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

static bool read_kernel(description *d, char *rest, int line, err *e) {
    static const char *const words[] = {"group",       "threads", "groups", "dispatch",
                                        "threadgroup", "about",   NULL};
    if (d->op.kernel_count == DESCRIBE_KERNELS)
        return describe_refuse(d, line, e, "more than %d kernels", DESCRIBE_KERNELS);
    kernel *k = &d->kernels[d->op.kernel_count];
    described_grid *g = &d->grids[d->op.kernel_count++];
    *g = (described_grid){.line = line};
    *k = (kernel){.name = line_take_word(&rest), .file = line_take_word(&rest), .about = ""};
    bool ok = line_is_name(k->name) && strstr(k->file, ".metal");
    while (ok && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        bool is_about = strcmp(word, "about") == 0;
        char *text = is_about ? line_skip_blanks(rest) : line_take_until(&rest, words);
        ok = read_kernel_part(k, g, word, text);
        if (is_about)
            rest += strlen(rest);
    }
    if (!ok || g->group.count == 0 || !g->grid_kind)
        return describe_refuse(d, line, e,
                               "a kernel is given as: kernel NAME FILE.metal group THREADS "
                               "threads|groups|dispatch COUNT [threadgroup BYTES, ...]");
    return count_group(d, g, &k->group, e);
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

static bool read_options(described_argument *a, char *rest) {
    static const char *const words[] = {"below", "from", "at", NULL};
    while (*(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        char *text = line_take_until(&rest, words), *end;
        if (!*text)
            return false;
        if (strcmp(word, "below") == 0 && a->kind != ARGUMENT_OUT)
            a->below = (described_expression){.text = text, .line = a->line};
        else if (strcmp(word, "from") == 0)
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

static bool read_buffer(description *d, argument_kind kind, char *rest, int line, err *e) {
    described_argument a = {.kind = kind, .line = line, .index = get_next_index(d)};
    a.name = line_take_word(&rest);
    char *type = line_skip_blanks(rest), *open = strchr(type, '['), *close = strchr(type, ']');
    int depth = 0;
    for (char *p = open; p && *p; p++) {
        depth += (*p == '[') - (*p == ']');
        if (depth == 0) {
            close = p;
            break;
        }
    }
    if (!open || !close || close < open)
        return describe_refuse(d, line, e,
                               "a buffer is given as: in NAME TYPE[SIZE], such as x "
                               "f32[rows, dim]");
    *open = *close = 0;
    line_trim_end(type);
    if (!read_type(d, type, &a.type, line, e))
        return false;
    if (!split(open + 1, line, &a.sizes))
        return describe_refuse(d, line, e, "'%.40s' needs 1 to %d sizes in its brackets", a.name,
                               DESCRIBE_AXES);
    if (!read_options(&a, close + 1))
        return describe_refuse(d, line, e,
                               "after the size of '%.40s' come only below N, from FILE "
                               "and at INDEX",
                               a.name);
    if (kind != ARGUMENT_OUT && !elem_is_float(a.type) && !a.below.text && !a.from)
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
    if (!read_options(&a, rest) || a.from || a.below.text)
        return describe_refuse(d, line, e, "expected: %s", form);
    return add_argument(d, &a, e);
}

static bool read_struct(description *d, char *rest, int line, err *e) {
    described_argument a = {.kind = ARGUMENT_STRUCT, .line = line, .index = get_next_index(d)};
    a.name = line_take_word(&rest);
    a.first_field = d->field_count;
    if (!read_options(&a, rest) || a.from || a.below.text)
        return describe_refuse(d, line, e, "expected: struct NAME, and its lines field");
    return add_argument(d, &a, e);
}

static bool read_field(description *d, char *rest, int line, err *e) {
    described_argument *a = d->argument_count ? &d->arguments[d->argument_count - 1] : NULL;
    const char *name = line_take_word(&rest);
    if (!a || a->kind != ARGUMENT_STRUCT)
        return describe_refuse(d, line, e, "the field '%.40s' does not follow a line struct NAME",
                               name);
    if (d->field_count == DESCRIBE_FIELDS || !line_is_name(name))
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
    return read_scalar(d, &rest, &c->type, &c->value, line, form, e) &&
           (!*rest || describe_refuse(d, line, e, "nothing comes after a constant's value"));
}

static const struct {
    const char *word;
    line_reader *read;
} readers[] = {
    {"op", read_op},
    {"dims", read_dims},
    {"shapes", read_shapes},
    {"inputs", read_inputs},
    {"needs", describe_read_needs},
    {"kernel", read_kernel},
    {"in", read_in},
    {"out", read_out},
    {"inout", read_inout},
    {"value", read_value},
    {"struct", read_struct},
    {"field", read_field},
    {"constant", read_constant},
    {"let", describe_read_let},
    {"oracle", describe_read_oracle},
    {"rtol", describe_read_rtol},
    {"atol", describe_read_atol},
    {"exact", describe_read_exact},
    {"terms", describe_read_terms},
    {"roundings", describe_read_roundings},
    {"flops", describe_read_flops},
};

static bool read_line(description *d, char *line, int at_line, err *e) {
    char *rest, *word = line_take_keyword(line, &rest), valid[200];
    size_t used = 0;
    if (!*word)
        return true;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
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

bool describe_read(description *d, char *text, err *e) {
    int at_line = 1;
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
        if (is_block(line) && d->rule_count < DESCRIBE_RULES) {
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
