/* ptx_trial: kernels written in PTX and run by NVIDIA's driver itself, or by its double. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/device/cuda/driver.h"

/* At the start of a suite. With ASSAY_DEVICE=cuda, on a GPU or on the double of its driver; what is
 * undefined on a GPU, on the double only. */
void ptx_trial_begin(void);
bool ptx_trial_has_driver(void);
bool ptx_trial_is_double(void);

#define NEEDS_DRIVER()                                                                             \
    do {                                                                                           \
        if (!ptx_trial_has_driver())                                                               \
            SKIPm("only with ASSAY_DEVICE=cuda");                                                  \
    } while (0)

#define NEEDS_DOUBLE()                                                                             \
    do {                                                                                           \
        if (!ptx_trial_is_double())                                                                \
            SKIPm("only on the double of NVIDIA's driver");                                        \
    } while (0)

/* One launch of one block, or of `blocks`. data (words long) is copied to the GPU and back; its
 * address there is the first parameter, `given` the next two. granted: dynamic bytes that the
 * function asks to be allowed. */
typedef struct {
    const char *ptx;
    uint32_t blocks, threads, dynamic_bytes, granted;
    uint32_t given[2];
    uint32_t *data;
    size_t words;
} trial;

CUresult ptx_trial_run(const trial *t);

/* A kernel with its address in %rd1, its two numbers in %r1 and %r2, its thread in %r3. */
#define KERNEL(variables, body) KERNEL_WITH("", variables, body)
#define KERNEL_WITH(directives, variables, body)                                                   \
    ".version 8.1\n.target sm_90\n.address_size 64\n" variables                                    \
    ".visible .entry trial(.param .align 8 .b8 trial_param_0[16])\n" directives "{\n"              \
    ".reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"                                   \
    "ld.param.u64 %rd1, [trial_param_0];\ncvta.to.global.u64 %rd1, %rd1;\n"                        \
    "ld.param.u32 %r1, [trial_param_0+8];\nld.param.u32 %r2, [trial_param_0+12];\n"                \
    "mov.u32 %r3, %tid.x;\n" body "ret;\n}\n"
