/* os: see os.h. */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "os.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "path.h"
#include "root.h"
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#else
#include <sched.h>
#endif

/* macOS's CLOCK_MONOTONIC has steps of 1 us and follows adjustments of the time of day; this one is
 * the CPU's counter, which Metal's times are on too. */
#if defined(__APPLE__)
#define STEADY_CLOCK CLOCK_UPTIME_RAW
#else
#define STEADY_CLOCK CLOCK_MONOTONIC
#endif

uint64_t os_now_ns(void) {
    struct timespec t;
    clock_gettime(STEADY_CLOCK, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t os_thread_ns(void) {
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec
               : 0;
}

volatile sig_atomic_t os_stop_signal;

static void note_stop(int number) {
    os_stop_signal = number;
}

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };

void os_watch_stop(bool on) {
    static struct sigaction before[STOP_SIGNALS];
    static int depth;
    struct sigaction action = {.sa_handler = note_stop};
    sigemptyset(&action.sa_mask);
    if (on ? depth++ > 0 : --depth > 0)
        return;
    if (on)
        os_stop_signal = 0;
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        if (on)
            sigaction(stop_signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(stop_signals[i], on ? &action : &before[i], NULL);
    }
}

int os_count_cpus(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

bool os_find_self(char *path, size_t size, err *e) {
#if defined(__APPLE__)
    char raw[PATH_MAX], real[PATH_MAX];
    uint32_t n = sizeof raw;
    if (_NSGetExecutablePath(raw, &n) != 0 || !realpath(raw, real))
        return err_set(e, EXIT_CANNOT, "cannot find the path of this program");
    return path_print(path, size, e, "%s", real);
#else
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read /proc/self/exe: %s", strerror(errno));
    path[n] = 0;
    return (size_t)n < size - 1 || err_set(e, EXIT_CANNOT, "the path of this program is too long");
#endif
}

bool os_is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_home(const char *path) {
    char inside[PATH_MAX];
    return path_print(inside, sizeof inside, NULL, "%s/kernels", path) && os_is_folder(inside) &&
           path_print(inside, sizeof inside, NULL, "%s/harness/device/shim", path) &&
           os_is_folder(inside);
}

bool os_find_home(char *path, size_t size, err *e) {
    const char *given = getenv("ASSAY_HOME");
    if (given && *given) {
        if (!is_home(given))
            return err_set(e, EXIT_CANNOT,
                           "ASSAY_HOME is %.120s, which has no kernels/ and harness/ folders in it",
                           given);
        return path_print(path, size, e, "%s", given);
    }
    if (!os_find_self(path, size, e))
        return false;
    for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
        *slash = 0;
        if (is_home(path))
            return true;
        size_t length = strlen(path);
        if (!path_print(path + length, size - length, e, "/share/assay"))
            return false;
        if (is_home(path))
            return true;
        path[length] = 0;
    }
    return err_set(e, EXIT_CANNOT,
                   "no folder above this program has kernels/ and harness/, or share/assay with "
                   "them, in it; set ASSAY_HOME to where they are");
}

bool os_join_home(char *path, size_t size, err *e, const char *name) {
    char home[PATH_MAX];
    return os_find_home(home, sizeof home, e) && path_join(path, size, e, home, name);
}

/* Whether it is the path that is wrong, or the machine. */
static exit_code blame(int why) {
    static const int paths[] = {ENOENT, ENOTDIR, EISDIR,       EACCES, EPERM,
                                EROFS,  EEXIST,  ENAMETOOLONG, ELOOP};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (why == paths[i])
            return EXIT_USAGE;
    return EXIT_CANNOT;
}

bool os_refuse_write(const char *path, int why, err *e) {
    return err_set(e, blame(why), "cannot write %.160s: %s", path, strerror(why));
}

bool os_is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool os_make_folder(const char *path, err *e) {
    char part[PATH_MAX];
    if (!path_print(part, sizeof part, e, "%s", path))
        return false;
    for (char *p = part + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char was = *p;
        *p = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST && !os_is_folder(part))
            return err_set(e, blame(errno), "cannot make the folder %.160s: %s", part,
                           strerror(errno));
        *p = was;
        if (!was)
            break;
    }
    if (!os_is_folder(path))
        return err_set(e, EXIT_USAGE, "%.200s is not a folder", path);
    return true;
}

const char *os_find_tmp(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

bool os_make_scratch(char *path, size_t size, err *e) {
    const char *folder = os_find_tmp();
    if (!path_print(path, size, e, "%s/assay-XXXXXX", folder))
        return false;
    return mkdtemp(path) || err_set(e, EXIT_CANNOT, "cannot make a scratch folder in %.160s: %s",
                                    folder, strerror(errno));
}

int os_open_unnamed(void) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/assay-XXXXXX", os_find_tmp());
    int fd = n > 0 && (size_t)n < sizeof path ? mkstemp(path) : -1;
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        unlink(path);
    }
    return fd;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *place) {
    (void)s, (void)kind, (void)place;
    remove(path);
    return 0;
}

