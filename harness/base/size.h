/* size: multiplying sizes without silent overflow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* a * b, or an assertion: for sizes that come from our own tables. */
size_t size_multiply(size_t a, size_t b);
/* a * b into out; false on overflow: for sizes that come from files and the command line. */
bool size_multiply_checked(size_t a, size_t b, size_t *out);
