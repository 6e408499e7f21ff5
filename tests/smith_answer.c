/* smith_answer: what a program must write, found by walking its tree. See smith.h.
 *
 * All threads of a threadgroup go through the tree together, each statement and expression with the set
 * of threads that are there: those of a simdgroup rejoin after an if, a switch, a loop and each turn of
 * it, as Vulkan's maximal reconvergence has it. Integers are 64 bits wide, sign-extended or not as their
 * kind says; floats are doubles, exact by construction. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smith.h"

enum { FRAME_BYTES = 8192, SETS = MOST_THREADS / 32 };

typedef union {
    int64_t i;
    uint64_t u;
    double f;
} part;
typedef struct {
    part c[4];
} value;
typedef struct {
    uint32_t w[SETS]; /* a bit per lane, a word per simdgroup */
} set;

/* A threadgroup at work. */
typedef struct {
    const program *p;
    const world *w;
    int count; /* threads */
    uint32_t place[PLACES][MOST_THREADS];
    uint8_t *frame[MOST_THREADS]; /* of the function that runs */
    uint8_t own[MOST_THREADS][OWN_BYTES];
    uint32_t *out[MOST_THREADS], *counters;
    value result[MOST_THREADS]; /* of the function that runs */
} state;

typedef struct {
    set broken, continued;
} flow;

#define EACH(s, m, t)                                                                              \
    for (int t = 0; t < (s)->count; t++)                                                           \
        if (!((m)->w[t / 32] >> t % 32 & 1)) {                                                     \
        } else

static bool is_empty(const set *m) {
    return !(m->w[0] | m->w[1] | m->w[2] | m->w[3]);
}
static set join(set a, set b) {
    for (int i = 0; i < SETS; i++)
        a.w[i] |= b.w[i];
    return a;
}
static set without(set a, set b) {
    for (int i = 0; i < SETS; i++)
        a.w[i] &= ~b.w[i];
    return a;
}

/* ------------------------------------------------------------------------------------------ memory */
static part wrap(kind k, part x) {
    int unused = 64 - 8 * (int)kind_bytes(k);
    if (kind_is_real(k))
        return x;
    if (k == BOOL)
        return (part){.u = x.u != 0};
    if (kind_is_signed(k))
        return (part){.i = (int64_t)(x.u << unused) >> unused};
    return (part){.u = x.u << unused >> unused};
}

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void store_part(kind k, uint8_t *at, part x) {
    uint32_t bits = kind_is_real(k) ? float_bits((float)x.f) : 0;
    uint64_t word = x.u;
    if (k == F32)
        word = bits;
    else if (k == BF16)
        word = bits >> 16;
    else if (k == F16)
        word = x.f == 0 ? 0
                        : (bits >> 16 & 0x8000) | ((bits >> 23 & 0xFF) - 112) << 10 | (bits >> 13 & 0x3FF);
    for (size_t i = 0; i < kind_bytes(k); i++)
        at[i] = (uint8_t)(word >> 8 * i);
}

static part load_part(kind k, const uint8_t *at) {
    uint64_t word = 0;
    float x;
    for (size_t i = 0; i < kind_bytes(k); i++)
        word |= (uint64_t)at[i] << 8 * i;
    if (!kind_is_real(k))
        return wrap(k, (part){.u = word});
    if (k == F16)
        word = word ? (word & 0x8000) << 16 | ((word >> 10 & 31) + 112) << 23 | (word & 0x3FF) << 13 : 0;
    uint32_t bits = (uint32_t)(k == BF16 ? word << 16 : word);
    memcpy(&x, &bits, sizeof x);
    return (part){.f = (double)x};
}

static void evaluate(state *s, const node *n, const set *m, value *out);

static const uint8_t *table_bytes(const state *s, const variable *v, uint8_t *room) {
    const field *f = &v->r.field[0];
    for (int i = 0; i < f->count; i++)
        store_part(f->t.k, room + (size_t)i * kind_bytes(f->t.k),
                   wrap(f->t.k, (part){.u = s->w->table[v->at + i]}));
    return room;
}

