/* import/internal: what the files of this room share; no other room includes it.
 *
 * lex.c cuts Python into tokens; value.c has values and texts; format.c makes text of values;
 * expression.c evaluates expressions directly from the tokens with operate.c, call.c the functions and methods that
 * they call, array.c what is known of arrays, run.c statements; kernel.c collects kernels and
 * launches; signature.c, source.c and write.c write them.
 *
 * Nothing is freed before the end: all values live in the importer's memory. */
#pragma once

#include <stdint.h>

#include "import.h"

/* Tokens --------------------------------------------------------------------------------------- */

typedef enum {
    PY_END,
    PY_NAME,
    PY_NUMBER,
    PY_STRING, /* begin: after the prefix and quotes; bytes: of the contents */
    PY_MARK,   /* one operator or bracket */
    PY_NEWLINE,
    PY_INDENT,
    PY_DEDENT
} py_kind;

typedef struct {
    py_kind kind;
    const char *begin;
    size_t bytes;
    int line;
    uint32_t pair; /* of a bracket or an indent: the token that closes it */
    bool is_raw, is_format, is_bytes;
} py_token;

typedef struct {
    py_token *items; /* ends with PY_END */
    size_t count, room;
    int file; /* which of the importer's files: part of where characters come from */
} py_tokens;

/* Values --------------------------------------------------------------------------------------- */

/* A text whose characters know their place: file << PLACE_BITS | line. */
enum { PLACE_BITS = 20 };
typedef struct {
    char *text;
    int *places;
    size_t bytes, room;
} chars;

typedef enum {
    V_UNKNOWN, /* something that only the running program knows; may become an array */
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_STRING,
    V_LIST, /* tuples too */
    V_DICT,
    V_FUNCTION,
    V_METHOD,
    V_TYPE, /* mx.float32 */
    V_ARRAY,
    V_SHAPE, /* of an array */
    V_KERNEL,
    V_MAKER /* metal_kernel or compile_shader itself */
} value_kind;

typedef struct value value;
typedef struct scope scope;
typedef struct kernel_site kernel_site;

typedef struct {
    value **items, **keys; /* keys: of a dict */
    size_t count, room;
} value_list;

enum { ARRAY_AXES = 8 };
typedef struct {
    value *dims[ARRAY_AXES]; /* V_INT */
    int ndim;
    bool is_firm;      /* the number of axes is known */
    bool is_touched;   /* something was asked about its shape */
    const char *type;  /* "float32"; NULL: not known */
    value_list *given; /* the elements, where the file lists them; or NULL */
} array_facts;

struct value {
    value_kind kind;
    const char *name; /* of what is unknown, a type, a method, a kernel maker */
    int64_t i;
    double f;
    bool is_assumed; /* a number that stands for an unknown one, or was computed from one */
    const char *op;  /* of what is unknown: how it follows from `self` and `right` */
    value *right;
    chars s;
    value_list list;
    const py_tokens *tokens; /* of a function: its parameters begin at `at` */
    uint32_t at, body;
    scope *home; /* of a function: where it was defined; of an object: its attributes */
    value *self; /* of a method: the object; of a shape: the array; of an operation: left */
    array_facts *array;
    kernel_site *site; /* of a kernel */
    size_t runs;       /* of a function */
};

struct scope {
    struct binding {
        const char *name;
        value *value;
        struct binding *next;
    } * first;
    scope *parent;
};

/* The importer --------------------------------------------------------------------------------- */

/* A call of a kernel of torch.mps.compile_shader's library. */
typedef struct library_launch {
    const char *kernel;
    value_list args;
    value *named;
    int line;
    struct library_launch *next;
} library_launch;

/* One kernel that a call makes, or a library of them. */
struct kernel_site {
    int file, line;
    uint32_t at; /* of the call, in the file's tokens */
    bool is_torch, is_atomic;
    const char *name; /* "" if it has none */
    chars source, header;
    value_list inputs, outputs; /* their names */
    value *launch;              /* a dict: the arguments of a launch; NULL: none was found */
    int launch_line;
    library_launch *launches; /* of a library: the first of each kernel */
    const char *trouble;      /* why it cannot be imported; NULL: it can */
    bool is_written;
    kernel_site *next;
};

typedef struct {
    const char *path;
    char *text;
} py_file;

typedef struct {
    const char *name;
    value *value;
} assumption;

struct importer {
    import_settings settings;
    struct block {
        struct block *next;
    } * blocks;
    py_file *files;
    size_t file_count, file_room;
    kernel_site *sites, **last_site;
    assumption *assumed;
    size_t assumed_count, assumed_room;
    value_list functions; /* of the file that is read, in the order of their definitions */
    long steps;           /* statements that may still be run for this file */
    int depth;
    bool none_is_given; /* parameters whose default is None are unknown instead */
    import_counts counts;
    char **names; /* of the files that were written */
    size_t name_count, name_room;
};

