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

const described_argument *describe_find_argument(const description *d, const char *name,
                                                 size_t length) {
    for (size_t i = 0; i < d->argument_count; i++)
        if (strlen(d->arguments[i].name) == length &&
            strncmp(d->arguments[i].name, name, length) == 0)
            return &d->arguments[i];
    return NULL;
}

/* Comma-separated expressions. */
static bool split(char *text, expressions *out) {
    return line_split(text, out->items, DESCRIBE_AXES, &out->count);
}

/* Lines --------------------------------------------------------------------------------------- */

typedef bool line_reader(description *d, char *rest, int line, err *e);

static bool read_op(description *d, char *rest, int line, err *e) {
    char *colon = strchr(rest, ':');
    if (colon)
        *colon = 0;
    line_trim_end(rest);
    d->name = rest;
    d->about = colon ? line_skip_blanks(colon + 1) : "";
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
    for (char *word; *(word = line_take_word(&rest)); d->shape_count++) {
        if (d->shape_count == DESCRIBE_SHAPES)
            return describe_refuse(d, line, e, "more than %d shapes", DESCRIBE_SHAPES);
        if (!read_shape(d, word, &d->shapes[d->shape_count], line, e))
            return false;
    }
    return true;
}

static bool read_inputs(description *d, char *rest, int line, err *e) {
    return read_shape(d, rest, &d->inputs, line, e);
}

static bool read_kernel(description *d, char *rest, int line, err *e) {
    static const char *const words[] = {"group",       "threads", "groups", "dispatch",
                                        "threadgroup", "about",   NULL};
    if (d->kernel_count == DESCRIBE_KERNELS)
        return describe_refuse(d, line, e, "more than %d kernels", DESCRIBE_KERNELS);
    described_kernel *k = &d->kernels[d->kernel_count++];
    *k = (described_kernel){.line = line, .about = ""};
    k->name = line_take_word(&rest);
    k->file = line_take_word(&rest);
    bool ok = line_is_name(k->name) && strstr(k->file, ".metal");
    while (ok && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        bool is_about = strcmp(word, "about") == 0;
        char *text = is_about ? line_skip_blanks(rest) : line_take_until(&rest, words);
        if (is_about)
            rest += strlen(rest);
        if (is_about)
            k->about = text;
        else if (strcmp(word, "group") == 0)
            ok = split(text, &k->group) && k->group.count <= 3;
        else if (strcmp(word, "threadgroup") == 0)
            ok = *(k->threadgroup = text) != 0;
        else {
            ok = !k->grid_kind && split(text, &k->grid) && k->grid.count <= 3 &&
                 (strcmp(word, "threads") == 0 || strcmp(word, "groups") == 0 ||
                  strcmp(word, "dispatch") == 0);
            k->grid_kind = word;
        }
    }
    return (ok && k->group.count > 0 && k->grid_kind) ||
           describe_refuse(d, line, e,
                           "a kernel is given as: kernel NAME FILE.metal group THREADS "
                           "threads|groups|dispatch COUNT");
}

