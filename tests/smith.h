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
 * Everything that a program does is defined: guards are parts of expressions (an index is masked, a
 * divisor is made odd, signed operands are shifted to where they cannot overflow), floats are small
 * multiples of a power of two, exact in every order and mode, and every variable starts with a value. A
 * part of a tree can therefore be replaced by another of its type without care. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOST_THREADS = 128, /* of a threadgroup; of all: MOST_GRID */
    MOST_GRID = 256,
    OUT_WORDS = 16,      /* that each thread may write per program; the last two are for plants */
    OWN_BYTES = 64,      /* of device memory that each thread has to itself per program */
    FRAME_BYTES = 32768, /* of these and all variables, of each thread */
    COUNTERS = 7,        /* that all threads change by atomics per program */
    INPUT_WORDS = 256,   /* of each input buffer */
    TABLE_WORDS = 16,    /* of the table; elements of a view of it, or of an input buffer */
    SHARED_BYTES = 2048, /* of threadgroup memory */
};
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define POISON 0xFFC3FFC3u /* what `out` holds where nothing is written */

typedef enum { BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, KINDS } kind;
typedef struct {
    kind k;
    int n;
} type;

typedef enum { OTHER, INFIX, PREFIX, CALL, COMPARE, LANES, VOTE } form;
/* clang-format off */
/* What keeps an operation defined: guard_operands of smith_program.c. WHOLE: only with all
 * lanes. APART: some threads only come to the operands after the first. */
typedef enum {
    FREE, HALVED, ROOTED, DIVIDED, COUNTED, LOW24, FIELD, BOUNDED, QUARTERS, SCALED, WHOLE, APART
} guard;
/* THE grammar: what is computed. How it is written; the operands that are made for it, any
 * others being the guard's (t of the type, e the same or a scalar, w a word, c a condition, k a
 * comparison); of which kinds (u unsigned, s signed, r real, b bfloat); how often it is chosen,
 * 0: only where code asks for it; and what it gives: of integers (operands a, b, c, d; as 128
 * bits x, y, z; without sign u), of floats (a, b, c), and the range of the latter: multiples of
 * 2^lo below 2^hi, of operands that are multiples of 2^L below 2^H (A, B, C: each). Of ANY, ALL
 * and DOT: a so far, with the next components b and c. Of LANES: how lanes are combined, and
 * how many, or from which lane the value comes. Of VOTE: nothing, and the answer. */
