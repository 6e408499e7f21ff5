#include "step.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "os.h"

extern char **environ;

enum { TICK_MS = 20, GOODBYE_MS = 5000 };

static int start(const step *s, pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, s->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    char *const *argv = (char *const *)(uintptr_t)s->argv; /* posix_spawn never writes to them */
    int failed = posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Waits a moment. The child is not reaped, so that its number stays its own. */
static bool has_ended(pid_t child) {
    const struct timespec nap = {.tv_nsec = TICK_MS * 1000000};
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
        return true;
    nanosleep(&nap, NULL);
    return false;
}

static void end(pid_t child) {
    kill(-child, SIGTERM);
    for (int i = 0; i < GOODBYE_MS / TICK_MS && !has_ended(child); i++)
        continue;
}

bool step_run(const step *s, step_outcome *out, err *e) {
    uint64_t start_ns = os_now_ns();
    pid_t child;
    *out = (step_outcome){.status = 0};
    int failed = start(s, &child);
    if (failed)
        return err_set(e, EXIT_CANNOT, "cannot run %.120s: %s", s->argv[0], strerror(failed));
    while (!has_ended(child) && !os_stop_signal && !out->is_late && !out->is_profuse) {
        struct stat file;
        out->is_late = (double)(os_now_ns() - start_ns) * 1e-9 >= s->limit_s;
        out->is_profuse = stat(s->log, &file) == 0 && (uint64_t)file.st_size > s->limit_bytes;
        if (s->progress)
            progress_update(s->progress, s->progress->done);
    }
    if (os_stop_signal || out->is_late || out->is_profuse)
        end(child);
    kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    out->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    out->seconds = (double)(os_now_ns() - start_ns) * 1e-9;
    return !os_stop_signal || err_set(e, EXIT_INTERRUPTED, "stopped by a signal");
}
