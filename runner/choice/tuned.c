/* tuned: see tuned.h. The table in memory; tuned_file.c reads and writes it. */
#include "tuned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

tuned_row tuned_row_new(const choice *c) {
    return (tuned_row){.choice = *c, .gain = NAN, .low = NAN, .high = NAN};
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

void tuned_drop(tuned *t, const choice *c) {
    size_t i = find_place(t, c);
    if (!is_at(t, i, c))
        return;
    t->count--;
    memmove(&t->items[i], &t->items[i + 1], (t->count - i) * sizeof *t->items);
}

tuned *tuned_copy(const tuned *t) {
    tuned *out = tuned_new();
    for (size_t i = 0; i < t->count; i++)
        tuned_put(out, &t->items[i]);
    return out;
}

const kernel *tuned_find(const tuned *t, const choice *c) {
    const tuned_row *best = NULL;
    double nearest = CHOICE_NEAR;
    for (size_t i = 0; i < t->count; i++) {
        double distance = choice_find_distance(&t->items[i].choice, c);
        if (distance <= nearest) {
            best = &t->items[i];
            nearest = distance;
        }
    }
    return best && choice_takes(c, best->way, NULL) ? best->way : NULL;
}
