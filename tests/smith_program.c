/* smith_program: makes random programs and prints them as Metal. See smith.h. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smith.h"

#define RULE(op, text, form, arity, kinds, weight, guard)                                          \
    [OP_##op] = {text, form, arity, kinds, weight, guard},
const rule grammar[OP_COUNT] = {GRAMMAR(RULE)};
#undef RULE

bool program_diverges = true;

const char *const place_names[PLACES] = {"lane",    "tid",     "sg",      "size",   "local.x",
                                         "local.y", "local.z", "group.x", "grid.x", "grid.y",
                                         "grid.z",  "threads.x", "groups.x"};

size_t kind_bytes(kind k) {
    static const size_t bytes[KINDS] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4};
    return bytes[k];
}
bool kind_is_signed(kind k) {
    return k == I8 || k == I16 || k == I32 || k == I64;
}
bool kind_is_real(kind k) {
    return k >= F16;
}
bool type_is(type a, type b) {
    return a.k == b.k && a.n == b.n;
}

/* ------------------------------------------------------------------------------------------ chance */
typedef struct {
    uint64_t state;
    program *p;
    function *f;          /* that is being made */
    variable *scope[96];  /* what can be named here */
    int scopes;
    int depth, loops;     /* of statements; that a break would leave */
    int left;             /* statements to go */
    int own;              /* bytes of the thread's device memory in use */
    bool is_uniform;      /* all threads of the threadgroup come here */
    bool may_return, has_returned;
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
    w->threads = shape[0];
    w->group = shape[1];
    w->is_whole = w->group.x * w->group.y * w->group.z % 32 == 0 &&
                  w->threads.x % w->group.x == 0 && w->threads.y % w->group.y == 0 &&
                  w->threads.z % w->group.z == 0;
    w->offset = next(&s) % 3 * 256;
    w->constant[0] = (uint32_t)next(&s) % 100;
    w->constant[1] = (uint32_t)((int)(next(&s) % 100) - 50);
    w->constant[2] = (uint32_t)next(&s) % 2;
    w->constant[3] = (uint32_t)next(&s) % 16;
    for (int i = 0; i < INPUT_WORDS; i++) {
        w->words[i] = (uint32_t)next(&s);
        w->params[i] = (uint32_t)next(&s);
        w->table[i] = (uint32_t)next(&s) % 4 ? (uint32_t)next(&s) : (uint32_t)next(&s) % 8;
        w->reals[i] = (float)((int)(next(&s) % 127) - 63) / 4;
    }
}

/* ------------------------------------------------------------------------------------------- nodes */
enum { ARENA_BYTES = 1 << 20 };

static void *take(program *p, size_t bytes) {
    size_t *used = p->arena;
    bytes = (bytes + 15) / 16 * 16;
    assert(*used + bytes <= ARENA_BYTES);
    void *at = (char *)p->arena + *used;
    *used += bytes;
    return at;
}

static node *make(maker *m, op o, type t, node *a, node *b, node *c) {
    node *n = take(m->p, sizeof *n);
    *n = (node){.op = o, .t = t, .a = {a, b, c}};
    return n;
}

static type scalar(kind k) {
    return (type){k, 1};
}

static node *splat(maker *m, type t, node *a) {
    node *n = make(m, OP_JOIN, t, a, NULL, NULL);
    n->lo = a->lo;
    n->hi = a->hi;
    return n;
}

static node *literal(maker *m, type t, int64_t value) {
    node *n = make(m, OP_LITERAL, scalar(t.k), NULL, NULL, NULL);
    n->value = value;
    n->lo = -2;
    n->hi = 3;
    return t.n == 1 ? n : splat(m, t, n);
}

/* Floats: do this many bits hold multiples of 2^lo below 2^hi, far from where a kind's exponents end? */
static bool holds(kind k, int lo, int hi) {
    int digits = k == F32 ? 24 : k == F16 ? 11 : 8;
    return hi - lo <= digits && lo >= -10 && hi <= (k == F32 ? 20 : 14);
}
static void get_range(kind k, int *lo, int *hi) {
    *lo = k == F32 ? -4 : -2;
    *hi = k == F32 ? 10 : k == F16 ? 6 : 5;
}

/* A float of any range as a small whole one. */
static node *settle(maker *m, node *a) {
    type whole = {I32, a->t.n};
    node *n = make(m, OP_CONVERT, whole, a, NULL, NULL);
    n = make(m, OP_AND, whole, n, literal(m, scalar(I32), 15), NULL);
    n = make(m, OP_CONVERT, a->t, n, NULL, NULL);
    n->lo = 0;
    n->hi = 4;
    return n;
}

static node *fit(maker *m, node *a) {
    int lo, hi;
    if (!kind_is_real(a->t.k))
        return a;
    get_range(a->t.k, &lo, &hi);
    return a->lo < lo || a->hi > hi ? settle(m, a) : a;
}

static int most(int a, int b) {
    return a > b ? a : b;
}

static void range_of(node *n) {
    const node *a = n->a[0], *b = n->a[1], *c = n->a[2];
    int lo = a->lo, hi = a->hi;
    for (int i = 1; i < 3; i++)
        if (n->a[i] && kind_is_real(n->a[i]->t.k)) {
            lo = -most(-lo, -n->a[i]->lo);
            hi = most(hi, n->a[i]->hi);
        }
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_FDIM: hi++; break;
    case OP_MUL: lo = a->lo + b->lo, hi = a->hi + b->hi; break;
    case OP_DOT: lo = a->lo + b->lo, hi = a->hi + b->hi + 2; break;
    case OP_FMA:
        lo = -most(-(a->lo + b->lo), -c->lo);
        hi = most(a->hi + b->hi, c->hi) + 1;
        break;
    case OP_MIX: lo -= 2, hi += 3; break;
    case OP_LDEXP: lo += (int)b->value, hi += (int)b->value; break;
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_RINT:
    case OP_TRUNC: hi = most(hi, 0) + (lo < 0), lo = most(lo, 0); break;
    case OP_FRACT:
    case OP_SATURATE:
    case OP_SIGN:
    case OP_STEP: lo = lo < 0 ? lo : 0, hi = 1; break;
    case OP_SUM:
    case OP_SCAN_SUM:
    case OP_SCAN_BEFORE: hi += 5; break;
    default: break;
    }
    n->lo = lo;
    n->hi = hi;
}

/* A node whose floats are exact: operands are settled if the result would not be. */
static node *combine(maker *m, op o, type t, node *a, node *b, node *c) {
    node *n = make(m, o, t, a, b, c);
    if (!a || !kind_is_real(a->t.k))
        return n;
    range_of(n);
    if (holds(a->t.k, n->lo, n->hi))
        return n;
    for (int i = 0; i < 3; i++)
        if (n->a[i] && kind_is_real(n->a[i]->t.k) && n->a[i]->op != OP_LITERAL)
            n->a[i] = settle(m, n->a[i]);
    range_of(n);
    return n;
}

