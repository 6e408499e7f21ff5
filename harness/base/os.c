/* os: see os.h. */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"
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

void os_note_stop(int number) {
    os_stop_signal = number;
}

void os_watch_stop(bool on) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    static struct sigaction before[SIGNALS];
    static bool is_on;
    struct sigaction action = {.sa_handler = os_note_stop};
    sigemptyset(&action.sa_mask);
    if (on)
        os_stop_signal = 0;
    for (size_t i = 0; on != is_on && i < SIGNALS; i++)
        sigaction(signals[i], on ? &action : &before[i], on ? &before[i] : NULL);
    is_on = on;
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

static bool fits(int written, size_t size, const char *what, err *e) {
    if (written >= 0 && (size_t)written < size)
        return true;
    return err_set(e, EXIT_CANNOT, "the path of %s is longer than %zu bytes", what, size);
}

bool os_find_self(char *path, size_t size, err *e) {
#if defined(__APPLE__)
    char raw[PATH_MAX], real[PATH_MAX];
    uint32_t n = sizeof raw;
    if (_NSGetExecutablePath(raw, &n) != 0 || !realpath(raw, real))
        return err_set(e, EXIT_CANNOT, "cannot find the path of this program");
    return fits(snprintf(path, size, "%s", real), size, "this program", e);
#else
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read /proc/self/exe: %s", strerror(errno));
    path[n] = 0;
    return fits((int)n, size - 1, "this program", e);
#endif
}

bool os_is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_home(const char *path) {
    char inside[PATH_MAX];
    if (snprintf(inside, sizeof inside, "%s/kernels", path) >= (int)sizeof inside ||
        !os_is_folder(inside))
        return false;
    return snprintf(inside, sizeof inside, "%s/harness/device/shim", path) < (int)sizeof inside &&
           os_is_folder(inside);
}

bool os_find_home(char *path, size_t size, err *e) {
    const char *given = getenv("ASSAY_HOME");
    if (given && *given) {
        if (!is_home(given))
            return err_set(e, EXIT_CANNOT,
                           "ASSAY_HOME is %.120s, which has no kernels/ and harness/ folders in it",
                           given);
        return fits(snprintf(path, size, "%s", given), size, "ASSAY_HOME", e);
    }
    if (!os_find_self(path, size, e))
        return false;
    for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
        *slash = 0;
        if (is_home(path))
            return true;
        size_t length = strlen(path);
        if (!fits(snprintf(path + length, size - length, "/share/assay"), size - length,
                  "the installed files", e))
            return false;
        if (is_home(path))
            return true;
        path[length] = 0;
    }
    return err_set(e, EXIT_CANNOT,
                   "no folder above this program has kernels/ and harness/, or share/assay with "
                   "them, in it; set ASSAY_HOME to where they are");
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

bool os_make_folder(const char *path, err *e) {
    char part[PATH_MAX];
    if (!fits(snprintf(part, sizeof part, "%s", path), sizeof part, "a folder", e))
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
    if (!fits(snprintf(path, size, "%s/assay-XXXXXX", folder), size, "a scratch folder", e))
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

void os_remove_folder(const char *path) {
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *d; (d = readdir(folder));) {
        char inside[PATH_MAX];
        struct stat s;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
            snprintf(inside, sizeof inside, "%s/%s", path, d->d_name) >= (int)sizeof inside)
            continue;
        if (lstat(inside, &s) == 0 && S_ISDIR(s.st_mode))
            os_remove_folder(inside);
        else
            unlink(inside);
    }
    closedir(folder);
    rmdir(path);
}

