/* The oracle of buffer_copy: the shortest one, and the pattern of all of them. Inputs are
 * read as the kernel reads them; the output is a double for each element, so that it carries no
 * rounding of its own that could be confused with the kernel's. */
#include "reference.h"

void reference_buffer_copy(const float *src, size_t count, double *dst) {
    for (size_t i = 0; i < count; i++)
        dst[i] = (double)src[i];
}
