/* expression_parse: the text of an expression as a tree. A recursive descent; operators by
 * precedence, as in C. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression_parts.h"
#include "harness/base/array.h"

enum { DEEPEST = 64, NAME_SIZE = 64, LONGEST = 8192 /* bounds the depth of a tree */ };

typedef struct {
    const char *text, *at;
    const expression_scope *scope;
    expression *made;
    char variables[EXPRESSION_VARIABLES][NAME_SIZE]; /* indices, then loops from outer to inner */
    int variable_count;
    uint32_t used; /* variables, a bit each */
    int depth;
    err *e;
} parser;

static node *parse_choice(parser *p);

static node *refuse(const parser *p, const char *why) {
    return err_null(p->e, EXIT_USAGE, "'%.80s' %s", p->text, why);
}

static void skip_blanks(parser *p) {
    p->at += strspn(p->at, " \t\r");
}

static bool take(parser *p, const char *sign) {
    skip_blanks(p);
    if (strncmp(p->at, sign, strlen(sign)) != 0)
        return false;
    p->at += strlen(sign);
    return true;
}

/* Nodes --------------------------------------------------------------------------------------- */

static node *make(parser *p, node_kind kind, bool is_whole, node *a, node *b) {
    node *n = array_new(1, sizeof *n);
    *n = (node){.kind = kind, .is_whole = is_whole, .a = a, .b = b};
    n->made_before = p->made->made;
    p->made->made = n;
    return n;
}

static node *make_whole(parser *p, int64_t value) {
    node *n = make(p, NODE_CONSTANT, true, NULL, NULL);
    n->whole = value;
    return n;
}

/* A literal that f32 does not have is rounded in a kernel. */
static node *make_real(parser *p, double value) {
    node *n = make(p, NODE_CONSTANT, false, NULL, NULL);
    n->real = value;
    n->error = isfinite(value) && (double)(float)value != value ? fabs(value) * 0x1p-24 : 0;
    return n;
}

static node *as_real(parser *p, node *n) {
    if (!n || !n->is_whole)
        return n;
    return n->kind == NODE_CONSTANT ? make_real(p, (double)n->whole)
                                    : make(p, NODE_REAL, false, n, NULL);
}

/* A binary operation, in real numbers if one side is. */
static node *combine(parser *p, node_kind kind, node *a, node *b) {
    bool is_whole = a->is_whole && b->is_whole;
    node *n =
        is_whole ? make(p, kind, true, a, b) : make(p, kind, false, as_real(p, a), as_real(p, b));
    bool is_sum = kind == NODE_ADD || kind == NODE_SUBTRACT;
    for (int i = 0; i < 2 && (is_sum || kind == NODE_MULTIPLY) && !is_whole; i++) {
        node *side = i ? n->b : n->a;
        if (side->kind == NODE_ADD || side->kind == NODE_SUBTRACT) {
            side->is_loose = true;
            n->is_loose = is_sum;
        }
    }
    return n;
}

static node *compare(parser *p, node_kind kind, node *a, node *b) {
    node *n = combine(p, kind, a, b);
    n->is_whole = true;
    return n;
}

/* 1 where it is not 0. */
static node *as_truth(parser *p, node *n) {
    if (n && !n->is_whole)
        return make(p, NODE_NOT, true, compare(p, NODE_EQUAL, n, make_real(p, 0)), NULL);
    return n;
}

/* Names --------------------------------------------------------------------------------------- */