/* Where the first component of a place is, for each thread. Tables are made in `room`. */
static void locate(state *s, const node *n, const set *m, uint8_t **at, uint8_t *room) {
    const variable *v = n->v, *target = v->target ? v->target : v;
    const field *f = &target->r.field[n->field];
    size_t step = kind_bytes(f->t.k) * (size_t)(f->t.n == 3 && !f->packed ? 4 : f->t.n);
    value index[MOST_THREADS];
    if (n->a[0])
        evaluate(s, n->a[0], m, index);
    EACH(s, m, t) {
        const uint8_t *base = target->where == IN_THREAD   ? s->frame[t] + target->at
                              : target->where == IN_OWN    ? s->own[t] + target->at
                              : target->where == IN_PARAMS ? (const uint8_t *)s->w->params
                              : target->where == IN_TABLE  ? table_bytes(s, target, room)
                              : f->t.k == F32              ? (const uint8_t *)s->w->reals
                                                           : (const uint8_t *)s->w->words;
        uint64_t i = n->a[0] ? index[t].c[0].u : 0;
        if (v->target)
            i += load_part(U32, s->frame[t] + v->at).u;
        at[t] = (uint8_t *)base + target->r.fields * 0 + f->at + i * step;
    }
}

static int letter(char c) {
    static const char names[] = "xyzwrgba";
    return (int)(strchr(names, c) - names) % 4;
}

static void store(state *s, const node *n, const set *m, const value *x) {
    uint8_t *at[MOST_THREADS], room[64];
    size_t bytes = kind_bytes(n->t.k);
    locate(s, n, m, at, room);
    EACH(s, m, t)
    for (int i = 0; i < n->t.n; i++)
        store_part(n->t.k, at[t] + bytes * (size_t)(n->part[0] ? letter(n->part[i]) : i), x[t].c[i]);
}

/* --------------------------------------------------------------------------------------- operations */
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static wide widen(kind k, part x) {
    return kind_is_signed(k) ? (wide)x.i : (wide)x.u;
}
static part clip(kind k, wide x) {
    int bits = 8 * (int)kind_bytes(k);
    wide high = kind_is_signed(k) ? ((wide)1 << (bits - 1)) - 1 : ((wide)1 << bits) - 1;
    wide low = kind_is_signed(k) ? -high - 1 : 0;
    return (part){.u = (uint64_t)(x < low ? low : x > high ? high : x)};
}
static bool less(kind k, part a, part b) {
    return kind_is_real(k) ? a.f < b.f : kind_is_signed(k) ? a.i < b.i : a.u < b.u;
}
static part least(kind k, part a, part b) {
    return less(k, b, a) ? b : a;
}
static part largest(kind k, part a, part b) {
    return less(k, a, b) ? b : a;
}

static double apply_real(op o, double a, double b, double c) {
    switch (o) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_NEG: return -a;
    case OP_ABS:
    case OP_FABS: return fabs(a);
    case OP_FLOOR: return floor(a);
    case OP_CEIL: return ceil(a);
    case OP_TRUNC: return trunc(a);
    case OP_ROUND: return round(a);
    case OP_RINT: return rint(a);
    case OP_FRACT: return a - floor(a);
    case OP_SIGN: return (a > 0) - (a < 0);
    case OP_SATURATE: return a < 0 ? 0 : a > 1 ? 1 : a;
    case OP_FDIM: return a > b ? a - b : 0;
    case OP_STEP: return b < a ? 0 : 1;
    case OP_FMA: return a * b + c;
    case OP_MIX: return a + (b - a) * c;
    default: abort();
    }
}

