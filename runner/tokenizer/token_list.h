/* token_list: the ids of tokens, as many as are added. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t *items;
    size_t count, capacity;
} token_list;

void token_list_add(token_list *l, uint32_t id);
void token_list_free(token_list *l); /* empty again */
