/* code_cache: compiled kernels on disk, each named by the hash of everything that made it.
 *
 * Text, shim, flags and compiler are in the name, so a changed kernel is another file and a stale
 * one is never used. A file is written under another name and renamed, and one process at a time
 * makes it: others that need it wait. A checksum is kept beside it, with the seconds
 * that compiling took, so a damaged file is compiled again and never used.
 *
 * The cache has a limit, ASSAY_CACHE_LIMIT or 1 GB. When a file was added and the limit is passed,
 * those that were not used for the longest time leave, until a tenth of the limit is free; files of
 * the last ten minutes stay, because another process may be about to load them. Being used sets a
 * file's time. */
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
/* The compiler, its flags for each math mode, and every header of these rooms of harness/device, or one
 * header. */
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

/* Commands ------------------------------------------------------------------------------------ */

/* A command line that is put together: argv ends with NULL. */
enum { COMMAND_ARGUMENTS = 191 };
typedef struct {
    const char *argv[COMMAND_ARGUMENTS + 1];
    size_t count;
} command;

void command_add(command *c, const char *const *texts); /* up to NULL */
#define COMMAND_ADD(c, ...) command_add(c, (const char *const[]){__VA_ARGS__, NULL})

/* Runs a compiler, or what ends its work: failures of the machine are told from those of the text
 * (toolchain_has_worked). said: receives its messages, which the caller frees; NULL: they are dropped. */
bool compiler_run(const char *clang, const char *const *argv, const char *made, unsigned seconds,
                  char **said, int *status, err *e);

/* Headers that every kernel is compiled with, read once by the compiler and kept in the cache, because
 * reading them again is more than half of a compile. They only save time: where they cannot be made,
 * kernels are compiled without them; and what does not compile with them is compiled again without, so
 * that no error and no message is theirs. */
typedef struct {
    bool was_tried;
    char path[PATH_MAX]; /* "" if it cannot be made */
} precompiled;

/* Runs a compiler: its options, the headers, the rest. p: the headers precompiled with these options; NULL:
 * they are not. how: tells the options from others of the same cache. headers: as options. made: as above.
 * *messages: what the compiler said of the text as it is. */
bool precompiled_run(precompiled *p, const code_cache *cache, uint32_t how, const command *options,
                     const char *const *headers, const char *const *rest, const char *made,
                     unsigned seconds, char **messages, int *status, err *e);

/* All of the cache ---------------------------------------------------------------------------- */

typedef struct {
    char path[1024];
    size_t files; /* compiled ones */
    uint64_t bytes, limit;
    double seconds; /* that compiling them took */
} cache_facts;

bool cache_room_find(cache_facts *out, err *e);
/* Removes everything; *removed is how much that was. */
bool cache_room_clear(cache_facts *removed, err *e);

/* What is compiled between the two, by this process and its workers, and the seconds that it took in
 * all. The log is a file that the environment variable ASSAY_COMPILE_LOG names; it is not started twice. */
void cache_room_start_log(void);
bool cache_room_has_compiled(void); /* anything, since the start */
void cache_room_end_log(size_t *count, double *seconds);