static part apply_whole(op o, kind k, part a, part b, part c, part d) {
    wide x = widen(k, a), y = widen(k, b), z = widen(k, c);
    int bits = 8 * (int)kind_bytes(k), n = 0;
    uint64_t u = a.u << (64 - bits) >> (64 - bits), r = 0;
    switch (o) {
    case OP_ADD: r = a.u + b.u; break;
    case OP_SUB: r = a.u - b.u; break;
    case OP_MUL: r = a.u * b.u; break;
    case OP_DIV: r = (uint64_t)(x / y); break;
    case OP_MOD: r = (uint64_t)(x % y); break;
    case OP_AND: r = a.u & b.u; break;
    case OP_OR: r = a.u | b.u; break;
    case OP_XOR: r = a.u ^ b.u; break;
    case OP_SHL: r = a.u << b.u; break;
    case OP_SHR: r = (uint64_t)(x >> b.u); break;
    case OP_NOT: r = ~a.u; break;
    case OP_NEG: r = -a.u; break;
    case OP_ABS: r = (uint64_t)(x < 0 ? -x : x); break;
    case OP_ABSDIFF: r = (uint64_t)(x > y ? x - y : y - x); break;
    case OP_ADDSAT: return clip(k, x + y);
    case OP_SUBSAT: return clip(k, x - y);
    case OP_HADD: r = (uint64_t)((x + y) >> 1); break;
    case OP_RHADD: r = (uint64_t)((x + y + 1) >> 1); break;
    case OP_MULHI:
    case OP_MADHI: /* of unsigned 64 bits the product needs all 128 */
        r = k == U64 ? (uint64_t)((unsigned_wide)a.u * b.u >> 64) : (uint64_t)(x * y >> bits);
        r += o == OP_MADHI ? c.u : 0;
        break;
    case OP_MADSAT:
        if (k == U64 && a.u && b.u > UINT64_MAX / a.u)
            return clip(k, (wide)UINT64_MAX);
        return clip(k, x * y + z);
    case OP_MUL24: r = a.u * b.u; break;
    case OP_MAD24: r = a.u * b.u + c.u; break;
    case OP_CLZ:
        while (n < bits && !(u >> (bits - 1 - n) & 1))
            n++;
        r = (uint64_t)n;
        break;
    case OP_CTZ:
        while (n < bits && !(u >> n & 1))
            n++;
        r = (uint64_t)n;
        break;
    case OP_POPCOUNT:
        for (; u; u &= u - 1)
            r++;
        break;
    case OP_REVERSE:
        for (; n < bits; n++)
            r |= (u >> n & 1) << (bits - 1 - n);
        break;
    case OP_ROTATE: r = b.u ? u << b.u | u >> ((uint64_t)bits - b.u) : u; break;
    case OP_EXTRACT:
        if (c.u)
            r = kind_is_signed(k) ? (uint64_t)((int64_t)(u << (64 - b.u - c.u)) >> (64 - c.u))
                                  : u << (64 - b.u - c.u) >> (64 - c.u);
        break;
    case OP_INSERT: {
        uint64_t mask = d.u ? UINT64_MAX >> (64 - d.u) << c.u : 0;
        r = (a.u & ~mask) | (b.u << c.u & mask);
        break;
    }
    default: abort();
    }
    return wrap(k, (part){.u = r});
}

static part apply(op o, kind k, const part *a) {
    switch (o) {
    case OP_MIN:
    case OP_FMIN: return least(k, a[0], a[1]);
    case OP_MAX:
    case OP_FMAX: return largest(k, a[0], a[1]);
    case OP_MIN3: return least(k, a[0], least(k, a[1], a[2]));
    case OP_MAX3: return largest(k, a[0], largest(k, a[1], a[2]));
    case OP_MEDIAN3:
        return largest(k, least(k, a[0], a[1]), least(k, largest(k, a[0], a[1]), a[2]));
    case OP_CLAMP: return least(k, largest(k, a[0], a[1]), a[2]);
    case OP_LT: return (part){.u = less(k, a[0], a[1])};
    case OP_GT: return (part){.u = less(k, a[1], a[0])};
    case OP_LE: return (part){.u = !less(k, a[1], a[0])};
    case OP_GE: return (part){.u = !less(k, a[0], a[1])};
    case OP_EQ: return (part){.u = !less(k, a[0], a[1]) && !less(k, a[1], a[0])};
    case OP_NE: return (part){.u = less(k, a[0], a[1]) || less(k, a[1], a[0])};
    case OP_SELECT: return a[2].u ? a[1] : a[0];
    case OP_NO: return (part){.u = !a[0].u};
    case OP_LDEXP: return (part){.f = ldexp(a[0].f, (int)a[1].i)};
    default:
        if (kind_is_real(k))
            return (part){.f = apply_real(o, a[0].f, a[1].f, a[2].f)};
        return apply_whole(o, k, a[0], a[1], a[2], a[3]);
    }
}

