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
const rule grammar[OP_COUNT] = {GRAMMAR(RULE) OTHER_RULES(OTHER_RULE)};

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

#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))

/* ------------------------------------------------------------------------------------------ chance */
typedef struct {
    uint64_t state;
    program *p;
    function *f;                /* that is being made */
    variable *scope[VARIABLES]; /* what can be named here */
    int scopes, depth;          /* of statements */
    int loops;                  /* that a break would leave */
    int left;                   /* statements to go */
    int own;                    /* bytes of the thread's device memory in use */
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
        w->table[i] = (uint32_t)next(&s);
    for (int i = 0; i < INPUT_WORDS; i++) {
        w->words[i] = (uint32_t)next(&s);
        w->params[i] = (uint32_t)next(&s);
        w->reals[i] = (float)((int)(next(&s) % 127) - 63) / 4;
    }
}

/* ------------------------------------------------------------------------------------------- nodes */
enum { ARENA_BYTES = 1 << 20, TEXT_BYTES = 1 << 23 };

static void *take(program *p, size_t bytes) {
    size_t *used = p->arena;
    void *at = (char *)p->arena + *used;
    *used += (bytes + 15) / 16 * 16;
    assert(*used <= ARENA_BYTES);
    return at;
}

static bool is_real(const node *n) {
    return n && n->t.k >= F16;
}

/* Does a kind hold all multiples of 2^lo below 2^hi, and is that far from where its exponents end? */
static bool holds(kind k, int lo, int hi) {
    int bits = k == F32 ? 24 : k == F16 ? 11 : 8;
    return hi - lo <= bits && lo >= -10 && hi <= (k == F32 ? 20 : 14);
}
/* What variables hold. */
static void get_range(kind k, int *lo, int *hi) {
    *lo = k == F32 ? -4 : -2;
    *hi = k == F32 ? 10 : k == F16 ? 6 : 5;
}

