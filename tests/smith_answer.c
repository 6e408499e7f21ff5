/* smith_answer: what a program must write, found by walking its tree. See smith.h.
 *
 * All threads of a threadgroup go through the tree together, each statement and expression with the set
 * of threads that are there: those of a simdgroup rejoin after an if, a switch, a loop and each turn of
 * it, as Vulkan's maximal reconvergence has it. Integers are 64 bits wide, sign-extended or not as their
 * kind says; floats are doubles, exact by construction. Between barriers nothing races, so that any order
 * of the threads gives the same. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smith.h"

enum { FRAME_BYTES = 8192 };

typedef union {
    int64_t i;
    uint64_t u;
    double f;
} part;
typedef struct {
    part c[4];
} value;
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;
typedef unsigned_wide set; /* of threads: a bit each */
typedef struct {
    set broken, continued;
} flow;

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

#define EACH(s, m, t)                                                                              \
    for (int t = 0; t < (s)->count; t++)                                                           \
        if (!((m) >> t & 1)) {                                                                     \
        } else

/* ------------------------------------------------------------------------------------------ memory */
static part wrap(kind k, part x) {
    int unused = 64 - 8 * kind_bytes(k);
    if (k >= F16)
        return x;
    if (k == BOOL)
        return (part){.u = x.u != 0};
    return kind_is_signed(k) ? (part){.i = (int64_t)(x.u << unused) >> unused}
                             : (part){.u = x.u << unused >> unused};
}

/* To and from bytes, the lowest first; a half's exponent is 112 less than a float's. */
static void store_part(kind k, uint8_t *at, part x) {
    float f = k >= F16 ? (float)x.f : 0;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint64_t word = k < F16 ? x.u : k == F32 ? bits : bits >> 16;
    if (k == F16)
        word = f == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3FFFF) - (112 << 10));
    memcpy(at, &word, (size_t)kind_bytes(k));
}

static part load_part(kind k, const uint8_t *at) {
    uint64_t word = 0;
    float f;
    memcpy(&word, at, (size_t)kind_bytes(k));
    if (k < F16)
        return wrap(k, (part){.u = word});
    if (k == F16)
        word = word ? (word & 0x8000) << 16 | ((word & 0x7FFF) + (112 << 10)) << 13 : 0;
    uint32_t bits = (uint32_t)(k == BF16 ? word << 16 : word);
    memcpy(&f, &bits, sizeof f);
    return (part){.f = (double)f};
}

static void evaluate(state *s, const node *n, set m, value *out);

/* Where component c of a place is. */
static size_t offset_of(const node *n, int c) {
    static const char names[] = "xyzwrgba";
    c = n->part[0] ? (int)(strchr(names, n->part[c]) - names) % 4 : c;
    return (size_t)(c * kind_bytes(n->t.k));
}

/* Where the first component of a place is, for each thread. */
static void locate(state *s, const node *n, set m, uint8_t **at) {
    const variable *v = n->v, *target = v->target ? v->target : v;
    const field *f = &target->field[n->field];
    value index[MOST_THREADS];
    if (n->a[0])
        evaluate(s, n->a[0], m, index);
    EACH(s, m, t) {
        const void *base = target->where == IN_THREAD   ? s->frame[t] + target->at
                           : target->where == IN_OWN    ? s->own[t] + target->at
                           : target->where == IN_PARAMS ? (const void *)s->w->params
                           : target->where == IN_TABLE  ? (const void *)s->w->table
                           : f->t.k == F32              ? (const void *)s->w->reals
                                                        : (const void *)s->w->words;
        uint64_t i = n->a[0] ? index[t].c[0].u : 0;
        i += v->target ? load_part(U32, s->frame[t] + v->at).u : 0;
        at[t] = (uint8_t *)base + f->at + i * (uint64_t)field_step(f);
    }
}

