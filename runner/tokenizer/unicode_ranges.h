/* unicode_ranges: which code points are letters, numbers and white space. Tables for unicode.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t first, last;
} unicode_range;

/* In rising order. */
extern const unicode_range unicode_letters[], unicode_numbers[], unicode_spaces[];
extern const size_t unicode_letters_count, unicode_numbers_count, unicode_spaces_count;
