/* description: how kernels are launched, as a text says it. One reader and one struct for two kinds
 * of text:
 *
 *   NAME.op      an op of a project (project/describe.h): sizes and shapes, buffers with their types,
 *                the kernels with their files, and what is right. The manual page assay-op(5),
 *                docs/assay-op.5, has its grammar.
 *   NAME.launch  a launch of a kernel of others on the problem of an op that there is (rival.h):
 *                buffers go by the names that the op's own kernel gives them, and have neither
 *                types nor sizes. docs/side-by-side.md has its grammar.
 *
 * The lines that both have mean the same in both: op, kernel, in, out, inout, value, struct, field,
 * constant, needs. */
#pragma once

#include "expression.h"
#include "kernel_case.h"

typedef enum { DESCRIBES_OP = 1, DESCRIBES_LAUNCH = 2, DESCRIBES_EITHER = 3 } description_kind;

enum {
    DESCRIBE_AXES = EXPRESSION_AXES,
    DESCRIBE_ARGUMENTS = LAUNCH_BUFFERS,
    DESCRIBE_FIELDS = 64, /* of all structs */
    DESCRIBE_CONSTANTS = 16,
    DESCRIBE_RULES = 48,
    DESCRIBE_KERNELS = 64,
    DESCRIBE_SHAPES = 64,
    DESCRIBE_EXTRAS = 16,
    DESCRIBE_SYMBOLS = SHAPE_DIMS + DESCRIBE_ARGUMENTS + DESCRIBE_FIELDS + DESCRIBE_RULES
};

/* An expression and the line it is on; text is NULL if it is not given. */
typedef struct {
    const char *text;
    int line;
    expression *parsed; /* NULL in a launch: its names are known when it is recorded */
} described_expression;

/* Expressions, separated by commas. */
typedef struct {
    described_expression items[DESCRIBE_AXES];
    size_t count;
} expressions;

typedef enum {
    ARGUMENT_IN = ACCESS_READ,
    ARGUMENT_OUT = ACCESS_WRITE,
    ARGUMENT_BOTH = ACCESS_BOTH,
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
    bool may_overread;               /* an input may be read past its end */
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

typedef struct described_grid {
    expressions group, grid, threadgroup;
    char grid_kind;     /* 't' threads, 'g' threadgroups, 'd' exactly these threads */
    const char *format; /* in a launch: of the weights that it reads; NULL: any or none */
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
    description_kind kind;
    const char *path, *file; /* file: the last part */
    op op;                   /* of a launch: only its name */
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
    const char *includes[DESCRIBE_EXTRAS], *macros[DESCRIBE_EXTRAS]; /* of a launch */
    size_t include_count, macro_count;
    /* Sizes, then values, buffers and fields, then intermediates. */
    symbol symbols[DESCRIBE_SYMBOLS];
    size_t symbol_count;
    /* Of a launch, while it is recorded: what its names stand for, and the threads of a group. */
    expression_names *find;
    void *context;
    int64_t group_size;
    struct description *before; /* list of all */
} description;

/* Sets e to "file:line: ..." and returns false. */
bool describe_refuse(const description *d, int line, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
described_argument *describe_find_argument(description *d, const char *name);
bool describe_is_output(const described_argument *a);

/* Reads the text of a file; both must stay, and the text is changed. */
bool describe_read(description *d, description_kind kind, const char *path, char *text, err *e);

/* Readers of one line each; rest is what follows its first word. */
typedef bool line_reader(description *d, char *rest, int line, err *e);
line_reader describe_read_oracle, describe_read_let, describe_read_needs, describe_read_terms,
    describe_read_roundings, describe_read_flops, describe_read_rtol, describe_read_atol,
    describe_read_exact;
/* Is there everything that a description needs? line: its last. */
bool describe_check(const description *d, int line, err *e);

/* The launch: */

/* The value of an expression over sizes. */
bool describe_compute(const description *d, const described_expression *x, number *out, err *e);
/* A whole number from least to most. */
bool describe_compute_size(const description *d, const described_expression *x, int64_t least,
                           int64_t most, int64_t *out, err *e);
/* A launch of a kernel of the file, with the function constants that are described. */
launch *describe_add_launch(const description *d, tape *t, const char *file, const char *name,
                            err *e);
/* Its grid and threadgroup memory; d->group_size is then known. */
bool describe_set_grid(description *d, const described_grid *g, launch *l, err *e);
/* An argument that is a value or a struct. */
bool describe_set_value(description *d, launch *l, const described_argument *a, err *e);
