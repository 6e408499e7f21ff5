#include "caches.h"

#include "harness/base/stats.h"

#define STEP 1.2 /* times the bandwidth of memory */

size_t caches_find_last(const size_t *sizes, const double *gb_s, size_t count) {
    if (count < 4)
        return 0;
    /* Bandwidth of memory: the two largest sizes, which exceed any cache or there is no step. */
    double memory = stats_compute(gb_s + count - 2, 2).mean;
    for (size_t i = count - 2; i-- > 0;)
        /* One size alone may be noise; the one below it must be fast as well. */
        if (gb_s[i] >= STEP * memory && (i == 0 || gb_s[i - 1] >= STEP * memory))
            return sizes[i];
    return 0;
}
