/* expression: see expression.h. Owns the evaluation of a tree and its bounds; functions are in
 * expression_functions.c.
 *
 * Errors end an evaluation by a flag that loops look at, so that the common path has no other
 * tests. */
#include "expression.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expression_parts.h"

#define U 0x1p-24 /* one rounding of f32 */
#define DIVIDE 2  /* roundings of a division under safe math: a kernel may multiply with 1 / x */
#define FAST_DIVISION 5

static int64_t compute_whole(expression *x, node *n);
static bounded compute_real(expression *x, node *n);

static int64_t fail(expression *x, const char *why) {
    if (!x->has_failed)
        err_set(x->e, EXIT_USAGE, "'%.80s' %s", x->text, why);
    x->has_failed = true;
    return 0;
}

/* Elements ------------------------------------------------------------------------------------ */

static size_t fail_index(expression *x, const node *n, size_t axis, int64_t index, int64_t size) {
    if (!x->has_failed)
        err_set(x->e, EXIT_USAGE,
                "'%.80s': index %lld of %.40s is not between 0 and %lld (axis %zu of %zu)", x->text,
                (long long)index, n->symbol->name, (long long)size - 1, axis + 1, n->index_count);
    x->has_failed = true;
    return 0;
}

static size_t find_element(expression *x, const node *n) {
    const symbol *s = n->symbol;
    int64_t at = 0;
    for (size_t i = 0; i < n->index_count; i++) {
        node *given = n->indices[i];
        int64_t index =
            given->kind == NODE_VARIABLE ? x->variables[given->variable] : compute_whole(x, given);
        int64_t size = n->index_count == 1 ? s->count : s->sizes[i];
        if (index < 0 || index >= size)
            return fail_index(x, n, i, index, size);
        at = at * size + index;
    }
    return (size_t)at;
}

static int64_t read_whole(const symbol *s, size_t i) {
    if (s->type == ELEM_I64)
        return ((const int64_t *)s->data)[i];
    if (s->type == ELEM_U64)
        return (int64_t)((const uint64_t *)s->data)[i];
    return (int64_t)elem_read(s->type, s->data, i);
}

static bounded read_real(const expression *x, const symbol *s, size_t i) {
    if (s->computed)
        return s->computed[i];
    double value =
        s->type == ELEM_F32 ? (double)((const float *)s->data)[i] : elem_read(s->type, s->data, i);
    bool is_lost = x->how.flushes && fabs(value) < (double)FLT_MIN;
    return (bounded){value, is_lost ? fabs(value) : 0};
}

/* Whole numbers ------------------------------------------------------------------------------- */

static int64_t divide_whole(expression *x, node_kind kind, int64_t a, int64_t b) {
    if (b == 0)
        return fail(x, "divides by 0");
    if (a == INT64_MIN && b == -1)
        return fail(x, "is too large");
    return kind == NODE_DIVIDE ? a / b : a % b;
}

static int64_t shift(expression *x, node_kind kind, int64_t a, int64_t b) {
    if (b < 0 || b > 62)
        return fail(x, "shifts by less than 0 or more than 62 bits");
    return kind == NODE_SHIFT_LEFT ? (int64_t)((uint64_t)a << b) : a >> b;
}

static int64_t compute_binary(expression *x, node *n) {
    int64_t a = compute_whole(x, n->a), b = compute_whole(x, n->b), out = 0;
    bool overflows = false;
    switch (n->kind) {
    case NODE_ADD:
        overflows = __builtin_add_overflow(a, b, &out);
        break;
    case NODE_SUBTRACT:
        overflows = __builtin_sub_overflow(a, b, &out);
        break;
    case NODE_MULTIPLY:
        overflows = __builtin_mul_overflow(a, b, &out);
        break;
    case NODE_DIVIDE:
    case NODE_REMAINDER:
        return divide_whole(x, n->kind, a, b);
    case NODE_BIT_AND:
        return a & b;
    case NODE_BIT_OR:
        return a | b;
    case NODE_BIT_XOR:
        return a ^ b;
    case NODE_MIN:
        return a < b ? a : b;
    case NODE_MAX:
        return a > b ? a : b;
    default:
        return shift(x, n->kind, a, b);
    }
    return overflows ? fail(x, "is too large") : out;
}

/* Values that are closer than their errors may compare either way. */
static bool is_close(bounded a, bounded b) {
    double room = a.error + b.error;
    return room > 0 && fabs(a.value - b.value) <= room;
}

static int64_t compare(expression *x, node *n) {
    if (n->a->is_whole) {
        int64_t a = compute_whole(x, n->a), b = compute_whole(x, n->b);
        return n->kind == NODE_LESS ? a < b : n->kind == NODE_EQUAL ? a == b : a <= b;
    }
    bounded a = compute_real(x, n->a), b = compute_real(x, n->b);
    x->is_doubtful = x->is_doubtful || is_close(a, b);
    return n->kind == NODE_LESS    ? a.value < b.value
           : n->kind == NODE_EQUAL ? a.value == b.value
                                   : a.value <= b.value;
}

