/* expression: see expression.h. A recursive descent, operators by precedence, makes a tree; whether a
 * node is a whole number is known when it is parsed. Whole numbers become real where they meet one. Errors end an
 * evaluation by a flag that loops look at, so that the common path has no other tests. */
#include "expression.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "harness/base/array.h"

#define U 0x1p-24       /* one rounding of f32 */
#define SAFE_DIVISION 2 /* roundings under safe math: a kernel may multiply with 1 / x */

/* How far f32 is from a number: what it costs to store it, or to write it as a literal. */
static double bounded_get_rounding(double value) {
    return isfinite(value) && (double)(float)value != value ? U * fabs(value) : 0;
}

/* A result with the error that its operands gave it and its own roundings. */
static bounded bounded_make(arithmetic how, double value, double carried, double roundings) {
    double size = fabs(value);
    if (!isfinite(value))
        return (bounded){.value = value};
    double error = carried + roundings * U * size;
    if (size < 2 * (double)FLT_MIN && size > 0)
        error += how.flushes ? (double)FLT_MIN : U * (double)FLT_MIN;
    return (bounded){.value = value, .error = error};
}

/* is_loose: one of three or more terms, or a factor, which a kernel may compute in another form. */
static bounded bounded_add(arithmetic how, bounded a, bounded b, bool is_loose) {
    double carried = a.error + b.error;
    if (carried == 0 && !is_loose)
        return bounded_make(how, a.value + b.value, 0, 1);
    return bounded_make(how, a.value + b.value, carried + U * (fabs(a.value) + fabs(b.value)), 0);
}

static bounded bounded_multiply(arithmetic how, bounded a, bounded b) {
    double carried = fabs(a.value) * b.error + (fabs(b.value) + b.error) * a.error;
    return bounded_make(how, a.value * b.value, carried, 1);
}

static bounded bounded_divide(arithmetic how, bounded a, bounded b) {
    double value = a.value / b.value, carried = 0, size = fabs(b.value);
    if (a.error > 0 || b.error > 0)
        carried = (a.error + fabs(value) * b.error) / fmax(size - b.error, size / 2);
    return bounded_make(how, value, carried, how.fast ? FAST_DIVIDE : SAFE_DIVISION);
}

/* Are they closer than their errors, so that a comparison may go either way? */
static bool bounded_is_close(bounded a, bounded b) {
    double room = a.error + b.error;
    return room > 0 && fabs(a.value - b.value) <= room;
}

/* The larger or the smaller of two. */
static bounded bounded_choose(bounded a, bounded b, bool larger) {
    bounded best = (larger ? b.value > a.value : b.value < a.value) || isnan(a.value) ? b : a;
    if (bounded_is_close(a, b))
        best.error = fmax(a.error, b.error);
    return best;
}

/* The roundings of a sum that a kernel makes in an order of its own. Each is relative to a partial
 * sum, their signs are random, and in the worst order partial sums come to the sum of magnitudes:
 * 2 sqrt(n) of it. Where many terms cancel that is far too much. Two orders tell how large partial
 * sums really are: one after the other, and 32 lanes as a simdgroup adds them; 8 is six standard
 * deviations for an order whose partial sums are three times as large. */
enum { SHORT_SUM = 64, SUM_LANES = 32 };
#define SPREAD 8.0

/* { .count = 0 }, then each term, then its end. */
typedef struct {
    double value, error, magnitude, lanes[SUM_LANES], in_turn, in_lanes;
    int64_t count;
} bounded_sum;

static double bound_roundings(const bounded_sum *s) {
    double worst = 2 * sqrt((double)s->count) * s->magnitude, in_lanes = s->in_lanes, across = 0;
    for (int i = 0; i < SUM_LANES; i++) {
        across += s->lanes[i];
        in_lanes += across * across;
    }
    return s->count <= SHORT_SUM ? worst : fmin(worst, SPREAD * sqrt(fmax(s->in_turn, in_lanes)));
}

static void bounded_sum_add(bounded_sum *s, bounded term) {
    double *lane = &s->lanes[s->count++ % SUM_LANES];
    s->value += term.value;
    *lane += term.value;
    s->in_turn += s->value * s->value;
    s->in_lanes += *lane * *lane;
    s->magnitude += fabs(term.value);
    s->error += term.error;
}

static bounded bounded_sum_end(const bounded_sum *s, arithmetic how) {
    bounded sum = {.value = s->value, .error = s->error};
    const double tiny = (double)s->count * (double)FLT_MIN;
    if (!isfinite(sum.value))
        return (bounded){.value = sum.value};
    if (s->count > 1)
        sum.error += U * bound_roundings(s);
    if (s->magnitude > 0 && s->magnitude * U < tiny)
        sum.error += tiny * (how.flushes ? 1 : U);
    return sum;
}

/* Functions of one or two numbers ----------------------------------------------------------------------------------- */

