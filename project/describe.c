/* describe: see describe.h. Owns the names of a description and what its expressions are parsed
 * with. */
#include "describe.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe_parts.h"
#include "harness/base/array.h"

/* Names --------------------------------------------------------------------------------------- */

static symbol *add_symbol(description *d, const char *name, symbol_kind kind, elem type,
                          size_t axes) {
    symbol *s = &d->symbols[d->symbol_count++];
    *s = (symbol){.name = name, .kind = kind, .type = type, .axes = axes};
    return s;
}

static symbol_kind get_kind(elem type) {
    return elem_is_float(type) ? SYMBOL_REAL : SYMBOL_WHOLE;
}

/* What an oracle can read: values, fields, and buffers as they are before the launch. */
static void name_arguments(description *d) {
    for (size_t i = 0; i < d->argument_count; i++) {
        described_argument *a = &d->arguments[i];
        if (a->kind == ARGUMENT_VALUE)
            a->symbol = add_symbol(d, a->name, get_kind(a->type), a->type, 0);
        else if (a->kind == ARGUMENT_IN || a->kind == ARGUMENT_BOTH)
            a->symbol = add_symbol(d, a->name, SYMBOL_ARRAY, a->type, a->sizes.count);
        for (size_t f = a->first_field; f < a->first_field + a->field_count; f++)
            d->fields[f].symbol =
                add_symbol(d, d->fields[f].name, get_kind(d->fields[f].type), d->fields[f].type, 0);
    }
}

/* Parsing ------------------------------------------------------------------------------------- */

static bool parse(description *d, described_expression *x, const described_rule *r, bool of_sizes,
                  err *e) {
    expression_scope scope = {.symbols = d->symbols,
                              .symbol_count = of_sizes ? d->dim_count : d->symbol_count};
    err why;
    if (!x->text)
        return true;
    if (r && !of_sizes) {
        scope.indices = r->indices;
        scope.index_count = r->index_count;
    }
    x->parsed = expression_parse(x->text, &scope, &why);
    return x->parsed || describe_refuse(d, x->line, e, "%s", why.text);
}

static bool parse_whole(description *d, described_expression *x, err *e) {
    return parse(d, x, NULL, true, e) &&
           (!x->text || expression_is_whole(x->parsed) ||
            describe_refuse(d, x->line, e, "'%.60s' is not a whole number", x->text));
}

static bool parse_list(description *d, expressions *list, err *e) {
    for (size_t i = 0; i < list->count; i++)
        if (!parse_whole(d, &list->items[i], e))
            return false;
    return true;
}

static bool parse_scalar(description *d, described_expression *x, elem type, err *e) {
    return elem_is_float(type) ? parse(d, x, NULL, true, e) : parse_whole(d, x, e);
}

static bool parse_argument(description *d, described_argument *a, err *e) {
    snprintf(a->why, sizeof a->why, "%.40s:%d; a line 'rtol %.20s R' or 'atol %.20s A' changes it",
             d->file,
             a->rtol.text   ? a->rtol.line
             : a->atol.text ? a->atol.line
                            : a->line,
             a->name, a->name);
    return parse_list(d, &a->sizes, e) && parse_whole(d, &a->below, e) &&
           parse_scalar(d, &a->value, a->type, e) && parse(d, &a->rtol, NULL, true, e) &&
           parse(d, &a->atol, NULL, true, e);
}

static bool parse_rule(description *d, described_rule *r, err *e) {
    if (r->block)
        return describe_compile(d, r, e);
    if (!parse(d, &r->value, r, false, e) || !parse_list(d, &r->sizes, e))
        return false;
    if (!r->output)
        r->symbol = add_symbol(d, r->name, SYMBOL_ARRAY, ELEM_COUNT, r->index_count);
    described_argument *a = r->output ? describe_find_argument(d, r->output->name) : NULL;
    if (a && !a->rtol.text && !a->atol.text)
        snprintf(a->why, sizeof a->why,
                 "derived from %.40s:%d; a line 'rtol %.20s R' or 'atol %.20s A' changes it",
                 d->file, r->line, a->name, a->name);
    return true;
}

/* Parses the expressions of what was read. */
static bool parse_expressions(description *d, err *e) {
    for (size_t i = 0; i < d->dim_count; i++)
        add_symbol(d, d->dims[i], SYMBOL_WHOLE, ELEM_U32, 0);
    name_arguments(d);
    for (size_t i = 0; i < d->argument_count; i++)
        if (!parse_argument(d, &d->arguments[i], e))
            return false;
    for (size_t i = 0; i < d->field_count; i++)
        if (!parse_scalar(d, &d->fields[i].value, d->fields[i].type, e))
            return false;
    for (size_t i = 0; i < d->constant_count; i++)
        if (!parse_scalar(d, &d->constants[i].value, d->constants[i].type, e))
            return false;
    for (size_t i = 0; i < d->op.kernel_count; i++)
        if (!parse_list(d, &d->grids[i].group, e) || !parse_list(d, &d->grids[i].grid, e) ||
            !parse_list(d, &d->grids[i].threadgroup, e))
            return false;
    for (size_t i = 0; i < d->rule_count; i++)
        if (!parse_rule(d, &d->rules[i], e))
            return false;
    return parse_whole(d, &d->needs, e) && parse(d, &d->terms, NULL, true, e) &&
           parse(d, &d->roundings, NULL, true, e) && parse(d, &d->flops, NULL, true, e);
}

/* Loading ------------------------------------------------------------------------------------- */

static void fill_op(description *d) {
    d->op.dims = d->dim_text;
    d->op.kernels = d->kernels;
    for (size_t i = 0; i < d->op.kernel_count && d->op.kernel_count > 1; i++)
        d->kernels[i].variant = d->kernels[i].name;
    d->op.shapes.items = d->shapes;
    d->op.build = describe_build;
    d->op.accepts = d->needs.text ? describe_accepts : NULL;
}

/* What is refused is not freed: messages of a few descriptions at most. */
const op *describe_load(const char *path, const char *text, err *e) {
    description *d = array_new(1, sizeof *d);
    char *copy = strdup(text);
    assert(copy);
    char sample[PATH_MAX];
    uint32_t sizes[SHAPE_DIMS] = {0};
    if (!describe_read(d, DESCRIBES_OP, strdup(path), copy, e) || !parse_expressions(d, e))
        return NULL;
    describe_set_dims(d, sizes);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].from &&
            !describe_find_file(d, &d->arguments[i], sample, sizeof sample, e))
            return NULL;
    fill_op(d);
    describe_keep(d);
    return &d->op;
}
