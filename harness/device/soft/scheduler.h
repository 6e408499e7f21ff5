/* scheduler: runs one threadgroup on the calling OS thread, its GPU threads as fibers. */
#pragma once

#include "abi.h"
#include "harness/base/err.h"

soft_worker *soft_worker_new(err *e);
void soft_worker_free(soft_worker *w);

/* Once a launch and worker: places dynamic threadgroup memory, forgets the static one. */
void soft_worker_begin(soft_worker *w, const soft_launch *l);

/* Runs the threadgroup at a position of the grid to its end. */
void soft_worker_run(soft_worker *w, const soft_kernel *k, const soft_u32 position[3]);
