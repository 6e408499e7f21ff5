/* text_set: numbers texts in the order in which they are added, and finds their numbers again.
 *
 * Texts are not copied unless they are added with a copy: they must outlive the set. */
#pragma once

#include "gguf.h"

#define TEXT_NONE UINT32_MAX

typedef struct {
    gguf_text *items;
    uint32_t count;
    size_t capacity;
    uint32_t *slots; /* numbers, or TEXT_NONE where empty; at most half of them are taken */
    size_t slot_count;
    char **copies;
    size_t copy_count, copy_capacity;
} text_set;

void text_set_free(text_set *s); /* empty again */

uint32_t text_set_find(const text_set *s, gguf_text text); /* TEXT_NONE: not there */
/* The number of a text, which is added if it is not there. */
uint32_t text_set_add(text_set *s, gguf_text text);
uint32_t text_set_add_copy(text_set *s, gguf_text text);