#define RULES(X) \
    X(ADD, "+", INFIX, "te", "usrb", 12, HALVED, a.u + b.u, a.f + b.f, L, H + 1) \
    X(SUB, "-", INFIX, "te", "usrb", 10, HALVED, a.u - b.u, a.f - b.f, L, H + 1) \
    X(MUL, "*", INFIX, "te", "usrb", 10, ROOTED, a.u * b.u, a.f * b.f, A->lo + B->lo, A->hi + B->hi) \
    X(DIV, "/", INFIX, "te", "us", 4, DIVIDED, x / y, 0, L, H) \
    X(MOD, "%", INFIX, "te", "us", 4, DIVIDED, x % y, 0, L, H) \
    X(AND, "&", INFIX, "te", "us", 5, FREE, a.u & b.u, 0, L, H) \
    X(OR, "|", INFIX, "te", "us", 5, FREE, a.u | b.u, 0, L, H) \
    X(XOR, "^", INFIX, "te", "us", 6, FREE, a.u ^ b.u, 0, L, H) \
    X(SHL, "<<", INFIX, "te", "u", 4, COUNTED, a.u << b.u, 0, L, H) \
    X(SHR, ">>", INFIX, "te", "us", 5, COUNTED, x >> b.u, 0, L, H) \
    X(BOTH, "&&", INFIX, "cc", "", 0, APART, 0, 0, L, H) \
    X(EITHER, "||", INFIX, "cc", "", 0, APART, 0, 0, L, H) \
    X(NOT, "~", PREFIX, "t", "us", 3, FREE, ~a.u, 0, L, H) \
    X(NEG, "-", PREFIX, "t", "usrb", 3, HALVED, -a.u, -a.f, L, H) \
    X(NO, "!", PREFIX, "c", "", 0, FREE, !a.u, 0, L, H) \
    X(ABS, "abs", CALL, "t", "usr", 2, HALVED, x < 0 ? -x : x, fabs(a.f), L, H) \
    X(ABSDIFF, "absdiff", CALL, "tt", "u", 2, FREE, x > y ? x - y : y - x, 0, L, H) \
    X(ADDSAT, "addsat", CALL, "tt", "us", 2, FREE, clip(k, x + y), 0, L, H) \
    X(SUBSAT, "subsat", CALL, "tt", "us", 2, FREE, clip(k, x - y), 0, L, H) \
    X(HADD, "hadd", CALL, "tt", "us", 2, FREE, (x + y) >> 1, 0, L, H) \
    X(RHADD, "rhadd", CALL, "tt", "us", 2, FREE, (x + y + 1) >> 1, 0, L, H) \
    X(MULHI, "mulhi", CALL, "tt", "us", 2, FREE, (full)x * (full)y >> bits, 0, L, H) \
    X(MADHI, "madhi", CALL, "ttt", "u", 2, FREE, ((full)x * (full)y >> bits) + c.u, 0, L, H) \
    X(MADSAT, "madsat", CALL, "ttt", "us", 2, FREE, k == U64 && a.u && b.u > UINT64_MAX / a.u ? UINT64_MAX : clip(k, x * y + z), 0, L, H) \
    X(MUL24, "mul24", CALL, "tt", "us", 1, LOW24, a.u * b.u, 0, L, H) \
    X(MAD24, "mad24", CALL, "ttt", "us", 1, LOW24, a.u * b.u + c.u, 0, L, H) \
    X(CLZ, "clz", CALL, "t", "us", 2, FREE, u ? __builtin_clzll(u) - 64 + bits : bits, 0, L, H) \
    X(CTZ, "ctz", CALL, "t", "us", 2, FREE, u ? __builtin_ctzll(u) : bits, 0, L, H) \
    X(POPCOUNT, "popcount", CALL, "t", "us", 2, FREE, __builtin_popcountll(u), 0, L, H) \
    X(REVERSE, "reverse_bits", CALL, "t", "us", 2, FREE, reverse(u, bits), 0, L, H) \
    X(ROTATE, "rotate", CALL, "tt", "us", 2, COUNTED, b.u ? u << b.u | u >> (bits - b.i) : u, 0, L, H) \
    X(EXTRACT, "extract_bits", CALL, "t", "us", 2, FIELD, extract(k, u >> b.u, c.u), 0, L, H) \
    X(INSERT, "insert_bits", CALL, "tt", "us", 2, FIELD, a.u ^ ((a.u ^ b.u << c.u) & low_bits(d.u) << c.u), 0, L, H) \
    X(MIN, "min", CALL, "tt", "usr", 3, FREE, LESS(x, y), fmin(a.f, b.f), L, H) \
    X(MAX, "max", CALL, "tt", "usr", 3, FREE, MORE(x, y), fmax(a.f, b.f), L, H) \
    X(MIN3, "min3", CALL, "ttt", "usr", 1, FREE, LESS(x, LESS(y, z)), fmin(a.f, fmin(b.f, c.f)), L, H) \
    X(MAX3, "max3", CALL, "ttt", "usr", 1, FREE, MORE(x, MORE(y, z)), fmax(a.f, fmax(b.f, c.f)), L, H) \
    X(MEDIAN3, "median3", CALL, "ttt", "usr", 1, FREE, MORE(LESS(x, y), LESS(MORE(x, y), z)), fmax(fmin(a.f, b.f), fmin(fmax(a.f, b.f), c.f)), L, H) \
    X(CLAMP, "clamp", CALL, "t", "usr", 2, BOUNDED, LESS(MORE(x, y), z), fmin(fmax(a.f, b.f), c.f), L, H) \
    X(FABS, "fabs", CALL, "t", "r", 2, FREE, 0, fabs(a.f), L, H) \
    X(FLOOR, "floor", CALL, "t", "r", 2, FREE, 0, floor(a.f), MORE(L, 0), MORE(H, 0) + 1) \
    X(CEIL, "ceil", CALL, "t", "r", 2, FREE, 0, ceil(a.f), MORE(L, 0), MORE(H, 0) + 1) \
    X(TRUNC, "trunc", CALL, "t", "r", 2, FREE, 0, trunc(a.f), MORE(L, 0), MORE(H, 0)) \
    X(ROUND, "round", CALL, "t", "r", 2, FREE, 0, round(a.f), MORE(L, 0), MORE(H, 0) + 1) \
    X(RINT, "rint", CALL, "t", "r", 2, FREE, 0, rint(a.f), MORE(L, 0), MORE(H, 0) + 1) \
    X(FRACT, "fract", CALL, "t", "r", 2, FREE, 0, a.f - floor(a.f), LESS(L, 0), 1) \
    X(SIGN, "sign", CALL, "t", "r", 2, FREE, 0, (a.f > 0) - (a.f < 0), 0, 1) \
    X(SATURATE, "saturate", CALL, "t", "r", 1, FREE, 0, fmin(fmax(a.f, 0), 1), LESS(L, 0), 1) \
    X(FMIN, "fmin", CALL, "tt", "r", 2, FREE, 0, fmin(a.f, b.f), L, H) \
    X(FMAX, "fmax", CALL, "tt", "r", 2, FREE, 0, fmax(a.f, b.f), L, H) \
    X(FDIM, "fdim", CALL, "tt", "r", 1, FREE, 0, a.f > b.f ? a.f - b.f : 0, L, H + 1) \
    X(STEP, "step", CALL, "tt", "r", 2, FREE, 0, b.f < a.f ? 0 : 1, 0, 1) \
    X(FMA, "fma", CALL, "ttt", "r", 3, ROOTED, 0, a.f * b.f + c.f, LESS(A->lo + B->lo, C->lo), MORE(A->hi + B->hi, C->hi) + 1) \
    X(MIX, "mix", CALL, "tt", "r", 1, QUARTERS, 0, a.f + (b.f - a.f) * c.f, L - 2, H + 3) \
    X(LDEXP, "ldexp", CALL, "t", "r", 1, SCALED, 0, ldexp(a.f, (int)b.i), L - 2, H + 2) \
    X(CHOOSE, "(%0 ? %1 : %2)", OTHER, "ctt", "", 0, APART, 0, 0, L, H) \
    X(SELECT, "select", CALL, "ttk", "", 0, FREE, c.u ? b.u : a.u, c.u ? b.f : a.f, L, H) \
    X(ANY, "any", CALL, "t", "", 0, FREE, a.u || b.u, 0, L, H) \
    X(ALL, "all", CALL, "t", "", 0, FREE, a.u && b.u, 0, L, H) \
    X(DOT, "dot", CALL, "tt", "", 0, FREE, 0, a.f + b.f * c.f, A->lo + B->lo, A->hi + B->hi + 2) \
    X(LT, "<", COMPARE, "tt", "usr", 3, FREE, less(k, a, b), 0, L, H) \
    X(LE, "<=", COMPARE, "tt", "usr", 3, FREE, !less(k, b, a), 0, L, H) \
    X(GT, ">", COMPARE, "tt", "usr", 3, FREE, less(k, b, a), 0, L, H) \
    X(GE, ">=", COMPARE, "tt", "usr", 3, FREE, !less(k, a, b), 0, L, H) \
    X(EQ, "==", COMPARE, "tt", "usr", 3, FREE, !less(k, a, b) && !less(k, b, a), 0, L, H) \
    X(NE, "!=", COMPARE, "tt", "usr", 3, FREE, less(k, a, b) || less(k, b, a), 0, L, H)
