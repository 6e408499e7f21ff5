/* inspect: a kernel is code from somewhere. Before one is loaded, its object is asked what it wants
 * of this process: nothing may run when it is loaded, and it may call nothing that MSL does not
 * have.
 *
 * On Linux the linked image is asked. On macOS it is the object file: what it names there, the
 * linker turns into tables of many forms. */
#ifndef ASSAY_SOFT_INSPECT_H
#define ASSAY_SOFT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* False, and a sentence that names what was found, if the object must not be loaded. */
bool soft_inspect(const char *path, const char *kernel, err *e);

/* For the readers of the two kinds of objects: inspect_elf.c, and inspect.c with macho.h. */
bool inspect_elf(const void *data, size_t bytes, const char *kernel, err *e);
bool inspect_is_allowed(const char *name);
bool inspect_refuse(const char *kernel, const char *why, const char *what, err *e); /* false */
#define INSPECT_CALLS "uses '"
#define INSPECT_STARTS "has code that runs when it is loaded (a constructor)"
#define INSPECT_CHOSEN "has a function that is chosen when it is loaded"
#define INSPECT_LIBRARY "wants another library"

#endif
