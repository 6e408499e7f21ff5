#include "pieces.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

/* "<0x0A>" is the byte 10. */
static bool read_byte(gguf_text text, char *out) {
    if (text.bytes != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>')
        return false;
    char digits[3] = {text.data[3], text.data[4], 0};
    if (strspn(digits, "0123456789abcdefABCDEF") != 2)
        return false;
    *out = (char)strtoul(digits, NULL, 16);
    return true;
}

static size_t write_piece(const tokenizer_kind *kind, gguf_text text, uint8_t kinds, char *out) {
    char byte;
    if (kinds & KIND_NORMAL)
        return kind->spell(text, out);
    if (!(kinds & KIND_BYTE) || !read_byte(text, &byte))
        return 0;
    if (out)
        *out = byte;
    return 1;
}

void token_pieces_build(token_pieces *p, const tokenizer_kind *kind, const token_texts *t,
                        const special_tokens *s) {
    const uint8_t as_it_is = KIND_CONTROL | KIND_UNKNOWN | KIND_USER;
    size_t total = 0, at = 0;
    for (uint32_t id = 0; id < t->count; id++)
        if (!(s->kinds[id] & as_it_is))
            total += write_piece(kind, token_texts_get(t, id), s->kinds[id], NULL);
    p->items = array_new(t->count, sizeof *p->items);
    p->bytes = array_new(1, total + 1);
    for (uint32_t id = 0; id < t->count; id++) {
        if (s->kinds[id] & as_it_is) {
            p->items[id] = token_texts_get(t, id);
            continue;
        }
        size_t length = write_piece(kind, token_texts_get(t, id), s->kinds[id], p->bytes + at);
        p->items[id] = (gguf_text){p->bytes + at, length};
        at += length;
    }
}

void token_pieces_free(token_pieces *p) {
    free(p->items);
    free(p->bytes);
    *p = (token_pieces){0};
}