#define LANE_RULES(X) \
    X(SUM, "%q_sum(%a)", LANES, "t", "ur", 4, FREE, OP_ADD, width, L, H + 5) \
    X(PRODUCT, "%q_product(%a)", LANES, "t", "u", 2, FREE, OP_MUL, width, L, H) \
    X(LEAST, "%q_min(%a)", LANES, "t", "usr", 3, FREE, OP_MIN, width, L, H) \
    X(MOST, "%q_max(%a)", LANES, "t", "usr", 3, FREE, OP_MAX, width, L, H) \
    X(ALL_AND, "%q_and(%a)", LANES, "t", "us", 2, FREE, OP_AND, width, L, H) \
    X(ALL_OR, "%q_or(%a)", LANES, "t", "us", 2, FREE, OP_OR, width, L, H) \
    X(ALL_XOR, "%q_xor(%a)", LANES, "t", "us", 2, FREE, OP_XOR, width, L, H) \
    X(SCAN_SUM, "%q_prefix_inclusive_sum(%a)", LANES, "t", "ur", 3, FREE, OP_ADD, lane + 1, L, H + 5) \
    X(SCAN_BEFORE, "%q_prefix_exclusive_sum(%a)", LANES, "t", "ur", 3, FREE, OP_ADD, lane, L, H + 5) \
    X(SCAN_PRODUCT, "%q_prefix_inclusive_product(%a)", LANES, "t", "u", 1, FREE, OP_MUL, lane + 1, L, H) \
    X(FIRST, "%q_broadcast_first(%a)", LANES, "t", "usr", 3, FREE, 0, first, L, H) \
    X(SHUFFLE, "%q_shuffle(%0, pick%g(%1, at.lane))", LANES, "tw", "usr", 4, FREE, 0, here >> want & 1 ? want : lane, L, H) \
    X(BROADCAST, "%q_broadcast(%0, first%g())", LANES, "t", "usr", 2, FREE, 0, first, L, H) \
    X(SHUFFLE_XOR, "%q_shuffle_xor(%a, ushort(%n))", LANES, "t", "usr", 3, WHOLE, 0, lane ^ by, L, H) \
    X(SHUFFLE_UP, "%q_shuffle_up(%a, ushort(%n))", LANES, "t", "usr", 3, WHOLE, 0, lane < by ? lane : lane - by, L, H) \
    X(SHUFFLE_DOWN, "%q_shuffle_down(%a, ushort(%n))", LANES, "t", "usr", 3, WHOLE, 0, lane + by < width ? lane + by : lane, L, H) \
    X(ROTATE_UP, "%q_shuffle_rotate_up(%a, ushort(%n))", LANES, "t", "usr", 2, WHOLE, 0, (lane + width - by) % width, L, H) \
    X(ROTATE_DOWN, "%q_shuffle_rotate_down(%a, ushort(%n))", LANES, "t", "usr", 2, WHOLE, 0, (lane + by) % width, L, H) \
    X(FILL_UP, "%q_shuffle_and_fill_up(%a, ushort(%n))", LANES, "tt", "usr", 2, WHOLE, 0, lane - by, L, H) \
    X(FILL_DOWN, "%q_shuffle_and_fill_down(%a, ushort(%n))", LANES, "tt", "usr", 2, WHOLE, 0, lane + by, L, H)