static part convert(kind from, kind to, part x) {
    if (kind_is_real(from) && kind_is_real(to))
        return x;
    if (kind_is_real(from))
        return to == BOOL ? (part){.u = x.f != 0} : wrap(to, (part){.i = (int64_t)x.f});
    if (kind_is_real(to))
        return (part){.f = kind_is_signed(from) ? (double)x.i : (double)x.u};
    return wrap(to, x);
}

/* ------------------------------------------------------------------------------------------- lanes */
/* What lane t gets: `first` is the first lane of its group, `here` has a bit for each lane of the group. */
static part exchange(const node *n, int t, int first, uint32_t here, const value *a, const value *b,
                     int c) {
    kind k = n->t.k;
    int width = n->group, lane = t - first, with = (int)n->value;
    part r = {.u = n->op == OP_PRODUCT || n->op == OP_SCAN_PRODUCT};
    bool is_scan = n->op == OP_SCAN_SUM || n->op == OP_SCAN_BEFORE || n->op == OP_SCAN_PRODUCT;
    bool any = false;
    int from = lane;
    switch (n->op) {
    case OP_FIRST:
    case OP_BROADCAST: from = __builtin_ctz(here); break;
    case OP_SHUFFLE:
        from = (int)(b[t].c[0].u % (unsigned)width);
        from = here >> from & 1 ? from : lane;
        break;
    case OP_SHUFFLE_XOR: from = lane ^ with; break;
    case OP_SHUFFLE_UP: from = lane >= with ? lane - with : lane; break;
    case OP_SHUFFLE_DOWN: from = lane + with < width ? lane + with : lane; break;
    case OP_ROTATE_UP: from = (lane - with + width) % width; break;
    case OP_ROTATE_DOWN: from = (lane + with) % width; break;
    case OP_FILL_UP:
        return lane >= with ? a[t - with].c[c] : b[first + width - with + lane].c[c];
    case OP_FILL_DOWN:
        return lane + with < width ? a[t + with].c[c] : b[first + lane + with - width].c[c];
    default: from = -1;
    }
    if (from >= 0)
        return a[first + from].c[c];
    for (int i = 0; i < width; i++) {
        if (!(here >> i & 1) || (is_scan && i > lane) || (n->op == OP_SCAN_BEFORE && i == lane))
            continue;
        part x = a[first + i].c[c];
        switch (n->op) {
        case OP_SUM:
        case OP_SCAN_SUM:
        case OP_SCAN_BEFORE:
            if (kind_is_real(k))
                r.f = (any ? r.f : 0) + x.f;
            else
                r = wrap(k, (part){.u = r.u + x.u});
            break;
        case OP_PRODUCT:
        case OP_SCAN_PRODUCT: r = wrap(k, (part){.u = r.u * x.u}); break;
        case OP_LEAST: r = any ? least(k, r, x) : x; break;
        case OP_MOST: r = any ? largest(k, r, x) : x; break;
        case OP_ALL_AND: r.u = any ? r.u & x.u : x.u; break;
        case OP_ALL_OR: r.u |= x.u; break;
        default: r.u ^= x.u;
        }
        any = true;
    }
    if (!any && kind_is_real(k))
        r.f = 0;
    return r;
}

static part vote(const node *n, int lane, uint32_t here, uint32_t yes) {
    return (part){.u = n->op == OP_ANY_LANE    ? yes != 0
                       : n->op == OP_ALL_LANES ? yes == here
                       : n->op == OP_IS_FIRST  ? __builtin_ctz(here) == lane
                       : n->op == OP_BALLOT    ? yes
                                               : here};
}

static void meet(state *s, const node *n, const set *m, value *out) {
    value a[MOST_THREADS] = {0}, b[MOST_THREADS];
    if (n->a[0])
        evaluate(s, n->a[0], m, a);
    if (n->a[1])
        evaluate(s, n->a[1], m, b);
    EACH(s, m, t) {
        int first = t / n->group * n->group;
        uint32_t all = n->group == 32 ? UINT32_MAX : 15, yes = 0;
        uint32_t here = m->w[t / 32] >> first % 32 & all;
        for (int i = 0; i < n->group; i++)
            yes |= here >> i & 1 && a[first + i].c[0].u ? 1u << i : 0;
        for (int c = 0; c < n->t.n; c++)
            out[t].c[c] = grammar[n->op].form == VOTE ? vote(n, t - first, here, yes)
                                                      : exchange(n, t, first, here, a, b, c);
    }
}

