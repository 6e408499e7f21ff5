/* msl/internal: what the files of the MSL front end share; no other room includes it.
 *
 * source.c makes one text of a file and its includes, lex.c cuts it into tokens, decl.c finds where declarations begin and end, kernel.c reads
 * kernels out of them, value.c knows sizes of types and values of constants, reach.c what a kernel's
 * text reaches. rewrite.c with marks.c turns tokens into C++, strict.c into C++ for
 * OpenCL. rules.c looks for mistakes, foreign.c refuses what is no MSL at all. unit.c is
 * the front door.
 *
 * Blanks, comments and preprocessor lines are not tokens. They lie between tokens, and output
 * copies them unchanged, so line numbers need no bookkeeping. */
#pragma once

#include "harness/base/array.h"
#include "msl.h"

/* Positions in the token array; NOT_FOUND where there is none. */
typedef uint32_t at;
#define NOT_FOUND UINT32_MAX

typedef enum { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK, TOKEN_END } token_kind;

typedef struct {
    token_kind kind;
    uint32_t begin, bytes; /* in the text */
    at pair;               /* of a bracket: the one that closes or opens it */
    int line;
    uint32_t file;
} token;

/* Preprocessor lines left in the text: `# word operand`. */
typedef struct {
    uint32_t begin, bytes;
    uint32_t word, word_bytes, operand; /* where they begin; there may be none */
    int line;
    uint32_t file; /* of the line after it */
} directive;

typedef struct {
    at begin, end; /* end is after the last token */
} range;

/* A string that grows. */
typedef struct {
    char *data;
    size_t used, room;
} text;

/* A declaration of a namespace or class. */
typedef enum { DECL_NAMESPACE, DECL_CLASS, DECL_FUNCTION, DECL_OTHER } decl_kind;

typedef struct {
    decl_kind kind;
    at begin, end;      /* end is after the last token */
    at head_end;        /* where body, initialiser, member initialisers or ';' begin */
    at name;            /* of function, class or namespace; the last name of variables */
    at open;            /* '(' of a function's parameters */
    at body;            /* '{' of a function, class or namespace */
    const char *prefix; /* of those of a file: "" or "a::b::" */
} decl;

typedef struct {
    const char *source;
    token *list; /* ends with TOKEN_END, whose pair is itself */
    uint32_t count, room;
    directive *directives;
    size_t directive_count, directive_room;
    char **files; /* names that line markers gave */
    uint32_t file_count;
    decl *decls; /* of the file, namespaces opened, as decl_read_all found them */
    size_t decl_count, decl_room;
    char **prefixes; /* that they have */
    size_t prefix_count, prefix_room;
} tokens;

/* A kernel definition. */
typedef struct {
    decl where;
    char *name;       /* with namespaces */
    at template_open; /* '<' of its template parameters */
    at max_total;     /* '(' of max_total_threads_per_threadgroup */
    char *problem;    /* why it cannot be launched; NULL if it can */
    msl_param *params;
    size_t count;
} kernel;

/* Something that can be asked for by host name. */
typedef struct {
    char *address; /* the expression that gives the function's address */
    char *problem;
    size_t kernel;
    range where; /* the kernel or its explicit instantiation */
    msl_signature signature;
} entry;

typedef struct {
    msl_constant constant;
    at attribute; /* the [[ of its [[function_constant(n)]] */
    range where;  /* its declarator, with the type in front if it is the first of its declaration */
    bool optional; /* somewhere is_function_constant_defined asks for it */
} function_constant;

struct msl_unit {
    char *name;
    int language;
    char *source;
    char *whole; /* the text before the preprocessor, for a compiler of MSL; NULL: source is that */
    tokens tokens;
    kernel *kernels;
    size_t kernel_count, kernel_room;
    entry **entries;
    size_t entry_count, entry_room;
    function_constant *constants;
    size_t constant_count, constant_room;
    range *dropped; /* not C++: explicit instantiations of kernels, graphics functions */
    size_t dropped_count, dropped_room;
};

/* source.c. *whole is the text for a compiler of MSL; NULL: the same text. */
char *source_load(const char *path, const msl_extras *extras, char **whole, err *e);
char *source_from_text(const char *name, const char *given, const msl_extras *extras, char **whole,
                       err *e);

