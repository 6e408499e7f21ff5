/* matvec_parts: what the ops that multiply a matrix by vectors share. */
#pragma once

#include "record.h"

/* Where x must start. */
size_t matvec_get_x_alignment(const kernel *k);

/* W (out_dim, in_dim), and `values` of x, as arguments of a launch. */
#define MATVEC_W(k, w, out_dim, in_dim)                                                            \
    ARG_WEIGHTS("w", w, (k)->format, out_dim, in_dim, matvec_get_alignment(k))
#define MATVEC_X(k, x, values)                                                                     \
    ARG_BUFFER("x", x, values, ACCESS_READ, ELEM_F32, matvec_get_x_alignment(k))
