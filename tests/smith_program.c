/* smith_program: makes random programs and prints them as Metal. See smith.h. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/finding.h"
#include "smith.h"

#define RULE(op, text, form, operands, kinds, weight, guard, ...)                                  \
    [OP_##op] = {text, form, operands, kinds, weight, guard},
#define OTHER_RULE(op, text) [OP_##op] = {text, OTHER, 0, "", 0, FREE},
const rule grammar[OP_COUNT] = {OTHER_RULE(NONE, "") GRAMMAR(RULE) OTHER_RULES(OTHER_RULE)};

/* Bugs, each on one line: %0 and %1 are expressions of the program, of type uint. */
#define BIT(what) (1u << FINDING_##what)
#define RACE (BIT(RACE_IN_GROUP) | BIT(RACE_OF_GROUPS))
/* clang-format off */
const plant plants[] = {
    {"load past the end of a buffer", BIT(LOAD_OUTSIDE), "out[14] = words[256u + (%0 & 7u)];\n"},
    {"load before the start of a buffer", BIT(LOAD_OUTSIDE), "out[14] = params[int(%0 & 7u) - 8];\n"},
    {"store past the end of a buffer", BIT(STORE_OUTSIDE), "out[16u * (%r - at.i) + (%0 & 3u)] = 1u;\n"},
    {"load outside threadgroup memory", BIT(LOAD_OUTSIDE), "out[14] = uint(tg[%m + (%0 & 3u)]);\n"},
    {"store outside threadgroup memory", BIT(STORE_OUTSIDE), "tg[%m + at.tid] = %0;\n"},
    {"index outside a private array", BIT(LOAD_OUTSIDE) | BIT(STORE_OUTSIDE),
     "{ uint z[4] = {1, 2, 3, %0}; z[4u + (%1 & 1u)] = 5u; out[14] = z[at.lane & 3u]; }\n"},
    {"index outside a table", BIT(LOAD_OUTSIDE) | BIT(STORE_OUTSIDE), "out[14] = beyond[8u + (%0 & 3u)];\n"},
    {"variable without a value", BIT(UNWRITTEN), "{ uint z; if (at.lane > 40) z = 1; out[14] = z + %0; }\n"},
    {"element without a value", BIT(UNWRITTEN), "{ uint z[4]; z[at.lane & 1u] = 3; out[14] = z[2u + (%0 & 1u)]; }\n"},
    {"member without a value", BIT(UNWRITTEN), "{ pair z; z.x = %0; out[14] = z.y.x; }\n"},
    {"unwritten device memory", BIT(UNWRITTEN), "out[14] = out[15] + %0;\n"},
    {"unwritten threadgroup memory", BIT(UNWRITTEN), "out[14] = uint(tg[256u + %i]) + %0;\n"},
    {"missing barrier", RACE, "{ tg[at.tid] = %0; out[14] = uint(tg[(at.tid + 1) % at.size]); }\n"},
    {"plain access beside atomics", RACE, "{ device uint *z = (device uint *)counts; *z = *z + %0; }\n"},
    {"store of all threads in one place", RACE, "{ device uint *z = (device uint *)(counts + 1); *z = at.i + %0; }\n"},
    {"barrier in a branch", BIT(BARRIER), "if (at.tid != 0) threadgroup_barrier(mem_flags::mem_none);\n"},
    {"value of an inactive lane", BIT(DIVERGED), "if (at.lane != 0) out[14] = simd_broadcast(%0, ushort(0));\n"},
    {"shuffle from an inactive lane", BIT(DIVERGED), "if (at.lane & 1u) out[14] = simd_shuffle_xor(%0, ushort(1));\n"},
    {"division by zero", BIT(DIVIDE), "out[14] = %0 / (%1 & 0u);\n"},
    {"remainder of zero", BIT(DIVIDE), "out[14] = fold(uint2(%0) % uint2(1u, %1 & 0u));\n"},
    {"shift by the width", BIT(SHIFT), "out[14] = %0 << (32u + (%1 & 3u));\n"},
    {"shift of a vector by the width", BIT(SHIFT), "out[14] = fold(ushort3(5) << ushort3(1, 2, ushort(16u + (%0 & 3u))));\n"},
    {"signed overflow", BIT(OVERFLOW), "out[14] = uint(2147483647 - int(%0 & 3u) + int(4u + (%1 & 3u)));\n"},
    {"overflow of a signed product", BIT(OVERFLOW), "out[14] = uint(int(65536u + (%0 & 3u)) * int(32768u + (%1 & 3u)));\n"},
    {"float beyond an integer", BIT(CONVERT), "out[14] = uint(int(float(%0 & 7u) + 3e9f));\n"},
    {"misaligned pointer", BIT(MISALIGNED), "out[14] = *(device const uint *)((device const uchar *)words + 1 + 4 * (%0 & 1u));\n"},
    {"clamp with its bounds swapped", BIT(CLAMP), "out[14] = clamp(%0, 9u, 3u);\n"},
};
/* clang-format on */
const int plant_count = sizeof plants / sizeof *plants;

/* ------------------------------------------------------------------------------------------ chance */
typedef struct {
    uint64_t state;
    program *p;
    function *f;                /* that is being made */
    variable *scope[VARIABLES]; /* what can be named here */
    int scopes, depth;          /* of statements */
    int loops;                  /* that a break would leave */
    int left;                   /* statements to go */
    int own, frame;             /* bytes in use of the thread's device memory, of its variables */
    bool is_uniform;            /* all threads of the threadgroup come here */
    bool may_return, has_returned, in_index;
} maker;

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static int below(maker *m, int n) {
    return (int)(next(&m->state) % (uint64_t)n);
}
static bool chance(maker *m, int percent) {
    return below(m, 100) < percent;
}

