/* held_out: shapes that an op does not list, drawn at random. A kernel that is right only for the
 * listed ones is wrong for these. */
#pragma once

#include "op.h"

enum { HELD_OUT_MOST = 64 };

/* Up to `count` different shapes that the kernel takes; fewer where it takes few others. The same
 * seed gives the same shapes. Returns their number. */
size_t held_out_make_shapes(const op *o, const kernel *k, uint64_t seed, size_t count,
                            shape out[HELD_OUT_MOST]);
