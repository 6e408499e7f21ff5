/* pieces: see pieces.h.
 *
 * The one surprise: a normal token may hold characters that stand for no byte. They are written out
 * as [UNK_BYTE_0xe4b8ad], so that a broken vocabulary is seen and not silently mended. */
#include "pieces.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"

enum { UNKNOWN_ROOM = 32 };

static size_t print_unknown(uint32_t point, char out[UNKNOWN_ROOM]) {
    char utf8[UNICODE_BYTES];
    size_t bytes = unicode_encode(point, utf8);
    int length = snprintf(out, UNKNOWN_ROOM, "[UNK_BYTE_0x");
    for (size_t i = 0; i < bytes; i++)
        length += snprintf(out + length, UNKNOWN_ROOM - (size_t)length, "%02x",
                           (unsigned)(unsigned char)utf8[i]);
    length += snprintf(out + length, UNKNOWN_ROOM - (size_t)length, "]");
    return (size_t)length;
}

/* The bytes of a normal token into out (NULL: they are only counted). */
static size_t unmap_text(gguf_text text, char *out) {
    size_t count = 0;
    for (size_t i = 0; i < text.bytes;) {
        uint32_t point;
        char unknown[UNKNOWN_ROOM];
        i += unicode_decode(text.data + i, text.bytes - i, &point);
        int byte = bpe_unmap_byte(point);
        size_t length = byte < 0 ? print_unknown(point, unknown) : 1;
        if (out && byte < 0)
            memcpy(out + count, unknown, length);
        else if (out)
            out[count] = (char)byte;
        count += length;
    }
    return count;
}

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

static size_t write_piece(const bpe *b, const special_tokens *s, uint32_t id, char *out) {
    gguf_text text = bpe_get_text(b, id);
    char byte;
    if (s->kinds[id] & KIND_NORMAL)
        return unmap_text(text, out);
    if (!(s->kinds[id] & KIND_BYTE) || !read_byte(text, &byte))
        return 0;
    if (out)
        *out = byte;
    return 1;
}

void token_pieces_build(token_pieces *p, const bpe *b, const special_tokens *s) {
    const uint8_t as_it_is = KIND_CONTROL | KIND_UNKNOWN | KIND_USER;
    size_t total = 0, at = 0;
    for (uint32_t id = 0; id < b->token_count; id++)
        if (!(s->kinds[id] & as_it_is))
            total += write_piece(b, s, id, NULL);
    p->items = malloc(b->token_count * sizeof *p->items);
    p->bytes = malloc(total + 1);
    assert(p->items && p->bytes);
    for (uint32_t id = 0; id < b->token_count; id++) {
        if (s->kinds[id] & as_it_is) {
            p->items[id] = bpe_get_text(b, id);
            continue;
        }
        size_t length = write_piece(b, s, id, p->bytes + at);
        p->items[id] = (gguf_text){p->bytes + at, length};
        at += length;
    }
}

void token_pieces_free(token_pieces *p) {
    free(p->items);
    free(p->bytes);
    *p = (token_pieces){0};
}
