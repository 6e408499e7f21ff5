#if defined(__linux__)
#define _GNU_SOURCE /* prlimit */
#endif
#include "child.h"

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
#include <time.h>
#include <unistd.h>

#include "os.h"

extern char **environ;

enum { TICK_MS = 20, GOODBYE_MS = 5000 };

bool child_make_pipe(int ends[2], int reserved, err *e) {
    int raw[2], why = 0;
    if (pipe(raw) != 0)
        return err_set(e, EXIT_CANNOT, "cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, reserved);
        why = ends[i] < 0 ? errno : why;
        close(raw[i]);
    }
    for (int i = 0; i < 2 && why; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return !why || err_set(e, EXIT_CANNOT, "cannot make a pipe: %s", strerror(why));
}

bool child_start(child *c, const char *const *argv, const int *files, size_t count,
                 bool leads_group, err *e) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (size_t i = 0; i < count; i++)
        if (files[i] < 0)
            posix_spawn_file_actions_addopen(&actions, (int)i, "/dev/null", O_RDWR, 0);
        else
            posix_spawn_file_actions_adddup2(&actions, files[i], (int)i);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigaddset(&set, SIGPIPE);
    if (leads_group) { /* the terminal's signals do not reach it, whoever ignores them here */
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
    }
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                  (leads_group ? POSIX_SPAWN_SETPGROUP : 0)));
    char *const *args = (char *const *)(uintptr_t)argv; /* posix_spawn never writes to them */
    *c = (child){.leads_group = leads_group};
    int failed = posix_spawnp(&c->pid, argv[0], &actions, &attributes, args, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (!failed)
        return true;
    c->pid = 0;
    return err_set(e, EXIT_CANNOT, "cannot run %.120s: %s", argv[0], strerror(failed));
}

bool child_has_ended(const child *c) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == c->pid;
}

/* For a moment that doubles up to a millisecond. */
static void nap(long *ns) {
    nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
    *ns = *ns < 500000 ? *ns * 2 : 1000000;
}

int child_wait(child *c) {
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
    return status;
}

/* The group is killed before its leader is reaped: until then its number is not reused. */
int child_stop(child *c, int grace_ms) {
    const uint64_t start_ns = os_now_ns(), grace_ns = (uint64_t)grace_ms * 1000000;
    for (long ns = 20000; os_now_ns() - start_ns < grace_ns && !child_has_ended(c);)
        nap(&ns);
    if (c->leads_group)
        kill(-c->pid, SIGKILL);
    else if (!child_has_ended(c))
        kill(c->pid, SIGKILL);
    return child_wait(c);
}

