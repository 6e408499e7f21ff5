/* strict: a file read as C++ for OpenCL, which finds the address-space mistakes of MSL.
 *
 * The file must already compile for the software device. An error is then either a mistake that C++
 * cannot see, or valid MSL that the strict parser rejects. The compiler's message tells which: what is
 * about types and names can be either, and such a file counts as not wholly judged; the rest is the
 * file's mistake. */
#pragma once

#include "harness/base/remark.h"
#include "harness/device/msl/msl.h"

typedef struct {
    bool taken;    /* the whole file could be judged */
    char why[384]; /* if not: the reason */
} strict_result;

/* False only if clang could not be run. */
bool strict_check(const char *clang, const msl_unit *u, remark_list *out, strict_result *result,
                  err *e);
