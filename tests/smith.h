/* smith: random Metal programs and their answers.
 *
 * smith_program.c makes a tree from a seed and prints it as Metal; smith_answer.c walks the same tree and
 * computes what the program must write; smith.c runs the text on devices and compares. The tree is all
 * that they share, and nothing of the devices is used for the answer.
 *
 * A file holds several programs, one function each, that one kernel calls one after the other: compiling
 * costs more than running. All programs of a file have its grid, buffers and function constants; else
 * program `index` of file `seed` is the same whatever else is in the file.
 *
 * Everything that a program may do is defined: guards are parts of expressions (an index is masked, a
 * divisor is made odd, signed operands are shifted to where they cannot overflow), floats are small
 * multiples of a power of two, so that they are exact in every order, and every variable starts with a
 * value. A part of a tree can therefore be replaced by another of its type without care. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOST_THREADS = 128,   /* of a threadgroup */
    MOST_PROGRAMS = 128,  /* of a file */
    OUT_WORDS = 16,       /* that each thread may write per program */
    OWN_BYTES = 64,       /* of device memory that each thread has to itself per program */
    COUNTERS = 8,         /* that all threads change by atomics per program */
    INPUT_WORDS = 256,    /* of each input buffer */
    SHARED_BYTES = 2048,  /* of threadgroup memory */
};

#define POISON 0xFFC3FFC3u /* what `out` holds where nothing is written */

typedef enum { BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, KINDS } kind;
typedef struct {
    kind k;
    int n;
} type;

/* THE grammar: what may be computed. Kinds of operands as letters: u unsigned, s signed, r real (half,
 * float), b bfloat. Weight: how often, 0: only where code asks for it. Guards are given in
 * smith_program.c (guard_operands). */
