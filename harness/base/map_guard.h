/* map_guard: a file that becomes shorter while it is mapped.
 *
 * Reading past its new end raises SIGBUS, and there is no way back from there: the handler writes one
 * sentence that names the file and ends the program with EXIT_CANNOT. Faults elsewhere are none of
 * its business. */
#pragma once

#include <stddef.h>

/* `name` is for the sentence and is copied. Up to 16 maps; more are not guarded. */
void map_guard_add(const void *at, size_t bytes, const char *name);
void map_guard_remove(const void *at);
