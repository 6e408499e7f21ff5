/* poison: memory of buffers that reads as NaN until something is written to it.
 *
 * A large one is not touched before it is used: its pages are copies, made at the first write, of
 * one small file that holds the pattern. A key-value cache for a long context costs what is in it. */
#pragma once

#include <stddef.h>

/* Aligned to 16384; NULL if there is no memory. */
void *soft_poison_allocate(size_t bytes);
void soft_poison_free(void *memory);
