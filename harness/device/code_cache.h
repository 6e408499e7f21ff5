/* code_cache: compiled kernels on disk, each named by the hash of everything that made it.
 *
 * Text, shim, flags and compiler are in the name, so a changed kernel is another file and a stale
 * one is never used. A file is written under another name and renamed, and one process at a time
 * makes it: others that need it wait. A checksum is kept beside it, with the seconds
 * that compiling took, so a damaged file is compiled again and never used. cache_room.h bounds it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/base/sha256.h"

typedef struct {
    char folder[PATH_MAX];
    char base[65]; /* hash of compiler, flags and shim */
} code_cache;

/* What every file of a cache depends on, added to a hash piece by piece. */
void code_cache_hash_texts(sha256 *h, const char *const *texts, int count);
bool code_cache_hash_file(sha256 *h, const char *path, err *e);
/* The compiler, its flags for each math mode, and every header of these rooms of harness/device. */
bool code_cache_hash_compiler(sha256 *h, const char *clang, const char *version,
                              const char *const *rooms, size_t count, err *e);

/* A folder of the user's cache; h is what all its files depend on. */
bool code_cache_open(code_cache *c, const char *name, sha256 *h, err *e);

/* Compiles source (a file that holds the text) into `object`. */
typedef bool (*code_cache_make)(void *context, const char *source, const char *object, err *e);

/* The path of the compiled text, made by `make` if it does not exist. how: whatever else the code
 * depends on. ending: ".so". make NULL: one that does not exist is an error, EXIT_INCONCLUSIVE. */
bool code_cache_find(const code_cache *c, const char *text, uint32_t how, const char *ending,
                     code_cache_make make, void *context, char *path, size_t size, err *e);