static node *parse_number(parser *p) {
    char *after, *real_after;
    bool is_hex = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
    long long whole = strtoll(p->at, &after, is_hex ? 16 : 10);
    double real = strtod(p->at, &real_after);
    bool is_real = real_after > after;
    p->at = is_real ? real_after : after;
    p->at += is_real && *p->at == 'f';
    if (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')
        return refuse(p, "has a malformed number");
    if (is_real ? !isfinite(real) : whole == INT64_MAX)
        return refuse(p, "is too large");
    return is_real ? make_real(p, real) : make_whole(p, whole);
}

static node *parse_subscript(parser *p, const symbol *s) {
    node *n = make(p, NODE_ELEMENT, s->type != ELEM_COUNT && !elem_is_float(s->type), NULL, NULL);
    n->symbol = s;
    do {
        node *index = n->index_count < EXPRESSION_AXES ? parse_choice(p) : NULL;
        if (!index && !p->e->code)
            return err_null(p->e, EXIT_USAGE, "'%.40s' has too many indices", s->name);
        if (!index)
            return NULL;
        if (!index->is_whole)
            return err_null(
                p->e, EXIT_USAGE,
                "an index of '%.40s' in '%.80s' is not a whole number: int(x) makes one", s->name,
                p->text);
        n->indices[n->index_count++] = index;
    } while (take(p, ","));
    if (!take(p, "]"))
        return refuse(p, "has a [ without its ]");
    if (n->index_count != 1 && n->index_count != s->axes)
        return err_null(p->e, EXIT_USAGE, "'%.40s' has %zu sizes and is given %zu indices", s->name,
                        s->axes, n->index_count);
    return n;
}

static node *use_symbol(parser *p, const symbol *s) {
    if (s->kind == SYMBOL_ARRAY && s->axes > 0)
        return take(p, "[") ? parse_subscript(p, s)
                            : err_null(p->e, EXIT_USAGE,
                                       "'%.40s' in '%.80s' is an array: give an index, as in "
                                       "%.40s[i]",
                                       s->name, p->text, s->name);
    node *n = make(p, s->kind == SYMBOL_ARRAY ? NODE_ELEMENT : NODE_SYMBOL, s->kind == SYMBOL_WHOLE,
                   NULL, NULL);
    n->symbol = s;
    return n;
}

/* The innermost variable, or else the symbol, or else the number with this name. */
static node *use_name(parser *p, const char *name) {
    for (int i = p->variable_count; i-- > 0;)
        if (strcmp(p->variables[i], name) == 0) {
            node *n = make(p, NODE_VARIABLE, true, NULL, NULL);
            n->variable = i;
            p->used |= 1u << i;
            return n;
        }
    const expression_scope *s = p->scope;
    for (size_t i = 0; i < s->symbol_count; i++)
        if (strcmp(s->symbols[i].name, name) == 0)
            return use_symbol(p, &s->symbols[i]);
    number value;
    if (s->find && s->find(s->context, name, &value))
        return value.is_real ? make_real(p, value.real) : make_whole(p, value.whole);
    static const struct {
        const char *name;
        double value;
    } constants[] = {{"INFINITY", HUGE_VAL}, {"M_PI", 3.14159265358979323846}};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(constants[i].name, name) == 0)
            return make_real(p, constants[i].value);
    return err_null(p->e, EXIT_USAGE, "'%.80s' needs '%s', which is not a value %s", p->text, name,
                    s->find ? "of this case" : "here: no line above describes it");
}

/* Calls --------------------------------------------------------------------------------------- */

/* sum(j < n: term): a loop, and not a call with a comparison or a choice in it. */
static bool is_loop(const parser *p) {
    const char *at = p->at + strspn(p->at, " \t\r");
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    const char *less = at + length + strspn(at + length, " \t\r");
    if (length == 0 || isdigit((unsigned char)*at) || less[0] != '<' || strchr("=<", less[1]))
        return false;
    int depth = 0;
    for (const char *q = less; *q && depth >= 0; q++) {
        if (depth == 0 && (*q == ':' || *q == '?' || *q == ','))
            return *q == ':';
        depth += (*q == '(' || *q == '[') - (*q == ')' || *q == ']');
    }
    return false;
}