/* What fast math adds, in roundings of 1, where it is more than safe math does: of f(a, b) = y. Within 0.5
 * to 2 its logarithms have an absolute error. Its tanh is (t - 1) / (t + 1) with t = exp(2 x), which
 * has one near 0. */
static double fast_log(double a, double y, double relative, double absolute) {
    return relative * fabs(y) + (a > 0.5 && a < 2 ? absolute : 0);
}

#define FAST(name, roundings)                                                                      \
    static double fast_of_##name(double a, double b, double y) {                                   \
        (void)a, (void)b;                                                                          \
        return roundings;                                                                          \
    }
FAST(exp, fast_exp(fmin(fabs(a), 90)) * fabs(y))
FAST(exp2, fast_exp(fmin(fabs(a), 130)) * fabs(y))
FAST(log, fast_log(a, y, FAST_LOG, 8))
FAST(log2, fast_log(a, y, FAST_LOG2, 4))
FAST(log10, fast_log(a, y, FAST_LOG + 2, 8))
FAST(sine, 8 * fabs(y) + FAST_SINE)
FAST(tan, 12 * fabs(y) + FAST_SINE * (1 + y * y))
FAST(sinh, fast_of_exp(a, b, y) + 8)
FAST(tanh, 16 * fabs(y) + fast_exp(fmin(fabs(2 * a), 20)))
FAST(sqrt, (FAST_RSQRT + 1) * fabs(y))
FAST(pow, fast_pow(fmin(fabs(b *log2(fabs(a))), 130)) * fabs(y))

static double reciprocal_sqrt(double x) {
    return 1 / sqrt(x);
}

typedef struct {
    const char *name;
    double (*of_one)(double);
    double (*of_two)(double, double);             /* neither: rounds_to */
    elem rounds_to;                               /* ELEM_COUNT if it is no type */
    double safe;                                  /* roundings of its value under safe math */
    double (*fast)(double a, double b, double y); /* NULL: the same */
    double least, most;                           /* where it is defined */
    double period_most; /* how far it can be off if its argument is off by more than 1; 0: far */
} bounded_function;