void world_make(world *w, uint64_t seed) {
    static const extent shapes[][2] = {
        {{64, 1, 1}, {32, 1, 1}},  {{128, 1, 1}, {64, 1, 1}}, {{96, 1, 1}, {96, 1, 1}},
        {{100, 1, 1}, {64, 1, 1}}, {{90, 1, 1}, {40, 1, 1}},  {{12, 9, 1}, {8, 4, 1}},
        {{16, 8, 1}, {8, 8, 1}},   {{9, 5, 3}, {4, 4, 2}},    {{8, 4, 4}, {4, 4, 4}},
        {{33, 1, 1}, {33, 1, 1}},  {{7, 3, 1}, {16, 2, 1}},   {{256, 1, 1}, {128, 1, 1}},
        {{65, 2, 1}, {32, 1, 1}},  {{5, 1, 1}, {4, 1, 1}},    {{32, 4, 1}, {32, 2, 1}}};
    uint64_t s = seed * 0x2545F4914F6CDD1Du + 1;
    *w = (world){.seed = seed};
    const extent *shape = shapes[next(&s) % (sizeof shapes / sizeof *shapes)];
    const extent n = w->threads = shape[0], g = w->group = shape[1];
    w->thread_count = (int)(n.x * n.y * n.z);
    w->is_whole = g.x * g.y * g.z % 32 == 0 && n.x % g.x == 0 && n.y % g.y == 0 && n.z % g.z == 0;
    w->offset = next(&s) % 3 * 256;
    w->constant[0] = (uint32_t)next(&s) % 100;
    w->constant[1] = (uint32_t)((int)(next(&s) % 100) - 50);
    w->constant[2] = (uint32_t)next(&s) % 2;
    w->constant[3] = (uint32_t)next(&s) % 16;
    for (int i = 0; i < TABLE_WORDS; i++)
        w->input[IN_TABLE][i] = (uint32_t)next(&s);
    for (int i = 0; i < INPUT_WORDS; i++) {
        w->input[IN_WORDS][i] = (uint32_t)next(&s);
        w->input[IN_PARAMS][i] = (uint32_t)next(&s);
        const float real = (float)((int)(next(&s) % 127) - 63) / 4;
        memcpy(&w->input[IN_REALS][i], &real, sizeof real);
    }
}

/* ------------------------------------------------------------------------------------------- nodes */
static void *take(program *p, size_t bytes) {
    void *at = p->arena + p->used;
    p->used += (bytes + 7) / 8;
    assert(p->used <= ARENA_WORDS);
    return at;
}

static bool is_real(const node *n) {
    return n && n->t.k >= F16;
}

/* Of each kind of float: its variables hold multiples of 2^lo below 2^hi; the bits that are exact; and all
 * values are below 2^most, far from where its exponents end. */
static const struct {
    int lo, hi, bits, most;
} floats[KINDS] = {[F16] = {-2, 6, 11, 14}, [BF16] = {-2, 5, 8, 14}, [F32] = {-4, 10, 24, 20}};

static bool holds(kind k, int lo, int hi) {
    return hi - lo <= floats[k].bits && lo >= -10 && hi <= floats[k].most;
}

static void set_range(node *n) {
    const node *A = n->a[0], *B = n->a[1], *C = n->a[2];
    int L = 99, H = -99;
    for (int i = 0; i < 4; i++)
        if (is_real(n->a[i])) {
            L = LESS(L, n->a[i]->lo);
            H = MORE(H, n->a[i]->hi);
        }
    if (n->op == OP_LOAD || n->op == OP_CALL_OF)
        L = floats[n->t.k].lo, H = floats[n->t.k].hi;
    (void)C;
#define RANGE(op, text, form, operands, kinds, weight, guard, whole, real, low, high)              \
    case OP_##op:                                                                                  \
        n->lo = low;                                                                               \
        n->hi = high;                                                                              \
        return;
    switch (H > -99 ? n->op : OP_NONE) {
        GRAMMAR(RANGE)
    default:
        /* An integer is below 16, or it would not be converted. */
        n->lo = H > -99 ? L : n->op <= OP_CONSTANT ? -2 : 0;
        n->hi = H > -99 ? H : 4;
    }
}

static node *settle(maker *m, node *a);

/* A node whose floats are exact: its operands are made small if the result would not be. */
static node *make(maker *m, node what) {
    node *n = take(m->p, sizeof *n), **a = n->a;
    *n = what;
    set_range(n);
    kind k = is_real(n) ? n->t.k : is_real(a[0]) ? a[0]->t.k : F32;
    bool is_rule = n->op < OP_LITERAL || n->op == OP_JOIN;
    if (is_rule && (is_real(a[0]) || is_real(a[1])) && !holds(k, n->lo, n->hi)) {
        for (int i = 0; i < 3; i++)
            if (is_real(a[i]) && a[i]->op != OP_LITERAL)
                a[i] = settle(m, a[i]);
        set_range(n);
    }
    return n;
}

/* A node with these fields, of which at most one is drawn by chance: C leaves open which is computed first. */
#define MAKE(what, of, ...) make(m, (node){.op = what, .t = of, __VA_ARGS__})

static type scalar(kind k) {
    return (type){k, 1};
}

/* A vector of which this scalar is each component. */
static node *spread(maker *m, type t, node *a) {
    return t.n == 1 ? a : MAKE(OP_JOIN, t, .a = {a});
}

static node *literal(maker *m, type t, int64_t value) {
    return spread(m, t, MAKE(OP_LITERAL, scalar(t.k), .value = value));
}

static node *with_literal(maker *m, op o, node *a, int64_t value) {
    return MAKE(o, a->t, .a = {a, literal(m, scalar(a->t.k), value)});
}

static node *mask(maker *m, node *a, int64_t by) {
    return with_literal(m, OP_AND, a, by);
}

/* A float of any range as a small whole one. */
static node *settle(maker *m, node *a) {
    node *whole = MAKE(OP_CONVERT, ((type){I32, a->t.n}), .a = {a});
    return MAKE(OP_CONVERT, a->t, .a = {mask(m, whole, 15)});
}

static node *fit(maker *m, node *a) {
    bool fits = a->lo >= floats[a->t.k].lo && a->hi <= floats[a->t.k].hi;
    return is_real(a) && !fits ? settle(m, a) : a;
}

/* ------------------------------------------------------------------------------------- expressions */
static type any_type(maker *m) {
    static const kind kinds[] = {U32, U32, U32, I32, I32, F32, F32, U8,
                                 I8,  U16, I16, U64, I64, F16, F16, BF16};
    const kind k = kinds[below(m, 16)]; /* one after the other, or compilers would differ */
    return (type){k, chance(m, 50) ? 1 : 1 + below(m, 4)};
}

