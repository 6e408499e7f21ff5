#include "lock.h"

#include "array.h"
#include "os.h"
#include "path.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool try_lock(lock *l, const char *path, err *e) {
    for (;;) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (l->fd < 0)
            return os_refuse_write(l->path, errno, e);
        if (flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
            bool is_held = errno == EWOULDBLOCK;
            int why = errno;
            close(l->fd);
            return is_held
                       ? err_set(e, EXIT_CANNOT,
                                 "another assay is writing %.140s: wait for it, or write to "
                                 "another file with --out",
                                 path)
                       : err_set(e, EXIT_CANNOT, "cannot lock %.160s: %s", l->path, strerror(why));
        }
        if (is_current(l))
            return true;
        close(l->fd);
    }
}

lock *lock_take(const char *path, err *e) {
    lock *l = array_new(1, sizeof *l);
    const char *name = path_get_name(path);
    if (path_print(l->path, sizeof l->path, e, "%.*s.%s.lock", (int)(name - path), path, name) &&
        try_lock(l, path, e))
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