/* --------------------------------------------------------------------------------------- operations */
static uint64_t clip(kind k, wide x) {
    int bits = 8 * kind_bytes(k);
    wide high = ((wide)1 << (kind_is_signed(k) ? bits - 1 : bits)) - 1;
    wide low = kind_is_signed(k) ? -high - 1 : 0;
    return (uint64_t)(x < low ? low : x > high ? high : x);
}
static uint64_t high(kind k, part a, part b) {
    if (kind_is_signed(k))
        return (uint64_t)((wide)a.i * b.i >> 8 * kind_bytes(k));
    return (uint64_t)((unsigned_wide)a.u * b.u >> 8 * kind_bytes(k));
}
static uint64_t reverse(uint64_t u, int bits) {
    uint64_t r = 0;
    for (int i = 0; i < bits; i++)
        r |= (u >> i & 1) << (bits - 1 - i);
    return r;
}
static uint64_t extract(kind k, uint64_t u, uint64_t at, uint64_t count) {
    uint64_t up = count ? u << (64 - at - count) : 0;
    return !count              ? 0
           : kind_is_signed(k) ? (uint64_t)((int64_t)up >> (64 - count))
                               : up >> (64 - count);
}
static uint64_t field_mask(uint64_t at, uint64_t count) {
    return count ? UINT64_MAX >> (64 - count) << at : 0;
}
static bool less(kind k, part a, part b) {
    return k >= F16 ? a.f < b.f : kind_is_signed(k) ? a.i < b.i : a.u < b.u;
}
static part least(kind k, part a, part b) {
    return less(k, b, a) ? b : a;
}
static part most(kind k, part a, part b) {
    return less(k, a, b) ? b : a;
}

/* What the grammar says of operands of kind k, as a value of kind `to`. */
static part apply(op o, kind k, kind to, part a, part b, part c, part d) {
    wide x = kind_is_signed(k) ? (wide)a.i : (wide)a.u,
         y = kind_is_signed(k) ? (wide)b.i : (wide)b.u;
    wide z = kind_is_signed(k) ? (wide)c.i : (wide)c.u;
    int bits = 8 * kind_bytes(k);
    uint64_t u = a.u << (64 - bits) >> (64 - bits);
#define APPLY(op, text, form, operands, kinds, weight, guard, whole, real, low, high)              \
    case OP_##op:                                                                                  \
        return to >= F16 ? (part){.f = (double)(real)} : wrap(to, (part){.u = (uint64_t)(whole)});
    switch (o) {
        RULES(APPLY)
    default:
        abort();
    }
}

static part convert(kind from, kind to, part x) {
    if (from >= F16)
        return to >= F16 ? x : wrap(to, (part){.i = (int64_t)x.f});
    if (to >= F16)
        return (part){.f = kind_is_signed(from) ? (double)x.i : (double)x.u};
    return wrap(to, x);
}

/* ------------------------------------------------------------------------------------------- lanes */
/* What lane t gets of component c, from the lanes of its group that are `here`. */
static part exchange(const node *n, int t, uint32_t here, const value *x, const value *y, int c) {
    const int width = n->group, base = t / width * width, lane = t - base, by = (int)n->value;
    const int first = __builtin_ctz(here);
    const int want = n->op == OP_SHUFFLE ? (int)(y[t].c[0].u % (unsigned)width) : 0;
    const kind k = n->t.k;
    op with = OP_NONE;
    int64_t from = -1;
    uint32_t yes = 0;
    for (int i = 0; n->a[0] && i < width; i++)
        yes |= here >> i & 1 && x[base + i].c[0].u ? 1u << i : 0;
#define EXCHANGE(op, text, form, operands, kinds, weight, guard, combination, source, low, high)   \
    case OP_##op:                                                                                  \
        with = (combination);                                                                      \
        from = (source);                                                                           \
        break;
    switch (n->op) {
        LANE_RULES(EXCHANGE)
        VOTE_RULES(EXCHANGE)
    default:
        abort();
    }
    if (grammar[n->op].form == VOTE)
        return (part){.i = from};
    if (with == OP_NONE && (from < 0 || from >= width)) /* a shift that fills */
        return y[base + (from + width) % width].c[c];
    if (with == OP_NONE)
        return x[base + from].c[c];
    int end = n->op == OP_SCAN_BEFORE                            ? lane
              : n->op == OP_SCAN_SUM || n->op == OP_SCAN_PRODUCT ? lane + 1
                                                                 : width;
    part r = {0};
    for (int i = 0, any = 0; i < end; i++)
        if (here >> i & 1) {
            r = any ? apply(with, k, k, r, x[base + i].c[c], r, r) : x[base + i].c[c];
            any = 1;
        }
    return r;
}