#define EVERYWHERE .rounds_to = ELEM_COUNT, .least = -HUGE_VAL, .most = HUGE_VAL
#define FROM_0 .rounds_to = ELEM_COUNT, .least = 0, .most = HUGE_VAL
#define TO_1 .rounds_to = ELEM_COUNT, .least = -1, .most = 1
static const bounded_function functions[] = {
    {"exp", exp, .safe = 8, .fast = fast_of_exp, EVERYWHERE},
    {"exp2", exp2, .safe = 8, .fast = fast_of_exp2, EVERYWHERE},
    {"log", log, .safe = 8, .fast = fast_of_log, FROM_0},
    {"log2", log2, .safe = 8, .fast = fast_of_log2, FROM_0},
    {"log10", log10, .safe = 8, .fast = fast_of_log10, FROM_0},
    {"sin", sin, .safe = 8, .fast = fast_of_sine, EVERYWHERE, .period_most = 2},
    {"cos", cos, .safe = 8, .fast = fast_of_sine, EVERYWHERE, .period_most = 2},
    {"tan", tan, .safe = 12, .fast = fast_of_tan, EVERYWHERE, .period_most = HUGE_VAL},
    {"asin", asin, .safe = 10, TO_1},
    {"acos", acos, .safe = 10, TO_1},
    {"atan", atan, .safe = 10, EVERYWHERE},
    {"sinh", sinh, .safe = 8, .fast = fast_of_sinh, EVERYWHERE},
    {"cosh", cosh, .safe = 8, .fast = fast_of_exp, EVERYWHERE},
    {"tanh", tanh, .safe = 10, .fast = fast_of_tanh, EVERYWHERE},
    {"erf", erf, .safe = 32, EVERYWHERE},
    {"sqrt", sqrt, .safe = 1, .fast = fast_of_sqrt, FROM_0},
    {"rsqrt", reciprocal_sqrt, .safe = 4, FROM_0},
    {"pow", .of_two = pow, .safe = 32, .fast = fast_of_pow, EVERYWHERE},
    {"abs", fabs, EVERYWHERE},
    {"floor", floor, EVERYWHERE},
    {"ceil", ceil, EVERYWHERE},
    {"round", round, EVERYWHERE},
    {"rint", rint, EVERYWHERE},
    {"trunc", trunc, EVERYWHERE},
    {"f32", .rounds_to = ELEM_F32},
    {"f16", .rounds_to = ELEM_F16},
    {"bf16", .rounds_to = ELEM_BF16},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* How far f may be from y where its arguments are off by da and db. */
static double carry(const bounded_function *f, double a, double b, double da, double db, double y) {
    double most = 0;
    if (da == 0 && db == 0)
        return 0;
    if (da > 1 && f->period_most > 0)
        return f->period_most;
    for (int sign = -1; sign <= 1; sign += 2) {
        double x = fmin(fmax(a + sign * da, f->least), f->most);
        most = fmax(most, fabs((f->of_two ? f->of_two(x, b + sign * db) : f->of_one(x)) - y));
    }
    return most;
}

/* The kernel rounds to the type here. A value close to the middle of two numbers may go to either,
 * so the error is up to the distance between them. */
static bounded round_to_type(elem type, bounded a) {
    if (a.error == 0)
        return (bounded){.value = number_get_stored(type, a.value)};
    return (bounded){.value = a.value, .error = a.error + elem_get_roundoff(type) * fabs(a.value)};
}

static bounded bounded_apply(const bounded_function *f, arithmetic how, bounded a, bounded b) {
    if (f->rounds_to != ELEM_COUNT)
        return round_to_type(f->rounds_to, a);
    double y = f->of_two ? f->of_two(a.value, b.value) : f->of_one(a.value);
    if (!isfinite(y))
        return (bounded){.value = y};
    double carried = carry(f, a.value, b.value, a.error, 0, y);
    carried += f->of_two ? carry(f, a.value, b.value, 0, b.error, y) : 0;
    if (how.fast && f->fast)
        return bounded_make(how, y, carried + U * f->fast(a.value, b.value, y), 0);
    return bounded_make(how, y, carried, f->safe);
}

static const bounded_function *find_function(const char *name) {
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

/* The names of all, each after a blank. */
static const char *list_functions(void) {
    static char text[256];
    size_t used = 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", functions[i].name);
    return text;
}

/* Trees --------------------------------------------------------------------------------------- */

enum { VARIABLES = 16, DEEPEST = 64, NAME_SIZE = 64, LONGEST = 8192 /* bounds the depth */ };

typedef enum {
    /* Whole if the operands are */
    NODE_CONSTANT,
    NODE_SYMBOL,
    NODE_ELEMENT,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_DIVIDE,
    NODE_NEGATE,
    NODE_CHOICE,
    NODE_MIN,
    NODE_MAX,
    NODE_LOOP_MIN,
    NODE_LOOP_MAX,
    /* Whole, of whole numbers */
    NODE_VARIABLE,
    NODE_REMAINDER,
    NODE_BIT_AND,
    NODE_BIT_OR,
    NODE_BIT_XOR,
    NODE_SHIFT_LEFT,
    NODE_SHIFT_RIGHT,
    /* Whole, of either */
    NODE_NOT,
    NODE_AND,
    NODE_OR,
    NODE_LESS,
    NODE_NOT_MORE,
    NODE_EQUAL,
    NODE_TRUNCATE, /* towards 0 */
    /* Real */
    NODE_SUM,
    NODE_FUNCTION
} node_kind;

typedef struct node node;
struct node {
    node_kind kind;
    bool is_whole;
    bool is_loose; /* of a sum or difference: see bounded_add */
    int variable;  /* of a loop, or its own */
    node
        *kids[EXPRESSION_AXES]; /* operands; indices; of a choice yes, no and which; of a loop count
                                    and term */
    size_t kid_count;
    bounded constant;
    const symbol *symbol;
    const bounded_function *function;
    /* Of a loop: the variables it depends on, a bit each, and what they were when it was
     * computed. */
    uint32_t depends;
    uint64_t computed_at; /* 0: never */
    int64_t seen[VARIABLES];
    bounded known;
    node *made_before; /* list of all, to be freed */
};

struct expression {
    const char *text;
    node *root, *made;
    arithmetic how;
    uint64_t started; /* how often: results of loops are older or not */
    int64_t variables[VARIABLES];
    bool has_failed;
    err *e;
};

/* Nodes: NULL in, NULL out, so that a failure needs no tests on its way ------------------------- */

typedef struct {
    const char *text, *at;
    const expression_scope *scope;
    expression *made;
    char variables[VARIABLES][NAME_SIZE]; /* indices, then loops from outer to inner */
    int variable_count;
    uint32_t used; /* variables, a bit each */
    int depth;
    err *e;
} parser;

static node *parse_choice(parser *p);

static node *refuse(const parser *p, const char *why) {
    if (p->e->code)
        return NULL;
    return err_null(p->e, EXIT_USAGE, "'%.80s' %s", p->text, why);
}

static node *make(parser *p, node_kind kind, bool is_whole) {
    node *n = array_new(1, sizeof *n);
    *n = (node){.kind = kind, .is_whole = is_whole, .made_before = p->made->made};
    return p->made->made = n;
}

/* An operation. Of sums and products, the terms that are sums themselves are loose: see bounded_add. */
static node *make_with(parser *p, node_kind kind, node *a, node *b) {
    if (!a || !b)
        return NULL;
    const bool is_sum = kind == NODE_ADD || kind == NODE_SUBTRACT;
    node *n = make(p, kind, kind >= NODE_VARIABLE && kind < NODE_SUM);
    n->kids[0] = a;
    n->kids[1] = b;
    n->kid_count = a == b ? 1 : 2;
    n->is_whole = n->is_whole || (kind < NODE_VARIABLE && a->is_whole && b->is_whole);
    for (size_t i = 0; i < n->kid_count && (is_sum || kind == NODE_MULTIPLY); i++)
        if (!n->kids[i]->is_whole &&
            (n->kids[i]->kind == NODE_ADD || n->kids[i]->kind == NODE_SUBTRACT)) {
            n->kids[i]->is_loose = true;
            n->is_loose = is_sum;
        }
    return n;
}

/* Of one operand. */
static node *make_of(parser *p, node_kind kind, node *a) {
    return make_with(p, kind, a, a);
}

static node *make_whole(parser *p, int64_t value) {
    node *n = make(p, NODE_CONSTANT, true);
    n->constant.whole = value;
    return n;
}

/* A literal that f32 does not have is rounded in a kernel. */
static node *make_real(parser *p, double value) {
    node *n = make(p, NODE_CONSTANT, false);
    n->constant = (bounded){.value = value, .error = bounded_get_rounding(value)};
    return n;
}

/* Names --------------------------------------------------------------------------------------- */

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

/* Letters, digits, _ and dots; empty if there are none, or too many. */
static bool take_name(parser *p, char *name) {
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_' || p->at[n] == '.')
        n++;
    snprintf(name, NAME_SIZE, "%.*s", n < NAME_SIZE ? (int)n : 0, p->at);
    if (n == 0)
        refuse(p, *p->at ? "is not an expression" : "ends too early");
    if (n >= NAME_SIZE)
        refuse(p, "has a name that is too long");
    p->at += n;
    return *name;
}

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

static node *make_symbol(parser *p, node_kind kind, const symbol *s) {
    node *n = make(p, kind, s->type != ELEM_COUNT && !elem_is_float(s->type));
    n->symbol = s;
    return n;
}

static node *parse_subscript(parser *p, const symbol *s) {
    node *n = make_symbol(p, NODE_ELEMENT, s);
    do {
        if (n->kid_count == EXPRESSION_AXES)
            return err_null(p->e, EXIT_USAGE, "'%.40s' has too many indices", s->name);
        node *index = parse_choice(p);
        if (index && !index->is_whole)
            return err_null(
                p->e, EXIT_USAGE,
                "an index of '%.40s' in '%.80s' is not a whole number: int(x) makes one", s->name,
                p->text);
        if (!index)
            return NULL;
        n->kids[n->kid_count++] = index;
    } while (take(p, ","));
    if (!take(p, "]"))
        return refuse(p, "has a [ without its ]");
    if (n->kid_count != 1 && n->kid_count != s->axes)
        return err_null(p->e, EXIT_USAGE, "'%.40s' has %zu sizes and is given %zu indices", s->name,
                        s->axes, n->kid_count);
    return n;
}

static node *use_symbol(parser *p, const symbol *s) {
    if (!s->is_array || s->axes == 0)
        return make_symbol(p, s->is_array ? NODE_ELEMENT : NODE_SYMBOL, s);
    return take(p, "[") ? parse_subscript(p, s)
                        : err_null(p->e, EXIT_USAGE,
                                   "'%.40s' in '%.80s' is an array: give an index, as in %.40s[i]",
                                   s->name, p->text, s->name);
}

/* The innermost variable, or else the symbol, or else the constant with this name. */
static node *use_name(parser *p, const char *name) {
    const expression_scope *s = p->scope;
    for (int i = p->variable_count; i-- > 0;)
        if (strcmp(p->variables[i], name) == 0) {
            node *n = make(p, NODE_VARIABLE, true);
            n->variable = i;
            p->used |= 1u << i;
            return n;
        }
    for (size_t i = 0; i < s->symbol_count; i++)
        if (strcmp(s->symbols[i].name, name) == 0)
            return use_symbol(p, &s->symbols[i]);
    if (strcmp(name, "INFINITY") == 0)
        return make_real(p, HUGE_VAL);
    if (strcmp(name, "M_PI") == 0)
        return make_real(p, 3.14159265358979323846);
    return err_null(p->e, EXIT_USAGE,
                    "'%.80s' needs '%s', which is not a value here: no line above describes it",
                    p->text, name);
}

/* Calls --------------------------------------------------------------------------------------- */

/* sum(j < n: term): a loop, and not a call with a comparison or a choice in it. */
static bool is_loop(const parser *p) {
    const char *at = p->at + strspn(p->at, " \t\r"), *less = at;
    while (isalnum((unsigned char)*less) || *less == '_')
        less++;
    bool has_name = less > at && !isdigit((unsigned char)*at);
    less += strspn(less, " \t\r");
    if (!has_name || less[0] != '<' || strchr("=<", less[1]))
        return false;
    int depth = 0;
    for (const char *q = less; *q && depth >= 0; q++) {
        if (depth == 0 && strchr(":?,", *q))
            return *q == ':';
        depth += (*q == '(' || *q == '[') - (*q == ')' || *q == ']');
    }
    return false;
}

static node *parse_loop(parser *p, node_kind kind) {
    char name[NAME_SIZE];
    skip_blanks(p);
    if (!take_name(p, name))
        return NULL;
    if (p->variable_count == VARIABLES)
        return refuse(p, "has too many loops");
    uint32_t outside = p->used;
    p->used = 0;
    node *count = take(p, "<") ? parse_choice(p) : NULL;
    if (count && !count->is_whole)
        return refuse(p, "has a loop whose count is not a whole number");
    if (!count || !take(p, ":"))
        return refuse(p, "has a loop that is not given as sum(j < COUNT: TERM)");
    int variable = p->variable_count++;
    snprintf(p->variables[variable], NAME_SIZE, "%s", name);
    node *term = parse_choice(p);
    p->variable_count--;
    if (!term || !take(p, ")"))
        return refuse(p, "has a ( without its )");
    node *n = make_with(p, kind, count, term);
    n->variable = variable;
    n->depends = p->used & ~(1u << variable);
    p->used = outside | n->depends;
    return n;
}

/* One or two arguments; *b is the second, or the first again. */
static node *parse_arguments(parser *p, const char *name, int count, node **b) {
    node *a = parse_choice(p);
    *b = count == 2 && a && take(p, ",") ? parse_choice(p) : count == 2 ? NULL : a;
    if (*b && take(p, ")"))
        return a;
    if (p->e->code)
        return NULL;
    return err_null(p->e, EXIT_USAGE, "'%.80s': %s takes %d argument%s", p->text, name, count,
                    count == 1 ? "" : "s");
}

/* (a + b - 1) / b */
static node *divide_up(parser *p, node *a, node *b) {
    if (a && (!a->is_whole || !b->is_whole))
        return refuse(p, "calls divide_up, which is for whole numbers");
    node *more = make_with(p, NODE_SUBTRACT, b, make_whole(p, 1));
    return make_with(p, NODE_DIVIDE, make_with(p, NODE_ADD, a, more), b);
}

static node *call(parser *p, const char *given) {
    static const struct {
        const char *name;
        node_kind kind;
        int count;
    } own[] = {{"min", NODE_MIN, 2},  {"max", NODE_MAX, 2},          {"fmin", NODE_MIN, 2},
               {"fmax", NODE_MAX, 2}, {"divide_up", NODE_DIVIDE, 2}, {"int", NODE_TRUNCATE, 1}};
    const bool is_min = strcmp(given, "min") == 0, is_max = strcmp(given, "max") == 0;
    const bool is_sum = strcmp(given, "sum") == 0;
    const char *name = strcmp(given, "fabs") == 0 ? "abs" : given;
    node *b;
    if ((is_min || is_max || is_sum) && is_loop(p))
        return parse_loop(p, is_min ? NODE_LOOP_MIN : is_max ? NODE_LOOP_MAX : NODE_SUM);
    if (is_sum)
        return refuse(p, "has a sum that is not given as sum(j < COUNT: TERM)");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(own[i].name, name) != 0)
            continue;
        node *a = parse_arguments(p, name, own[i].count, &b);
        return own[i].kind == NODE_DIVIDE ? divide_up(p, a, b)
               : own[i].kind == NODE_TRUNCATE && a && a->is_whole
                   ? a
                   : make_with(p, own[i].kind, a, a ? b : NULL);
    }
    const bounded_function *f = find_function(name);
    if (!f)
        return err_null(p->e, EXIT_USAGE,
                        "there is no function '%.40s' (valid: sum min max divide_up int%s)", name,
                        list_functions());
    node *a = parse_arguments(p, name, f->of_two ? 2 : 1, &b);
    if (a && a->is_whole && strcmp(name, "abs") == 0)
        return make_with(p, NODE_MAX, a, make_of(p, NODE_NEGATE, a));
    node *n = make_with(p, NODE_FUNCTION, a, a ? b : NULL);
    if (n)
        n->function = f;
    return n;
}

