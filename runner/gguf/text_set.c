/* text_set: see text_set.h. Open addressing with linear probing. */
#include "text_set.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

enum { FIRST_SLOTS = 1024 };

void text_set_free(text_set *s) {
    for (size_t i = 0; i < s->copy_count; i++)
        free(s->copies[i]);
    free(s->copies);
    free(s->items);
    free(s->slots);
    *s = (text_set){0};
}

/* FNV-1a, with its high bits folded in because slots are chosen by the low ones. */
static uint64_t hash_text(gguf_text text) {
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < text.bytes; i++)
        h = (h ^ (unsigned char)text.data[i]) * 0x100000001B3u;
    return h ^ h >> 32;
}

static bool is_same(gguf_text a, gguf_text b) {
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* The slot that holds the text, or the empty one where it belongs. */
static size_t find_slot(const text_set *s, gguf_text text) {
    size_t mask = s->slot_count - 1, i = (size_t)hash_text(text) & mask;
    while (s->slots[i] != TEXT_NONE && !is_same(s->items[s->slots[i]], text))
        i = (i + 1) & mask;
    return i;
}

static void grow_slots(text_set *s) {
    s->slot_count = s->slot_count ? 2 * s->slot_count : FIRST_SLOTS;
    free(s->slots);
    s->slots = array_new(s->slot_count, sizeof *s->slots);
    memset(s->slots, 0xFF, s->slot_count * sizeof *s->slots);
    for (uint32_t i = 0; i < s->count; i++)
        s->slots[find_slot(s, s->items[i])] = i;
}

uint32_t text_set_find(const text_set *s, gguf_text text) {
    return s->slot_count ? s->slots[find_slot(s, text)] : TEXT_NONE;
}

uint32_t text_set_add(text_set *s, gguf_text text) {
    if (2 * (size_t)s->count >= s->slot_count)
        grow_slots(s);
    size_t slot = find_slot(s, text);
    if (s->slots[slot] != TEXT_NONE)
        return s->slots[slot];
    s->items = array_grow(s->items, s->count, &s->capacity, sizeof *s->items);
    s->items[s->count] = text;
    return s->slots[slot] = s->count++;
}

uint32_t text_set_add_copy(text_set *s, gguf_text text) {
    uint32_t known = text_set_find(s, text);
    if (known != TEXT_NONE)
        return known;
    s->copies = array_grow(s->copies, s->copy_count, &s->copy_capacity, sizeof *s->copies);
    char *copy = array_new(1, text.bytes + 1);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    s->copies[s->copy_count++] = copy;
    return text_set_add(s, (gguf_text){copy, text.bytes});
}
