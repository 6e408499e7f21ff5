/* bpe: see bpe.h. Builds the tables from a file that may be wrong; bpe_merge.c uses them. */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "bpe_parts.h"
#include "harness/base/array.h"
#include "unicode.h"

/* Bytes that are printable by themselves are written as they are; the others, in their order, with
 * the characters from U+0100 on. */
enum { MAPPED = 0x100, LOW = 0x21, HIGH = 0x7F, HIGH_END = 0xA1, SOFT_HYPHEN = 0xAD };
enum { MAPPED_HIGH = MAPPED + LOW, MAPPED_HYPHEN = MAPPED_HIGH + HIGH_END - HIGH };

uint32_t bpe_map_byte(unsigned char byte) {
    if (byte < LOW)
        return MAPPED + (uint32_t)byte;
    if (byte >= HIGH && byte < HIGH_END)
        return MAPPED_HIGH + (uint32_t)byte - HIGH;
    return byte == SOFT_HYPHEN ? MAPPED_HYPHEN : byte;
}

int bpe_unmap_byte(uint32_t point) {
    if (point < MAPPED)
        return bpe_map_byte((unsigned char)point) == point ? (int)point : -1;
    if (point < MAPPED_HIGH)
        return (int)point - MAPPED;
    if (point < MAPPED_HYPHEN)
        return (int)point - MAPPED_HIGH + HIGH;
    return point == MAPPED_HYPHEN ? SOFT_HYPHEN : -1;
}

static size_t find_slot(const bpe *b, uint32_t left, uint32_t right) {
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    size_t mask = b->slot_count - 1, i = (size_t)(h ^ h >> 32) & mask;
    for (; b->slots[i] != BPE_NO_MERGE; i = (i + 1) & mask) {
        const bpe_merge *m = &b->merges[b->slots[i]];
        if (m->left == left && m->right == right)
            break;
    }
    return i;
}

uint32_t bpe_find_merge(const bpe *b, uint32_t left, uint32_t right) {
    return b->slots[find_slot(b, left, right)];
}

static void add_bytes(bpe *b) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[UNICODE_BYTES];
        size_t length = unicode_encode(bpe_map_byte((unsigned char)byte), text);
        b->bytes[byte] = text_set_add_copy(&b->texts->set, (gguf_text){text, length});
    }
}

/* "A B": A may begin with a space, so the first character is never the one between. */
static bool split_merge(gguf_text merge, gguf_text *left, gguf_text *right) {
    const char *space = merge.bytes > 2 ? memchr(merge.data + 1, ' ', merge.bytes - 2) : NULL;
    if (!space)
        return false;
    *left = (gguf_text){merge.data, (size_t)(space - merge.data)};
    *right = (gguf_text){space + 1, merge.bytes - left->bytes - 1};
    return true;
}

static void add_merge(bpe *b, gguf_text left, gguf_text right, char *joined) {
    memcpy(joined, left.data, left.bytes);
    memcpy(joined + left.bytes, right.data, right.bytes);
    bpe_merge m = {
        .left = text_set_add(&b->texts->set, left),
        .right = text_set_add(&b->texts->set, right),
        .result = text_set_add_copy(&b->texts->set, (gguf_text){joined, left.bytes + right.bytes})};
    uint32_t rank = b->merge_count++;
    b->merges[rank] = m;
    size_t slot = find_slot(b, m.left, m.right);
    if (b->slots[slot] == BPE_NO_MERGE) /* else the pair came before, and that is its rank */
        b->slots[slot] = rank;
}

static bool add_merges(bpe *b, const gguf_value *merges, err *e) {
    if (merges->count > TOKEN_TEXTS_MAX)
        return err_set(e, EXIT_USAGE,
                       "tokenizer.ggml.merges has %zu merges; at most %d are possible",
                       merges->count, (int)TOKEN_TEXTS_MAX);
    size_t longest = 0;
    for (size_t i = 0; i < merges->count; i++)
        if (merges->texts[i].bytes > longest)
            longest = merges->texts[i].bytes;
    for (b->slot_count = 2; b->slot_count < 2 * merges->count;)
        b->slot_count *= 2;
    b->slots = array_new(b->slot_count, sizeof *b->slots);
    b->merges = array_new(merges->count + 1, sizeof *b->merges);
    char *joined = array_new(1, longest + 1);
    memset(b->slots, 0xFF, b->slot_count * sizeof *b->slots);
    bool ok = true;
    for (size_t i = 0; i < merges->count && ok; i++) {
        gguf_text left, right;
        char shown[48];
        ok = split_merge(merges->texts[i], &left, &right);
        if (ok)
            add_merge(b, left, right, joined);
        else
            err_set(e, EXIT_USAGE,
                    "merge %zu of tokenizer.ggml.merges is '%s', which is not two texts with a "
                    "space between them",
                    i, gguf_print_text(merges->texts[i], shown, sizeof shown));
    }
    free(joined);
    return ok;
}

bool bpe_build(bpe *b, token_texts *texts, const gguf_value *merges, bool whole_words, err *e) {
    *b = (bpe){.texts = texts, .whole_words = whole_words};
    add_bytes(b);
    return add_merges(b, merges, e);
}

void bpe_free(bpe *b) {
    free(b->merges);
    free(b->slots);
    *b = (bpe){0};
}
