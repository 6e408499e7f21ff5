/* matvec_parts: what the ops that multiply a matrix by vectors share. */
#pragma once

#include "harness/check/op.h"

/* Are the buffers those of a product of these sizes? Cuts x and y down to what it uses. */
bool matvec_check(const kernel *k, slice *w, slice *x, slice *y, uint32_t out_dim, uint32_t in_dim,
                  uint32_t batch, err *e);

/* k->rows rows and k->tokens tokens per threadgroup of k->group threads. */
void matvec_set_grid(launch *l, const kernel *k, uint32_t out_dim, uint32_t batch);
