/* op: what the harness needs to know about the kernels that compute the same thing.
 *
 * kernels/<op>.c fills one of these; kernels/ops.h lists them all. Cases (kernel x shape x input
 * distribution) are enumerated from it, and each is built as a tape. */
#pragma once

#include "fill.h"
#include "harness/device/tape.h"
#include "weight_format.h"

enum { SHAPE_DIMS = 6 };

/* Sizes of one case, in the order of op.dims: {out, in}, {rows, dim}, ... Unused ones are 0. */
typedef struct {
    uint32_t dim[SHAPE_DIMS];
} shape;

/* The shapes that a kernel is checked with: edges first, then those of models, large ones last. */
typedef struct {
    const shape *items;
    size_t count;
    shape any_input; /* also checked, and with every input distribution */
} shape_list;

/* One MSL function. What varies among the kernels of an op is a field, so that code can choose and
 * filter by it; code never spells or parses a name. */
typedef struct kernel {
    const char *name;    /* the MSL function, the name on the command line, the name in CSV */
    const char *variant; /* how it differs from kernels with the same axes: "rowblock"; NULL: it is
                            the only one */
    const char *about;   /* what it tries, in a few words */
    const char *file;    /* "rmsnorm.metal" */
    const weight_format *format; /* of its weights; NULL: it has none */
    bool accumulates;            /* adds to its output instead of replacing it */
    uint32_t group;              /* threads per threadgroup */
    uint32_t groups;  /* threadgroups, if their number is fixed, or at most as many if more rows
                        than they take at a time are theirs; 0: it follows from the shape */
    uint32_t needs;   /* FEATURE_ bits (device.h): only devices with all of them run it */
    uint32_t rows;    /* outputs per threadgroup, if the op needs it */
    uint32_t tokens;  /* tokens per threadgroup; 0: takes one token and no batch */
    uint32_t sharers; /* threadgroups, a cluster, that share the columns of its rows; 0: none do */
    uint32_t multiple_of;     /* of which op.inner must be a multiple; 0: any */
    uint32_t most;            /* of op.inner; 0: any */
    const shape_list *shapes; /* NULL: those of the op */
} kernel;

typedef struct op op;

typedef struct kernel_case kernel_case;

struct op {
    const char *name;  /* "matvec" */
    const char *about; /* one line for `assay list` */
    const char *dims;  /* names of the dimensions of a shape: "out x in x batch" */
    const kernel *kernels;
    size_t kernel_count;
    shape_list shapes; /* of kernels that have none of their own */
    bool unordered;    /* float atomics: two runs need not agree in every bit */
    bool copies;       /* its outputs are values of its inputs, NaN too */
    /* Names in dims, or NULL: the dimension that the blocks of k->format, k->multiple_of and k->most
     * are about, and the one that is 1 for a kernel without k->tokens. */
    const char *inner, *many;
    /* Names in dims, separated by blanks, or NULL: sizes and positions that are also checked around
     * powers of two (shapes.h). */
    const char *sizes, *places;
    /* NULL, or what else a kernel requires of a shape. If it does not take it, e says what it needs,
     * as in "needs an even head_dim, not 63". Only op_takes calls it. */
    bool (*accepts)(const kernel *k, const shape *s, err *e);
    /* Makes buffers with case_input and friends, records the launches on c->tape. */
    bool (*build)(kernel_case *c, err *e);
    /* NULL, or what its description accepts of changes of what is proved (`assay changes`), a line each:
     * "looser: sums are in half now". */
    const char *accept;
    const char
        *source; /* the file that describes it; a project's ops get it when they are loaded */
};

/* The kernel with this name, or NULL. */
const kernel *op_find_kernel(const op *o, const char *name);
/* The shapes that a kernel of the op is checked with. */
const shape_list *op_get_shapes(const op *o, const kernel *k);
/* Does the kernel take the shape? If not, e says why, and the case is skipped. Everyone who asks
 * asks here: record functions before they record, and whoever lists or chooses kernels. */
bool op_takes(const op *o, const kernel *k, const shape *s, err *e);
/* Which dimension has this name in dims; -1: none has. */
int op_find_dim(const op *o, const char *name);
/* Which dimension counts tokens ("batch" or "tokens" in dims); -1: none does. */
int op_find_batch_dim(const op *o);

void shape_get_text(const shape *s, char *text, size_t size); /* "3x576" */
/* The shape that "3x576" stands for; false for other texts. */
bool shape_parse(const char *text, shape *out);
size_t shape_count_dims(const shape *s);   /* 2 for 3x576 */
double shape_count_values(const shape *s); /* 1728 for 3x576: the product, where a 0 counts 1 */

/* A kernel with a shape and an input, named "kernel/shape/input". Those who know the kernels decide which cases
 * exist; engines take lists of them. A case that is open has a tape and the buffers of its launches. */
struct kernel_case {
    const op *op;
    const kernel *kernel;
    shape shape;
    distribution inputs;
    char name[256]; /* "rmsnorm_simdgroup/3x576/normal" */
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
