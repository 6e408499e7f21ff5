/* op: what the harness needs to know about a family of kernels that compute the same thing.
 *
 * kernels/<op>.c fills one of these; kernels/registry.c lists them all. The harness enumerates
 * cases (kernel x shape x input distribution) from it and builds each as a tape. */
#ifndef ASSAY_OP_H
#define ASSAY_OP_H

#include "fill.h"
#include "harness/device/tape.h"

enum { SHAPE_DIMS = 5 };

/* Sizes of one case, in the order of op.dims: {out, in}, {rows, dim}, ... Unused ones are 0. */
typedef struct {
    uint32_t dim[SHAPE_DIMS];
} shape;

/* One MSL function: a rung of the op's ladder. Geometry numbers mean what the op's record function
 * says they mean. */
typedef struct {
    const char *name;  /* the MSL function, the name on the command line, the name in CSV */
    const char *about; /* what it tries, in a few words */
    uint32_t group;    /* threads a threadgroup */
    uint32_t rows;     /* outputs a threadgroup, where the op needs it; else 0 */
    uint32_t min_dim; /* what the inner dimension must be a multiple of; 0: whatever the op takes */
    uint32_t tokens;  /* tokens a threadgroup, where the op needs it; else 0 */
} kernel;

typedef struct op op;

/* A case under construction: where buffers come from, what fills them, what is recorded. */
typedef struct {
    const op *op;
    const kernel *kernel;
    shape shape;
    distribution inputs;
    uint64_t seed;
    rng random; /* seeded from seed and the case's name */
    device *device;
    tape *tape;
    buffer *buffers[64]; /* freed with the case */
    size_t buffer_count;
} kernel_case;

struct op {
    const char *name;  /* family: kernels/<name>.metal, kernels/<name>.c */
    const char *about; /* one line for `assay list` */
    const char *dims;  /* "out x in" */
    const kernel *kernels;
    size_t kernel_count;
    const shape *shapes; /* edge shapes first, model shapes, large ones last */
    size_t shape_count;
    shape any_input; /* the shape that is also run with every input distribution */
    bool unordered;  /* float atomics: two runs need not agree in every bit */
    /* NULL or: does this kernel take this shape? */
    bool (*accepts)(const kernel *k, const shape *s);
    /* Makes buffers with case_input and friends, records the launches on c->tape. */
    bool (*build)(kernel_case *c, err *e);
};

/* The row with this name, or NULL. */
const kernel *op_find_kernel(const op *o, const char *name);

/* Where the op's dims ("out x in x batch") have the number of tokens; -1: nowhere. */
int op_find_batch_dim(const op *o);

/* A case from nothing to its recorded tape, and back. c is filled in either way: close it. */
bool case_open(kernel_case *c, library *lib, const op *o, const kernel *k, const shape *s,
               distribution inputs, uint64_t seed, err *e);
void case_close(kernel_case *c);

/* Buffers of a case. The label appears in messages. */
bool case_input_f32(kernel_case *c, const char *label, size_t count, slice *out,
                    err *e); /* filled from c->inputs */
bool case_input_bytes(kernel_case *c, const char *label, const void *data, size_t bytes, slice *out,
                      err *e);
bool case_output(kernel_case *c, const char *label, size_t bytes, slice *out,
                 err *e); /* poisoned */

void case_get_name(const kernel_case *c, char *text,
                   size_t size);                              /* "rmsnorm_simdgroup/3x576/normal" */
void shape_get_text(const shape *s, char *text, size_t size); /* "3x576" */

#endif