static node *parse_loop(parser *p, node_kind kind) {
    skip_blanks(p);
    size_t length = 0;
    while (isalnum((unsigned char)p->at[length]) || p->at[length] == '_')
        length++;
    if (p->variable_count == EXPRESSION_VARIABLES || length >= NAME_SIZE)
        return refuse(p, "has too many loops, or a name that is too long");
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)length, p->at);
    p->at += length;
    uint32_t outside = p->used;
    p->used = 0;
    node *count = take(p, "<") ? parse_choice(p) : NULL;
    if (!count)
        return NULL;
    if (!count->is_whole)
        return refuse(p, "has a loop whose count is not a whole number");
    if (!take(p, ":"))
        return refuse(p, "has a loop that is not given as sum(j < COUNT: TERM)");
    int variable = p->variable_count++;
    snprintf(p->variables[variable], NAME_SIZE, "%s", name);
    node *term = parse_choice(p);
    if (!term || !take(p, ")"))
        return p->e->code ? NULL : refuse(p, "has a ( without its )");
    p->variable_count--;
    if (kind == NODE_SUM)
        term = as_real(p, term);
    node *n = make(p, kind, term->is_whole, count, term);
    n->variable = variable;
    n->depends = p->used & ~(1u << variable);
    p->used = outside | n->depends;
    return n;
}

static node *parse_arguments(parser *p, const char *name, int count, node **b) {
    node *given[2] = {NULL, NULL};
    for (int i = 0; i < count; i++) {
        if (!(given[i] = parse_choice(p)))
            return NULL;
        if (!take(p, i + 1 < count ? "," : ")"))
            return err_null(p->e, EXIT_USAGE, "'%.80s': %s takes %d argument%s", p->text, name,
                            count, count == 1 ? "" : "s");
    }
    *b = given[1];
    return given[0];
}

static node *call_function(parser *p, const function_row *f) {
    node *b = NULL, *a = parse_arguments(p, f->name, f->arguments, &b);
    if (!a)
        return NULL;
    if (a->is_whole && strcmp(f->name, "abs") == 0)
        return combine(p, NODE_MAX, a, combine(p, NODE_SUBTRACT, make_whole(p, 0), a));
    node *n = make(p, NODE_FUNCTION, false, as_real(p, a), as_real(p, b));
    n->function = f->apply;
    return n;
}

static node *call(parser *p, const char *name) {
    static const char *const two[] = {"min", "max", "fmin", "fmax", "divide_up"};
    bool is_min = strcmp(name, "min") == 0, is_max = strcmp(name, "max") == 0;
    node *a, *b = NULL;
    if ((is_min || is_max || strcmp(name, "sum") == 0) && is_loop(p))
        return parse_loop(p, is_min ? NODE_LOOP_MIN : is_max ? NODE_LOOP_MAX : NODE_SUM);
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        if (strcmp(name, two[i]) != 0)
            continue;
        if (!(a = parse_arguments(p, name, 2, &b)))
            return NULL;
        if (i < 4)
            return combine(p, i % 2 ? NODE_MAX : NODE_MIN, a, b);
        if (!a->is_whole || !b->is_whole)
            return refuse(p, "calls divide_up, which is for whole numbers");
        node *more = combine(p, NODE_SUBTRACT, b, make_whole(p, 1));
        return combine(p, NODE_DIVIDE, combine(p, NODE_ADD, a, more), b);
    }
    if (strcmp(name, "int") == 0) {
        a = parse_arguments(p, name, 1, &b);
        return !a || a->is_whole ? a : make(p, NODE_WHOLE, true, a, NULL);
    }
    const char *own = strcmp(name, "fabs") == 0 ? "abs" : name;
    for (size_t i = 0; i < expression_function_count; i++)
        if (strcmp(expression_functions[i].name, own) == 0)
            return call_function(p, &expression_functions[i]);
    if (strcmp(name, "sum") == 0)
        return refuse(p, "has a sum that is not given as sum(j < COUNT: TERM)");
    return err_null(p->e, EXIT_USAGE, "there is no function '%.40s' (valid: sum %s)", name,
                    expression_list_functions());
}