/* What is being read: tokens at a position, in a scope. */
typedef struct {
    importer *im;
    const py_tokens *tokens;
    uint32_t at;
    scope *scope;
    bool is_dry; /* only find where the expression ends */
    value *result;
    enum { FLOW_ON, FLOW_RETURN, FLOW_BREAK, FLOW_CONTINUE } flow;
} reader;

void *keep(importer *im, size_t bytes); /* zeroed */
const char *keep_text(importer *im, const char *text, size_t bytes);
const char *keep_print(importer *im, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool lex_python(importer *im, const char *text, int line, int file, py_tokens *out, err *e);
static inline int place_make(int file, int line) {
    return file << PLACE_BITS | line;
}

/* value.c */
value *value_new(importer *im, value_kind kind);
value *value_int(importer *im, int64_t i);
value *value_float(importer *im, double f);
value *value_bool(importer *im, bool b);
value *value_string(importer *im, const char *text, size_t bytes, int place);
value *value_unknown(importer *im, const char *name);
void chars_add(importer *im, chars *t, const char *text, size_t bytes, int place);
void chars_append(importer *im, chars *t, const chars *more);
chars chars_slice(const chars *t, size_t begin, size_t end);
void list_add(importer *im, value_list *l, value *key, value *item);
value *dict_find(const value *dict, const char *key);
value *scope_find(const scope *s, const char *name);
scope *scope_new(importer *im, scope *parent);
/* Gives a value a name; one that stands for an unknown number takes what the user says of it. */
void scope_bind(importer *im, scope *s, const char *name, value *v);
bool value_equals(const value *a, const value *b);
enum { FALSE_VALUE, TRUE_VALUE, MAYBE_VALUE };
int value_truth(const value *v);
/* As a number; what is unknown is assumed. False for what is not a number. */
bool value_number(importer *im, value *v, double *out, bool *is_int);
int64_t value_whole(importer *im, value *v, int64_t otherwise);
/* What the user says of a name, "packed" or "spec.dim"; NULL: nothing. */
const char *assume_find(const importer *im, const char *name);

/* format.c: */
void format_value(importer *im, chars *out, value *v, const char *spec, int place);
value *format_literal(reader *r, const py_token *t); /* a string token, also an f-string */
value *format_call(importer *im, const value *text, const value_list *args, const value *named);

/* expression.c */
value *read_expression(reader *r);
value *read_list_expression(reader *r); /* a, b: a tuple */
bool is_mark(const reader *r, const char *mark);
bool is_word(const reader *r, const char *word);
bool take_mark(reader *r, const char *mark);
bool take_word(reader *r, const char *word);
/* operate.c */
value *value_operate(importer *im, const char *op, value *a, value *b);
value *value_compare(importer *im, const char *op, value *a, value *b);

/* call.c */
value *call_value(reader *r, value *callee, value_list *args, value *named, uint32_t at);
value *get_attribute(importer *im, value *of, const char *name);
value *get_item(importer *im, value *of, value *index);

/* array.c */
array_facts *array_of(importer *im, value *v); /* makes an array of what is unknown */
value *array_value(importer *im, value_list *dims, const char *type);
value *array_attribute(importer *im, value *v, const char *name); /* NULL: it has none so called */
value *array_method(importer *im, value *self, const char *name, value_list *args, value *named);
value *array_function(importer *im, const char *name, value_list *args, value *named);
value *array_shape_list(importer *im, value *shape, int unpack); /* unpack: how many names; or -1 */
value *array_shape_item(importer *im, value *shape, int64_t index);
int64_t array_size(const array_facts *a);
const char *type_find(const char *name); /* "float32" of "float32" or "float32_t"; or NULL */

/* run.c */
void run_block(reader *r, uint32_t end);
value *run_function(importer *im, value *f, value_list *args, value *named);
void run_file(importer *im, const py_tokens *tokens, scope *module);
void bind_target(reader *r, uint32_t from, uint32_t to, value *v);

/* kernel.c */
value *kernel_make(reader *r, const value *maker, value_list *args, value *named, uint32_t at);
void kernel_launch(importer *im, value *kernel, value *named, int line);
void kernel_launch_from(importer *im, kernel_site *library, const char *name,
                        const value_list *args, value *named, int line);
/* Is there a call that nothing has reached, a kernel without a launch? */
bool kernel_lacks_launch(const importer *im, const py_tokens *tokens);
bool kernel_is_unreached(const importer *im, const py_tokens *tokens, uint32_t at);

/* signature.c: the .metal file of a kernel, and the options of its launch. */
void signature_write(importer *im, kernel_site *k, const char *name, FILE *metal, FILE *args);
/* The options of the launch of a library's kernel; metal: its text. False if it has no such kernel. */
bool signature_write_launch(importer *im, const kernel_site *k, const library_launch *l,
                            const char *file, const char *metal, FILE *args);
/* source.c: the type that a source uses an input as, or NULL; and whether it computes with the input
 * itself, as with a number. */
const char *source_find_type(importer *im, const kernel_site *k, const char *input);
bool source_is_scalar(importer *im, const kernel_site *k, const char *input);
bool source_has_word(importer *im, const kernel_site *k, const char *text);