/* ------------------------------------------------------------------------------------- expressions */
static set run(state *s, const node *list, set m, flow *f);

static void call(state *s, const node *n, const set *m, value *out) {
    value a[3][MOST_THREADS], before[MOST_THREADS];
    uint8_t *frames[MOST_THREADS];
    flow ignored = {{{0}}, {{0}}};
    for (int i = 0; i < n->f->parameters; i++)
        evaluate(s, n->a[i], m, a[i]);
    memcpy(before, s->result, sizeof before);
    memcpy(frames, s->frame, sizeof frames);
    uint8_t *memory = calloc(MOST_THREADS, FRAME_BYTES);
    assert(memory && n->f->frame <= FRAME_BYTES);
    EACH(s, m, t) {
        s->frame[t] = memory + t * FRAME_BYTES;
        for (int i = 0; i < n->f->parameters; i++) {
            const variable *v = n->f->parameter[i];
            type u = v->r.field[0].t;
            for (int c = 0; c < u.n; c++)
                store_part(u.k, s->frame[t] + v->at + (size_t)c * kind_bytes(u.k), a[i][t].c[c]);
        }
    }
    run(s, n->f->body, *m, &ignored);
    EACH(s, m, t)
    out[t] = s->result[t];
    memcpy(s->result, before, sizeof before);
    memcpy(s->frame, frames, sizeof frames);
    free(memory);
}

/* The threads whose scalar is true. */
static set ask(state *s, const node *n, const set *m) {
    value x[MOST_THREADS];
    set yes = {{0}};
    evaluate(s, n, m, x);
    EACH(s, m, t)
    if (x[t].c[0].u)
        yes.w[t / 32] |= 1u << t % 32;
    return yes;
}

static void pick(state *s, const node *n, const set *m, value *out) {
    set yes = ask(s, n->a[0], m), no = without(*m, yes);
    if (n->op == OP_CHOOSE) {
        evaluate(s, n->a[1], &yes, out);
        evaluate(s, n->a[2], &no, out);
        return;
    }
    EACH(s, m, t)
    out[t].c[0].u = n->op == OP_EITHER;
    evaluate(s, n->a[1], n->op == OP_BOTH ? &yes : &no, out);
}

static void evaluate_leaf(state *s, const node *n, const set *m, value *out) {
    uint8_t *at[MOST_THREADS], room[64];
    if (n->op == OP_LOAD)
        locate(s, n, m, at, room);
    EACH(s, m, t) {
        part *c = out[t].c;
        uint32_t x = s->w->constant[n->op == OP_CONSTANT ? n->value : 0];
        switch (n->op) {
        case OP_LITERAL:
            c[0] = kind_is_real(n->t.k) ? (part){.f = (double)n->value / 4} : (part){.i = n->value};
            break;
        case OP_PLACE: c[0].u = s->place[n->value][t]; break;
        case OP_CONSTANT:
            c[0] = n->t.k == F32 ? (part){.f = (double)x / 4} : wrap(n->t.k, (part){.u = x});
            break;
        default:
            for (int i = 0; i < n->t.n; i++)
                c[i] = load_part(n->t.k, at[t] + kind_bytes(n->t.k) * (size_t)(n->part[0] ? letter(n->part[i]) : i));
        }
    }
}

static void reshape(const node *n, value a[4][MOST_THREADS], int t, value *out) {
    kind from = n->a[0]->t.k;
    uint8_t bytes[32] = {0};
    int c = 0;
    switch (n->op) {
    case OP_CONVERT:
        for (; c < n->t.n; c++)
            out->c[c] = convert(from, n->t.k, a[0][t].c[c]);
        return;
    case OP_JOIN:
        for (int i = 0; i < 4 && n->a[i]; i++)
            for (int j = 0; j < n->a[i]->t.n; j++)
                out->c[c++] = a[i][t].c[j];
        for (; c < n->t.n; c++)
            out->c[c] = out->c[0];
        return;
    case OP_SWIZZLE:
        for (; c < n->t.n; c++)
            out->c[c] = a[0][t].c[letter(n->part[c])];
        return;
    case OP_ELEMENT: out->c[0] = a[0][t].c[a[1][t].c[0].u]; return;
    default: /* OP_REINTERPRET */
        for (int i = 0; i < n->a[0]->t.n; i++)
            store_part(from, bytes + (size_t)i * kind_bytes(from), a[0][t].c[i]);
        for (; c < n->t.n; c++)
            out->c[c] = load_part(n->t.k, bytes + (size_t)c * kind_bytes(n->t.k));
    }
}

