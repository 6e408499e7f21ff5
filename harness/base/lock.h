/* lock: at most one process writes a file at a time. The lock is the system's: it ends with the
 * process that holds it, however that ends. */
#pragma once

#include <stdbool.h>

#include "err.h"

typedef struct lock lock;

/* The lock of a file, which need not exist; its folder must. NULL with EXIT_CANNOT and a sentence if
 * another process holds it. A file .NAME.lock stands beside it meanwhile. */
lock *lock_take(const char *path, err *e);
void lock_release(lock *l); /* NULL is fine */
