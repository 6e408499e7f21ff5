#include "code_cache.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache_room.h"
#include "harness/base/lock.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "math_mode.h"

/* What everything depends on ------------------------------------------------------------------ */

bool code_cache_hash_file(sha256 *h, const char *path, err *e) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, e);
    if (!text)
        return false;
    sha256_add(h, path, strlen(path) + 1);
    sha256_add(h, text, bytes);
    free(text);
    return true;
}

/* Every header of a folder, in a fixed order. */
static bool hash_headers(sha256 *h, const char *folder, err *e) {
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", folder);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        char path[PATH_MAX];
        if (ok && dot && strcmp(dot, ".h") == 0)
            ok = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) <
                     (int)sizeof path &&
                 code_cache_hash_file(h, path, e);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

void code_cache_hash_texts(sha256 *h, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        sha256_add(h, texts[i], strlen(texts[i]) + 1);
}

bool code_cache_hash_compiler(sha256 *h, const char *clang, const char *version,
                              const char *const *rooms, size_t count, err *e) {
    struct stat s;
    char home[PATH_MAX - 128];
    if (!os_find_home(home, sizeof home, e))
        return false;
    for (math_mode m = 0; m < MATH_COUNT; m++)
        for (const char *const *flag = math_mode_get_flags(m); *flag; flag++)
            code_cache_hash_texts(h, flag, 1);
    sha256_add(h, clang, strlen(clang) + 1);
    sha256_add(h, version, strlen(version) + 1);
    if (stat(clang, &s) == 0)
        sha256_add(h, &s.st_size, sizeof s.st_size);
    for (size_t i = 0; i < count; i++) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s/harness/device/%.60s", home, rooms[i]);
        if (!hash_headers(h, folder, e))
            return false;
    }
    return true;
}

bool code_cache_open(code_cache *c, const char *name, sha256 *h, err *e) {
    char cache[PATH_MAX - 64];
    if (!os_find_cache(cache, sizeof cache, e))
        return false;
    snprintf(c->folder, sizeof c->folder, "%s/%.40s", cache, name);
    sha256_finish(h, c->base);
    return os_make_folder(c->folder, e);
}

/* One file ------------------------------------------------------------------------------------ */

static void hash_bytes(const void *data, size_t bytes, char hex[65]) {
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, data, bytes);
    sha256_finish(&h, hex);
}

/* Does the cached file exist, undamaged? */
static bool is_whole(const char *object, const char *sum) {
    size_t bytes;
    char *want = os_read_file(sum, NULL, NULL);
    char *code = want ? os_read_file(object, &bytes, NULL) : NULL;
    char got[65];
    if (code)
        hash_bytes(code, bytes, got);
    bool whole = code && strncmp(want, got, 64) == 0;
    free(want);
    free(code);
    return whole;
}

/* The object goes in before its checksum: readers that see the checksum see the whole object. */
static bool make_file(const char *text, const char *object, const char *sum, code_cache_make make,
                      void *context, err *e) {
    char source[PATH_MAX], beside[PATH_MAX];
    if (!path_print(source, sizeof source, e, "%s.%ld.cpp", object, (long)getpid()) ||
        !path_print(beside, sizeof beside, e, "%s.%ld.tmp", object, (long)getpid()))
        return false;
    uint64_t began_ns = os_now_ns();
    bool ok = os_write_file(source, text, strlen(text), e) && make(context, source, beside, e);
    uint64_t ended_ns = os_now_ns();
    double seconds = (double)(ended_ns - began_ns) * 1e-9;
    cache_room_note_compile(began_ns, ended_ns);
    unlink(source);
    size_t bytes;
    char *code = ok ? os_read_file(beside, &bytes, e) : NULL;
    ok = code != NULL;
    if (ok) {
        char hex[65], line[96];
        hash_bytes(code, bytes, hex);
        int length = snprintf(line, sizeof line, "%s %.3f", hex, seconds);
        ok = rename(beside, object) == 0 ? os_write_file(sum, line, (size_t)length, e)
                                         : err_set(e, EXIT_CANNOT, "cannot write %.200s", object);
        cache_room_trim();
    }
    if (!ok)
        unlink(beside);
    free(code);
    return ok;
}

/* Another process may be making the same file: then it is waited for, not made twice. A lock that
 * cannot be had in that time does not prevent compiling. */
static lock *wait_for_lock(const char *object) {
    enum { NAP_MS = 10, LONGEST_MS = 120000 };
    lock *l = NULL;
    for (int ms = 0; !(l = lock_take(object, NULL)) && ms < LONGEST_MS; ms += NAP_MS)
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
    return l;
}

bool code_cache_find(const code_cache *c, const char *text, uint32_t how, const char *ending,
                     code_cache_make make, void *context, char *path, size_t size, err *e) {
    sha256 h;
    char hex[65], sum[PATH_MAX];
    sha256_start(&h);
    sha256_add(&h, c->base, 64);
    sha256_add(&h, &how, sizeof how);
    sha256_add(&h, text, strlen(text));
    sha256_finish(&h, hex);
    if (!path_print(path, size, e, "%s/%s%s", c->folder, hex, ending) ||
        !path_print(sum, sizeof sum, e, "%s/%s.sum", c->folder, hex))
        return false;
    if (!is_whole(path, sum)) {
        if (!make)
            return err_set(e, EXIT_INCONCLUSIVE, "it is not compiled yet");
        lock *own = wait_for_lock(path);
        bool ok = is_whole(path, sum) || make_file(text, path, sum, make, context, e);
        lock_release(own);
        return ok;
    }
    cache_room_touch(path);
    return true;
}
