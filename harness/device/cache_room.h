/* cache_room: how much room the cache of compiled code takes, what leaves it when it is full, and
 * what compiling cost.
 *
 * The cache has a limit, ASSAY_CACHE_LIMIT or 1 GB. When a file was added and the limit is passed,
 * those that were not used for the longest time leave, until a tenth of the limit is free; files of
 * the last ten minutes stay, because another process may be about to load them. Being used sets a
 * file's time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

typedef struct {
    char path[1024];
    size_t files; /* compiled ones */
    uint64_t bytes, limit;
    double seconds; /* that compiling them took */
} cache_facts;

bool cache_room_find(cache_facts *out, err *e);
/* Removes everything; *removed is how much that was. */
bool cache_room_clear(cache_facts *removed, err *e);

/* For code_cache: a file was used; files were added. */
void cache_room_touch(const char *path);
void cache_room_trim(void);

/* What is compiled between the two, by this process and its workers, and the seconds in which at
 * least one compiler was running. The log is a file that the environment variable ASSAY_COMPILE_LOG
 * names; it is not started twice. */
void cache_room_start_log(void);
void cache_room_note_compile(uint64_t began_ns, uint64_t ended_ns);
bool cache_room_has_compiled(void); /* anything, since the start */
void cache_room_end_log(size_t *count, double *seconds);
