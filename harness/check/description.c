/* description: see description.h. Owns the grammar of its lines.
 *
 * Sizes are read first and what uses names of other lines last, so that the order of lines is free.
 * Each expression is parsed when its line is read, except those of a launch of others, whose names are
 * known when it is recorded. */
#include "description.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/path.h"
#include "harness/base/size.h"
#include "line.h"

bool describe_refuse(const description *d, int line, err *e, const char *format, ...) {
    char text[220];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (d->kind == DESCRIBES_OPTIONS)
        return err_set(e, EXIT_USAGE, "%s", text);
    return err_set(e, EXIT_USAGE, "%.60s:%d: %s", d->file, line, text);
}

static described_argument *find_argument(description *d, const char *name) {
    for (size_t i = 0; i < d->argument_count; i++)
        if (strcmp(d->arguments[i].name, name) == 0)
            return &d->arguments[i];
    return NULL;
}

bool describe_is_output(const described_argument *a) {
    return a->kind == ARGUMENT_OUT || a->kind == ARGUMENT_BOTH;
}

symbol *describe_add_symbol(description *d, const char *name, elem type) {
    d->symbols[d->symbol_count] = (symbol){.name = name, .type = type};
    return &d->symbols[d->symbol_count++];
}

static symbol *add_array(description *d, const char *name, elem type, size_t axes) {
    symbol *s = describe_add_symbol(d, name, type);
    s->is_array = true;
    s->axes = axes;
    return s;
}

static expression *parse(description *d, const char *text, const expression_scope *scope, err *e) {
    err why;
    expression *x = expression_parse(text, scope, &why);
    if (!x)
        describe_refuse(d, d->line, e, "%s", why.text);
    return x;
}

/* An expression over sizes. */
static bool read_expression(description *d, const char *text, bool is_whole,
                            described_expression *out, err *e) {
    *out = (described_expression){.text = text, .line = d->line};
    if (d->kind == DESCRIBES_LAUNCH)
        return true;
    const expression_scope sizes = {.symbols = d->symbols, .symbol_count = d->size_count};
    expression *x = parse(d, text, &sizes, e);
    bool ok = x && (!is_whole || expression_is_whole(x) ||
                    describe_refuse(d, d->line, e, "'%.60s' is not a whole number", text));
    expression_free(x);
    return ok;
}

/* Comma-separated sizes, from 1 to most; *is_cut: whether they are that many. */
static bool read_sizes(description *d, char *text, size_t most, expressions *out, bool *is_cut,
                       err *e) {
    const char *parts[EXPRESSION_AXES];
    *is_cut = line_split(text, parts, most, &out->count);
    for (size_t i = 0; *is_cut && i < out->count; i++)
        if (!read_expression(d, parts[i], true, &out->items[i], e))
            return false;
    return true;
}

/* Lines about the op -------------------------------------------------------------------------- */

static bool read_op(description *d, char *rest, err *e) {
    char *colon = strchr(rest, ':');
    if (colon)
        *colon = 0;
    line_trim_end(rest);
    d->op.name = rest;
    d->op.about = colon ? line_skip_blanks(colon + 1) : "";
    return (line_is_name(rest) && strlen(rest) <= DESCRIBE_NAME) ||
           describe_refuse(d, d->line, e,
                           "the name of an op has letters, digits and _, 127 at most, not "
                           "'%.40s'; what it computes follows a colon",
                           rest);
}

static bool read_dims(description *d, char *rest, err *e) {
    for (char *word; *(word = line_take_word(&rest));) {
        if (!line_is_name(word) || d->dim_count == SHAPE_DIMS)
            return describe_refuse(d, d->line, e,
                                   "dims are up to %d names of sizes, as in: dims rows dim",
                                   SHAPE_DIMS);
        size_t used = strlen(d->dim_text);
        snprintf(d->dim_text + used, sizeof d->dim_text - used, "%s%s", used ? " x " : "", word);
        d->dims[d->dim_count++] = word;
        describe_add_symbol(d, word, ELEM_U32);
        d->size_count = d->symbol_count;
    }
    return true;
}

static bool read_shape(const description *d, const char *word, shape *out, err *e) {
    return (shape_parse(word, out) && shape_count_dims(out) == d->dim_count) ||
           describe_refuse(d, d->line, e,
                           "'%.40s' is not a shape of %zu sizes such as 3x576; dims come before "
                           "shapes",
                           word, d->dim_count);
}

static bool read_shapes(description *d, char *rest, err *e) {
    for (char *word; *(word = line_take_word(&rest)); d->op.shapes.count++) {
        if (d->op.shapes.count == DESCRIBE_SHAPES)
            return describe_refuse(d, d->line, e, "more than %d shapes", DESCRIBE_SHAPES);
        if (!read_shape(d, word, &d->shapes[d->op.shapes.count], e))
            return false;
    }
    return true;
}

static bool read_inputs(description *d, char *rest, err *e) {
    return read_shape(d, rest, &d->op.shapes.any_input, e);
}