#define GRAMMAR(X)                                                                                 \
    X(ADD, "+", INFIX, 2, "usrb", 12, HALVED)                                                      \
    X(SUB, "-", INFIX, 2, "usrb", 10, HALVED)                                                      \
    X(MUL, "*", INFIX, 2, "usrb", 10, ROOTED)                                                      \
    X(DIV, "/", INFIX, 2, "us", 4, DIVIDED)                                                        \
    X(MOD, "%", INFIX, 2, "us", 4, DIVIDED)                                                        \
    X(AND, "&", INFIX, 2, "us", 5, FREE)                                                           \
    X(OR, "|", INFIX, 2, "us", 5, FREE)                                                            \
    X(XOR, "^", INFIX, 2, "us", 6, FREE)                                                           \
    X(SHL, "<<", INFIX, 2, "u", 4, COUNTED)                                                        \
    X(SHR, ">>", INFIX, 2, "us", 5, COUNTED)                                                       \
    X(NOT, "~", PREFIX, 1, "us", 3, FREE)                                                          \
    X(NEG, "-", PREFIX, 1, "usrb", 3, HALVED)                                                      \
    X(ABS, "abs", CALL, 1, "usr", 2, HALVED)                                                       \
    X(ABSDIFF, "absdiff", CALL, 2, "u", 2, FREE)                                                   \
    X(ADDSAT, "addsat", CALL, 2, "us", 2, FREE)                                                    \
    X(SUBSAT, "subsat", CALL, 2, "us", 2, FREE)                                                    \
    X(HADD, "hadd", CALL, 2, "us", 2, FREE)                                                        \
    X(RHADD, "rhadd", CALL, 2, "us", 2, FREE)                                                      \
    X(MULHI, "mulhi", CALL, 2, "us", 2, FREE)                                                      \
    X(MADHI, "madhi", CALL, 3, "u", 2, FREE)                                                       \
    X(MADSAT, "madsat", CALL, 3, "us", 2, FREE)                                                    \
    X(MUL24, "mul24", CALL, 2, "us", 1, LOW24)                                                     \
    X(MAD24, "mad24", CALL, 3, "us", 1, LOW24)                                                     \
    X(CLZ, "clz", CALL, 1, "us", 2, FREE)                                                          \
    X(CTZ, "ctz", CALL, 1, "us", 2, FREE)                                                          \
    X(POPCOUNT, "popcount", CALL, 1, "us", 2, FREE)                                                \
    X(REVERSE, "reverse_bits", CALL, 1, "us", 2, FREE)                                             \
    X(ROTATE, "rotate", CALL, 2, "us", 2, COUNTED)                                                 \
    X(EXTRACT, "extract_bits", CALL, 3, "us", 2, FIELD)                                            \
    X(INSERT, "insert_bits", CALL, 4, "us", 2, FIELD)                                              \
    X(MIN, "min", CALL, 2, "usr", 3, FREE)                                                         \
    X(MAX, "max", CALL, 2, "usr", 3, FREE)                                                         \
    X(MIN3, "min3", CALL, 3, "usr", 1, FREE)                                                       \
    X(MAX3, "max3", CALL, 3, "usr", 1, FREE)                                                       \
    X(MEDIAN3, "median3", CALL, 3, "usr", 1, FREE)                                                 \
    X(CLAMP, "clamp", CALL, 3, "usr", 2, BOUNDED)                                                  \
    X(FABS, "fabs", CALL, 1, "r", 2, FREE)                                                         \
    X(FLOOR, "floor", CALL, 1, "r", 2, FREE)                                                       \
    X(CEIL, "ceil", CALL, 1, "r", 2, FREE)                                                         \
    X(TRUNC, "trunc", CALL, 1, "r", 2, FREE)                                                       \
    X(ROUND, "round", CALL, 1, "r", 2, FREE)                                                       \
    X(RINT, "rint", CALL, 1, "r", 2, FREE)                                                         \
    X(FRACT, "fract", CALL, 1, "r", 2, FREE)                                                       \
    X(SIGN, "sign", CALL, 1, "r", 2, FREE)                                                         \
    X(SATURATE, "saturate", CALL, 1, "r", 1, FREE)                                                 \
    X(FMIN, "fmin", CALL, 2, "r", 2, FREE)                                                         \
    X(FMAX, "fmax", CALL, 2, "r", 2, FREE)                                                         \
    X(FDIM, "fdim", CALL, 2, "r", 1, FREE)                                                         \
    X(STEP, "step", CALL, 2, "r", 2, FREE)                                                         \
    X(FMA, "fma", CALL, 3, "r", 3, ROOTED)                                                         \
    X(MIX, "mix", CALL, 3, "r", 1, QUARTERS)                                                       \
    X(LDEXP, "ldexp", CALL, 2, "r", 1, SCALED)                                                     \
    X(LT, "<", COMPARE, 2, "usr", 3, FREE)                                                         \
    X(LE, "<=", COMPARE, 2, "usr", 3, FREE)                                                        \
    X(GT, ">", COMPARE, 2, "usr", 3, FREE)                                                         \
    X(GE, ">=", COMPARE, 2, "usr", 3, FREE)                                                        \
    X(EQ, "==", COMPARE, 2, "usr", 3, FREE)                                                        \
    X(NE, "!=", COMPARE, 2, "usr", 3, FREE)                                                        \
    X(SUM, "sum", LANES, 1, "ur", 4, FREE)                                                         \
    X(PRODUCT, "product", LANES, 1, "u", 2, FREE)                                                  \
    X(LEAST, "min", LANES, 1, "usr", 3, FREE)                                                      \
    X(MOST, "max", LANES, 1, "usr", 3, FREE)                                                       \
    X(ALL_AND, "and", LANES, 1, "us", 2, FREE)                                                     \
    X(ALL_OR, "or", LANES, 1, "us", 2, FREE)                                                       \
    X(ALL_XOR, "xor", LANES, 1, "us", 2, FREE)                                                     \
    X(SCAN_SUM, "prefix_inclusive_sum", LANES, 1, "ur", 3, FREE)                                   \
    X(SCAN_BEFORE, "prefix_exclusive_sum", LANES, 1, "ur", 3, FREE)                                \
    X(SCAN_PRODUCT, "prefix_inclusive_product", LANES, 1, "u", 1, FREE)                            \
    X(FIRST, "broadcast_first", LANES, 1, "usr", 3, FREE)                                          \
    X(SHUFFLE, "shuffle", LANES, 2, "usr", 4, FREE)                                                \
    X(BROADCAST, "broadcast", LANES, 1, "usr", 2, FREE)                                            \
    X(SHUFFLE_XOR, "shuffle_xor", LANES, 1, "usr", 3, WHOLE)                                       \
    X(SHUFFLE_UP, "shuffle_up", LANES, 1, "usr", 3, WHOLE)                                         \
    X(SHUFFLE_DOWN, "shuffle_down", LANES, 1, "usr", 3, WHOLE)                                     \
    X(ROTATE_UP, "shuffle_rotate_up", LANES, 1, "usr", 2, WHOLE)                                   \
    X(ROTATE_DOWN, "shuffle_rotate_down", LANES, 1, "usr", 2, WHOLE)                               \
    X(FILL_UP, "shuffle_and_fill_up", LANES, 2, "usr", 2, WHOLE)                                   \
    X(FILL_DOWN, "shuffle_and_fill_down", LANES, 2, "usr", 2, WHOLE)                               \
    X(ANY_LANE, "any", VOTE, 1, "", 3, FREE)                                                       \
    X(ALL_LANES, "all", VOTE, 1, "", 3, FREE)                                                      \
    X(IS_FIRST, "is_first", VOTE, 0, "", 2, FREE)                                                  \
    X(BALLOT, "ballot", VOTE, 1, "", 0, FREE)                                                      \
    X(ACTIVE, "active_threads_mask", VOTE, 0, "", 0, FREE)                                         \
    X(LITERAL, "", OTHER, 0, "", 0, FREE)                                                          \
    X(LOAD, "", OTHER, 1, "", 0, FREE)                                                             \
    X(PLACE, "", OTHER, 0, "", 0, FREE)    /* where a thread is: value is an index of place_names */ \
    X(CONSTANT, "", OTHER, 0, "", 0, FREE) /* a function constant */                               \
    X(CONVERT, "", OTHER, 1, "", 0, FREE)                                                          \
    X(JOIN, "", OTHER, 4, "", 0, FREE) /* a vector of scalars and vectors; of one scalar: all of it */ \
    X(SWIZZLE, "", OTHER, 1, "", 0, FREE)                                                          \
    X(ELEMENT, "", OTHER, 2, "", 0, FREE)                                                          \
    X(REINTERPRET, "", OTHER, 1, "", 0, FREE)                                                      \
    X(CHOOSE, "?", OTHER, 3, "", 0, FREE)                                                          \
    X(SELECT, "select", CALL, 3, "", 0, FREE)                                                      \
    X(BOTH, "&&", INFIX, 2, "", 0, FREE)                                                           \
    X(EITHER, "||", INFIX, 2, "", 0, FREE)                                                         \
    X(NO, "!", PREFIX, 1, "", 0, FREE)                                                             \
    X(ANY, "any", CALL, 1, "", 0, FREE)                                                            \
    X(ALL, "all", CALL, 1, "", 0, FREE)                                                            \
    X(DOT, "dot", CALL, 2, "", 0, FREE)                                                            \
    X(CALL_OF, "", OTHER, 4, "", 0, FREE)                                                          \
    /* statements */                                                                               \
    X(DECLARE, "", OTHER, 1, "", 0, FREE)                                                          \
    X(ASSIGN, "", OTHER, 2, "", 0, FREE) /* value: 0, or the operator before the = */              \
    X(COPY, "", OTHER, 0, "", 0, FREE)   /* a record: v = w */                                     \
    X(IF, "", OTHER, 1, "", 0, FREE)                                                               \
    X(LOOP, "", OTHER, 1, "", 0, FREE) /* value: for, while, do */                                 \
    X(SWITCH, "", OTHER, 1, "", 0, FREE)                                                           \
    X(CASE, "", OTHER, 0, "", 0, FREE) /* value: -1 for default */                                 \
    X(BREAK, "", OTHER, 0, "", 0, FREE)                                                            \
    X(CONTINUE, "", OTHER, 0, "", 0, FREE)                                                         \
    X(RETURN, "", OTHER, 1, "", 0, FREE)                                                           \
    X(PUT, "", OTHER, 1, "", 0, FREE)                                                              \
    X(ATOMIC, "", OTHER, 1, "", 0, FREE)                                                           \
    X(EXCHANGE, "", OTHER, 2, "", 0, FREE)                                                         \
    X(MULTIPLY, "", OTHER, 1, "", 0, FREE) /* simdgroup matrices */                                \
    X(TALLY, "", OTHER, 1, "", 0, FREE)    /* atomics in threadgroup memory */

