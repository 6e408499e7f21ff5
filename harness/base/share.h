/* share: shares a loop among the cores of this machine. */
#pragma once

#include <stddef.h>

/* Does the items from `from` to before `to`. It is called by several threads at a time. */
typedef void share_fn(void *context, size_t from, size_t to);

/* Calls `part` for all of 0 to count, in pieces of at least `least` items, and returns when all are done. With
 * few items, or if no thread can be started, it is a plain call. */
void share_run(size_t count, size_t least, share_fn *part, void *context);
