/* toolchain: finds the compilers that the project runs. It runs them only to ask their version. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* The clang that compiles kernels for the CPU: ASSAY_CLANG, or else the newest along PATH. version
 * (may be NULL) gets the first line of --version. The error names the package to install. */
bool toolchain_find_clang(char *path, size_t size, char *version, size_t version_size, err *e);

/* Something that understands `-E`: ASSAY_CLANG, any clang, or the system's C compiler. */
bool toolchain_find_preprocessor(char *path, size_t size, err *e);
