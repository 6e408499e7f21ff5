/* size: multiplying sizes without silent overflow. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* a * b into out; false on overflow: for sizes that come from files and the command line. */
static inline bool size_multiply_checked(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* a * b, or an assertion: for sizes that come from our own tables. */
static inline size_t size_multiply(size_t a, size_t b) {
    size_t all = 0;
    bool fits_size = size_multiply_checked(a, b, &all);
    assert(fits_size);
    return fits_size ? all : 0;
}
