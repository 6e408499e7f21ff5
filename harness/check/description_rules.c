/* description_rules: the lines of a description that say what is right and how exactly: oracle, let,
 * rtol, atol, exact and the rest. Owns what a description must have besides. */
#include <stdint.h>
#include <string.h>

#include "description.h"
#include "harness/base/line.h"

/* NAME[inside] = EXPRESSION, cut apart; inside is NULL without brackets. */
static bool cut_rule(char *rest, char **inside, char **expression_text) {
    char *equals = rest, *open = NULL, *close = NULL;
    int depth = 0;
    for (; *equals && (*equals != '=' || depth > 0); equals++) {
        depth += (*equals == '[') - (*equals == ']');
        if (*equals == '[' && !open)
            open = equals;
        if (*equals == ']' && depth == 0)
            close = equals;
    }
    if (!*equals || depth != 0 || (close && line_skip_blanks(close + 1) != equals))
        return false;
    *equals = 0;
    if (close)
        *close = 0;
    *expression_text = line_skip_blanks(equals + 1);
    *inside = open ? open + 1 : NULL;
    if (open)
        *open = 0;
    line_trim_end(rest);
    return **expression_text != 0;
}

static described_rule *add_rule(description *d, char *rest, int line, const char *form,
                                char **inside, err *e) {
    char *text;
    if (d->rule_count == DESCRIBE_RULES) {
        describe_refuse(d, line, e, "more than %d lines oracle and let", DESCRIBE_RULES);
        return NULL;
    }
    described_rule *r = &d->rules[d->rule_count];
    if (!cut_rule(rest, inside, &text)) {
        describe_refuse(d, line, e, "expected: %s", form);
        return NULL;
    }
    *r = (described_rule){.line = line, .value = {.text = text, .line = line}};
    d->rule_count++;
    return r;
}

bool describe_read_oracle(description *d, char *rest, int line, err *e) {
    char *inside = NULL;
    described_rule *r = add_rule(d, rest, line, "oracle NAME[i, ...] = EXPRESSION", &inside, e);
    if (!r)
        return false;
    r->output = describe_find_argument(d, rest);
    if (!r->output || !describe_is_output(r->output))
        return describe_refuse(d, line, e,
                               "'%.40s' is not an output: out and inout lines come before the "
                               "oracle",
                               rest);
    bool ok = inside && line_split(inside, r->indices, DESCRIBE_AXES, &r->index_count);
    for (size_t i = 0; ok && i < r->index_count; i++)
        ok = line_is_name(r->indices[i]);
    return (ok && r->index_count == r->output->sizes.count) ||
           describe_refuse(d, line, e, "'%.40s' has %zu sizes: give as many names of indices", rest,
                           r->output->sizes.count);
}

/* let m[r < rows] = EXPRESSION, or let s = EXPRESSION */
bool describe_read_let(description *d, char *rest, int line, err *e) {
    static const char form[] = "let NAME[i < COUNT, ...] = EXPRESSION";
    char *inside = NULL;
    described_rule *r = add_rule(d, rest, line, form, &inside, e);
    if (!r)
        return false;
    r->name = rest;
    bool ok = line_is_name(rest) &&
              (!inside || line_split(inside, r->indices, DESCRIBE_AXES, &r->index_count));
    for (size_t i = 0; ok && i < r->index_count; i++) {
        char *index = (char *)(uintptr_t)r->indices[i], *less = strchr(index, '<');
        ok = less && less[1] != '=';
        if (!ok)
            break;
        *less = 0;
        line_trim_end(index);
        r->sizes.items[r->sizes.count++] =
            (described_expression){.text = line_skip_blanks(less + 1), .line = line};
        ok = line_is_name(index);
    }
    if (ok && describe_find_argument(d, r->name))
        return describe_refuse(d, line, e, "'%.40s' is an argument already", r->name);
    return ok || describe_refuse(d, line, e, "expected: %s", form);
}