/* A rule of these forms for operands of this type; OP_NONE if there is none. */
static op choose(maker *m, form first, form last, type t) {
    bool whole = m->is_uniform && m->p->world->is_whole;
    op chosen = OP_NONE;
    for (int o = 1, total = 0; o < OP_LITERAL; o++) {
        const rule *r = &grammar[o];
        if (r->form < first || r->form > last || r->weight == 0 || (r->guard == WHOLE && !whole) ||
            (r->form != VOTE && !strchr(r->kinds, "ususususurbr"[t.k])) ||
            (r->guard == LOW24 && t.k != I32 && t.k != U32))
            continue;
        total += r->weight;
        chosen = below(m, total) < r->weight ? (op)o : chosen;
    }
    return chosen;
}

static node *expression(maker *m, type t, int depth);
static node *condition(maker *m, int depth);

static node *word(maker *m, int depth) {
    return expression(m, scalar(U32), depth);
}

static node *load(maker *m, variable *v, int at) {
    const field *f = &get_target(v)->field[at];
    int most = (v->target ? f->count / 2 : f->count) - 1;
    bool was = m->in_index, is_literal = was || chance(m, 40);
    m->in_index = true; /* one in another is enough */
    node *index = !f->count    ? NULL
                  : is_literal ? literal(m, scalar(U32), below(m, most + 1))
                               : mask(m, word(m, 1), most);
    m->in_index = was;
    return MAKE(OP_LOAD, f->t, .a = {index}, .v = v, .field = at);
}

/* A place of this type that can be named here, to write to or only to read; NULL if there is none. */
static node *find_place(maker *m, type t, bool to_write) {
    variable *found = NULL;
    int at = 0, count = 0;
    for (int i = 0; i < m->scopes; i++) {
        variable *v = m->scope[i], *target = get_target(v);
        bool is_open = !to_write || (!target->is_fixed && is_own(target));
        for (int f = 0; f < target->fields && is_open; f++)
            if (is_same(target->field[f].t, t) && below(m, ++count) == 0)
                found = v, at = f;
    }
    return found ? load(m, found, at) : NULL;
}

static node *leaf(maker *m, type t) {
    static const kind kinds[] = {U32, I32, BOOL, F32, U32}; /* of constants, and of places */
    const kind k = t.k;
    node *n = chance(m, 80) ? find_place(m, t, false) : NULL;
    for (int i = 0; i < 5 && t.n == 1 && !n; i++)
        if (chance(m, i < 4 ? 25 : 60) && kinds[i] == k)
            n = MAKE(i < 4 ? OP_CONSTANT : OP_PLACE, t, .value = i < 4 ? i : below(m, PLACES));
    if (n)
        return n;
    if (k != BOOL && chance(m, 65)) { /* of where the thread is, or of a variable */
        n = leaf(m, scalar(U32));
        n = k >= F16 ? mask(m, n, 15) : n;
        return spread(m, t, k == U32 ? n : MAKE(OP_CONVERT, scalar(k), .a = {n}));
    }
    int unused = 64 - 8 * kind_bytes(k);
    uint64_t bits = (chance(m, 70) ? (uint64_t)below(m, 20) : next(&m->state)) << unused;
    return literal(m, t,
                   k == BOOL           ? below(m, 2)
                   : k >= F16          ? below(m, 33) - 16
                   : kind_is_signed(k) ? (int64_t)bits >> unused
                                       : (int64_t)(bits >> unused));
}

/* Masks and shifts that keep an operation defined. */
static void guard_operands(maker *m, op o, type t, node **a) {
    const int bits = 8 * kind_bytes(t.k), given = (int)strlen(grammar[o].operands),
              low = below(m, 8);
    const bool is_signed = kind_is_signed(t.k), is_small = t.n == 1 && bits < 32;
    const guard g = t.k >= F16 && grammar[o].guard <= ROOTED ? FREE : grammar[o].guard;
    /* How far operands are shifted: only operators promote; signed products and sums stay below 2^31. */
    int down = g == HALVED   ? is_signed && (!is_small || o == OP_ABS)
               : g == LOW24  ? is_signed ? 17 : 8
               : g != ROOTED ? 0
               : is_small    ? t.k == U16
               : is_signed   ? bits / 2
                             : 0;
    if (g == DIVIDED) {
        a[1] = with_literal(m, OP_OR, a[1], 1);
        a[0] = is_signed ? with_literal(m, OP_SHR, a[0], 1) : a[0];
    } else if (g == COUNTED) {
        a[1] = mask(m, a[1], bits - 1);
    } else if (g == FIELD) {
        for (int i = given; i < given + 2; i++)
            a[i] = mask(m, word(m, 0), bits / 2 - 1);
    } else if (g == BOUNDED) {
        a[1] = literal(m, t, low);
        a[2] = literal(m, t, low + below(m, 9));
    } else if (g == QUARTERS || g == SCALED) {
        a[given] = literal(m, g == SCALED ? scalar(I32) : t, below(m, 5) - 2 * (g == SCALED));
    }
    for (int i = 0; i < 4 && a[i] && down; i++)
        a[i] = with_literal(m, OP_SHR, a[i], down);
}

/* A rule's operation of type t on operands of type `of`. */
static node *operation(maker *m, op o, type t, type of, int depth) {
    const rule *r = &grammar[o];
    const bool was = m->is_uniform;
    node *a[4] = {NULL};
    if (o == OP_NONE)
        return leaf(m, t); /* lanes may not meet here */
    for (int i = 0; r->operands[i]; i++) {
        const char c = r->operands[i];
        bool is_scalar = c == 'e' && of.n > 1 && chance(m, 25);
        a[i] = c == 'c' ? condition(m, depth - 1)
               : c == 'k'
                   ? operation(m, choose(m, COMPARE, COMPARE, of), (type){BOOL, of.n}, of, depth)
               : c == 'w' ? word(m, depth - 1)
                          : expression(m, is_scalar ? scalar(of.k) : of, depth - 1);
        m->is_uniform = was && r->guard != APART;
    }
    m->is_uniform = was;
    guard_operands(m, o, of, a);
    const int group = chance(m, 30) ? 4 : 32;
    return MAKE(o, t, .a = {a[0], a[1], a[2], a[3]}, .group = group, .value = below(m, group));
}

