/* compile: C++ text of one pipeline in, a loaded kernel out; compiled once and kept in the cache. */
#ifndef ASSAY_SOFT_COMPILE_H
#define ASSAY_SOFT_COMPILE_H

#include <stdbool.h>

#include "../err.h"
#include "abi.h"

typedef struct soft_compiler soft_compiler;

soft_compiler *soft_compiler_new(err *e); /* finds clang and the shim */
void soft_compiler_free(soft_compiler *c);
const char *soft_compiler_get_name(const soft_compiler *c); /* its version, and where it is */

/* *handle is what soft_unload needs. kernel is the name for messages. */
const soft_kernel *soft_compile(soft_compiler *c, const char *text, const char *kernel,
                                void **handle, err *e);
void soft_unload(void *handle);

#endif