/* An expression of the op: needs, terms, roundings or flops, by its place in the description. */
static bool read_expression_once(description *d, char *rest, err *e) {
    described_expression *x = (void *)((char *)d + d->what);
    if (x->text || !*rest)
        return describe_refuse(d, d->line, e, "%s takes one expression, once", d->word);
    return read_expression(d, rest, x == &d->needs, x, e);
}

/* An include or a define. */
static bool read_extra(description *d, char *rest, err *e) {
    described_extras *list = (void *)((char *)d + d->what);
    if (!*rest || list->count == DESCRIBE_EXTRAS)
        return describe_refuse(d, d->line, e,
                               "include and define take one thing each, %d times at most",
                               DESCRIBE_EXTRAS);
    list->items[list->count++] = rest;
    return true;
}

/* Lines `accept` are kept as they are, one per line. */
static bool read_accept(description *d, char *rest, err *e) {
    size_t used = strlen(d->accept);
    d->op.accept = d->accept;
    return snprintf(d->accept + used, sizeof d->accept - used, "%s\n", *rest ? rest : ":") <
               (int)(sizeof d->accept - used) ||
           describe_refuse(d, d->line, e, "more than %zu characters of lines accept",
                           sizeof d->accept);
}

/* Kernels ------------------------------------------------------------------------------------- */

/* A word of a kernel line and what follows it; *fits: whether it has that form. */
static bool read_kernel_part(description *d, kernel *k, described_grid *g, const char *word,
                             char *text, bool *fits, err *e) {
    *fits = true;
    if (strcmp(word, "about") == 0) {
        k->about = text;
        return true;
    }
    if (strcmp(word, "format") == 0) {
        *fits = *(g->format = text) != 0;
        return true;
    }
    if (strcmp(word, "group") == 0)
        return read_sizes(d, text, 3, &g->group, fits, e);
    if (strcmp(word, "threadgroup") == 0)
        return read_sizes(d, text, EXPRESSION_AXES, &g->threadgroup, fits, e);
    *fits = !g->grid_kind && (strcmp(word, "threads") == 0 || strcmp(word, "groups") == 0 ||
                              strcmp(word, "dispatch") == 0);
    g->grid_kind = word[0];
    return !*fits || read_sizes(d, text, 3, &g->grid, fits, e);
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
static bool read_kernel(description *d, char *rest, err *e) {
    static const char *const words[] = {"format",   "group",       "threads", "groups",
                                        "dispatch", "threadgroup", "about",   NULL};
    bool is_op = d->kind == DESCRIBES_OP;
    if (d->op.kernel_count == DESCRIBE_KERNELS)
        return describe_refuse(d, d->line, e, "more than %d kernels", DESCRIBE_KERNELS);
    kernel *k = &d->kernels[d->op.kernel_count];
    described_grid *g = &d->grids[d->op.kernel_count++];
    *g = (described_grid){.line = d->line};
    *k = (kernel){.name = line_take_word(&rest), .about = ""};
    if (is_op)
        k->file = line_take_word(&rest);
    if (strlen(k->name) > DESCRIBE_NAME)
        return describe_refuse(d, d->line, e, "the name of a kernel has at most %d characters",
                               DESCRIBE_NAME);
    bool fits = line_is_name(k->name) && (!is_op || strstr(k->file, ".metal"));
    while (fits && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        bool is_about = strcmp(word, "about") == 0;
        char *text = is_about ? line_skip_blanks(rest) : line_take_until(&rest, words + is_op);
        if (is_about)
            rest += strlen(rest);
        if (!read_kernel_part(d, k, g, word, text, &fits, e))
            return false;
    }
    if (!fits || g->group.count == 0 || !g->grid_kind || (is_op && g->format))
        return describe_refuse(d, d->line, e,
                               "a kernel is given as: kernel NAME %s group THREADS "
                               "threads|groups|dispatch COUNT [threadgroup BYTES, ...]",
                               is_op ? "FILE.metal" : "[format F]");
    return !is_op || count_group(d, g, &k->group, e);
}

/* Arguments ----------------------------------------------------------------------------------- */

static described_argument new_argument(const description *d, argument_kind kind, char **rest) {
    return (described_argument){
        .kind = kind,
        .name = line_take_word(rest),
        .line = d->line,
        .index = d->argument_count ? d->arguments[d->argument_count - 1].index + 1 : 0};
}

/* What messages say about the tolerance of an output. */
static void set_why(const description *d, described_argument *a, const char *derived) {
    snprintf(a->why, sizeof a->why,
             "%s%.40s:%d; a line 'rtol %.20s R' or 'atol %.20s A' changes it", derived, d->file,
             d->line, a->name, a->name);
}

/* What an oracle can read: values, fields, and buffers as they are before the launch. */
static bool add_argument(description *d, const described_argument *a, err *e) {
    if (!line_is_name(a->name))
        return describe_refuse(d, d->line, e, "a name has letters, digits and _, not '%.40s'",
                               a->name);
    const described_argument *other = find_argument(d, a->name);
    if (other)
        return describe_refuse(d, d->line, e, "'%.40s' is given twice: see line %d", a->name,
                               other->line);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].index == a->index)
            return describe_refuse(d, d->line, e, "buffer index %d is that of '%.40s' already",
                                   a->index, d->arguments[i].name);
    if (d->argument_count == DESCRIBE_ARGUMENTS || a->index >= LAUNCH_BUFFERS)
        return describe_refuse(d, d->line, e,
                               "buffer index %d is too large, or there are more than "
                               "%d buffers and values",
                               a->index, DESCRIBE_ARGUMENTS);
    described_argument *to = &d->arguments[d->argument_count++];
    *to = *a;
    if (describe_is_output(a) && d->kind == DESCRIBES_OP)
        set_why(d, to, "");
    if (d->kind == DESCRIBES_OP && a->kind == ARGUMENT_VALUE)
        to->symbol = describe_add_symbol(d, a->name, a->type);
    if (d->kind == DESCRIBES_OP && (a->kind == ARGUMENT_IN || a->kind == ARGUMENT_BOTH))
        to->symbol = add_array(d, a->name, a->type, a->sizes.count);
    return true;
}

