#include "code_cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/toolchain.h"

#define DEFAULT_LIMIT ((uint64_t)1000000000)
enum { YOUNG_SECONDS = 600, HEADER_SECONDS = 60, LONGEST_WAIT_MS = 120000 };
static const char log_variable[] = "ASSAY_COMPILE_LOG";

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

static bool hash_header(void *h, const char *path, err *e) {
    return code_cache_hash_file(h, path, e);
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
        if (!(path_ends_with(folder, ".h")
                  ? code_cache_hash_file(h, folder, e)
                  : folder_walk(folder, ".h", folder_skip_all, hash_header, h, e)))
            return false;
    }
    return true;
}

/* HASH.ENDING.PID.tmp and the like (also of its compiler) of processes that are gone, and their locks. */
static void remove_left(const char *folder) {
    enum { HASH = 64 };
    char path[PATH_MAX], stem[PATH_MAX];
    DIR *all = opendir(folder);
    for (struct dirent *d; all && (d = readdir(all));) {
        const char *name = d->d_name + (d->d_name[0] == '.');
        const bool is_hash = strspn(name, "0123456789abcdef") == HASH && name[HASH] == '.';
        const int length = is_hash ? HASH + 1 + (int)strcspn(name + HASH + 1, ".") : 0;
        if (!is_hash || !name[length] ||
            !path_print(path, sizeof path, NULL, "%s/%.*s", folder, length, name))
            continue;
        lock *own = lock_take(path, 0, NULL);
        snprintf(stem, sizeof stem, "%.*s.", length, name);
        if (own)
            os_remove_left(folder, stem, "*");
        lock_release(own);
    }
    if (all)
        closedir(all);
}

bool code_cache_open(code_cache *c, const char *name, sha256 *h, err *e) {
    char cache[PATH_MAX - 64];
    if (!os_find_cache(cache, sizeof cache, e))
        return false;
    snprintf(c->folder, sizeof c->folder, "%s/%.40s", cache, name);
    sha256_finish(h, c->base);
    bool ok = os_make_folder(c->folder, e) || err_blame_machine(e);
    remove_left(c->folder);
    os_remove_left(c->folder, "syntax.", "*"); /* of the software device */
    return ok;
}

/* Room ---------------------------------------------------------------------------------------- */

typedef struct {
    char path[PATH_MAX];
    uint64_t bytes;
    time_t used;
} cache_file;

typedef struct {
    cache_file *items;
    size_t count, room;
} file_list;

/* All plain files of a folder and of those in it. */
static void list_files(file_list *l, const char *folder, int depth) {
    DIR *open = opendir(folder);
    for (struct dirent *d; open && (d = readdir(open));) {
        char path[PATH_MAX];
        struct stat s;
        if (d->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, d->d_name) >= (int)sizeof path ||
            lstat(path, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode) && depth < 2)
            list_files(l, path, depth + 1);
        else if (S_ISREG(s.st_mode)) {
            cache_file *f = ARRAY_ADD(l->items, l->count, l->room);
            *f = (cache_file){.bytes = (uint64_t)s.st_size, .used = s.st_mtime};
            memcpy(f->path, path, sizeof path);
        }
    }
    if (open)
        closedir(open);
}

/* "1500000", "500M", "2G". */
static uint64_t get_limit(void) {
    const char *text = getenv("ASSAY_CACHE_LIMIT");
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return DEFAULT_LIMIT;
    errno = 0;
    double value = strtod(text, &end);
    double unit = *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    bool is_whole = !*end || (strchr("KMG", *end) && !end[1]);
    return errno || !is_whole || !(value * unit < 1e18) ? DEFAULT_LIMIT : (uint64_t)(value * unit);
}

/* A checksum file says, after the sum, how long compiling took. */
static double read_seconds(const char *path) {
    char *text = os_read_file(path, NULL, NULL);
    const char *blank = text ? strchr(text, ' ') : NULL;
    double seconds = blank ? strtod(blank, NULL) : 0;
    free(text);
    return seconds > 0 && seconds < 1e6 ? seconds : 0;
}

