/* lint_ptx: does a .metal file compile for NVIDIA GPUs? Needs no GPU: clang makes PTX, and ptxas
 * assembles it if the CUDA toolkit is installed. */
#pragma once

#include "harness/base/err.h"
#include "harness/base/remark.h"
#include "harness/device/cuda/ptx.h"

typedef struct ptx_linter ptx_linter;

ptx_linter *ptx_linter_new(err *e); /* finds clang and libdevice */
void ptx_linter_free(ptx_linter *l);
const char *ptx_linter_get_name(const ptx_linter *l); /* what compiles, and what assembles */

typedef struct {
    remark_list remarks;
    size_t kernels, compiled;
} ptx_lint_report;

/* Every kernel of a file, with 1 for each function constant. False if the file cannot be read or
 * the compiler cannot be run; kernels that do not compile are remarks. */
bool ptx_linter_check(ptx_linter *l, const char *path, const msl_extras *extras,
                      ptx_lint_report *out, err *e);

/* One kernel, with 1 for each function constant, by ptxas, which must be there. code (may be NULL) gets its
 * machine code; the caller frees it. */
bool ptx_linter_has_assembler(const ptx_linter *l);
bool ptx_linter_measure(ptx_linter *l, const msl_unit *u, const char *kernel, math_mode math,
                        ptx_needs *needs, char **code, err *e);
