/* rival: a kernel of others that computes what a kernel of ours computes, launched on the problem of
 * a case of ours: the same buffers, the same oracle, a launch of its own.
 *
 * The launch is described by a text, in the language of project/describe.h as far as it applies:
 *
 *   op        matvec                    whose problem
 *   kernel    mul_mv_q4_0 format q4_0 group 32,2 groups divide_up(out_dim, 8) threadgroup 1024
 *   struct    args                      [[buffer(0)]], and so on in the order of the lines
 *   field     ne00 i32 = in_dim         of the struct, aligned as in C
 *   in        w                         a buffer of ours, by the name our kernel gives it
 *   in        x
 *   out       y
 *   value     stride u64 = w.bytes / out_dim       a scalar
 *   constant  600 i16 = 2               a function constant, by its index
 *   needs     in_dim % 32 == 0          cases for which it is false are left out
 *   include   ..                        folder of included files, relative to that of the kernel
 *   define    NAME=VALUE
 *
 * A # begins a comment. `at I` after a buffer, struct or value is another index than the next;
 * `overread` after `in NAME` says that it may be read past its end. A text may have several kernel
 * lines; a rival is one of them. Expressions (expression.h) are over the sizes of the op's shape, the
 * scalars of our launch, NAME.bytes of each buffer, and group_size, the threads of a threadgroup. */
#pragma once

#include <limits.h>

#include "kernel_case.h"

enum {
    RIVAL_ARGUMENTS = 32,
    RIVAL_FIELDS = 64,
    RIVAL_CONSTANTS = 16,
    RIVAL_EXTRAS = 16,
};

typedef struct {
    const char *text;
    int line;
} rival_expression;

typedef struct {
    rival_expression items[4];
    size_t count;
} rival_expressions;

typedef enum { RIVAL_BUFFER, RIVAL_VALUE, RIVAL_STRUCT } rival_kind;

typedef struct {
    rival_kind kind;
    const char *name; /* of a buffer: ours */
    access_mode access;
    bool overread;
    elem type; /* of a value */
    rival_expression value;
    size_t first_field, field_count; /* of a struct */
    int index, line;
} rival_argument;

typedef struct {
    int index; /* of a function constant */
    elem type;
    rival_expression value;
} rival_scalar;

typedef struct {
    /* The kernel: */
    const char *given;     /* "path/FILE.metal:KERNEL", as on the command line */
    char folder[PATH_MAX]; /* of the file */
    char file[128];        /* in it */
    char kernel[128];
    char name[96]; /* "FILE.metal:KERNEL": what rows call it */
    char *folders; /* (include_count, PATH_MAX): of included files */
    /* Its launch: */
    char *text;       /* of the description; all that follows points into it */
    const char *path; /* of the description */
    const char *op;
    const char *format; /* of the weights; NULL: any or none */
    int kernel_line;    /* 0: the text does not describe the kernel */
    char grid_kind;     /* 't' threads, 'g' threadgroups, 'd' exactly these threads */
    rival_expressions group, grid, threadgroup;
    rival_argument arguments[RIVAL_ARGUMENTS];
    size_t argument_count;
    rival_scalar fields[RIVAL_FIELDS], constants[RIVAL_CONSTANTS];
    size_t field_count, constant_count;
    rival_expression needs; /* text NULL: not given */
    const char *includes[RIVAL_EXTRAS], *macros[RIVAL_EXTRAS];
    size_t include_count, macro_count;
    bool adds; /* has an inout line: it adds to its output */
} rival;

/* A kernel given as "path/FILE.metal:KERNEL" and its launch, from the description that has a line for
 * it. Both are read: a file without such a kernel is an error. The strings must stay. Close it in
 * any case. */
bool rival_open(rival *r, const char *given, const char *const *descriptions, size_t count, err *e);
void rival_close(rival *r);

/* Reads a description, for the kernel that is set. */
bool rival_read(rival *r, const char *path, err *e);

/* The library of its file, which rival_record takes its kernel from. */
library *rival_new_library(const rival *r, device *d, err *e);

/* What its oracle needs to know: which launch of ours it stands for, and where our buffers are. */
typedef struct {
    launch ours;
    int theirs[LAUNCH_BUFFERS]; /* by our index; -1: nowhere */
    uint8_t scalars[LAUNCH_BUFFERS]
                   [8]; /* of buffers that hold only one and that it does not take */
} rival_problem;

/* Records the rival's launch, on a tape of its own library, for the problem of an open case and over
 * its buffers. p must outlive the tape. EXIT_USAGE if the description does not fit, EXIT_CANNOT if it
 * is not for such a case. */
bool rival_record(const rival *r, const kernel_case *c, tape *t, rival_problem *p, err *e);