static bool read_type(const description *d, const char *word, elem *type, err *e) {
    return elem_find(word, type) ||
           describe_refuse(d, d->line, e,
                           "there is no type '%.40s' (valid: f32 f16 bf16 i8 u8 i16 u16 "
                           "i32 u32 i64 u64)",
                           word);
}

/* An option of an argument and what follows it. Of a value or a struct there is only `at`. */
static bool read_option(description *d, described_argument *a, const char *word, char *text,
                        bool *fits, err *e) {
    bool is_buffer = a->kind <= ARGUMENT_BOTH, has_type = d->kind != DESCRIBES_LAUNCH;
    bool has_text = strcmp(word, "from") == 0 || strcmp(word, "value") == 0;
    char *end,
        *to = strcmp(word, "from") == 0 && d->kind == DESCRIBES_OP ? strstr(text, " to ") : NULL;
    *fits = true;
    if (strcmp(word, "at") == 0) {
        a->index = (int)strtol(text, &end, 10);
        *fits = isdigit((unsigned char)text[0]) && !*end;
    } else if (strcmp(word, "overread") == 0) {
        *fits = a->kind == ARGUMENT_IN && !*text;
        a->may_overread = true;
    } else if (to && a->kind != ARGUMENT_OUT) {
        *to = 0;
        return read_expression(d, text, true, &a->least, e) &&
               read_expression(d, line_skip_blanks(to + 4), true, &a->below, e);
    } else if (strcmp(word, "below") == 0 && is_buffer && has_type && a->kind != ARGUMENT_OUT) {
        return read_expression(d, text, true, &a->below, e);
    } else {
        *fits = is_buffer && has_type && contents_find(word, &a->contents) && has_text == !!*text &&
                (a->kind != ARGUMENT_OUT || a->contents == CONTENTS_FILE);
        a->text = text;
    }
    return true;
}

static bool read_options(description *d, described_argument *a, char *rest, bool *fits, err *e) {
    static const char *const words[] = {"below", "from", "at",     "overread", "zero",      "one",
                                        "ramp",  "nan",  "random", "value",    "unwritten", NULL};
    *fits = true;
    while (*fits && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        bool is_path = d->kind == DESCRIBES_OPTIONS && strcmp(word, "from") == 0;
        char *text = is_path ? rest : line_take_until(&rest, words);
        rest += is_path ? strlen(rest) : 0; /* a path with blanks */
        if (!read_option(d, a, word, text, fits, e))
            return false;
    }
    return true;
}

/* TYPE[SIZE, ...]; *rest is then what follows. */
static bool read_array(description *d, described_argument *a, char **rest, err *e) {
    char *type = line_skip_blanks(*rest), *open = strchr(type, '[');
    char *close = open ? line_find_close(open) : NULL;
    bool is_cut = true;
    if (!close)
        return describe_refuse(d, d->line, e,
                               "a buffer is given as: in NAME TYPE[SIZE], such as x "
                               "f32[rows, dim]");
    *open = *close = 0;
    *rest = close + 1;
    line_trim_end(type);
    if (!read_type(d, type, &a->type, e))
        return false;
    if (d->kind == DESCRIBES_OPTIONS && !*line_skip_blanks(open + 1))
        return true;
    return read_sizes(d, open + 1, EXPRESSION_AXES, &a->sizes, &is_cut, e) &&
           (is_cut || describe_refuse(d, d->line, e, "'%.40s' needs 1 to %d sizes in its brackets",
                                      a->name, EXPRESSION_AXES));
}

/* Do the contents fit the buffer? */
static bool check_contents(description *d, const described_argument *a, err *e) {
    bool is_counted = a->contents == CONTENTS_FILE || a->contents == CONTENTS_VALUES;
    if (a->contents == CONTENTS_NAN && !elem_is_float(a->type))
        return describe_refuse(d, d->line, e, "integers have no nan");
    if (a->contents == CONTENTS_DRAWN && a->kind != ARGUMENT_OUT && !elem_is_float(a->type) &&
        !a->below.text)
        return describe_refuse(d, d->line, e,
                               "'%.40s' holds whole numbers: say which, as in below 100, "
                               "from -127 to 127 or zero, or give a file",
                               a->name);
    return a->sizes.count > 0 || is_counted ||
           describe_refuse(d, d->line, e,
                           "[] needs a file or a list of values that says how many there are");
}

