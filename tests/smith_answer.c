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

typedef union {
    int64_t i;
    uint64_t u;
    double f;
} part;
typedef struct {
    part c[4];
} value;
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 full;
typedef full set; /* of threads: a bit each */
typedef struct {
    set broken, continued;
} flow;

/* A threadgroup at work. */
typedef struct {
    const world *w;
    int count; /* threads */
    uint32_t place[MOST_THREADS][PLACES];
    uint8_t memory[MOST_THREADS][FRAME_BYTES];
    uint32_t *out[MOST_THREADS], *counters;
    value result[MOST_THREADS]; /* of the function that returned last */
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

/* Component c of a place or a swizzle, as a number: of "zx", 0 is 2. */
static int which(const node *n, int c) {
    static const char names[] = "xyzwrgba";
    return n->part[0] ? (int)(strchr(names, n->part[c]) - names) % 4 : c;
}

/* Where component c of a place is, for thread t. */
static uint8_t *locate(state *s, const node *n, int t, uint64_t index, int c) {
    const variable *target = get_target(n->v);
    const field *f = get_field(n);
    uint8_t *at =
        is_own(target) ? s->memory[t] + target->at : (uint8_t *)s->w->input[target->where];
    index += n->v->target ? load_part(U32, s->memory[t] + n->v->at).u : 0;
    return at + f->at + (int)index * field_step(f) + which(n, c) * kind_bytes(n->t.k);
}

static void set_variable(state *s, const variable *v, int t, const value *x) {
    const type u = v->target ? (type){U32, 1} : v->field[0].t;
    for (int c = 0; c < u.n; c++)
        store_part(u.k, s->memory[t] + v->at + c * kind_bytes(u.k), x->c[c]);
}

/* --------------------------------------------------------------------------------------- operations */
static uint64_t clip(kind k, wide x) {
    int bits = 8 * kind_bytes(k);
    wide high = ((wide)1 << (kind_is_signed(k) ? bits - 1 : bits)) - 1;
    wide low = kind_is_signed(k) ? -high - 1 : 0;
    return (uint64_t)(x < low ? low : x > high ? high : x);
}
static uint64_t reverse(uint64_t u, int bits) {
    uint64_t r = 0;
    for (int i = 0; i < bits; i++)
        r |= (u >> i & 1) << (bits - 1 - i);
    return r;
}
static uint64_t low_bits(uint64_t count) {
    return count ? UINT64_MAX >> (64 - count) : 0;
}
static uint64_t extract(kind k, uint64_t from, uint64_t count) {
    uint64_t sign = kind_is_signed(k) ? low_bits(count) / 2 + 1 : 0;
    return ((from & low_bits(count)) ^ sign) - sign;
}
static bool less(kind k, part a, part b) {
    return k >= F16 ? a.f < b.f : kind_is_signed(k) ? a.i < b.i : a.u < b.u;
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
/* What thread t gets of component c, from the lanes of its group that are in m. */
static part exchange(const node *n, int t, set m, const value *x, const value *y, int c) {
    const int width = n->group, base = t / width * width, lane = t - base, by = (int)n->value;
    const uint32_t here = (uint32_t)(m >> base) & (width == 32 ? UINT32_MAX : 15);
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
    part r = {0};
    for (int i = 0, count = 0; i < from; i++)
        if (here >> i & 1)
            r = count++ ? apply(with, k, k, r, x[base + i].c[c], r, r) : x[base + i].c[c];
    return r;
}

/* ------------------------------------------------------------------------------------- expressions */
static void evaluate(state *s, const node *n, set m, value *out);
static set run(state *s, const node *list, set m, flow *f);

/* No function calls itself, so that each has its variables to itself. */
static void call(state *s, const node *n, set m, value a[4][MOST_THREADS], value *out) {
    flow ignored = {0, 0};
    EACH(s, m, t)
    for (int i = 0; i < n->f->parameters; i++)
        set_variable(s, n->f->parameter[i], t, &a[i][t]);
    run(s, n->f->body, m, &ignored);
    EACH(s, m, t) out[t] = s->result[t];
}

/* The threads whose scalar is true. */
static set ask(state *s, const node *n, set m) {
    value x[MOST_THREADS];
    set yes = 0;
    evaluate(s, n, m, x);
    EACH(s, m, t) yes |= (set)(x[t].c[0].u != 0) << t;
    return yes;
}

/* Component c of what thread t computes from the operands, which all threads of m have. */
static part compute(state *s, const node *n, set m, int t, value a[4][MOST_THREADS], int c) {
    const kind from = n->a[0] ? n->a[0]->t.k : BOOL, to = n->t.k;
    const part *x = a[0][t].c;
    const form how = grammar[n->op].form;
    part r = {.i = n->op == OP_CONSTANT ? (int64_t)s->w->constant[n->value] : n->value},
         y[4] = {{0}};
    uint8_t bytes[32];
    switch (n->op) {
    case OP_LITERAL:
    case OP_CONSTANT:
        return to >= F16 ? (part){.f = (double)r.i / 4} : wrap(to, r);
    case OP_PLACE:
        return (part){.u = s->place[t][n->value]};
    case OP_LOAD:
        return load_part(to, locate(s, n, t, n->a[0] ? x[0].u : 0, c));
    case OP_CONVERT:
        return convert(from, to, x[c]);
    case OP_SWIZZLE:
        return x[which(n, c)];
    case OP_ELEMENT:
        return x[a[1][t].c[0].u];
    case OP_JOIN:
        c -= n->a[0]->t.n;
        return c < 0 ? x[c + n->a[0]->t.n] : n->a[1] ? a[1][t].c[c] : x[0];
    case OP_REINTERPRET:
        for (int i = 0; i < n->a[0]->t.n; i++)
            store_part(from, bytes + i * kind_bytes(from), x[i]);
        return load_part(to, bytes + c * kind_bytes(to));
    case OP_ANY:
    case OP_ALL:
    case OP_DOT:
        r.u = n->op == OP_ALL;
        for (int i = 0; i < n->a[0]->t.n; i++)
            r = apply(n->op, from, to, r, x[i], n->a[1] ? a[1][t].c[i] : r, r);
        return r;
    default:
        if (how == LANES || how == VOTE)
            return exchange(n, t, m, a[0], a[1], c);
        /* Operands of two integer kinds are first converted to the result's. */
        for (int i = 0; i < 4 && n->a[i]; i++) {
            y[i] = a[i][t].c[n->a[i]->t.n == 1 ? 0 : c];
            y[i] = how == INFIX ? convert(n->a[i]->t.k, to, y[i]) : y[i];
        }
        return apply(n->op, how == INFIX ? to : from, to, y[0], y[1], y[2], y[3]);
    }
}

static void evaluate(state *s, const node *n, set m, value *out) {
    value a[4][MOST_THREADS];
    if (!m)
        return;
    if (grammar[n->op].guard == APART) {
        set yes = ask(s, n->a[0], m), no = m & ~yes;
        EACH(s, m, t) out[t].c[0].u = n->op == OP_EITHER;
        evaluate(s, n->a[1], n->op == OP_EITHER ? no : yes, out);
        if (n->op == OP_CHOOSE)
            evaluate(s, n->a[2], no, out);
        return;
    }
    for (int i = 0; i < 4 && n->a[i]; i++)
        evaluate(s, n->a[i], m, a[i]);
    if (n->op == OP_CALL_OF)
        call(s, n, m, a, out);
    EACH(s, m, t)
    for (int c = 0; c < n->t.n && n->op != OP_CALL_OF; c++)
        out[t].c[c] = compute(s, n, m, t, a, c);
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
        sum += load_part(F32, (const uint8_t *)&w->input[IN_REALS][a]).f *
               load_part(F32, (const uint8_t *)&w->input[IN_REALS][b + where % 3]).f;
    }
    return (double)((int)(sum * 16) & 1023);
}

static set loop(state *s, const node *n, set m) {
    value x[MOST_THREADS];
    const bool counts_down = n->op == OP_DO;
    set out = 0;
    evaluate(s, n->a[0], m, x);
    EACH(s, m, t) set_variable(s, n->v, t, counts_down ? &x[t] : &(value){{{0}}});
    for (int turn = 0; m; turn++) {
        set on = 0;
        flow f = {0, 0};
        if (!counts_down)
            evaluate(s, n->a[0], m, x);
        EACH(s, m, t) {
            uint8_t *at = s->memory[t] + n->v->at;
            uint64_t i = load_part(U32, at).u, next = counts_down ? i - (turn > 0) : i + (turn > 0);
            bool stays = counts_down ? turn == 0 || i > 0 : next < x[t].c[0].u;
            store_part(U32, at, (part){.u = next});
            on |= (set)stays << t;
        }
        out |= m & ~on;
        m = run(s, n->body, on, &f) | f.continued;
        out |= f.broken;
    }
    return out;
}

/* The first pass finds the threads that no case is for, the second one runs the cases. */
static set choose(state *s, const node *n, set m, flow *outer) {
    value x[MOST_THREADS];
    flow f = {0, 0};
    set here = 0, other = m;
    evaluate(s, n->a[0], m, x);
    for (int pass = 0; pass < 2; pass++)
        for (const node *c = n->body; c; c = c->next) {
            set these = 0;
            EACH(s, m, t) these |= (set)(c->op == OP_CASE && x[t].c[0].i == c->value) << t;
            these = pass && c->op == OP_DEFAULT ? other : these;
            other &= ~these;
            here = pass ? run(s, c->body, here | these, &f) : 0;
        }
    outer->continued |= f.continued;
    return here | other | f.broken;
}

/* A statement without others in it. */
static void execute(state *s, const node *n, set m) {
    value x[2][MOST_THREADS] = {{{{{0}}}}}, index[MOST_THREADS] = {0};
    uint32_t tally = 5;
    for (int i = 0; i < 2 && n->a[i]; i++)
        evaluate(s, n->a[i], m, x[i]);
    if (n->op == OP_ASSIGN && n->a[0]->a[0])
        evaluate(s, n->a[0]->a[0], m, index);
    EACH(s, m, t) tally = n->op == OP_TALLY ? count(tally, n->value, x[0][t].c[0].u) : 0;
    EACH(s, m, t) {
        const uint32_t i = n->a[1] ? (uint32_t)x[1][t].c[0].u : 0;
        value got = x[0][t];
        if (n->op == OP_PUT)
            s->out[t][n->value] = fold(n->t, &got);
        else if (n->op == OP_ATOMIC)
            s->counters[n->value] = count(s->counters[n->value], n->value, got.c[0].u);
        else if (n->op == OP_RETURN)
            s->result[t] = got;
        else if (n->op == OP_COPY)
            memcpy(s->memory[t] + n->v->at, s->memory[t] + n->w->at, (size_t)n->v->bytes);
        else if (n->op == OP_EXCHANGE)
            got = x[0][i % (uint32_t)s->count];
        else if (n->op == OP_PASS)
            got = x[0][(uint32_t)t / 32 * 32 + i % 32];
        else if (n->op == OP_MULTIPLY)
            got.c[0].f = multiply(s->w, (int)n->value, i % 64 / 8, i % 8);
        else if (n->op == OP_TALLY)
            got.c[0].u = tally;
        for (int c = 0; n->op == OP_ASSIGN && c < n->t.n; c++) {
            part y = x[1][t].c[c];
            y = n->value ? apply((op)n->value, n->t.k, n->t.k, got.c[c], y, y, y) : y;
            store_part(n->t.k, locate(s, n->a[0], t, index[t].c[0].u, c), y);
        }
        if (n->v && n->a[0]) /* of what only declares, there is no value */
            set_variable(s, n->v, t, &got);
    }
}

/* Those of m that come to the end of the list. */
static set run(state *s, const node *list, set m, flow *f) {
    for (const node *n = list; n && m; n = n->next) {
        if (n->op == OP_IF) {
            set yes = ask(s, n->a[0], m), no = m & ~yes;
            m = run(s, n->body, yes, f);
            m |= run(s, n->other, no, f);
        } else if (n->op == OP_LOOP || n->op == OP_DO) {
            m = loop(s, n, m);
        } else if (n->op == OP_SWITCH) {
            m = choose(s, n, m, f);
        } else if (n->op == OP_BREAK || n->op == OP_CONTINUE) {
            *(n->op == OP_BREAK ? &f->broken : &f->continued) |= m;
            m = 0;
        } else {
            execute(s, n, m);
            m = n->op == OP_RETURN ? 0 : m;
        }
    }
    return m;
}

/* ------------------------------------------------------------------------------------------ launch */
static void run_group(state *s, const program *p, extent at, uint32_t *out) {
    const extent n = s->w->threads, g = s->w->group;
    set m = 0;
    flow f = {0, 0};
    s->count = 0;
    for (uint32_t i = 0; i < g.x * g.y * g.z; i++) {
        const uint32_t x = i % g.x, y = i / g.x % g.y, z = i / g.x / g.y, t = (uint32_t)s->count;
        const extent grid = {at.x * g.x + x, at.y * g.y + y, at.z * g.z + z};
        if (grid.x >= n.x || grid.y >= n.y || grid.z >= n.z)
            continue;
        const uint32_t groups = (n.x + g.x - 1) / g.x;
        const uint32_t places[PLACES] = {t % 32, t,      t / 32, 0,      x,   y,     z,
                                         at.x,   grid.x, grid.y, grid.z, n.x, groups};
        assert(t < MOST_THREADS);
        memcpy(s->place[t], places, sizeof places);
        s->out[t] = out + OUT_WORDS * (grid.x + n.x * (grid.y + n.y * grid.z));
        m |= (set)1 << t;
        s->count++;
    }
    for (int t = 0; t < s->count; t++)
        s->place[t][3] = (uint32_t)s->count;
    run(s, p->main->body, m, &f);
}

void program_answer(const program *p, uint32_t *out, uint32_t *counters) {
    const world *w = p->world;
    state *s = calloc(1, sizeof *s);
    assert(s);
    s->w = w;
    s->counters = counters;
    for (int i = 0; i < OUT_WORDS * w->thread_count; i++)
        out[i] = POISON;
    for (int i = 0; i < COUNTERS; i++)
        counters[i] = counter_start(i);
    extent at;
    for (at.z = 0; at.z * w->group.z < w->threads.z; at.z++)
        for (at.y = 0; at.y * w->group.y < w->threads.y; at.y++)
            for (at.x = 0; at.x * w->group.x < w->threads.x; at.x++)
                run_group(s, p, at, out);
    free(s);
}