/* Scalars of other integer kinds beside each other: C++ makes an int, or a uint, of them. */
static node *promoted(maker *m, type t, int depth) {
    static const kind small[] = {I8, U8, I16};
    static const op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_AND, OP_XOR};
    op o = ops[below(m, 5)];
    node *a = expression(m, scalar(small[below(m, 3)]), depth - 1);
    node *b = expression(m, scalar(t.k == U32 ? U32 : small[below(m, 3)]), depth - 1);
    return MAKE(o, t, .a = {a, b});
}

static node *condition(maker *m, int depth) {
    type b = {BOOL, 1}, t = any_type(m);
    int what = below(m, 100);
    if (depth <= 0 || what < 8)
        return leaf(m, b);
    if (what < 30)
        return operation(m, what < 14 ? OP_NO : what < 22 ? OP_BOTH : OP_EITHER, b, b, depth);
    if (what < 46)
        return operation(m, choose(m, VOTE, VOTE, b), b, b, depth);
    t.k = t.k == BF16 ? F32 : t.k;
    t.n = chance(m, 70) ? 1 : t.n;
    node *n = operation(m, choose(m, COMPARE, COMPARE, t), (type){BOOL, t.n}, t, depth);
    return t.n == 1 ? n : MAKE(chance(m, 50) ? OP_ANY : OP_ALL, b, .a = {n});
}

static node *convert(maker *m, type t, int depth) {
    type from = {any_type(m).k, t.n};
    if (t.k >= F16 && from.k >= F16)
        from.k = t.k == F32 ? from.k : F32; /* half and bfloat do not convert to each other */
    node *a = expression(m, from, depth - 1);
    if (t.k >= F16 && from.k < F16)
        a = mask(m, a, 15);
    else if (t.k >= F16 ? !holds(t.k, a->lo, a->hi)
                        : is_real(a) && (!kind_is_signed(t.k) || a->hi > 8 * kind_bytes(t.k) - 1))
        a = settle(m, a);
    return MAKE(OP_CONVERT, t, .a = {a});
}

static node *reinterpret(maker *m, type t, int depth) {
    kind k = I8 + (kind)below(m, 8);
    int bytes = kind_bytes(t.k) * t.n, n = bytes / kind_bytes(k);
    if (t.k >= F16 || t.n == 3 || n < 1 || n > 4 || n == 3)
        return leaf(m, t);
    return MAKE(OP_REINTERPRET, t, .a = {expression(m, (type){k, n}, depth - 1)});
}

static node *vector_part(maker *m, type t, int depth) {
    type from = {t.k, 2 + below(m, 3)};
    node *whole = expression(m, from, depth - 1);
    const char *names = chance(m, 80) ? "xyzw" : "rgba";
    if (t.n == 1 && from.n != 3 && chance(m, 30))
        return MAKE(OP_ELEMENT, t, .a = {whole, mask(m, word(m, 0), from.n - 1)});
    node *n = MAKE(OP_SWIZZLE, t, .a = {whole});
    for (int i = 0; i < t.n; i++)
        n->part[i] = names[below(m, from.n)];
    return n;
}

static node *join(maker *m, type t, int depth) {
    int first = 1 + below(m, t.n); /* all of it: one scalar */
    node *a = expression(m, (type){t.k, first == t.n ? 1 : first}, depth - 1);
    node *b = first == t.n ? NULL : expression(m, (type){t.k, t.n - first}, depth - 1);
    return MAKE(OP_JOIN, t, .a = {a, b});
}

static node *call(maker *m, type t, int depth) {
    function *f = NULL;
    node *a[3] = {NULL};
    int count = 0;
    for (function *g = m->p->functions; g && g != m->f; g = g->next)
        f = is_same(g->t, t) && below(m, ++count) == 0 ? g : f;
    for (int i = 0; f && i < f->parameters; i++)
        a[i] = fit(m, expression(m, f->parameter[i]->field[0].t, depth - 1));
    return f ? MAKE(OP_CALL_OF, t, .a = {a[0], a[1], a[2]}, .f = f) : leaf(m, t);
}

static node *expression(maker *m, type t, int depth) {
    int what = below(m, 100);
    if (t.k == BOOL)
        return condition(m, depth);
    if (depth <= 0 || what < 8)
        return leaf(m, t);
    if (what < 48)
        return operation(m, choose(m, INFIX, CALL, t), t, t, depth);
    if (what < 52 && t.n == 1 && (t.k == I32 || t.k == U32))
        return promoted(m, t, depth);
    if (what < 63)
        return operation(m, choose(m, LANES, LANES, t), t, t, depth);
    if (what < 70)
        return convert(m, t, depth);
    if (what < 82)
        return t.n > 1 && what < 76 ? join(m, t, depth) : vector_part(m, t, depth);
    if (what < 90)
        return operation(m, t.k != BF16 && chance(m, 40) ? OP_SELECT : OP_CHOOSE, t, t, depth);
    if (what < 94)
        return call(m, t, depth);
    if (what < 96 && t.k == F32 && t.n == 1)
        return operation(m, OP_DOT, t, (type){F32, 2 + below(m, 3)}, depth);
    if (what < 98 && t.k == U32 && t.n == 1)
        return operation(m, chance(m, 50) ? OP_BALLOT : OP_ACTIVE, t, t, depth);
    return reinterpret(m, t, depth);
}

/* -------------------------------------------------------------------------------------- statements */
static variable *declare(maker *m, space where, type t) {
    variable *v = take(m->p, sizeof *v);
    const int id = m->p->variable_count++;
    assert(m->p->variable_count <= VARIABLES);
    *v = (variable){.id = id, .record = id, .where = where, .fields = 1, .field = {{.t = t}}};
    return v;
}

/* Gives it memory and a name that what follows may use. */
static variable *place(maker *m, variable *v) {
    int align = 1, at = 0, bytes = 0;
    for (field *f = v->field; f < v->field + v->fields; f++) {
        int own = f->packed ? kind_bytes(f->t.k) : field_step(f);
        f->at = v->is_union ? 0 : (at + own - 1) / own * own;
        at = f->at + field_step(f) * MORE(f->count, 1);
        align = MORE(align, own);
        bytes = MORE(bytes, at);
    }
    v->bytes = (bytes + align - 1) / align * align;
    if (m->own + v->bytes > OWN_BYTES && v->where == IN_OWN)
        v->where = IN_THREAD;
    int *used = v->where == IN_OWN ? &m->own : &m->frame;
    v->at = *used;
    *used += ((is_own(v) && !v->target ? v->bytes : 4) + 31) / 32 * 32;
    assert(m->frame <= FRAME_BYTES);
    return m->scope[m->scopes++] = v;
}

