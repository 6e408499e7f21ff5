/* shadow: who touched a word of memory last, and whether that races with who touches it now. */
#ifndef ASSAY_SOFT_SHADOW_H
#define ASSAY_SOFT_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* Who accesses, and when: what was ordered before it by barriers. */
typedef struct {
    uint32_t group;      /* threadgroup of the launch, from 1 */
    uint16_t thread;     /* index in the threadgroup */
    uint32_t epoch;      /* threadgroup barriers passed that order this kind of memory */
    uint32_t simd_epoch; /* simdgroup barriers passed since, likewise */
} shadow_time;

/* One aligned word of 4 bytes. Masks say which of its bytes. */
typedef struct {
    shadow_time wrote, read;
    const void *wrote_at, *read_at; /* addresses in the kernel */
    uint8_t wrote_bytes, read_bytes;
    bool wrote_atomically;
    bool read_atomically;
    bool many_read;   /* by several threads of the simdgroup of `read` */
    bool simds_read;  /* by several simdgroups */
    bool groups_read; /* by several threadgroups */
} shadow_cell;

typedef enum { SHADOW_FINE, SHADOW_RACE_IN_GROUP, SHADOW_RACE_OF_GROUPS } shadow_verdict;

/* Judges an access to the bytes `mask` of a word and remembers it. *other is where the other access
 * of a race was made. */
shadow_verdict shadow_access(shadow_cell *c, const shadow_time *now, uint8_t mask, bool is_store,
                             bool is_atomic, const void *at, const void **other);

#endif
