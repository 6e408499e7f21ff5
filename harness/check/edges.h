/* edges: the numbers at which index arithmetic goes wrong, and shapes that put every size and
 * position of a kernel at each of them.
 *
 * An edge is the first or the last of a range, or a power of two and its neighbours: where a
 * simdgroup, a threadgroup, a tile or a type ends. */
#pragma once

#include "op.h"

enum { EDGE_SHAPES = 32 };

/* Shapes with op.sizes and op.places at their edges: few, because each has several dimensions at
 * one. Edges that a listed shape has are left out. Returns their number. */
size_t edges_make_shapes(const op *o, const kernel *k, shape out[EDGE_SHAPES]);

/* Number i of the indices below n that a case should use: the last, the first, the last but one,
 * then around each power of two, the largest first; after those at random. */
uint32_t edges_get_index(rng *r, uint32_t i, uint32_t n);
