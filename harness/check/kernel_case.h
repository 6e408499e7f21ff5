/* kernel_case: a kernel with a shape and an input, named "kernel/shape/input".
 *
 * Those who know the kernels decide which cases exist; engines take lists of them. A case that is
 * open has a tape and the buffers of its launches. */
#pragma once

#include "op.h"

struct kernel_case {
    const op *op;
    const kernel *kernel;
    shape shape;
    distribution inputs;
    char name[160]; /* "rmsnorm_simdgroup/3x576/normal" */
    /* While it is open: */
    uint64_t seed;
    rng random; /* seeded from seed and name */
    device *device;
    tape *tape;
    buffer *buffers[64]; /* freed with the case */
    size_t buffer_count;
};

typedef struct {
    kernel_case *items;
    size_t count;
} case_list;

/* Finds the case with a name: workers are given only names. */
typedef bool case_finder(const char *name, kernel_case *out);

kernel_case case_new(const op *o, const kernel *k, const shape *s, distribution inputs);
/* Builds its buffers and its tape; an error if the kernel does not take the shape. Close it, also after a failure; what was never opened may be
 * closed too. */
bool case_open(kernel_case *c, library *lib, uint64_t seed, err *e);
void case_close(kernel_case *c);

/* Buffers of an open case, for op.build. The label appears in messages. */
bool case_input_f32(kernel_case *c, const char *label, size_t count, slice *out,
                    err *e); /* filled from c->inputs */
bool case_input_bytes(kernel_case *c, const char *label, const void *data, size_t bytes, slice *out,
                      err *e);
bool case_output(kernel_case *c, const char *label, size_t bytes, slice *out,
                 err *e); /* poisoned */
