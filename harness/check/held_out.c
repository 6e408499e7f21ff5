/* held_out: see held_out.h. Draws numbers; runs nothing.
 *
 * A shape is a listed one with some of its sizes and positions drawn again: small ones as often as
 * large ones, up to the largest that is listed. Two in four have a size that is larger than any that is
 * listed, and others that are small. Whether the kernel takes it is the op's to say. */
#include "held_out.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* As many values as an edge shape may have, so that held-out cases take no longer than edges. */
static const double most_values = 262144;
enum { TRIES = 200, LONG = 4096 };

typedef struct {
    const op *op;
    const kernel *kernel;
    bool is_free[SHAPE_DIMS];
    uint32_t unit[SHAPE_DIMS], most[SHAPE_DIMS];
    rng random;
} draw;

static void free_dims(draw *d, const char *names) {
    char name[32];
    int end = 0;
    for (const char *p = names; p && sscanf(p, "%31s%n", name, &end) == 1; p += end)
        if (op_find_dim(d->op, name) >= 0)
            d->is_free[op_find_dim(d->op, name)] = true;
}

/* An op that does not say which of its dimensions are sizes has no others. */
static void find_dims(draw *d) {
    const op *o = d->op;
    const kernel *k = d->kernel;
    const shape_list *listed = op_get_shapes(o, k);
    int inner = o->inner ? op_find_dim(o, o->inner) : -1;
    free_dims(d, o->sizes);
    free_dims(d, o->places);
    free_dims(d, o->inner);
    free_dims(d, k->tokens ? o->many : NULL);
    for (int i = 0; i < SHAPE_DIMS; i++) {
        uint32_t block = k->format ? (uint32_t)k->format->values : 1;
        d->is_free[i] |= !o->sizes && !o->places;
        d->unit[i] = i != inner ? 1 : k->multiple_of > block ? k->multiple_of : block;
        d->most[i] = listed->any_input.dim[i];
        for (size_t s = 0; s < listed->count; s++)
            if (listed->items[s].dim[i] > d->most[i] && op_takes(o, k, &listed->items[s], NULL))
                d->most[i] = listed->items[s].dim[i];
    }
}

static uint32_t draw_size(draw *d, int dim) {
    uint32_t most = d->most[dim] / d->unit[dim], bits = 1;
    while (bits < 31 && 1u << bits < most)
        bits++;
    uint32_t size = 1 + rng_below(&d->random, 1u << (1 + rng_below(&d->random, bits)));
    return (size < most || most == 0 ? size : most) * d->unit[dim];
}

/* One of the free sizes, each in its turn, about twice as large as any that is listed, and at least about
 * LONG, as far as most_values lets it; the others small. Work may grow with the square of a size. */
static void draw_long(draw *d, size_t turn, shape *s) {
    int dims[SHAPE_DIMS], count = 0;
    for (int i = 0; i < SHAPE_DIMS; i++)
        if (d->is_free[i] && s->dim[i] > 0) {
            s->dim[i] = (1 + rng_below(&d->random, 3)) * d->unit[i];
            dims[count++] = i;
        }
    if (count == 0)
        return;
    const int at = dims[turn % (size_t)count];
    s->dim[at] = d->unit[at];
    const double most = most_values / shape_count_values(s);
    const double wanted = (d->most[at] > LONG / 2 ? 2.0 * d->most[at] : (double)LONG) / d->unit[at];
    const uint32_t n = most < 2 ? 1 : (uint32_t)(most < wanted ? most : wanted);
    s->dim[at] *= n - rng_below(&d->random, n / 8 + 1);
}

static bool is_listed(const shape_list *l, const shape *s) {
    for (size_t i = 0; i < l->count; i++)
        if (memcmp(&l->items[i], s, sizeof *s) == 0)
            return true;
    return memcmp(&l->any_input, s, sizeof *s) == 0;
}

size_t held_out_make_shapes(const op *o, const kernel *k, uint64_t seed, size_t count,
                            shape out[HELD_OUT_MOST]) {
    draw d = {.op = o, .kernel = k, .random = rng_new(seed, k->name)};
    const shape_list *listed = op_get_shapes(o, k);
    size_t made = 0;
    assert(count <= HELD_OUT_MOST);
    find_dims(&d);
    for (size_t tries = 0; made < count && tries < count * TRIES && listed->count > 0; tries++) {
        shape s = listed->items[rng_below(&d.random, (uint32_t)listed->count)];
        const bool is_long = (made % 4 == 1 || made % 4 == 2) && tries % 8 < 7;
        if (is_long)
            draw_long(&d, made / 4, &s);
        for (int i = 0; i < SHAPE_DIMS && !is_long; i++)
            if (d.is_free[i] && s.dim[i] > 0 && rng_below(&d.random, 4) > 0)
                s.dim[i] = draw_size(&d, i);
        bool is_new = !is_listed(listed, &s) && shape_count_values(&s) <= most_values &&
                      op_takes(o, k, &s, NULL);
        for (size_t i = 0; i < made; i++)
            is_new = is_new && memcmp(&out[i], &s, sizeof s) != 0;
        if (is_new)
            out[made++] = s;
    }
    return made;
}