/* Operators ----------------------------------------------------------------------------------- */

static node *parse_operand(parser *p) {
    char name[NAME_SIZE];
    if (p->depth >= DEEPEST)
        return refuse(p, "is nested too deeply");
    if (take(p, "-"))
        return make_of(p, NODE_NEGATE, parse_operand(p));
    if (take(p, "!"))
        return make_of(p, NODE_NOT, parse_operand(p));
    if (take(p, "~")) {
        node *n = parse_operand(p);
        return !n || n->is_whole ? make_with(p, NODE_BIT_XOR, n, make_whole(p, -1))
                                 : refuse(p, "takes the bits of a number with a fraction");
    }
    if (take(p, "(")) {
        node *n = parse_choice(p);
        return !n || take(p, ")") ? n : refuse(p, "has a ( without its )");
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        return parse_number(p);
    if (!take_name(p, name))
        return NULL;
    return take(p, "(") ? call(p, name) : use_name(p, name);
}

/* Longer signs first. */
static const struct operator_row {
    const char *sign;
    int precedence;
    node_kind kind;
    bool is_swapped, is_inverted; /* a > b is b < a; a != b is not a == b */
} operators[] = {
    {"||", 1, NODE_OR, false, false},         {"&&", 2, NODE_AND, false, false},
    {"==", 6, NODE_EQUAL, false, false},      {"!=", 6, NODE_EQUAL, false, true},
    {"<=", 7, NODE_NOT_MORE, false, false},   {">=", 7, NODE_NOT_MORE, true, false},
    {"<<", 8, NODE_SHIFT_LEFT, false, false}, {">>", 8, NODE_SHIFT_RIGHT, false, false},
    {"|", 3, NODE_BIT_OR, false, false},      {"^", 4, NODE_BIT_XOR, false, false},
    {"&", 5, NODE_BIT_AND, false, false},     {"<", 7, NODE_LESS, false, false},
    {">", 7, NODE_LESS, true, false},         {"+", 9, NODE_ADD, false, false},
    {"-", 9, NODE_SUBTRACT, false, false},    {"*", 10, NODE_MULTIPLY, false, false},
    {"/", 10, NODE_DIVIDE, false, false},     {"%", 10, NODE_REMAINDER, false, false},
};

static const struct operator_row *find_operator(parser *p) {
    skip_blanks(p);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(p->at, operators[i].sign, strlen(operators[i].sign)) == 0)
            return &operators[i];
    return NULL;
}