static bool read_buffer(description *d, char *rest, err *e) {
    described_argument a = new_argument(d, (argument_kind)d->what, &rest);
    bool has_type = d->kind != DESCRIBES_LAUNCH, fits;
    if ((has_type && !read_array(d, &a, &rest, e)) || !read_options(d, &a, rest, &fits, e))
        return false;
    if (!fits && d->kind == DESCRIBES_OPTIONS)
        return err_set(e, EXIT_USAGE,
                       "the contents are unwritten, zero, one, ramp, nan, random, value:V or "
                       "file:PATH");
    if (!fits)
        return describe_refuse(
            d, d->line, e, "after '%.40s' come only %sat INDEX, and overread of an input", a.name,
            has_type ? "contents, below N, from A to B, from FILE, " : "");
    return (!has_type || check_contents(d, &a, e)) && add_argument(d, &a, e);
}

/* TYPE = EXPRESSION, and what follows. */
static bool read_scalar(description *d, char **rest, elem *type, described_expression *value,
                        const char *form, err *e) {
    static const char *const words[] = {"at", NULL};
    const char *name = line_take_word(rest), *equals = line_take_word(rest);
    const char *text = line_take_until(rest, words);
    if (strcmp(equals, "=") != 0 || !*text)
        return describe_refuse(d, d->line, e, "expected: %s", form);
    if (!read_type(d, name, type, e))
        return false;
    *value = (described_expression){.text = text, .line = d->line};
    if (d->kind == DESCRIBES_OPTIONS)
        return contents_parse_value(text, *type, &(expression_scope){0}, &(uint64_t){0}, e);
    return d->kind != DESCRIBES_OP || read_expression(d, text, !elem_is_float(*type), value, e);
}

static bool read_value(description *d, char *rest, err *e) {
    static const char form[] = "value NAME TYPE = EXPRESSION";
    described_argument a = new_argument(d, ARGUMENT_VALUE, &rest);
    bool fits;
    if (!read_scalar(d, &rest, &a.type, &a.value, form, e) || !read_options(d, &a, rest, &fits, e))
        return false;
    return fits ? add_argument(d, &a, e) : describe_refuse(d, d->line, e, "expected: %s", form);
}

static bool read_struct(description *d, char *rest, err *e) {
    described_argument a = new_argument(d, ARGUMENT_STRUCT, &rest);
    bool fits;
    a.first_field = d->field_count;
    if (!read_options(d, &a, rest, &fits, e))
        return false;
    return fits ? add_argument(d, &a, e)
                : describe_refuse(d, d->line, e, "expected: struct NAME, and its lines field");
}

static bool read_field(description *d, char *rest, err *e) {
    described_argument *a = d->argument_count ? &d->arguments[d->argument_count - 1] : NULL;
    const char *name = line_take_word(&rest);
    if (!a || a->kind != ARGUMENT_STRUCT)
        return describe_refuse(d, d->line, e,
                               "the field '%.40s' does not follow a line struct NAME", name);
    if (d->field_count == DESCRIBE_FIELDS || (d->kind == DESCRIBES_OP && !line_is_name(name)))
        return describe_refuse(d, d->line, e, "more than %d fields, or '%.40s' is not a name",
                               DESCRIBE_FIELDS, name);
    described_scalar *f = &d->fields[d->field_count++];
    snprintf(f->name, sizeof f->name, "%.40s.%.40s", a->name, name);
    a->field_count++;
    if (!read_scalar(d, &rest, &f->type, &f->value, "field NAME TYPE = EXPRESSION", e))
        return false;
    if (*rest)
        return describe_refuse(d, d->line, e, "nothing comes after a field's value");
    if (d->kind == DESCRIBES_OP)
        f->symbol = describe_add_symbol(d, f->name, f->type);
    return true;
}

static bool read_constant(description *d, char *rest, err *e) {
    static const char form[] = "constant INDEX TYPE = EXPRESSION";
    const char *index = line_take_word(&rest);
    if (d->constant_count == DESCRIBE_CONSTANTS || !*index || strlen(index) > 5 ||
        strspn(index, "0123456789") != strlen(index))
        return describe_refuse(d, d->line, e,
                               "more than %d function constants, or not of the form: %s",
                               DESCRIBE_CONSTANTS, form);
    described_scalar *c = &d->constants[d->constant_count++];
    c->index = atoi(index);
    for (const described_scalar *other = d->constants; other < c; other++)
        if (other->index == c->index)
            return describe_refuse(d, d->line, e, "constant %d is given twice", c->index);
    return read_scalar(d, &rest, &c->type, &c->value, form, e) &&
           (!*rest || describe_refuse(d, d->line, e, "nothing comes after a constant's value"));
}

/* What is right ------------------------------------------------------------------------------- */

