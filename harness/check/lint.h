/* lint: finds mistakes in a .metal file without running it.
 *
 * A file is read as Apple's compiler reads it, without __ASSAY__, compiled for the software device,
 * read again as C++ for OpenCL, which knows address spaces, and searched for what neither
 * reports:
 *     position-type       a thread position that is not uint or ushort, or an index that is a vector
 *     position-shape      positions of one kernel with different numbers of components
 *     buffer-index        two parameters with one index, or an index past the last
 *     buffer-value        a buffer that is neither a pointer nor a reference
 *     kernel-result       a kernel that returns a value
 *     threadgroup-value   a threadgroup variable with a first value (a warning)
 *     return-value        a function that must return a value and may not (a warning)
 *     recursion           functions that call themselves, also through others
 *     undefined           a helper that is declared, called and never defined
 *     kernel-call         a kernel that calls a kernel
 *     threadgroup-index   a threadgroup parameter without [[threadgroup(n)]]
 *     language            lambdas before MSL 3.2, noexcept, long long, goto, labels, virtual methods,
 *                         double, arrays of variable or no length, register, thread_local, static in
 *                         functions, new, kernels with one name, functions that a type does not have
 *     version             names that the language has in newer versions only
 *     address-space       pointer and reference types without one
 *     threadgroup-memory  more than 32 KB of it
 *     reserved-name       keywords as names, names that begin with two underscores
 *     environment         a text that asks which compiler, processor, system or harness reads it
 *     missing-guard       a store by thread position that is compared with nothing (a warning)
 *     fast-math           a test for NaN or infinity, which fast math may leave out (a warning)
 *     not-linted          a file that compiles and that the strict parse cannot judge as a whole (a warning)
 *     unsupported         kernels that cannot be run here (a warning)
 * A warning is silenced by a comment NOLINT(rule) on its line, other than not-linted.
 *
 * Templates are compiled as the file instantiates them; the strict parse sees them once, as
 * written. */
#pragma once

#include "harness/base/err.h"
#include "harness/base/remark.h"
#include "harness/device/cuda/ptx.h"
#include "harness/device/diagnostic.h"
#include "harness/device/msl/msl.h"

/* What the file read as C++ for OpenCL gave. */
typedef struct {
    bool taken;    /* the whole file could be judged */
    char why[384]; /* if not: the reason */
    int line;      /* and where, or 1 if that is in another file */
} strict_result;

typedef struct {
    char name[128];
    int line;
    bool supported; /* can be launched here, if it compiles */
    bool compiles;
} lint_kernel;

typedef struct {
    remark_list remarks; /* sorted */
    lint_kernel *kernels;
    size_t kernel_count;
    bool compiled;        /* the file as a whole */
    strict_result strict; /* of a file that compiled */
} lint_report;

#define LINT_NOT_LINTED "not-linted" /* the rule of such a remark */

typedef struct linter linter;
linter *linter_new(err *e); /* finds the compiler */
void linter_free(linter *l);

/* False if the file cannot be read or the compiler cannot be run. */
bool linter_check(linter *l, const char *path, const msl_extras *extras, lint_report *out, err *e);
void lint_report_free(lint_report *r);

/* A part of linter_check: a file that compiles, read as C++ for OpenCL; false only if clang could not be run. */
bool strict_check(const char *clang, const msl_unit *u, remark_list *out, strict_result *result,
                  err *e);

/* For NVIDIA GPUs, without one: clang makes PTX, and ptxas assembles it if the CUDA toolkit is
 * installed. */
enum { LINT_CAPABILITY = 90 }; /* of the GPU that PTX is made for */

/* Every kernel of a file, with 1 for each function constant; *compiled of them do. False if the file cannot be
 * read or the compiler cannot be run; kernels that do not compile are remarks. */
bool lint_check_ptx(ptx_compiler *c, const char *path, const msl_extras *extras, remark_list *out,
                    size_t *kernels, size_t *compiled, err *e);

/* One kernel, with 1 for each function constant, by ptxas, which must be there. code (may be NULL) gets its
 * machine code; the caller frees it. */
bool lint_measure_ptx(ptx_compiler *c, const msl_unit *u, const char *kernel, math_mode math,
                      ptx_needs *needs, char **code, err *e);
