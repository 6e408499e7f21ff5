/* expression: arithmetic over names and arrays, written as in C. A text is parsed once and
 * evaluated many times, with a bound of the error that a kernel may make beside each value.
 *
 *   (out_dim + 7) / 8          + - * / %, & | ^ << >> ~ of whole numbers, unary - and !,
 *                              < <= > >= == !=, && ||, c ? a : b
 *   x[r, j]                    an element; one index counts all elements of an array
 *   sum(j < n: x[r, j] * w[j]) also max(j < n: ...) and min(j < n: ...)
 *   exp(x), min(a, b), ...     functions: expression_list_functions names them
 *
 * Whole numbers stay whole (1/2 is 0, and an overflow is an error): sizes, literals without a
 * point, elements of integer arrays. Everything else is a double. && || and ?: compute only the
 * side that is needed. A subscript past the end of its array is an error. A loop that depends on
 * nothing that changed since it was last computed is not computed again.
 *
 * The bound is a first-order running error analysis. Elements and values are exact. Each operation
 * carries the errors of its operands on, by its derivative, and adds its own: one rounding (u =
 * 2^-24 of its result) or what the Metal specification allows a function (accuracy.h). A sum of n
 * terms adds the errors of its terms, and 2 sqrt(n) u of their magnitudes, because signs of
 * roundings are as good as random; less if many terms cancel (loop_sum has the reasoning).
 * Additions other than one of two exact values are charged with the magnitudes of both sides,
 * because a kernel may add in another order, or multiply first. A comparison of values that are
 * closer than their errors may go either way, so both sides of a ?: count; a number rounded to a
 * whole one may then be off by one. */
#pragma once

#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/elem.h"

enum { EXPRESSION_AXES = 4 };

typedef struct {
    bool is_real;  /* has, or may have, a fraction */
    int64_t whole; /* if it has none */
    double real;   /* in any case */
} number;

number number_whole(int64_t value);
number number_real(double value);
/* Stores it as an element of the type; false if it does not fit. */
bool number_store(number value, elem type, void *out);

/* A value, and how far that of a right kernel may be from it. */
typedef struct {
    double value, error;
} bounded;

typedef enum { SYMBOL_WHOLE, SYMBOL_REAL, SYMBOL_ARRAY } symbol_kind;

/* What a name stands for. An expression points to the symbols it uses. */
typedef struct {
    const char *name;
    symbol_kind kind;
    elem type;   /* of an array: integers are whole numbers */
    size_t axes; /* of an array */
    /* Filled in before an evaluation: */
    int64_t whole;
    double real;
    const void *data;        /* elements of an array, or */
    const bounded *computed; /* intermediate values */
    int64_t sizes[EXPRESSION_AXES], count;
} symbol;

/* The value of a name (letters, digits, _ and dots); false if there is none. */
typedef bool expression_names(void *context, const char *name, number *out);

/* The names that an expression may use. */
typedef struct {
    const symbol *symbols;
    size_t symbol_count;
    expression_names *find; /* NULL, or further names, whose values do not change */
    void *context;
    const char *const *indices; /* names of the indices that an evaluation is given */
    size_t index_count;         /* at most EXPRESSION_AXES */
} expression_scope;

typedef struct expression expression;

/* EXIT_USAGE with a sentence if the text is not an expression or uses an unknown name. The text and
 * the symbols must outlive it. */
expression *expression_parse(const char *text, const expression_scope *scope, err *e);
void expression_free(expression *x);
bool expression_is_whole(const expression *x);
/* All functions, for messages and manuals. */
const char *expression_list_functions(void);

/* How the kernel computes. */
typedef struct {
    bool fast;    /* not safe math */
    bool flushes; /* denormals may become 0 */
} arithmetic;

/* Call it when symbols have new values. */
void expression_start(expression *x, arithmetic how);
/* The value at these indices (EXPRESSION_AXES of them, or NULL); EXIT_USAGE if a subscript is past
 * the end or a number is too large. The error of a whole number is 0, or 1 if it was rounded from
 * one that may be on either side. */
bool expression_compute(expression *x, const int64_t *indices, bounded *out, err *e);
/* The last value of a whole expression, in every bit. */
int64_t expression_get_whole(const expression *x);

/* One value: parsed, evaluated and forgotten. */
bool expression_evaluate(const char *text, expression_names *find, void *context, number *out,
                         err *e);