static void meet(state *s, const node *n, set m, value a[4][MOST_THREADS], value *out) {
    EACH(s, m, t) {
        int base = t / n->group * n->group;
        uint32_t here = (uint32_t)(m >> base) & (n->group == 32 ? UINT32_MAX : 15);
        for (int c = 0; c < n->t.n; c++)
            out[t].c[c] = exchange(n, t, here, a[0], a[1], c);
    }
}

/* ------------------------------------------------------------------------------------- expressions */
static set run(state *s, const node *list, set m, flow *f);

static void set_variable(state *s, const variable *v, int t, const value *x) {
    const type u = v->target ? (type){U32, 1} : v->field[0].t;
    for (int c = 0; c < u.n; c++)
        store_part(u.k, s->frame[t] + v->at + c * kind_bytes(u.k), x->c[c]);
}

static void call(state *s, const node *n, set m, value a[4][MOST_THREADS], value *out) {
    value before[MOST_THREADS];
    uint8_t *frames[MOST_THREADS], *memory = calloc(MOST_THREADS, FRAME_BYTES);
    flow ignored = {0, 0};
    assert(memory && n->f->frame <= FRAME_BYTES);
    memcpy(before, s->result, sizeof before);
    memcpy(frames, s->frame, sizeof frames);
    EACH(s, m, t) {
        s->frame[t] = memory + t * FRAME_BYTES;
        for (int i = 0; i < n->f->parameters; i++)
            set_variable(s, n->f->parameter[i], t, &a[i][t]);
    }
    run(s, n->f->body, m, &ignored);
    EACH(s, m, t) out[t] = s->result[t];
    memcpy(s->result, before, sizeof before);
    memcpy(s->frame, frames, sizeof frames);
    free(memory);
}

/* The threads whose scalar is true. */
static set ask(state *s, const node *n, set m) {
    value x[MOST_THREADS];
    set yes = 0;
    evaluate(s, n, m, x);
    EACH(s, m, t) yes |= (set)(x[t].c[0].u != 0) << t;
    return yes;
}

static void evaluate_leaf(state *s, const node *n, set m, value *out) {
    uint8_t *at[MOST_THREADS];
    if (n->op == OP_LOAD)
        locate(s, n, m, at);
    EACH(s, m, t) {
        part *c = out[t].c;
        int64_t x = n->op == OP_CONSTANT ? (int64_t)s->w->constant[n->value] : n->value;
        if (n->op == OP_PLACE)
            c[0].u = s->place[n->value][t];
        else if (n->op != OP_LOAD)
            c[0] = n->t.k >= F16 ? (part){.f = (double)x / 4} : wrap(n->t.k, (part){.i = x});
        for (int i = 0; n->op == OP_LOAD && i < n->t.n; i++)
            c[i] = load_part(n->t.k, at[t] + offset_of(n, i));
    }
}

