/* expression: see expression.h. A recursive descent over the text. */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, NAME_SIZE = 64, ARGUMENTS = 2 };

typedef struct {
    const char *text, *at;
    expression_names *find;
    void *context;
    int depth;
    err *e;
} reader;

static bool read_choice(reader *r, number *out);

number number_whole(int64_t value) {
    return (number){.whole = value, .real = (double)value};
}

number number_real(double value) {
    return (number){.is_real = true, .real = value};
}

static bool refuse(const reader *r, const char *why) {
    return err_set(r->e, EXIT_USAGE, "'%.80s' %s", r->text, why);
}

static void skip_blanks(reader *r) {
    r->at += strspn(r->at, " \t\r");
}

static bool take(reader *r, const char *symbol) {
    skip_blanks(r);
    if (strncmp(r->at, symbol, strlen(symbol)) != 0)
        return false;
    r->at += strlen(symbol);
    return true;
}

/* Arithmetic ---------------------------------------------------------------------------------- */

static bool is_true(number x) {
    return x.is_real ? x.real != 0 : x.whole != 0;
}

static bool divide(const reader *r, char what, number a, number b, number *out) {
    bool is_real = a.is_real || b.is_real;
    if (is_real && what == '%')
        return refuse(r, "takes the remainder of a number with a fraction");
    if (!is_true(b))
        return refuse(r, "divides by 0");
    if (is_real)
        *out = number_real(a.real / b.real);
    else if (a.whole == INT64_MIN && b.whole == -1)
        return refuse(r, "is too large");
    else
        *out = number_whole(what == '/' ? a.whole / b.whole : a.whole % b.whole);
    return true;
}

static bool compute(const reader *r, char what, number a, number b, number *out) {
    int64_t whole = 0;
    bool overflows = false;
    if (what == '/' || what == '%')
        return divide(r, what, a, b, out);
    if (a.is_real || b.is_real) {
        *out = number_real(what == '+'   ? a.real + b.real
                           : what == '-' ? a.real - b.real
                                         : a.real * b.real);
        return true;
    }
    if (what == '+')
        overflows = __builtin_add_overflow(a.whole, b.whole, &whole);
    else if (what == '-')
        overflows = __builtin_sub_overflow(a.whole, b.whole, &whole);
    else
        overflows = __builtin_mul_overflow(a.whole, b.whole, &whole);
    *out = number_whole(whole);
    return !overflows || refuse(r, "is too large");
}

static bool is_less(number a, number b) {
    return a.is_real || b.is_real ? a.real < b.real : a.whole < b.whole;
}

/* Reading ------------------------------------------------------------------------------------- */