bool cache_room_find(cache_facts *out, err *e) {
    *out = (cache_facts){.limit = get_limit()};
    if (!os_find_cache(out->path, sizeof out->path, e))
        return false;
    file_list l = {.count = 0};
    list_files(&l, out->path, 0);
    for (size_t i = 0; i < l.count; i++) {
        bool is_sum = path_ends_with(l.items[i].path, ".sum");
        out->bytes += l.items[i].bytes;
        out->files += !is_sum && !path_ends_with(l.items[i].path, ".metal");
        out->seconds += is_sum ? read_seconds(l.items[i].path) : 0;
    }
    free(l.items);
    return true;
}

bool cache_room_clear(cache_facts *removed, err *e) {
    if (!cache_room_find(removed, e))
        return false;
    file_list l = {.count = 0};
    list_files(&l, removed->path, 0);
    bool ok = true;
    for (size_t i = 0; i < l.count; i++)
        if (unlink(l.items[i].path) != 0 && errno != ENOENT && ok)
            ok = err_set(e, EXIT_CANNOT, "cannot remove %.160s: %s", l.items[i].path,
                         strerror(errno));
    free(l.items);
    return ok;
}

static int by_use(const void *a, const void *b) {
    const cache_file *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* The file and its checksum. */
static void remove_entry(const char *path) {
    char sum[PATH_MAX];
    const char *dot = strrchr(path, '.');
    unlink(path);
    if (dot && snprintf(sum, sizeof sum, "%.*s.sum", (int)(dot - path), path) < (int)sizeof sum)
        unlink(sum);
}

static void trim(void) {
    char folder[1024];
    uint64_t limit = get_limit(), bytes = 0;
    file_list l = {.count = 0};
    if (!os_find_cache(folder, sizeof folder, NULL))
        return;
    list_files(&l, folder, 0);
    for (size_t i = 0; i < l.count; i++)
        bytes += l.items[i].bytes;
    time_t now = time(NULL);
    if (bytes > limit && l.count > 0)
        qsort(l.items, l.count, sizeof *l.items, by_use);
    uint64_t goal = bytes > limit ? limit - limit / 10 : bytes;
    for (size_t i = 0; bytes > goal && i < l.count; i++) {
        const cache_file *f = &l.items[i];
        if (f->used > now - YOUNG_SECONDS)
            break;
        if (path_ends_with(f->path, ".sum"))
            continue; /* leaves with its file */
        remove_entry(f->path);
        bytes -= f->bytes;
    }
    free(l.items);
}

/* The log ------------------------------------------------------------------------------------- */

static bool is_owner;

void cache_room_start_log(void) {
    char path[PATH_MAX];
    if (getenv(log_variable) ||
        !path_print(path, sizeof path, NULL, "%s/assay-log-XXXXXX", os_find_tmp()))
        return;
    int fd = mkstemp(path);
    if (fd < 0)
        return;
    close(fd);
    is_owner = setenv(log_variable, path, 1) == 0;
}

static void note_compile(double seconds) {
    const char *path = getenv(log_variable);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    char line[64];
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%.6f\n", seconds);
    os_write_all(fd, line, (size_t)n); /* one write: lines of several processes do not mix */
    close(fd);
}

bool cache_room_has_compiled(void) {
    const char *path = getenv(log_variable);
    struct stat s;
    return path && stat(path, &s) == 0 && s.st_size > 0;
}

void cache_room_end_log(size_t *count, double *seconds) {
    const char *path = is_owner ? getenv(log_variable) : NULL;
    char *text = path ? os_read_file(path, NULL, NULL) : NULL;
    *count = 0;
    *seconds = 0;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n', ++*count)
        *seconds += strtod(p, NULL);
    free(text);
    if (path)
        unlink(path);
    is_owner = false;
    unsetenv(log_variable);
}

/* One file ------------------------------------------------------------------------------------ */

/* Does the cached file exist, undamaged? */
static bool is_whole(const char *object, const char *sum) {
    size_t bytes;
    char *want = os_read_file(sum, NULL, NULL);
    char *code = want ? os_read_file(object, &bytes, NULL) : NULL;
    char got[65];
    if (code)
        sha256_of(code, bytes, got);
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
    const uint64_t began_ns = os_now_ns();
    bool ok = os_write_own(source, text, strlen(text), e) && make(context, source, beside, e);
    const double seconds = (double)(os_now_ns() - began_ns) * 1e-9;
    unlink(source);
    size_t bytes;
    char *code = ok ? os_read_file(beside, &bytes, e) : NULL;
    ok = code != NULL;
    if (ok) {
        char hex[65], line[96];
        sha256_of(code, bytes, hex);
        int length = snprintf(line, sizeof line, "%s %.3f", hex, seconds);
        note_compile(seconds);
        ok = (rename(beside, object) == 0 || os_refuse_write(object, errno, e) ||
              err_blame_machine(e)) &&
             os_write_own(sum, line, (size_t)length, e);
        trim();
    }
    if (!ok)
        unlink(beside);
    free(code);
    return ok;
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
        /* Another process may be making it: then it is waited for, not made twice. Without a lock it is made
         * all the same. */
        lock *own = lock_take(path, LONGEST_WAIT_MS, NULL);
        const double spare = child_begin_compile();
        bool ok = is_whole(path, sum) || make_file(text, path, sum, make, context, e);
        child_end_compile(spare);
        lock_release(own);
        return ok;
    }
    utimensat(AT_FDCWD, path, NULL, 0); /* a cache that cannot be written to still serves */
    return true;
}

