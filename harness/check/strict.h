/* strict: a file read as C++ for OpenCL, which finds the address-space mistakes of MSL.
 *
 * The file must have compiled for the software device before: what is wrong then is either a
 * mistake that C++ cannot see, or something that the strict parse is too strict about. The second
 * kind is told apart by what the compiler says; where it cannot be, the file is not taken. */
#ifndef ASSAY_STRICT_H
#define ASSAY_STRICT_H

#include "harness/base/remark.h"
#include "harness/device/msl/msl.h"

typedef struct {
    bool taken;    /* the whole file could be judged */
    char why[384]; /* if not: what stood in the way */
} strict_result;

/* False only if clang could not be asked. */
bool strict_check(const char *clang, const msl_unit *u, remark_list *out, strict_result *result,
                  err *e);

#endif
