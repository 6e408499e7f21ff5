/* compile: C++ text of one pipeline in, the file of a compiled kernel out; compiled once and kept in
 * the cache. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "abi.h"
#include "harness/base/err.h"
#include "harness/device/device.h"

typedef struct soft_compiler soft_compiler;

soft_compiler *soft_compiler_new(err *e); /* finds clang and the shim */
void soft_compiler_free(soft_compiler *c);
const char *soft_compiler_get_name(const soft_compiler *c);   /* its version, and where it is */
const char *soft_compiler_get_folder(const soft_compiler *c); /* of compiled kernels */

/* As fast as it goes; every access calls checked mode; the same with nothing optimised, so that no
 * operation happens before its turn; optimised as for a GPU, and what it does is counted. */
typedef enum { BUILD_FAST, BUILD_CHECKED, BUILD_TRACED, BUILD_COUNTED, BUILD_COUNT } soft_build;

/* Gives the file of the compiled kernel. name is the kernel's, for messages. */
bool soft_compile(soft_compiler *c, const char *text, const char *name, soft_build how,
                  math_mode math, char object[PATH_MAX], err *e);

/* Passes: what is done to the text of an unoptimised module with names (clang -S -emit-llvm -Xclang
 * -disable-llvm-passes -fno-discard-value-names). The caller frees what they return. */

/* The module with calls of the hooks in shim/cpu/checked.h, which tell checked mode about private variables. */
char *instrument_module(const char *module);

/* Reads the text without making code of it, as the C++ that this version of MSL is: 17 since 4.0, 14
 * before. *messages is what clang said; the caller frees it. False only if clang could not be asked. */
bool soft_compiler_check_syntax(soft_compiler *c, const char *text, int language, bool *is_right,
                                char **messages, err *e);
