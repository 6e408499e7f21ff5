/* tuned: see tuned.h. The table in memory; tuned_file.c reads and writes it. */
#include "tuned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

tuned_row tuned_row_new(const choice *c) {
    return (tuned_row){.choice = *c,
                       .ns = NAN,
                       .rule_ns = NAN,
                       .gain = NAN,
                       .low = NAN,
                       .high = NAN,
                       .samples = NAN,
                       .ways = NAN};
}

tuned *tuned_new(void) {
    return array_new(1, sizeof(tuned));
}

void tuned_free(tuned *t) {
    if (t)
        free(t->items);
    free(t);
}

/* Where a choice is, or would be. */
static size_t find_place(const tuned *t, const choice *c) {
    size_t i = 0;
    while (i < t->count && choice_compare(&t->items[i].choice, c) < 0)
        i++;
    return i;
}

static bool is_at(const tuned *t, size_t i, const choice *c) {
    return i < t->count && choice_compare(&t->items[i].choice, c) == 0;
}

void tuned_put(tuned *t, const tuned_row *r) {
    size_t i = find_place(t, &r->choice);
    if (!is_at(t, i, &r->choice)) {
        t->items = array_grow(t->items, t->count, &t->capacity, sizeof *t->items);
        memmove(&t->items[i + 1], &t->items[i], (t->count - i) * sizeof *t->items);
        t->count++;
    }
    t->items[i] = *r;
}

const tuned_row *tuned_get(const tuned *t, const choice *c) {
    size_t i = find_place(t, c);
    return is_at(t, i, c) ? &t->items[i] : NULL;
}

/* Is everything equal but the size along dimension `at`? */
static bool is_alike(const choice *a, const choice *b, int at) {
    choice moved = *a;
    if (at >= 0)
        moved.shape.dim[at] = b->shape.dim[at];
    return choice_compare(&moved, b) == 0;
}

/* How far apart two sizes are, as a ratio of at least 1. */
static double find_ratio(uint32_t a, uint32_t b) {
    double more = a > b ? a : b, less = a > b ? b : a;
    return (more + 1) / (less + 1); /* a size may be 0 */
}

const kernel *tuned_find(const tuned *t, const choice *c) {
    bool is_tokens;
    int at = choice_find_slide(c->op, &is_tokens);
    uint32_t asked = at < 0 ? 0 : c->shape.dim[at];
    const tuned_row *best = NULL;
    double nearest = INFINITY;
    for (size_t i = 0; i < t->count; i++) {
        const tuned_row *r = &t->items[i];
        uint32_t size = at < 0 ? 0 : r->choice.shape.dim[at];
        if (!is_alike(&r->choice, c, at) || (is_tokens && (size == 1) != (asked == 1)) ||
            !(find_ratio(size, asked) < nearest))
            continue;
        best = r;
        nearest = find_ratio(size, asked);
    }
    return best && choice_takes(c, best->way, NULL) ? best->way : NULL;
}
