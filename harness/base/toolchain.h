/* toolchain: finds the compilers that the project runs, and tells what is wrong with them
 * from what is wrong with their input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

/* The clang that compiles kernels for the CPU: ASSAY_CLANG, or else the newest along PATH. version
 * (may be NULL) gets the first line of --version. The error names the package to install. */
bool toolchain_find_clang(char *path, size_t size, char *version, size_t version_size, err *e);

/* Has a compiler done what it can, with this exit status and these messages? Not where it could not write, or wrote
 * nothing of `made` (NULL: it writes nothing) and said that it did, or crashes for an empty file too: all that is the
 * machine's fault (err.h). clang: the compiler to try that with. */
bool toolchain_has_worked(const char *clang, const char *made, int status, const char *messages,
                          err *e);

/* Something that understands `-E`: ASSAY_CLANG, any clang, or the system's C compiler. */
bool toolchain_find_preprocessor(char *path, size_t size, err *e);
