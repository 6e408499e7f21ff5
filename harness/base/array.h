/* array: memory for items. Having none left is an assertion: this is for lists of our own, not for
 * counts that a file claims. */
#pragma once

#include <stddef.h>

/* `count` items, all zero; the caller frees them. */
void *array_new(size_t count, size_t item_bytes);

/* The items, with room for at least one more after `count` of them. */
void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes);
/* Makes room for one more item and counts it: a pointer to it, not set to anything. */
#define ARRAY_ADD(items, count, capacity)                                                          \
    ((items) = array_grow((items), (count), &(capacity), sizeof *(items)), &(items)[(count)++])
