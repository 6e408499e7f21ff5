/* inspect: a kernel is code from somewhere. Before one is loaded, its object is asked what it wants
 * of this process: nothing may run when it is loaded, and it may call nothing that MSL does not
 * have.
 *
 * On Linux the linked image is asked. On macOS it is the object file: what it names there, the
 * linker turns into tables of many forms. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* False, and a sentence that names what was found, if the object must not be loaded. */
bool soft_inspect(const char *path, const char *kernel, err *e);

/* The same of an ELF image. */
bool inspect_elf(const void *data, size_t bytes, const char *kernel, err *e);