/* ----------------------------------------------------------------------------------------- choices */
static type any_type(maker *m) {
    static const kind kinds[] = {U32, U32, U32, I32, I32, F32, F32, U8, I8, U16, I16, U64, I64, F16, F16, BF16};
    kind k = kinds[below(m, 16)];
    int n = chance(m, 50) ? 1 : 1 + below(m, 4);
    return (type){k, n};
}

static bool allows(op o, type t) {
    char letter = t.k == BF16 ? 'b' : kind_is_real(t.k) ? 'r' : kind_is_signed(t.k) ? 's' : 'u';
    if ((o == OP_MUL24 || o == OP_MAD24) && t.k != I32 && t.k != U32)
        return false;
    return grammar[o].form == VOTE || strchr(grammar[o].kinds, letter);
}

static op choose(maker *m, form first, form last, type t, bool whole) {
    int total = 0, at;
    for (int pass = 0;; pass++) {
        at = pass ? below(m, total) : 0;
        for (op o = 1; o < OP_COUNT; o++) {
            const rule *r = &grammar[o];
            if (r->form < first || r->form > last || r->weight == 0 || !allows(o, t) ||
                (r->guard == WHOLE && !whole))
                continue;
            if (pass && (at -= r->weight) < 0)
                return o;
            total += pass ? 0 : r->weight;
        }
        if (total == 0)
            return OP_NONE;
    }
}

static node *expression(maker *m, type t, int depth);

static int element_bytes(const field *f) {
    int n = f->t.n == 3 && !f->packed ? 4 : f->t.n;
    return n * (int)kind_bytes(f->t.k);
}

static node *load(maker *m, variable *v, int at) {
    const variable *target = v->target ? v->target : v;
    const field *f = &target->r.field[at];
    node *n = make(m, OP_LOAD, f->t, NULL, NULL, NULL);
    n->v = v;
    n->field = at;
    get_range(f->t.k, &n->lo, &n->hi);
    if (target->where == IN_INPUT)
        n->lo = -2, n->hi = 5;
    if (f->count) {
        int mask = (v->target ? f->count / 2 : f->count) - 1;
        bool was = m->is_uniform;
        node *index = chance(m, 40) ? literal(m, scalar(U32), below(m, mask + 1))
                                    : combine(m, OP_AND, scalar(U32),
                                              expression(m, scalar(U32), 1),
                                              literal(m, scalar(U32), mask), NULL);
        m->is_uniform = was;
        n->a[0] = index;
    }
    return n;
}

/* A place of this type that can be named here: to write to or only to read. */
static node *find_place(maker *m, type t, bool to_write) {
    variable *found[64];
    int fields[64], count = 0;
    for (int i = 0; i < m->scopes; i++) {
        variable *v = m->scope[i];
        const variable *target = v->target ? v->target : v;
        bool is_fixed = v->is_fixed || target->is_fixed || target->where == IN_INPUT ||
                        target->where == IN_PARAMS || target->where == IN_TABLE;
        for (int f = 0; f < most(target->r.fields, 1) && count < 64; f++)
            if (type_is(target->r.field[f].t, t) && !(to_write && is_fixed))
                found[count] = v, fields[count++] = f;
    }
    if (count == 0)
        return NULL;
    int i = below(m, count);
    return load(m, found[i], fields[i]);
}

static node *leaf(maker *m, type t) {
    node *n = chance(m, 80) ? find_place(m, t, false) : NULL;
    if (n)
        return n;
    if (t.n == 1 && t.k == U32 && chance(m, 60)) {
        n = make(m, OP_PLACE, t, NULL, NULL, NULL);
        n->value = below(m, PLACES);
        return n;
    }
    static const kind constants[] = {U32, I32, BOOL, F32};
    for (int i = 0; i < 4 && t.n == 1; i++)
        if (constants[i] == t.k && chance(m, 25)) {
            n = make(m, OP_CONSTANT, t, NULL, NULL, NULL);
            n->value = i;
            n->lo = -2;
            n->hi = 3;
            return n;
        }
    if (t.k == BOOL)
        return literal(m, t, below(m, 2));
    if (chance(m, 65)) { /* of where the thread is, or of a variable */
        n = leaf(m, scalar(U32));
        if (kind_is_real(t.k))
            n = make(m, OP_AND, n->t, n, literal(m, n->t, 15), NULL);
        n = t.k == U32 ? n : make(m, OP_CONVERT, scalar(t.k), n, NULL, NULL);
        n->lo = 0, n->hi = 4;
        return t.n == 1 ? n : splat(m, t, n);
    }
    if (kind_is_real(t.k))
        return literal(m, t, below(m, 33) - 16);
    int64_t value = chance(m, 70) ? below(m, 20) : (int64_t)next(&m->state);
    int unused = 64 - 8 * (int)kind_bytes(t.k);
    value = kind_is_signed(t.k) ? (int64_t)((uint64_t)value << unused) >> unused
                                : (int64_t)((uint64_t)value << unused >> unused);
    return literal(m, t, value);
}

/* Masks and shifts that keep an operation defined. */
static void guard_operands(maker *m, op o, type t, node **a) {
    int bits = 8 * (int)kind_bytes(t.k);
    bool is_signed = kind_is_signed(t.k), is_small = t.n == 1 && bits < 32;
    type one = scalar(t.k);
    int down = 0;
    switch (grammar[o].guard) {
    case HALVED: down = is_signed && !is_small; break;
    case ROOTED: down = is_signed && !is_small ? bits / 2 : is_small && t.k == U16; break;
    case DIVIDED:
        a[1] = make(m, OP_OR, a[1]->t, a[1], literal(m, one, 1), NULL);
        if (is_signed)
            a[0] = make(m, OP_SHR, t, a[0], literal(m, one, 1), NULL);
        return;
    case COUNTED: a[1] = make(m, OP_AND, a[1]->t, a[1], literal(m, one, bits - 1), NULL); return;
    case LOW24: down = 8 + 4 * is_signed; break; /* signed: products stay below 2^31 */
    case FIELD: {
        int i = o == OP_EXTRACT ? 1 : 2, half = bits / 2;
        for (int j = i; j < i + 2; j++)
            a[j] = make(m, OP_AND, scalar(U32), expression(m, scalar(U32), 0),
                        literal(m, scalar(U32), half - 1), NULL);
        return;
    }
    case BOUNDED: {
        int low = below(m, 8);
        a[1] = literal(m, t, low);
        a[2] = literal(m, t, low + below(m, 9));
        return;
    }
    case QUARTERS: a[2] = literal(m, t, below(m, 5)); return;
    case SCALED: a[1] = literal(m, scalar(I32), below(m, 5) - 2); return;
    default: return;
    }
    for (int i = 0; i < grammar[o].arity && down && !kind_is_real(t.k); i++)
        if (o != OP_MAD24 || i < 2)
            a[i] = make(m, OP_SHR, a[i]->t, a[i], literal(m, one, down), NULL);
        else if (is_signed)
            a[i] = make(m, OP_SHR, a[i]->t, a[i], literal(m, one, 9), NULL);
}

