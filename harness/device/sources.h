/* sources: the C files that results depend on, as they were when this program was built. tools/sources.sh
 * writes the table: an installed program has no sources to look at. */
#pragma once

#include <stddef.h>

typedef struct {
    const char *path;     /* "kernels/product/product.c" */
    const char *sum;      /* of its text without comments and white space */
    const char *includes; /* what it includes in quotes; a space after each */
} source_file;

extern const source_file source_files[];
extern const size_t source_file_count;
