#include "cache_room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

#define DEFAULT_LIMIT ((uint64_t)1000000000)
enum { YOUNG_SECONDS = 600 };
static const char log_variable[] = "ASSAY_COMPILE_LOG";

/* Files --------------------------------------------------------------------------------------- */

typedef struct {
    char path[PATH_MAX];
    uint64_t bytes;
    time_t used;
} cache_file;

typedef struct {
    cache_file *items;
    size_t count, room;
} file_list;

static void add_file(file_list *l, const char *path, const struct stat *s) {
    cache_file *f = ARRAY_ADD(l->items, l->count, l->room);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->bytes = (uint64_t)s->st_size;
    f->used = s->st_mtime;
}

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
        else if (S_ISREG(s.st_mode))
            add_file(l, path, &s);
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
        out->files += !is_sum;
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

/* Trimming ------------------------------------------------------------------------------------ */

void cache_room_touch(const char *path) {
    utimensat(AT_FDCWD, path, NULL, 0); /* a cache that cannot be written to still serves */
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

void cache_room_trim(void) {
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

/* The clock is the same in all processes. */
void cache_room_note_compile(uint64_t began_ns, uint64_t ended_ns) {
    const char *path = getenv(log_variable);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    char line[64];
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", began_ns, ended_ns);
    os_write_all(fd, line, (size_t)n); /* one write: lines of several processes do not mix */
    close(fd);
}

bool cache_room_has_compiled(void) {
    const char *path = getenv(log_variable);
    struct stat s;
    return path && stat(path, &s) == 0 && s.st_size > 0;
}

typedef struct {
    uint64_t began_ns, ended_ns;
} compile_span;

static int by_start(const void *a, const void *b) {
    const compile_span *x = a, *y = b;
    return (x->began_ns > y->began_ns) - (x->began_ns < y->began_ns);
}

static double measure_union(compile_span *spans, size_t count) {
    uint64_t until_ns = 0, sum_ns = 0;
    if (count > 0)
        qsort(spans, count, sizeof *spans, by_start);
    for (size_t i = 0; i < count; i++) {
        uint64_t from_ns = spans[i].began_ns > until_ns ? spans[i].began_ns : until_ns;
        if (spans[i].ended_ns <= from_ns)
            continue;
        sum_ns += spans[i].ended_ns - from_ns;
        until_ns = spans[i].ended_ns;
    }
    return (double)sum_ns * 1e-9;
}

void cache_room_end_log(size_t *count, double *seconds) {
    compile_span *spans = NULL, one;
    size_t room = 0;
    *count = 0;
    const char *path = is_owner ? getenv(log_variable) : NULL;
    char *text = path ? os_read_file(path, NULL, NULL) : NULL;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (sscanf(p, "%" SCNu64 " %" SCNu64, &one.began_ns, &one.ended_ns) == 2)
            *ARRAY_ADD(spans, *count, room) = one;
    *seconds = measure_union(spans, *count);
    free(spans);
    free(text);
    if (path)
        unlink(path);
    is_owner = false;
    unsetenv(log_variable);
}