/* Commands -------------------------------------------------------------------------------------- */

void command_add(command *c, const char *const *texts) {
    for (; *texts; texts++) {
        assert(c->count < COMMAND_ARGUMENTS);
        c->argv[c->count++] = *texts;
    }
}

bool compiler_run(const char *clang, const char *const *argv, const char *made, unsigned seconds,
                  char **said, int *status, err *e) {
    char *output = NULL;
    bool ok = child_run_for(argv, seconds, &output, status, e) &&
              toolchain_has_worked(clang, made, *status, output, e);
    if (ok && said)
        *said = output;
    else
        free(output);
    return ok;
}

/* The headers are included before an empty file that is always there: the compiler looks for every
 * file again when it uses the result. It compares their sizes and, unless told not to, their
 * times; the cache's name for the result tells contents apart. */
static bool make_header(void *context, const char *source, const char *object, err *e) {
    command c = *(const command *)context;
    int status;
    (void)source;
    COMMAND_ADD(&c, "-c", "-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp", "/dev/null",
                "-o", object);
    return child_run_for(c.argv, HEADER_SECONDS, NULL, &status, e) &&
           (status == 0 || err_set(e, EXIT_CANNOT, "the shim's headers cannot be precompiled"));
}

bool precompiled_run(precompiled *p, const code_cache *cache, uint32_t how, const command *options,
                     const char *const *headers, const char *const *rest, const char *made,
                     unsigned seconds, char **messages, int *status, err *e) {
    command plain = *options, quick = *options;
    command_add(&plain, headers);
    if (p && !p->was_tried &&
        !code_cache_find(cache, "", how, ".pch", make_header, &plain, p->path, sizeof p->path,
                         NULL))
        p->path[0] = 0;
    *messages = NULL;
    *status = 1;
    if (p) {
        p->was_tried = true;
        COMMAND_ADD(&quick, "-include-pch", p->path);
        command_add(&quick, rest);
    }
    if (p && p->path[0] && !child_run_for(quick.argv, seconds, NULL, status, e))
        return false;
    command_add(&plain, rest);
    return *status == 0
               ? toolchain_has_worked(plain.argv[0], made, 0, NULL, e)
               : compiler_run(plain.argv[0], plain.argv, made, seconds, messages, status, e);
}