static bool read_number(reader *r, number *out) {
    char *after, *real_after;
    long long whole = strtoll(r->at, &after, 0);
    double real = strtod(r->at, &real_after);
    bool is_real = real_after > after;
    *out = is_real ? number_real(real) : number_whole(whole);
    r->at = is_real ? real_after : after;
    r->at += is_real && *r->at == 'f';
    if (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.')
        return refuse(r, "has a number that is none");
    return (is_real ? isfinite(real) : whole != INT64_MAX) || refuse(r, "is too large");
}

static bool call(reader *r, const char *name, number *out) {
    number given[ARGUMENTS];
    for (int i = 0; i < ARGUMENTS; i++)
        if (!read_choice(r, &given[i]) || !take(r, i + 1 < ARGUMENTS ? "," : ")"))
            return r->e->code ? false : refuse(r, "calls something without two arguments");
    number a = given[0], b = given[1], more;
    if (strcmp(name, "min") == 0)
        *out = is_less(b, a) ? b : a;
    else if (strcmp(name, "max") == 0)
        *out = is_less(a, b) ? b : a;
    else if (strcmp(name, "divide_up") == 0)
        return compute(r, '-', b, number_whole(1), &more) && compute(r, '+', a, more, &more) &&
               compute(r, '/', more, b, out);
    else
        return err_set(r->e, EXIT_USAGE, "'%.80s' calls '%s'; there are min, max and divide_up",
                       r->text, name);
    return true;
}

static bool read_name(reader *r, number *out) {
    char name[NAME_SIZE];
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_' || r->at[n] == '.')
        n++;
    if (n == 0)
        return refuse(r, *r->at ? "is no expression" : "ends too early");
    if (n >= sizeof name)
        return refuse(r, "has a name that is too long");
    memcpy(name, r->at, n);
    name[n] = 0;
    r->at += n;
    if (take(r, "("))
        return call(r, name, out);
    return r->find(r->context, name, out) ||
           err_set(r->e, EXIT_USAGE, "'%.80s' needs '%s', which is not a value of this case",
                   r->text, name);
}

static bool read_unary(reader *r, number *out) {
    number x;
    if (r->depth >= DEEPEST)
        return refuse(r, "is nested too deeply");
    r->depth++;
    bool ok;
    if (take(r, "-"))
        ok = read_unary(r, &x) && compute(r, '-', number_whole(0), x, out);
    else if (take(r, "!")) {
        ok = read_unary(r, &x);
        *out = number_whole(ok && !is_true(x));
    } else if (take(r, "("))
        ok = read_choice(r, out) && (take(r, ")") || refuse(r, "has a ( without its )"));
    else
        ok = isdigit((unsigned char)*r->at) || *r->at == '.' ? read_number(r, out)
                                                             : read_name(r, out);
    r->depth--;
    return ok;
}

static bool read_product(reader *r, number *out) {
    if (!read_unary(r, out))
        return false;
    for (;;) {
        char what = take(r, "*") ? '*' : take(r, "/") ? '/' : take(r, "%") ? '%' : 0;
        number next;
        if (!what)
            return true;
        if (!read_unary(r, &next) || !compute(r, what, *out, next, out))
            return false;
    }
}

static bool read_sum(reader *r, number *out) {
    if (!read_product(r, out))
        return false;
    for (;;) {
        char what = take(r, "+") ? '+' : take(r, "-") ? '-' : 0;
        number next;
        if (!what)
            return true;
        if (!read_product(r, &next) || !compute(r, what, *out, next, out))
            return false;
    }
}

static bool read_comparison(reader *r, number *out) {
    static const char *const symbols[] = {"<=", ">=", "==", "!=", "<", ">"};
    number a, b;
    size_t i = 0;
    if (!read_sum(r, &a))
        return false;
    while (i < 6 && !take(r, symbols[i]))
        i++;
    if (i == 6) {
        *out = a;
        return true;
    }
    if (!read_sum(r, &b))
        return false;
    bool less = is_less(a, b), more = is_less(b, a);
    const bool results[] = {!more, !less, !less && !more, less || more, less, more};
    *out = number_whole(results[i]);
    return true;
}

static bool read_logic(reader *r, bool is_or, number *out) {
    number next;
    if (!(is_or ? read_logic(r, false, out) : read_comparison(r, out)))
        return false;
    while (take(r, is_or ? "||" : "&&")) {
        if (!(is_or ? read_logic(r, false, &next) : read_comparison(r, &next)))
            return false;
        *out =
            number_whole(is_or ? is_true(*out) || is_true(next) : is_true(*out) && is_true(next));
    }
    return true;
}

static bool read_choice(reader *r, number *out) {
    number yes, no;
    if (r->depth >= DEEPEST)
        return refuse(r, "is nested too deeply");
    r->depth++;
    bool ok = read_logic(r, true, out);
    if (ok && take(r, "?")) {
        ok = read_choice(r, &yes) && (take(r, ":") || refuse(r, "has a ? without its :")) &&
             read_choice(r, &no);
        if (ok)
            *out = is_true(*out) ? yes : no;
    }
    r->depth--;
    return ok;
}

bool expression_evaluate(const char *text, expression_names *find, void *context, number *out,
                         err *e) {
    reader r = {.text = text, .at = text, .find = find, .context = context, .e = e};
    *e = (err){.code = EXIT_OK};
    if (!read_choice(&r, out))
        return false;
    skip_blanks(&r);
    return !*r.at || refuse(&r, "is no expression");
}
