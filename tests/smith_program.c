/* smith_program: makes random programs and prints them as Metal. See smith.h. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/finding.h"
#include "smith.h"

#define RULE(op, text, form, arity, kinds, weight, guard, ...)                                     \
    [OP_##op] = {text, form, arity, kinds, weight, guard},
const rule grammar[OP_COUNT] = {GRAMMAR(RULE)};
#undef RULE

bool program_diverges = true;

/* Bugs, each on one line: %e is an expression of the program, of type uint. */
#define BIT(what) (1u << FINDING_##what)
#define RACE (BIT(RACE_IN_GROUP) | BIT(RACE_OF_GROUPS))
/* clang-format off */
const plant plants[] = {
    {"load past the end of a buffer", BIT(LOAD_OUTSIDE), "out[14] = words[256u + (%e & 7u)];"},
    {"load before the start of a buffer", BIT(LOAD_OUTSIDE), "out[14] = params[int(%e & 7u) - 8];"},
    {"store past the end of a buffer", BIT(STORE_OUTSIDE), "out[16u * (%r - at.i) + (%e & 3u)] = 1u;"},
    {"load outside threadgroup memory", BIT(LOAD_OUTSIDE), "out[14] = uint(tg[%s + (%e & 3u)]);"},
    {"store outside threadgroup memory", BIT(STORE_OUTSIDE), "tg[%s + at.tid] = %e;"},
    {"index outside a private array", BIT(LOAD_OUTSIDE) | BIT(STORE_OUTSIDE),
     "{ uint z[4] = {1, 2, 3, %e}; z[4u + (%e & 1u)] = 5u; out[14] = z[at.lane & 3u]; }"},
    {"index outside a table", BIT(LOAD_OUTSIDE) | BIT(STORE_OUTSIDE), "out[14] = beyond[8u + (%e & 3u)];"},
    {"variable without a value", BIT(UNWRITTEN), "{ uint z; if (at.lane > 40) z = 1; out[14] = z + %e; }"},
    {"element without a value", BIT(UNWRITTEN), "{ uint z[4]; z[at.lane & 1u] = 3; out[14] = z[2u + (%e & 1u)]; }"},
    {"member without a value", BIT(UNWRITTEN), "{ pair z; z.x = %e; out[14] = z.y.x; }"},
    {"unwritten device memory", BIT(UNWRITTEN), "out[14] = out[15] + %e;"},
    {"unwritten threadgroup memory", BIT(UNWRITTEN), "out[14] = uint(tg[256u + %i]) + %e;"},
    {"missing barrier", RACE, "{ tg[at.tid] = %e; out[14] = uint(tg[(at.tid + 1) % at.size]); }"},
    {"plain access beside atomics", RACE, "{ device uint *z = (device uint *)counts; *z = *z + %e; }"},
    {"store of all threads in one place", RACE, "{ device uint *z = (device uint *)(counts + 1); *z = at.i + %e; }"},
    {"barrier in a branch", BIT(BARRIER), "if (at.tid != 0) threadgroup_barrier(mem_flags::mem_none);"},
    {"value of an inactive lane", BIT(DIVERGED), "if (at.lane != 0) out[14] = simd_broadcast(%e, ushort(0));"},
    {"shuffle from an inactive lane", BIT(DIVERGED), "if (at.lane & 1u) out[14] = simd_shuffle_xor(%e, ushort(1));"},
    {"division by zero", BIT(DIVIDE), "out[14] = %e / (%e & 0u);"},
    {"remainder of zero", BIT(DIVIDE), "out[14] = fold(uint2(%e) % uint2(1u, %e & 0u));"},
    {"shift by the width", BIT(SHIFT), "out[14] = %e << (32u + (%e & 3u));"},
    {"shift of a vector by the width", BIT(SHIFT), "out[14] = fold(ushort3(5) << ushort3(1, 2, ushort(16u + (%e & 3u))));"},
    {"signed overflow", BIT(OVERFLOW), "out[14] = uint(2147483647 - int(%e & 3u) + int(4u + (%e & 3u)));"},
    {"overflow of a signed product", BIT(OVERFLOW), "out[14] = uint(int(65536u + (%e & 3u)) * int(32768u + (%e & 3u)));"},
    {"float beyond an integer", BIT(CONVERT), "out[14] = uint(int(float(%e & 7u) + 3e9f));"},
    {"misaligned pointer", BIT(MISALIGNED), "out[14] = *(device const uint *)((device const uchar *)words + 1 + 4 * (%e & 1u));"},
    {"clamp with its bounds swapped", BIT(CLAMP), "out[14] = clamp(%e, 9u, 3u);"},
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
    w->is_whole = g.x * g.y * g.z % 32 == 0 && n.x % g.x == 0 && n.y % g.y == 0 && n.z % g.z == 0;
    w->offset = next(&s) % 3 * 256;
    w->constant[0] = (uint32_t)next(&s) % 100;
    w->constant[1] = (uint32_t)((int)(next(&s) % 100) - 50);
    w->constant[2] = (uint32_t)next(&s) % 2;
    w->constant[3] = (uint32_t)next(&s) % 16;
    for (int i = 0; i < INPUT_WORDS; i++) {
        w->words[i] = (uint32_t)next(&s);
        w->params[i] = (uint32_t)next(&s);
        w->table[i] = next(&s) % 4 ? (uint32_t)next(&s) : (uint32_t)next(&s) % 8;
        w->reals[i] = (float)((int)(next(&s) % 127) - 63) / 4;
    }
}

