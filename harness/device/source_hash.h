/* source_hash: identifies the text that a kernel was compiled from. Comments and white space do not count: a
 * number stays true when a comment is reworded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { SOURCE_HASH_SIZE = 17 };

struct library;

/* The first 16 hex digits of the SHA-256 of a file, or of all .metal files below a folder, of what they include in
 * quotes, in the order in which it is first included, and of the arrays that a description (.op) takes from
 * files. What is not beside a file is looked for in the folders of includes of the library's project (NULL: of
 * the one that was set). */
bool source_hash_find(const char *path, const struct library *lib, char hex[SOURCE_HASH_SIZE],
                      err *e);

/* Removes comments and, outside of literals, white space that does not separate words; returns the new
 * length. In a description of an op (.op) comments begin with #. */
size_t source_strip(char *text, bool is_description);

/* The end of the comment or the literal of C that begins at p, a literal at the latest with its line; p if none
 * does. */
const char *source_skip(const char *p);

/* What results depend on in C, as it was when this program was built. tools/sources.sh writes the table: an
 * installed program has no sources to look at. */
typedef struct {
    const char *name; /* "description:product/product", as in freshness.h */
    const char *sum;  /* of its files without comments and white space */
} built_part;

extern const built_part built_parts[];
extern const size_t built_part_count;
