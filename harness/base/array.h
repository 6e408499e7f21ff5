/* array: room for one more item in an array that grows. */
#ifndef ASSAY_ARRAY_H
#define ASSAY_ARRAY_H

#include <stddef.h>

/* The items, with room for at least one more after `count` of them. No memory is an assertion: for
 * lists of our own, not for counts that a file claims. */
void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes);

#endif
