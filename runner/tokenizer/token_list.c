#include "token_list.h"

#include <stdlib.h>

#include "harness/base/array.h"

void token_list_add(token_list *l, uint32_t id) {
    *ARRAY_ADD(l->items, l->count, l->capacity) = id;
}

void token_list_free(token_list *l) {
    free(l->items);
    *l = (token_list){0};
}