#define NAME_OP(op, text, form, arity, kinds, weight, guard) OP_##op,
typedef enum { OP_NONE, GRAMMAR(NAME_OP) OP_COUNT } op;
#undef NAME_OP
typedef enum { INFIX, PREFIX, CALL, COMPARE, LANES, VOTE, OTHER } form;
typedef enum { FREE, HALVED, ROOTED, DIVIDED, COUNTED, LOW24, FIELD, BOUNDED, QUARTERS, SCALED, WHOLE } guard;
typedef struct {
    const char *text;
    form form;
    int arity;
    const char *kinds;
    int weight;
    guard guard;
} rule;
extern const rule grammar[OP_COUNT];

/* Where a variable lives. TABLE: program scope constants. OWN: device memory of this thread alone. */
typedef enum { IN_THREAD, IN_INPUT, IN_PARAMS, IN_TABLE, IN_OWN } space;
typedef struct {
    type t;
    bool packed;
    int count; /* 0: not an array */
    int at;    /* offset in the record */
} field;
typedef struct {
    int fields; /* 0: not a record, and field[0] is what it is */
    bool is_union;
    field field[4];
    int bytes, align;
} record;
typedef struct variable variable;
struct variable {
    int id;
    space where;
    record r;
    const variable *target; /* a pointer to an element of this array */
    int at;                 /* in the frame, in OWN; of a table: where its values begin */
    bool is_fixed;          /* a counter, or a parameter: programs only read it */
    int uses;               /* the reducer's */
};