static node *operation(maker *m, type t, int depth) {
    op o = choose(m, INFIX, CALL, t, false);
    node *a[4] = {NULL};
    if (o == OP_NONE)
        return leaf(m, t);
    for (int i = 0; i < grammar[o].arity; i++) {
        bool beside = i == 1 && t.n > 1 && grammar[o].form == INFIX && chance(m, 25);
        a[i] = expression(m, beside ? scalar(t.k) : t, depth - 1);
    }
    guard_operands(m, o, t, a);
    node *n = combine(m, o, t, a[0], a[1], a[2]);
    n->a[3] = a[3];
    return n;
}

static node *lanes(maker *m, type t, int depth) {
    bool whole = m->is_uniform && m->p->world->is_whole;
    op o = choose(m, LANES, LANES, t, whole);
    if (o == OP_NONE || !(m->is_uniform || program_diverges) || kind_bytes(t.k) == 8)
        return leaf(m, t);
    node *b = o == OP_SHUFFLE ? expression(m, scalar(U32), depth - 1)
              : o == OP_FILL_UP || o == OP_FILL_DOWN ? expression(m, t, depth - 1)
                                                     : NULL;
    node *n = combine(m, o, t, expression(m, t, depth - 1), b, NULL);
    n->group = chance(m, 30) ? 4 : 32;
    n->value = below(m, n->group);
    return n;
}

static node *condition(maker *m, int depth) {
    type b = {BOOL, 1}, t = any_type(m);
    int what = below(m, 100);
    if (t.k == BF16)
        t.k = F32;
    if (what < 8)
        return leaf(m, b);
    if (what < 16 && depth > 0)
        return make(m, OP_NO, b, condition(m, depth - 1), NULL, NULL);
    if (what < 34 && depth > 0) {
        node *first = condition(m, depth - 1);
        bool was = m->is_uniform;
        m->is_uniform = false;
        node *second = condition(m, depth - 1);
        m->is_uniform = was;
        return make(m, what < 25 ? OP_BOTH : OP_EITHER, b, first, second, NULL);
    }
    if (what < 50 && depth > 0 && (m->is_uniform || program_diverges)) {
        node *n = make(m, choose(m, VOTE, VOTE, b, false), b, NULL, NULL, NULL);
        n->a[0] = grammar[n->op].arity ? condition(m, depth - 1) : NULL;
        n->group = chance(m, 30) ? 4 : 32;
        return n;
    }
    if (t.n > 1 && chance(m, 70))
        t.n = 1;
    type result = {BOOL, t.n};
    node *n = make(m, choose(m, COMPARE, COMPARE, t, false), result, expression(m, t, depth - 1),
                   expression(m, t, depth - 1), NULL);
    return t.n == 1 ? n : make(m, chance(m, 50) ? OP_ANY : OP_ALL, b, n, NULL, NULL);
}

/* From another kind, whole numbers for floats. */
static node *convert(maker *m, type t, int depth) {
    type from = any_type(m);
    from.n = t.n;
    if ((t.k == F16 && from.k == BF16) || (t.k == BF16 && from.k == F16))
        from.k = F32; /* half and bfloat do not convert to each other */
    if (kind_is_real(t.k)) {
        if (kind_is_real(from.k)) {
            node *a = expression(m, from, depth - 1);
            if (!holds(t.k, a->lo, a->hi))
                a = settle(m, a);
            node *n = make(m, OP_CONVERT, t, a, NULL, NULL);
            n->lo = a->lo, n->hi = a->hi;
            return n;
        }
        node *a = make(m, OP_AND, from, expression(m, from, depth - 1),
                       literal(m, scalar(from.k), 15), NULL);
        node *n = make(m, OP_CONVERT, t, a, NULL, NULL);
        n->lo = 0, n->hi = 4;
        return n;
    }
    if (kind_is_real(from.k)) {
        node *a = expression(m, from, depth - 1);
        if (!kind_is_signed(t.k) || a->hi > 8 * (int)kind_bytes(t.k) - 1)
            a = settle(m, a);
        return make(m, OP_CONVERT, t, a, NULL, NULL);
    }
    return make(m, OP_CONVERT, t, expression(m, from, depth - 1), NULL, NULL);
}

static node *reinterpret(maker *m, type t, int depth) {
    static const kind unsigned_of[] = {U8, U16, U32, U64};
    int bytes = (int)kind_bytes(t.k) * t.n;
    for (int i = 0; i < 8 && !kind_is_real(t.k) && t.n != 3; i++) {
        kind k = unsigned_of[below(m, 4)];
        int n = bytes / (int)kind_bytes(k);
        if (n >= 1 && n <= 4 && n != 3 && n * (int)kind_bytes(k) == bytes) {
            k = chance(m, 40) ? k - 1 : k;
            return make(m, OP_REINTERPRET, t, expression(m, (type){k, n}, depth - 1), NULL, NULL);
        }
    }
    return leaf(m, t);
}

static node *vector_part(maker *m, type t, int depth) {
    type from = {t.k, 2 + below(m, 3)};
    node *n;
    if (t.n == 1 && from.n != 3 && chance(m, 30)) {
        node *index = make(m, OP_AND, scalar(U32), expression(m, scalar(U32), 0),
                           literal(m, scalar(U32), from.n - 1), NULL);
        n = make(m, OP_ELEMENT, t, expression(m, from, depth - 1), index, NULL);
    } else {
        n = make(m, OP_SWIZZLE, t, expression(m, from, depth - 1), NULL, NULL);
        const char *names = chance(m, 80) ? "xyzw" : "rgba";
        for (int i = 0; i < t.n; i++)
            n->part[i] = names[below(m, from.n)];
    }
    n->lo = n->a[0]->lo, n->hi = n->a[0]->hi;
    return n;
}

static node *join(maker *m, type t, int depth) {
    node *n = make(m, OP_JOIN, t, NULL, NULL, NULL);
    bool splat = chance(m, 20);
    n->lo = 99, n->hi = -99;
    for (int i = 0, left = t.n; left > 0; i++) {
        int width = splat ? 1 : 1 + below(m, left > 3 || i == 0 ? (left > 3 ? 3 : left - 1) : left);
        node *a = expression(m, (type){t.k, width}, depth - 1);
        n->a[i] = a;
        n->lo = a->lo < n->lo ? a->lo : n->lo;
        n->hi = most(n->hi, a->hi);
        left -= splat ? left : width;
    }
    if (kind_is_real(t.k) && !holds(t.k, n->lo, n->hi)) {
        for (int i = 0; i < 4 && n->a[i]; i++)
            n->a[i] = settle(m, n->a[i]);
        n->lo = 0, n->hi = 4;
    }
    return n;
}

