/* tar: an archive of small files, written to memory in the ustar format that every tar reads.
 *
 * Nothing about the machine goes in: files belong to user and group 0 without names, and all have the
 * same time. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Adds a file. The name has at most 99 bytes. */
void tar_add(FILE *out, const char *name, const void *data, size_t bytes, uint64_t seconds);
/* The end of the archive. */
void tar_end(FILE *out);
