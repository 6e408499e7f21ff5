/* macho: sections and symbols of Mach-O files, the objects and dynamic libraries of macOS.
 *
 * Apple's linker leaves the line table in the object file. An address of a linked kernel is
 * therefore translated: the symbol before it has the same name in both files. */
#pragma once

#include "lines.h"

/* A section of pointers to functions that the loader calls, and who they are. */
typedef struct {
    uint64_t bytes, relocations, relocation_count;
    unsigned width; /* of a pointer */
} macho_starter;

enum { MACHO_STARTERS = 8 };

typedef struct {
    const uint8_t *data;
    size_t bytes;
    bool is_object;               /* what a compiler writes, with its line table */
    cursor lines;                 /* __DWARF,__debug_line; empty where there is none */
    uint64_t base;                /* of __TEXT: where an image that is loaded at 0 begins */
    unsigned code;                /* the number of __TEXT,__text, from 1 */
    size_t symbols, symbol_count; /* nlist_64 */
    size_t names, names_bytes;
    macho_starter starters[MACHO_STARTERS];
    size_t starter_count;
    bool has_options; /* for the linker: libraries and the like */
} macho_file;

/* False if it is no 64-bit little-endian Mach-O file, or not a whole one. It points into data. */
bool macho_read(const uint8_t *data, size_t bytes, macho_file *out);

/* The address in the object of what has this address in the image that was linked from it. */
bool macho_translate(const macho_file *image, const macho_file *object, uint64_t address,
                     uint64_t *out);

/* The name of symbol i if others have to provide it, else NULL. It begins with an underscore where
 * C has none. */
const char *macho_get_undefined(const macho_file *f, size_t i);
/* Is symbol i what a function returns that is called at loading? */
bool macho_is_chosen(const macho_file *f, size_t i);
/* Is the function of this name the only one that the loader calls? */
bool macho_starts_only(const macho_file *f, const macho_starter *s, const char *name);
