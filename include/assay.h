/* assay.h: what the description of an op needs. The only header to include.
 *
 * A description is a C file beside the .metal file, compiled and loaded by assay when it is first
 * used. It answers four questions: what is the right result (the oracle), how is the kernel
 * launched (buffers, constants, grid), which sizes are worth checking (the shapes), which kernels
 * are there (the table). examples/softcap_c/softcap.c is one, with comments. The types and functions
 * are in:
 *
 *   harness/check/op.h           op, kernel, shape: what a description fills in
 *   harness/check/kernel_case.h  a case, and the buffers of a case (case_input_f32, case_output)
 *   harness/device/launch.h      a launch: buffers, constants, grid; what an oracle is given
 *   kernels/record.h             shortcuts: record_args, weights in block formats
 *   reference/reference.h        Assay's own oracles, for kernels of the same ops
 *   harness/check/accuracy.h     how far Metal's functions may be off
 *
 * A file NAME.c has an op called NAME_op, as in `const op softcap_op = {...}`. One with several, or
 * with another name, lists them at its end: ASSAY_OPS(&first_op, &second_op); */
#pragma once

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "harness/check/op.h"
#include "kernels/record.h"
#include "project/abi.h"
#include "reference/reference.h"

/* What the headers were when the file was compiled; a program of another ABI does not load it. */
__attribute__((weak, visibility("default"))) extern const assay_abi_facts assay_abi;
const assay_abi_facts assay_abi = ASSAY_ABI_FACTS;

#define ASSAY_OPS(...)                                                                             \
    extern const op *const assay_ops[];                                                            \
    const op *const assay_ops[] = {__VA_ARGS__, NULL}
