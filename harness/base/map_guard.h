/* map_guard: a file that becomes shorter while it is mapped.
 *
 * Reading past its new end raises SIGBUS, and there is no way back from there: the handler writes one
 * sentence that names the file and ends the program with EXIT_CANNOT. Faults elsewhere are none of
 * its business.
 *
 * The file stays open, so that another process can be given the same pages. */
#pragma once

#include <stddef.h>

/* All of `file` is mapped at `at`. `name` is for the sentence; it is copied, and so is the descriptor.
 * Up to 16 maps; more are not guarded. */
void map_guard_add(const void *at, size_t bytes, const char *name, int file);
/* The file of the guarded map that has all these bytes, and where that map is; -1: there is none. */
int map_guard_find(const void *memory, size_t bytes, const char **at, size_t *map_bytes);
void map_guard_remove(const void *at);
