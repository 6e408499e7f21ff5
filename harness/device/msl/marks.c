/* marks: what is added to a kernel's text for checked mode.
 *
 * Statements: a trace shows in which one something happened. `sum += a / b;` becomes
 * `sum += a / b, ASSAY_STEP;`, `float c = a / b;` is followed by a statement, and `return a / b;` gets
 * a variable whose life ends after the value is there. Only statements of function bodies that begin
 * with `return` or an ordinary word are marked; any other counts as part of the next one that is, as
 * does all of a constexpr function, which the compiler may have to evaluate.
 *
 * Loops that wait for a lock: lanes of a simdgroup run in step, and the one that gets the lock waits,
 * at the end of the loop, for those that still try. A lock that is given back inside of the loop is
 * right. So is one that lanes take in turn, each in its own pass of an outer loop (`if (lane == k)`). */
#include "internal.h"

#include <string.h>

/* Statements ---------------------------------------------------------------------------------- */

static bool begins_other(const tokens *t, at i) {
    return !token_is_word(t, i) ||
           token_is_one_of(t, i,
                           "return goto break continue else case default using typedef do struct "
                           "class union enum if for while switch static constexpr template throw "
                           "namespace extern static_assert alignas asm __asm__ kernel public "
                           "threadgroup constant __attribute__");
}

/* Tokens that a statement may follow; a ')' only if it closes an if, for or while. */
static bool can_begin_after(const tokens *t, at i) {
    const at open = token_is(t, i, ")") ? t->list[i].pair : NOT_FOUND;
    return token_is_one_of(t, i, "{ } ; else do") ||
           (open != NOT_FOUND && open > 0 &&
            token_is_one_of(t, open - 1, "if for while constexpr"));
}

/* The ';' of the statement at i, or NOT_FOUND if a block comes first. */
static at find_end(const tokens *t, at i, at close) {
    i = tokens_find(t, i, close, "; }");
    return i < close && token_is(t, i, ";") ? i : NOT_FOUND;
}

/* Two words side by side, or a word and a name after its template arguments or marks: a type and
 * what it declares. An expression has no two words without something between them. */
static bool is_declaration(const tokens *t, at i, at end) {
    at last = i;
    for (at k = i + 1; k < end; k++) {
        if (token_is(t, k, "<")) {
            at angle = tokens_close_angle(t, k);
            if (angle == NOT_FOUND || angle >= end)
                return false;
            k = last = angle;
            continue;
        }
        /* `T *p = x` against `a * b`: a product whose value is unused is unlikely. */
        if (token_is_one_of(t, k, "* &"))
            return token_is_word(t, k + 1);
        if (token_is_word(t, k) && k == last + 1)
            return true;
        if (!token_is(t, k, "::"))
            return false;
        last = k;
    }
    return false;
}

static void mark_return(edits *d, at i, at close) {
    const at end = find_end(&d->unit->tokens, i, close);
    if (end == NOT_FOUND || end == i + 1 || d->edit[i] || d->edit[end])
        return;
    d->edit[i] = "{ ASSAY_LAST_STEP; return";
    d->edit[end] = "; }";
}

static void mark_body(edits *d, at open) {
    const tokens *t = &d->unit->tokens;
    at close = t->list[open].pair;
    for (at i = open; i < close; i++) {
        if (token_is(t, i, "(") && t->list[i].pair < close)
            i = t->list[i].pair; /* the ';' of a for are not ends of statements */
        if (token_is(t, i + 1, "return"))
            mark_return(d, i + 1, close);
        if (!can_begin_after(t, i) || begins_other(t, i + 1))
            continue;
        at end = find_end(t, i + 1, close);
        if (end != NOT_FOUND && !d->edit[end] && !(d->edit[i + 1] && !*d->edit[i + 1]))
            d->edit[end] = is_declaration(t, i + 1, end) ? "; ASSAY_STEP;" : ", ASSAY_STEP;";
    }
}

