/* rival: a kernel of others that computes what a kernel of ours computes, launched on the problem of
 * a case of ours: the same buffers, the same oracle, a launch of its own.
 *
 * The launch is described by a text (description.h). Expressions in it are over the sizes of the
 * op's shape, the scalars of our launch, NAME.bytes of each buffer, and group_size, the threads of a
 * threadgroup. A text may have several kernel lines; a rival is one of them. */
#pragma once

#include <limits.h>

#include "op.h"

typedef struct {
    const char *given;     /* "path/FILE.metal:KERNEL", as on the command line */
    char folder[PATH_MAX]; /* of the file */
    char file[128];        /* in it */
    char kernel[128];
    char name[96];              /* "FILE.metal:KERNEL": what rows call it */
    struct description *launch; /* the text that has a line for the kernel; NULL: it is launched
                                         as ours */
    const struct described_grid *how; /* that line */
    const char *op;                   /* whose problem it solves; NULL: that of any it is given */
    const char *format;               /* of the weights; NULL: any or none */
    bool adds;                        /* has an inout line: it adds to its output */
    msl_extras extras;                /* where its includes are, and its macros */
} rival;

/* A kernel given as "path/FILE.metal:KERNEL" and its launch, from the description that has a line for
 * it; without descriptions it is launched with the buffers and grid of ours. Both are read: a file
 * without such a kernel is an error. The strings must stay, and what is
 * read stays for the rest of the process. */
bool rival_open(rival *r, const char *given, const char *const *descriptions, size_t count, err *e);

/* The kernel of a file that a description has a line for, if that is one. EXIT_WRONG: the file has none of
 * them. */
bool rival_find_kernel(const char *path, const char *described, char *name, size_t size, err *e);

/* Where the includes of a kernel are that is launched as ours: where ours may have them, in the folder of
 * kernels and those that the project names. The names stay. */
bool rival_find_our_extras(msl_extras *out, err *e);

/* The library of its file, which rival_record takes its kernel from. */
library *rival_new_library(const rival *r, device *d, err *e);

/* What its oracle needs to know: which launch of ours it stands for, and where our buffers are. */
typedef struct {
    const rival *rival;
    launch ours;
    int theirs[LAUNCH_BUFFERS]; /* by our index; -1: nowhere */
    uint8_t scalars[LAUNCH_BUFFERS]
                   [8]; /* of buffers that hold only one and that it does not take */
    char sizes[LAUNCH_BUFFERS][64], dims[SHAPE_DIMS][32]; /* names: w.bytes, out_dim */
} rival_problem;

/* Records the rival's launch, on a tape of its own library, for the problem of an open case and over
 * its buffers. p must outlive the tape. EXIT_USAGE if the description does not fit, EXIT_CANNOT if it
 * is not for such a case. */
bool rival_record(const rival *r, const kernel_case *c, tape *t, rival_problem *p, err *e);