static node *append(node *list, node *more) {
    node **end = &list;
    while (*end)
        end = &(*end)->next;
    *end = more;
    return list;
}

static node *declare_plain(maker *m) {
    type t = chance(m, 8) ? scalar(BOOL) : any_type(m);
    node *a = fit(m, expression(m, t, 3));
    return MAKE(OP_START, t, .a = {a}, .v = place(m, declare(m, IN_THREAD, t)));
}

static node *assign(maker *m, node *to, int depth) {
    return MAKE(OP_ASSIGN, to->t, .a = {to, fit(m, expression(m, to->t, depth))});
}

static void choose_fields(maker *m, variable *v) {
    static const type views[] = {{U32, 2}, {U64, 1}, {U16, 4}, {I32, 1}, {U8, 4}, {I16, 2}};
    v->is_record = true;
    v->is_union = chance(m, 30);
    v->fields = 2 + below(m, 3);
    for (int i = 0; i < v->fields; i++) {
        field *f = &v->field[i];
        f->t = v->is_union ? views[below(m, i ? 6 : 3)] : any_type(m);
        if (v->is_union)
            continue;
        f->packed = f->t.n > 1 && kind_bytes(f->t.k) < 8 && f->t.k != BF16 && chance(m, 40);
        f->count = field_step(f) <= 4 && chance(m, 30) ? 4 : 0;
    }
}

/* A record or an array, all of whose parts are written first. */
static node *declare_object(maker *m) {
    type t = any_type(m);
    variable *v = declare(m, m->f->t.n == 0 && chance(m, 30) ? IN_OWN : IN_THREAD, t);
    if (chance(m, 60))
        choose_fields(m, v);
    else
        v->field[0].count = 4 << below(m, 2);
    place(m, v);
    m->scopes--; /* its own parts do not use it */
    op o = v->where == IN_OWN ? OP_OWN : v->is_record ? OP_DECLARE : OP_ARRAY;
    node *list = MAKE(o, v->field[0].t, .value = v->at / 4, .v = v);
    for (int f = 0; f < (v->is_union ? 1 : v->fields); f++)
        for (int i = 0, count = v->field[f].count; i < MORE(count, 1); i++) {
            node *index = count ? literal(m, scalar(U32), i) : NULL;
            node *to = MAKE(OP_LOAD, v->field[f].t, .a = {index}, .v = v, .field = f);
            append(list, assign(m, to, i == 0 ? 2 : 1));
        }
    m->scope[m->scopes++] = v;
    return list;
}

/* A pointer into an array, or a copy of a record, of those that can be named here. */
static node *declare_other(maker *m) {
    for (int i = m->scopes - 1; i >= 0; i--) {
        variable *old = m->scope[i], *v;
        const int count = old->field[0].count;
        if (old->target || (old->is_record ? old->where == IN_OWN : count < 4))
            continue;
        const int id = (v = declare(m, IN_THREAD, old->field[0].t))->id;
        *v = *old;
        v->id = id;
        v->where = IN_THREAD;
        v->target = old->is_record ? NULL : old;
        node *from = old->is_record ? NULL : mask(m, word(m, 1), count / 2 - 1);
        return MAKE(from ? OP_POINT : OP_COPY, scalar(U32), .a = {from}, .v = place(m, v),
                    .w = old);
    }
    return declare_object(m);
}

static node *assignment(maker *m) {
    static const op updates[] = {OP_ADD, OP_SUB, OP_XOR, OP_OR, OP_AND};
    for (int tries = 0; tries < 8; tries++) {
        type t = any_type(m);
        node *to = find_place(m, t, true);
        if (!to)
            continue;
        if (t.n > 1 && !get_field(to)->packed && chance(m, 30)) {
            int from = below(m, t.n);
            to->t.n = 1 + below(m, t.n);
            for (int i = 0; i < to->t.n; i++)
                to->part[i] = "xyzw"[(from + i * (t.n == 3 ? 2 : 1)) % t.n];
        }
        node *n = assign(m, to, 3);
        if (t.k < F16 && !kind_is_signed(t.k) && !to->part[0] && chance(m, 30))
            n->value = updates[below(m, 5)];
        return n;
    }
    return declare_plain(m);
}

static node *block(maker *m, int count);

/* if (...) break; or continue; or return. */
static node *leave(maker *m, op o) {
    node *on = condition(m, 2), *value = NULL;
    if (o == OP_RETURN && m->f->t.n)
        value = fit(m, expression(m, m->f->t, 2));
    return MAKE(OP_IF, on->t, .a = {on}, .body = MAKE(o, m->f->t, .a = {value}));
}

static node *nested(maker *m, op o) {
    const maker was = *m;
    int count = 2 + below(m, 3);
    bool uniform =
        o == OP_LOOP && was.is_uniform && chance(m, 50); /* barriers inside, no way out */
    m->is_uniform = was.is_uniform && o != OP_LOOP;      /* asked again when some lanes have left */
    node *on = o == OP_IF ? condition(m, 2)
               : uniform  ? literal(m, scalar(U32), 1 + below(m, 3))
                          : mask(m, word(m, 2), 3);
    node *n = MAKE(o, on->t, .a = {on});
    m->is_uniform = uniform;
    m->may_return = was.may_return && !uniform;
    m->loops = uniform ? 0 : was.loops + (o == OP_LOOP);
    if (o == OP_LOOP) {
        n->op = below(m, 2) ? OP_DO : OP_LOOP;
        n->v = place(m, declare(m, IN_THREAD, scalar(U32)));
        n->v->is_fixed = true;
    }
    if (o != OP_SWITCH)
        n->body = block(m, 1 + below(m, 3));
    if (o == OP_IF && chance(m, 50))
        n->other = block(m, 1 + below(m, 2));
    for (int i = 0, other = below(m, count + 2); o == OP_SWITCH && i < count; i++) {
        node *body = block(m, 1 + below(m, 2));
        if (chance(m, 65))
            append(body, MAKE(OP_BREAK, on->t, .a = {NULL}));
        n->body = append(n->body,
                         MAKE(i == other ? OP_DEFAULT : OP_CASE, on->t, .value = i, .body = body));
    }
    m->is_uniform = was.is_uniform && !m->has_returned;
    m->may_return = was.may_return;
    m->loops = was.loops;
    m->scopes = was.scopes;
    return n;
}

