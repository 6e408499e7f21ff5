/* os_run: other programs, run with limits of time, memory and CPU time. See os.h. */
#if defined(__linux__)
#define _GNU_SOURCE /* prlimit */
#endif
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Waits until there is something to read. False after the deadline, if there is one. */
static bool wait_to_read(int fd, uint64_t deadline_ns) {
    for (;;) {
        uint64_t now = os_now_ns();
        if (deadline_ns && now >= deadline_ns)
            return false;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : -1);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
    }
}

/* Reads a descriptor to its end, or to the deadline. NULL only without memory. */
static char *drain(int fd, uint64_t deadline_ns, bool *is_late) {
    enum { ROOM = 4096 };
    os_text t = {.text = calloc(1, ROOM), .room = ROOM};
    while (!(*is_late = !wait_to_read(fd, deadline_ns)) && os_read_more(fd, &t) > 0)
        continue;
    return t.text;
}

enum { CHILD_MB = 4096 };

/* CPU time that programs with a limit may still use, all together; below 0: as much as they like. */
static double budget_s = -1;

void os_set_run_budget(double seconds) {
    budget_s = seconds;
}

static void limit_child(pid_t child, unsigned memory_mb) {
#if defined(__linux__)
    const rlim_t memory = (rlim_t)memory_mb << 20, file = (rlim_t)OS_FILE_MB << 20;
    prlimit(child, RLIMIT_AS, &(struct rlimit){memory, memory}, NULL);
    prlimit(child, RLIMIT_FSIZE, &(struct rlimit){file, file}, NULL);
    const rlim_t cpu = (rlim_t)budget_s + 1;
    if (budget_s >= 0)
        prlimit(child, RLIMIT_CPU, &(struct rlimit){cpu, cpu + 1}, NULL);
#else
    (void)child, (void)memory_mb;
#endif
}

/* CPU time of all programs that have ended. */
static double get_used_s(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Where nothing limits CPU time, an idle machine's clock does. */
static unsigned cut_seconds(unsigned seconds) {
#if !defined(__linux__)
    if (budget_s >= 0 && budget_s + 1 < seconds)
        return (unsigned)budget_s + 1;
#endif
    return seconds;
}

bool os_run_within(const char *const *argv, unsigned seconds, unsigned memory_mb, char **output,
                   int *status, err *e) {
    int ends[2];
    const double before_s = get_used_s();
    const bool has_budget = seconds && budget_s >= 0;
    if (has_budget && budget_s == 0)
        return err_set(e, EXIT_WRONG, OS_NO_BUDGET);
    seconds = cut_seconds(seconds);
    if (pipe(ends) != 0)
        return err_set(e, EXIT_CANNOT, "cannot make a pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t child;
    char *const *args = (char *const *)(uintptr_t)argv; /* posix_spawn never writes to them */
    int failed = posix_spawnp(&child, argv[0], &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return err_set(e, EXIT_CANNOT, "cannot run %.120s: %s", argv[0], strerror(failed));
    }
    if (seconds)
        limit_child(child, memory_mb);
    bool is_late = false;
    char *text =
        drain(ends[0], seconds ? os_now_ns() + seconds * UINT64_C(1000000000) : 0, &is_late);
    close(ends[0]);
    if (is_late)
        kill(child, SIGKILL);
    int s;
    while (waitpid(child, &s, 0) < 0 && errno == EINTR)
        continue;
    if (has_budget)
        budget_s = fmax(0, budget_s - (get_used_s() - before_s));
    if (has_budget && budget_s == 0 && (is_late || !WIFEXITED(s))) {
        free(text);
        return err_set(e, EXIT_WRONG, OS_NO_BUDGET);
    }
    if (is_late) {
        free(text);
        return err_set(e, EXIT_WRONG, "%.120s was stopped after %u s", argv[0], seconds);
    }
    *status = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);
    if (output)
        *output = text;
    else
        free(text);
    return true;
}

bool os_run_for(const char *const *argv, unsigned seconds, char **output, int *status, err *e) {
    return os_run_within(argv, seconds, CHILD_MB, output, status, e);
}

bool os_run(const char *const *argv, char **output, int *status, err *e) {
    return os_run_for(argv, 0, output, status, e);
}
