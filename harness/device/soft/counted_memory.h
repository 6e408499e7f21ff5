/* counted_memory: what one access of a simdgroup does to memory: sectors, lines, banks, bytes that are read
 * again, and caches.
 *
 * The caches have 16 ways, replace the sector that was used least recently, and see sectors in the order in
 * which the software device runs simdgroups, one after the other: 8 KB that are empty when a threadgroup
 * begins; what misses there goes to 64 KB, and from there to 8 MB, both empty when the launch begins. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "harness/device/counts.h"

enum { ACCESS_LANES = 32 };

/* One access of a simdgroup. */
typedef struct {
    uint64_t at[ACCESS_LANES];  /* of the lanes that take part, in order */
    uint8_t lane[ACCESS_LANES]; /* which these are */
    int lanes;
    uint32_t bytes; /* of each lane */
    bool is_load, is_atomic;
} simd_access;

typedef struct counted_memory counted_memory;

counted_memory *counted_memory_new(void);
void counted_memory_free(counted_memory *m);

/* A launch begins, with no buffers; a buffer; a threadgroup begins; a simdgroup goes on. */
void counted_memory_begin(counted_memory *m);
void counted_memory_add(counted_memory *m, uint64_t begin, uint64_t bytes, count_space space,
                        bool is_once);
void counted_memory_begin_group(counted_memory *m);
void counted_memory_begin_simdgroup(counted_memory *m, uint32_t index);

/* A load of a buffer that is_once, whose value the simdgroup has already? Else it has from now on. */
bool counted_memory_is_had(counted_memory *m, uint64_t at, uint32_t site, int lanes);
/* Such a buffer, i = 0 and on, that was loaded: at which site, by how many simdgroups and lanes. */
typedef struct {
    uint32_t site;
    uint64_t simdgroups, lanes;
} counted_once;
bool counted_memory_get_once(const counted_memory *m, int i, counted_once *out);

/* Is it in a buffer? Of which space? */
bool counted_memory_find(counted_memory *m, uint64_t at, count_space *space);

void counted_memory_device(counted_memory *m, const simd_access *a, uint64_t n[COUNT_FIELDS]);
void counted_memory_threadgroup(const simd_access *a, uint64_t n[COUNT_FIELDS]);