#define VOTE_RULES(X) \
    X(ANY_LANE, "%q_any(%a)", VOTE, "c", "", 3, FREE, 0, yes != 0, L, H) \
    X(ALL_LANES, "%q_all(%a)", VOTE, "c", "", 3, FREE, 0, yes == here, L, H) \
    X(IS_FIRST, "%q_is_first(%a)", VOTE, "", "", 2, FREE, 0, first == lane, L, H) \
    X(BALLOT, "uint(%q_vote::vote_t(%q_ballot(%a)))", VOTE, "c", "", 0, FREE, 0, yes, L, H) \
    X(ACTIVE, "uint(%q_vote::vote_t(%q_active_threads_mask(%a)))", VOTE, "", "", 0, FREE, 0, here, L, H)
/* The leaves, what else is in expressions, and statements. What a %x in a text stands for: LETTERS of
 * smith_program.c. Without a text: see get_text. */
#define BARRIER "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
#define RELAXED ", memory_order_relaxed);\n"
#define SHARED_POINTER "threadgroup %t *s%v = (threadgroup %t *)tg;\n"
#define OTHER_RULES(X) \
    X(LITERAL, "%t(%z)") /* value; of a float: in quarters */ \
    X(LOAD, "%p") X(PLACE, "at.%l") X(CONSTANT, "fc%n") /* of a function */ \
    X(CALL_OF, "f%f(at, %a)") X(CONVERT, "%t(%0)") \
    X(JOIN, "%t(%a)") /* a vector of scalars and vectors; of one scalar: all of it */ \
    X(SWIZZLE, "%0.%x") X(ELEMENT, "%0[%1]") X(REINTERPRET, "as_type<%t>(%0)") \
    /* Variables: without values; with one, a pointer to an element of w, a copy of w. */ \
    X(DECLARE, "%T v%v;\n") X(ARRAY, "%T v%v[%c];\n") X(VIEW, "%S %T *v%v = (%S %T *)%b;\n") \
    X(OWN, "%S %T *v%v = (%S %T *)(own + %n);\n") X(START, "%T v%v = %0;\n") \
    X(POINT, "%S %T *v%v = v%w + %0;\n") X(COPY, "%T v%v = v%w;\n") \
    X(ASSIGN, "%p %o= %1;\n") /* value: 0, or the operator before the = */ \
    X(PUT, "out[%n] = fold(%0);\n") \
    X(ATOMIC, "atomic_fetch_%k_explicit(counts + %n, %0" RELAXED) \
    X(RETURN, "return %a;\n") X(BREAK, "break;\n") X(CONTINUE, "continue;\n") \
    X(IF, "if (%0) {\n") X(LOOP, "for (uint v%v = 0; v%v < %0; v%v++) {\n") X(DO, "uint v%v = %0;\ndo {\n") \
    X(SWITCH, "switch (%0) {\n") X(CASE, "case %n: {\n") X(DEFAULT, "default: {\n") \
    /* Through threadgroup memory: of the threadgroup, of the simdgroup; atomics; matrices. */ \
    X(EXCHANGE, SHARED_POINTER "s%v[at.tid] = %0;\n" BARRIER "%t v%v = s%v[%1 % at.size];\n" BARRIER) \
    X(PASS, SHARED_POINTER "s%v[at.tid] = %0;\nsimdgroup_barrier(mem_flags::mem_threadgroup);\n" \
      "%t v%v = s%v[(at.tid & ~31u) + (%1 & 31u)];\n" BARRIER) \
    X(TALLY, "threadgroup atomic_uint *s%v = (threadgroup atomic_uint *)tg;\nif (at.tid == 0)\n" \
      "    atomic_store_explicit(s%v, 5u" RELAXED BARRIER "atomic_fetch_%k_explicit(s%v, %0" RELAXED \
      BARRIER "uint v%v = atomic_load_explicit(s%v" RELAXED BARRIER) \
    X(MULTIPLY, SHARED_POINTER "simdgroup_float8x8 a%v, b%v, c%v;\n" \
      "simdgroup_load(a%v, reals + %n, 8, ulong2(0), bool(%n & 1));\n" \
      "simdgroup_load(b%v, reals, 9, ulong2(%n % 3, %n % 5), bool(%n & 2));\n" \
      "c%v = make_filled_simdgroup_matrix<float, 8, 8>(%n % 7 + 0.5f);\n" \
      "simdgroup_multiply_accumulate(c%v, a%v, b%v, c%v);\n" \
      "simdgroup_store(c%v, s%v + at.sg * 64, 8, ulong2(0), bool(%n & 4));\n" BARRIER \
      "float v%v = float(int(s%v[at.sg * 64 + (%1 & 63u)] * 16.0f) & 1023);\n" BARRIER) \
    X(PLANT, NULL) /* a bug; value: an index of plants */