static node *parse_name(parser *p) {
    char name[NAME_SIZE];
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_' || p->at[n] == '.')
        n++;
    if (n == 0)
        return refuse(p, *p->at ? "is not an expression" : "ends too early");
    if (n >= sizeof name)
        return refuse(p, "has a name that is too long");
    memcpy(name, p->at, n);
    name[n] = 0;
    p->at += n;
    return take(p, "(") ? call(p, name) : use_name(p, name);
}

/* Operators ----------------------------------------------------------------------------------- */

static node *parse_unary(parser *p) {
    if (p->depth >= DEEPEST)
        return refuse(p, "is nested too deeply");
    p->depth++;
    node *n;
    if (take(p, "-")) {
        if ((n = parse_unary(p)))
            n = n->is_whole ? combine(p, NODE_SUBTRACT, make_whole(p, 0), n)
                            : make(p, NODE_NEGATE, false, n, NULL);
    } else if (take(p, "!")) {
        if ((n = as_truth(p, parse_unary(p))))
            n = make(p, NODE_NOT, true, n, NULL);
    } else if (take(p, "~")) {
        if ((n = parse_unary(p)))
            n = n->is_whole ? make(p, NODE_BIT_XOR, true, n, make_whole(p, -1))
                            : refuse(p, "takes the bits of a number with a fraction");
    } else if (take(p, "(")) {
        if ((n = parse_choice(p)) && !take(p, ")"))
            n = refuse(p, "has a ( without its )");
    } else {
        n = isdigit((unsigned char)*p->at) || *p->at == '.' ? parse_number(p) : parse_name(p);
    }
    p->depth--;
    return n;
}

static const struct operator_row {
    const char *sign, *but_not; /* but_not: what the next character may not be */
    int precedence;
    node_kind kind;
    bool swapped, inverted; /* a > b is b < a; a != b is not a == b */
} operators[] = {
    {"||", "", 1, NODE_OR, false, false},          {"&&", "", 2, NODE_AND, false, false},
    {"|", "|", 3, NODE_BIT_OR, false, false},      {"^", "", 4, NODE_BIT_XOR, false, false},
    {"&", "&", 5, NODE_BIT_AND, false, false},     {"==", "", 6, NODE_EQUAL, false, false},
    {"!=", "", 6, NODE_EQUAL, false, true},        {"<=", "", 7, NODE_NOT_MORE, false, false},
    {">=", "", 7, NODE_NOT_MORE, true, false},     {"<<", "", 8, NODE_SHIFT_LEFT, false, false},
    {">>", "", 8, NODE_SHIFT_RIGHT, false, false}, {"<", "", 7, NODE_LESS, false, false},
    {">", "", 7, NODE_LESS, true, false},          {"+", "", 9, NODE_ADD, false, false},
    {"-", "", 9, NODE_SUBTRACT, false, false},     {"*", "", 10, NODE_MULTIPLY, false, false},
    {"/", "", 10, NODE_DIVIDE, false, false},      {"%", "", 10, NODE_REMAINDER, false, false},
};

static const struct operator_row *find_operator(parser *p) {
    skip_blanks(p);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t length = strlen(operators[i].sign);
        char next = strncmp(p->at, operators[i].sign, length) == 0 ? p->at[length] : 0;
        if (strncmp(p->at, operators[i].sign, length) == 0 &&
            (!next || !strchr(operators[i].but_not, next)))
            return &operators[i];
    }
    return NULL;
}

