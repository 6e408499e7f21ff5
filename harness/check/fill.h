/* fill: seeded random numbers and the input distributions that cases are run with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state[4];
} rng;

rng rng_new(uint64_t seed,
            const char *name); /* the same seed and name give the same numbers everywhere */
/* A random seed. It has 32 bits, so that it is easy to type again. */
uint64_t rng_draw_seed(void);
uint64_t rng_next(rng *r);
double rng_uniform(rng *r); /* [0, 1) */
double rng_normal(rng *r);
uint32_t rng_below(rng *r, uint32_t n);

typedef enum {
    INPUT_UNIFORM, /* [-1, 1) */
    INPUT_NORMAL,  /* standard normal, one in a hundred 30 times larger */
    INPUT_ZEROS,
    INPUT_DENORMALS, /* below the smallest normal f32 */
    INPUT_LARGE,     /* magnitudes around 1e12: squares and sums of products still fit an f32 */
    INPUT_NEGATIVE,  /* the same, all below 0: a maximum that starts too high stays wrong */
    INPUT_UNEVEN,    /* a few zeros, then magnitudes from 1 to 2^-12: only of held-out cases */
    INPUT_LEVEL,     /* about one value, and a larger one first: likewise */
    INPUT_MIXED,     /* magnitudes from 2^-30 to 2^40, and many 0, -0, 1 and -1: likewise */
    INPUT_SMALL,     /* standard normal times 1e-3 or 1e-2: likewise, as the rest */
    INPUT_ROWS,      /* runs of 64 to 1024 values, each of another magnitude, 1e-3 to 1e3 */
    INPUT_TIES,      /* nine values, 0 and -0 among them */
    INPUT_EQUAL,     /* one value, whose sums are exact */
    INPUT_OUTLIER,   /* normal, and one value 1000 times larger */
    INPUT_NAN,       /* mixed, and NaN of both signs: only of ops that copy */
    INPUT_COUNT
} distribution;

const char *distribution_get_name(distribution d);
bool distribution_find(const char *name, distribution *d);

void fill_f32(rng *r, distribution d, float *out, size_t count);