#define GRAMMAR(X) RULES(X) LANE_RULES(X) VOTE_RULES(X)
/* clang-format on */
#define NAME_OP(op, ...) OP_##op,
typedef enum { OP_NONE, GRAMMAR(NAME_OP) OTHER_RULES(NAME_OP) OP_COUNT } op;
#undef NAME_OP
typedef struct {
    const char *text;
    form form;
    const char *operands, *kinds;
    int weight;
    guard guard;
} rule;
extern const rule grammar[OP_COUNT];

/* Where a variable lives: in the thread, in an input buffer, in device memory of this thread alone. */
typedef enum { IN_THREAD, IN_WORDS, IN_PARAMS, IN_TABLE, IN_REALS, IN_OWN } space;
typedef struct {
    type t;
    bool packed;
    int count, at; /* 0: not an array; offset in the record */
} field;
typedef struct variable variable;
struct variable {
    int id, record; /* of the variable whose record type this has */
    space where;
    bool is_record, is_union, is_fixed; /* fixed: a counter or a parameter, which is only read */
    int fields;                         /* 1 if it is no record */
    field field[4];
    int at, bytes;    /* in the thread's memory, which OWN is the first part of */
    variable *target; /* a pointer to an element of this array */
};

typedef struct node node;
typedef struct function function;
struct node {
    op op;
    type t;
    int lo, hi; /* of a float: a multiple of 2^lo below 2^hi */
    node *a[4];
    node *body, *other, *next; /* of a statement */
    int64_t value;
    int group; /* of LANES and VOTE: 32 or 4 */
    variable *v, *w;
    int field;    /* of v */
    char part[5]; /* of a vector: "zx", or "" */
    function *f;
    int line; /* in the text */
};
struct function {
    int id, parameters;
    type t; /* n 0: void, the program itself */
    variable *parameter[3];
    node *body;
    bool is_template; /* its type is called T */
    function *next;
};

