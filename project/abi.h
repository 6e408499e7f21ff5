/* abi: what a description that was compiled apart must have in common with the program. */
#pragma once

#include <stdint.h>

#include "harness/check/op.h"

/* Goes up when what a description may use changes its meaning. Sizes are compared besides. */
enum { ASSAY_ABI = 3 };

typedef struct {
    uint32_t version;
    uint32_t op, kernel, kernel_case, launch, oracle_io; /* bytes */
} assay_abi_facts;

#define ASSAY_ABI_FACTS                                                                            \
    {                                                                                              \
        ASSAY_ABI, sizeof(op), sizeof(kernel), sizeof(kernel_case), sizeof(launch),                \
            sizeof(oracle_io)                                                                      \
    }