static node *put(maker *m, node *value) {
    return MAKE(OP_PUT, value->t, .a = {fit(m, value)}, .value = m->p->outs++);
}

static node *through_memory(maker *m) {
    bool is_whole = m->p->world->is_whole;
    int what = below(m, 10);
    op o = what < 2 && is_whole   ? OP_PASS
           : what < 7             ? OP_EXCHANGE
           : what < 9 && is_whole ? OP_MULTIPLY
                                  : OP_TALLY;
    type t = what < 7 ? any_type(m) : scalar(o == OP_TALLY ? U32 : F32);
    t.n = kind_bytes(t.k) == 8 ? LESS(t.n, 2) : t.n;
    node *a = fit(m, expression(m, t, 2)), *b = word(m, 2);
    int64_t value = below(m, o == OP_TALLY ? COUNTERS : 64);
    return MAKE(o, t, .a = {a, b}, .value = value, .v = place(m, declare(m, IN_THREAD, t)));
}

static node *statement(maker *m) {
    int what = below(m, 100);
    bool nests = m->depth < 3 && m->left > 1, is_main = m->f->t.n == 0;
    m->left--;
    if (m->p->variable_count > VARIABLES - 16 || m->left < -20)
        return assignment(m);
    if (what < 16)
        return declare_plain(m);
    if (what < 27)
        return what < 23 ? declare_object(m) : declare_other(m);
    if (what < 56 && nests)
        return nested(m, what < 40 ? OP_IF : what < 50 ? OP_LOOP : OP_SWITCH);
    if (what < 66 && m->is_uniform)
        return through_memory(m);
    if (what < 71 && is_main) {
        node *a = word(m, 2);
        return MAKE(OP_ATOMIC, a->t, .a = {a}, .value = below(m, COUNTERS));
    }
    if (what < 75 && is_main && m->p->outs < OUT_WORDS - 10)
        return put(m, expression(m, any_type(m), 3));
    if (what < 82 && m->loops)
        return leave(m, chance(m, 50) ? OP_BREAK : OP_CONTINUE);
    if (what < 84 && m->may_return && m->depth > 0) {
        m->is_uniform = false;
        m->has_returned = true;
        return leave(m, OP_RETURN);
    }
    return assignment(m);
}

static node *block(maker *m, int count) {
    node *list = NULL;
    int scopes = m->scopes;
    m->depth++;
    while (count-- > 0)
        list = append(list, statement(m));
    m->depth--;
    m->scopes = scopes;
    return list;
}

/* --------------------------------------------------------------------------------------- functions */
static function *start_function(maker *m, int id, type t, int parameters) {
    function *f = take(m->p, sizeof *f);
    *f = (function){.id = id, .t = t, .parameters = parameters};
    *(m->f ? &m->f->next : &m->p->functions) = f;
    m->f = f;
    m->scopes = 0;
    m->is_uniform = m->has_returned = false;
    m->may_return = true;
    for (int i = 0; i < parameters; i++) {
        f->parameter[i] = place(m, declare(m, IN_THREAD, i == 0 ? t : any_type(m)));
        f->parameter[i]->is_fixed = true;
    }
    return f;
}

static void helper(maker *m, int id) {
    type t = any_type(m);
    function *f = start_function(m, id, t, 1 + below(m, 3));
    f->is_template = chance(m, 30);
    m->left = 1 + below(m, 3);
    m->depth = 1;
    while (m->left > 0)
        f->body = append(f->body, statement(m));
    f->body = append(f->body, MAKE(OP_RETURN, t, .a = {fit(m, expression(m, t, 3))}));
    m->depth = 0;
}

/* A pointer to what the program only reads. */
static node *view(maker *m, space where) {
    bool is_table = where == IN_TABLE;
    where = where == IN_WORDS && chance(m, 40) ? IN_REALS : where;
    kind k = where == IN_REALS ? F32 : I8 + (kind)below(m, is_table ? 6 : 8);
    variable *v = declare(m, where, (type){k, is_table ? 1 : 1 + below(m, 4)});
    v->field[0].packed = v->field[0].t.n > 1 && kind_bytes(k) < 8 && chance(m, 40);
    v->field[0].count = TABLE_WORDS;
    return MAKE(OP_VIEW, v->field[0].t, .v = place(m, v));
}

/* The statements of the program itself; among them the bug. */
static node *main_body(maker *m, int planted) {
    node *list = NULL;
    m->is_uniform = true;
    m->left = 3 + below(m, 6);
    for (space s = IN_WORDS; s <= IN_TABLE; s++)
        list = append(list, view(m, s));
    append(list, declare_plain(m));
    append(list, declare_plain(m));
    for (int at = below(m, 2); m->left > 0 || planted >= 0; at--) {
        m->may_return = planted < 0; /* all threads come to the bug */
        if (at <= 0 && planted >= 0) {
            node *a = word(m, 1), *b = word(m, 1);
            m->p->planted = MAKE(OP_PLANT, a->t, .a = {a, b}, .value = planted);
            append(list, m->p->planted);
            planted = -1;
        }
        append(list, statement(m));
    }
    for (int i = 0; i < m->scopes; i++)
        for (int k = 0; k < m->scope[i]->fields && m->p->outs < OUT_WORDS - 2; k++)
            if (is_own(m->scope[i]))
                append(list, put(m, load(m, m->scope[i], k)));
    return list;
}

program *program_make(world *w, int index, int planted) {
    program *p = calloc(1, sizeof *p);
    maker m = {.state = w->seed * 1000003u + (uint64_t)index, .p = p, .frame = OWN_BYTES};
    assert(p);
    p->index = index;
    p->world = w;
    for (int i = below(&m, 5) / 2; i > 0; i--)
        helper(&m, 10 * index + i);
    p->main = start_function(&m, 0, (type){U32, 0}, 0);
    p->main->body = main_body(&m, planted);
    return p;
}

