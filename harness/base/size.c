#include "size.h"

#include <assert.h>

bool size_multiply_checked(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

size_t size_multiply(size_t a, size_t b) {
    size_t product;
    bool fits_size = size_multiply_checked(a, b, &product);
    assert(fits_size);
    return fits_size ? product : 0;
}
