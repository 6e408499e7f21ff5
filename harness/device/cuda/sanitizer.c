/* sanitizer: see sanitizer.h. How a process comes under it, and what its reports say. */
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
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "ptx.h"

const char *const sanitizer_tools[SANITIZER_TOOLS] = {"memcheck", "racecheck", "initcheck",
                                                      "synccheck"};

static const char tool_variable[] = "ASSAY_SANITIZER";
static const char log_variable[] = "ASSAY_SANITIZER_LOG";     /* set: this process is watched */
static const char owner_variable[] = "ASSAY_SANITIZER_OWNER"; /* the process that holds the pipes */

static bool find_program(char *path, size_t size, err *e) {
    return ptx_find_tool("compute-sanitizer", path, size) ||
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
    if (!child_run(ask, &help, &status, &ignored))
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

/* Reports. Each begins with a line that says what it is; lines that are set in say where:
 *
 *     ========= Invalid __global__ read of size 4 bytes
 *     =========     at msl_copy+0x890 in copy.metal:29
 *     =========     by thread (63,0,0) in block (0,0,0)
 *     =========     Access to 0x7f0000000500 is out of bounds ------------------------------------- */

static const char mark[] = "=========";

/* A line of the sanitizer without its mark, as a text of its own; NULL for lines of others. */
static const char *read_line(const char *p, char *line, size_t size) {
    const char *end = p + strcspn(p, "\n");
    if (strncmp(p, mark, strlen(mark)) != 0)
        return NULL;
    p += strlen(mark);
    p += *p == ' ';
    snprintf(line, size, "%.*s", (int)(end - p), p);
    line[strcspn(line, "\r")] = 0;
    return line;
}

static const char *get_next(const char *p) {
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

/* `NAME+0x890 in FILE:LINE`, where NAME may have its parameters and FILE its folders. */
static void read_place(const char *p, finding *f) {
    const char *in = strstr(p, " in ");
    size_t prefix = strlen(PTX_ENTRY_PREFIX);
    if (strncmp(p, PTX_ENTRY_PREFIX, prefix) == 0)
        p += prefix;
    snprintf(f->kernel, sizeof f->kernel, "%.*s", (int)strcspn(p, "+( "), p);
    if (!in)
        return;
    char place[512];
    snprintf(place, sizeof place, "%s", in + strlen(" in "));
    place[strcspn(place, "[")] = 0;
    char *colon = strrchr(place, ':');
    if (!colon || atoi(colon + 1) <= 0)
        return;
    f->line = atoi(colon + 1);
    *colon = 0;
    snprintf(f->file, sizeof f->file, "%.127s", path_get_name(place));
}

static void read_detail(const char *p, finding *f) {
    unsigned t[3], g[3];
    p += strspn(p, " ");
    if (strncmp(p, "at ", 3) == 0 && !f->line)
        read_place(p + 3, f);
    else if (sscanf(p, "by thread (%u,%u,%u) in block (%u,%u,%u)", &t[0], &t[1], &t[2], &g[0],
                    &g[1], &g[2]) == 6)
        for (int i = 0; i < 3; i++) {
            f->thread[i] = t[i];
            f->group[i] = g[i];
        }
    else if (strstr(p, "misaligned"))
        f->what = FINDING_MISALIGNED;
    else if (strncmp(p, "Access", 6) != 0 && strncmp(p, "Address", 7) != 0 &&
             strncmp(p, "and is", 6) != 0)
        return;
    else
        finding_append(f, ": %s", p);
}

static void name_space(const char *head, finding *f) {
    snprintf(f->label, sizeof f->label, "%s memory",
             strstr(head, "__shared__")  ? "threadgroup"
             : strstr(head, "__local__") ? "private"
                                         : "device");
    const char *size = strstr(head, "of size ");
    f->bytes = size ? (uint32_t)strtoul(size + strlen("of size "), NULL, 10) : 0;
}

/* A race has two places. What is wrong is usually before the later one, where no barrier is. */
static void read_race(const char *head, const char *next, finding *f) {
    finding other = {.line = 0};
    char line[512];
    const char *at = strstr(head, "access at "), *second;
    f->what = FINDING_RACE_IN_GROUP;
    snprintf(f->label, sizeof f->label, "threadgroup memory");
    if (at)
        read_place(at + strlen("access at "), f);
    if (!read_line(next, line, sizeof line) || !(second = strstr(line, "access at ")))
        return;
    read_place(second + strlen("access at "), &other);
    if (!f->line || (strcmp(other.file, f->file) == 0 && other.line > f->line)) {
        f->line = other.line;
        snprintf(f->file, sizeof f->file, "%s", other.file);
    }
    finding_append(f, " %s", line + strspn(line, " "));
}

/* What the first line of a report says; false for lines that are none. */
static bool read_head(const char *head, finding *f) {
    const bool is_write = strstr(head, " write") || strstr(head, " atomic");
    name_space(head, f);
    if (strncmp(head, "Invalid __", 10) == 0 || strncmp(head, "Potential invalid __", 20) == 0)
        f->what = is_write ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    else if (strncmp(head, "Uninitialized __", 16) == 0)
        f->what = FINDING_UNWRITTEN;
    else if (strncmp(head, "Barrier error detected", 22) == 0)
        f->what = FINDING_BARRIER;
    else if (!strstr(head, "Race reported between"))
        return false;
    return true;
}

/* Lines that begin without a space and are no reports. */
static bool is_remark(const char *head) {
    static const char *const known[] = {"COMPUTE-SANITIZER",  "Program hit",    "Host API",
                                        "Target application", "ERROR SUMMARY",  "RACECHECK SUMMARY",
                                        "LEAK SUMMARY",       "Error: process", "No attachable",
                                        "Error: No attach",   "Internal Sanit", "Warning",
                                        "Error: Target"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(head, known[i], strlen(known[i])) == 0)
            return true;
    return !head[0] || head[0] == ' ';
}

/* A report of another kind: it has a place in a kernel. */
static bool has_place(const char *next) {
    char line[512];
    return read_line(next, line, sizeof line) && strncmp(line, "    at ", 7) == 0;
}

static bool read_report(const char *p, finding *f) {
    char head[512];
    *f = (finding){.what = FINDING_FAULT, .buffer = -1, .count = 1};
    if (!read_line(p, head, sizeof head))
        return false;
    const char *next = get_next(p);
    if (!read_head(head, f) && (is_remark(head) || !has_place(next)))
        return false;
    snprintf(f->text, sizeof f->text, "%.255s", head);
    if (strstr(head, "Race reported between"))
        read_race(head, next, f);
    char line[512];
    for (; *next && read_line(next, line, sizeof line) && line[0] == ' '; next = get_next(next))
        read_detail(line, f);
    if (!f->kernel[0])
        snprintf(f->kernel, sizeof f->kernel, "unknown kernel");
    return true;
}

/* The number after `name` in the last line that has it. */
static unsigned long read_summary(const char *text, const char *name) {
    unsigned long last = 0;
    for (const char *p = text; (p = strstr(p, name)); p++)
        last = strtoul(p + strlen(name), NULL, 10);
    return last;
}

size_t sanitizer_parse(const char *text, finding_list *out) {
    size_t count = 0;
    for (const char *p = text; *p; p = get_next(p)) {
        finding f;
        if (!read_report(p, &f))
            continue;
        finding_add(out, &f);
        count++;
    }
    return count;
}

/* Nothing is lost: what the summary counts was read, or at least some of it. */
static bool is_whole(const char *text) {
    finding_list found = {0};
    size_t count = sanitizer_parse(text, &found);
    bool has_remarks = strstr(text, "========= Program hit") || strstr(text, "========= Host API");
    finding_free(&found);
    return count > 0 || has_remarks ||
           (read_summary(text, "ERROR SUMMARY: ") == 0 &&
            read_summary(text, "RACECHECK SUMMARY: ") == 0);
}

static bool is_watched(const char *text) {
    return strstr(text, "========= COMPUTE-SANITIZER") &&
           !strstr(text, "Internal Sanitizer Error") && !strstr(text, "No attachable process") &&
           is_whole(text);
}

const log_format sanitizer_log = {
    .engine = "compute-sanitizer", .is_watched = is_watched, .parse = sanitizer_parse};
