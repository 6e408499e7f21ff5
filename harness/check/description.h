/* description: how kernels are launched, as a text says it. One reader and one struct for three kinds
 * of text:
 *
 *   NAME.op      an op of a project (project/describe.h): sizes and shapes, buffers with their types,
 *                the kernels with their files, and what is right. The manual page assay-op(5),
 *                docs/assay-op.5, has its grammar.
 *   NAME.launch  a launch of a kernel of others on the problem of an op that there is (rival.h):
 *                buffers go by the names that the op's own kernel gives them, and have neither
 *                types nor sizes. docs/side-by-side.md has its grammar.
 *   --arg 3=f32[1024]:ramp and the other options of `assay launch`: a line each (cli/launch_options.c).
 *
 * The lines that they share mean the same in all of them. */
#pragma once

#include "expression.h"
#include "op.h"

/* What a buffer starts with, or should hold at the end. */
typedef enum {
    CONTENTS_DRAWN,     /* from the distribution of a case */
    CONTENTS_UNWRITTEN, /* nothing was ever stored there */
    CONTENTS_ZERO,
    CONTENTS_ONE,
    CONTENTS_RAMP, /* 0, 1, 2, ..., starting over where the type could not hold the next exactly */
    CONTENTS_NAN,
    CONTENTS_RANDOM, /* floats uniform in [-1, 1), integers uniform over all values */
    CONTENTS_VALUES, /* 1,2,3; one of them fills an array */
    CONTENTS_FILE    /* as numpy writes it (.npy), or raw elements (any other name) */
} contents;

/* What is called "ramp" in a description. */
bool contents_find(const char *word, contents *out);

/* An array of elements with these contents, made with malloc. text: the values or the path.
 * *count: 0 for as many as there are, which it then is. name seeds random numbers. */
void *contents_make(contents c, elem type, const char *text, uint64_t seed, const char *name,
                    size_t *count, err *e);
/* The same of a file as doubles, which numpy may have stored; exactly `count` of them. */
bool contents_read_doubles(const char *path, elem type, double *values, size_t count, err *e);

/* A number or an expression as an element of the type. */
bool contents_parse_value(const char *text, elem type, const expression_scope *scope, void *out,
                          err *e);

typedef enum {
    DESCRIBES_OP = 1,
    DESCRIBES_LAUNCH = 2,
    DESCRIBES_OPTIONS = 4,
    DESCRIBES_FILE = DESCRIBES_OP | DESCRIBES_LAUNCH,
    DESCRIBES_ANY = DESCRIBES_FILE | DESCRIBES_OPTIONS
} description_kind;

enum {
    DESCRIBE_ARGUMENTS = LAUNCH_BUFFERS,
    DESCRIBE_NAME = 127,  /* characters of an op's or a kernel's: names of cases have room for it */
    DESCRIBE_FIELDS = 64, /* of all structs */
    DESCRIBE_CONSTANTS = 64,
    DESCRIBE_RULES = 48,
    DESCRIBE_KERNELS = 64,
    DESCRIBE_SHAPES = 64,
    DESCRIBE_EXTRAS = 16,
    DESCRIBE_SYMBOLS = SHAPE_DIMS + DESCRIBE_ARGUMENTS + DESCRIBE_FIELDS + DESCRIBE_RULES
};

/* An expression over sizes and the line it is on; text is NULL if it is not given. */
typedef struct {
    const char *text;
    int line;
} described_expression;

/* Expressions, separated by commas. */
typedef struct {
    described_expression items[EXPRESSION_AXES];
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
    expressions sizes; /* of a buffer; none: as many elements as its contents have */
    contents contents;
    const char *text; /* of the contents: values, or a file */
    /* Random whole numbers from 0 to less than this; with `least` from that to this. */
    described_expression below, least;
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
 * of C, where value is NULL. */
typedef struct {
    const described_argument *output;
    const char *name; /* of intermediate values */
    const char *indices[EXPRESSION_AXES];
    size_t index_count;
    expressions sizes; /* of what it computes */
    expression *value;
    symbol *symbol; /* of intermediate values */
    const char *block;
    oracle_fn compiled;
    int line;
} described_rule;

typedef struct {
    const char *items[DESCRIBE_EXTRAS];
    size_t count;
} described_extras;

typedef struct description {
    description_kind kind;
    const char *path, *file; /* file: the last part */
    char *text;              /* the names and expressions point into it */
    int line;                /* that is read, and */
    const char *word;        /* its first, */
    int what;                /* and what that makes of its reader's rule */
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
    described_extras includes, macros; /* of a launch */
    char accept[1024];                 /* op.accept */
    /* Sizes, then values, buffers and fields, then intermediates. In a launch of others all are sizes: what names mean in
     * the case that it is recorded for. */
    symbol symbols[DESCRIBE_SYMBOLS];
    size_t size_count, symbol_count;
    struct description *before; /* list of all */
} description;

/* Sets e to "file:line: ..." and returns false. */
bool describe_refuse(const description *d, int line, err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool describe_is_output(const described_argument *a);
symbol *describe_add_symbol(description *d, const char *name, elem type);

/* Reads the text of a file; both must stay, and the text is changed. */
bool describe_read(description *d, description_kind kind, const char *path, char *text, err *e);
/* Reads one line; it must stay. */
bool describe_read_line(description *d, char *line, err *e);

/* The launch: */

/* The value of an expression over sizes. */
bool describe_compute(const description *d, const described_expression *x, number *out, err *e);
/* A whole number from least to most. */
bool describe_compute_size(const description *d, const described_expression *x, int64_t least,
                           int64_t most, int64_t *out, err *e);
/* The whole numbers that an array is drawn from, with both ends. */
bool describe_compute_range(const description *d, const described_argument *a, int64_t *least,
                            int64_t *most, err *e);
bool describe_compute_sizes(const description *d, const expressions *list, int64_t least,
                            int64_t most, int64_t *out, err *e);
/* How many elements a buffer has. */
bool describe_count_elements(const description *d, const described_argument *a, size_t *count,
                             err *e);
/* The function constants; d->constant_count of them. */
bool describe_compute_constants(const description *d, constant_value *out, err *e);
/* A launch of a kernel of the file, with the function constants that are described. */
launch *describe_add_launch(const description *d, tape *t, const char *file, const char *name,
                            err *e);
/* The threads of a threadgroup. */
bool describe_compute_group(const description *d, const described_grid *g, size3 *out, err *e);
/* Its grid and threadgroup memory. */
bool describe_set_grid(const description *d, const described_grid *g, launch *l, err *e);
/* An argument that is a value or a struct. */
bool describe_set_value(description *d, launch *l, const described_argument *a, err *e);
