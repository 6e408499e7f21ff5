/* preload: a library for LD_PRELOAD that counts the calls that change files below a folder, in a program and all that it
 * starts. FAULT="kill N COUNTER FOLDER" kills them all at the Nth, a write when half of it is done; from the Nth on
 * FAULT="full N COUNTER FOLDER" has no room there. COUNTER is a file of 8 bytes, zeros at first. Linux. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };
static _Atomic long *counter;
static long at, group;
static bool is_full, is_ours[MOST_FILES];
static char folder[4096];

__attribute__((constructor)) static void start(void) {
    char what[8], path[4096], digits[32];
    const char *fault = getenv("FAULT"), *known = getenv("FAULT_GROUP");
    if (!fault || sscanf(fault, "%7s %ld %4095s %4095s", what, &at, path, folder) != 4)
        return;
    is_full = strcmp(what, "full") == 0;
    group = known ? atol(known) : getpid();
    if (!known) {
        setpgid(0, 0);
        snprintf(digits, sizeof digits, "%ld", group);
        setenv("FAULT_GROUP", digits, 1);
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared != MAP_FAILED)
        counter = shared;
}

static bool is_inside(const char *path) {
    size_t length = strlen(folder);
    return counter && path && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Whether a call has a fault: from the Nth on, so that no process goes on for long. */
static bool is_hit(bool counts) {
    return counts && atomic_fetch_add(counter, 1) + 1 >= at;
}

static void die(void) {
    kill((pid_t)-group, SIGKILL);
    kill(0, SIGKILL);
}

static int fail(void) {
    if (!is_full)
        die();
    errno = ENOSPC;
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool is_file(int fd) {
    return counter && fd >= 0 && fd < MOST_FILES && is_ours[fd];
}

#define OPENS(name, parameters, ...)                                                               \
    int name parameters {                                                                          \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;                    \
        va_end(more);                                                                              \
        const bool ours = is_inside(path) && flags & (O_WRONLY | O_RDWR);                          \
        if (is_hit(ours && flags & O_CREAT))                                                       \
            return fail();                                                                         \
        const int fd = REAL(name)(__VA_ARGS__, flags, mode);                                       \
        if (fd >= 0 && fd < MOST_FILES)                                                            \
            is_ours[fd] = ours;                                                                    \
        return fd;                                                                                 \
    }
OPENS(open, (const char *path, int flags, ...), path)
OPENS(open64, (const char *path, int flags, ...), path)
OPENS(openat, (int at_fd, const char *path, int flags, ...), at_fd, path)
OPENS(openat64, (int at_fd, const char *path, int flags, ...), at_fd, path)

ssize_t write(int fd, const void *data, size_t bytes) {
    if (!is_hit(is_file(fd)))
        return REAL(write)(fd, data, bytes);
    if (!is_full && REAL(write)(fd, data, bytes / 2) >= 0)
        die();
    return fail();
}

/* Calls that are done or not. */
#define CHANGES(type, name, ours, parameters, arguments)                                           \
    type name parameters {                                                                         \
        return is_hit(ours) ? fail() : REAL(name) arguments;                                       \
    }
#define PLAIN(name, ours, parameters, arguments)                                                   \
    int name parameters {                                                                          \
        return is_hit(!is_full && (ours)) ? fail() : REAL(name) arguments;                         \
    }
CHANGES(ssize_t, pwrite, is_file(fd), (int fd, const void *data, size_t bytes, off_t from),
        (fd, data, bytes, from))
CHANGES(ssize_t, copy_file_range, is_file(out),
        (int in, off_t *a, int out, off_t *b, size_t n, unsigned flags), (in, a, out, b, n, flags))
PLAIN(ftruncate, is_file(fd), (int fd, off_t bytes), (fd, bytes))
PLAIN(fsync, is_file(fd), (int fd), (fd))
PLAIN(rename, is_inside(to), (const char *from, const char *to), (from, to))
PLAIN(renameat, is_inside(to), (int a, const char *from, int b, const char *to), (a, from, b, to))
PLAIN(renameat2, is_inside(to), (int a, const char *from, int b, const char *to, unsigned flags),
      (a, from, b, to, flags))
PLAIN(unlink, is_inside(path), (const char *path), (path))
PLAIN(unlinkat, is_inside(path), (int a, const char *path, int flags), (a, path, flags))