static void set_range(node *n) {
    const node *A = n->a[0], *B = n->a[1], *C = n->a[2];
    int L = 99, H = -99;
    for (int i = 0; i < 4; i++)
        if (is_real(n->a[i])) {
            L = LESS(L, n->a[i]->lo);
            H = MORE(H, n->a[i]->hi);
        }
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

static node *settle(program *p, node *a);

/* A node whose floats are exact: its operands are made small if the result would not be. */
static node *make(program *p, op o, type t, node *a, node *b, node *c) {
    node *n = take(p, sizeof *n);
    *n = (node){.op = o, .t = t, .a = {a, b, c}};
    set_range(n);
    kind k = is_real(n) ? t.k : is_real(a) ? a->t.k : F32;
    bool is_rule = o < OP_LITERAL || o == OP_JOIN;
    if (is_rule && (is_real(a) || is_real(b)) && !holds(k, n->lo, n->hi)) {
        for (int i = 0; i < 3; i++)
            if (is_real(n->a[i]) && n->a[i]->op != OP_LITERAL)
                n->a[i] = settle(p, n->a[i]);
        set_range(n);
    }
    return n;
}

static node *with(node *n, int64_t value, variable *v) {
    n->value = value;
    n->v = v;
    return n;
}

static type scalar(kind k) {
    return (type){k, 1};
}

static node *literal(program *p, type t, int64_t value) {
    node *n = with(make(p, OP_LITERAL, scalar(t.k), NULL, NULL, NULL), value, NULL);
    return t.n == 1 ? n : make(p, OP_JOIN, t, n, NULL, NULL);
}

static node *mask(program *p, node *a, int64_t by) {
    return make(p, OP_AND, a->t, a, literal(p, scalar(a->t.k), by), NULL);
}

/* A float of any range as a small whole one. */
static node *settle(program *p, node *a) {
    node *n = mask(p, make(p, OP_CONVERT, (type){I32, a->t.n}, a, NULL, NULL), 15);
    return make(p, OP_CONVERT, a->t, n, NULL, NULL);
}

static node *fit(program *p, node *a) {
    int lo, hi;
    get_range(a->t.k, &lo, &hi);
    return is_real(a) && (a->lo < lo || a->hi > hi) ? settle(p, a) : a;
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
    char letter = t.k == BF16 ? 'b' : t.k >= F16 ? 'r' : kind_is_signed(t.k) ? 's' : 'u';
    bool whole = m->is_uniform && m->p->world->is_whole;
    op chosen = OP_NONE;
    for (int o = 1, total = 0; o < OP_LITERAL; o++) {
        const rule *r = &grammar[o];
        if (r->form < first || r->form > last || r->weight == 0 || (r->guard == WHOLE && !whole) ||
            (r->form != VOTE && !strchr(r->kinds, letter)) ||
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
    const variable *target = v->target ? v->target : v;
    const field *f = &target->field[at];
    int most = (v->target ? f->count / 2 : f->count) - 1;
    bool was = m->in_index, is_literal = was || chance(m, 40);
    m->in_index = true; /* one in another is enough */
    node *index = !f->count    ? NULL
                  : is_literal ? literal(m->p, scalar(U32), below(m, most + 1))
                               : mask(m->p, word(m, 1), most);
    m->in_index = was;
    node *n = make(m->p, OP_LOAD, f->t, index, NULL, NULL);
    n->v = v;
    n->field = at;
    get_range(f->t.k, &n->lo, &n->hi);
    return n;
}

/* A place of this type that can be named here, to write to or only to read; NULL if there is none. */
static node *find_place(maker *m, type t, bool to_write) {
    variable *found = NULL;
    int at = 0, count = 0;
    for (int i = 0; i < m->scopes; i++) {
        variable *v = m->scope[i], *target = v->target ? v->target : v;
        bool is_own = target->where == IN_THREAD || target->where == IN_OWN;
        for (int f = 0; f < MORE(target->fields, 1) && (!to_write || is_own); f++)
            if (is_same(target->field[f].t, t) && !(to_write && target->is_fixed) &&
                below(m, ++count) == 0)
                found = v, at = f;
    }
    return found ? load(m, found, at) : NULL;
}

static node *leaf(maker *m, type t) {
    static const kind constants[] = {U32, I32, BOOL, F32};
    program *p = m->p;
    node *n = chance(m, 80) ? find_place(m, t, false) : NULL;
    if (n)
        return n;
    for (int i = 0; i < 5 && t.n == 1; i++)
        if (chance(m, i < 4 ? 25 : 60) && (i < 4 ? constants[i] : U32) == t.k)
            return with(make(p, i < 4 ? OP_CONSTANT : OP_PLACE, t, NULL, NULL, NULL),
                        i < 4 ? i : below(m, PLACES), NULL);
    if (t.k != BOOL && chance(m, 65)) { /* of where the thread is, or of a variable */
        n = leaf(m, scalar(U32));
        n = t.k >= F16 ? mask(p, n, 15) : n;
        n = t.k == U32 ? n : make(p, OP_CONVERT, scalar(t.k), n, NULL, NULL);
        return t.n == 1 ? n : make(p, OP_JOIN, t, n, NULL, NULL);
    }
    int unused = 64 - 8 * kind_bytes(t.k);
    uint64_t bits = (chance(m, 70) ? (uint64_t)below(m, 20) : next(&m->state)) << unused;
    return literal(p, t,
                   t.k == BOOL           ? below(m, 2)
                   : t.k >= F16          ? below(m, 33) - 16
                   : kind_is_signed(t.k) ? (int64_t)bits >> unused
                                         : (int64_t)(bits >> unused));
}

/* Masks and shifts that keep an operation defined. */
static void guard_operands(maker *m, op o, type t, node **a) {
    program *p = m->p;
    int bits = 8 * kind_bytes(t.k), down = 0, i = (int)strlen(grammar[o].operands),
        low = below(m, 8);
    bool is_signed = kind_is_signed(t.k), is_small = t.n == 1 && bits < 32;
    guard g = t.k >= F16 && grammar[o].guard <= ROOTED ? FREE : grammar[o].guard;
    if (g == HALVED)
        down = is_signed && (!is_small || o == OP_ABS); /* only operators promote */
    else if (g == ROOTED)
        down = is_small ? t.k == U16 : is_signed ? bits / 2 : 0;
    else if (g == LOW24)
        down = is_signed ? 17 : 8; /* signed: products and sums stay below 2^31 */
    else if (g == DIVIDED) {
        a[1] = make(p, OP_OR, a[1]->t, a[1], literal(p, scalar(t.k), 1), NULL);
        a[0] = is_signed ? make(p, OP_SHR, t, a[0], literal(p, scalar(t.k), 1), NULL) : a[0];
    } else if (g == COUNTED)
        a[1] = mask(p, a[1], bits - 1);
    else if (g == FIELD)
        a[i] = mask(p, word(m, 0), bits / 2 - 1), a[i + 1] = mask(p, word(m, 0), bits / 2 - 1);
    else if (g == BOUNDED)
        a[1] = literal(p, t, low), a[2] = literal(p, t, low + below(m, 9));
    else if (g == QUARTERS)
        a[2] = literal(p, t, below(m, 5));
    else if (g == SCALED)
        a[1] = literal(p, scalar(I32), below(m, 5) - 2);
    for (i = 0; i < 4 && a[i] && down; i++)
        a[i] = make(p, OP_SHR, a[i]->t, a[i], literal(p, scalar(t.k), down), NULL);
}

static node *compare(maker *m, type t, int depth);

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
        a[i] = c == 'c'   ? condition(m, depth - 1)
               : c == 'k' ? compare(m, of, depth)
               : c == 'w' ? word(m, depth - 1)
                          : expression(m, is_scalar ? scalar(of.k) : of, depth - 1);
        m->is_uniform = was && r->guard != APART;
    }
    m->is_uniform = was;
    guard_operands(m, o, of, a);
    node *n = make(m->p, o, t, a[0], a[1], a[2]);
    n->a[3] = a[3];
    n->group = chance(m, 30) ? 4 : 32;
    n->value = below(m, n->group);
    return n;
}

static node *compare(maker *m, type t, int depth) {
    return operation(m, choose(m, COMPARE, COMPARE, t), (type){BOOL, t.n}, t, depth);
}

/* Scalars of other integer kinds beside each other: C++ makes an int, or a uint, of them. */
static node *promoted(maker *m, type t, int depth) {
    static const kind small[] = {I8, U8, I16};
    static const op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_AND, OP_XOR};
    op o = ops[below(m, 5)];
    node *a = expression(m, scalar(small[below(m, 3)]), depth - 1);
    node *b = expression(m, scalar(t.k == U32 ? U32 : small[below(m, 3)]), depth - 1);
    return make(m->p, o, t, a, b, NULL);
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
    node *n = compare(m, t, depth);
    return t.n == 1 ? n : make(m->p, chance(m, 50) ? OP_ANY : OP_ALL, b, n, NULL, NULL);
}