static void reduce(const node *n, value a[4][MOST_THREADS], int t, value *out) {
    part r = {.u = n->op == OP_ALL};
    if (n->op == OP_DOT)
        r.f = 0;
    for (int i = 0; i < n->a[0]->t.n; i++) {
        part x = a[0][t].c[i];
        if (n->op == OP_DOT)
            r.f += x.f * a[1][t].c[i].f;
        else
            r.u = n->op == OP_ANY ? r.u || x.u : r.u && x.u;
    }
    out->c[0] = r;
}

static void evaluate(state *s, const node *n, const set *m, value *out) {
    value a[4][MOST_THREADS];
    if (is_empty(m))
        return;
    switch (n->op) {
    case OP_LITERAL:
    case OP_PLACE:
    case OP_CONSTANT:
    case OP_LOAD: evaluate_leaf(s, n, m, out); return;
    case OP_CHOOSE:
    case OP_BOTH:
    case OP_EITHER: pick(s, n, m, out); return;
    case OP_CALL_OF: call(s, n, m, out); return;
    default: break;
    }
    if (grammar[n->op].form == LANES || grammar[n->op].form == VOTE) {
        meet(s, n, m, out);
        return;
    }
    for (int i = 0; i < 4 && n->a[i]; i++)
        evaluate(s, n->a[i], m, a[i]);
    EACH(s, m, t) {
        if (n->op >= OP_CONVERT && n->op <= OP_REINTERPRET)
            reshape(n, a, t, &out[t]);
        else if (n->op == OP_ANY || n->op == OP_ALL || n->op == OP_DOT)
            reduce(n, a, t, &out[t]);
        else
            for (int c = 0; c < n->t.n; c++) {
                part x[4] = {{0}};
                for (int i = 0; i < 4 && n->a[i]; i++)
                    x[i] = a[i][t].c[n->a[i]->t.n == 1 ? 0 : c];
                out[t].c[c] = apply(n->op, n->a[0]->t.k, x);
            }
    }
}

/* -------------------------------------------------------------------------------------- statements */
static uint32_t fold(type t, const value *x) {
    uint32_t h = 0;
    for (int i = 0; i < t.n; i++) {
        part c = x->c[i];
        uint32_t w = kind_is_real(t.k)         ? (uint32_t)(int32_t)(c.f * 16)
                     : kind_bytes(t.k) == 8 ? (uint32_t)c.u ^ (uint32_t)(c.u >> 32) * 31u
                                               : (uint32_t)c.u;
        h = i == 0 ? w : h * 257u ^ w;
    }
    return h;
}

static void set_variable(state *s, const variable *v, int t, type u, const value *x) {
    for (int c = 0; c < u.n; c++)
        store_part(u.k, s->frame[t] + v->at + (size_t)c * kind_bytes(u.k), x->c[c]);
}

uint32_t counter_start(int i) {
    return i == 3 ? UINT32_MAX : i == 5 ? 1u << 30 : 77;
}

static void count(uint32_t *c, int how, uint32_t x) {
    switch (how) {
    case 0: *c += x; break;
    case 1: *c -= x; break;
    case 2: *c |= x; break;
    case 3: *c &= x; break;
    case 4: *c ^= x; break;
    case 5: *c = x < *c ? x : *c; break;
    case 6: *c = x > *c ? x : *c; break;
    default: *c = (int32_t)x > (int32_t)*c ? x : *c;
    }
}