/* ------------------------------------------------------------------------------------------- print */
static const char *get_text(const node *n) {
    static const char *const forms[VOTE + 1] = {
        [INFIX] = "(%0 %o %1)", [PREFIX] = "(%o%0)", [CALL] = "%o(%a)", [COMPARE] = "(%0 %o %1)"};
    const rule *r = &grammar[n->op];
    return n->op == OP_PLANT                          ? plants[n->value].text
           : n->op == OP_LITERAL && is_real(n)        ? "%t(%y)"
           : n->op == OP_LOAD && get_field(n)->packed ? "%t(%p)"
           : n->op == OP_CALL_OF && n->f->is_template ? "f%f<%t>(at, %a)"
           : forms[r->form]                           ? forms[r->form]
                                                      : r->text;
}

/* Lines are indented by the depth. */
static void add(printer *out, const char *text, size_t length) {
    size_t indent = 4 * (size_t)out->depth;
    out->text = out->text ? out->text : malloc(TEXT_BYTES);
    assert(out->text && out->count + length * (1 + indent) < TEXT_BYTES);
    for (size_t i = 0; i < length; i++) {
        if (out->count && out->text[out->count - 1] == '\n') {
            memset(out->text + out->count, ' ', indent);
            out->count += indent;
        }
        out->line += text[i] == '\n';
        out->text[out->count++] = text[i];
    }
    out->text[out->count] = 0;
}

__attribute__((format(printf, 2, 3))) static void print(printer *out, const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert(length < (int)sizeof text);
    add(out, text, (size_t)length);
}

static const char *name_type(const printer *out, type t, bool packed) {
    static const char *const names[KINDS] = {"bool", "char", "uchar", "short", "ushort", "int",
                                             "uint", "long", "ulong", "half",  "bfloat", "float"};
    static char text[24];
    if (out->generic && is_same(t, out->generic->t))
        return "T";
    snprintf(text, sizeof text, t.n > 1 ? "%s%s%d" : "%s%s", packed && t.n > 1 ? "packed_" : "",
             names[t.k], t.n);
    return text;
}

static void print_node(printer *out, const node *n);
static void print_place(printer *out, const node *n);

/* clang-format off */
/* What % and a letter stand for in a text. c, S, b: v's length, space and buffer. i, m, r, of plants: which program of
 * the file it is, and how many elements tg, and out from here on, have. 0 to 3: operands; a: all; p: the place; T: v's type. */
#define LETTERS(X) \
    X('n', "%d", (int)n->value) X('v', "%d", v->id) X('w', "%d", n->w->id) \
    X('d', "%d", n->field) X('f', "%d", n->f->id) \
    X('t', "%s", name_type(out, n->t, false)) \
    X('o', "%s", grammar[n->op == OP_ASSIGN ? (op)n->value : n->op].text) \
    X('x', "%s", n->part) \
    X('y', "%.2f", (double)n->value / 4) \
    X('z', n->t.k < U32 ? "%lld" : n->t.k == U32 ? "%lluu" : "%lluul", (long long)n->value) \
    X('l', "%s", places[n->value]) \
    X('k', "%s", counters[n->value]) \
    X('q', "%s", n->group == 4 ? "quad" : "simd") X('g', "%d", n->group) \
    X('c', "%d", v->field[0].count) \
    X('S', "%s", spaces[get_target(n->v)->where]) \
    X('b', "%s", buffers[v->where]) \
    X('i', "%d", out->slot) \
    X('m', "%d", SHARED_BYTES / 8 + out->slots) \
    X('r', "%d", (out->slots - out->slot) * out->p->world->thread_count) \
    X(' ', "%s", "% ")
/* clang-format on */
/* What a node's text says. */
static void say(printer *out, const node *n, const char *text) {
    static const char *const counters[COUNTERS] = {"add", "sub", "or", "and", "xor", "min", "max"};
    static const char *const places[PLACES] = {
        "lane",    "tid",    "sg",     "size",   "local.x",   "local.y", "local.z",
        "group.x", "grid.x", "grid.y", "grid.z", "threads.x", "groups.x"};
    static const char *const spaces[] = {"thread",   "device const", "constant",
                                         "constant", "device const", "device"};
    static const char *const buffers[] = {"", "words", "params", "table", "reals", "own"};
    const variable *v = n->v;
    for (size_t plain; *text; text += plain + 2) {
        add(out, text, plain = strcspn(text, "%"));
        switch (text[plain] ? text[plain + 1] : 0) {
#define SAY(letter, format, value)                                                                 \
    case letter:                                                                                   \
        print(out, format, value);                                                                 \
        break;
            LETTERS(SAY)
        case 'T':
            if (v->is_record)
                print(out, "S%d_%d", out->p->index, v->record);
            else
                print(out, "%s", name_type(out, v->field[0].t, v->field[0].packed));
            break;
        case 'p':
            print_place(out, n->op == OP_LOAD ? n : n->a[0]);
            break;
        case 'a':
            for (int i = 0; i < 4 && n->a[i]; i++) {
                print(out, i ? ", " : "");
                print_node(out, n->a[i]);
            }
            break;
        case 0:
            return;
        default:
            print_node(out, n->a[text[plain + 1] - '0']);
        }
    }
}

static void print_place(printer *out, const node *n) {
    const variable *target = get_target(n->v);
    say(out, n, target->is_record ? target->where == IN_OWN ? "v%v->m%d" : "v%v.m%d" : "v%v");
    say(out, n, n->a[0] ? n->part[0] ? "[%0].%x" : "[%0]" : n->part[0] ? ".%x" : "");
}

static void print_node(printer *out, const node *n) {
    const form f = grammar[n->op].form;
    /* Scalars that are smaller than int are promoted; the tree has them as what they were. */
    if ((f == INFIX || f == PREFIX) && n->t.n == 1 && kind_bytes(n->t.k) < 4 && n->t.k != BOOL)
        say(out, n, "%t");
    say(out, n, get_text(n));
}