static node *convert(maker *m, type t, int depth) {
    type from = {any_type(m).k, t.n};
    if (t.k >= F16 && from.k >= F16)
        from.k = t.k == F32 ? from.k : F32; /* half and bfloat do not convert to each other */
    node *a = expression(m, from, depth - 1);
    if (t.k >= F16 && from.k < F16)
        a = mask(m->p, a, 15);
    else if (t.k >= F16 ? !holds(t.k, a->lo, a->hi)
                        : is_real(a) && (!kind_is_signed(t.k) || a->hi > 8 * kind_bytes(t.k) - 1))
        a = settle(m->p, a);
    return make(m->p, OP_CONVERT, t, a, NULL, NULL);
}

static node *reinterpret(maker *m, type t, int depth) {
    kind k = I8 + (kind)below(m, 8);
    int bytes = kind_bytes(t.k) * t.n, n = bytes / kind_bytes(k);
    if (t.k >= F16 || t.n == 3 || n < 1 || n > 4 || n == 3)
        return leaf(m, t);
    return make(m->p, OP_REINTERPRET, t, expression(m, (type){k, n}, depth - 1), NULL, NULL);
}

static node *vector_part(maker *m, type t, int depth) {
    type from = {t.k, 2 + below(m, 3)};
    node *whole = expression(m, from, depth - 1);
    const char *names = chance(m, 80) ? "xyzw" : "rgba";
    if (t.n == 1 && from.n != 3 && chance(m, 30))
        return make(m->p, OP_ELEMENT, t, whole, mask(m->p, word(m, 0), from.n - 1), NULL);
    node *n = make(m->p, OP_SWIZZLE, t, whole, NULL, NULL);
    for (int i = 0; i < t.n; i++)
        n->part[i] = names[below(m, from.n)];
    return n;
}