void marks_add_steps(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (size_t i = 0; i < t->decl_count; i++) {
        const decl *f = &t->decls[i];
        if (f->kind == DECL_FUNCTION && f->body != NOT_FOUND &&
            !tokens_have(t, f->begin, f->open, "constexpr"))
            mark_body(d, f->body);
    }
}

/* Loops that wait for a lock ------------------------------------------------------------------ */

static const char exchange[] = "atomic_exchange_explicit";
static const char compare[] = "atomic_compare_exchange_weak_explicit";

/* Is the argument with this number of a call a number, true or false, perhaps as `uint(1)`? A counter
 * or a new value has a name. */
static bool is_constant(const tokens *t, at call, int number) {
    if (!token_is(t, call + 1, "("))
        return false;
    const at close = t->list[call + 1].pair;
    at i = call + 2, end = tokens_end_item(t, i, close);
    for (; number > 0 && end < close; number--) {
        i = end + 1;
        end = tokens_end_item(t, i, close);
    }
    bool has_value = false;
    for (; i < end && number == 0; i++) {
        if (token_is_word(t, i) && !token_is_one_of(t, i, "true false uint int ulong"))
            return false;
        has_value = has_value || t->list[i].kind == TOKEN_NUMBER || token_is_word(t, i);
    }
    return has_value;
}

static bool gives_back(const tokens *t, at i) {
    return token_is(t, i, "atomic_store_explicit") && is_constant(t, i, 1);
}

static at end_statement(const tokens *t, at i) {
    while (i < t->count && !token_is_one_of(t, i, "; {"))
        i = token_is(t, i, "(") ? t->list[i].pair + 1 : i + 1;
    return token_is(t, i, "{") ? t->list[i].pair + 1 : i + 1;
}

/* The loop that begins at i, whole; false if none does. */
static bool is_loop(const tokens *t, at i, range *loop) {
    bool is_headed = token_is_one_of(t, i, "while for") && token_is(t, i + 1, "(");
    if (!is_headed && !token_is(t, i, "do"))
        return false;
    const at body = is_headed ? t->list[i + 1].pair + 1 : i + 1;
    *loop = (range){i, end_statement(t, body)};
    if (!is_headed && token_is(t, loop->end, "while")) /* of a do */
        loop->end = t->list[loop->end + 1].pair + 1;
    return true;
}

/* Is there an `if (a == b)` in the loop before i, around it? */
static bool is_in_turn(const tokens *t, range loop, at i) {
    for (at k = loop.begin; k < i; k++) {
        if (!token_is(t, k, "if") || !token_is(t, k + 1, "(") || t->list[k + 1].pair > i)
            continue;
        const at close = t->list[k + 1].pair;
        if (end_statement(t, close + 1) > i && tokens_have(t, k + 2, close, "=="))
            return true;
    }
    return false;
}

/* The innermost loop around i gives nothing back, and no loop around it takes lanes in turn. */
static bool spins(const tokens *t, at i) {
    range inner = {0, 0}, loop;
    bool in_turn = false;
    for (at k = i < 4096 ? 0 : i - 4096; k < i; k++)
        if (is_loop(t, k, &loop) && loop.end > i) {
            in_turn = in_turn || is_in_turn(t, loop, i);
            inner = loop;
        }
    for (at k = inner.begin; k < inner.end; k++)
        if (gives_back(t, k))
            return false;
    return inner.end > 0 && !in_turn;
}

void marks_add_spins(edits *d) {
    const tokens *t = &d->unit->tokens;
    bool has_locks = false;
    for (at i = 0; i < t->count && !has_locks; i++)
        has_locks = gives_back(t, i);
    for (at i = 0; i < t->count && has_locks; i++) {
        const bool is_exchange = token_is(t, i, exchange);
        if ((is_exchange || token_is(t, i, compare)) && is_constant(t, i, is_exchange ? 1 : 2) &&
            !d->edit[i] && spins(t, i))
            d->edit[i] = is_exchange ? "assay_lock_exchange" : "assay_lock_compare";
    }
}
