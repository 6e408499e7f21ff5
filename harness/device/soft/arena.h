/* arena: the memory that the program and the process that runs kernels share (engine.h).
 *
 * It is mapped before that process is made, at the same address in both, so that a pointer into it
 * means the same on both sides. What is known of its blocks stays in the program's own memory: a
 * kernel can change what is in a block, and nothing else.
 *
 * Checked mode has two things more. A second half of the memory holds a mark for each byte of the
 * first: was it written? And the first half can be seen at further addresses, one for each further
 * binding of a buffer, so that an index that leaves one binding does not land in the next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

typedef struct soft_arena soft_arena;

soft_arena *soft_arena_new(bool is_checked, err *e);
void soft_arena_free(soft_arena *a);

/* Memory of the process, which takes room where it is touched; at `at`, if that is not NULL. NULL: there is
 * none. */
void *soft_map(void *at, size_t bytes);

/* Memory that reads as zero, aligned to 16384, with at least `gap` unused bytes on both sides. NULL if
 * there is none. */
void *soft_arena_take(soft_arena *a, size_t bytes, size_t gap);
void soft_arena_give(soft_arena *a, void *at);
size_t soft_arena_get_bytes(const soft_arena *a, const void *at); /* of the block at `at` */
size_t soft_arena_get_taken(const soft_arena *a);                 /* by all blocks */

/* Where the marks of an address are; the same byte as view n, from 1, shows it, or NULL if the system
 * has no such memory. */
unsigned char *soft_arena_get_marks(const soft_arena *a, const void *at);
void *soft_arena_get_view(const soft_arena *a, void *at, int n);

/* For the process that runs kernels: makes the views, and everything inaccessible until it is opened;
 * and the file that the memory is, which must stay open until then. */
bool soft_arena_close_all(const soft_arena *a);
void soft_arena_open(const soft_arena *a, void *at, size_t bytes, bool is_open);
int soft_arena_get_file(const soft_arena *a);
