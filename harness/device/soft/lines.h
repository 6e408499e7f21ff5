/* lines: which line of which file an address of a compiled kernel came from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* path is that of the loaded file (or of a Mach-O object), offset the address less the address it was
 * loaded at. */
bool soft_find_line(const char *path, uint64_t offset, char *file, size_t size, int *line);