/* Components that change places, kinds or numbers. */
static void reshape(const node *n, value a[4][MOST_THREADS], int t, value *out) {
    const type from = n->a[0]->t;
    const part *x = a[0][t].c;
    uint8_t bytes[32] = {0};
    int c = 0;
    for (int i = 0; n->op == OP_JOIN && i < 4 && n->a[i]; i++)
        for (int j = 0; j < n->a[i]->t.n; j++)
            out->c[c++] = a[i][t].c[j];
    for (int i = 0; n->op == OP_REINTERPRET && i < from.n; i++)
        store_part(from.k, bytes + i * kind_bytes(from.k), x[i]);
    for (; c < n->t.n; c++)
        out->c[c] = n->op == OP_CONVERT   ? convert(from.k, n->t.k, x[c])
                    : n->op == OP_JOIN    ? out->c[0]
                    : n->op == OP_SWIZZLE ? x[offset_of(n, c) / (size_t)kind_bytes(n->t.k)]
                    : n->op == OP_ELEMENT ? x[a[1][t].c[0].u]
                                          : load_part(n->t.k, bytes + c * kind_bytes(n->t.k));
}

static part reduce(const node *n, const value *x, const value *y) {
    part r = {.u = n->op == OP_ALL};
    for (int i = 0; i < n->a[0]->t.n; i++)
        r = apply(n->op, n->a[0]->t.k, n->t.k, r, x->c[i], y->c[i], r);
    return r;
}

static void evaluate(state *s, const node *n, set m, value *out) {
    value a[4][MOST_THREADS];
    if (!m)
        return;
    if (n->op >= OP_LITERAL && n->op <= OP_CONSTANT) {
        evaluate_leaf(s, n, m, out);
        return;
    }
    if (n->op == OP_CHOOSE || n->op == OP_BOTH || n->op == OP_EITHER) {
        set yes = ask(s, n->a[0], m), no = m & ~yes;
        EACH(s, m, t) out[t].c[0].u = n->op == OP_EITHER;
        evaluate(s, n->a[1], n->op == OP_EITHER ? no : yes, out);
        if (n->op == OP_CHOOSE)
            evaluate(s, n->a[2], no, out);
        return;
    }
    for (int i = 0; i < 4 && n->a[i]; i++)
        evaluate(s, n->a[i], m, a[i]);
    if (n->op == OP_CALL_OF || grammar[n->op].form == LANES || grammar[n->op].form == VOTE) {
        (n->op == OP_CALL_OF ? call : meet)(s, n, m, a, out);
        return;
    }
    EACH(s, m, t) {
        if (n->op >= OP_CONVERT && n->op <= OP_REINTERPRET)
            reshape(n, a, t, &out[t]);
        else if (n->op == OP_ANY || n->op == OP_ALL || n->op == OP_DOT)
            out[t].c[0] = reduce(n, &a[0][t], &a[1][t]);
        else
            for (int c = 0; c < n->t.n; c++) {
                part x[4] = {{0}};
                /* Operands of two integer kinds are first converted to the result's. */
                kind k = grammar[n->op].form == INFIX ? n->t.k : n->a[0]->t.k;
                for (int i = 0; i < 4 && n->a[i]; i++)
                    x[i] = a[i][t].c[n->a[i]->t.n == 1 ? 0 : c];
                for (int i = 0; grammar[n->op].form == INFIX && i < 2; i++)
                    x[i] = convert(n->a[i]->t.k, k, x[i]);
                out[t].c[c] = apply(n->op, k, n->t.k, x[0], x[1], x[2], x[3]);
            }
    }
}

/* -------------------------------------------------------------------------------------- statements */
static uint32_t fold(type t, const value *x) {
    uint32_t h = 0;
    for (int i = 0; i < t.n; i++) {
        part c = x->c[i];
        uint32_t w = t.k >= F16 ? (uint32_t)(int32_t)(c.f * 16) : (uint32_t)c.u;
        w ^= kind_bytes(t.k) == 8 ? (uint32_t)(c.u >> 32) * 31u : 0;
        h = i == 0 ? w : h * 257u ^ w;
    }
    return h;
}

