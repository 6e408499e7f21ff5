/* source_hash: identifies the text that a kernel was compiled from. */
#pragma once

#include <stdbool.h>

#include "harness/base/err.h"

enum { SOURCE_HASH_SIZE = 17 };

/* The first 16 hex digits of the SHA-256 of a file and of what it includes in quotes, in the order
 * in which they are first included. */
bool source_hash_find(const char *path, char hex[SOURCE_HASH_SIZE], err *e);

/* The same of all .metal and .h files of a folder. */
bool source_hash_find_folder(const char *folder, char hex[SOURCE_HASH_SIZE], err *e);
