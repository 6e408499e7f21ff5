#include "array.h"

#include <assert.h>
#include <stdlib.h>

#include "size.h"

void *array_new(size_t count, size_t item_bytes) {
    void *items = calloc(count ? count : 1, item_bytes ? item_bytes : 1);
    assert(items);
    return items;
}

void *array_grow(void *items, size_t count, size_t *capacity, size_t item_bytes) {
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 16;
    items = realloc(items, size_multiply(*capacity, item_bytes));
    assert(items);
    return items;
}
