/* sanitizer: see sanitizer.h. sanitizer_parse.c reads the reports. */
#include "sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "ptx.h"

const char *const sanitizer_tools[SANITIZER_TOOLS] = {"memcheck", "racecheck", "initcheck",
                                                      "synccheck"};

static const char tool_variable[] = "ASSAY_SANITIZER";
static const char log_variable[] = "ASSAY_SANITIZER_LOG";     /* set: this process is watched */
static const char owner_variable[] = "ASSAY_SANITIZER_OWNER"; /* the process that holds the pipes */

static bool find_program(char *path, size_t size, err *e) {
    return ptx_find_sanitizer(path, size) ||
           err_set(e, EXIT_CANNOT,
                   "compute-sanitizer, which validates on NVIDIA GPUs, is not found; install the "
                   "CUDA toolkit, or put it on PATH, or use --device soft");
}

bool sanitizer_choose(const char *tool, err *e) {
    char program[PATH_MAX];
    unsetenv(log_variable);
    if (!tool) {
        unsetenv(tool_variable);
        return true;
    }
    return find_program(program, sizeof program, e) && setenv(tool_variable, tool, 1) == 0;
}

const char *sanitizer_get_tool(void) {
    const char *tool = getenv(tool_variable);
    return tool && *tool ? tool : NULL;
}

static const char *get_log(void) {
    const char *path = getenv(log_variable);
    return path && *path ? path : NULL;
}

bool sanitizer_is_watching(void) {
    return sanitizer_get_tool() && get_log();
}

/* Entering -------------------------------------------------------------------------------------- */

/* Versions differ in the options they know; each is given only where the help names it. */
static const struct {
    const char *name, *value;
    const char *tool; /* NULL: of all tools */
} options[] = {
    {"--target-processes", "application-only", NULL}, /* compilers need no watching */
    {"--show-backtrace", "no", NULL},
    {"--print-limit", "100", NULL},
    {"--launch-timeout", "120", NULL},
    {"--max-connections", "100", NULL}, /* many workers at the same time */
    {"--require-cuda-init", "no", NULL},
    {"--destroy-on-device-error", "kernel", "memcheck"},
    {"--report-api-errors", "no", "memcheck"},
    {"--padding", "16384", "memcheck"}, /* the end of a buffer is not the start of another */
    {"--racecheck-num-workers", "2", "racecheck"},
    {"--check-api-memory-access", "no", "initcheck"}, /* outputs are read whole, written or not */
};

static size_t add_options(const char *program, const char *tool, const char **argv, size_t count) {
    const char *const ask[] = {program, "--help", NULL};
    char *help = NULL;
    int status;
    err ignored;
    if (!os_run(ask, &help, &status, &ignored))
        return count;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (help && strstr(help, options[i].name) &&
            (!options[i].tool || strcmp(options[i].tool, tool) == 0)) {
            argv[count++] = options[i].name;
            argv[count++] = options[i].value;
        }
    free(help);
    return count;
}

/* The pipes to the other side pass through compute-sanitizer like any open file. Should it close
 * them for its child, they are those that it still holds itself. */
static bool take_pipes(err *e) {
    const char *owner = getenv(owner_variable);
    for (int fd = WORKER_IN; owner && fd <= WORKER_OUT; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/%.20s/fd/%d", owner, fd);
        int opened = open(path, fd == WORKER_IN ? O_RDONLY : O_WRONLY);
        if (opened < 0 || (opened != fd && dup2(opened, fd) < 0))
            return err_set(e, EXIT_CANNOT, "a worker under compute-sanitizer has lost its pipes");
        if (opened != fd)
            close(opened);
    }
    return true;
}

bool sanitizer_enter(const char *const *arguments, err *e) {
    const char *tool = sanitizer_get_tool();
    char program[PATH_MAX], self[PATH_MAX], path[PATH_MAX], owner[24];
    if (!tool)
        return true;
    if (get_log())
        return take_pipes(e);
    if (!find_program(program, sizeof program, e) || !os_find_self(self, sizeof self, e) ||
        !validation_name_log(path, sizeof path, e))
        return false;
    const char *const first[] = {program, "--tool", tool, "--log-file", path};
    enum { FIRST = sizeof first / sizeof *first, OPTIONS = 2 * sizeof options / sizeof *options };
    size_t given = 0;
    while (arguments[given])
        given++;
    const char **argv = array_new(FIRST + OPTIONS + 1 + given + 1, sizeof *argv);
    memcpy(argv, first, sizeof first);
    size_t count = add_options(program, tool, argv, FIRST);
    argv[count++] = self;
    memcpy(argv + count, arguments, given * sizeof *argv);
    snprintf(owner, sizeof owner, "%ld", (long)getpid());
    setenv(log_variable, path, 1);
    setenv(owner_variable, owner, 1);
    execv(program, (char **)(uintptr_t)argv);
    free(argv);
    return err_set(e, EXIT_CANNOT, "cannot start %.200s: %s", program, strerror(errno));
}

/* Reading --------------------------------------------------------------------------------------- */

/* Reports are written by another process: they are waited for until the file has stopped growing.
 * What comes later still is read when all workers have ended. */
void sanitizer_read_log(finding_list *out) {
    static size_t done;
    enum { TRIES = 40, NAP_NS = 4000000 };
    const char *path = get_log();
    size_t before = SIZE_MAX;
    for (int i = 0; path && i < TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        size_t bytes = 0;
        char *text = os_read_file(path, &bytes, NULL);
        bool is_still = bytes == before;
        char *end = text && is_still && bytes > done ? strrchr(text + done, '\n') : NULL;
        if (end) {
            end[1] = 0;
            sanitizer_parse(text + done, out);
            done = (size_t)(end + 1 - text);
        }
        bool is_there = text != NULL;
        free(text);
        if (is_still || !is_there)
            return;
        before = bytes;
    }
}
