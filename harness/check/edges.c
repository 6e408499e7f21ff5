/* edges: see edges.h. Makes numbers; runs nothing. */
#include "edges.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MOST_EDGES = SHAPE_DIMS * 16 };

/* A shape with more values is too large to be run for the sake of an edge. A position costs little:
 * 32 of them count as one. */
static const double most_values = 524288;
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

/* Of what a dimension is a multiple for this kernel. */
static uint32_t get_unit(const cover *c, int dim) {
    const kernel *k = c->kernel;
    uint32_t block = k->format ? (uint32_t)k->format->values : 1;
    if (!c->op->inner || op_find_dim(c->op, c->op->inner) != dim)
        return 1;
    return k->multiple_of > block ? k->multiple_of : block;
}

static void add_edge(cover *c, int dim, uint32_t value) {
    assert(c->count < MOST_EDGES);
    c->edges[c->count++] = (edge){.dim = dim, .value = value};
}

/* A position is tried around 256, 128, 64 and 32: only a launch at it shows what is wrong there. For a
 * size 256 is enough, because it is also a multiple of the others, and all indices below it are used.
 * Sizes of less are the edges of a kernel's own tiles, which its listed shapes have. */
static void add_dim(cover *c, const char *name, bool is_place) {
    int dim = op_find_dim(c->op, name);
    assert(dim >= 0);
    if (c->op->many && strcmp(name, c->op->many) == 0 && c->kernel->tokens == 0)
        return;
    uint32_t unit = get_unit(c, dim);
    c->is_place[dim] = is_place;
    for (uint32_t power = 256; power >= (is_place ? 32 : 256); power /= 2)
        for (uint32_t value = power + 1; value >= power - 1; value--)
            add_edge(c, dim, value * unit);
    add_edge(c, dim, unit);
}

static void add_dims(cover *c, const char *names, bool is_place) {
    char name[32];
    int end = 0;
    for (const char *p = names; p && sscanf(p, "%31s%n", name, &end) == 1; p += end)
        add_dim(c, name, is_place);
}

static void mark_done(cover *c, const shape *s) {
    for (size_t i = 0; i < c->count; i++)
        c->edges[i].is_done |= s->dim[c->edges[i].dim] == c->edges[i].value;
}

static bool is_possible(const cover *c, const shape *s) {
    double values = 1;
    for (int i = 0; i < SHAPE_DIMS; i++)
        values *= 1 + (c->is_place[i] ? s->dim[i] / PLACES_A_VALUE : s->dim[i] ? s->dim[i] - 1 : 0);
    return values <= most_values && op_takes(c->op, c->kernel, s, NULL);
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

size_t edges_make_shapes(const op *o, const kernel *k, shape out[EDGE_SHAPES]) {
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

uint32_t edges_get_index(rng *r, uint32_t i, uint32_t n) {
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
