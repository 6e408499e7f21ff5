/* spin: finds where a thread waits for a lock in a loop, so that checked mode can tell it.
 *
 * Lanes of a simdgroup run in step: the one that gets the lock waits, at the end of the loop, for
 * those that still try. A lock that is given back inside of the loop is right. So is one that lanes
 * take in turn, each in its own pass of an outer loop (`if (lane == k)`). */
#include "internal.h"

static const char *const takers[] = {"atomic_exchange_explicit",
                                     "atomic_compare_exchange_weak_explicit", NULL};

/* The argument with this number of the call whose '(' is at open. */
static range get_argument(const tokens *t, at open, int number) {
    const at close = t->list[open].pair;
    range r = {open + 1, tokens_end_item(t, open + 1, close)};
    for (; number > 0 && r.end < close; number--)
        r = (range){r.end + 1, tokens_end_item(t, r.end + 1, close)};
    return number > 0 ? (range){close, close} : r;
}

/* A number, true or false, perhaps as `uint(1)`. A counter or a new value has a name. */
static bool is_constant(const tokens *t, range r) {
    static const char *const words[] = {"true", "false", "uint", "int", "ulong", NULL};
    bool has_value = false;
    for (at i = r.begin; i < r.end; i++) {
        bool is_word = t->list[i].kind == TOKEN_WORD;
        if (is_word && !token_is_one_of(t, i, words))
            return false;
        has_value = has_value || t->list[i].kind == TOKEN_NUMBER || is_word;
    }
    return has_value;
}

static bool takes_lock(const tokens *t, at i) {
    return token_is_one_of(t, i, takers) && token_is(t, i + 1, "(") &&
           is_constant(t, get_argument(t, i + 1, token_is(t, i, takers[0]) ? 1 : 2));
}

static bool gives_back(const tokens *t, at i) {
    return token_is(t, i, "atomic_store_explicit") && token_is(t, i + 1, "(") &&
           is_constant(t, get_argument(t, i + 1, 1));
}

static at end_statement(const tokens *t, at i) {
    while (i < t->count && !token_is(t, i, ";") && !token_is(t, i, "{"))
        i = token_is(t, i, "(") ? t->list[i].pair + 1 : i + 1;
    return token_is(t, i, "{") ? t->list[i].pair + 1 : i + 1;
}

/* The loop that begins at i, whole; false if none does. */
static bool is_loop(const tokens *t, at i, range *loop) {
    bool is_headed = (token_is(t, i, "while") || token_is(t, i, "for")) && token_is(t, i + 1, "(");
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
        for (at n = k + 2; n < close && end_statement(t, close + 1) > i; n++)
            if (token_is(t, n, "=="))
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

void spin_rewrite(edits *d) {
    const tokens *t = &d->unit->tokens;
    bool has_locks = false;
    for (at i = 0; i < t->count && !has_locks; i++)
        has_locks = gives_back(t, i);
    for (at i = 0; i < t->count && has_locks; i++)
        if (takes_lock(t, i) && !d->edit[i] && spins(t, i))
            d->edit[i] = token_is(t, i, takers[0]) ? "assay_lock_exchange" : "assay_lock_compare";
}
