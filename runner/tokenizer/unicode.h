/* unicode: UTF-8 that may be broken, and the classes of code points that pre-tokenizers ask for.
 *
 * Decoding is lenient in the way that tokenizers have settled on. Overlong forms
 * and surrogates pass, and each byte that cannot be decoded is a U+FFFD of its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { UNICODE_REPLACEMENT = 0xFFFD, UNICODE_LAST = 0x10FFFF, UNICODE_BYTES = 4 };

typedef enum { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE } unicode_class;

/* The code point at the front of a text that is not empty, and how many bytes it took. */
size_t unicode_decode(const char *text, size_t bytes, uint32_t *point);
/* Writes a code point up to UNICODE_LAST as UTF-8 and returns how many bytes that took. */
size_t unicode_encode(uint32_t point, char out[UNICODE_BYTES]);

unicode_class unicode_get_class(uint32_t point);

/* The tables, in rising order. */
typedef struct {
    uint32_t first, last;
} unicode_range;
extern const unicode_range unicode_letters[], unicode_numbers[], unicode_spaces[];
extern const size_t unicode_letters_count, unicode_numbers_count, unicode_spaces_count;
