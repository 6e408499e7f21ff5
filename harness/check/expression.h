/* expression: arithmetic over names and arrays, written as in C. A text is parsed once and
 * evaluated many times, with a bound of how far a right kernel may be from it beside each value.
 *
 *   (out_dim + 7) / 8          + - * / %, & | ^ << >> ~ of whole numbers, unary - and !,
 *                              < <= > >= == !=, && ||, c ? a : b
 *   x[r, j]                    an element; one index counts all elements of an array
 *   sum(j < n: x[r, j] * w[j]) also max(j < n: ...) and min(j < n: ...)
 *   exp(x), min(a, b), ...     functions: those of expression.c, min, max, divide_up and int
 *
 * Whole numbers stay whole (1/2 is 0, and an overflow is an error): sizes, literals without a
 * point, elements of integer arrays. Everything else is a double. && || and ?: compute only the
 * side that is needed. A subscript past the end of its array is an error. A loop that depends on
 * nothing that changed since it was last computed is not computed again. A comparison of values that are
 * closer than their errors may go either way, so both sides of a ?: count. *
 * The bound is a first-order running error analysis. Elements and values are exact. Each operation carries the
 * errors of its operands on and adds its own: one rounding (u = 2^-24 of its result) or what the
 * Metal specification allows a function (accuracy.h). What a function makes of an error is the
 * difference to its value at both ends of the interval. Additions other than one of two exact values are charged with
 * the magnitudes of both sides, because a kernel may add in another order, or multiply first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/elem.h"

enum { EXPRESSION_AXES = 4 };

/* A number with a fraction, or a whole one, whose error is 1 if it was rounded from a number that may
 * be on either side of a step. Who has it knows which. */
typedef struct {
    union {
        double value;
        int64_t whole;
    };
    double error;
} bounded;

/* How the kernel computes. */
typedef struct {
    bool fast;    /* not safe math */
    bool flushes; /* denormals may become 0 */
} arithmetic;

typedef struct {
    bool is_real;  /* has, or may have, a fraction */
    int64_t whole; /* if it has none */
    double real;   /* in any case */
    double error;
} number;

number number_whole(int64_t value);
/* Stores it as an element of the type; false if it does not fit. */
bool number_store(const number *n, elem type, void *out);
/* Element i: a number with a fraction, or of an integer type all bits of a whole one. */
bounded number_read(elem type, const void *data, size_t i);
/* What an element of the type holds of a value. */
double number_get_stored(elem type, double value);

/* What a name stands for. An expression points to the symbols it uses. */
typedef struct {
    const char *name;
    elem type; /* integers are whole numbers; ELEM_COUNT: intermediate values */
    bool is_array;
    size_t axes; /* of an array */
    /* Filled in before an evaluation: */
    bounded value;
    const void *data;        /* elements of an array, or */
    const bounded *computed; /* intermediate values */
    int64_t sizes[EXPRESSION_AXES], count;
} symbol;

/* The names that an expression may use. */
typedef struct {
    const symbol *symbols;
    size_t symbol_count;
    const char *const *indices; /* names of the indices that an evaluation is given */
    size_t index_count;         /* at most EXPRESSION_AXES */
} expression_scope;

typedef struct expression expression;

/* EXIT_USAGE with a sentence if the text is not an expression or uses an unknown name. The text and
 * the symbols must outlive it. */
expression *expression_parse(const char *text, const expression_scope *scope, err *e);
void expression_free(expression *x);
bool expression_is_whole(const expression *x);

/* Call it when symbols have new values. */
void expression_start(expression *x, arithmetic how);
/* The value at these indices (EXPRESSION_AXES of them, or NULL); EXIT_USAGE if a subscript is past
 * the end or a number is too large. */
bool expression_compute(expression *x, const int64_t *indices, number *out, err *e);

/* One value: parsed, evaluated and forgotten. */
bool expression_evaluate(const char *text, const expression_scope *scope, number *out, err *e);