static int64_t truncate(expression *x, node *n) {
    bounded a = compute_real(x, n->a);
    if (!(fabs(a.value) < 0x1p63))
        return fail(x, "makes a whole number of one that is too large or not a number");
    x->is_doubtful = x->is_doubtful || trunc(a.value - a.error) != trunc(a.value + a.error);
    return (int64_t)a.value;
}

/* Loops --------------------------------------------------------------------------------------- */

/* Is what the loop was last computed for still so? Otherwise it is from now on. */
static bool is_known(expression *x, node *n) {
    bool is_same = n->computed_at == x->started;
    for (int i = 0; i < EXPRESSION_VARIABLES && n->depends >> i; i++)
        if (n->depends >> i & 1 && n->seen[i] != x->variables[i]) {
            is_same = false;
            n->seen[i] = x->variables[i];
        }
    n->computed_at = x->started;
    return is_same;
}

static int64_t loop_whole(expression *x, node *n) {
    if (is_known(x, n))
        return n->known_whole;
    int64_t count = compute_whole(x, n->a), best = n->kind == NODE_LOOP_MAX ? INT64_MIN : INT64_MAX;
    for (int64_t i = 0; i < count && !x->has_failed; i++) {
        x->variables[n->variable] = i;
        int64_t term = compute_whole(x, n->b);
        best = (n->kind == NODE_LOOP_MAX) == (term > best) ? term : best;
    }
    return n->known_whole = best;
}

static bounded take_best(bounded a, bounded b, bool is_max) {
    bounded best = (is_max ? b.value > a.value : b.value < a.value) || isnan(a.value) ? b : a;
    if (is_close(a, b))
        best.error = fmax(a.error, b.error);
    return best;
}

static bounded loop_best(expression *x, node *n, int64_t count) {
    bool is_max = n->kind == NODE_LOOP_MAX;
    bounded best = {is_max ? -HUGE_VAL : HUGE_VAL, 0};
    for (int64_t i = 0; i < count && !x->has_failed; i++) {
        x->variables[n->variable] = i;
        best = take_best(best, compute_real(x, n->b), is_max);
    }
    return best;
}

/* The roundings of a sum that a kernel makes in an order of its own. Each is relative to a partial
 * sum, their signs are random, and in the worst order partial sums come to the sum of magnitudes:
 * 2 sqrt(n) of it. Where many terms cancel that is far too much. Two orders tell how large partial
 * sums really are: one after the other, and 32 lanes as a simdgroup adds them; 8 is six standard
 * deviations for an order whose partial sums are three times as large. */
enum { LANES = 32, SHORT = 64 };
#define SPREAD 8.0

typedef struct {
    double lanes[LANES], in_turn, in_lanes, magnitude; /* in_turn, in_lanes: sums of squares */
} partial_sums;

static double bound_roundings(const partial_sums *p, double squares, int64_t count) {
    double worst = 2 * sqrt((double)count) * p->magnitude;
    return count <= SHORT ? worst : fmin(worst, SPREAD * sqrt(squares));
}

static bounded loop_sum(expression *x, node *n, int64_t count) {
    partial_sums p = {.magnitude = 0};
    double sum = 0, error = 0, across = 0;
    for (int64_t i = 0; i < count && !x->has_failed; i++) {
        x->variables[n->variable] = i;
        bounded term = compute_real(x, n->b);
        double *lane = &p.lanes[i % LANES];
        sum += term.value;
        *lane += term.value;
        p.in_turn += sum * sum;
        p.in_lanes += *lane * *lane;
        p.magnitude += fabs(term.value);
        error += term.error;
    }
    if (!isfinite(sum))
        return (bounded){sum, 0};
    for (int i = 0; i < LANES; i++) {
        across += p.lanes[i];
        p.in_lanes += across * across;
    }
    double terms = (double)count;
    if (count > 1)
        error += U * bound_roundings(&p, fmax(p.in_turn, p.in_lanes), count);
    if (p.magnitude > 0 && p.magnitude * U < terms * (double)FLT_MIN)
        error += terms * (double)FLT_MIN * (x->how.flushes ? 1 : U);
    return (bounded){sum, error};
}

static bounded loop_real(expression *x, node *n) {
    if (is_known(x, n))
        return n->known;
    int64_t count = compute_whole(x, n->a);
    return n->known = n->kind == NODE_SUM ? loop_sum(x, n, count) : loop_best(x, n, count);
}

/* Real numbers -------------------------------------------------------------------------------- */

/* A result with the error that its operands gave it and its own roundings. */
static bounded make(const expression *x, double value, double carried, double roundings) {
    double size = fabs(value);
    if (!isfinite(value))
        return (bounded){value, 0};
    double error = carried + roundings * U * size;
    if (size < 2 * (double)FLT_MIN && size > 0)
        error += x->how.flushes ? (double)FLT_MIN : U * (double)FLT_MIN;
    return (bounded){value, error};
}