typedef struct {
    uint32_t x, y, z;
} extent;
/* What all programs of a file share. */
typedef struct {
    uint64_t seed;
    extent threads, group; /* dispatchThreads: the last groups may be smaller */
    int thread_count;
    bool is_whole;        /* every simdgroup has all its lanes */
    size_t offset;        /* of every buffer, in bytes */
    uint32_t constant[4]; /* function constants: uint, int, bool, float in quarters */
    uint32_t input[IN_OWN][INPUT_WORDS]; /* what is in these spaces */
} world;
enum { PLACES = 13, VARIABLES = 96, ARENA_WORDS = 1 << 17, TEXT_BYTES = 1 << 23 };

typedef struct {
    int index;
    world *world;
    function *functions, *main;                     /* functions: in order; main is the last */
    int variable_count, outs;                       /* words of `out` in use */
    int first_line, last_line, put_line[OUT_WORDS]; /* in the text */
    node *planted;
    size_t used;
    uint64_t arena[ARENA_WORDS]; /* what all of it is in; free(program) frees it */
} program;

typedef struct {
    char *text;
    size_t count;
    int line, depth, slot, slots; /* of the program in its file */
    program *p;
    const function *generic; /* the template that is being printed */
} printer;

static inline int kind_bytes(kind k) {
    return k < I16 ? 1 : k < I32 || k == F16 || k == BF16 ? 2 : k == I64 || k == U64 ? 8 : 4;
}
static inline bool is_same(type a, type b) {
    return a.k == b.k && a.n == b.n;
}
static inline bool kind_is_signed(kind k) {
    return k < F16 && k % 2 == 1;
}
static inline bool is_own(const variable *v) {
    return v->where == IN_THREAD || v->where == IN_OWN;
}
static inline variable *get_target(variable *v) {
    return v->target ? v->target : v;
}
static inline const field *get_field(const node *n) { /* that is loaded or assigned */
    return &get_target(n->v)->field[n->field];
}
static inline int field_step(const field *f) { /* bytes from one element to the next */
    return kind_bytes(f->t.k) * (f->t.n == 3 && !f->packed ? 4 : f->t.n);
}

/* smith_program.c */
typedef struct {
    const char *name;
    unsigned findings; /* a bit per class that reports it */
    const char *text;
} plant;
extern const plant plants[];
extern const int plant_count;
void world_make(world *w, uint64_t seed);
program *program_make(world *w, int index, int planted); /* an index of plants, or -1; free it */
void program_print_file(printer *out, const world *w, program *const *programs, int count);

/* smith_answer.c: the words that the threads must write (threads, OUT_WORDS), and the counters. */
void program_answer(const program *p, uint32_t *out, uint32_t *counters);
uint32_t counter_start(int i);
