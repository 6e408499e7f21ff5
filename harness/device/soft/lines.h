/* lines: which line of which file an address of a compiled kernel came from, by its line table (DWARF 4,
 * the version that compile.c asks for). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch of memory that is read from its beginning and never past its end. */
typedef struct {
    const uint8_t *at, *end;
} cursor;

/* A little-endian number of up to 8 bytes; 0 past the end. */
uint64_t cursor_take(cursor *c, size_t bytes);

/* What the name of a file of ours begins with, so that it is not taken for a kernel's header. */
#define DWARF_SHIM "shim/"

/* The file, without its folders, and the line of an address. */
bool dwarf_find_line(cursor table, uint64_t address, char *file, size_t size, int *line);

/* path is that of the loaded file (or of a Mach-O object), offset the address less the address it was
 * loaded at. */
bool soft_find_line(const char *path, uint64_t offset, char *file, size_t size, int *line);