uint32_t counter_start(int i) {
    return i == 3 ? UINT32_MAX : i == 5 ? 1u << 30 : 77;
}

static uint32_t count(uint32_t c, int64_t how, uint64_t by) {
    const uint32_t x = (uint32_t)by;
    const uint32_t all[COUNTERS] = {c + x, c - x,         c | x,        c & x,
                                    c ^ x, x < c ? x : c, x > c ? x : c};
    return all[how];
}

/* 16 times an element of the product, modulo 1024. */
static double multiply(const world *w, int where, int row, int column) {
    int r = where & 4 ? column : row, c = where & 4 ? row : column;
    double sum = where % 7 + 0.5;
    for (int i = 0; i < 8; i++) {
        int a = where + (where & 1 ? i * 8 + r : r * 8 + i);
        int b = where & 2 ? (where % 5 + c) * 9 + i : (where % 5 + i) * 9 + c;
        sum += (double)w->reals[a] * (double)w->reals[b + where % 3];
    }
    return (double)((int)(sum * 16) & 1023);
}

/* Values that go through threadgroup memory. */
static void share(state *s, const node *n, set m) {
    value x[MOST_THREADS], index[MOST_THREADS];
    uint32_t tally = 5;
    evaluate(s, n->a[0], m, x);
    evaluate(s, n->a[1], m, index);
    EACH(s, m, t) tally = n->op == OP_TALLY ? count(tally, n->value, x[t].c[0].u) : 0;
    EACH(s, m, t) {
        uint32_t i = (uint32_t)index[t].c[0].u;
        value got = {{{.u = tally}}};
        if (n->op == OP_EXCHANGE || n->op == OP_PASS)
            got = x[n->op == OP_PASS ? (uint32_t)t / 32 * 32 + i % 32 : i % (uint32_t)s->count];
        else if (n->op == OP_MULTIPLY)
            got.c[0].f = multiply(s->w, (int)n->value, i % 64 / 8, i % 8);
        set_variable(s, n->v, t, &got);
    }
}

static set loop(state *s, const node *n, set m) {
    value x[MOST_THREADS];
    set out = 0;
    evaluate(s, n->a[0], m, x);
    EACH(s, m, t) set_variable(s, n->v, t, n->value ? &x[t] : &(value){{{0}}});
    for (int turn = 0; m; turn++) {
        set on = 0;
        flow f = {0, 0};
        if (n->value == 0)
            evaluate(s, n->a[0], m, x);
        EACH(s, m, t) {
            uint8_t *at = s->frame[t] + n->v->at;
            uint64_t i = load_part(U32, at).u, next = n->value ? i - (turn > 0) : i + (turn > 0);
            bool stays = n->value ? turn == 0 || i > 0 : next < x[t].c[0].u;
            store_part(U32, at, (part){.u = next});
            on |= (set)stays << t;
        }
        out |= m & ~on;
        m = run(s, n->body, on, &f) | f.continued;
        out |= f.broken;
    }
    return out;
}

static set choose(state *s, const node *n, set m, flow *outer) {
    value x[MOST_THREADS];
    flow f = {0, 0};
    set here = 0, other = m;
    evaluate(s, n->a[0], m, x);
    for (int pass = 0; pass < 2; pass++)
        for (const node *c = n->body; c; c = c->next) {
            set these = 0;
            EACH(s, m, t) these |= (set)(c->op == OP_CASE && x[t].c[0].i == c->value) << t;
            if (pass == 0) {
                other = other & ~these;
                continue;
            }
            here = run(s, c->body, here | (c->value < 0 ? other : these), &f);
            other = c->value < 0 ? 0 : other;
        }
    outer->continued |= f.continued;
    return here | other | f.broken;
}

