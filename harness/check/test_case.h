/* test_case: one case to run, named "kernel/shape/input". Which ones there are is decided by whoever
 * knows the kernels; the engines take lists of them. */
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

/* The case of a name: how a worker, which is given a name, gets at what it means. */
typedef bool case_finder(const char *name, test_case *out);

#endif