static double product_element(const world *w, int where, int row, int column) {
    double sum = where % 7 + 0.5;
    if (where & 4) {
        int swap = row;
        row = column, column = swap;
    }
    for (int i = 0; i < 8; i++) {
        int a = where + (where & 1 ? i * 8 + row : row * 8 + i);
        int r = where & 2 ? column : i, c = where & 2 ? i : column;
        sum += (double)w->reals[a] * (double)w->reals[(where % 5 + r) * 9 + where % 3 + c];
    }
    return sum;
}

/* Values that go through threadgroup memory. */
static void share(state *s, const node *n, const set *m) {
    static const int tallies[] = {0, 4, 6, 2};
    value x[MOST_THREADS], index[MOST_THREADS];
    uint32_t tally = 5;
    if (n->a[0])
        evaluate(s, n->a[0], m, x);
    evaluate(s, n->a[1], m, index);
    EACH(s, m, t)
    if (n->op == OP_TALLY)
        count(&tally, tallies[n->value % 4], (uint32_t)x[t].c[0].u);
    EACH(s, m, t) {
        uint32_t i = (uint32_t)index[t].c[0].u;
        value got;
        if (n->op == OP_EXCHANGE)
            got = x[n->value ? (uint32_t)t / 32 * 32 + i % 32 : i % (uint32_t)s->count];
        else if (n->op == OP_TALLY)
            got.c[0].u = tally;
        else
            got.c[0].f = (double)((int)(product_element(s->w, (int)n->value, i % 64 / 8, i % 8) * 16) & 1023);
        set_variable(s, n->v, t, n->t, &got);
    }
}

static set loop(state *s, const node *n, set m, flow *outer) {
    value x[MOST_THREADS], bound[MOST_THREADS];
    type u = {U32, 1};
    set out = {{0}};
    (void)outer;
    evaluate(s, n->a[0], &m, x);
    EACH(s, &m, t) {
        value zero = {{{0}}};
        set_variable(s, n->v, t, u, n->value == 0 ? &zero : &x[t]);
    }
    for (bool first = true; !is_empty(&m); first = false) {
        set on = {{0}};
        flow f = {{{0}}, {{0}}};
        if (n->value == 0)
            evaluate(s, n->a[0], &m, bound);
        EACH(s, &m, t) {
            uint8_t *at = s->frame[t] + n->v->at;
            uint64_t i = load_part(U32, at).u;
            bool stays = n->value == 0 ? i < bound[t].c[0].u : (n->value == 2 && first) || i > 0;
            if (n->value == 1 ? stays : n->value == 2 && !first)
                store_part(U32, at, (part){.u = i - 1});
            on.w[t / 32] |= (uint32_t)stays << t % 32;
        }
        out = join(out, without(m, on));
        m = join(run(s, n->body, on, &f), f.continued);
        out = join(out, f.broken);
        EACH(s, &m, t)
        if (n->value == 0) {
            uint8_t *at = s->frame[t] + n->v->at;
            store_part(U32, at, (part){.u = load_part(U32, at).u + 1});
        }
    }
    return out;
}

static set choose(state *s, const node *n, set m, flow *outer) {
    value x[MOST_THREADS];
    flow f = {{{0}}, {{0}}};
    set here = {{0}}, other = m;
    evaluate(s, n->a[0], &m, x);
    for (const node *c = n->body; c; c = c->next)
        EACH(s, &m, t)
    if (c->value >= 0 && x[t].c[0].i == c->value)
        other.w[t / 32] &= ~(1u << t % 32);
    for (const node *c = n->body; c; c = c->next) {
        EACH(s, &m, t)
        if (c->value >= 0 && x[t].c[0].i == c->value)
            here.w[t / 32] |= 1u << t % 32;
        if (c->value < 0)
            here = join(here, other), other = (set){{0}};
        here = run(s, c->body, here, &f);
    }
    outer->continued = join(outer->continued, f.continued);
    return join(join(here, other), f.broken);
}

static void assign(state *s, const node *n, const set *m) {
    value x[MOST_THREADS], old[MOST_THREADS];
    evaluate(s, n->a[1], m, x);
    if (n->value) {
        evaluate(s, n->a[0], m, old);
        EACH(s, m, t)
        for (int c = 0; c < n->t.n; c++) {
            part both[4] = {old[t].c[c], x[t].c[c]};
            x[t].c[c] = apply((op)n->value, n->t.k, both);
        }
    }
    store(s, n->a[0], m, x);
}

