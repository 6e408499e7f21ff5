/* object: what compiled kernels are: images of ELF on Linux; on macOS Mach-O, and beside the image the
 * object it was linked from.
 *
 * A kernel is code from somewhere. Before one is loaded, its object is asked what it wants of this process:
 * nothing may run when it is loaded, and it may call nothing that MSL does not have. On Linux the linked
 * image is asked. On macOS it is the object file: what it names there, the linker turns into tables of many
 * forms.
 *
 * Lines of the source come from the line table (DWARF 4, the version that compile.c asks for), which Apple's
 * linker leaves in the object file. An address of a linked kernel is translated there: the symbol before it
 * has the same name in both files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/device/device.h"

/* False, and a sentence that names what was found, if the object must not be loaded. */
bool soft_inspect(const char *path, const char *kernel, err *e);

/* Does the kernel's private memory fit on a fiber's stack? Reads and removes the list that the compiler
 * wrote beside the object. */
bool soft_inspect_stack(const char *object, const char *name, err *e);

/* True if both pipelines, of the software device, are the same instructions and data, byte for
 * byte, as the loader puts them in memory; debugging information does not count. False proves nothing. */
bool soft_is_same_code(const pipeline *a, const pipeline *b);

/* Lines ---------------------------------------------------------------------------------------- */

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

/* Mach-O --------------------------------------------------------------------------------------- */

/* A section of pointers to functions that the loader calls, and who they are. */
typedef struct {
    uint64_t bytes, relocations, relocation_count;
    unsigned width; /* of a pointer */
} macho_starter;

enum { MACHO_STARTERS = 8 };

typedef struct {
    cursor all;
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