/* NAME[inside] = EXPRESSION, cut apart; *inside is NULL without brackets. */
static bool cut_rule(char *rest, char **inside, const char **text) {
    char *at = rest + strcspn(rest, "[="), *open = *at == '[' ? at : NULL;
    char *close = open ? line_find_close(open) : NULL;
    char *equals = !open ? at : close ? line_skip_blanks(close + 1) : "";
    if (*equals != '=')
        return false;
    *equals = 0;
    if (close)
        *close = *open = 0;
    *text = line_skip_blanks(equals + 1);
    *inside = open ? open + 1 : NULL;
    line_trim_end(rest);
    return **text != 0;
}

/* An oracle and a let have the same form, but that a let says how many elements there are. */
static bool read_rule(description *d, char *rest, bool is_oracle, described_rule *r, err *e) {
    const char *form =
        is_oracle ? "oracle NAME[i, ...] = EXPRESSION" : "let NAME[i < COUNT, ...] = EXPRESSION";
    const char *text;
    char *inside = NULL;
    bool fits = cut_rule(rest, &inside, &text) &&
                (!inside || line_split(inside, r->indices, EXPRESSION_AXES, &r->index_count));
    if (!fits || (is_oracle && !inside))
        return describe_refuse(d, d->line, e, "expected: %s", form);
    for (size_t i = 0; i < r->index_count; i++) {
        char *index = (char *)(uintptr_t)r->indices[i], *less = strchr(index, '<');
        if (!is_oracle && (!less || less[1] == '='))
            return describe_refuse(d, d->line, e, "expected: %s", form);
        if (!is_oracle) {
            *less = 0;
            line_trim_end(index);
            if (!read_expression(d, line_skip_blanks(less + 1), true,
                                 &r->sizes.items[r->sizes.count++], e))
                return false;
        }
        if (!line_is_name(index))
            return describe_refuse(d, d->line, e, "expected: %s", form);
    }
    const expression_scope scope = {d->symbols, d->symbol_count, r->indices, r->index_count};
    return (r->value = parse(d, text, &scope, e)) != NULL;
}

static described_rule *add_rule(description *d, err *e) {
    if (d->rule_count == DESCRIBE_RULES) {
        describe_refuse(d, d->line, e, "more than %d lines oracle and let", DESCRIBE_RULES);
        return NULL;
    }
    described_rule *r = &d->rules[d->rule_count++];
    *r = (described_rule){.line = d->line};
    return r;
}

static bool read_oracle(description *d, char *rest, err *e) {
    described_rule *r = add_rule(d, e);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)line_count_name(rest), rest);
    described_argument *a = find_argument(d, name);
    if (!r)
        return false;
    if (!a || !describe_is_output(a))
        return describe_refuse(d, d->line, e, "'%.40s' is not an output", name);
    r->output = a;
    r->sizes = a->sizes;
    if (!a->rtol.text && !a->atol.text)
        set_why(d, a, "derived from ");
    return read_rule(d, rest, true, r, e) &&
           (r->index_count == a->sizes.count ||
            describe_refuse(d, d->line, e, "'%.40s' has %zu sizes: give as many names of indices",
                            a->name, a->sizes.count));
}

/* let m[r < rows] = EXPRESSION, or let s = EXPRESSION */
static bool read_let(description *d, char *rest, err *e) {
    described_rule *r = add_rule(d, e);
    if (!r || !read_rule(d, rest, false, r, e))
        return false;
    r->name = rest;
    if (!line_is_name(rest) || find_argument(d, rest))
        return describe_refuse(
            d, d->line, e, "'%.40s' is an argument already, or not of letters, digits and _", rest);
    r->symbol = add_array(d, r->name, ELEM_COUNT, r->index_count);
    return true;
}

/* Lines of C. */
static bool add_block(description *d, const char *text, err *e) {
    described_rule *r = add_rule(d, e);
    if (!r)
        return false;
    r->line++;
    r->block = text;
    return true;
}

/* The outputs that a line is about: the one it names, or all. *rest: what follows the name. */
static size_t find_outputs(description *d, char **rest, described_argument **found) {
    char *at = line_skip_blanks(*rest);
    size_t count = 0, length = line_count_name(at);
    for (size_t i = 0; i < d->argument_count; i++) {
        described_argument *a = &d->arguments[i];
        if (!describe_is_output(a))
            continue;
        found[count++] = a;
        if (length > 0 && strlen(a->name) == length && strncmp(a->name, at, length) == 0) {
            *rest = line_skip_blanks(at + length);
            found[0] = a;
            return 1;
        }
    }
    return count;
}

/* rtol or atol, by its place in an argument. */
static bool read_tolerance(description *d, char *rest, err *e) {
    described_argument *outputs[DESCRIBE_ARGUMENTS];
    size_t count = find_outputs(d, &rest, outputs);
    described_expression limit;
    if (!*rest || count == 0)
        return describe_refuse(d, d->line, e, "expected: %s [OUTPUT] NUMBER", d->word);
    for (size_t i = 0; i < count; i++) {
        *(described_expression *)(void *)((char *)outputs[i] + d->what) =
            (described_expression){rest, d->line};
        set_why(d, outputs[i], "");
    }
    return read_expression(d, rest, false, &limit, e);
}

static bool read_exact(description *d, char *rest, err *e) {
    described_argument *outputs[DESCRIBE_ARGUMENTS];
    size_t count = find_outputs(d, &rest, outputs);
    for (size_t i = 0; i < count; i++)
        outputs[i]->exact = true;
    return (!*rest && count > 0) || describe_refuse(d, d->line, e, "expected: exact [OUTPUT]");
}

