/* inspect: what compiled kernels are. A kernel is code from somewhere. Before one is loaded, its object is asked what it wants
 * of this process: nothing may run when it is loaded, and it may call nothing that MSL does not
 * have.
 *
 * On Linux the linked image is asked. On macOS it is the object file: what it names there, the
 * linker turns into tables of many forms. */
#pragma once

#include <stdbool.h>

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
