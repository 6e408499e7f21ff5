/* expression: the value of an arithmetic expression over names, written as in C.
 *
 *   (out_dim + 7) / 8      + - * / % and unary - !, < <= > >= == !=, && ||, c ? a : b
 *   divide_up(out_dim, 8)  also min(a, b) and max(a, b)
 *
 * Whole numbers stay whole (1/2 is 0, and an overflow is an error); with a number that has a
 * fraction, arithmetic is in double. Both sides of && || and ?: are computed. */
#pragma once

#include <stdint.h>

#include "err.h"

typedef struct {
    bool is_real;  /* has, or may have, a fraction */
    int64_t whole; /* if it has none */
    double real;   /* in any case */
} number;

number number_whole(int64_t value);
number number_real(double value);

/* The value of a name (letters, digits, _ and dots); false if there is none. */
typedef bool expression_names(void *context, const char *name, number *out);

/* EXIT_USAGE with a sentence if the text is no expression or a name has no value. */
bool expression_evaluate(const char *text, expression_names *find, void *context, number *out,
                         err *e);
