/* shapes: see shapes.h. Makes numbers; runs nothing.
 *
 * A held-out shape is a listed one with some of its sizes and positions drawn again: small ones as often as
 * large ones, up to the largest that is listed. Two in four have a size that is larger than any that is
 * listed, and others that are small. Whether the kernel takes it is the op's to say. */
#include "shapes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Of what a dimension is a multiple for a kernel. */
static uint32_t get_unit(const op *o, const kernel *k, int dim) {
    uint32_t block = k->format ? (uint32_t)k->format->values : 1;
    if (!o->inner || op_find_dim(o, o->inner) != dim)
        return 1;
    return k->multiple_of > block ? k->multiple_of : block;
}

/* The next of the names in a text, as a dimension; -1: there is no more. */
static int next_dim(const op *o, const char **names) {
    char name[32];
    int end = 0;
    if (!*names || sscanf(*names, "%31s%n", name, &end) != 1)
        return -1;
    *names += end;
    int dim = op_find_dim(o, name);
    assert(dim >= 0);
    return dim;
}

/* Edges ---------------------------------------------------------------------------------------- */

enum { MOST_EDGES = SHAPE_DIMS * 16 };

/* A shape with more values is too large to be run for the sake of an edge. A position costs little:
 * 32 of them count as one. */
static const double most_edge_values = 524288;
enum { PLACES_A_VALUE = 32 };

typedef struct {
    int dim;
    uint32_t value;
    bool is_done;
} edge;

typedef struct {
    const op *op;
    const kernel *kernel;
    bool is_place[SHAPE_DIMS];
    edge edges[MOST_EDGES];
    size_t count;
} cover;

static void add_edge(cover *c, int dim, uint32_t value) {
    assert(c->count < MOST_EDGES);
    c->edges[c->count++] = (edge){.dim = dim, .value = value};
}

/* A position is tried around 256, 128, 64 and 32: only a launch at it shows what is wrong there. For a
 * size 256 is enough, because it is also a multiple of the others, and all indices below it are used.
 * Sizes of less are the edges of a kernel's own tiles, which its listed shapes have. */
static void add_dim(cover *c, int dim, bool is_place) {
    if (c->op->many && dim == op_find_dim(c->op, c->op->many) && c->kernel->tokens == 0)
        return;
    uint32_t unit = get_unit(c->op, c->kernel, dim);
    c->is_place[dim] = is_place;
    for (uint32_t power = 256; power >= (is_place ? 32 : 256); power /= 2)
        for (uint32_t value = power + 1; value >= power - 1; value--)
            add_edge(c, dim, value * unit);
    add_edge(c, dim, unit);
}

static void add_dims(cover *c, const char *names, bool is_place) {
    for (int dim; (dim = next_dim(c->op, &names)) >= 0;)
        add_dim(c, dim, is_place);
}

static void mark_done(cover *c, const shape *s) {
    for (size_t i = 0; i < c->count; i++)
        c->edges[i].is_done |= s->dim[c->edges[i].dim] == c->edges[i].value;
}

static bool is_possible(const cover *c, const shape *s) {
    double values = 1;
    for (int i = 0; i < SHAPE_DIMS; i++)
        values *= 1 + (c->is_place[i] ? s->dim[i] / PLACES_A_VALUE : s->dim[i] ? s->dim[i] - 1 : 0);
    return values <= most_edge_values && op_takes(c->op, c->kernel, s, NULL);
}

/* Puts as many dimensions of s at an edge as possible, those from `first` on before the others. */
static bool fill_shape(cover *c, int first, shape *s) {
    bool has_changed = false;
    for (int k = 0; k < SHAPE_DIMS; k++) {
        bool is_set = false;
        for (size_t i = 0; i < c->count && !is_set; i++) {
            const edge *x = &c->edges[i];
            shape tried = *s;
            tried.dim[x->dim] = x->value;
            is_set = !x->is_done && x->dim == (first + k) % SHAPE_DIMS && is_possible(c, &tried);
            if (is_set)
                *s = tried;
        }
        has_changed |= is_set;
    }
    return has_changed;
}

size_t shapes_make_edges(const op *o, const kernel *k, shape out[EDGE_SHAPES]) {
    cover c = {.op = o, .kernel = k};
    const shape_list *listed = op_get_shapes(o, k);
    size_t count = 0;
    add_dims(&c, o->sizes, false);
    add_dims(&c, o->places, true);
    for (size_t i = 0; i < listed->count; i++)
        if (op_takes(o, k, &listed->items[i], NULL))
            mark_done(&c, &listed->items[i]);
    for (int first = 0, failed = 0; failed < SHAPE_DIMS && count < EDGE_SHAPES; first++) {
        out[count] = listed->any_input;
        bool is_new = fill_shape(&c, first % SHAPE_DIMS, &out[count]);
        failed = is_new ? 0 : failed + 1;
        if (is_new)
            mark_done(&c, &out[count++]);
    }
    return count;
}

uint32_t shapes_get_index(rng *r, uint32_t i, uint32_t n) {
    assert(n > 0);
    const uint32_t ends[] = {n - 1, 0, n > 1 ? n - 2 : 0};
    if (i < 3)
        return ends[i];
    i -= 3;
    for (uint32_t power = 1u << 31; power > 0; power /= 2)
        for (uint32_t index = power + 1; index >= power - 1 && index + 1 > 0; index--)
            if (index < n && i-- == 0)
                return index;
    return rng_below(r, n);
}

/* Held out ------------------------------------------------------------------------------------- */

/* So that held-out cases take no longer than edges. */
static const double most_drawn_values = 262144;
enum { TRIES = 200, LONG = 4096 };

typedef struct {
    const op *op;
    const kernel *kernel;
    bool is_free[SHAPE_DIMS];
    uint32_t unit[SHAPE_DIMS], most[SHAPE_DIMS];
    rng random;
} draw;

static void free_dims(draw *d, const char *names) {
    for (int dim; (dim = next_dim(d->op, &names)) >= 0;)
        d->is_free[dim] = true;
}

/* An op that does not say which of its dimensions are sizes has no others. */
static void find_dims(draw *d) {
    const op *o = d->op;
    const kernel *k = d->kernel;
    const shape_list *listed = op_get_shapes(o, k);
    free_dims(d, o->sizes);
    free_dims(d, o->places);
    free_dims(d, o->inner);
    free_dims(d, k->tokens ? o->many : NULL);
    for (int i = 0; i < SHAPE_DIMS; i++) {
        d->is_free[i] |= !o->sizes && !o->places;
        d->unit[i] = get_unit(o, k, i);
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
 * LONG, as far as most_drawn_values lets it; the others small. Work may grow with the square of a size. */
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
    const double most = most_drawn_values / shape_count_values(s);
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

size_t shapes_make_held_out(const op *o, const kernel *k, uint64_t seed, size_t count,
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
        bool is_new = !is_listed(listed, &s) && shape_count_values(&s) <= most_drawn_values &&
                      op_takes(o, k, &s, NULL);
        for (size_t i = 0; i < made; i++)
            is_new = is_new && memcmp(&out[i], &s, sizeof s) != 0;
        if (is_new)
            out[made++] = s;
    }
    return made;
}