static void assign(state *s, const node *n, set m) {
    value x[MOST_THREADS], old[MOST_THREADS];
    uint8_t *at[MOST_THREADS];
    const node *to = n->a[0];
    evaluate(s, n->a[1], m, x);
    if (n->value)
        evaluate(s, to, m, old);
    locate(s, to, m, at);
    EACH(s, m, t) for (int c = 0; c < n->t.n; c++) {
        part y = x[t].c[c];
        y = n->value ? apply((op)n->value, n->t.k, n->t.k, old[t].c[c], y, y, y) : y;
        store_part(n->t.k, at[t] + offset_of(to, c), y);
    }
}

/* A statement without others in it. */
static void execute(state *s, const node *n, set m) {
    value x[MOST_THREADS];
    if (n->a[0])
        evaluate(s, n->a[0], m, x);
    EACH(s, m, t) {
        if (n->op == OP_PUT)
            s->out[t][n->value] = fold(n->t, &x[t]);
        else if (n->op == OP_ATOMIC)
            s->counters[n->value] = count(s->counters[n->value], n->value, x[t].c[0].u);
        else if (n->op == OP_COPY)
            memcpy(s->frame[t] + n->v->at, s->frame[t] + n->w->at, (size_t)n->v->bytes);
        else if (n->op == OP_START || n->op == OP_POINT)
            set_variable(s, n->v, t, &x[t]);
        else if (n->op == OP_RETURN && n->a[0])
            s->result[t] = x[t];
    }
}

/* Those of m that come to the end of the list. */
static set run(state *s, const node *list, set m, flow *f) {
    for (const node *n = list; n && m; n = n->next) {
        if (n->op == OP_ASSIGN) {
            assign(s, n, m);
        } else if (n->op == OP_IF) {
            set yes = ask(s, n->a[0], m), no = m & ~yes;
            m = run(s, n->body, yes, f);
            m |= run(s, n->other, no, f);
        } else if (n->op == OP_LOOP) {
            m = loop(s, n, m);
        } else if (n->op == OP_SWITCH) {
            m = choose(s, n, m, f);
        } else if (n->op == OP_BREAK || n->op == OP_CONTINUE) {
            *(n->op == OP_BREAK ? &f->broken : &f->continued) |= m;
            m = 0;
        } else if (n->op >= OP_EXCHANGE && n->op <= OP_MULTIPLY) {
            share(s, n, m);
        } else {
            execute(s, n, m);
            m = n->op == OP_RETURN ? 0 : m;
        }
    }
    return m;
}

/* ------------------------------------------------------------------------------------------ launch */
static uint32_t cut(uint32_t group, uint32_t threads, uint32_t at) {
    return threads - at * group < group ? threads - at * group : group;
}

static void run_group(state *s, extent g, uint32_t *out, uint8_t *memory) {
    const world *w = s->w;
    const extent size = {cut(w->group.x, w->threads.x, g.x), cut(w->group.y, w->threads.y, g.y),
                         cut(w->group.z, w->threads.z, g.z)};
    set m = 0;
    flow f = {0, 0};
    s->count = (int)(size.x * size.y * size.z);
    assert(s->count <= MOST_THREADS);
    for (int t = 0; t < s->count; t++) {
        uint32_t i = (uint32_t)t, x = i % size.x, y = i / size.x % size.y, z = i / size.x / size.y;
        extent grid = {g.x * w->group.x + x, g.y * w->group.y + y, g.z * w->group.z + z};
        const uint32_t n = w->threads.x, groups = (n + w->group.x - 1) / w->group.x;
        const uint32_t places[PLACES] = {
            i % 32, i, i / 32, (uint32_t)s->count, x, y, z, g.x, grid.x, grid.y, grid.z, n, groups};
        for (int p = 0; p < PLACES; p++)
            s->place[p][t] = places[p];
        s->frame[t] = memory + t * FRAME_BYTES;
        s->out[t] = out + OUT_WORDS * (grid.x + w->threads.x * (grid.y + w->threads.y * grid.z));
        m |= (set)1 << t;
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
    for (int i = 0; i < OUT_WORDS * w->thread_count; i++)
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
