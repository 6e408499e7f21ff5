/* source_hash: identifies the text that a kernel was compiled from. Comments and white space do not count: a
 * number stays true when a comment is reworded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { SOURCE_HASH_SIZE = 17 };

struct library;

/* The first 16 hex digits of the SHA-256 of a file, of what it includes in quotes, in the order in which
 * they are first included, and of the arrays that a description (.op) takes from files. What is not
 * beside a file is looked for in the folders of includes of the library's project (NULL: of the one
 * that was set). */
bool source_hash_find(const char *path, const struct library *lib, char hex[SOURCE_HASH_SIZE],
                      err *e);

/* The same of all .metal and .h files of a folder. */
bool source_hash_find_folder(const char *folder, char hex[SOURCE_HASH_SIZE], err *e);

/* Removes comments and, outside of literals, white space that does not separate words; returns the new
 * length. In a description of an op (.op) comments begin with #. */
size_t source_strip(char *text, bool is_description);

/* The C files that results depend on, as they were when this program was built. tools/sources.sh writes the
 * table: an installed program has no sources to look at. */
typedef struct {
    const char *path;     /* "kernels/product/product.c" */
    const char *sum;      /* of its text without comments and white space */
    const char *includes; /* what it includes in quotes; a space after each */
} source_file;

extern const source_file source_files[];
extern const size_t source_file_count;
