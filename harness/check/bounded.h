/* bounded: numbers with a bound of how far a right kernel may be from them.
 *
 * A first-order running error analysis. Elements and values are exact. Each operation carries the
 * errors of its operands on and adds its own: one rounding (u = 2^-24 of its result) or what the
 * Metal specification allows a function (accuracy.h). What a function makes of an error is the
 * difference to its value at both ends of the interval. Additions other than one of two exact values are charged with
 * the magnitudes of both sides, because a kernel may add in another order, or multiply first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/* How far f32 is from a number: what it costs to store it, or to write it as a literal. */
double bounded_get_rounding(double value);
/* A result with the error that its operands gave it and its own roundings. */
bounded bounded_make(arithmetic how, double value, double carried, double roundings);
/* is_loose: one of three or more terms, or a factor, which a kernel may compute in another form. */
bounded bounded_add(arithmetic how, bounded a, bounded b, bool is_loose);
bounded bounded_multiply(arithmetic how, bounded a, bounded b);
bounded bounded_divide(arithmetic how, bounded a, bounded b);
/* The larger or the smaller of two. */
bounded bounded_choose(bounded a, bounded b, bool larger);
/* Are they closer than their errors, so that a comparison may go either way? */
bool bounded_is_close(bounded a, bounded b);

/* A sum of many terms, in any order: { .count = 0 }, then each term, then its end. */
enum { SUM_LANES = 32 };
typedef struct {
    double value, error, magnitude, lanes[SUM_LANES], in_turn, in_lanes;
    int64_t count;
} bounded_sum;
void bounded_sum_add(bounded_sum *s, bounded term);
bounded bounded_sum_end(const bounded_sum *s, arithmetic how);

/* Functions of one or two numbers: exp, pow and so on, by name; NULL if there is none. */
typedef struct bounded_function bounded_function;
const bounded_function *bounded_find_function(const char *name);
int bounded_count_arguments(const bounded_function *f);
bounded bounded_apply(const bounded_function *f, arithmetic how, bounded a, bounded b);
/* The names of all, each after a blank. */
const char *bounded_list_functions(void);
