/* unicode: see unicode.h. The tables are in unicode_ranges.c. */
#include "unicode.h"

#include <assert.h>
#include <stdbool.h>

/* Bytes of a sequence that starts with this one; 0: none does. */
static size_t count_sequence(unsigned char lead) {
    if (lead < 0x80)
        return 1;
    if (lead < 0xC0 || lead >= 0xF8)
        return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

size_t unicode_decode(const char *text, size_t bytes, uint32_t *point) {
    assert(bytes > 0);
    unsigned char lead = (unsigned char)text[0];
    size_t length = count_sequence(lead);
    uint32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
    bool whole = length > 0 && length <= bytes;
    for (size_t i = 1; whole && i < length; i++) {
        unsigned char next = (unsigned char)text[i];
        whole = (next & 0xC0) == 0x80;
        value = value << 6 | (next & 0x3Fu);
    }
    if (!whole || value > UNICODE_LAST) {
        *point = UNICODE_REPLACEMENT;
        return 1;
    }
    *point = value;
    return length;
}

size_t unicode_encode(uint32_t point, char out[UNICODE_BYTES]) {
    assert(point <= UNICODE_LAST);
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)((0xF00u >> length & 0xF0u) | point);
    return length;
}

static bool is_in(const unicode_range *ranges, size_t count, uint32_t point) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (point < ranges[middle].first)
            high = middle;
        else if (point > ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

unicode_class unicode_get_class(uint32_t point) {
    if (is_in(unicode_letters, unicode_letters_count, point))
        return UNICODE_LETTER;
    if (is_in(unicode_spaces, unicode_spaces_count, point))
        return UNICODE_SPACE;
    if (is_in(unicode_numbers, unicode_numbers_count, point))
        return UNICODE_NUMBER;
    return UNICODE_OTHER;
}
