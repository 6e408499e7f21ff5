/* describe_parts: a description as read, shared by its reader and by what evaluates it. */
#pragma once

#include <stdio.h>

#include "harness/check/expression.h"
#include "harness/check/kernel_case.h"

enum {
    DESCRIBE_AXES = EXPRESSION_AXES,
    DESCRIBE_ARGUMENTS = 24,
    DESCRIBE_FIELDS = 64, /* of all structs */
    DESCRIBE_CONSTANTS = 16,
    DESCRIBE_RULES = 48,
    DESCRIBE_KERNELS = 16,
    DESCRIBE_SHAPES = 64,
    DESCRIBE_SYMBOLS = SHAPE_DIMS + DESCRIBE_ARGUMENTS + DESCRIBE_FIELDS + DESCRIBE_RULES
};

/* An expression and the line it is on; text is NULL if it is not given. */
typedef struct {
    const char *text;
    int line;
    expression *parsed;
} described_expression;

/* Expressions, separated by commas. */
typedef struct {
    described_expression items[DESCRIBE_AXES];
    size_t count;
} expressions;

typedef enum {
    ARGUMENT_IN,
    ARGUMENT_OUT,
    ARGUMENT_BOTH,
    ARGUMENT_VALUE,
    ARGUMENT_STRUCT
} argument_kind;

typedef struct {
    argument_kind kind;
    const char *name;
    elem type;
    expressions sizes; /* of a buffer */
    described_expression below;
    const char *from;                /* a file, or NULL */
    described_expression value;      /* of a value */
    size_t first_field, field_count; /* of a struct */
    int index, line;
    /* How exact an output must be; without these, as derived. */
    described_expression rtol, atol;
    bool exact;
    char why[160];  /* for messages: where its tolerance comes from */
    symbol *symbol; /* NULL: expressions cannot read it */
} described_argument;

/* A field of a struct, or a function constant. */
typedef struct {
    char name[96]; /* "args.count" */
    int index;     /* of a constant */
    elem type;
    described_expression value;
    size_t offset;  /* of a field */
    symbol *symbol; /* of a field */
} described_scalar;

typedef struct {
    expressions group, grid, threadgroup;
    char grid_kind; /* 't' threads, 'g' threadgroups, 'd' exactly these threads */
    int line;
} described_grid;

/* `oracle NAME[i, j] = expression`; `let NAME[i < n] = expression`, where output is NULL; or lines
 * of C, where the expression's text is NULL. */
typedef struct {
    const described_argument *output;
    const char *indices[DESCRIBE_AXES];
    size_t index_count;
    expressions sizes; /* of intermediate values */
    const char *name;  /* of intermediate values */
    described_expression value;
    symbol *symbol;
    const char *block;
    oracle_fn compiled;
    int line;
} described_rule;

typedef struct description {
    const char *path, *file; /* file: the last part */
    op op;
    const char *dims[SHAPE_DIMS];
    size_t dim_count;
    char dim_text[256]; /* "rows x dim" */
    shape shapes[DESCRIBE_SHAPES];
    kernel kernels[DESCRIBE_KERNELS];
    described_grid grids[DESCRIBE_KERNELS];
    described_expression needs, terms, roundings, flops;
    described_argument arguments[DESCRIBE_ARGUMENTS];
    size_t argument_count;
    described_scalar fields[DESCRIBE_FIELDS], constants[DESCRIBE_CONSTANTS];
    size_t field_count, constant_count;
    described_rule rules[DESCRIBE_RULES];
    size_t rule_count;
    symbol
        symbols[DESCRIBE_SYMBOLS]; /* sizes, then values, buffers and fields, then intermediates */
    size_t symbol_count;
    struct description *before; /* list of all */
} description;

/* Sets e to "file:line: ..." and returns false. */
bool describe_refuse(const description *d, int line, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
described_argument *describe_find_argument(description *d, const char *name);
bool describe_is_output(const described_argument *a);

/* Readers of one line each; rest is what follows its first word. */
typedef bool line_reader(description *d, char *rest, int line, err *e);
line_reader describe_read_oracle, describe_read_let, describe_read_needs, describe_read_terms,
    describe_read_roundings, describe_read_flops, describe_read_rtol, describe_read_atol,
    describe_read_exact;
/* Is there everything that a description needs? line: its last. */
bool describe_check(const description *d, int line, err *e);

/* Reads text, which is changed and must stay. */
bool describe_read(description *d, char *text, err *e);
/* Parses the expressions of what was read. */
bool describe_parse(description *d, err *e);
/* Compiles the lines of C. */
bool describe_compile(description *d, described_rule *r, err *e);

void describe_set_dims(description *d, const uint32_t *sizes);
/* The value of an expression over sizes. */
bool describe_compute(const description *d, const described_expression *x, number *out, err *e);
/* The file of an argument: "x_{rows}.npy" with the size for its name, below the description's
 * folder. */
bool describe_find_file(const description *d, const described_argument *a, char *path, size_t size,
                        err *e);
/* op.build and op.accepts of a description, and the oracle of its launches, whose context it is. */
description *describe_find_owner(const kernel *k);
bool describe_build(kernel_case *c, err *e);
bool describe_accepts(const kernel *k, const shape *s, err *e);
void describe_oracle(const launch *l, oracle_io *io);
