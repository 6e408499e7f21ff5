/* guard: kernels that store at an index made from their thread's position in the grid, and never
 * check whether it is in range.
 *
 * A grid is usually rounded up to whole threadgroups, so such a kernel writes past the end. Whether
 * it does depends on the launch, and tokens do not tell what an expression means: this is a
 * warning. A check is any comparison, min, clamp, % or & that has the position, or a
 * variable made from it, in it. */
#include "internal.h"

#include <string.h>

enum { MOST_NAMES = 64 };

/* Names that hold the position, or something computed from it. */
typedef struct {
    const tokens *t;
    const kernel *kernel;
    at names[MOST_NAMES];
    size_t count;
} taint;

static bool is_same(const tokens *t, at a, at b) {
    return t->list[a].bytes == t->list[b].bytes &&
           memcmp(token_text(t, a), token_text(t, b), t->list[a].bytes) == 0;
}

static bool is_tainted(const taint *n, at i) {
    const tokens *t = n->t;
    if (t->list[i].kind != TOKEN_WORD || token_is(t, token_before(i), ".") ||
        token_is(t, token_before(i), "->"))
        return false;
    for (size_t k = 0; k < n->count; k++)
        if (is_same(t, n->names[k], i))
            return true;
    return false;
}

static bool has_taint(const taint *n, at begin, at end) {
    for (at i = begin; i < end; i++)
        if (is_tainted(n, i))
            return true;
    return false;
}

static void add_name(taint *n, at i) {
    if (n->count < MOST_NAMES && !is_tainted(n, i))
        n->names[n->count++] = i;
}

static void add_positions(taint *n) {
    const tokens *t = n->t;
    at open = n->kernel->where.open, close = t->list[open].pair;
    for (size_t p = 0; p < n->kernel->count; p++) {
        const msl_param *param = &n->kernel->params[p];
        for (at i = open + 1; i < close; i++)
            if (param->kind == MSL_THREAD_POSITION_IN_GRID && token_is(t, i, param->name))
                add_name(n, i);
    }
}

/* Where the statement that i is in ends. */
static at end_statement(const tokens *t, at i, at end) {
    for (; i < end && !token_is(t, i, ";") && !token_is(t, i, "}"); i++)
        if (t->list[i].pair != NOT_FOUND && t->list[i].pair > i)
            i = t->list[i].pair;
    return i;
}

/* `uint row = gid.y * 4;` taints row. */
static void add_variables(taint *n) {
    const tokens *t = n->t;
    for (at i = n->kernel->where.body; i < n->kernel->where.end; i++)
        if (token_is(t, i, "=") && t->list[i - 1].kind == TOKEN_WORD &&
            t->list[i - 2].kind == TOKEN_WORD &&
            has_taint(n, i + 1,
                      tokens_end_item(t, i + 1, end_statement(t, i, n->kernel->where.end))))
            add_name(n, i - 1);
}

/* The operands around i: up to the brackets, commas and semicolons on both sides. */
static range find_operands(const tokens *t, at i, at first, at last) {
    static const char *const stops[] = {";", ",", "{", "}", "?", "&&", "||", "=", "return", NULL};
    range r = {i, i};
    while (r.begin > first && !token_is_one_of(t, r.begin - 1, stops) &&
           (t->list[r.begin - 1].pair == NOT_FOUND || t->list[r.begin - 1].pair < r.begin - 1))
        r.begin = t->list[r.begin - 1].pair != NOT_FOUND ? t->list[r.begin - 1].pair : r.begin - 1;
    while (r.end < last && !token_is_one_of(t, r.end, stops) &&
           (t->list[r.end].pair == NOT_FOUND || t->list[r.end].pair > r.end))
        r.end = t->list[r.end].pair != NOT_FOUND ? t->list[r.end].pair + 1 : r.end + 1;
    return r;
}

static bool has_guard(const taint *n) {
    static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!=", "%", "&", NULL};
    static const char *const calls[] = {"min", "clamp", "select", "any", "all", NULL};
    const tokens *t = n->t;
    at body = n->kernel->where.body, end = n->kernel->where.end;
    for (at i = body; i < end; i++) {
        if (token_is_one_of(t, i, comparisons)) {
            range r = find_operands(t, i, body, end);
            if (has_taint(n, r.begin, r.end))
                return true;
        } else if (token_is_one_of(t, i, calls) && token_is(t, i + 1, "(") &&
                   has_taint(n, i + 1, t->list[i + 1].pair)) {
            return true;
        }
    }
    return false;
}

static bool is_device_output(const kernel *k, const tokens *t, at i) {
    for (size_t p = 0; p < k->count; p++)
        if (k->params[p].kind == MSL_BUFFER && k->params[p].space == MSL_SPACE_DEVICE &&
            !k->params[p].is_const && token_is(t, i, k->params[p].name))
            return true;
    return false;
}

/* `out[i] = ` and `out[i].x += `: the token of `out`, or NOT_FOUND. */
static at find_store(const taint *n) {
    static const char *const stores[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "<<=", ">>=", "--", NULL};
    const tokens *t = n->t;
    for (at i = n->kernel->where.body; i < n->kernel->where.end; i++) {
        if (!is_device_output(n->kernel, t, i) || !token_is(t, i + 1, "["))
            continue;
        at after = t->list[i + 1].pair + 1;
        if (token_is(t, after, "."))
            after += 2;
        if (token_is_one_of(t, after, stores) && has_taint(n, i + 2, t->list[i + 1].pair))
            return i;
    }
    return NOT_FOUND;
}

at guard_find_missing(const msl_unit *u, const kernel *k) {
    taint n = {.t = &u->tokens, .kernel = k};
    if (k->where.body == NOT_FOUND || k->problem)
        return NOT_FOUND;
    add_positions(&n);
    if (n.count == 0)
        return NOT_FOUND;
    add_variables(&n);
    at store = find_store(&n);
    return store != NOT_FOUND && !has_guard(&n) ? store : NOT_FOUND;
}