static node *either(maker *m, type t, int depth) {
    bool was = m->is_uniform, selects = chance(m, 40);
    if (selects && t.k != BF16) {
        node *b = expression(m, t, depth - 1), *a = expression(m, t, depth - 1);
        type how = {BOOL, t.n};
        type of = {t.n == 1 ? U32 : t.k == BF16 ? F32 : t.k, t.n};
        node *c = make(m, choose(m, COMPARE, COMPARE, of, false), how, expression(m, of, depth - 1),
                       expression(m, of, depth - 1), NULL);
        return combine(m, OP_SELECT, t, b, a, c);
    }
    node *c = condition(m, depth - 1);
    m->is_uniform = false;
    node *a = expression(m, t, depth - 1), *b = expression(m, t, depth - 1);
    m->is_uniform = was;
    node *n = make(m, OP_CHOOSE, t, c, a, b);
    n->lo = a->lo < b->lo ? a->lo : b->lo;
    n->hi = most(a->hi, b->hi);
    if (kind_is_real(t.k) && !holds(t.k, n->lo, n->hi)) {
        n->a[1] = settle(m, a), n->a[2] = settle(m, b);
        n->lo = 0, n->hi = 4;
    }
    return n;
}

static node *call(maker *m, type t, int depth) {
    function *found[8];
    int count = 0;
    for (function *f = m->p->functions; f && f != m->f; f = f->next)
        if (type_is(f->t, t) && count < 8)
            found[count++] = f;
    if (count == 0)
        return leaf(m, t);
    function *f = found[below(m, count)];
    node *n = make(m, OP_CALL_OF, t, NULL, NULL, NULL);
    n->f = f;
    get_range(t.k, &n->lo, &n->hi);
    for (int i = 0; i < f->parameters; i++)
        n->a[i] = fit(m, expression(m, f->parameter[i]->r.field[0].t, depth - 1));
    return n;
}

static node *expression(maker *m, type t, int depth) {
    int what = below(m, 100);
    if (t.k == BOOL && t.n == 1)
        return condition(m, depth);
    if (depth <= 0 || what < 8)
        return leaf(m, t);
    if (what < 50)
        return operation(m, t, depth);
    if (what < 62)
        return lanes(m, t, depth);
    if (what < 70)
        return convert(m, t, depth);
    if (what < 76)
        return t.n > 1 ? join(m, t, depth) : vector_part(m, t, depth);
    if (what < 82)
        return vector_part(m, t, depth);
    if (what < 90)
        return either(m, t, depth);
    if (what < 94)
        return call(m, t, depth);
    if (what < 96 && t.k == F32 && t.n == 1) {
        type from = {F32, 2 + below(m, 3)};
        return combine(m, OP_DOT, t, expression(m, from, depth - 1), expression(m, from, depth - 1),
                       NULL);
    }
    if (what < 98 && t.k == U32 && t.n == 1 && (m->is_uniform || program_diverges)) {
        node *n = make(m, chance(m, 50) ? OP_BALLOT : OP_ACTIVE, t, NULL, NULL, NULL);
        n->a[0] = n->op == OP_BALLOT ? condition(m, depth - 1) : NULL;
        n->group = chance(m, 30) ? 4 : 32;
        return n;
    }
    return reinterpret(m, t, depth);
}

/* -------------------------------------------------------------------------------------- statements */
static variable *declare(maker *m, space where, type t, int count) {
    program *p = m->p;
    variable *v = take(p, sizeof *v);
    *v = (variable){.id = p->variable_count, .where = where};
    v->r.field[0] = (field){.t = t, .count = count};
    assert(p->variable_count < 96);
    p->variables[p->variable_count++] = v;
    return v;
}

static void place(maker *m, variable *v) {
    int *frame = &m->f->frame;
    if (v->r.fields == 0) {
        v->r.align = v->r.field[0].packed ? (int)kind_bytes(v->r.field[0].t.k)
                                          : element_bytes(&v->r.field[0]);
        v->r.bytes = element_bytes(&v->r.field[0]) * most(v->r.field[0].count, 1);
    }
    if (v->where == IN_THREAD) {
        v->at = (*frame + 15) / 16 * 16;
        *frame = v->at + (v->target ? 4 : v->r.bytes);
    }
    m->scope[m->scopes++] = v;
}

static bool has_room(const maker *m) {
    return m->p->variable_count < 80 && m->scopes < 80;
}

static node *assign(maker *m, node *to, node *value) {
    return make(m, OP_ASSIGN, to->t, to, fit(m, value), NULL);
}

static node *declare_plain(maker *m) {
    type t = any_type(m);
    if (chance(m, 8))
        t = (type){BOOL, 1};
    node *value = fit(m, expression(m, t, 3));
    node *n = make(m, OP_DECLARE, t, value, NULL, NULL);
    n->v = declare(m, IN_THREAD, t, 0);
    place(m, n->v);
    return n;
}

static node *append(node *list, node *more) {
    if (!list)
        return more;
    node *end = list;
    while (end->next)
        end = end->next;
    end->next = more;
    return list;
}

static void lay_out(record *r) {
    int at = 0;
    r->align = 1;
    r->bytes = 0;
    for (int i = 0; i < r->fields; i++) {
        field *f = &r->field[i];
        int align = f->packed ? (int)kind_bytes(f->t.k) : element_bytes(f);
        f->at = r->is_union ? 0 : (at + align - 1) / align * align;
        at = f->at + element_bytes(f) * most(f->count, 1);
        r->align = most(r->align, align);
        r->bytes = most(r->bytes, at);
    }
    r->bytes = (r->bytes + r->align - 1) / r->align * r->align;
}

static void fill_record(maker *m, record *r) {
    static const type views[] = {{U32, 2}, {U64, 1}, {U16, 4}, {I32, 1}, {U8, 4}, {I16, 2}};
    r->is_union = chance(m, 30);
    r->fields = 2 + below(m, 3);
    for (int i = 0; i < r->fields; i++) {
        field *f = &r->field[i];
        *f = (field){.t = any_type(m)};
        if (r->is_union) {
            f->t = views[i == 0 ? below(m, 3) : below(m, 6)];
        } else {
            f->packed = f->t.n > 1 && kind_bytes(f->t.k) < 8 && f->t.k != BF16 && chance(m, 40);
            f->count = element_bytes(f) <= 4 && chance(m, 30) ? 4 : 0;
        }
    }
    lay_out(r);
}

/* A record, an array or a pointer into one; all of it is written first. */
static node *declare_object(maker *m) {
    type t = any_type(m);
    variable *v = declare(m, m->f->t.n == 0 && chance(m, 30) ? IN_OWN : IN_THREAD, t, 0);
    if (chance(m, 60))
        fill_record(m, &v->r);
    else
        v->r.field[0].count = 4 << below(m, 2);
    int bytes = v->r.fields ? v->r.bytes : element_bytes(&v->r.field[0]) * v->r.field[0].count;
    v->at = (m->own + 15) / 16 * 16;
    if (v->at + bytes > OWN_BYTES)
        v->where = IN_THREAD;
    else if (v->where == IN_OWN)
        m->own = v->at + bytes;
    node *n = make(m, OP_DECLARE, t, NULL, NULL, NULL), *list = n;
    n->v = v;
    int filled = v->r.is_union ? 1 : most(v->r.fields, 1);
    for (int f = 0; f < filled; f++)
        for (int i = 0; i < most(v->r.field[f].count, 1); i++) {
            node *to = make(m, OP_LOAD, v->r.field[f].t, NULL, NULL, NULL);
            to->v = v;
            to->field = f;
            to->a[0] = v->r.field[f].count ? literal(m, scalar(U32), i) : NULL;
            list = append(list, assign(m, to, expression(m, to->t, i == 0 ? 2 : 1)));
        }
    place(m, v);
    return list;
}