/* ------------------------------------------------------------------------------------------- nodes */
enum { ARENA_BYTES = 1 << 20 };

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
    return hi - lo <= (k == F32   ? 24
                       : k == F16 ? 11
                                  : 8) &&
           lo >= -10 && hi <= (k == F32 ? 20 : 14);
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
#define RANGE(op, text, form, arity, kinds, weight, guard, whole, real, low, high)                 \
    case OP_##op:                                                                                  \
        n->lo = low;                                                                               \
        n->hi = high;                                                                              \
        return;
    switch (H > -99 ? n->op : OP_NONE) {
        GRAMMAR(RANGE)
    default:
        n->lo = H > -99 ? L : 0; /* of an integer: below 16, or it would not be converted */
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
    bool is_rule = o < OP_LITERAL || o == OP_CHOOSE || o == OP_JOIN;
    if (is_rule && (is_real(a) || is_real(b)) && !holds(k, n->lo, n->hi)) {
        for (int i = 0; i < 3; i++)
            if (is_real(n->a[i]) && n->a[i]->op != OP_LITERAL)
                n->a[i] = settle(p, n->a[i]);
        set_range(n);
    }
    return n;
}

static type scalar(kind k) {
    return (type){k, 1};
}

static node *literal(program *p, type t, int64_t value) {
    node *n = make(p, OP_LITERAL, scalar(t.k), NULL, NULL, NULL);
    n->value = value;
    n->lo = -2;
    n->hi = 3;
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
    int total = 0, at = 0;
    for (int pass = 0; pass < 2; pass++) {
        at = pass && total ? below(m, total) : 0;
        for (op o = 1; o < OP_LITERAL; o++) {
            const rule *r = &grammar[o];
            if (r->form < first || r->form > last || (r->guard == WHOLE && !whole) ||
                (r->form != VOTE && !strchr(r->kinds, letter)) ||
                (r->guard == LOW24 && t.k != I32 && t.k != U32))
                continue;
            if (pass && (at -= r->weight) < 0)
                return o;
            total += pass ? 0 : r->weight;
        }
    }
    return OP_NONE;
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
    variable *found[64];
    int fields[64], count = 0;
    for (int i = 0; i < m->scopes; i++) {
        variable *v = m->scope[i], *target = v->target ? v->target : v;
        if (to_write &&
            (target->is_fixed || (target->where != IN_THREAD && target->where != IN_OWN)))
            continue;
        for (int f = 0; f < MORE(target->fields, 1) && count < 64; f++)
            if (target->field[f].t.k == t.k && target->field[f].t.n == t.n)
                found[count] = v, fields[count++] = f;
    }
    int i = count ? below(m, count) : 0;
    return count ? load(m, found[i], fields[i]) : NULL;
}

static node *leaf(maker *m, type t) {
    static const kind constants[] = {U32, I32, BOOL, F32};
    program *p = m->p;
    node *n = chance(m, 80) ? find_place(m, t, false) : NULL;
    if (n)
        return n;
    for (int i = 0; i < 5 && t.n == 1; i++)
        if (chance(m, i < 4 ? 25 : 60) && (i < 4 ? constants[i] : U32) == t.k) {
            n = make(p, i < 4 ? OP_CONSTANT : OP_PLACE, t, NULL, NULL, NULL);
            n->value = i < 4 ? i : below(m, PLACES);
            n->lo = -2;
            n->hi = 3;
            return n;
        }
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
    int bits = 8 * kind_bytes(t.k), down = 0, i = o == OP_EXTRACT ? 1 : 2, low = below(m, 8);
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
    for (i = 0; i < grammar[o].arity && down; i++)
        a[i] = make(p, OP_SHR, a[i]->t, a[i], literal(p, scalar(t.k), down), NULL);
}