/* lex.c: strings that grow. Running out of memory ends the program. */
void text_add(text *t, const char *data, size_t bytes);
void text_print(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *text_take(text *t); /* the caller frees it; "" when nothing was added */
char *text_copy(const char *data, size_t bytes);
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t text_hash(const char *data, size_t bytes, uint64_t seed);

/* lex.c: tokens. Positions past the end are valid: there is TOKEN_END. Lists of words have a blank
 * between two; the star of one that has it at its end stands for any end. */
void tokens_cut(tokens *t, const char *name, const char *source); /* without pairs */
/* A macro's name, parameters and body; '#' begins no directive. The caller frees the text of them. */
tokens tokens_cut_define(const tokens *t, const directive *d, char **operand);
bool tokens_pair(tokens *t, err *e);
void tokens_free(tokens *t);
bool token_is(const tokens *t, at i, const char *what);
bool token_is_one_of(const tokens *t, at i, const char *words);
bool token_is_word(const tokens *t, at i); /* a name or a keyword */
bool token_is_same(const tokens *t, at a, at b);
const char *token_text(const tokens *t, at i);
at token_before(at i); /* NOT_FOUND in front of the first */
const char *token_file(const tokens *t, at i);
uint64_t token_hash(const tokens *t, at i, uint64_t seed);
char *token_copy(const tokens *t, at i);
/* For %.*s; and for %s:%d, where it is. */
#define TOKEN_SPELL(t, i) (int)(t)->list[i].bytes, token_text(t, i)
#define TOKEN_PLACE(t, i) token_file(t, i), (t)->list[i].line
/* The bytes of a floating literal before its suffix; 0 for any other token. */
uint32_t token_measure_float(const tokens *t, at i);
/* The text of a range with single blanks where C++ is usually written with them. */
char *tokens_join(const tokens *t, at begin, at end);
void tokens_spell(const tokens *t, at begin, at end, char *out, size_t size); /* cut to fit */
bool tokens_want_blank(const tokens *t, at a, at b); /* between a and b, when b follows */
/* The bracket that closes the one at i; i where none opens. */
at tokens_close(const tokens *t, at i);
/* '<' at i: the token that closes it, or NOT_FOUND. */
at tokens_close_angle(const tokens *t, at i);
/* The first of some words from i on, outside of brackets that open there; end if there is none. */
at tokens_find(const tokens *t, at i, at end, const char *words);
bool tokens_have(const tokens *t, at begin, at end, const char *words); /* also in brackets */
/* The end of the list item that begins at i: a comma outside brackets, or end. */
at tokens_end_item(const tokens *t, at i, at end);
/* The characters inside one or more adjacent string literals. */
char *tokens_unquote(const tokens *t, at begin, at end);
bool word_is_one_of(const char *word, size_t bytes, const char *words);
bool directive_is(const tokens *t, const directive *d, const char *words);
bool directive_has(const tokens *t, const directive *d, const char *what); /* anywhere in it */

/* lex.c: one attribute inside [[ ]]; also the state of the search for the next. */
typedef struct {
    at name;
    at open;         /* '(' or NOT_FOUND */
    at begin, close; /* of the whole [[ ]]: its first token, and its last */
    at next;
} attribute;
bool attribute_begins(const tokens *t, at i);
at attribute_skip(const tokens *t, at i); /* past the [[ ]] at i, or i */
/* Attributes of a range, outside brackets other than their own. */
attribute attribute_start(at begin);
bool attribute_next(const tokens *t, at end, attribute *a);

/* decl.c. Reads the declaration at i and returns where the next one begins; false at the end. */
bool decl_next(const tokens *t, at *i, at end, decl *out);
void decl_read_all(tokens *t); /* whose brackets are paired */
/* Where a parameter's name is; NOT_FOUND for one without. */
at decl_find_param_name(const tokens *t, at begin, at end);

/* kernel.c */
void kernel_read_all(msl_unit *u);
const char *param_spell_kind(msl_kind kind); /* as the attribute of MSL */

/* value.c: types; 0 when it is not a type of the language. */
uint32_t type_size(const char *type, uint32_t *alignment);
/* What a parameter's type points or refers to: "const float4 *" gives "float4". */
void type_get_pointee(const char *type, char *out, size_t size);
uint32_t type_count_dimensions(const char *type);

/* value.c: what is known beyond the names of the file: template arguments, function constants that
 * are given. */
typedef struct {
    at name;
    range value;
} template_argument;
typedef struct {
    const msl_unit *unit;
    const template_argument *arguments;
    size_t argument_count;
    const msl_constant_text *given;
    size_t given_count;
    const function_constant *missing; /* one that was needed and is not given */
    int depth;
} scope;
/* The integer value of a constant expression; false when it is unknown. */
bool constant_evaluate(scope *s, at begin, at end, int64_t *value);
bool constant_evaluate_name(scope *s, const char *name, int64_t *value);
const function_constant *constant_find(const msl_unit *u, at name);
const msl_constant_text *constant_get_text(const function_constant *c,
                                           const msl_constant_text *given, size_t count);
bool constant_read_all(msl_unit *u, err *e);

/* unit.c */
const entry *entry_find(const msl_unit *u, const char *host_name, err *e);
/* Is the parameter there with these constants? */
bool entry_is_param_on(const msl_unit *u, const entry *w, const msl_param *p,
                       const msl_constant_text *given, size_t count, bool *on, err *e);

/* rewrite.c. What becomes of each token: NULL keeps it, "" drops it, other text replaces it. */
typedef struct {
    const msl_unit *unit;
    const char **edit;
    char **owned; /* edits that were made for this text */
    size_t owned_count, owned_room;
} edits;
edits edits_new(const msl_unit *u);
void edits_free(edits *d);
void edits_drop(edits *d, at begin, at end);
void edits_replace(edits *d, at i, char *owned); /* takes the string */
void edits_print(const edits *d, text *out);
void edits_drop_attributes(edits *d);
void edits_mark_kernel(edits *d, const kernel *k, const char *mark); /* `kernel` becomes the mark */

/* reach.c. Drops the functions and classes that the entry does not reach: without them it compiles
 * in half of the time, and it stays in the cache when only they change. A mistake in one is reported
 * by lint, and with the kernels that reach it. */
void reach_drop_others(edits *d, const entry *which);

/* The size of the threadgroup variables that the statement with `threadgroup` at i declares; 0 when it
 * declares none or its size is unknown. *end is after the statement. */
uint64_t storage_measure(const msl_unit *u, at i, at *end);
/* The '=' or '{' of a first value in the threadgroup variables declared there; NOT_FOUND: none. */
at storage_find_value(const msl_unit *u, at i);

/* marks.c, for checked mode: loops that wait for a lock; ends of statements. */
void marks_add_spins(edits *d);
void marks_add_steps(edits *d);

/* foreign.c: false, and a sentence with file and line, if the text has what reaches past MSL: assembly,
 * attributes and pragmas for linkers and sanitizers, addresses of the stack, arrays without measure. */
bool foreign_refuse(const msl_unit *u, err *e);