static set run(state *s, const node *list, set m, flow *f) {
    for (const node *n = list; n && !is_empty(&m); n = n->next) {
        value x[MOST_THREADS];
        set yes;
        switch (n->op) {
        case OP_DECLARE:
        case OP_PUT:
        case OP_ATOMIC:
        case OP_RETURN:
            if (n->a[0])
                evaluate(s, n->a[0], &m, x);
            EACH(s, &m, t)
            if (n->op == OP_PUT)
                s->out[t][n->value] = fold(n->t, &x[t]);
            else if (n->op == OP_ATOMIC)
                count(&s->counters[n->value], (int)n->value, (uint32_t)x[t].c[0].u);
            else if (n->op == OP_RETURN)
                s->result[t] = n->a[0] ? x[t] : s->result[t];
            else if (n->a[0])
                set_variable(s, n->v, t, n->t, &x[t]);
            if (n->op == OP_RETURN)
                return (set){{0}};
            break;
        case OP_ASSIGN: assign(s, n, &m); break;
        case OP_IF:
            yes = ask(s, n->a[0], &m);
            m = join(run(s, n->body, yes, f), run(s, n->other, without(m, yes), f));
            break;
        case OP_LOOP: m = loop(s, n, m, f); break;
        case OP_SWITCH: m = choose(s, n, m, f); break;
        case OP_BREAK: f->broken = join(f->broken, m); return (set){{0}};
        case OP_CONTINUE: f->continued = join(f->continued, m); return (set){{0}};
        default: share(s, n, &m);
        }
    }
    return m;
}

/* ------------------------------------------------------------------------------------------ launch */
static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void run_group(state *s, extent g, uint32_t *out, uint8_t *memory) {
    const world *w = s->w;
    extent size = {smaller(w->group.x, w->threads.x - g.x * w->group.x),
                   smaller(w->group.y, w->threads.y - g.y * w->group.y),
                   smaller(w->group.z, w->threads.z - g.z * w->group.z)};
    s->count = (int)(size.x * size.y * size.z);
    assert(s->count <= MOST_THREADS);
    set m = {{0}};
    flow f = {{{0}}, {{0}}};
    for (int t = 0; t < s->count; t++) {
        uint32_t i = (uint32_t)t;
        extent at = {i % size.x, i / size.x % size.y, i / size.x / size.y};
        extent grid = {g.x * w->group.x + at.x, g.y * w->group.y + at.y, g.z * w->group.z + at.z};
        const uint32_t places[PLACES] = {
            i % 32, i,      i / 32, (uint32_t)s->count, at.x,         at.y, at.z, g.x,
            grid.x, grid.y, grid.z, w->threads.x,       (w->threads.x + w->group.x - 1) / w->group.x};
        for (int p = 0; p < PLACES; p++)
            s->place[p][t] = places[p];
        s->frame[t] = memory + t * FRAME_BYTES;
        s->out[t] = out + OUT_WORDS * (grid.x + w->threads.x * (grid.y + w->threads.y * grid.z));
        m.w[t / 32] |= 1u << t % 32;
    }
    run(s, s->p->main->body, m, &f);
}

void program_answer(const program *p, uint32_t *out, uint32_t *counters) {
    const world *w = p->world;
    state *s = calloc(1, sizeof *s);
    uint8_t *memory = calloc(MOST_THREADS, FRAME_BYTES);
    assert(s && memory && p->main->frame <= FRAME_BYTES);
    s->p = p;
    s->w = w;
    s->counters = counters;
    for (uint32_t i = 0; i < OUT_WORDS * w->threads.x * w->threads.y * w->threads.z; i++)
        out[i] = POISON;
    for (int i = 0; i < COUNTERS; i++)
        counters[i] = counter_start(i);
    extent g;
    for (g.z = 0; g.z * w->group.z < w->threads.z; g.z++)
        for (g.y = 0; g.y * w->group.y < w->threads.y; g.y++)
            for (g.x = 0; g.x * w->group.x < w->threads.x; g.x++)
                run_group(s, g, out, memory);
    free(memory);
    free(s);
}