static bool add_argument(description *d, const described_argument *a, err *e) {
    if (!line_is_name(a->name))
        return describe_refuse(d, a->line, e,
                               "a name has letters, digits and _, and '%.40s' is none", a->name);
    const described_argument *other = describe_find_argument(d, a->name, strlen(a->name));
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
            a->below = text;
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
    if (!split(open + 1, &a.sizes))
        return describe_refuse(d, line, e, "'%.40s' needs 1 to %d sizes in its brackets", a.name,
                               DESCRIBE_AXES);
    if (!read_options(&a, close + 1))
        return describe_refuse(d, line, e,
                               "after the size of '%.40s' come only below N, from FILE "
                               "and at INDEX",
                               a.name);
    if (kind != ARGUMENT_OUT && !elem_is_float(a.type) && !a.below && !a.from)
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

static bool read_value(description *d, char *rest, int line, err *e) {
    described_argument a = {.kind = ARGUMENT_VALUE, .line = line, .index = get_next_index(d)};
    static const char *const words[] = {"at", NULL};
    a.name = line_take_word(&rest);
    const char *type = line_take_word(&rest), *equals = line_take_word(&rest);
    a.value = line_take_until(&rest, words);
    if (strcmp(equals, "=") != 0 || !*a.value || !read_options(&a, rest) || a.from || a.below)
        return describe_refuse(d, line, e, "a value is given as: value NAME TYPE = EXPRESSION");
    return read_type(d, type, &a.type, line, e) && add_argument(d, &a, e);
}

static bool read_rule(description *d, char *rest, int line, bool is_scale, err *e) {
    described_rule *r = &d->rules[d->rule_count];
    if (d->rule_count == DESCRIBE_ARGUMENTS)
        return describe_refuse(d, line, e, "more than %d oracles", DESCRIBE_ARGUMENTS);
    char *open = strchr(rest, '['), *close = strchr(rest, ']');
    char *equals = close ? line_skip_blanks(close + 1) : NULL;
    if (!open || !close || close < open || *equals != '=')
        return describe_refuse(d, line, e, "%s is given as: %s NAME[i] = EXPRESSION",
                               is_scale ? "a scale" : "an oracle", is_scale ? "scale" : "oracle");
    *open = *close = 0;
    line_trim_end(rest);
    *r = (described_rule){.line = line, .is_scale = is_scale, .text = line_skip_blanks(equals + 1)};
    r->output = describe_find_argument(d, rest, strlen(rest));
    if (!r->output || r->output->kind == ARGUMENT_IN || r->output->kind == ARGUMENT_VALUE)
        return describe_refuse(d, line, e,
                               "'%.40s' is no output: out and inout lines come before "
                               "the oracle",
                               rest);
    bool ok = split(open + 1, &r->indices);
    for (size_t i = 0; ok && i < r->indices.count; i++)
        ok = line_is_name(r->indices.items[i]);
    if (!ok || r->indices.count != r->output->sizes.count)
        return describe_refuse(d, line, e, "'%.40s' has %zu sizes: give as many names of indices",
                               rest, r->output->sizes.count);
    if (!*r->text)
        return describe_refuse(d, line, e, "the expression is missing");
    d->rule_count++;
    return true;
}

static bool read_oracle(description *d, char *rest, int line, err *e) {
    return read_rule(d, rest, line, false, e);
}

static bool read_scale(description *d, char *rest, int line, err *e) {
    return read_rule(d, rest, line, true, e);
}

#define TEXT_READER(field)                                                                         \
    static bool read_##field(description *d, char *rest, int line, err *e) {                       \
        d->field = rest;                                                                           \
        d->field##_line = line;                                                                    \
        return *rest || describe_refuse(d, line, e, #field " needs an expression");                \
    }
TEXT_READER(needs)
TEXT_READER(terms)
TEXT_READER(roundings)
TEXT_READER(flops)

static bool read_exact(description *d, char *rest, int line, err *e) {
    d->exact = true;
    return !*rest || describe_refuse(d, line, e, "nothing comes after exact, not '%.40s'", rest);
}

static const struct {
    const char *word;
    line_reader *read;
} readers[] = {
    {"op", read_op},         {"dims", read_dims},     {"shapes", read_shapes},
    {"in", read_in},         {"out", read_out},       {"inout", read_inout},
    {"value", read_value},   {"kernel", read_kernel}, {"oracle", read_oracle},
    {"scale", read_scale},   {"terms", read_terms},   {"roundings", read_roundings},
    {"exact", read_exact},   {"flops", read_flops},   {"needs", read_needs},
    {"inputs", read_inputs},
};

static bool read_line(description *d, char *line, int number, err *e) {
    char *rest, *word = line_take_keyword(line, &rest);
    if (!*word)
        return true;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(readers[i].word, word) == 0)
            return readers[i].read(d, rest, number, e);
    return describe_refuse(d, number, e,
                           "there is no line '%.40s' (valid: op dims shapes inputs needs kernel in "
                           "out inout value oracle scale terms roundings exact flops)",
                           word);
}

/* `oracle {`: the lines up to one that begins with a `}` are C. */
static bool is_block(const char *line) {
    int end = 0;
    return sscanf(line, " oracle { %n", &end) == 0 && end > 0 && line[end] == 0;
}

static bool check_whole(const description *d, int line, err *e) {
    const char *missing = !d->name                 ? "op"
                          : d->dim_count == 0      ? "dims"
                          : d->shape_count == 0    ? "shapes"
                          : d->kernel_count == 0   ? "kernel"
                          : d->argument_count == 0 ? "in or out"
                                                   : NULL;
    if (missing)
        return describe_refuse(d, line, e, "the description has no line '%s'", missing);
    bool has_block = false, has_output = false;
    for (size_t i = 0; i < d->rule_count; i++)
        has_block = has_block || !d->rules[i].output;
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        bool is_output = a->kind == ARGUMENT_OUT || a->kind == ARGUMENT_BOTH;
        bool is_told = has_block || (a->kind == ARGUMENT_OUT && a->from);
        for (size_t r = 0; r < d->rule_count; r++)
            is_told = is_told || (d->rules[r].output == a && !d->rules[r].is_scale);
        if (is_output && !is_told)
            return describe_refuse(d, a->line, e,
                                   "nothing says what '%.40s' should be: add a line "
                                   "oracle %.40s[i] = ..., or from FILE",
                                   a->name, a->name);
        has_output = has_output || is_output;
    }
    return has_output ||
           describe_refuse(d, line, e, "the description has no line 'out' or 'inout'");
}

bool describe_read(description *d, char *text, err *e) {
    int number = 1;
    described_rule *block = NULL;
    for (char *line = text, *next; line; line = next, number++) {
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
        if (is_block(line) && d->rule_count < DESCRIBE_ARGUMENTS) {
            block = &d->rules[d->rule_count++];
            *block = (described_rule){.line = number + 1, .text = next ? next : ""};
        } else if (!read_line(d, line, number, e))
            return false;
    }
    if (block)
        return describe_refuse(d, block->line - 1, e,
                               "the C after oracle { has no end: a line "
                               "that begins with }");
    return check_whole(d, number - 1, e);
}