/* All lines ----------------------------------------------------------------------------------- */

enum { PASSES = 3 };
static const struct reader {
    const char *word;
    bool (*read)(description *d, char *rest, err *e);
    description_kind kind; /* what has such lines */
    int pass;
    int what; /* the reader's business */
} readers[] = {
    {"op", read_op, DESCRIBES_FILE, 1, 0},
    {"dims", read_dims, DESCRIBES_OP, 0, 0},
    {"shapes", read_shapes, DESCRIBES_OP, 1, 0},
    {"inputs", read_inputs, DESCRIBES_OP, 1, 0},
    {"accept", read_accept, DESCRIBES_OP, 1, 0},
    {"needs", read_expression_once, DESCRIBES_FILE, 1, offsetof(description, needs)},
    {"kernel", read_kernel, DESCRIBES_ANY, 1, 0},
    {"in", read_buffer, DESCRIBES_ANY, 1, ARGUMENT_IN},
    {"out", read_buffer, DESCRIBES_FILE, 1, ARGUMENT_OUT},
    {"inout", read_buffer, DESCRIBES_FILE, 1, ARGUMENT_BOTH},
    {"value", read_value, DESCRIBES_ANY, 1, 0},
    {"struct", read_struct, DESCRIBES_FILE, 1, 0},
    {"field", read_field, DESCRIBES_FILE, 1, 0},
    {"constant", read_constant, DESCRIBES_ANY, 1, 0},
    {"include", read_extra, DESCRIBES_LAUNCH, 1, offsetof(description, includes)},
    {"define", read_extra, DESCRIBES_LAUNCH, 1, offsetof(description, macros)},
    {"let", read_let, DESCRIBES_OP, 2, 0},
    {"oracle", read_oracle, DESCRIBES_OP, 2, 0},
    {"rtol", read_tolerance, DESCRIBES_OP, 2, offsetof(described_argument, rtol)},
    {"atol", read_tolerance, DESCRIBES_OP, 2, offsetof(described_argument, atol)},
    {"exact", read_exact, DESCRIBES_OP, 2, 0},
    {"terms", read_expression_once, DESCRIBES_OP, 1, offsetof(description, terms)},
    {"roundings", read_expression_once, DESCRIBES_OP, 1, offsetof(description, roundings)},
    {"flops", read_expression_once, DESCRIBES_OP, 1, offsetof(description, flops)},
};

static const struct reader *find_reader(const description *d, const char *word, err *e) {
    char valid[200];
    size_t used = 0;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (!(readers[i].kind & d->kind))
            continue;
        if (strcmp(readers[i].word, word) == 0)
            return &readers[i];
        used += (size_t)snprintf(valid + used, sizeof valid - used, " %s", readers[i].word);
    }
    describe_refuse(d, d->line, e, "there is no line '%.40s' (valid:%s)", word, valid);
    return NULL;
}

static bool read_with(description *d, const struct reader *r, char *rest, err *e) {
    d->word = r->word;
    d->what = r->what;
    return r->read(d, rest, e);
}

bool describe_read_line(description *d, char *line, err *e) {
    char *rest = line;
    const struct reader *r = find_reader(d, line_take_word(&rest), e);
    return r && read_with(d, r, line_skip_blanks(rest), e);
}

typedef struct {
    const struct reader *reader; /* NULL: lines of C */
    char *rest;
    int number;
} cut_line;

/* `oracle {`: the lines up to one that begins with a `}` are C. */
static bool is_block(const char *line) {
    int end = 0;
    return sscanf(line, " oracle { %n", &end) == 0 && end > 0 && line[end] == 0;
}

/* Cuts a text into lines, without comments, empty lines and lines of C. */
static bool cut_lines(description *d, char *text, cut_line **lines, size_t *count, err *e) {
    size_t room = 0;
    bool is_c = false;
    d->line = 1;
    for (char *line = text, *next; line; line = next, d->line++) {
        next = strchr(line, '\n');
        if (is_c) { /* a text of its own, which ends here */
            is_c = line[0] != '}';
            line[0] = is_c ? line[0] : 0;
            next = next ? next + 1 : NULL;
            continue;
        }
        if (next)
            *next++ = 0;
        is_c = d->kind == DESCRIBES_OP && is_block(line);
        cut_line l = {.rest = is_c && next ? next : "", .number = d->line};
        char *word = is_c ? "" : line_take_keyword(line, &l.rest);
        if (!is_c && !*word)
            continue;
        if (!is_c && !(l.reader = find_reader(d, word, e)))
            return false;
        *ARRAY_ADD(*lines, *count, room) = l;
    }
    d->line--;
    return !is_c || describe_refuse(d, (*lines)[*count - 1].number, e,
                                    "the C after oracle { has no end: a line that begins with }");
}

static bool read_lines(description *d, const cut_line *lines, size_t count, err *e) {
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < count; i++) {
            const struct reader *r = lines[i].reader;
            d->line = lines[i].number;
            if (r ? r->pass == pass && !read_with(d, r, lines[i].rest, e)
                  : pass == PASSES - 1 && !add_block(d, lines[i].rest, e))
                return false;
        }
    return true;
}

