/* describe_parts: a description as read, shared by the reader and the writer of describe. */
#pragma once

#include <stdio.h>

#include "harness/check/op.h"

enum { DESCRIBE_AXES = 4, DESCRIBE_ARGUMENTS = 24, DESCRIBE_KERNELS = 16, DESCRIBE_SHAPES = 64 };

/* Expressions, separated by commas, and the line they are on. */
typedef struct {
    const char *items[DESCRIBE_AXES];
    size_t count;
} expressions;

typedef enum { ARGUMENT_IN, ARGUMENT_OUT, ARGUMENT_BOTH, ARGUMENT_VALUE } argument_kind;

typedef struct {
    argument_kind kind;
    const char *name;
    elem type;
    expressions sizes;        /* of a buffer */
    const char *below, *from; /* NULL: not given */
    const char *value;        /* of a value */
    int index, line;
} described_argument;

typedef struct {
    const char *name, *file, *about;
    const char *grid_kind; /* "threads", "groups" or "dispatch" */
    expressions group, grid;
    const char *threadgroup; /* bytes, or NULL */
    int line;
} described_kernel;

/* An oracle or scale line: NAME[i, j] = expression; or C lines, where output is NULL. */
typedef struct {
    const described_argument *output;
    expressions indices;
    const char *text;
    int line;
    bool is_scale;
} described_rule;

typedef struct {
    const char *path, *file; /* file: the last part */
    const char *name, *about;
    const char *dims[SHAPE_DIMS];
    size_t dim_count;
    shape shapes[DESCRIBE_SHAPES];
    size_t shape_count;
    shape inputs;
    const char *needs, *terms, *roundings, *flops; /* NULL: not given */
    int needs_line, terms_line, roundings_line, flops_line;
    bool exact;
    described_kernel kernels[DESCRIBE_KERNELS];
    size_t kernel_count;
    described_argument arguments[DESCRIBE_ARGUMENTS];
    size_t argument_count;
    described_rule rules[DESCRIBE_ARGUMENTS];
    size_t rule_count;
} description;

/* Sets e to "file:line: ..." and returns false. */
bool describe_refuse(const description *d, int line, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const described_argument *describe_find_argument(const description *d, const char *name,
                                                 size_t length);

/* Reads text, which is changed and must stay. */
bool describe_read(description *d, char *text, err *e);
/* An expression of the description as C; subscripts with commas become one, sum and max loops. */
bool describe_write_expression(const description *d, const char *text, int line, FILE *out, err *e);
/* The subscript of an element of a buffer by its indices, row by row. */
void describe_write_index(const expressions *sizes, const expressions *indices, FILE *out);
bool describe_write(const description *d, FILE *out, err *e);