void os_remove_folder(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

enum { DAY_SECONDS = 24 * 60 * 60 };
static const char scratch_variable[] = "ASSAY_SCRATCH";
static char scratch[PATH_MAX], outer[PATH_MAX];
static pid_t
    scratch_owner; /* children that are forked have the handlers too, and nothing to remove */

/* The user's TMPDIR, or /tmp. */
static const char *find_outer(void) {
    const char *inner = getenv(scratch_variable);
    if (!*outer && inner)
        snprintf(outer, sizeof outer, "%.*s", (int)(path_get_name(inner) - inner), inner);
    return *outer ? outer : os_find_tmp();
}

static void remove_own(void) {
    if (scratch_owner == getpid())
        os_remove_folder(scratch);
}

/* A handler may not walk through a folder, but it may become a shell that does and then ends as this
 * process would have. */
static void stop(int number) {
    char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10), 0};
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (scratch_owner == getpid())
        execl("/bin/sh", "sh", "-c", "/bin/rm -rf -- \"$0\"; kill -\"$1\" $$", scratch,
              digits + (number < 10), (char *)NULL);
    signal(number, SIG_DFL);
    raise(number);
}

/* Signals that are ignored, as under nohup, stay ignored. */
static void watch(void) {
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = stop}, old;
        sigfillset(&action.sa_mask);
        if (sigaction(stop_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(stop_signals[i], &action, NULL);
    }
}