/* Does the output get its expected values from an expression? */
static bool has_expression(const description *d, const described_argument *a) {
    for (size_t r = 0; r < d->rule_count; r++)
        if (d->rules[r].output == a)
            return true;
    return false;
}

static bool check_output(const description *d, const described_argument *a, bool has_block,
                         err *e) {
    bool is_derived = has_expression(d, a);
    if (!is_derived && !has_block && !(a->kind == ARGUMENT_OUT && a->text))
        return describe_refuse(d, a->line, e,
                               "nothing says what '%.40s' should be: add a line oracle "
                               "%.40s[i] = ..., or from FILE",
                               a->name, a->name);
    const described_expression *counted = d->terms.text ? &d->terms : &d->roundings;
    return !is_derived || !counted->text ||
           describe_refuse(d, counted->line, e,
                           "terms and roundings are for lines of C and files: how exact '%.40s' "
                           "must be follows from its expression, or from rtol and atol",
                           a->name);
}

static bool check_arguments(const description *d, err *e) {
    bool is_op = d->kind == DESCRIBES_OP, has_block = false;
    for (size_t i = 0; i < d->rule_count; i++)
        has_block = has_block || d->rules[i].block;
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (is_op && describe_is_output(a) && !check_output(d, a, has_block, e))
            return false;
        if (a->kind == ARGUMENT_STRUCT && a->field_count == 0)
            return describe_refuse(d, a->line, e, "the struct '%.40s' has no line field", a->name);
    }
    return true;
}

static bool check(const description *d, int last_line, err *e) {
    bool is_op = d->kind == DESCRIBES_OP, has_output = false;
    for (size_t i = 0; i < d->argument_count; i++)
        has_output = has_output || describe_is_output(&d->arguments[i]);
    const char *missing = !d->op.name                        ? "op"
                          : is_op && d->dim_count == 0       ? "dims"
                          : is_op && d->op.shapes.count == 0 ? "shapes"
                          : d->op.kernel_count == 0          ? "kernel"
                          : !has_output                      ? "out or inout"
                                                             : NULL;
    if (missing)
        return describe_refuse(d, last_line, e, "the description has no line '%s'", missing);
    return check_arguments(d, e);
}

bool describe_read(description *d, description_kind kind, const char *path, char *text, err *e) {
    cut_line *lines = NULL;
    size_t count = 0;
    d->kind = kind;
    d->path = path;
    d->text = text;
    d->file = path_get_name(path);
    bool ok = cut_lines(d, text, &lines, &count, e);
    int last_line = d->line;
    ok = ok && read_lines(d, lines, count, e) && check(d, last_line, e);
    free(lines);
    return ok;
}

/* The launch: constants, grid, values and structs, but neither buffers nor their contents ---------- */

static expression_scope get_scope(const description *d) {
    return (expression_scope){.symbols = d->symbols, .symbol_count = d->size_count};
}

bool describe_compute(const description *d, const described_expression *x, number *out, err *e) {
    const expression_scope scope = get_scope(d);
    err why;
    return expression_evaluate(x->text, &scope, out, &why) ||
           describe_refuse(d, x->line, e, "%s", why.text);
}

bool describe_compute_size(const description *d, const described_expression *x, int64_t least,
                           int64_t most, int64_t *out, err *e) {
    number value;
    if (!describe_compute(d, x, &value, e))
        return false;
    *out = value.whole;
    if (!value.is_real && value.whole == 0 && least == 1 && d->kind == DESCRIBES_OP)
        return describe_refuse(
            d, x->line, e,
            "'%.60s' is 0, and buffers and grids have at least 1 of each: a line "
            "'needs %.60s > 0' leaves out such shapes",
            x->text, x->text);
    return (!value.is_real && value.whole >= least && value.whole <= most) ||
           describe_refuse(d, x->line, e,
                           "'%.60s' is %.9g, expected a whole number from %lld to %lld", x->text,
                           value.real, (long long)least, (long long)most);
}

bool describe_compute_sizes(const description *d, const expressions *list, int64_t least,
                            int64_t most, int64_t *out, err *e) {
    for (size_t i = 0; i < list->count; i++)
        if (!describe_compute_size(d, &list->items[i], least, most, &out[i], e))
            return false;
    return true;
}

bool describe_count_elements(const description *d, const described_argument *a, size_t *count,
                             err *e) {
    const int64_t most = (int64_t)1 << 36;
    int64_t sizes[EXPRESSION_AXES];
    bool ok = describe_compute_sizes(d, &a->sizes, 1, most, sizes, e);
    *count = 1;
    for (size_t i = 0; ok && i < a->sizes.count; i++)
        if (!size_multiply_checked(*count, (size_t)sizes[i], count) || *count > (size_t)most)
            ok = describe_refuse(d, a->line, e, "the buffer '%.40s' would be too large", a->name);
    return ok;
}

