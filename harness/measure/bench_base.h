/* bench_base: the same case in an earlier version of the kernels. */
#pragma once

#include "bench.h"

/* What a case of ours was in the base: the kernel of its name, or the only one of its op that is gone now
 * where ours is the only new one (it was renamed), launched as the base's own description says. An
 * error if the base does not have it. */
bool bench_base_find(const bench_base *b, library *lib, const kernel_case *ours, kernel_case *out,
                     err *e);

/* Lets the base work on our buffers where they are the same in number, size and contents: a second set
 * would map to the caches differently, and that would look like a difference between kernels. */
bool bench_base_share_buffers(const tape *ours, tape *base, err *e);