static node *declare_pointer(maker *m) {
    for (int i = m->scopes - 1; i >= 0; i--) {
        const variable *target = m->scope[i];
        if (target->r.fields || target->target || target->r.field[0].count < 4)
            continue;
        variable *v = declare(m, IN_THREAD, target->r.field[0].t, target->r.field[0].count);
        v->target = target;
        v->r = target->r;
        node *offset = make(m, OP_AND, scalar(U32), expression(m, scalar(U32), 1),
                            literal(m, scalar(U32), target->r.field[0].count / 2 - 1), NULL);
        node *n = make(m, OP_DECLARE, scalar(U32), offset, NULL, NULL);
        n->v = v;
        place(m, v);
        return n;
    }
    return declare_object(m);
}

static node *assignment(maker *m) {
    for (int tries = 0; tries < 8; tries++) {
        type t = any_type(m);
        node *to = find_place(m, t, true);
        if (!to)
            continue;
        const field *f = &(to->v->target ? to->v->target : to->v)->r.field[to->field];
        if (t.n > 1 && !f->packed && chance(m, 30)) {
            int count = 1 + below(m, t.n), from = below(m, t.n);
            for (int i = 0; i < count; i++)
                to->part[i] = "xyzw"[(from + i * (t.n == 3 ? 2 : 1)) % t.n];
            to->t.n = count;
        }
        static const op updates[] = {OP_ADD, OP_SUB, OP_XOR, OP_OR, OP_AND};
        node *n = assign(m, to, expression(m, to->t, 3));
        bool is_unsigned = !kind_is_real(t.k) && !kind_is_signed(t.k);
        if (is_unsigned && !to->part[0] && chance(m, 30))
            n->value = updates[below(m, 5)];
        return n;
    }
    return declare_plain(m);
}

static node *block(maker *m, int count);

static node *leave(maker *m, op o) {
    node *n = make(m, OP_IF, scalar(BOOL), condition(m, 2), NULL, NULL);
    n->body = make(m, o, m->f->t, NULL, NULL, NULL);
    if (o == OP_RETURN && m->f->t.n)
        n->body->a[0] = fit(m, expression(m, m->f->t, 2));
    return n;
}

static node *loop(maker *m) {
    bool uniform = m->is_uniform && chance(m, 50);
    node *bound = uniform ? literal(m, scalar(U32), 1 + below(m, 3))
                          : make(m, OP_AND, scalar(U32), expression(m, scalar(U32), 2),
                                 literal(m, scalar(U32), 3), NULL);
    node *n = make(m, OP_LOOP, scalar(U32), bound, NULL, NULL);
    int scopes = m->scopes, loops = m->loops;
    bool was = m->is_uniform, may_return = m->may_return;
    n->value = below(m, 3);
    n->v = declare(m, IN_THREAD, scalar(U32), 0);
    n->v->is_fixed = true;
    place(m, n->v);
    m->is_uniform = uniform;
    m->loops = uniform ? 0 : loops + 1;
    m->may_return = may_return && !uniform;
    n->body = block(m, 1 + below(m, 3));
    m->loops = loops;
    m->may_return = may_return;
    m->is_uniform = was && !m->has_returned;
    m->scopes = scopes;
    return n;
}

static node *branch(maker *m) {
    node *n = make(m, OP_IF, scalar(BOOL), condition(m, 2), NULL, NULL);
    bool was = m->is_uniform;
    m->is_uniform = false;
    n->body = block(m, 1 + below(m, 3));
    n->other = chance(m, 50) ? block(m, 1 + below(m, 2)) : NULL;
    m->is_uniform = was && !m->has_returned;
    return n;
}

static node *cases(maker *m) {
    node *on = make(m, OP_AND, scalar(U32), expression(m, scalar(U32), 2),
                    literal(m, scalar(U32), 3), NULL);
    node *n = make(m, OP_SWITCH, scalar(U32), on, NULL, NULL), **end = &n->body;
    bool was = m->is_uniform;
    int count = 2 + below(m, 3), other = below(m, count + 2);
    m->is_uniform = false;
    for (int i = 0; i < count; i++) {
        *end = make(m, OP_CASE, scalar(U32), NULL, NULL, NULL);
        (*end)->value = i == other ? -1 : i;
        (*end)->body = block(m, 1 + below(m, 2));
        if (chance(m, 65))
            (*end)->body = append((*end)->body, make(m, OP_BREAK, scalar(U32), NULL, NULL, NULL));
        end = &(*end)->next;
    }
    m->is_uniform = was && !m->has_returned;
    return n;
}

static node *put(maker *m, node *value) {
    node *n = make(m, OP_PUT, value->t, value, NULL, NULL);
    n->value = m->p->outs++;
    return n;
}

static node *through_memory(maker *m) {
    type t = any_type(m), word = scalar(U32);
    int what = below(m, 10);
    op o = what < 7 ? OP_EXCHANGE : what == 7 && m->p->world->is_whole ? OP_MULTIPLY : OP_TALLY;
    if (o != OP_EXCHANGE)
        t = scalar(o == OP_TALLY ? U32 : F32);
    if (kind_bytes(t.k) == 8 && t.n > 2)
        t.n = 2;
    node *value = o == OP_MULTIPLY ? NULL : fit(m, expression(m, t, 2));
    node *n = make(m, o, t, value, expression(m, word, 2), NULL);
    n->value = o == OP_EXCHANGE ? m->p->world->is_whole && chance(m, 25) : below(m, 64);
    n->v = declare(m, IN_THREAD, t, 0);
    place(m, n->v);
    return n;
}

static node *statement(maker *m) {
    int what = below(m, 100);
    bool nests = m->depth < 3 && m->left > 1;
    m->left--;
    if (!has_room(m) || m->left < -20)
        return assignment(m);
    if (what < 16)
        return declare_plain(m);
    if (what < 24)
        return declare_object(m);
    if (what < 27)
        return declare_pointer(m);
    if (what < 40 && nests)
        return branch(m);
    if (what < 50 && nests)
        return loop(m);
    if (what < 56 && nests)
        return cases(m);
    if (what < 66 && m->is_uniform)
        return through_memory(m);
    if (what < 71 && m->f->t.n == 0) {
        node *n = make(m, OP_ATOMIC, scalar(U32), expression(m, scalar(U32), 2), NULL, NULL);
        n->value = below(m, COUNTERS);
        return n;
    }
    if (what < 75 && m->f->t.n == 0 && m->p->outs < OUT_WORDS - 8)
        return put(m, fit(m, expression(m, any_type(m), 3)));
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
    for (int i = 0; i < count; i++)
        list = append(list, statement(m));
    m->depth--;
    m->scopes = scopes;
    return list;
}