static node *apply_operator(parser *p, const struct operator_row *o, node *a, node *b) {
    const bool takes_whole = o->kind >= NODE_REMAINDER && o->kind < NODE_NOT;
    if (takes_whole && b && (!a->is_whole || !b->is_whole))
        return refuse(p, o->kind == NODE_REMAINDER
                             ? "takes the remainder of a number with a fraction"
                             : "takes the bits of a number with a fraction");
    node *n = make_with(p, o->kind, o->is_swapped ? b : a, o->is_swapped ? a : b);
    return o->is_inverted ? make_of(p, NODE_NOT, n) : n;
}

static node *parse_binary(parser *p, int least) {
    if (p->depth >= DEEPEST)
        return refuse(p, "is nested too deeply");
    p->depth++;
    node *a = parse_operand(p);
    const struct operator_row *o;
    while (a && (o = find_operator(p)) && o->precedence >= least) {
        p->at += strlen(o->sign);
        a = apply_operator(p, o, a, parse_binary(p, o->precedence + 1));
    }
    p->depth--;
    return a;
}

static node *parse_choice(parser *p) {
    node *which = parse_binary(p, 1);
    if (!which || !take(p, "?"))
        return which;
    p->depth++;
    node *yes = parse_choice(p);
    if (yes && !take(p, ":"))
        yes = refuse(p, "has a ? without its :");
    node *n = yes ? make_with(p, NODE_CHOICE, yes, parse_choice(p)) : NULL;
    if (n)
        n->kids[n->kid_count++] = which;
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

/* Evaluation: elements ------------------------------------------------------------------------- */

static bounded compute(expression *x, node *n);

static bounded as_real(const node *n, bounded v) {
    if (!n->is_whole)
        return v;
    const double value = (double)v.whole;
    return (bounded){.value = value, .error = v.error + bounded_get_rounding(value)};
}

static bounded compute_real(expression *x, node *n) {
    return as_real(n, compute(x, n));
}

/* Is it not 0? */
static bounded compute_truth(expression *x, node *n) {
    bounded v = compute(x, n);
    if (n->is_whole)
        return (bounded){.whole = v.whole != 0, .error = v.error};
    return (bounded){.whole = v.value != 0,
                     .error = bounded_is_close(v, (bounded){.value = 0}) ? 1 : 0};
}

static bounded fail(expression *x, const char *why) {
    if (!x->has_failed)
        err_set(x->e, EXIT_USAGE, "'%.80s' %s", x->text, why);
    x->has_failed = true;
    return (bounded){.whole = 0};
}

static bounded fail_index(expression *x, const node *n, size_t axis, int64_t index, int64_t size) {
    if (!x->has_failed)
        err_set(x->e, EXIT_USAGE,
                "'%.80s': index %lld of %.40s is not between 0 and %lld (axis %zu of %zu)", x->text,
                (long long)index, n->symbol->name, (long long)size - 1, axis + 1, n->kid_count);
    x->has_failed = true;
    return (bounded){.whole = 0};
}

static bounded read_element(expression *x, const node *n) {
    const symbol *s = n->symbol;
    int64_t at = 0;
    for (size_t i = 0; i < n->kid_count; i++) {
        node *given = n->kids[i];
        int64_t index =
            given->kind == NODE_VARIABLE ? x->variables[given->variable] : compute(x, given).whole;
        int64_t size = n->kid_count == 1 ? s->count : s->sizes[i];
        if (index < 0 || index >= size)
            return fail_index(x, n, i, index, size);
        at = at * size + index;
    }
    if (x->has_failed)
        return (bounded){.whole = 0};
    if (s->computed)
        return s->computed[at];
    bounded v = number_read(s->type, s->data, (size_t)at);
    if (!n->is_whole && x->how.flushes && fabs(v.value) < (double)FLT_MIN)
        v.error = fabs(v.value);
    return v;
}

/* Is what the loop was last computed for still so? Otherwise it is from now on. */
static bool is_known(expression *x, node *n) {
    bool is_same = n->computed_at == x->started;
    for (int i = 0; i < VARIABLES && n->depends >> i; i++)
        if (n->depends >> i & 1 && n->seen[i] != x->variables[i]) {
            is_same = false;
            n->seen[i] = x->variables[i];
        }
    n->computed_at = x->started;
    return is_same;
}

static bounded choose_whole(bounded a, bounded b, bool larger) {
    return (bounded){.whole = larger == (b.whole > a.whole) ? b.whole : a.whole,
                     .error = fmax(a.error, b.error)};
}

static bounded loop(expression *x, node *n) {
    if (is_known(x, n))
        return n->known;
    const int64_t count = compute(x, n->kids[0]).whole;
    const bool is_max = n->kind == NODE_LOOP_MAX;
    bounded_sum sum = {.count = 0};
    bounded best = {.value = is_max ? -HUGE_VAL : HUGE_VAL};
    if (n->is_whole)
        best.whole = is_max ? INT64_MIN : INT64_MAX;
    for (int64_t i = 0; i < count && !x->has_failed; i++) {
        x->variables[n->variable] = i;
        if (n->kind == NODE_SUM)
            bounded_sum_add(&sum, compute_real(x, n->kids[1]));
        else if (n->is_whole)
            best = choose_whole(best, compute(x, n->kids[1]), is_max);
        else
            best = bounded_choose(best, compute(x, n->kids[1]), is_max);
    }
    return n->known = n->kind == NODE_SUM ? bounded_sum_end(&sum, x->how) : best;
}

/* Operations ---------------------------------------------------------------------------------- */

static bounded divide_whole(expression *x, node_kind kind, int64_t a, int64_t b) {
    if (b == 0)
        return fail(x, "divides by 0");
    if (a == INT64_MIN && b == -1)
        return fail(x, "is too large");
    return (bounded){.whole = kind == NODE_DIVIDE ? a / b : a % b};
}

static bounded shift(expression *x, node_kind kind, int64_t a, int64_t b) {
    if (b < 0 || b > 62)
        return fail(x, "shifts by less than 0 or more than 62 bits");
    return (bounded){.whole = kind == NODE_SHIFT_LEFT ? (int64_t)((uint64_t)a << b) : a >> b};
}

static bounded truncate(expression *x, bounded a) {
    if (!(fabs(a.value) < 0x1p63))
        return fail(x, "makes a whole number of one that is too large or not a number");
    bool is_close = trunc(a.value - a.error) != trunc(a.value + a.error);
    return (bounded){.whole = (int64_t)a.value, .error = is_close ? 1 : 0};
}

static bounded compare_real(node_kind kind, bounded a, bounded b) {
    return (bounded){.whole = kind == NODE_LESS    ? a.value < b.value
                              : kind == NODE_EQUAL ? a.value == b.value
                                                   : a.value <= b.value,
                     .error = bounded_is_close(a, b) ? 1 : 0};
}

static bounded operate_on_whole(expression *x, node_kind kind, int64_t a, int64_t b) {
    int64_t out = 0;
    bool overflows = false;
    switch (kind) {
    case NODE_ADD:
        overflows = __builtin_add_overflow(a, b, &out);
        break;
    case NODE_SUBTRACT:
        overflows = __builtin_sub_overflow(a, b, &out);
        break;
    case NODE_NEGATE:
        overflows = __builtin_sub_overflow(0, a, &out);
        break;
    case NODE_MULTIPLY:
        overflows = __builtin_mul_overflow(a, b, &out);
        break;
    case NODE_DIVIDE:
    case NODE_REMAINDER:
        return divide_whole(x, kind, a, b);
    case NODE_SHIFT_LEFT:
    case NODE_SHIFT_RIGHT:
        return shift(x, kind, a, b);
    case NODE_MIN:
    case NODE_MAX:
        out = (kind == NODE_MIN) == (a < b) ? a : b;
        break;
    case NODE_LESS:
    case NODE_NOT_MORE:
        out = kind == NODE_LESS ? a < b : a <= b;
        break;
    case NODE_EQUAL:
        out = a == b;
        break;
    default:
        out = kind == NODE_BIT_AND ? a & b : kind == NODE_BIT_OR ? a | b : a ^ b;
    }
    return overflows ? fail(x, "is too large") : (bounded){.whole = out};
}

static bounded operate_on_real(const expression *x, const node *n, bounded a, bounded b) {
    switch (n->kind) {
    case NODE_SUBTRACT:
        b.value = -b.value;
        return bounded_add(x->how, a, b, n->is_loose);
    case NODE_ADD:
        return bounded_add(x->how, a, b, n->is_loose);
    case NODE_MULTIPLY:
        return bounded_multiply(x->how, a, b);
    case NODE_DIVIDE:
        return bounded_divide(x->how, a, b);
    case NODE_NEGATE:
        return (bounded){.value = -a.value, .error = a.error};
    case NODE_MIN:
    case NODE_MAX:
        return bounded_choose(a, b, n->kind == NODE_MAX);
    default:
        return bounded_apply(n->function, x->how, a, b);
    }
}

/* Where a real condition may go either way, both sides are right. */
static bounded choose(expression *x, node *n) {
    const bounded which = compute_truth(x, n->kids[2]);
    node *taken = n->kids[which.whole ? 0 : 1], *left = n->kids[which.whole ? 1 : 0];
    bounded chosen = n->is_whole ? compute(x, taken) : compute_real(x, taken);
    if (which.error == 0)
        return chosen;
    if (n->is_whole) {
        chosen.error = 1;
        return chosen;
    }
    const bounded other = compute_real(x, left);
    chosen.error = fmax(chosen.error, fabs(chosen.value - other.value) + other.error);
    return chosen;
}

/* && and || */
static bounded combine_truths(expression *x, node *n) {
    const bounded a = compute_truth(x, n->kids[0]);
    if (!a.whole == (n->kind == NODE_AND))
        return a;
    bounded b = compute_truth(x, n->kids[1]);
    b.error = fmax(a.error, b.error);
    return b;
}

static bounded operate(expression *x, node *n) {
    node *first = n->kids[0], *second = n->kids[n->kid_count - 1];
    bounded a = compute(x, first), b = n->kid_count > 1 ? compute(x, second) : a;
    if (n->kind != NODE_FUNCTION && first->is_whole && second->is_whole) {
        bounded out = operate_on_whole(x, n->kind, a.whole, b.whole);
        out.error = fmax(a.error, b.error);
        return out;
    }
    a = as_real(first, a);
    b = as_real(second, b);
    return n->is_whole ? compare_real(n->kind, a, b) : operate_on_real(x, n, a, b);
}

static bounded compute(expression *x, node *n) {
    bounded a;
    switch (n->kind) {
    case NODE_CONSTANT:
        return n->constant;
    case NODE_SYMBOL:
        return n->symbol->value;
    case NODE_VARIABLE:
        return (bounded){.whole = x->variables[n->variable]};
    case NODE_ELEMENT:
        return read_element(x, n);
    case NODE_CHOICE:
        return choose(x, n);
    case NODE_LOOP_MIN:
    case NODE_LOOP_MAX:
    case NODE_SUM:
        return loop(x, n);
    case NODE_AND:
    case NODE_OR:
        return combine_truths(x, n);
    case NODE_NOT:
        a = compute_truth(x, n->kids[0]);
        a.whole = !a.whole;
        return a;
    case NODE_TRUNCATE:
        return truncate(x, compute(x, n->kids[0]));
    default:
        return operate(x, n);
    }
}

void expression_start(expression *x, arithmetic how) {
    x->how = how;
    x->started++;
}

bool expression_compute(expression *x, const int64_t *indices, number *out, err *e) {
    x->e = e;
    x->has_failed = false;
    for (int i = 0; indices && i < EXPRESSION_AXES; i++)
        x->variables[i] = indices[i];
    bounded value = compute(x, x->root);
    *out = x->root->is_whole ? number_whole(value.whole)
                             : (number){.is_real = true, .real = value.value};
    out->error = value.error;
    return !x->has_failed;
}

bool expression_evaluate(const char *text, const expression_scope *scope, number *out, err *e) {
    expression *x = expression_parse(text, scope, e);
    if (!x)
        return false;
    expression_start(x, (arithmetic){false, false});
    bool ok = expression_compute(x, NULL, out, e);
    expression_free(x);
    return ok;
}

number number_whole(int64_t value) {
    return (number){.whole = value, .real = (double)value};
}

bounded number_read(elem type, const void *data, size_t i) {
    bounded v = {.error = 0};
    if (elem_is_float(type))
        v.value = elem_read(type, data, i);
    else if (type == ELEM_I64 || type == ELEM_U64) /* a double may not have all of it */
        memcpy(&v.whole, (const char *)data + i * sizeof v.whole, sizeof v.whole);
    else
        v.whole = (int64_t)elem_read(type, data, i);
    return v;
}

double number_get_stored(elem type, double value) {
    unsigned char stored[8];
    elem_write(type, stored, 0, value);
    return elem_read(type, stored, 0);
}

bool number_store(const number *n, elem type, void *out) {
    if (elem_is_float(type)) {
        elem_write(type, out, 0, n->real);
        return true;
    }
    bool is_signed = type == ELEM_I8 || type == ELEM_I16 || type == ELEM_I32 || type == ELEM_I64;
    int bits = (int)elem_get_bytes(type) * 8 - is_signed;
    int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    memcpy(out, &n->whole, elem_get_bytes(type)); /* little-endian, as every device here is */
    return !n->is_real && n->whole <= most && n->whole >= (is_signed ? -most - 1 : 0);
}