static node *join(maker *m, type t, int depth) {
    int first = 1 + below(m, t.n); /* all of it: one scalar */
    node *a = expression(m, (type){t.k, first == t.n ? 1 : first}, depth - 1);
    node *b = first == t.n ? NULL : expression(m, (type){t.k, t.n - first}, depth - 1);
    return make(m->p, OP_JOIN, t, a, b, NULL);
}

static node *call(maker *m, type t, int depth) {
    function *f = NULL;
    int count = 0;
    for (function *g = m->p->functions; g && g != m->f; g = g->next)
        f = is_same(g->t, t) && below(m, ++count) == 0 ? g : f;
    if (!f)
        return leaf(m, t);
    node *a[3] = {NULL};
    for (int i = 0; i < f->parameters; i++)
        a[i] = fit(m->p, expression(m, f->parameter[i]->field[0].t, depth - 1));
    node *n = make(m->p, OP_CALL_OF, t, a[0], a[1], a[2]);
    n->f = f;
    get_range(t.k, &n->lo, &n->hi);
    return n;
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
    program *p = m->p;
    variable *v = take(p, sizeof *v);
    *v = (variable){.id = p->variable_count, .record = p->variable_count, .where = where};
    v->field[0].t = t;
    p->variable_count++;
    assert(p->variable_count <= VARIABLES);
    return v;
}

/* Gives it memory and a name that what follows may use. */
static variable *place(maker *m, variable *v) {
    int align = 1, at = 0;
    for (int i = 0; i < MORE(v->fields, 1); i++) {
        field *f = &v->field[i];
        int own = f->packed ? kind_bytes(f->t.k) : field_step(f);
        f->at = v->is_union ? 0 : (at + own - 1) / own * own;
        at = f->at + field_step(f) * MORE(f->count, 1);
        align = MORE(align, own);
        v->bytes = MORE(v->bytes, at);
    }
    v->bytes = (v->bytes + align - 1) / align * align;
    int *used = v->where == IN_OWN ? &m->own : &m->f->frame;
    if (v->where == IN_OWN && (m->own + 31) / 32 * 32 + v->bytes > OWN_BYTES)
        v->where = IN_THREAD, used = &m->f->frame;
    if (v->where == IN_OWN || v->where == IN_THREAD) {
        v->at = (*used + 31) / 32 * 32;
        *used = v->at + (v->target ? 4 : v->bytes);
    }
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
    node *n = make(m->p, OP_START, t, fit(m->p, expression(m, t, 3)), NULL, NULL);
    return with(n, 0, place(m, declare(m, IN_THREAD, t)));
}

static node *assign(maker *m, node *to, int depth) {
    return make(m->p, OP_ASSIGN, to->t, to, fit(m->p, expression(m, to->t, depth)), NULL);
}