static void print_block(printer *out, node *list) {
    out->depth++;
    for (node *n = list; n; n = n->next) {
        n->line = out->line + 1;
        if (n->op == OP_PUT)
            out->p->put_line[n->value] = n->line;
        print_node(out, n);
        if (n->op < OP_IF || n->op > OP_DEFAULT)
            continue;
        print_block(out, n->body);
        if (n->other) {
            print(out, "} else {\n");
            print_block(out, n->other);
        }
        say(out, n, n->op == OP_DO ? "} while (v%v-- > 0);\n" : "}\n");
    }
    out->depth--;
}

/* The record types of what a function declares. */
static void print_records(printer *out, const node *list) {
    for (const node *n = list; n; n = n->next) {
        const variable *v = n->op == OP_DECLARE || n->op == OP_OWN ? n->v : NULL;
        if (v && v->is_record) {
            print(out, "%s S%d_%d {", v->is_union ? "union" : "struct", out->p->index, v->id);
            for (int i = 0; i < v->fields; i++) {
                const field *f = &v->field[i];
                print(out, " %s m%d", name_type(out, f->t, f->packed), i);
                print(out, f->count ? "[%d];" : ";", f->count);
            }
            print(out, " };\n");
        }
        print_records(out, n->body);
        print_records(out, n->other);
    }
}

static void print_function(printer *out, const function *f) {
    print_records(out, f->body);
    out->generic = f->is_template ? f : NULL;
    if (f->t.n)
        print(out, "%sstatic %s f%d(at_t at", f->is_template ? "template <typename T> " : "",
              name_type(out, f->t, false), f->id);
    else
        print(out,
              "static void p%d(at_t at, device const uint *words, constant uint *params,\n"
              "    device const float *reals, device uint *out, device atomic_uint *counts,\n"
              "    device uint *own, threadgroup ulong *tg",
              out->p->index);
    for (int i = 0; i < f->parameters; i++)
        print(out, ", %s v%d", name_type(out, f->parameter[i]->field[0].t, false),
              f->parameter[i]->id);
    print(out, ") {\n");
    print_block(out, f->body);
    print(out, "}\n");
    out->generic = NULL;
}

/* clang-format off */
static const char head[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "constant uint fc0 [[function_constant(0)]];\n"
    "constant int fc1 [[function_constant(1)]];\n"
    "constant bool fc2 [[function_constant(2)]];\n"
    "constant float fc3 [[function_constant(3)]];\n"
    "constant uint beyond[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    "struct pair { uint2 x, y; };\n"
    "struct at_t { uint lane, tid, sg, size, i; uint3 local, group, grid, threads, groups; };\n"
    "static uint word(bool v) { return v; }\n"
    "static uint word(int v) { return uint(v); }\n"
    "static uint word(uint v) { return v; }\n"
    "static uint word(ulong v) { return uint(v) ^ uint(v >> 32) * 31u; }\n"
    "static uint word(long v) { return word(ulong(v)); }\n"
    "static uint word(float v) { return uint(int(v * 16.0f)); }\n"
    "static uint word(half v) { return word(float(v)); }\n"
    "static uint word(bfloat v) { return word(float(v)); }\n"
    "template <typename T> uint fold(T v) { return word(v); }\n"
    "template <typename T> uint fold(vec<T, 2> v) { return word(v.x) * 257u ^ word(v.y); }\n"
    "template <typename T> uint fold(vec<T, 3> v) { return fold(v.xy) * 257u ^ word(v.z); }\n"
    "template <typename T> uint fold(vec<T, 4> v) { return fold(v.xyz) * 257u ^ word(v.w); }\n"
    "static uint active32() { return uint(simd_vote::vote_t(simd_active_threads_mask())); }\n"
    "static uint active4() { return uint(quad_vote::vote_t(quad_active_threads_mask())); }\n"
    "static ushort pick32(uint n, uint lane) { return ushort(active32() >> (n & 31) & 1 ? n & 31 : lane); }\n"
    "static ushort pick4(uint n, uint lane) { return ushort(active4() >> (n & 3) & 1 ? n & 3 : lane & 3); }\n"
    "static ushort first32() { return ushort(ctz(active32())); }\n"
    "static ushort first4() { return ushort(ctz(active4())); }\n\n";
static const char entry[] =
    "\nkernel void smith(device const uint *words [[buffer(0)]], constant uint *params [[buffer(1)]],\n"
    "    device const float *reals [[buffer(2)]], device uint *out [[buffer(3)]],\n"
    "    device atomic_uint *counts [[buffer(4)]], device uint *own [[buffer(5)]],\n"
    "    uint3 grid [[thread_position_in_grid]], uint3 local [[thread_position_in_threadgroup]],\n"
    "    uint3 group [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]],\n"
    "    uint3 threads [[threads_per_grid]], uint3 groups [[threadgroups_per_grid]],\n"
    "    uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],\n"
    "    uint sg [[simdgroup_index_in_threadgroup]]) {\n"
    "    threadgroup ulong tg[%d];\n"
    "    uint i = grid.x + threads.x * (grid.y + threads.y * grid.z);\n"
    "    at_t at = {lane, tid, sg, size.x * size.y * size.z, i, local, group, grid, threads, groups};\n";
/* clang-format on */

void program_print_file(printer *out, const world *w, program *const *programs, int count) {
    const int threads = w->thread_count;
    print(out, "%s", head);
    for (int i = 0; i < TABLE_WORDS; i++)
        print(out, i ? ", %du" : "constant uint table[] = {%du", (int)w->input[IN_TABLE][i]);
    print(out, "};\n");
    out->slots = count;
    for (out->slot = 0; out->slot < count; out->slot++) {
        program *p = out->p = programs[out->slot];
        p->first_line = out->line + 1;
        for (const function *f = p->functions; f; f = f->next)
            if (f == p->main || f->body->op != OP_NONE) /* removed by the reducer */
                print_function(out, f);
        p->last_line = out->line;
    }
    print(out, entry, SHARED_BYTES / 8 + (programs[0]->planted ? count : 0));
    for (int i = 0; i < count; i++)
        print(out,
              "    p%d(at, words, params, reals, out + (%d + i) * %d, counts + %d,\n"
              "        own + (%d + i) * %d, tg);\n",
              programs[i]->index, i * threads, OUT_WORDS, i * COUNTERS, i * threads, OWN_BYTES / 4);
    print(out, "}\n");
}
