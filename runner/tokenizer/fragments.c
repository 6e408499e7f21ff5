#include "fragments.h"

#include <stdlib.h>

#include "harness/base/array.h"

static bool is_wanted(const special_index *x, uint32_t id) {
    uint8_t kind = x->s->kinds[id];
    return (kind & x->any) && !(kind & x->none);
}

static int longest_first(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x < y) - (x > y);
}

/* The lengths of all tokens that are wanted, each once; the caller frees them. */
static size_t *collect_lengths(const special_index *x, size_t *count) {
    size_t *lengths = array_new(x->texts->count, sizeof *lengths), all = 0, kept = 0;
    for (uint32_t id = 0; id < x->texts->count; id++)
        if (is_wanted(x, id))
            lengths[all++] = token_texts_get(x->texts, id).bytes;
    qsort(lengths, all, sizeof *lengths, longest_first);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || lengths[kept - 1] != lengths[i])
            lengths[kept++] = lengths[i];
    *count = kept;
    return lengths;
}

static special_length *find_length(special_index *x, size_t bytes) {
    size_t low = 0, high = x->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (x->lengths[middle].bytes >= bytes)
            low = middle;
        else
            high = middle;
    }
    return &x->lengths[low];
}

void special_index_build(special_index *x, const token_texts *texts, const special_tokens *s,
                         uint8_t any, uint8_t none) {
    *x = (special_index){.texts = texts, .s = s, .any = any, .none = none};
    size_t *lengths = collect_lengths(x, &x->count);
    x->lengths = array_new(x->count + 1, sizeof *x->lengths);
    for (size_t i = 0; i < x->count; i++)
        x->lengths[i].bytes = lengths[i];
    free(lengths);
    for (uint32_t id = 0; id < texts->count; id++) {
        gguf_text text = token_texts_get(texts, id);
        if (is_wanted(x, id))
            find_length(x, text.bytes)->first[(unsigned char)text.data[0]] = true;
    }
}

void special_index_free(special_index *x) {
    free(x->lengths);
    *x = (special_index){0};
}

static void add(fragment_list *list, size_t begin, size_t end, uint32_t token) {
    if (begin == end)
        return;
    *ARRAY_ADD(list->items, list->count, list->capacity) = (fragment){begin, end, token};
}

/* Cuts one piece of plain text at the tokens of one length. */
static void cut(const special_index *x, const special_length *l, const char *text, fragment f,
                fragment_list *out) {
    size_t from = f.begin;
    for (size_t i = f.begin; i < f.end && f.end - i >= l->bytes;) {
        uint32_t id = TOKEN_NONE;
        if (l->first[(unsigned char)text[i]])
            id = token_texts_find(x->texts, (gguf_text){text + i, l->bytes});
        if (id == TOKEN_NONE || !is_wanted(x, id)) {
            i++;
            continue;
        }
        add(out, from, i, TOKEN_NONE);
        add(out, i, i + l->bytes, id);
        from = i += l->bytes;
    }
    add(out, from, f.end, TOKEN_NONE);
}

fragment_list fragments_find(const special_index *x, const char *text, size_t bytes) {
    fragment_list list = {0};
    add(&list, 0, bytes, TOKEN_NONE);
    for (size_t l = 0; l < x->count; l++) {
        if (x->lengths[l].bytes > bytes)
            continue;
        fragment_list next = {0};
        for (size_t i = 0; i < list.count; i++) {
            fragment f = list.items[i];
            if (f.token == TOKEN_NONE)
                cut(x, &x->lengths[l], text, f, &next);
            else
                add(&next, f.begin, f.end, f.token);
        }
        free(list.items);
        list = next;
    }
    return list;
}
