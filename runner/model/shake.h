/* shake: how far single precision may move what a reference computes in double precision.
 *
 * A reference that is shaken adds to each result a random error of the size that a kernel's roundings
 * have there, and carries it on: what reaches the logits is how much this model, with these weights and
 * this text, makes of such errors.
 *
 * A rounding errs by a random part of u = 2^-24 of what is rounded, with a standard deviation of
 * u / sqrt(3), and the variances of several add up. A sum rounds each of its terms and each sum of the
 * first few; added up one after another, as here, those are the largest, and lanes that add up parts of
 * them err less. SHAKE is by how much a device may be worse than that: functions such as exp err by
 * several roundings, and matrix units truncate. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/check/fill.h"

#define SHAKE 8

typedef struct {
    bool is_on;
    rng random;
} shaker;

/* A value on the way to which numbers were rounded the squares of which have this sum. */
static inline double shake(shaker *s, double value, double squares) {
    if (!s->is_on)
        return value;
    return value + SHAKE * 0x1p-24 * sqrt(squares / 3) * rng_normal(&s->random);
}

/* A value that a few operations made, none of them from larger numbers. */
static inline double shake_few(shaker *s, double value) {
    return shake(s, value, 4 * value * value);
}

typedef struct {
    double value, squares;
} shaken_sum;

static inline void shake_add(shaken_sum *sum, double term) {
    sum->value += term;
    sum->squares += term * term + sum->value * sum->value;
}

static inline double shake_end(shaker *s, const shaken_sum *sum) {
    return shake(s, sum->value, sum->squares);
}

/* What a reference computes with; all that it made is freed with it. */
typedef struct {
    shaker shaker;
    void **items;
    size_t count, capacity;
} reference_memory;

void *reference_make(reference_memory *r, size_t count, size_t item_bytes); /* all zeros */
