/* test_case: one case to run, named "kernel/shape/input". The caller, which knows the kernels,
 * decides which cases exist; the engines take lists of them. Its buffers and launches are a
 * kernel_case (op.h). */
#ifndef ASSAY_TEST_CASE_H
#define ASSAY_TEST_CASE_H

#include "op.h"

typedef struct {
    const op *op;
    const kernel *kernel;
    shape shape;
    distribution inputs;
    char name[160];
} test_case;

typedef struct {
    test_case *items;
    size_t count;
} case_list;

/* Finds the case with a name: workers are given only names. */
typedef bool case_finder(const char *name, test_case *out);

#endif