/* --------------------------------------------------------------------------------------- functions */
static void helper(maker *m, int id) {
    function *f = take(m->p, sizeof *f), **end = &m->p->functions;
    *f = (function){.id = id, .t = any_type(m), .parameters = 1 + below(m, 3)};
    m->f = f;
    m->scopes = 0;
    m->is_uniform = false;
    m->may_return = true;
    m->left = 1 + below(m, 3);
    for (int i = 0; i < f->parameters; i++) {
        f->parameter[i] = declare(m, IN_THREAD, i == 0 ? f->t : any_type(m), 0);
        f->parameter[i]->is_fixed = true;
        place(m, f->parameter[i]);
    }
    m->depth = 1;
    while (m->left > 0)
        f->body = append(f->body, statement(m));
    node *n = make(m, OP_RETURN, f->t, fit(m, expression(m, f->t, 3)), NULL, NULL);
    f->body = append(f->body, n);
    while (*end)
        end = &(*end)->next;
    *end = f;
    m->depth = 0;
}

static variable *view(maker *m, space where) {
    static const kind whole[] = {U32, I32, U16, I16, U8, I8, U64, I64};
    type t = {where == IN_INPUT && chance(m, 40) ? F32 : whole[below(m, 8)], 1 + below(m, 4)};
    variable *v = declare(m, where, t, 0);
    field *f = &v->r.field[0];
    f->packed = t.n > 1 && kind_bytes(t.k) < 8 && chance(m, 40) && where != IN_TABLE;
    f->count = where == IN_TABLE ? 8 : 16;
    if (where == IN_TABLE)
        f->t.n = 1, v->at = below(m, 200);
    place(m, v);
    return v;
}

program *program_make(world *w, int index, int plant) {
    program *p = calloc(1, sizeof *p);
    maker *m = calloc(1, sizeof *m);
    assert(p && m);
    p->arena = calloc(1, ARENA_BYTES);
    assert(p->arena);
    *(size_t *)p->arena = 16;
    p->index = index;
    p->world = w;
    p->plant = plant;
    m->p = p;
    m->state = w->seed * 1000003u + (uint64_t)index;
    for (int i = below(m, 5) / 2; i > 0; i--)
        helper(m, 10 * index + i);
    function *f = p->main = take(p, sizeof *f);
    *f = (function){.t = {U32, 0}};
    m->f = f;
    m->scopes = 0;
    m->is_uniform = m->may_return = true;
    m->has_returned = false;
    for (space s = IN_INPUT; s <= IN_TABLE; s++)
        view(m, s);
    m->left = 3 + below(m, 6);
    node *list = append(declare_plain(m), declare_plain(m));
    while (m->left > 0)
        list = append(list, statement(m));
    for (int i = 0; i < m->scopes && p->outs < OUT_WORDS; i++)
        for (int k = 0; k < most(m->scope[i]->r.fields, 1) && p->outs < OUT_WORDS; k++)
            if (m->scope[i]->where == IN_THREAD || m->scope[i]->where == IN_OWN)
                list = append(list, put(m, load(m, m->scope[i], k)));
    f->body = list;
    free(m);
    return p;
}

void program_free(program *p) {
    if (p)
        free(p->arena);
    free(p);
}

/* ------------------------------------------------------------------------------------------- print */
static void say(printer *out, const char *format, ...) {
    va_list list;
    if (out->count + 4096 > out->capacity) {
        out->capacity = 2 * out->capacity + 65536;
        out->text = realloc(out->text, out->capacity);
        assert(out->text);
    }
    va_start(list, format);
    char *at = out->text + out->count;
    int length = vsnprintf(at, 4096, format, list);
    va_end(list);
    assert(length >= 0 && length < 4096);
    out->count += (size_t)length;
    for (; *at; at++)
        out->line += *at == '\n';
}

static const char *name_type(type t, bool packed) {
    static const char *const names[KINDS] = {"bool", "char", "uchar", "short", "ushort", "int",
                                             "uint", "long", "ulong", "half",  "bfloat", "float"};
    static char text[8][24];
    static int at;
    char *s = text[at++ % 8];
    if (t.n > 1)
        snprintf(s, 24, "%s%s%d", packed ? "packed_" : "", names[t.k], t.n);
    else
        snprintf(s, 24, "%s", names[t.k]);
    return s;
}

static void print_literal(printer *out, const node *n) {
    switch (n->t.k) {
    case BOOL: say(out, n->value ? "true" : "false"); break;
    case F16: say(out, "half(%.2f)", (double)n->value / 4); break;
    case BF16: say(out, "bfloat(%.2f)", (double)n->value / 4); break;
    case F32: say(out, "float(%.2f)", (double)n->value / 4); break;
    case U32: say(out, "%uu", (unsigned)n->value); break;
    case U64:
    case I64: say(out, "%s(%lluul)", name_type(n->t, false), (unsigned long long)n->value); break;
    default: say(out, "%s(%lld)", name_type(n->t, false), (long long)n->value);
    }
}

static void print_expression(printer *out, const node *n);

static void print_list(printer *out, node *const *a, int count) {
    for (int i = 0; i < count && a[i]; i++) {
        say(out, i ? ", " : "");
        print_expression(out, a[i]);
    }
}

static void print_place(printer *out, const node *n) {
    const variable *v = n->v, *target = v->target ? v->target : v;
    say(out, "v%d", v->id);
    if (target->r.fields)
        say(out, target->where == IN_OWN ? "->m%d" : ".m%d", n->field);
    if (n->a[0]) {
        say(out, "[");
        print_expression(out, n->a[0]);
        say(out, "]");
    }
    if (n->part[0])
        say(out, ".%s", n->part);
}

static void print_lanes(printer *out, const node *n) {
    const char *prefix = n->group == 4 ? "quad" : "simd";
    if (n->op == OP_BALLOT || n->op == OP_ACTIVE)
        say(out, "uint(%s_vote::vote_t(", prefix);
    say(out, "%s_%s(", prefix, grammar[n->op].text);
    if (n->a[0])
        print_expression(out, n->a[0]);
    if (n->op == OP_SHUFFLE) {
        say(out, ", pick%d(", n->group);
        print_expression(out, n->a[1]);
        say(out, ", at.lane)");
    } else if (n->op == OP_BROADCAST) {
        say(out, ", first%d()", n->group);
    } else if (n->a[1]) {
        say(out, ", ");
        print_expression(out, n->a[1]);
    }
    if (grammar[n->op].guard == WHOLE)
        say(out, ", ushort(%d)", (int)n->value);
    say(out, n->op == OP_BALLOT || n->op == OP_ACTIVE ? ")))" : ")");
}

