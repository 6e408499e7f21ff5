/* poison: memory that reads as NaN until something is written to it.
 *
 * A large buffer is not touched before it is used: its pages are copies, made at the first write, of
 * one small file that holds the pattern. A key-value cache for a long context costs what is in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POISON_LAZY_BYTES ((size_t)4 << 20) /* from this size on it is worth a mapping */

void poison_fill(void *at, size_t bytes, uint16_t pattern);
int poison_get_file(void); /* -1: it cannot be made */
/* Puts copies of the file over the pages there. */
bool poison_map(char *at, size_t bytes, int file);