/* Also true of a zombie: in a container there may be no parent that reaps it. */
static bool is_gone(long pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    char *text = os_read_file(path, NULL, NULL), *state = text ? strrchr(text, ')') : NULL;
    bool is_zombie = state && strncmp(state, ") Z", 3) == 0;
    free(text);
    return is_zombie || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* Scratch folders are kept for a day: who looks into one does not have its process's number. */
static bool is_left(const char *path, const char *name, const char *stem, const char *ending,
                    bool is_scratch) {
    struct stat s;
    size_t length = strlen(stem);
    char *end = NULL;
    long pid = strncmp(name, stem, length) == 0 ? strtol(name + length, &end, 10) : 0;
    return pid > 0 && fnmatch(ending, end, 0) == 0 && is_gone(pid) && lstat(path, &s) == 0 &&
           s.st_uid == getuid() &&
           (is_scratch ? S_ISDIR(s.st_mode) && s.st_mtime < time(NULL) - DAY_SECONDS
                       : S_ISREG(s.st_mode));
}

static void remove_left(const char *folder, const char *stem, const char *ending, bool is_scratch) {
    DIR *all = opendir(folder);
    for (struct dirent *d; all && (d = readdir(all));) {
        char path[PATH_MAX];
        if (path_print(path, sizeof path, NULL, "%s/%s", folder, d->d_name) &&
            is_left(path, d->d_name, stem, ending, is_scratch))
            os_remove_folder(path);
    }
    if (all)
        closedir(all);
}

void os_remove_left(const char *folder, const char *stem, const char *ending) {
    remove_left(folder, stem, ending, false);
}

void scratch_start(void) {
    const char *tmp = os_find_tmp(), *parents = getenv(scratch_variable),
               *keep = getenv("ASSAY_KEEP_REPORTS");
    if ((parents && strncmp(tmp, parents, strlen(parents)) == 0) ||
        (keep && strcmp(keep, "1") == 0))
        return;
    snprintf(outer, sizeof outer, "%s", tmp);
    remove_left(outer, "assay-", "-??????", true);
    sigset_t all, before; /* a signal waits until there is somebody to remove the folder */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    if (path_print(scratch, sizeof scratch, NULL, "%s/assay-%ld-XXXXXX", outer, (long)getpid()) &&
        mkdtemp(scratch)) {
        scratch_owner = getpid();
        setenv(scratch_variable, scratch, 1);
        setenv("TMPDIR", scratch, 1);
        atexit(remove_own);
        watch();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Files ---------------------------------------------------------------------------------------- */

bool os_find_cache(char *path, size_t size, err *e) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool fits = xdg && *xdg == '/' ? path_print(path, size, e, "%s/assay", xdg)
                : home && *home == '/' && os_is_folder(home)
                    ? path_print(path, size, e, "%s/.cache/assay", home)
                    : path_print(path, size, e, "%s/assay-%ld", find_outer(), (long)getuid());
    if (!fits)
        return false;
    if (!os_make_folder(path, NULL)) /* one that cannot be written to serves what it has */
        return err_set(e, EXIT_CANNOT,
                       "the cache folder %.120s cannot be made; set XDG_CACHE_HOME to another one",
                       path);
    /* Code is loaded from here, so no other user may be able to write to it. */
    struct stat s;
    if (stat(path, &s) != 0 || s.st_uid != getuid() || (s.st_mode & 0022 && chmod(path, 0700) != 0))
        return err_set(e, EXIT_CANNOT,
                       "the cache folder %.120s belongs to another user; set XDG_CACHE_HOME", path);
    return true;
}

ssize_t os_read_more(int fd, os_text *t) {
    if (t->used + 1 >= t->room) {
        char *more = realloc(t->text, t->room = t->room ? 2 * t->room : 4096);
        if (!more)
            free(t->text);
        t->text = more;
    }
    if (!t->text) {
        errno = ENOMEM;
        return -1;
    }
    ssize_t n;
    while ((n = read(fd, t->text + t->used, t->room - 1 - t->used)) < 0 && errno == EINTR)
        continue;
    t->used += n > 0 ? (size_t)n : 0;
    t->text[t->used] = 0;
    return n;
}

/* is_plain: what is not a file of the disk is refused. */
static char *read_path(const char *path, bool is_plain, size_t most, size_t *bytes, err *e) {
    struct stat s = {0};
    ssize_t n = 0;
    /* opening a FIFO would wait for a writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | (is_plain ? O_NONBLOCK : 0));
    bool ok = fd >= 0 && fstat(fd, &s) == 0;
    if (!ok)
        err_set(e, EXIT_USAGE, "cannot read %.160s: %s", path, strerror(errno));
    else if (S_ISDIR(s.st_mode))
        ok = err_set(e, EXIT_USAGE, "%.200s is a folder, not a file", path);
    else if (is_plain && !S_ISREG(s.st_mode))
        ok = err_set(e, EXIT_USAGE, "%.160s is not a plain file", path);
    /* Also for its NUL, and for a read that sees the end. */
    bool is_known = s.st_size > 0 && (uintmax_t)s.st_size <= most;
    os_text t = {.room = is_known ? (size_t)s.st_size + 2 : 4096};
    t.text = ok ? malloc(t.room) : NULL;
    while (ok && t.used <= most && (n = os_read_more(fd, &t)) > 0)
        continue;
    if (n < 0)
        ok = err_set(e, EXIT_CANNOT, "cannot read %.160s: %s", path, strerror(errno));
    else if (t.used > most)
        ok = err_set(e, EXIT_USAGE, "%.160s has more than %zu bytes", path, most);
    if (fd >= 0)
        close(fd);
    if (!ok)
        free(t.text);
    else if (bytes)
        *bytes = t.used;
    return ok ? t.text : NULL;
}

char *os_read_file(const char *path, size_t *bytes, err *e) {
    return read_path(path, false, SIZE_MAX, bytes, e);
}

char *os_read_plain(const char *path, size_t most, size_t *bytes, err *e) {
    return read_path(path, true, most, bytes, e);
}

bool os_is_below(const char *path, const char *folder) {
    char file[PATH_MAX], real[PATH_MAX];
    if (!realpath(path, file) || !realpath(*folder ? folder : ".", real))
        return false;
    const size_t bytes = strlen(real);
    return strncmp(file, real, bytes) == 0 && (bytes == 1 || file[bytes] == '/');
}

char *os_read_source(const char *path, size_t most, size_t *bytes, err *e) {
    if (access(path, F_OK) == 0 && !root_keeps(path, path))
        return err_null(e, EXIT_USAGE, "%.160s is a link that leaves its folder: it is not read",
                        path);
    return os_read_plain(path, most, bytes, e);
}

bool os_write_all(int fd, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes > 0) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

bool os_sync(const char *path, err *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    return ok || os_refuse_write(path, why, e);
}

bool os_settle(const char *from, const char *to, bool syncs, err *e) {
    char folder[PATH_MAX], stem[PATH_MAX];
    const char *name = path_get_name(to);
    if (rename(from, to) != 0)
        return os_refuse_write(to, errno, e);
    snprintf(folder, sizeof folder, "%.*s.", (int)(name - to), to);
    snprintf(stem, sizeof stem, "%s.", name);
    if (syncs)
        os_sync(folder, NULL); /* some file systems cannot */
    os_remove_left(folder, stem, ".tmp");
    return true;
}

/* What a file replaces (the end of its links), and where it is written first; beside is empty for
 * what is written through, and for temporary files. */
typedef struct {
    char target[PATH_MAX], beside[PATH_MAX];
    bool is_there;
} destination;

static bool find_destination(const char *path, destination *d, err *e) {
    char own[32];
    struct stat there, link;
    bool is_there = d->is_there = stat(path, &there) == 0;
    bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    d->beside[0] = 0;
    if (is_there && S_ISDIR(there.st_mode))
        return os_refuse_write(path, EISDIR, e);
    if (!(is_link && realpath(path, d->target)) &&
        !path_print(d->target, sizeof d->target, e, "%s", path))
        return false;
    snprintf(own, sizeof own, ".%ld.tmp", (long)getpid());
    const bool is_own = path_ends_with(path, own);
    if (is_own)
        d->target[strlen(path) - strlen(own)] = 0; /* messages name what it will be */
    if ((is_there && !S_ISREG(there.st_mode)) || (is_link && !is_there) || is_own)
        return true;
    return path_print(d->beside, PATH_MAX, e, "%s.%ld.tmp", d->target, (long)getpid());
}

bool os_check_writable(const char *path, err *e) {
    destination d;
    if (!find_destination(path, &d, e))
        return false;
    if (!d.beside[0])
        return true;
    int fd = open(d.beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return os_refuse_write(path, errno, e);
    close(fd);
    unlink(d.beside);
    return true;
}

bool os_write_file(const char *path, const void *data, size_t bytes, err *e) {
    destination d;
    if (!find_destination(path, &d, e))
        return false;
    /* Devices and FIFOs are written to as they are; so is the end of a link that leads nowhere yet. */
    const char *first = d.beside[0] ? d.beside : path;
    int fd = open(first, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool syncs = d.is_there && d.beside[0]; /* a new file replaces nothing that could be lost */
    bool ok = fd >= 0 && os_write_all(fd, data, bytes) && (!syncs || fsync(fd) == 0);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    ok = ok ? !d.beside[0] || os_settle(d.beside, d.target, syncs, e)
            : os_refuse_write(d.beside[0] ? path : d.target, why, e);
    if (!ok && fd >= 0 && d.beside[0])
        unlink(d.beside);
    return ok;
}

bool os_write_own(const char *path, const void *data, size_t bytes, err *e) {
    return os_write_file(path, data, bytes, e) || err_blame_machine(e);
}

memory_file *memory_file_new(void) {
    memory_file *m = array_new(1, sizeof *m);
    m->out = open_memstream(&m->text, &m->bytes);
    assert(m->out);
    return m;
}

void memory_file_free(memory_file *m) {
    fclose(m->out);
    free(m->text);
    free(m);
}

bool memory_file_write(memory_file *m, const char *path, err *e) {
    bool ok = (fflush(m->out) == 0 ||
               err_set(e, EXIT_CANNOT, "no memory for the text of %.160s", path)) &&
              os_write_file(path, m->text, m->bytes, e);
    memory_file_free(m);
    return ok;
}

bool os_find_program(const char *name, char *path, size_t size) {
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 && snprintf(path, size, "%s", name) < (int)size;
    const char *p = getenv("PATH");
    if (!p)
        p = "/usr/local/bin:/usr/bin:/bin";
    while (*p) {
        size_t n = strcspn(p, ":");
        struct stat s;
        if (n > 0 && snprintf(path, size, "%.*s/%s", (int)n, p, name) < (int)size &&
            access(path, X_OK) == 0 && stat(path, &s) == 0 && S_ISREG(s.st_mode))
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

struct lock {
    int fd;
    char path[PATH_MAX];
};

/* Who held it last removed the file: a lock on a file without a name guards nothing. */
static bool is_current(const lock *l) {
    struct stat held, there;
    return fstat(l->fd, &held) == 0 && stat(l->path, &there) == 0 && held.st_ino == there.st_ino &&
           held.st_dev == there.st_dev;
}

static bool try_lock(lock *l, const char *path, unsigned wait_ms, err *e) {
    enum { NAP_MS = 10 };
    for (unsigned ms = 0;;) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (l->fd < 0)
            return os_refuse_write(l->path, errno, e);
        const int why = flock(l->fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (!why && is_current(l))
            return true;
        close(l->fd);
        if (why && why != EWOULDBLOCK)
            return err_set(e, EXIT_CANNOT, "cannot lock %.160s: %s", l->path, strerror(why));
        if (why && ms >= wait_ms)
            return err_set(e, EXIT_CANNOT,
                           "another assay is writing %.140s: wait for it, or write to another "
                           "file with --out",
                           path);
        if (why) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
            ms += NAP_MS;
        }
    }
}

lock *lock_take(const char *path, unsigned wait_ms, err *e) {
    lock *l = array_new(1, sizeof *l);
    const char *name = path_get_name(path);
    if (path_print(l->path, sizeof l->path, e, "%.*s.%s.lock", (int)(name - path), path, name) &&
        try_lock(l, path, wait_ms, e))
        return l;
    free(l);
    return NULL;
}

void lock_release(lock *l) {
    if (!l)
        return;
    unlink(l->path);
    close(l->fd);
    free(l);
}