bool os_find_cache(char *path, size_t size, err *e) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (xdg && *xdg == '/')
        n = snprintf(path, size, "%s/assay", xdg);
    else if (home && *home == '/' && os_is_folder(home))
        n = snprintf(path, size, "%s/.cache/assay", home);
    else
        n = snprintf(path, size, "%s/assay-%ld", scratch_find_outer(), (long)getuid());
    if (!fits(n, size, "the cache folder", e))
        return false;
    if (!os_make_folder(path, NULL) || access(path, W_OK) != 0)
        return err_set(
            e, EXIT_CANNOT,
            "the cache folder %.120s cannot be written to; set XDG_CACHE_HOME to one that "
            "can",
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

/* The rest of an open file; closes it. */
static char *read_open(int fd, const char *path, size_t first_room, size_t most, size_t *bytes,
                       err *e) {
    os_text t = {.text = malloc(first_room), .room = first_room};
    ssize_t n;
    while ((n = os_read_more(fd, &t)) > 0 && t.used <= most)
        continue;
    if (n < 0)
        err_set(e, EXIT_CANNOT, "cannot read %.160s: %s", path, strerror(errno));
    else if (t.used > most)
        err_set(e, EXIT_USAGE, "%.160s has more than %zu bytes", path, most);
    close(fd);
    if (n < 0 || t.used > most) {
        free(t.text);
        return NULL;
    }
    if (bytes)
        *bytes = t.used;
    return t.text;
}

/* flags: of open, beside reading. */
static int open_to_read(const char *path, int flags, struct stat *s, err *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd >= 0 && fstat(fd, s) == 0 && !S_ISDIR(s->st_mode))
        return fd;
    if (fd >= 0 && S_ISDIR(s->st_mode))
        err_set(e, EXIT_USAGE, "%.200s is a folder, not a file", path);
    else
        err_set(e, EXIT_USAGE, "cannot read %.160s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Also for its NUL, and for a read that sees the end. */
static size_t choose_room(const struct stat *s) {
    return s->st_size > 0 ? (size_t)s->st_size + 2 : 4096;
}

char *os_read_file(const char *path, size_t *bytes, err *e) {
    struct stat s = {0};
    int fd = open_to_read(path, 0, &s, e);
    return fd < 0 ? NULL : read_open(fd, path, choose_room(&s), SIZE_MAX, bytes, e);
}

char *os_read_plain(const char *path, size_t most, size_t *bytes, err *e) {
    struct stat s = {0};
    int fd = open_to_read(path, O_NONBLOCK, &s, e); /* opening a FIFO would wait for a writer */
    if (fd < 0)
        return NULL;
    if (S_ISREG(s.st_mode) && (uintmax_t)s.st_size <= most)
        return read_open(fd, path, choose_room(&s), most, bytes, e);
    close(fd);
    if (S_ISREG(s.st_mode))
        err_set(e, EXIT_USAGE, "%.160s has more than %zu bytes", path, most);
    else
        err_set(e, EXIT_USAGE, "%.160s is not a plain file", path);
    return NULL;
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

/* Devices and FIFOs are written to as they are; so is the end of a link that leads nowhere yet. */
static bool write_through(const char *path, const void *data, size_t bytes, err *e) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && os_write_all(fd, data, bytes);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        why = errno;
        ok = false;
    }
    return ok || os_refuse_write(path, why, e);
}

/* What a file replaces (the end of its links), and where it is written first; beside is empty for
 * what is written through. */
typedef struct {
    char target[PATH_MAX], beside[PATH_MAX + 32];
} destination;

static bool find_destination(const char *path, destination *d, err *e) {
    struct stat there, link;
    bool is_there = stat(path, &there) == 0;
    bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    d->beside[0] = 0;
    if (is_there && S_ISDIR(there.st_mode))
        return os_refuse_write(path, EISDIR, e);
    if (!(is_link && realpath(path, d->target)) &&
        !fits(snprintf(d->target, sizeof d->target, "%s", path), sizeof d->target,
              "a file to write", e))
        return false;
    if ((is_there && !S_ISREG(there.st_mode)) || (is_link && !is_there))
        return true;
    return fits(snprintf(d->beside, sizeof d->beside, "%s.%ld.tmp", d->target, (long)getpid()),
                PATH_MAX, "a file to write", e);
}

static int open_beside(const destination *d) {
    return open(d->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

bool os_check_writable(const char *path, err *e) {
    destination d;
    if (!find_destination(path, &d, e))
        return false;
    if (!d.beside[0])
        return true;
    int fd = open_beside(&d);
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
    if (!d.beside[0])
        return write_through(path, data, bytes, e);
    int fd = open_beside(&d);
    if (fd < 0)
        return os_refuse_write(path, errno, e);
    bool ok = os_write_all(fd, data, bytes);
    int why = errno;
    ok = close(fd) == 0 && ok;
    if (ok && rename(d.beside, d.target) == 0)
        return true;
    why = ok ? errno : why;
    unlink(d.beside);
    return os_refuse_write(path, why, e);
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