static void choose_fields(maker *m, variable *v) {
    static const type views[] = {{U32, 2}, {U64, 1}, {U16, 4}, {I32, 1}, {U8, 4}, {I16, 2}};
    v->is_union = chance(m, 30);
    v->fields = 2 + below(m, 3);
    for (int i = 0; i < v->fields; i++) {
        field *f = &v->field[i];
        f->t = v->is_union ? views[below(m, i ? 6 : 3)] : any_type(m);
        f->packed =
            !v->is_union && f->t.n > 1 && kind_bytes(f->t.k) < 8 && f->t.k != BF16 && chance(m, 40);
        f->count = !v->is_union && field_step(f) <= 4 && chance(m, 30) ? 4 : 0;
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
    op o = v->where == IN_OWN ? OP_OWN : v->fields ? OP_DECLARE : OP_ARRAY;
    node *list = with(make(m->p, o, v->field[0].t, NULL, NULL, NULL), v->at / 4, v);
    for (int f = 0; f < (v->is_union ? 1 : MORE(v->fields, 1)); f++)
        for (int i = 0; i < MORE(v->field[f].count, 1); i++) {
            node *to = make(m->p, OP_LOAD, v->field[f].t,
                            v->field[f].count ? literal(m->p, scalar(U32), i) : NULL, NULL, NULL);
            to->v = v;
            to->field = f;
            list = append(list, assign(m, to, i == 0 ? 2 : 1));
        }
    m->scope[m->scopes++] = v;
    return list;
}

/* A pointer into an array, or a copy of a record, of those that can be named here. */
static node *declare_other(maker *m) {
    for (int i = m->scopes - 1; i >= 0; i--) {
        variable *old = m->scope[i], *v;
        if (old->target || (old->fields ? old->where == IN_OWN : old->field[0].count < 4))
            continue;
        *(v = declare(m, IN_THREAD, scalar(U32))) = (variable){
            .id = v->id, .record = old->record, .fields = old->fields, .is_union = old->is_union};
        memcpy(v->field, old->field, sizeof v->field);
        v->target = old->fields ? NULL : old;
        node *offset = old->fields ? NULL : mask(m->p, word(m, 1), old->field[0].count / 2 - 1);
        node *n = make(m->p, old->fields ? OP_COPY : OP_POINT, scalar(U32), offset, NULL, NULL);
        n->v = place(m, v);
        n->w = old;
        return n;
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
    node *n = make(m->p, OP_IF, scalar(BOOL), condition(m, 2), NULL, NULL);
    n->body = make(m->p, o, m->f->t, NULL, NULL, NULL);
    if (o == OP_RETURN && m->f->t.n)
        n->body->a[0] = fit(m->p, expression(m, m->f->t, 2));
    return n;
}

static node *nested(maker *m, op o) {
    bool was = m->is_uniform, may_return = m->may_return;
    int scopes = m->scopes, loops = m->loops, count = 2 + below(m, 3);
    bool uniform = o == OP_LOOP && was && chance(m, 50); /* with barriers inside, and no way out */
    m->is_uniform = was && o != OP_LOOP;                 /* asked again when some lanes have left */
    node *on = o == OP_IF ? condition(m, 2)
               : uniform  ? literal(m->p, scalar(U32), 1 + below(m, 3))
                          : mask(m->p, word(m, 2), 3);
    node *n = make(m->p, o, on->t, on, NULL, NULL), **end = &n->body;
    m->is_uniform = uniform;
    m->may_return = may_return && !uniform;
    m->loops = uniform ? 0 : loops + (o == OP_LOOP);
    if (o == OP_LOOP) {
        n->value = below(m, 2);
        n->v = place(m, declare(m, IN_THREAD, scalar(U32)));
        n->v->is_fixed = true;
    }
    if (o != OP_SWITCH)
        n->body = block(m, 1 + below(m, 3));
    if (o == OP_IF && chance(m, 50))
        n->other = block(m, 1 + below(m, 2));
    for (int i = 0, other = below(m, count + 2); o == OP_SWITCH && i < count; i++) {
        *end = with(make(m->p, OP_CASE, on->t, NULL, NULL, NULL), i == other ? -1 : i, NULL);
        (*end)->body = block(m, 1 + below(m, 2));
        if (chance(m, 65))
            append((*end)->body, make(m->p, OP_BREAK, on->t, NULL, NULL, NULL));
        end = &(*end)->next;
    }
    m->is_uniform = was && !m->has_returned;
    m->may_return = may_return;
    m->loops = loops;
    m->scopes = scopes;
    return n;
}

static node *put(maker *m, node *value) {
    return with(make(m->p, OP_PUT, value->t, fit(m->p, value), NULL, NULL), m->p->outs++, NULL);
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
    node *a = fit(m->p, expression(m, t, 2));
    node *n = make(m->p, o, t, a, word(m, 2), NULL);
    n->value = below(m, o == OP_TALLY ? COUNTERS : 64);
    n->v = place(m, declare(m, IN_THREAD, t));
    return n;
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
        node *n = make(m->p, OP_ATOMIC, scalar(U32), word(m, 2), NULL, NULL);
        return with(n, below(m, COUNTERS), NULL);
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
    function *f = take(m->p, sizeof *f), **end = &m->p->functions;
    *f = (function){.id = id, .t = t, .parameters = parameters};
    m->f = f;
    m->scopes = 0;
    m->is_uniform = m->has_returned = false;
    m->may_return = true;
    for (int i = 0; i < parameters; i++) {
        f->parameter[i] = place(m, declare(m, IN_THREAD, i == 0 ? t : any_type(m)));
        f->parameter[i]->is_fixed = true;
    }
    while (*end)
        end = &(*end)->next;
    if (t.n)
        *end = f;
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
    node *value = fit(m->p, expression(m, f->t, 3));
    f->body = append(f->body, make(m->p, OP_RETURN, f->t, value, NULL, NULL));
    m->depth = 0;
}

/* A pointer to what the program only reads. */
static node *view(maker *m, space where) {
    bool is_table = where == IN_TABLE;
    kind k = where == IN_INPUT && chance(m, 40) ? F32 : I8 + (kind)below(m, is_table ? 6 : 8);
    variable *v = declare(m, where, (type){k, is_table ? 1 : 1 + below(m, 4)});
    v->field[0].packed = v->field[0].t.n > 1 && kind_bytes(k) < 8 && chance(m, 40);
    v->field[0].count = TABLE_WORDS;
    return with(make(m->p, OP_VIEW, v->field[0].t, NULL, NULL, NULL), 0, place(m, v));
}

program *program_make(world *w, int index, int planted) {
    program *p = calloc(1, sizeof *p);
    maker *m = calloc(1, sizeof *m);
    assert(p && m);
    p->arena = calloc(1, ARENA_BYTES);
    assert(p->arena);
    *(size_t *)p->arena = 16;
    p->index = index;
    p->world = w;
    m->p = p;
    m->state = w->seed * 1000003u + (uint64_t)index;
    for (int i = below(m, 5) / 2; i > 0; i--)
        helper(m, 10 * index + i);
    p->main = start_function(m, 0, (type){U32, 0}, 0);
    m->is_uniform = true;
    m->left = 3 + below(m, 6);
    node *list = NULL;
    for (space s = IN_INPUT; s <= IN_TABLE; s++)
        list = append(list, view(m, s));
    list = append(list, declare_plain(m));
    list = append(list, declare_plain(m));
    for (int at = below(m, 2); m->left > 0 || planted >= 0; at--) {
        m->may_return = planted < 0; /* all threads come to the bug */
        if (at <= 0 && planted >= 0) {
            node *a = word(m, 1);
            p->planted = with(make(p, OP_PLANT, a->t, a, word(m, 1), NULL), planted, NULL);
            list = append(list, p->planted);
            planted = -1;
        }
        list = append(list, statement(m));
    }
    for (int i = 0; i < m->scopes; i++)
        for (int k = 0; k < MORE(m->scope[i]->fields, 1) && p->outs < OUT_WORDS - 2; k++)
            if (m->scope[i]->where == IN_THREAD || m->scope[i]->where == IN_OWN)
                list = append(list, put(m, load(m, m->scope[i], k)));
    p->main->body = list;
    free(m);
    return p;
}

void program_free(program *p) {
    if (p)
        free(p->arena);
    free(p);
}

/* ------------------------------------------------------------------------------------------- print */
static const char *get_text(const node *n) {
    static const char *const forms[VOTE + 1] = {
        [INFIX] = "(%0 %o %1)", [PREFIX] = "(%o%0)", [CALL] = "%o(%a)", [COMPARE] = "(%0 %o %1)"};
    static const char *const loops[] = {"for (uint v%v = 0; v%v < %0; v%v++) {\n",
                                        "uint v%v = %0;\ndo {\n"};
    const rule *r = &grammar[n->op];
    return n->op == OP_LOOP                           ? loops[n->value]
           : n->op == OP_PLANT                        ? plants[n->value].text
           : n->op == OP_CASE && n->value < 0         ? "default: {\n"
           : n->op == OP_LOAD && get_field(n)->packed ? "%t(%p)"
           : n->op == OP_CALL_OF && n->f->is_template ? "f%f<%t>(at, %a)"
           : forms[r->form]                           ? forms[r->form]
           : r->text                                  ? r->text
                                                      : "";
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

static const char *name_type(const printer *out, type t, bool packed) {
    static const char *const names[KINDS] = {"bool", "char", "uchar", "short", "ushort", "int",
                                             "uint", "long", "ulong", "half",  "bfloat", "float"};
    static char text[24];
    const function *f = out->generic;
    if (f && is_same(t, f->t))
        return "T";
    snprintf(text, sizeof text, t.n > 1 ? "%s%s%d" : "%s%s", packed && t.n > 1 ? "packed_" : "",
             names[t.k], t.n);
    return text;
}

/* A variable's: what it or what it points to consists of. */
static const char *name_type_of(const printer *out, const variable *v) {
    static char text[24];
    if (!v->fields)
        return name_type(out, v->field[0].t, v->field[0].packed);
    snprintf(text, sizeof text, "S%d_%d", out->p->index, v->record);
    return text;
}

static const char *write_literal(const node *n) {
    static char text[24];
    if (n->t.k >= F16)
        snprintf(text, sizeof text, "%.2f", (double)n->value / 4);
    else if (n->t.k >= U32)
        snprintf(text, sizeof text, n->t.k == U32 ? "%lluu" : "%lluul",
                 (unsigned long long)n->value);
    else
        snprintf(text, sizeof text, "%d", (int)n->value);
    return text;
}

static void print_node(printer *out, const node *n);
static void print_place(printer *out, const node *n);

static int get_number(printer *out, const node *n, char letter) {
    return letter == 'n'   ? (int)n->value
           : letter == 'v' ? n->v->id
           : letter == 'w' ? n->w->id
           : letter == 'f' ? n->f->id
           : letter == 'g' ? n->group
           : letter == 'c' ? n->v->field[0].count
           : letter == 'i' ? out->slot
           : letter == 'm' ? SHARED_BYTES / 8 + out->slots
                           : (out->slots - out->slot) * out->p->world->thread_count;
}

static const char *get_word(printer *out, const node *n, char letter) {
    static const char *const counters[COUNTERS] = {"add", "sub", "or", "and", "xor", "min", "max"};
    static const char *const places[PLACES] = {
        "lane",    "tid",    "sg",     "size",   "local.x",   "local.y", "local.z",
        "group.x", "grid.x", "grid.y", "grid.z", "threads.x", "groups.x"};
    static const char *const spaces[] = {"thread", "device const", "constant", "constant",
                                         "device"};
    static const char *const buffers[] = {"", "words", "params", "table"};
    const char *text = grammar[n->op == OP_ASSIGN ? (op)n->value : n->op].text;
    const variable *v = n->v;
    return letter == 't'   ? name_type(out, n->t, false)
           : letter == 'x' ? n->part
           : letter == 'l' ? places[n->value]
           : letter == 'k' ? counters[n->value]
           : letter == 'q' ? n->group == 4 ? "quad" : "simd"
           : letter == 'z' ? write_literal(n)
           : letter == 'T' ? name_type_of(out, v)
           : letter == 'S' ? spaces[v->target ? v->target->where : v->where]
           : letter == 'b' ? v->field[0].t.k == F32 ? "reals" : buffers[v->where]
           : text ? text
                           : "";
}

/* What a node's text says, with %d and %s for what follows. */
static void say(printer *out, const node *n, const char *format, ...) {
    va_list list;
    va_start(list, format);
    for (const char *at = format; *at; at++) {
        char number[16];
        size_t plain = strcspn(at, "%");
        add(out, at, plain);
        if (!*(at += plain))
            break;
        const char letter = *++at, *word = number;
        if (letter == 'd' || strchr("nvwfgcimr", letter))
            snprintf(number, sizeof number, "%d",
                     letter == 'd' ? va_arg(list, int) : get_number(out, n, letter));
        else if (letter == 's' || strchr("txlkqozTSb", letter))
            word = letter == 's' ? va_arg(list, const char *) : get_word(out, n, letter);
        else
            snprintf(number, sizeof number, "%s", letter == ' ' ? "% " : "");
        add(out, word, strlen(word));
        if (letter == 'p')
            print_place(out, n->op == OP_LOAD ? n : n->a[0]);
        else if (letter >= '0' && letter <= '3')
            print_node(out, n->a[letter - '0']);
        for (int i = 0; letter == 'a' && i < 4 && n->a[i]; i++) {
            add(out, ", ", i ? 2 : 0);
            print_node(out, n->a[i]);
        }
    }
    va_end(list);
}

static void print_place(printer *out, const node *n) {
    const variable *target = n->v->target ? n->v->target : n->v;
    say(out, n, "v%v");
    if (target->fields)
        say(out, n, target->where == IN_OWN ? "->m%d" : ".m%d", n->field);
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
        if (n->op < OP_IF || n->op > OP_CASE)
            continue;
        print_block(out, n->body);
        if (n->other) {
            say(out, n, "} else {\n");
            print_block(out, n->other);
        }
        say(out, n, n->op == OP_LOOP && n->value ? "} while (v%v-- > 0);\n" : "}\n");
    }
    out->depth--;
}

/* The record types of what a function declares. */
static void print_records(printer *out, const node *list) {
    for (const node *n = list; n; n = n->next) {
        const int fields = n->op == OP_DECLARE || n->op == OP_OWN ? n->v->fields : 0;
        if (fields)
            say(out, n, n->v->is_union ? "union S%d_%v {" : "struct S%d_%v {", out->p->index);
        for (int i = 0; i < fields; i++) {
            const field *f = &n->v->field[i];
            say(out, n, f->count ? " %s m%d[%d];" : " %s m%d;", name_type(out, f->t, f->packed), i,
                f->count);
        }
        say(out, n, fields ? " };\n" : "");
        print_records(out, n->body);
        print_records(out, n->other);
    }
}

static void print_function(printer *out, const function *f) {
    print_records(out, f->body);
    out->generic = f->is_template ? f : NULL;
    say(out, NULL,
        f->is_template ? "template <typename T> static %s f%d(at_t at" : "static %s f%d(at_t at",
        name_type(out, f->t, false), f->id);
    for (int i = 0; i < f->parameters; i++)
        say(out, NULL, ", %s v%d", name_type(out, f->parameter[i]->field[0].t, false),
            f->parameter[i]->id);
    say(out, NULL, ") {\n");
    print_block(out, f->body);
    say(out, NULL, "}\n");
    out->generic = NULL;
}

static void print_program(printer *out, program *p) {
    out->p = p;
    p->first_line = out->line + 1;
    for (const function *g = p->functions; g; g = g->next)
        if (g->body->op != OP_NONE) /* removed by the reducer */
            print_function(out, g);
    print_records(out, p->main->body);
    say(out, NULL,
        "static void p%d(at_t at, device const uint *words, constant uint *params,\n"
        "    device const float *reals, device uint *out, device atomic_uint *counts,\n"
        "    device uint *own, threadgroup ulong *tg) {\n",
        p->index);
    print_block(out, p->main->body);
    say(out, NULL, "}\n");
    p->last_line = out->line;
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
    say(out, NULL, "%s", head);
    for (int i = 0; i < TABLE_WORDS; i++)
        say(out, NULL, i ? ", %du" : "constant uint table[] = {%du", (int)w->table[i]);
    say(out, NULL, "};\n");
    out->slots = count;
    for (out->slot = 0; out->slot < count; out->slot++)
        print_program(out, programs[out->slot]);
    say(out, NULL, entry, SHARED_BYTES / 8 + (programs[0]->planted ? count : 0));
    for (int i = 0; i < count; i++)
        say(out, NULL,
            "    p%d(at, words, params, reals, out + (%d + i) * %d, counts + %d,\n"
            "        own + (%d + i) * %d, tg);\n",
            programs[i]->index, i * threads, OUT_WORDS, i * COUNTERS, i * threads, OWN_BYTES / 4);
    say(out, NULL, "}\n");
}