static node *apply_operator(parser *p, const struct operator_row *o, node *a, node *b) {
    switch (o->kind) {
    case NODE_OR:
    case NODE_AND:
        return make(p, o->kind, true, as_truth(p, a), as_truth(p, b));
    case NODE_EQUAL:
    case NODE_LESS:
    case NODE_NOT_MORE: {
        node *n = compare(p, o->kind, o->swapped ? b : a, o->swapped ? a : b);
        return o->inverted ? make(p, NODE_NOT, true, n, NULL) : n;
    }
    case NODE_ADD:
    case NODE_SUBTRACT:
    case NODE_MULTIPLY:
    case NODE_DIVIDE:
        return combine(p, o->kind, a, b);
    default:
        if (!a->is_whole || !b->is_whole)
            return refuse(p, o->kind == NODE_REMAINDER
                                 ? "takes the remainder of a number with a fraction"
                                 : "takes the bits of a number with a fraction");
        return make(p, o->kind, true, a, b);
    }
}

static node *parse_binary(parser *p, int least) {
    node *a = parse_unary(p);
    const struct operator_row *o;
    while (a && (o = find_operator(p)) && o->precedence >= least) {
        p->at += strlen(o->sign);
        node *b = parse_binary(p, o->precedence + 1);
        a = b ? apply_operator(p, o, a, b) : NULL;
    }
    return a;
}

static node *parse_choice(parser *p) {
    if (p->depth >= DEEPEST)
        return refuse(p, "is nested too deeply");
    p->depth++;
    node *n = parse_binary(p, 1);
    if (n && take(p, "?")) {
        node *yes = parse_choice(p), *no = NULL;
        if (yes && !take(p, ":"))
            yes = refuse(p, "has a ? without its :");
        if (yes)
            no = parse_choice(p);
        node *which = as_truth(p, n);
        n = no ? combine(p, NODE_CHOICE, yes, no) : NULL;
        if (n)
            n->c = which;
    }
    p->depth--;
    return n;
}

expression *expression_parse(const char *text, const expression_scope *scope, err *e) {
    expression *x = array_new(1, sizeof *x);
    x->text = text;
    parser p = {.text = text, .at = text, .scope = scope, .made = x, .e = e};
    for (size_t i = 0; i < scope->index_count; i++)
        snprintf(p.variables[p.variable_count++], NAME_SIZE, "%s", scope->indices[i]);
    *e = (err){.code = EXIT_OK};
    x->root = strlen(text) < LONGEST ? parse_choice(&p) : refuse(&p, "is too long");
    skip_blanks(&p);
    if (x->root && *p.at == 0)
        return x;
    if (x->root)
        refuse(&p, "is not an expression");
    expression_free(x);
    return NULL;
}

void expression_free(expression *x) {
    for (node *n = x ? x->made : NULL, *before; n; n = before) {
        before = n->made_before;
        free(n);
    }
    free(x);
}

bool expression_is_whole(const expression *x) {
    return x->root->is_whole;
}

number number_whole(int64_t value) {
    return (number){.whole = value, .real = (double)value};
}

number number_real(double value) {
    return (number){.is_real = true, .real = value};
}

bool number_store(number value, elem type, void *out) {
    if (elem_is_float(type)) {
        elem_write(type, out, 0, value.real);
        return true;
    }
    bool is_signed = type == ELEM_I8 || type == ELEM_I16 || type == ELEM_I32 || type == ELEM_I64;
    int bits = (int)elem_get_bytes(type) * 8 - is_signed;
    int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    memcpy(out, &value.whole, elem_get_bytes(type)); /* little-endian, as every device here is */
    return !value.is_real && value.whole <= most && value.whole >= (is_signed ? -most - 1 : 0);
}

bool expression_evaluate(const char *text, expression_names *find, void *context, number *out,
                         err *e) {
    expression *x =
        expression_parse(text, &(expression_scope){.find = find, .context = context}, e);
    bounded value = {0, 0};
    if (!x)
        return false;
    expression_start(x, (arithmetic){false, false});
    bool ok = expression_compute(x, NULL, &value, e);
    *out = x->root->is_whole ? number_whole(x->whole) : number_real(value.value);
    expression_free(x);
    return ok;
}
