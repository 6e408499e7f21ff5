/* caches: where the last-level cache ends, seen in how fast buffers of growing size are read.
 *
 * Bandwidth by size is a staircase that goes down: each step is a cache that no longer holds the
 * buffer. The last step is the last-level cache. */
#pragma once

#include <stddef.h>

/* Largest size that is still read faster than memory is, by a fifth or more of what the largest
 * ones get; 0 where there is no such step (slow kernels do not see caches). Sizes ascend by factors
 * of 2, gb_s (count) belongs to them. */
size_t caches_find_last(const size_t *sizes, const double *gb_s, size_t count);
