/* bpe_merge: joins the symbols of one word; see bpe.h. Building the tables is in bpe.c.
 *
 * The heap holds numbers made of the rank of a merge and the place of its left symbol, so that the
 * smallest is the merge that comes next: lowest rank, then leftmost. Entries are never taken back:
 * one is good if the pair that stands at its place now has the same rank. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_parts.h"
#include "unicode.h"

#define END UINT32_MAX /* in previous and next: there is no neighbour */

void bpe_work_free(bpe_work *w) {
    free(w->symbols);
    free(w->previous);
    free(w->next);
    free(w->heap);
    free(w->text);
    *w = (bpe_work){0};
}

static void *grow(void *array, size_t count, size_t size) {
    array = realloc(array, count * size);
    assert(array);
    return array;
}

/* A merge leaves one symbol fewer and adds at most two pairs, so 3n entries are enough. */
static void reserve(bpe_work *w, size_t bytes) {
    if (bytes <= w->capacity)
        return;
    w->capacity = bytes < 64 ? 64 : 2 * bytes;
    w->symbols = grow(w->symbols, w->capacity, sizeof *w->symbols);
    w->previous = grow(w->previous, w->capacity, sizeof *w->previous);
    w->next = grow(w->next, w->capacity, sizeof *w->next);
    w->heap = grow(w->heap, w->capacity, 3 * sizeof *w->heap);
}

static void push(bpe_work *w, uint64_t value) {
    assert(w->heap_count < 3 * w->capacity);
    size_t i = w->heap_count++;
    for (size_t up; i > 0 && w->heap[up = (i - 1) / 2] > value; i = up)
        w->heap[i] = w->heap[up];
    w->heap[i] = value;
}

static uint64_t pop(bpe_work *w) {
    uint64_t top = w->heap[0], value = w->heap[--w->heap_count];
    size_t i = 0;
    for (size_t down; (down = 2 * i + 1) < w->heap_count; i = down) {
        if (down + 1 < w->heap_count && w->heap[down + 1] < w->heap[down])
            down++;
        if (w->heap[down] >= value)
            break;
        w->heap[i] = w->heap[down];
    }
    w->heap[i] = value;
    return top;
}

/* The rank of the pair whose left symbol is at `left`. */
static uint32_t find_rank(const bpe *b, const bpe_work *w, uint32_t left) {
    if (left == END || w->symbols[left] == TEXT_NONE || w->next[left] == END)
        return BPE_NO_MERGE;
    return bpe_find_merge(b, w->symbols[left], w->symbols[w->next[left]]);
}

static void push_pair(const bpe *b, bpe_work *w, uint32_t left) {
    uint32_t rank = find_rank(b, w, left);
    if (rank != BPE_NO_MERGE)
        push(w, (uint64_t)rank << 32 | left);
}

static void start(const bpe *b, bpe_work *w, const char *word, uint32_t bytes) {
    reserve(w, bytes);
    w->heap_count = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        w->symbols[i] = b->bytes[(unsigned char)word[i]];
        w->previous[i] = i ? i - 1 : END;
        w->next[i] = i + 1 < bytes ? i + 1 : END;
    }
    for (uint32_t i = 0; i + 1 < bytes; i++)
        push_pair(b, w, i);
}

static void join(const bpe *b, bpe_work *w, uint32_t left, uint32_t rank) {
    uint32_t right = w->next[left], after = w->next[right];
    w->symbols[left] = b->merges[rank].result;
    w->symbols[right] = TEXT_NONE;
    w->next[left] = after;
    if (after != END)
        w->previous[after] = left;
    push_pair(b, w, w->previous[left]);
    push_pair(b, w, left);
}

static void emit(const bpe *b, uint32_t symbol, token_list *out) {
    if (symbol < b->texts->count) {
        token_list_add(out, symbol);
        return;
    }
    gguf_text text = b->texts->set.items[symbol];
    for (size_t i = 0; i < text.bytes; i++) {
        uint32_t token = token_texts_find(b->texts, (gguf_text){text.data + i, 1});
        if (token != TOKEN_NONE)
            token_list_add(out, token);
    }
}

/* The token that is the whole word, or TOKEN_NONE. */
static uint32_t find_whole(const bpe *b, bpe_work *w, const char *word, size_t bytes) {
    if (2 * bytes > w->text_capacity) { /* no byte is written with more than two */
        w->text_capacity = bytes < 64 ? 128 : 4 * bytes;
        w->text = grow(w->text, w->text_capacity, 1);
    }
    size_t length = 0;
    for (size_t i = 0; i < bytes; i++)
        length += unicode_encode(bpe_map_byte((unsigned char)word[i]), w->text + length);
    return token_texts_find(b->texts, (gguf_text){w->text, length});
}

void bpe_encode(const bpe *b, bpe_work *w, const char *word, size_t bytes, token_list *out) {
    assert(bytes > 0 && bytes <= TOKENIZER_TEXT_MAX);
    uint32_t whole = b->whole_words ? find_whole(b, w, word, bytes) : TOKEN_NONE;
    if (whole != TOKEN_NONE) {
        token_list_add(out, whole);
        return;
    }
    start(b, w, word, (uint32_t)bytes);
    while (w->heap_count > 0) {
        uint64_t entry = pop(w);
        uint32_t left = (uint32_t)entry, rank = (uint32_t)(entry >> 32);
        if (find_rank(b, w, left) == rank)
            join(b, w, left, rank);
    }
    for (uint32_t i = 0; i != END; i = w->next[i])
        emit(b, w->symbols[i], out);
}