static void print_other(printer *out, const node *n) {
    const char *name = name_type(n->t, false);
    switch (n->op) {
    case OP_LITERAL: print_literal(out, n); return;
    case OP_PLACE: say(out, "at.%s", place_names[n->value]); return;
    case OP_CONSTANT: say(out, "fc%d", (int)n->value); return;
    case OP_LOAD: {
        const variable *target = n->v->target ? n->v->target : n->v;
        bool packed = target->r.field[n->field].packed;
        say(out, packed ? "%s(" : "", name);
        print_place(out, n);
        say(out, packed ? ")" : "");
        return;
    }
    case OP_CONVERT:
    case OP_JOIN:
        say(out, "%s(", name);
        print_list(out, n->a, 4);
        break;
    case OP_REINTERPRET:
        say(out, "as_type<%s>(", name);
        print_list(out, n->a, 1);
        break;
    case OP_SWIZZLE:
        print_expression(out, n->a[0]);
        say(out, ".%s", n->part);
        return;
    case OP_ELEMENT:
        print_expression(out, n->a[0]);
        say(out, "[");
        print_expression(out, n->a[1]);
        say(out, "]");
        return;
    case OP_CHOOSE:
        say(out, "(");
        print_expression(out, n->a[0]);
        say(out, " ? ");
        print_expression(out, n->a[1]);
        say(out, " : ");
        print_expression(out, n->a[2]);
        break;
    default: /* OP_CALL_OF */
        say(out, "f%d(at, ", n->f->id);
        print_list(out, n->a, 3);
    }
    say(out, ")");
}

static void print_expression(printer *out, const node *n) {
    const rule *r = &grammar[n->op];
    /* Scalars that are smaller than int are promoted; the tree has them as what they were. */
    bool narrow = n->t.n == 1 && (kind_bytes(n->t.k) < 4) && n->t.k != BOOL;
    switch (r->form) {
    case INFIX:
    case COMPARE:
        say(out, narrow ? "%s(" : "(", name_type(n->t, false));
        print_expression(out, n->a[0]);
        say(out, " %s ", r->text);
        print_expression(out, n->a[1]);
        say(out, ")");
        return;
    case PREFIX:
        say(out, narrow ? "%s(%s" : "(%.0s%s", name_type(n->t, false), r->text);
        print_expression(out, n->a[0]);
        say(out, ")");
        return;
    case CALL:
        say(out, "%s(", r->text);
        print_list(out, n->a, r->arity);
        say(out, ")");
        return;
    case LANES:
    case VOTE: print_lanes(out, n); return;
    default: print_other(out, n);
    }
}

static void indent(printer *out, int depth) {
    say(out, "%*s", 4 * depth, "");
}

static const char *const spaces[] = {"thread", "device const", "constant", "constant", "device"};

static void print_declaration(printer *out, const program *p, const node *n) {
    const variable *v = n->v;
    const field *f = &v->r.field[0];
    char what[40];
    if (v->r.fields)
        snprintf(what, sizeof what, "S%d_%d", p->index, v->id);
    else
        snprintf(what, sizeof what, "%s", name_type(f->t, f->packed));
    if (v->target) {
        say(out, "%s %s *v%d = v%d + ", spaces[v->target->where], what, v->id, v->target->id);
        print_expression(out, n->a[0]);
    } else if (v->where == IN_OWN) {
        say(out, "device %s *v%d = (device %s *)(own + %d)", what, v->id, what, v->at / 4);
    } else {
        say(out, "%s v%d", what, v->id);
        if (f->count && !v->r.fields)
            say(out, "[%d]", f->count);
        if (n->a[0]) {
            say(out, " = ");
            print_expression(out, n->a[0]);
        }
    }
    say(out, ";\n");
}

static const char barrier[] = "threadgroup_barrier(mem_flags::mem_threadgroup);\n";

static void print_memory(printer *out, const node *n, int depth) {
    char name[24];
    snprintf(name, sizeof name, "%s", n->op == OP_TALLY ? "atomic_uint" : name_type(n->t, false));
    static const char *const tallies[] = {"add", "xor", "max", "or"};
    int id = n->v->id;
    say(out, "threadgroup %s *s%d = (threadgroup %s *)tg;\n", name, id, name);
    indent(out, depth);
    if (n->op == OP_EXCHANGE) {
        say(out, "s%d[at.tid] = ", id);
        print_expression(out, n->a[0]);
        say(out, ";\n%*s%s%*s%s v%d = s%d[", 4 * depth, "",
            n->value ? "simdgroup_barrier(mem_flags::mem_threadgroup);\n" : barrier, 4 * depth, "",
            name, id, id);
        say(out, n->value ? "(at.tid & ~31u) + ((" : "(");
        print_expression(out, n->a[1]);
        say(out, n->value ? ") & 31u)];\n" : ") %% at.size];\n");
    } else if (n->op == OP_TALLY) {
        say(out, "if (at.tid == 0)\n%*satomic_store_explicit(s%d, 5u, memory_order_relaxed);\n",
            4 * depth + 4, "", id);
        say(out, "%*s%s%*satomic_fetch_%s_explicit(s%d, ", 4 * depth, "", barrier, 4 * depth, "",
            tallies[n->value % 4], id);
        print_expression(out, n->a[0]);
        say(out, ", memory_order_relaxed);\n%*s%s%*s", 4 * depth, "", barrier, 4 * depth, "");
        say(out, "uint v%d = atomic_load_explicit(s%d, memory_order_relaxed);\n", id, id);
    } else {
        int where = (int)n->value;
        say(out, "simdgroup_float8x8 a%d, b%d, c%d;\n%*s", id, id, id, 4 * depth, "");
        say(out, "simdgroup_load(a%d, reals + %d, 8, ulong2(0), %s);\n%*s", id, where,
            where & 1 ? "true" : "false", 4 * depth, "");
        say(out, "simdgroup_load(b%d, reals, 9, ulong2(%d, %d), %s);\n%*s", id, where % 3,
            where % 5, where & 2 ? "true" : "false", 4 * depth, "");
        say(out, "c%d = make_filled_simdgroup_matrix<float, 8, 8>(%d.5f);\n%*s", id, where % 7,
            4 * depth, "");
        say(out, "simdgroup_multiply_accumulate(c%d, a%d, b%d, c%d);\n%*s", id, id, id, id,
            4 * depth, "");
        say(out, "simdgroup_store(c%d, s%d + at.sg * 64, 8, ulong2(0), %s);\n%*s%s%*s", id, id,
            where & 4 ? "true" : "false", 4 * depth, "", barrier, 4 * depth, "");
        say(out, "float v%d = float(int(s%d[at.sg * 64 + ((", id, id);
        print_expression(out, n->a[1]);
        say(out, ") & 63u)] * 16.0f) & 1023);\n");
    }
    indent(out, depth);
    say(out, barrier);
}

static void print_block(printer *out, const program *p, node *list, int depth);

static void print_loop(printer *out, const program *p, node *n, int depth) {
    int id = n->v->id;
    if (n->value == 0) {
        say(out, "for (uint v%d = 0; v%d < ", id, id);
        print_expression(out, n->a[0]);
        say(out, "; v%d++) {\n", id);
    } else {
        say(out, "uint v%d = ", id);
        print_expression(out, n->a[0]);
        say(out, ";\n%*s", 4 * depth, "");
        say(out, n->value == 1 ? "while (v%d > 0) {\n%*sv%d--;\n" : "do {\n", id, 4 * depth + 4, "",
            id);
    }
    print_block(out, p, n->body, depth + 1);
    indent(out, depth);
    say(out, n->value == 2 ? "} while (v%d-- > 0);\n" : "}\n", id);
}

