/* launch: one kernel launch, fully described.
 *
 * What runs (pipeline), on what (bindings by buffer index), over which grid; and about the work:
 * the bytes it must move, the flops it must do, and the oracle that computes what its outputs
 * should be. Host code never calls a kernel: it describes launches on a tape (tape.h) and
 * everything else is a way to play that tape.
 *
 * A scalar argument can live in the launch (launch_set_u32) or in a device buffer (launch_bind);
 * the kernel cannot tell which. Values that change from play to play are bound, so that a tape is
 * recorded once. `param` is either. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elem.h"
#include "harness/base/err.h"
#include "msl/limits.h"
#include "msl/msl.h"

typedef struct buffer buffer;     /* device.h */
typedef struct pipeline pipeline; /* device.h */

enum {
    LAUNCH_BUFFERS = MSL_BUFFERS,
    LAUNCH_THREADGROUPS = MSL_THREADGROUPS,
    LAUNCH_INLINE_BYTES = 256, /* room for all small constants of a launch */
    LAUNCH_DIMS = 6,
};

typedef struct {
    uint32_t x, y, z;
} size3;

/* A part of a buffer. */
typedef struct {
    buffer *buffer;
    size_t offset, bytes;
} slice;

typedef enum { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 } access_mode;

typedef enum { BIND_NONE, BIND_BUFFER, BIND_BYTES } bind_kind;

typedef struct {
    bind_kind kind;
    access_mode access; /* WRITE: every element is written, whatever was there. BOTH: what is not
                           written must survive. */
    elem type;          /* what it holds, for comparing and printing */
    slice at;           /* BIND_BUFFER */
    uint16_t inline_at; /* BIND_BYTES: where in launch.inline_bytes */
    uint16_t inline_bytes;
} binding;

typedef struct launch launch;

/* What an oracle is given and what it must fill. Indices are buffer indices of the launch. */
typedef struct {
    double *value; /* expected element values; for ACCESS_BOTH they start as the contents before the
                      launch */
    double *scale; /* sum of the magnitudes of the terms that made the element; starts as NAN,
                      meaning |value| */
    size_t count;  /* elements in the binding */
    double terms;  /* length of the longest sum in an element; starts as 1 */
    double
        roundings; /* roundings besides those of the sum (products, exp, division); starts as 4 */
    bool exact;    /* bits must agree (copies, indices); true at the start for integer types */
    bool chosen;   /* exact, and found by comparing: a device that flushes may give any denormal for
                    another, because it holds them equal */
    size_t
        row; /* elements that share one sum, as those of a softmax, and so err by one factor; 0: none.
                   An element errs beside it by `apart` roundings, and by 9 for each factor of e that it
                   is below the largest */
    double apart;
    const char *why; /* NULL, or where the tolerance comes from and what changes it, for messages */
    double *flushed; /* not the oracle's to fill: its values with zeros for the denormals among its
                        inputs; NULL where that makes no difference */
} expected;

typedef struct {
    const void *in[LAUNCH_BUFFERS]; /* contents before the launch, bound or inline; NULL where
                                       nothing is bound */
    size_t bytes[LAUNCH_BUFFERS];
    expected out[LAUNCH_BUFFERS]; /* value is NULL for what is not written */
    char failure[256];            /* "", or why the oracle cannot tell: its case fails with it */
} oracle_io;

typedef void (*oracle_fn)(const launch *l, oracle_io *io);

struct launch {
    const pipeline *pipeline;
    const struct kernel *kernel; /* what it was recorded from (check/op.h), or NULL */
    char label[64];
    binding args[LAUNCH_BUFFERS];
    uint32_t threadgroup_bytes[LAUNCH_THREADGROUPS];
    size3 grid;           /* threadgroups, or threads when grid_is_threads */
    size3 group;          /* threads per threadgroup */
    bool grid_is_threads; /* dispatchThreads: groups at the edge are smaller */
    slice watched; /* checked mode reports who stores here last; 0 bytes: nothing is watched */
    uint64_t only; /* runs this threadgroup alone, counted from 1; 0: all of them */
    uint32_t may_overread; /* a bit per index: loads past the end of that binding are no findings */
    uint32_t appends;    /* a bit per index: of that cache it writes only the newest token's row */
    bool barrier_before; /* concurrent tapes: wait for everything recorded before */
    uint64_t
        bytes; /* must be moved between memory and the kernel: each input once, each output once */
    uint64_t flops; /* must be done: a multiply-add counts 2 */
    oracle_fn oracle;
    const void *context; /* of the oracle, where the launch itself does not say enough; else NULL */
    uint32_t dims[LAUNCH_DIMS]; /* sizes that the oracle needs and no argument gives; else 0 */
    uint8_t inline_bytes[LAUNCH_INLINE_BYTES];
    uint16_t inline_used;
};

/* A scalar argument: a value, or a place in device memory that holds it. */
typedef struct {
    slice at; /* at.buffer is NULL for a value */
    uint32_t bits;
} param;

param param_u32(uint32_t value);
param param_f32(float value);
param param_at(slice at); /* 4 bytes in a device buffer */

slice slice_whole(buffer *b);
slice slice_part(buffer *b, size_t offset, size_t bytes);

void launch_bind(launch *l, int index, slice at, access_mode access, elem type);
void launch_set_bytes(launch *l, int index, const void *data, size_t bytes);
void launch_set_u32(launch *l, int index, uint32_t value);
void launch_set_f32(launch *l, int index, float value);
void launch_set_param(launch *l, int index, param p,
                      elem type); /* ELEM_U32, ELEM_I32 or ELEM_F32 */

/* Grid as a number of threadgroups, or as a number of threads; then the last groups may be
 * smaller. */
void launch_set_groups(launch *l, size3 groups, size3 group);
void launch_set_threads(launch *l, size3 threads, size3 group);

/* The common case: 1-D, count threads rounded up to whole groups of `group` (the kernel guards its
 * tail). */
void launch_set_threads_rounded(launch *l, uint32_t count, uint32_t group);

/* Threadgroups of the grid along each axis, whichever way it was given. */
size3 launch_get_groups(const launch *l);

/* Does the launch fit the signature? Each mistake is an error that names the kernel and the index:
 * unbound buffer, buffer bound but not in the signature, scalar of another size, threadgroup memory
 * missing or not asked for, a group larger than max_group_threads or not a size the kernel allows,
 * a zero grid or group. */
bool launch_check_fit(const launch *l, const msl_signature *s, uint32_t max_group_threads,
                      uint32_t max_threadgroup_bytes, err *e);

/* Scalars as an oracle sees them. */
uint32_t oracle_u32(const oracle_io *io, int index);
float oracle_f32(const oracle_io *io, int index);