int child_get_status(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

static double budget_s = -1; /* below 0: as much as they like */

void child_set_budget(double seconds) {
    budget_s = seconds;
}

double child_begin_compile(void) {
    const char *given = getenv("ASSAY_COMPILE_SECONDS");
    const double before = budget_s,
                 most = given && atof(given) > 0 ? atof(given) : (double)CHILD_CPU_S;
    budget_s = before < 0 ? most : fmin(before, most);
    return before < 0 ? -1 : before - budget_s;
}

void child_end_compile(double spare) {
    budget_s = spare < 0 ? -1 : spare + budget_s;
}

static void limit_process(pid_t pid, unsigned memory_mb) {
#if defined(__linux__)
    const rlim_t memory = (rlim_t)memory_mb << 20, file = (rlim_t)CHILD_FILE_MB << 20;
    const rlim_t cpu = (rlim_t)budget_s + 1;
    prlimit(pid, RLIMIT_AS, &(struct rlimit){memory, memory}, NULL);
    prlimit(pid, RLIMIT_FSIZE, &(struct rlimit){file, file}, NULL);
    prlimit(pid, RLIMIT_CPU, &(struct rlimit){cpu, cpu + 1}, NULL);
#else
    (void)pid, (void)memory_mb;
#endif
}

/* CPU time of all programs that have ended. */
static double get_used_s(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Where nothing limits CPU time, the clock of a busy machine does. */
static double cut_seconds(double seconds, bool has_budget) {
#if !defined(__linux__)
    if (has_budget && 3 * budget_s + 1 < seconds)
        return 3 * budget_s + 1;
#endif
    (void)has_budget;
    return seconds;
}

/* Whole runs --------------------------------------------------------------------------------------- */

typedef struct {
    child child;
    int from; /* -1: it has hung up */
    os_text text;
    uint64_t start_ns;
    long nap_ns;
    double seconds; /* its limit */
} run;

static double get_spent_s(const run *r) {
    return (double)(os_now_ns() - r->start_ns) * 1e-9;
}

/* Waits a moment for output, and takes it. False at the end: it has exited and hung up. Others that it
 * started may still hold the pipe, and are waited for unless they end with its group. */
static bool hear(run *r) {
    const bool has_ended = child_has_ended(&r->child);
    if (r->from < 0) {
        nap(&r->nap_ns);
        return !has_ended;
    }
    struct pollfd p = {.fd = r->from, .events = POLLIN};
    const int n = poll(&p, 1, has_ended && r->child.leads_group ? 0 : TICK_MS);
    if (n > 0 && os_read_more(r->from, &r->text) <= 0) {
        close(r->from);
        r->from = -1;
    }
    return n > 0 || !has_ended || !r->child.leads_group;
}

static void hear_out(run *r, const child_limits *l, child_end *end) {
    while (hear(r)) {
        end->is_late = r->seconds > 0 && get_spent_s(r) >= r->seconds;
        end->is_profuse = l->output_bytes && r->text.used > l->output_bytes;
        if (l->progress)
            progress_update(l->progress, l->progress->done);
        if (end->is_late || end->is_profuse || (l->leads_group && os_stop_signal))
            return;
    }
}

static bool run_whole(const char *const *argv, const child_limits *l, char **output, child_end *end,
                      err *e) {
    const bool has_budget = l->memory_mb > 0;
    const double before_s = get_used_s();
    run r = {.start_ns = os_now_ns(), .nap_ns = 20000};
    int ends[2];
    r.seconds = cut_seconds(l->seconds, has_budget);
    *end = (child_end){.status = 0};
    if (has_budget && budget_s == 0)
        return err_set(e, EXIT_WRONG, CHILD_NO_BUDGET);
    if (!child_make_pipe(ends, 3, e))
        return false;
    bool ok = child_start(&r.child, argv, (int[]){-1, ends[1], ends[1]}, 3, l->leads_group, e);
    close(ends[1]);
    r.from = ends[0];
    if (ok) {
        enum { ROOM = 4096 };
        r.text = (os_text){.text = calloc(1, ROOM), .room = ROOM};
        if (l->memory_mb)
            limit_process(r.child.pid, l->memory_mb);
        hear_out(&r, l, end);
        const bool is_cut = !child_has_ended(&r.child);
        if (is_cut && l->leads_group)
            kill(-r.child.pid, SIGTERM);
        end->status =
            child_get_status(child_stop(&r.child, is_cut && l->leads_group ? GOODBYE_MS : 0));
        end->seconds = get_spent_s(&r);
    }
    if (r.from >= 0)
        close(r.from);
    if (has_budget)
        budget_s = fmax(0, budget_s - (get_used_s() - before_s));
    if (ok && has_budget && budget_s == 0 && (end->is_late || end->status > 128))
        ok = err_set(e, EXIT_WRONG, CHILD_NO_BUDGET);
    if (ok && l->leads_group && os_stop_signal)
        ok = err_set(e, EXIT_INTERRUPTED, "stopped by a signal");
    if (ok && output)
        *output = r.text.text;
    else
        free(r.text.text);
    return ok;
}

bool child_run_within(const char *const *argv, const child_limits *l, char **output, child_end *end,
                      err *e) {
    const double spare = l->memory_mb ? child_begin_compile() : 0;
    const bool ok = run_whole(argv, l, output, end, e);
    if (l->memory_mb)
        child_end_compile(spare);
    return ok;
}

static bool run_simply(const char *const *argv, const child_limits *l, char **output, int *status,
                       err *e) {
    child_end end;
    char *text = NULL;
    bool ok = child_run_within(argv, l, &text, &end, e);
    if (ok && end.is_late)
        ok = err_set(e, EXIT_WRONG, "%.120s was stopped after %g s", argv[0], l->seconds);
    *status = ok ? end.status : *status;
    if (ok && output)
        *output = text;
    else
        free(text);
    return ok;
}

bool child_run_for(const char *const *argv, unsigned seconds, char **output, int *status, err *e) {
    const child_limits limits = {.seconds = seconds, .memory_mb = CHILD_MB};
    return run_simply(argv, &limits, output, status, e);
}

bool child_run(const char *const *argv, char **output, int *status, err *e) {
    return run_simply(argv, &(child_limits){.seconds = 0}, output, status, e);
}