static bounded add(const expression *x, const node *n, bounded a, bounded b) {
    double value = n->kind == NODE_ADD ? a.value + b.value : a.value - b.value;
    double carried = a.error + b.error;
    if (carried == 0 && !n->is_loose)
        return make(x, value, 0, 1);
    return make(x, value, carried + U * (fabs(a.value) + fabs(b.value)), 0);
}

static bounded divide(const expression *x, bounded a, bounded b) {
    double value = a.value / b.value, carried = 0, size = fabs(b.value);
    if (a.error > 0 || b.error > 0)
        carried = (a.error + fabs(value) * b.error) / fmax(size - b.error, size / 2);
    return make(x, value, carried, x->how.fast ? FAST_DIVISION : DIVIDE);
}

static bounded choose(expression *x, node *n) {
    bool was_doubtful = x->is_doubtful;
    x->is_doubtful = false;
    bool is_yes = compute_whole(x, n->c) != 0, is_doubtful = x->is_doubtful;
    x->is_doubtful = was_doubtful;
    bounded chosen = compute_real(x, is_yes ? n->a : n->b);
    if (is_doubtful) {
        bounded other = compute_real(x, is_yes ? n->b : n->a);
        chosen.error = fmax(chosen.error, fabs(chosen.value - other.value) + other.error);
    }
    return chosen;
}

static bounded from_whole(expression *x, node *n) {
    bool was_doubtful = x->is_doubtful;
    x->is_doubtful = false;
    double value = (double)compute_whole(x, n->a);
    double error = x->is_doubtful ? 1 : 0;
    x->is_doubtful = was_doubtful;
    return (bounded){value, error + (fabs(value) > 0x1p24 ? U * fabs(value) : 0)};
}

static bounded compute_real(expression *x, node *n) {
    bounded a, b = {0, 0};
    switch (n->kind) {
    case NODE_CONSTANT:
        return (bounded){n->real, n->error};
    case NODE_SYMBOL:
        return (bounded){n->symbol->real, 0};
    case NODE_ELEMENT: {
        size_t at = find_element(x, n);
        return x->has_failed ? (bounded){0, 0} : read_real(x, n->symbol, at);
    }
    case NODE_REAL:
        return from_whole(x, n);
    case NODE_CHOICE:
        return choose(x, n);
    case NODE_LOOP_MIN:
    case NODE_LOOP_MAX:
    case NODE_SUM:
        return loop_real(x, n);
    default:
        break;
    }
    a = compute_real(x, n->a);
    if (n->b)
        b = compute_real(x, n->b);
    switch (n->kind) {
    case NODE_ADD:
    case NODE_SUBTRACT:
        return add(x, n, a, b);
    case NODE_MULTIPLY:
        return make(x, a.value * b.value,
                    fabs(a.value) * b.error + (fabs(b.value) + b.error) * a.error, 1);
    case NODE_DIVIDE:
        return divide(x, a, b);
    case NODE_NEGATE:
        return (bounded){-a.value, a.error};
    case NODE_MIN:
    case NODE_MAX:
        return take_best(a, b, n->kind == NODE_MAX);
    default:
        return n->function(x->how, a, b);
    }
}

static int64_t compute_whole(expression *x, node *n) {
    switch (n->kind) {
    case NODE_CONSTANT:
        return n->whole;
    case NODE_SYMBOL:
        return n->symbol->whole;
    case NODE_VARIABLE:
        return x->variables[n->variable];
    case NODE_ELEMENT: {
        size_t at = find_element(x, n);
        return x->has_failed ? 0 : read_whole(n->symbol, at);
    }
    case NODE_NOT:
        return !compute_whole(x, n->a);
    case NODE_AND:
        return compute_whole(x, n->a) && compute_whole(x, n->b);
    case NODE_OR:
        return compute_whole(x, n->a) || compute_whole(x, n->b);
    case NODE_CHOICE:
        return compute_whole(x, n->c) ? compute_whole(x, n->a) : compute_whole(x, n->b);
    case NODE_LESS:
    case NODE_NOT_MORE:
    case NODE_EQUAL:
        return compare(x, n);
    case NODE_WHOLE:
        return truncate(x, n);
    case NODE_LOOP_MIN:
    case NODE_LOOP_MAX:
        return loop_whole(x, n);
    default:
        return compute_binary(x, n);
    }
}

void expression_start(expression *x, arithmetic how) {
    x->how = how;
    x->started++;
}

bool expression_compute(expression *x, const int64_t *indices, bounded *out, err *e) {
    x->e = e;
    x->has_failed = x->is_doubtful = false;
    for (int i = 0; indices && i < EXPRESSION_AXES; i++)
        x->variables[i] = indices[i];
    if (x->root->is_whole) {
        x->whole = compute_whole(x, x->root);
        *out = (bounded){(double)x->whole, x->is_doubtful ? 1 : 0};
    } else {
        *out = compute_real(x, x->root);
    }
    return !x->has_failed;
}

int64_t expression_get_whole(const expression *x) {
    return x->whole;
}