static bool read_text(const description *d, described_expression *x, char *rest, int line,
                      const char *word, err *e) {
    bool is_new = !x->text;
    *x = (described_expression){.text = rest, .line = line};
    return (*rest && is_new) || describe_refuse(d, line, e, "%s takes one expression, once", word);
}

#define TEXT_READER(field)                                                                         \
    bool describe_read_##field(description *d, char *rest, int line, err *e) {                     \
        return read_text(d, &d->field, rest, line, #field, e);                                     \
    }
TEXT_READER(needs)
TEXT_READER(terms)
TEXT_READER(roundings)
TEXT_READER(flops)

/* The outputs that a line is about: the one it names, or all. Sets *rest after the name. */
static size_t find_outputs(description *d, char **rest, described_argument **found) {
    char *at = line_skip_blanks(*rest);
    size_t count = 0, length = line_count_name(at);
    for (size_t i = 0; i < d->argument_count; i++) {
        described_argument *a = &d->arguments[i];
        if (length > 0 && strlen(a->name) == length && strncmp(a->name, at, length) == 0 &&
            describe_is_output(a)) {
            *rest = line_skip_blanks(at + length);
            found[0] = a;
            return 1;
        }
    }
    for (size_t i = 0; i < d->argument_count; i++)
        if (describe_is_output(&d->arguments[i]))
            found[count++] = &d->arguments[i];
    return count;
}

static bool read_tolerance(description *d, char *rest, int line, bool is_relative, err *e) {
    described_argument *outputs[DESCRIBE_ARGUMENTS];
    size_t count = find_outputs(d, &rest, outputs);
    for (size_t i = 0; i < count; i++)
        *(is_relative ? &outputs[i]->rtol : &outputs[i]->atol) =
            (described_expression){.text = rest, .line = line};
    return (*rest && count > 0) ||
           describe_refuse(d, line, e, "expected: %s [OUTPUT] NUMBER, after the line of the output",
                           is_relative ? "rtol" : "atol");
}

bool describe_read_rtol(description *d, char *rest, int line, err *e) {
    return read_tolerance(d, rest, line, true, e);
}

bool describe_read_atol(description *d, char *rest, int line, err *e) {
    return read_tolerance(d, rest, line, false, e);
}

bool describe_read_exact(description *d, char *rest, int line, err *e) {
    described_argument *outputs[DESCRIBE_ARGUMENTS];
    size_t count = find_outputs(d, &rest, outputs);
    for (size_t i = 0; i < count; i++)
        outputs[i]->exact = true;
    return (!*rest && count > 0) ||
           describe_refuse(d, line, e, "expected: exact [OUTPUT], after the line of the output");
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
    if (!is_derived && !has_block && !(a->kind == ARGUMENT_OUT && a->from))
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

bool describe_check(const description *d, int line, err *e) {
    bool is_op = d->kind == DESCRIBES_OP, has_block = false, has_output = false;
    for (size_t i = 0; i < d->rule_count; i++)
        has_block = has_block || d->rules[i].block;
    for (size_t i = 0; i < d->argument_count; i++)
        has_output = has_output || describe_is_output(&d->arguments[i]);
    const char *missing = !d->op.name                        ? "op"
                          : is_op && d->dim_count == 0       ? "dims"
                          : is_op && d->op.shapes.count == 0 ? "shapes"
                          : d->op.kernel_count == 0          ? "kernel"
                          : !has_output                      ? "out or inout"
                                                             : NULL;
    if (missing)
        return describe_refuse(d, line, e, "the description has no line '%s'", missing);
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (is_op && describe_is_output(a) && !check_output(d, a, has_block, e))
            return false;
        if (a->kind == ARGUMENT_STRUCT && a->field_count == 0)
            return describe_refuse(d, a->line, e, "the struct '%.40s' has no line field", a->name);
    }
    return true;
}