static void print_statement(printer *out, const program *p, node *n, int depth) {
    static const char *const counters[COUNTERS] = {"add", "sub", "or",  "and",
                                                   "xor", "min", "max", "max"};
    if (n->op != OP_CASE)
        indent(out, depth);
    n->line = out->line + 1;
    switch (n->op) {
    case OP_DECLARE: print_declaration(out, p, n); return;
    case OP_ASSIGN:
        print_place(out, n->a[0]);
        say(out, " %s= ", n->value ? grammar[n->value].text : "");
        print_expression(out, n->a[1]);
        break;
    case OP_IF:
        say(out, "if (");
        print_expression(out, n->a[0]);
        say(out, ") {\n");
        print_block(out, p, n->body, depth + 1);
        indent(out, depth);
        if (n->other) {
            say(out, "} else {\n");
            print_block(out, p, n->other, depth + 1);
            indent(out, depth);
        }
        say(out, "}\n");
        return;
    case OP_LOOP: print_loop(out, p, n, depth); return;
    case OP_SWITCH:
        say(out, "switch (");
        print_expression(out, n->a[0]);
        say(out, ") {\n");
        print_block(out, p, n->body, depth);
        indent(out, depth);
        say(out, "}\n");
        return;
    case OP_CASE:
        indent(out, depth);
        say(out, n->value < 0 ? "default: {\n" : "case %d: {\n", (int)n->value);
        print_block(out, p, n->body, depth + 1);
        indent(out, depth);
        say(out, "}\n");
        return;
    case OP_BREAK: say(out, "break"); break;
    case OP_CONTINUE: say(out, "continue"); break;
    case OP_RETURN:
        say(out, "return ");
        if (n->a[0])
            print_expression(out, n->a[0]);
        break;
    case OP_PUT:
        say(out, "out[%d] = fold(", (int)n->value);
        print_expression(out, n->a[0]);
        say(out, ")");
        break;
    case OP_ATOMIC:
        say(out, "atomic_fetch_%s_explicit(%scounts + %d, ", counters[n->value],
            n->value == 7 ? "(device atomic_int *)" : "", (int)n->value);
        print_expression(out, n->a[0]);
        say(out, ", memory_order_relaxed)");
        break;
    default: print_memory(out, n, depth); return;
    }
    say(out, ";\n");
}

static void print_block(printer *out, const program *p, node *list, int depth) {
    for (node *n = list; n; n = n->next)
        print_statement(out, p, n, depth);
}

static void print_record(printer *out, const program *p, const variable *v) {
    say(out, "%s S%d_%d {\n", v->r.is_union ? "union" : "struct", p->index, v->id);
    for (int i = 0; i < v->r.fields; i++) {
        const field *f = &v->r.field[i];
        say(out, "    %s m%d", name_type(f->t, f->packed), i);
        say(out, f->count ? "[%d];\n" : ";\n", f->count);
    }
    say(out, "};\n");
}

static void print_table(printer *out, const program *p, const variable *v) {
    const field *f = &v->r.field[0];
    say(out, "constant %s t%d_%d[%d] = {", name_type(f->t, false), p->index, v->id, f->count);
    for (int i = 0; i < f->count; i++)
        say(out, "%s%s(%uu)", i ? ", " : "", name_type(f->t, false), p->world->table[v->at + i]);
    say(out, "};\n");
}

#define ARGUMENTS                                                                                  \
    "at_t at, device const uint *words, constant uint *params, device const float *reals,\n"       \
    "    device uint *out, device atomic_uint *counts, device uint *own, threadgroup ulong *tg"

static void print_program(printer *out, program *p) {
    p->first_line = out->line + 1;
    say(out, "\n");
    for (int i = 0; i < p->variable_count; i++) {
        const variable *v = p->variables[i];
        if (v->r.fields && !v->target)
            print_record(out, p, v);
        if (v->where == IN_TABLE)
            print_table(out, p, v);
    }
    for (function *f = p->functions; f; f = f->next) {
        say(out, "static %s f%d(at_t at", name_type(f->t, false), f->id);
        for (int i = 0; i < f->parameters; i++)
            say(out, ", %s v%d", name_type(f->parameter[i]->r.field[0].t, false), f->parameter[i]->id);
        say(out, ") {\n");
        print_block(out, p, f->body, 1);
        say(out, "}\n");
    }
    say(out, "static void p%d(%s) {\n", p->index, ARGUMENTS);
    for (int i = 0; i < p->variable_count; i++) {
        const variable *v = p->variables[i];
        const char *name = name_type(v->r.field[0].t, v->r.field[0].packed);
        if (v->where == IN_TABLE)
            say(out, "    constant %s *v%d = t%d_%d;\n", name, v->id, p->index, v->id);
        else if (v->where == IN_INPUT || v->where == IN_PARAMS)
            say(out, "    %s %s *v%d = (%s %s *)%s;\n", spaces[v->where], name, v->id,
                spaces[v->where], name,
                v->where == IN_PARAMS             ? "params"
                : v->r.field[0].t.k == F32 ? "reals"
                                           : "words");
    }
    print_block(out, p, p->main->body, 1);
    say(out, "}\n");
    p->last_line = out->line;
}

static const char head[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "constant uint fc0 [[function_constant(0)]];\n"
    "constant int fc1 [[function_constant(1)]];\n"
    "constant bool fc2 [[function_constant(2)]];\n"
    "constant float fc3 [[function_constant(3)]];\n"
    "struct at_t {\n"
    "    uint lane, tid, sg, size;\n"
    "    uint3 local, group, grid, threads, groups;\n"
    "};\n"
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
    "static ushort pick32(uint want, uint lane) {\n"
    "    return ushort(active32() >> (want & 31) & 1 ? want & 31 : lane);\n"
    "}\n"
    "static ushort pick4(uint want, uint lane) {\n"
    "    return ushort(active4() >> (want & 3) & 1 ? want & 3 : lane & 3);\n"
    "}\n"
    "static ushort first32() { return ushort(ctz(active32())); }\n"
    "static ushort first4() { return ushort(ctz(active4())); }\n";

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
    "    at_t at = {lane, tid, sg, size.x * size.y * size.z, local, group, grid, threads, groups};\n"
    "    uint i = grid.x + threads.x * (grid.y + threads.y * grid.z);\n";

void program_print_file(printer *out, const world *w, program *const *programs, int count) {
    int threads = (int)(w->threads.x * w->threads.y * w->threads.z);
    say(out, "%s", head);
    for (int i = 0; i < count; i++)
        print_program(out, programs[i]);
    say(out, entry, SHARED_BYTES / 8);
    for (int i = 0; i < count; i++)
        say(out,
            "    p%d(at, words, params, reals, out + (%d + i) * %d, counts + %d,\n"
            "        own + (%d + i) * %d, tg);\n",
            programs[i]->index, i * threads, OUT_WORDS, i * COUNTERS, i * threads, OWN_BYTES / 4);
    say(out, "}\n");
}