static node *operation(maker *m, type t, int depth) {
    op o = choose(m, INFIX, CALL, t);
    node *a[4] = {NULL};
    for (int i = 0; i < grammar[o].arity; i++) {
        bool beside = i == 1 && t.n > 1 && grammar[o].form == INFIX && chance(m, 25);
        a[i] = expression(m, beside ? scalar(t.k) : t, depth - 1);
    }
    guard_operands(m, o, t, a);
    node *n = make(m->p, o, t, a[0], a[1], a[2]);
    n->a[3] = a[3];
    return n;
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

static bool may_meet(const maker *m) {
    return m->is_uniform || program_diverges;
}

static node *lanes(maker *m, type t, int depth) {
    op o = may_meet(m) ? choose(m, LANES, LANES, t) : OP_NONE;
    if (o == OP_NONE)
        return leaf(m, t);
    node *b = o == OP_SHUFFLE         ? word(m, depth - 1)
              : grammar[o].arity == 2 ? expression(m, t, depth - 1)
                                      : NULL;
    node *n = make(m->p, o, t, expression(m, t, depth - 1), b, NULL);
    n->group = chance(m, 30) ? 4 : 32;
    n->value = below(m, n->group);
    return n;
}

static node *vote(maker *m, op o, type t, int depth) {
    node *n = make(m->p, o, t, grammar[o].arity ? condition(m, depth - 1) : NULL, NULL, NULL);
    n->group = chance(m, 30) ? 4 : 32;
    return n;
}

static node *compare(maker *m, type t, int depth) {
    op o = choose(m, COMPARE, COMPARE, t);
    node *a = expression(m, t, depth - 1);
    return make(m->p, o, (type){BOOL, t.n}, a, expression(m, t, depth - 1), NULL);
}

static node *condition(maker *m, int depth) {
    type b = {BOOL, 1}, t = any_type(m);
    int what = below(m, 100);
    bool was = m->is_uniform;
    if (depth <= 0 || what < 8)
        return leaf(m, b);
    if (what < 14)
        return make(m->p, OP_NO, b, condition(m, depth - 1), NULL, NULL);
    if (what < 30) {
        node *first = condition(m, depth - 1);
        m->is_uniform = false;
        node *second = condition(m, depth - 1);
        m->is_uniform = was;
        return make(m->p, what < 22 ? OP_BOTH : OP_EITHER, b, first, second, NULL);
    }
    if (what < 46 && may_meet(m))
        return vote(m, choose(m, VOTE, VOTE, b), b, depth);
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
    int first = 1 + below(m, LESS(t.n, 3)), second = first == t.n ? 0 : 1 + below(m, t.n - first);
    node *a[3] = {NULL};
    if (first == t.n) /* one scalar */
        return make(m->p, OP_JOIN, t, expression(m, scalar(t.k), depth - 1), NULL, NULL);
    int widths[] = {first, second, LESS(t.n - first - second, 1)};
    widths[1] += t.n - first - second - widths[2];
    for (int i = 0; i < 3 && widths[i]; i++)
        a[i] = expression(m, (type){t.k, widths[i]}, depth - 1);
    return make(m->p, OP_JOIN, t, a[0], a[1], a[2]);
}

static node *either(maker *m, type t, int depth) {
    bool was = m->is_uniform;
    if (t.k != BF16 && chance(m, 40)) {
        node *b = expression(m, t, depth - 1), *a = expression(m, t, depth - 1);
        return make(m->p, OP_SELECT, t, b, a, compare(m, t, depth));
    }
    node *c = condition(m, depth - 1);
    m->is_uniform = false;
    node *a = expression(m, t, depth - 1), *b = expression(m, t, depth - 1);
    m->is_uniform = was;
    return make(m->p, OP_CHOOSE, t, c, a, b);
}

static node *call(maker *m, type t, int depth) {
    function *found[8];
    int count = 0;
    for (function *f = m->p->functions; f && f != m->f; f = f->next)
        if (f->t.k == t.k && f->t.n == t.n && count < 8)
            found[count++] = f;
    if (count == 0)
        return leaf(m, t);
    function *f = found[below(m, count)];
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
        return operation(m, t, depth);
    if (what < 52 && t.n == 1 && (t.k == I32 || t.k == U32))
        return promoted(m, t, depth);
    if (what < 63)
        return lanes(m, t, depth);
    if (what < 70)
        return convert(m, t, depth);
    if (what < 82)
        return t.n > 1 && what < 76 ? join(m, t, depth) : vector_part(m, t, depth);
    if (what < 90)
        return either(m, t, depth);
    if (what < 94)
        return call(m, t, depth);
    if (what < 96 && t.k == F32 && t.n == 1) {
        type from = {F32, 2 + below(m, 3)};
        node *a = expression(m, from, depth - 1);
        return make(m->p, OP_DOT, t, a, expression(m, from, depth - 1), NULL);
    }
    if (what < 98 && t.k == U32 && t.n == 1 && may_meet(m))
        return vote(m, chance(m, 50) ? OP_BALLOT : OP_ACTIVE, t, depth);
    return reinterpret(m, t, depth);
}

/* -------------------------------------------------------------------------------------- statements */
static variable *declare(maker *m, space where, type t) {
    program *p = m->p;
    variable *v = take(p, sizeof *v);
    *v = (variable){.id = p->variable_count, .record = p->variable_count, .where = where};
    v->field[0].t = t;
    assert(p->variable_count < VARIABLES);
    p->variables[p->variable_count++] = v;
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
    node *n = make(m->p, OP_DECLARE, t, fit(m->p, expression(m, t, 3)), NULL, NULL);
    n->v = place(m, declare(m, IN_THREAD, t));
    return n;
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
    node *list = make(m->p, OP_DECLARE, v->field[0].t, NULL, NULL, NULL);
    list->v = v;
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
        node *n = make(m->p, old->fields ? OP_COPY : OP_DECLARE, scalar(U32), offset, NULL, NULL);
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
        const field *f = &(to->v->target ? to->v->target : to->v)->field[to->field];
        if (t.n > 1 && !f->packed && chance(m, 30)) {
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
    node *on = o == OP_IF ? condition(m, 2)
               : uniform  ? literal(m->p, scalar(U32), 1 + below(m, 3))
                          : mask(m->p, word(m, 2), 3);
    node *n = make(m->p, o, on->t, on, NULL, NULL), **end = &n->body;
    m->is_uniform = uniform;
    m->may_return = may_return && !uniform;
    m->loops = uniform ? 0 : loops + (o == OP_LOOP);
    if (o == OP_LOOP) {
        n->value = below(m, 3);
        n->v = place(m, declare(m, IN_THREAD, scalar(U32)));
        n->v->is_fixed = true;
    }
    if (o != OP_SWITCH)
        n->body = block(m, 1 + below(m, 3));
    if (o == OP_IF && chance(m, 50))
        n->other = block(m, 1 + below(m, 2));
    for (int i = 0, other = below(m, count + 2); o == OP_SWITCH && i < count; i++) {
        *end = make(m->p, OP_CASE, on->t, NULL, NULL, NULL);
        (*end)->value = i == other ? -1 : i;
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
    node *n = make(m->p, OP_PUT, value->t, fit(m->p, value), NULL, NULL);
    n->value = m->p->outs++;
    return n;
}

static node *through_memory(maker *m) {
    bool is_whole = m->p->world->is_whole;
    int what = below(m, 10);
    op o = what < 7 ? OP_EXCHANGE : what < 9 && is_whole ? OP_MULTIPLY : OP_TALLY;
    type t = o == OP_EXCHANGE ? any_type(m) : scalar(o == OP_TALLY ? U32 : F32);
    t.n = kind_bytes(t.k) == 8 ? LESS(t.n, 2) : t.n;
    node *a = fit(m->p, expression(m, t, 2));
    node *n = make(m->p, o, t, a, word(m, 2), NULL);
    n->value = o == OP_EXCHANGE ? is_whole && chance(m, 25) : below(m, 64);
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
        n->value = below(m, COUNTERS);
        return n;
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
    m->left = 1 + below(m, 3);
    m->depth = 1;
    while (m->left > 0)
        f->body = append(f->body, statement(m));
    node *value = fit(m->p, expression(m, f->t, 3));
    f->body = append(f->body, make(m->p, OP_RETURN, f->t, value, NULL, NULL));
    m->depth = 0;
}

/* A template of one expression that means something for every unsigned type, used with two. */
static node *generic(maker *m, function *f, const op *ops, int depth) {
    node *a = depth ? generic(m, f, ops, depth - 1) : make(m->p, OP_LOAD, f->t, NULL, NULL, NULL);
    a->v = depth ? NULL : f->parameter[0];
    node *b = depth && *ops % 2 ? generic(m, f, ops + 1, depth - 1) : literal(m->p, f->t, *ops);
    return make(m->p, ops[depth], f->t, a, grammar[ops[depth]].arity > 1 ? b : NULL, NULL);
}

static void make_template(maker *m, int id) {
    static const op rules[] = {OP_ADD, OP_SUB, OP_AND,  OP_OR,     OP_XOR,      OP_NOT,
                               OP_MIN, OP_MAX, OP_HADD, OP_ADDSAT, OP_POPCOUNT, OP_ABSDIFF};
    op ops[4];
    for (int i = 0; i < 4; i++)
        ops[i] = rules[below(m, 12)];
    function *first = NULL;
    for (int i = 0; i < 2; i++) {
        kind k = U8 + 2 * (kind)below(m, 4);
        type t = {k, 1 + below(m, 4)};
        function *f = start_function(m, id, t, 1);
        f->is_template = true;
        f->origin = first;
        f->body = make(m->p, OP_RETURN, t, generic(m, f, ops, 2), NULL, NULL);
        first = f;
    }
}

static void view(maker *m, space where) {
    kind k = where == IN_INPUT && chance(m, 40) ? F32 : I8 + (kind)below(m, 8);
    variable *v = declare(m, where, (type){k, where == IN_TABLE ? 1 : 1 + below(m, 4)});
    v->field[0].packed = v->field[0].t.n > 1 && kind_bytes(k) < 8 && chance(m, 40);
    v->field[0].count = where == IN_TABLE ? 8 : 16;
    v->at = below(m, 200);
    place(m, v);
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
    if (chance(m, 15))
        make_template(m, 10 * index);
    p->main = start_function(m, 0, (type){U32, 0}, 0);
    m->is_uniform = true;
    for (space s = IN_INPUT; s <= IN_TABLE; s++)
        view(m, s);
    m->left = 3 + below(m, 6);
    node *list = declare_plain(m);
    list = append(list, declare_plain(m));
    for (int at = below(m, 2); m->left > 0 || planted >= 0; at--) {
        m->may_return = planted < 0; /* all threads come to the bug */
        if (at <= 0 && planted >= 0) {
            node *a = word(m, 1);
            p->planted = make(p, OP_PLANT, a->t, a, word(m, 1), NULL);
            p->planted->value = planted;
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
static void add(printer *out, const char *text, size_t length) {
    if (out->count + length + 1 > out->capacity) {
        out->capacity = 2 * out->capacity + length + 65536;
        out->text = realloc(out->text, out->capacity);
        assert(out->text);
    }
    for (size_t i = 0; i < length; i++)
        out->line += text[i] == '\n';
    memcpy(out->text + out->count, text, length);
    out->text[out->count += length] = 0;
}

static void print_expression(printer *out, const node *n);
static void print_place(printer *out, const node *n);
static void print_object(printer *out, const variable *v);

static void print_type(printer *out, type t, bool packed) {
    static const char *const names[KINDS] = {"bool", "char", "uchar", "short", "ushort", "int",
                                             "uint", "long", "ulong", "half",  "bfloat", "float"};
    char text[24];
    const function *f = out->generic;
    if (f && t.k == f->t.k && t.n == f->t.n)
        snprintf(text, sizeof text, "T");
    else
        snprintf(text, sizeof text, t.n > 1 ? "%s%s%d" : "%s%s", packed && t.n > 1 ? "packed_" : "",
                 names[t.k], t.n);
    add(out, text, strlen(text));
}

static void print_field(printer *out, const field *f) {
    print_type(out, f->t, f->packed);
}

/* As printf, and %e: an expression, %p: a place, %t: a type, %f: a field's type, %o: an object's type, %i:
 * as many blanks as the depth asks for. */
static void say(printer *out, const char *format, ...) {
    va_list list;
    char number[32];
    va_start(list, format);
    for (const char *at = format; *at; at++) {
        size_t plain = strcspn(at, "%");
        add(out, at, plain);
        at += plain;
        if (!*at)
            break;
        const char *text = number;
        number[0] = 0;
        switch (*++at) {
        case 'e':
            print_expression(out, va_arg(list, const node *));
            break;
        case 'p':
            print_place(out, va_arg(list, const node *));
            break;
        case 't':
            print_type(out, va_arg(list, type), false);
            break;
        case 'f':
            print_field(out, va_arg(list, const field *));
            break;
        case 'o':
            print_object(out, va_arg(list, const variable *));
            break;
        case 'i':
            snprintf(number, sizeof number, "%*s", 4 * va_arg(list, int), "");
            break;
        case 'd':
            snprintf(number, sizeof number, "%d", va_arg(list, int));
            break;
        case 'u':
            snprintf(number, sizeof number, "%llu", va_arg(list, unsigned long long));
            break;
        case 'g':
            snprintf(number, sizeof number, "%.2f", va_arg(list, double));
            break;
        case 's':
            text = va_arg(list, const char *);
            break;
        default:
            snprintf(number, sizeof number, "%%%c", *at);
        }
        add(out, text, strlen(text));
    }
    va_end(list);
}

/* A copy has the type of the first. */
static void print_object(printer *out, const variable *v) {
    if (v->fields)
        say(out, "S%d_%d", out->p->index, v->record);
    else
        print_field(out, &v->field[0]);
}

static void print_place(printer *out, const node *n) {
    const variable *v = n->v, *target = v->target ? v->target : v;
    say(out, "v%d", v->id);
    if (target->fields)
        say(out, target->where == IN_OWN ? "->m%d" : ".m%d", n->field);
    if (n->a[0])
        say(out, "[%e]", n->a[0]);
    if (n->part[0])
        say(out, ".%s", n->part);
}

static void print_literal(printer *out, const node *n) {
    if (n->t.k == BOOL)
        say(out, n->value ? "true" : "false");
    else if (n->t.k >= F16)
        say(out, "%t(%g)", n->t, (double)n->value / 4);
    else if (n->t.k >= U32 && !out->generic)
        say(out, "%t(%u%s)", n->t, (unsigned long long)n->value, n->t.k == U32 ? "u" : "ul");
    else if (out->generic && out->generic->t.n > 1)
        say(out, "%d", (int)n->value); /* in a T(...) */
    else
        say(out, "%t(%d)", n->t, (int)n->value);
}

static void print_lanes(printer *out, const node *n) {
    const char *prefix = n->group == 4 ? "quad" : "simd";
    bool is_mask = n->op == OP_BALLOT || n->op == OP_ACTIVE;
    if (is_mask)
        say(out, "uint(%s_vote::vote_t(", prefix);
    say(out, n->a[0] ? "%s_%s(%e" : "%s_%s(", prefix, grammar[n->op].text, n->a[0]);
    if (n->op == OP_SHUFFLE)
        say(out, ", pick%d(%e, at.lane)", n->group, n->a[1]);
    else if (n->a[1])
        say(out, ", %e", n->a[1]);
    if (n->op == OP_BROADCAST)
        say(out, ", first%d()", n->group);
    if (grammar[n->op].guard == WHOLE)
        say(out, ", ushort(%d)", (int)n->value);
    say(out, is_mask ? ")))" : ")");
}

static void print_arguments(printer *out, const node *n) {
    for (int i = 0; i < 4 && n->a[i]; i++)
        say(out, i ? ", %e" : "%e", n->a[i]);
    say(out, ")");
}

static void print_expression(printer *out, const node *n) {
    static const char *const places[PLACES] = {
        "lane",    "tid",    "sg",     "size",   "local.x",   "local.y", "local.z",
        "group.x", "grid.x", "grid.y", "grid.z", "threads.x", "groups.x"};
    const rule *r = &grammar[n->op];
    bool is_packed =
        n->op == OP_LOAD && (n->v->target ? n->v->target : n->v)->field[n->field].packed;
    /* Scalars that are smaller than int are promoted; the tree has them as what they were. */
    if ((r->form == INFIX || r->form == PREFIX) &&
        (out->generic || (n->t.n == 1 && kind_bytes(n->t.k) < 4 && n->t.k != BOOL)))
        say(out, "%t", n->t);
    if (n->op == OP_LITERAL)
        print_literal(out, n);
    else if (n->op == OP_LOAD)
        is_packed ? say(out, "%t(%p)", n->t, n) : print_place(out, n);
    else if (n->op == OP_PLACE)
        say(out, "at.%s", places[n->value]);
    else if (n->op == OP_CONSTANT)
        say(out, "fc%d", (int)n->value);
    else if (n->op == OP_SWIZZLE)
        say(out, "%e.%s", n->a[0], n->part);
    else if (n->op == OP_ELEMENT)
        say(out, "%e[%e]", n->a[0], n->a[1]);
    else if (n->op == OP_CHOOSE)
        say(out, "(%e ? %e : %e)", n->a[0], n->a[1], n->a[2]);
    else if (r->form == INFIX || r->form == COMPARE)
        say(out, "(%e %s %e)", n->a[0], r->text, n->a[1]);
    else if (r->form == PREFIX)
        say(out, "(%s%e)", r->text, n->a[0]);
    else if (r->form == LANES || r->form == VOTE)
        print_lanes(out, n);
    else {
        if (n->op == OP_CALL_OF)
            say(out, n->f->is_template ? "f%d<%t>(" : "f%d(at, ", n->f->id, n->f->t);
        else if (n->op == OP_REINTERPRET)
            say(out, "as_type<%t>(", n->t);
        else if (n->op >= OP_LITERAL)
            say(out, "%t(", n->t);
        else
            say(out, "%s(", r->text);
        print_arguments(out, n);
    }
}

static const char *const spaces[] = {"thread", "device const", "constant", "constant", "device"};
static const char barrier[] = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";

static void print_declaration(printer *out, const node *n) {
    const variable *v = n->v;
    if (v->target) {
        say(out, "%s %f *v%d = v%d + %e", spaces[v->target->where], &v->field[0], v->id,
            v->target->id, n->a[0]);
    } else if (v->where == IN_OWN) {
        say(out, "device %o *v%d = (device %o *)(own + %d)", v, v->id, v, v->at / 4);
    } else if (v->fields) {
        say(out, n->op == OP_COPY ? "%o v%d = v%d" : "%o v%d", v, v->id,
            n->op == OP_COPY ? n->w->id : 0);
    } else {
        say(out, v->field[0].count ? "%t v%d[%d]" : "%t v%d", v->field[0].t, v->id,
            v->field[0].count);
        if (n->a[0])
            say(out, " = %e", n->a[0]);
    }
}

static void print_memory(printer *out, const node *n, int depth) {
    static const char *const tallies[] = {"add", "xor", "max", "or"};
    static const char *const truths[] = {"false", "true"};
    int id = n->v->id, where = (int)n->value;
    if (n->op == OP_EXCHANGE) {
        say(out, "threadgroup %t *s%d = (threadgroup %t *)tg;\n%is%d[at.tid] = %e;\n%i", n->t, id,
            n->t, depth, id, n->a[0], depth);
        say(out, where ? "simdgroup_barrier(mem_flags::mem_threadgroup);\n" : barrier);
        say(out,
            where ? "%i%t v%d = s%d[(at.tid & ~31u) + (%e & 31u)]" : "%i%t v%d = s%d[%e % at.size]",
            depth, n->t, id, id, n->a[1]);
    } else if (n->op == OP_TALLY) {
        say(out,
            "threadgroup atomic_uint *s%d = (threadgroup atomic_uint *)tg;\n%iif (at.tid == 0)\n%i",
            id, depth, depth + 1);
        say(out, "atomic_store_explicit(s%d, 5u, memory_order_relaxed);\n%i%s%i", id, depth,
            barrier, depth);
        say(out, "atomic_fetch_%s_explicit(s%d, %e, memory_order_relaxed);\n%i%s%i",
            tallies[where % 4], id, n->a[0], depth, barrier, depth);
        say(out, "uint v%d = atomic_load_explicit(s%d, memory_order_relaxed)", id, id);
    } else {
        say(out, "threadgroup float *s%d = (threadgroup float *)tg;\n%i", id, depth);
        say(out, "simdgroup_float8x8 a%d, b%d, c%d;\n%i", id, id, id, depth);
        say(out, "simdgroup_load(a%d, reals + %d, 8, ulong2(0), %s);\n%i", id, where,
            truths[where & 1], depth);
        say(out, "simdgroup_load(b%d, reals, 9, ulong2(%d, %d), %s);\n%i", id, where % 3, where % 5,
            truths[where >> 1 & 1], depth);
        say(out, "c%d = make_filled_simdgroup_matrix<float, 8, 8>(%d.5f);\n%i", id, where % 7,
            depth);
        say(out, "simdgroup_multiply_accumulate(c%d, a%d, b%d, c%d);\n%i", id, id, id, id, depth);
        say(out, "simdgroup_store(c%d, s%d + at.sg * 64, 8, ulong2(0), %s);\n%i%s%i", id, id,
            truths[where >> 2 & 1], depth, barrier, depth);
        say(out, "float v%d = float(int(s%d[at.sg * 64 + (%e & 63u)] * 16.0f) & 1023)", id, id,
            n->a[1]);
    }
    say(out, ";\n%i%s", depth, barrier);
}

static void print_planted(printer *out, const node *n) {
    const extent threads = out->p->world->threads;
    int uses = 0;
    for (const char *at = plants[n->value].text; *at; at++)
        if (*at != '%' || !strchr("ersi", at[1]))
            add(out, at, 1);
        else if (*++at == 'e')
            print_expression(out, n->a[uses++]);
        else
            say(out, "%du",
                *at == 'r'   ? (out->slots - out->slot) * (int)(threads.x * threads.y * threads.z)
                : *at == 's' ? SHARED_BYTES / 8 + out->slots
                             : out->slot);
    say(out, "\n");
}

static void print_block(printer *out, node *list, int depth);

static void print_nested(printer *out, node *n, int depth) {
    int id = n->v ? n->v->id : 0;
    if (n->op == OP_IF || n->op == OP_SWITCH)
        say(out, n->op == OP_IF ? "if (%e) {\n" : "switch (%e) {\n", n->a[0]);
    else if (n->op == OP_CASE)
        say(out, n->value < 0 ? "default: {\n" : "case %d: {\n", (int)n->value);
    else if (n->value == 0)
        say(out, "for (uint v%d = 0; v%d < %e; v%d++) {\n", id, id, n->a[0], id);
    else
        say(out,
            n->value == 1 ? "uint v%d = %e;\n%iwhile (v%d > 0) {\n%iv%d--;\n"
                          : "uint v%d = %e;\n%ido {\n",
            id, n->a[0], depth, id, depth + 1, id);
    print_block(out, n->body, depth + 1);
    if (n->other) {
        say(out, "%i} else {\n", depth);
        print_block(out, n->other, depth + 1);
    }
    say(out, n->op == OP_LOOP && n->value == 2 ? "%i} while (v%d-- > 0);\n" : "%i}\n", depth, id);
}

static void print_block(printer *out, node *list, int depth) {
    static const char *const counters[COUNTERS] = {"add", "sub", "or",  "and",
                                                   "xor", "min", "max", "max"};
    for (node *n = list; n; n = n->next) {
        n->line = out->line + 1;
        say(out, "%i", depth);
        if (n->op >= OP_IF && n->op <= OP_CASE) {
            print_nested(out, n, depth);
            continue;
        }
        if (n->op >= OP_EXCHANGE && n->op <= OP_MULTIPLY) {
            print_memory(out, n, depth);
            continue;
        }
        if (n->op == OP_PLANT) {
            print_planted(out, n);
            continue;
        }
        if (n->op == OP_DECLARE || n->op == OP_COPY)
            print_declaration(out, n);
        else if (n->op == OP_ASSIGN)
            say(out, "%p %s= %e", n->a[0], n->value ? grammar[n->value].text : "", n->a[1]);
        else if (n->op == OP_PUT)
            say(out, "out[%d] = fold(%e)", (int)n->value, n->a[0]);
        else if (n->op == OP_ATOMIC)
            say(out, "atomic_fetch_%s_explicit(%scounts + %d, %e, memory_order_relaxed)",
                counters[n->value], n->value == 7 ? "(device atomic_int *)" : "", (int)n->value,
                n->a[0]);
        else if (n->op == OP_RETURN)
            say(out, n->a[0] ? "return %e" : "return", n->a[0]);
        else
            say(out, n->op == OP_BREAK ? "break" : "continue");
        say(out, ";\n");
    }
}

static void count_uses(const node *n) {
    for (; n; n = n->next) {
        if (n->v)
            n->v->uses++;
        if (n->v && n->v->target)
            n->v->target->uses++;
        if (n->w)
            n->w->uses++;
        if (n->f && n->f->uses++ == 0)
            count_uses(n->f->body);
        if (n->f && n->f->origin)
            n->f->origin->uses++;
        for (int i = 0; i < 4; i++)
            count_uses(n->a[i]);
        count_uses(n->body);
        count_uses(n->other);
    }
}

static void print_variable(printer *out, const variable *v) {
    const field *f = &v->field[0];
    if (v->fields && v->uses && v->record == v->id) {
        say(out, "%s %o {\n", v->is_union ? "union" : "struct", v);
        for (int i = 0; i < v->fields; i++)
            say(out, v->field[i].count ? "    %f m%d[%d];\n" : "    %f m%d;\n", &v->field[i], i,
                v->field[i].count);
        say(out, "};\n");
    } else if (v->where == IN_TABLE && v->uses) {
        say(out, "constant %t t%d_%d[%d] = {", f->t, out->p->index, v->id, f->count);
        for (int i = 0; i < f->count; i++)
            say(out, i ? ", %t(%uu)" : "%t(%uu)", f->t,
                (unsigned long long)out->p->world->table[v->at + i]);
        say(out, "};\n");
    }
}

static void print_program(printer *out, program *p) {
    out->p = p;
    p->first_line = out->line + 1;
    for (int i = 0; i < p->variable_count; i++)
        p->variables[i]->uses = 0;
    for (function *f = p->functions; f; f = f->next)
        f->uses = 0;
    count_uses(p->main->body);
    for (int i = 0; i < p->variable_count; i++)
        print_variable(out, p->variables[i]);
    for (function *f = p->functions; f; f = f->next) {
        if (f->origin || !f->uses)
            continue;
        out->generic = f->is_template ? f : NULL;
        say(out,
            f->is_template ? "template <typename T> static %t f%d(" : "static %t f%d(at_t at, ",
            f->t, f->id);
        for (int i = 0; i < f->parameters; i++)
            say(out, i ? ", %t v%d" : "%t v%d", f->parameter[i]->field[0].t, f->parameter[i]->id);
        say(out, ") {\n");
        print_block(out, f->body, 1);
        say(out, "}\n");
        out->generic = NULL;
    }
    say(out,
        "static void p%d(at_t at, device const uint *words, constant uint *params,\n"
        "    device const float *reals, device uint *out, device atomic_uint *counts,\n"
        "    device uint *own, threadgroup ulong *tg) {\n",
        p->index);
    for (int i = 0; i < p->variable_count; i++) {
        const variable *v = p->variables[i];
        const field *f = &v->field[0];
        if (v->where == IN_TABLE && v->uses)
            say(out, "    constant %t *v%d = t%d_%d;\n", f->t, v->id, p->index, v->id);
        else if ((v->where == IN_INPUT || v->where == IN_PARAMS) && v->uses)
            say(out, "    %s %f *v%d = (%s %f *)%s;\n", spaces[v->where], f, v->id,
                spaces[v->where], f,
                v->where == IN_PARAMS ? "params"
                : f->t.k == F32       ? "reals"
                                      : "words");
    }
    print_block(out, p->main->body, 1);
    say(out, "}\n");
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
    int threads = (int)(w->threads.x * w->threads.y * w->threads.z);
    add(out, head, sizeof head - 1);
    out->slots = count;
    for (out->slot = 0; out->slot < count; out->slot++)
        print_program(out, programs[out->slot]);
    say(out, entry, SHARED_BYTES / 8 + (programs[0]->planted ? count : 0));
    for (int i = 0; i < count; i++)
        say(out,
            "    p%d(at, words, params, reals, out + (%d + i) * %d, counts + %d,\n"
            "        own + (%d + i) * %d, tg);\n",
            programs[i]->index, i * threads, OUT_WORDS, i * COUNTERS, i * threads, OWN_BYTES / 4);
    say(out, "}\n");
}
