#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os.h"
#include "path.h"

enum { DAY_SECONDS = 24 * 60 * 60 };
static const char variable[] = "ASSAY_SCRATCH";
static char folder[PATH_MAX], outer[PATH_MAX];
static pid_t owner; /* children that are forked have the handlers too, and nothing to remove */

const char *scratch_find_outer(void) {
    const char *inner = getenv(variable);
    if (!*outer && inner)
        snprintf(outer, sizeof outer, "%.*s", (int)(path_get_name(inner) - inner), inner);
    return *outer ? outer : os_find_tmp();
}

static void remove_own(void) {
    if (owner == getpid())
        os_remove_folder(folder);
}

/* A handler may not walk through a folder, but it may become a shell that does and then ends as this
 * process would have. */
static void stop(int number) {
    char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10), 0};
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (owner == getpid())
        execl("/bin/sh", "sh", "-c", "/bin/rm -rf -- \"$0\"; kill -\"$1\" $$", folder,
              digits + (number < 10), (char *)NULL);
    signal(number, SIG_DFL);
    raise(number);
}

/* Signals that are ignored, as under nohup, stay ignored. */
static void watch(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = stop}, old;
        sigfillset(&action.sa_mask);
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

static bool is_left(const char *path, const char *name) {
    struct stat s;
    long pid = 0;
    int end = 0;
    return sscanf(name, "assay-%ld-%*6[A-Za-z0-9]%n", &pid, &end) == 1 && end > 0 && !name[end] &&
           lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == getuid() &&
           s.st_mtime < time(NULL) - DAY_SECONDS && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void remove_left(const char *tmp) {
    DIR *all = opendir(tmp);
    for (struct dirent *d; all && (d = readdir(all));) {
        char path[PATH_MAX];
        if (path_print(path, sizeof path, NULL, "%s/%s", tmp, d->d_name) &&
            is_left(path, d->d_name))
            os_remove_folder(path);
    }
    if (all)
        closedir(all);
}

void scratch_start(void) {
    const char *tmp = os_find_tmp(), *parents = getenv(variable),
               *keep = getenv("ASSAY_KEEP_REPORTS");
    if ((parents && strncmp(tmp, parents, strlen(parents)) == 0) ||
        (keep && strcmp(keep, "1") == 0))
        return;
    snprintf(outer, sizeof outer, "%s", tmp);
    remove_left(outer);
    sigset_t all, before; /* a signal waits until there is somebody to remove the folder */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    if (path_print(folder, sizeof folder, NULL, "%s/assay-%ld-XXXXXX", outer, (long)getpid()) &&
        mkdtemp(folder)) {
        owner = getpid();
        setenv(variable, folder, 1);
        setenv("TMPDIR", folder, 1);
        atexit(remove_own);
        watch();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}
