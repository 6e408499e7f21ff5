/* shapes: shapes that an op does not list: at the edges where index arithmetic goes wrong, and held out, drawn
 * at random. A kernel that is right only for the listed ones is wrong for these.
 *
 * An edge is the first or the last of a range, or a power of two and its neighbours: where a
 * simdgroup, a threadgroup, a tile or a type ends. */
#pragma once

#include "op.h"

enum { EDGE_SHAPES = 32, HELD_OUT_MOST = 64 };

/* Shapes with op.sizes and op.places at their edges: few, because each has several dimensions at
 * one. Edges that a listed shape has are left out. Returns their number. */
size_t shapes_make_edges(const op *o, const kernel *k, shape out[EDGE_SHAPES]);

/* Number i of the indices below n that a case should use: the last, the first, the last but one,
 * then around each power of two, the largest first; after those at random. */
uint32_t shapes_get_index(rng *r, uint32_t i, uint32_t n);

/* Up to `count` different shapes that the kernel takes; fewer where it takes few others. The same
 * seed gives the same shapes. Returns their number. */
size_t shapes_make_held_out(const op *o, const kernel *k, uint64_t seed, size_t count,
                            shape out[HELD_OUT_MOST]);
