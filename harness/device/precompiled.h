/* precompiled: the headers that every kernel is compiled with, read once by the compiler and kept in
 * the cache, because reading them again is more than half of a compile.
 *
 * They only save time: where they cannot be made, kernels are compiled without them; and what does
 * not compile with them is compiled again without, so that no error and no message is theirs. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "code_cache.h"

/* For one set of options; all zero at first. */
typedef struct {
    bool was_tried;
    char path[PATH_MAX]; /* "" if it cannot be made */
} precompiled;

/* The file for -include-pch, made if it does not exist; NULL if it cannot be made. options: the
 * compiler and its options (-c or -S too), with the headers as -include, ending with NULL. how: tells
 * the options from others of the same cache. */
const char *precompiled_find(precompiled *p, const code_cache *cache, uint32_t how,
                             const char *const *options);