/* Stores the value as an element; one that does not fit is an error. */
static bool write_scalar(const description *d, const described_expression *x, elem type, void *out,
                         err *e) {
    const expression_scope scope = get_scope(d);
    err why;
    return contents_parse_value(x->text, type, &scope, out, &why) ||
           describe_refuse(d, x->line, e, "%s", why.text);
}

bool describe_compute_range(const description *d, const described_argument *a, int64_t *least,
                            int64_t *most, err *e) {
    const int64_t far = (int64_t)1 << 62, span = UINT32_MAX - 1;
    uint64_t unused;
    *least = 0;
    if (!a->least.text) {
        const bool ok = describe_compute_size(d, &a->below, 1, UINT32_MAX, most, e);
        *most -= 1;
        return ok;
    }
    return describe_compute_size(d, &a->least, -far, far, least, e) &&
           describe_compute_size(d, &a->below, *least, *least + span, most, e) &&
           write_scalar(d, &a->least, a->type, &unused, e) &&
           write_scalar(d, &a->below, a->type, &unused, e);
}

static bool set_inline(const description *d, launch *l, const described_argument *a,
                       const void *data, size_t bytes, err *e) {
    if (((size_t)l->inline_used + 15) / 16 * 16 + bytes > LAUNCH_INLINE_BYTES)
        return describe_refuse(d, a->line, e, "values and structs have more than %d bytes in all",
                               LAUNCH_INLINE_BYTES);
    launch_set_bytes(l, a->index, data, bytes);
    return true;
}

/* Fields are aligned as in C. */
static bool set_struct(description *d, launch *l, const described_argument *a, err *e) {
    uint8_t data[LAUNCH_INLINE_BYTES] = {0};
    size_t used = 0, alignment = 1;
    for (size_t i = 0; i < a->field_count; i++) {
        described_scalar *f = &d->fields[a->first_field + i];
        size_t bytes = elem_get_bytes(f->type);
        f->offset = (used + bytes - 1) / bytes * bytes;
        used = f->offset + bytes;
        alignment = bytes > alignment ? bytes : alignment;
        if (used > sizeof data)
            return describe_refuse(d, f->value.line, e, "a struct has at most %zu bytes",
                                   sizeof data);
        if (!write_scalar(d, &f->value, f->type, data + f->offset, e))
            return false;
    }
    return set_inline(d, l, a, data, (used + alignment - 1) / alignment * alignment, e);
}

bool describe_set_value(description *d, launch *l, const described_argument *a, err *e) {
    uint64_t bits = 0;
    return a->kind == ARGUMENT_STRUCT ? set_struct(d, l, a, e)
                                      : write_scalar(d, &a->value, a->type, &bits, e) &&
                                            set_inline(d, l, a, &bits, elem_get_bytes(a->type), e);
}

/* Up to three; those that are not given are 1. */
static bool compute_size3(const description *d, const expressions *list, size3 *out, err *e) {
    int64_t size[3] = {1, 1, 1};
    bool ok = describe_compute_sizes(d, list, 1, INT32_MAX, size, e);
    *out = (size3){(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]};
    return ok;
}

bool describe_compute_group(const description *d, const described_grid *g, size3 *out, err *e) {
    return compute_size3(d, &g->group, out, e);
}

bool describe_set_grid(const description *d, const described_grid *g, launch *l, err *e) {
    int64_t bytes[EXPRESSION_AXES];
    size3 group, size;
    if (!compute_size3(d, &g->group, &group, e) || !compute_size3(d, &g->grid, &size, e) ||
        !describe_compute_sizes(d, &g->threadgroup, 0, 1 << 20, bytes, e))
        return false;
    for (size_t i = 0; i < g->threadgroup.count; i++)
        l->threadgroup_bytes[i] = (uint32_t)bytes[i];
    if (g->grid_kind == 'd')
        launch_set_threads(l, size, group);
    else if (g->grid_kind == 't')
        launch_set_groups(l,
                          (size3){(size.x + group.x - 1) / group.x,
                                  (size.y + group.y - 1) / group.y,
                                  (size.z + group.z - 1) / group.z},
                          group);
    else
        launch_set_groups(l, size, group);
    return true;
}

bool describe_compute_constants(const description *d, constant_value *out, err *e) {
    for (size_t i = 0; i < d->constant_count; i++) {
        const described_scalar *s = &d->constants[i];
        out[i] = (constant_value){.index = (uint32_t)s->index, .type = s->type};
        if (!write_scalar(d, &s->value, s->type, &out[i].bits, e))
            return false;
    }
    return true;
}

launch *describe_add_launch(const description *d, tape *t, const char *file, const char *name,
                            err *e) {
    constant_value constants[DESCRIBE_CONSTANTS];
    const bool has_some = d->constant_count > 0 && !library_is_plan(t->lib);
    const msl_unit *unit = has_some ? library_find_unit(t->lib, file, e) : NULL;
    err why;
    if ((has_some && !unit) || !describe_compute_constants(d, constants, e))
        return NULL;
    if (unit && !constant_check(unit, constants, d->constant_count, &why)) {
        describe_refuse(d, d->constants[0].value.line, e, "%s", why.text);
        return NULL;
    }
    return tape_add_specialised(t, file, name, constants, d->constant_count, e);
}
