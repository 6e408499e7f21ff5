/* inspect: a kernel is code from somewhere. Before one is loaded, its object is asked what it wants
 * of this process: nothing may run when it is loaded, and it may call nothing that MSL does not
 * have. */
#ifndef ASSAY_SOFT_INSPECT_H
#define ASSAY_SOFT_INSPECT_H

#include <stdbool.h>

#include "harness/base/err.h"

/* False, and a sentence that names what was found, if the object must not be loaded. */
bool soft_inspect(const char *object, const char *kernel, err *e);

#endif