typedef struct node node;
typedef struct function function;
struct node {
    op op;
    type t;
    int lo, hi; /* of a float: a multiple of 2^lo below 2^hi */
    node *a[4];
    node *body, *other, *next; /* of a statement */
    int64_t value;             /* a float literal: in quarters */
    int group;                 /* LANES, VOTE: 32 or 4 */
    variable *v, *w;
    int field;    /* of v */
    char part[5]; /* of a vector: "zx"; or "" */
    function *f;
    int line; /* in the text */
};
struct function {
    int id;
    type t; /* n 0: void, the program itself */
    variable *parameter[3];
    int parameters;
    node *body;
    int frame;        /* bytes of its variables */
    bool is_template; /* of its type */
    function *next;
};

typedef struct {
    uint32_t x, y, z;
} extent;
/* What all programs of a file share. */
typedef struct {
    uint64_t seed;
    extent threads, group; /* dispatchThreads: the last groups may be smaller */
    bool is_whole;         /* every simdgroup has all its lanes */
    size_t offset;         /* of every buffer in bytes */
    uint32_t constant[4];  /* function constants: uint, int, bool, float in quarters */
    uint32_t words[INPUT_WORDS], params[INPUT_WORDS], table[INPUT_WORDS];
    float reals[INPUT_WORDS];
} world;
enum { PLACES = 13 };
extern const char *const place_names[PLACES];

typedef struct {
    int index;
    world *world;
    function *main, *functions; /* functions: before main, in order */
    variable *variables[96];
    int variable_count;
    int outs;                  /* words of OUT_WORDS in use */
    int first_line, last_line; /* in the text */
    void *arena;
    int plant;      /* a class of planted bugs, or -1 */
    int plant_line; /* where it is in the text */
} program;

/* A growing text that counts its lines. */
typedef struct {
    char *text;
    size_t count, capacity;
    int line;
} printer;

size_t kind_bytes(kind k);
bool kind_is_signed(kind k);
bool kind_is_real(kind k);
bool type_is(type a, type b);

/* smith_program.c */
extern bool program_diverges; /* simdgroup functions where not all threads come, too */
void world_make(world *w, uint64_t seed);
program *program_make(world *w, int index, int plant);
void program_free(program *p);
void program_print_file(printer *out, const world *w, program *const *programs, int count);
extern const char *const plant_names[];
int plant_count(void);

/* smith_answer.c: the words that every thread must write: out (threads, OUT_WORDS), and the counters. */
void program_answer(const program *p, uint32_t *out, uint32_t *counters);
uint32_t counter_start(int i);
