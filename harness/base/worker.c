/* worker: see worker.h. First the side that starts workers and hands out tasks, then the one that runs them.
 *
 * Each worker leads a process group of its own, so that killing it also kills the compiler it may
 * have started. Ctrl-C on a terminal therefore reaches only this process, which then ends them. */
#include "worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "child.h"
#include "os.h"

enum { MAX_JOBS = 256, TICK_MS = 200, GOODBYE_MS = 3000 };
#define MAX_ANSWER ((uint64_t)1 << 30)

typedef enum { TASK_WAITING, TASK_RUNNING, TASK_DONE } task_state;
enum { GROUP, FILE_OF, SCOPES };

typedef struct {
    task_state state;
    worker_outcome outcome;
    size_t first[SCOPES]; /* the first task of the same group, and of the same file */
    size_t started[SCOPES],
        done[SCOPES]; /* of its group and its file, counted in that first task */
} task;

typedef struct {
    child child;
    int to, from;
    bool busy;
    size_t task;
    uint64_t heard_ns; /* when it was last given something or sent a part of its answer */
    char note[WORKER_NOTE_BYTES]; /* what it is doing: "the oracle" */
    char place[WORKER_NOTE_BYTES];
    os_text answer; /* so far */
} worker;

typedef struct {
    const worker_plan *plan;
    char program[PATH_MAX];
    const char **arguments; /* of each worker */
    task *tasks;
    worker workers[MAX_JOBS];
    int jobs;
    size_t done, delivered;
    err fault; /* of the machine, or of this program: it ends the run */
} pool;

static bool start_worker(pool *p, worker *w, err *e) {
    int tasks[2], answers[2];
    if (!child_make_pipe(tasks, WORKER_OUT + 1, e))
        return false;
    if (!child_make_pipe(answers, WORKER_OUT + 1, e)) {
        close(tasks[0]);
        close(tasks[1]);
        return false;
    }
    /* stdout is for data, which only this process prints */
    const int files[] = {-1, 2, 2, [WORKER_IN] = tasks[0], [WORKER_OUT] = answers[1]};
    bool ok = child_start(&w->child, p->arguments, files, sizeof files / sizeof *files, true, e);
    close(tasks[0]);
    close(answers[1]);
    w->to = tasks[1];
    w->from = answers[0];
    w->answer.used = 0;
    if (ok)
        return true;
    close(w->to);
    close(w->from);
    return false;
}

/* Stops it and all it started, at once or after a moment to exit by itself: its wait status. */
static int end_worker(pool *p, worker *w, bool at_once) {
    int status = child_stop(&w->child, at_once ? 0 : GOODBYE_MS);
    if (child_get_status(status) == CHILD_FAULT)
        err_set(&p->fault, EXIT_CANNOT, "assay has a fault: the sanitizer's report is above");
    if (w->to >= 0)
        close(w->to);
    close(w->from);
    return status;
}

static void describe_death(int status, char *text, size_t size) {
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
                 {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"},
                 {SIGKILL, "SIGKILL"}, {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},
                 {SIGSYS, "SIGSYS"},   {SIGXCPU, "SIGXCPU"}};
    if (!WIFSIGNALED(status)) {
        snprintf(text, size, "crashed: the worker ended with status %d and no answer",
                 WEXITSTATUS(status));
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == WTERMSIG(status)) {
            snprintf(text, size, "crashed: %s", names[i].name);
            return;
        }
    snprintf(text, size, "crashed: signal %d", WTERMSIG(status));
}

/* Tasks ------------------------------------------------------------------------------------- */

static bool is_same_group(const char *a, const char *b) {
    size_t n = strcspn(a, "/");
    return n == strcspn(b, "/") && memcmp(a, b, n) == 0;
}

/* Where there are no files a group stands for one. */
static bool is_same(const worker_plan *p, int scope, size_t a, size_t b) {
    return scope == FILE_OF && p->files ? strcmp(p->files[a], p->files[b]) == 0
                                        : is_same_group(p->tasks[a], p->tasks[b]);
}

/* Tasks of a group are usually neighbours, and so are those of a file. */
static void find_groups(pool *p) {
    for (size_t i = 0; i < p->plan->count; i++)
        for (int s = 0; s < SCOPES; s++) {
            size_t *first = &p->tasks[i].first[s];
            *first = i;
            for (size_t k = i; k-- > 0 && *first == i;)
                if (is_same(p->plan, s, k, i))
                    *first = p->tasks[k].first[s];
        }
}

static task *get_first(pool *p, size_t index, int scope) {
    return &p->tasks[p->tasks[index].first[scope]];
}

/* True while another task of the same group or file is the first of them to run. */
static bool should_hold_back(pool *p, size_t index) {
    for (int s = 0; s < SCOPES; s++)
        if (get_first(p, index, s)->started[s] > 0 && get_first(p, index, s)->done[s] == 0)
            return true;
    return false;
}

static bool find_task(pool *p, size_t *found) {
    for (size_t i = p->delivered; i < p->plan->count; i++)
        if (p->tasks[i].state == TASK_WAITING && !should_hold_back(p, i)) {
            *found = i;
            return true;
        }
    return false;
}

static void give_task(pool *p, worker *w, size_t index) {
    const char *text = p->plan->tasks[index];
    char line[1024];
    int n = snprintf(line, sizeof line, "%s\n", text);
    assert(n > 0 && n < (int)sizeof line && !strchr(text, '\n'));
    /* A line fits a pipe. If the worker is gone, the hang-up on `from` will show it. */
    ssize_t written = write(w->to, line, (size_t)n);
    (void)written;
    p->tasks[index].state = TASK_RUNNING;
    for (int s = 0; s < SCOPES; s++)
        get_first(p, index, s)->started[s]++;
    w->task = index;
    w->busy = true;
    w->answer.used = 0;
    w->note[0] = w->place[0] = 0;
    w->heard_ns = os_now_ns();
}

static void end_task(pool *p, size_t index) {
    p->tasks[index].state = TASK_DONE;
    for (int s = 0; s < SCOPES; s++)
        get_first(p, index, s)->done[s]++;
    p->done++;
}

static void finish_task(pool *p, worker *w) {
    w->busy = false;
    end_task(p, w->task);
}

/* The tasks of the same group, or of the same file, that have not begun. */
static void give_up_others(pool *p, size_t index, int scope, const char *why) {
    for (size_t i = 0; i < p->plan->count; i++) {
        task *t = &p->tasks[i];
        if (t->state != TASK_WAITING || t->first[scope] != p->tasks[index].first[scope])
            continue;
        t->outcome.is_untried = true;
        snprintf(t->outcome.failure, sizeof t->outcome.failure, "not run: %s", why);
        end_task(p, i);
    }
}

/* Delivers the outcomes that are next in order and known. */
static bool deliver_outcomes(pool *p, err *e) {
    for (; p->delivered < p->plan->count; p->delivered++) {
        worker_outcome *o = &p->tasks[p->delivered].outcome;
        if (p->tasks[p->delivered].state != TASK_DONE)
            return true;
        progress_hide(p->plan->progress);
        if (!p->plan->deliver(p->plan->context, p->delivered, o, e))
            return false;
        free(o->answer);
        o->answer = NULL;
    }
    return true;
}

/* The worker is gone, or is ended now, and its task has failed. why is NULL if its wait status is
 * the reason. */
static void fail_task(pool *p, worker *w, const char *why) {
    int status = end_worker(p, w, why != NULL);
    char *failure = p->tasks[w->task].outcome.failure;
    size_t size = sizeof p->tasks[w->task].outcome.failure;
    if (why)
        snprintf(failure, size, "%s", why);
    else
        describe_death(status, failure, size);
    size_t used = strlen(failure);
    if (w->note[0])
        snprintf(failure + used, size - used, " in %s", w->note);
    used = strlen(failure);
    if (why && w->place[0])
        snprintf(failure + used, size - used, " at %s", w->place);
    finish_task(p, w);
}

static void take_answer(pool *p, worker *w, const worker_frame *frame) {
    worker_outcome *o = &p->tasks[w->task].outcome;
    if (frame->retire == WORKER_FAULT && frame->bytes == sizeof p->fault) {
        memcpy(&p->fault, w->answer.text + sizeof *frame, sizeof p->fault);
        return;
    }
    o->bytes = (size_t)frame->bytes;
    o->answer = array_new(1, o->bytes + 1);
    memcpy(o->answer, w->answer.text + sizeof *frame, o->bytes);
    if (frame->retire)
        end_worker(p, w, false); /* it exits by itself: what watches it may have more to write */
    finish_task(p, w);
    char why[80];
    worker_scope scope = p->plan->give_up
                             ? p->plan->give_up(p->plan->context, w->task, o, why, sizeof why)
                             : WORKER_NO_OTHERS;
    bool is_first = get_first(p, w->task, FILE_OF)->done[FILE_OF] == 1;
    if (scope != WORKER_NO_OTHERS)
        give_up_others(p, w->task, scope == WORKER_FILE && is_first ? FILE_OF : GROUP, why);
}

static bool is_note(const worker_frame *frame) {
    return (frame->magic == WORKER_NOTE || frame->magic == WORKER_PLACE) &&
           frame->bytes < WORKER_NOTE_BYTES;
}

/* Takes the notes at the start of what was received. */
static void take_notes(worker *w) {
    worker_frame frame;
    while (w->answer.used >= sizeof frame) {
        memcpy(&frame, w->answer.text, sizeof frame);
        size_t whole = sizeof frame + (size_t)frame.bytes;
        if (!is_note(&frame) || w->answer.used < whole)
            return;
        char *text = frame.magic == WORKER_NOTE ? w->note : w->place;
        w->place[0] = 0;
        memset(text, 0, WORKER_NOTE_BYTES);
        memcpy(text, w->answer.text + sizeof frame, (size_t)frame.bytes);
        memmove(w->answer.text, w->answer.text + whole, w->answer.used - whole);
        w->answer.used -= whole;
        if (frame.magic == WORKER_NOTE)
            w->heard_ns = os_now_ns();
    }
}

static void hear_worker(pool *p, worker *w) {
    ssize_t n = os_read_more(w->from, &w->answer);
    assert(w->answer.text);
    if (!w->busy) { /* it died, or sent something unasked; either way it had no task to lose */
        end_worker(p, w, true);
        return;
    }
    if (n <= 0) {
        fail_task(p, w, NULL);
        return;
    }
    take_notes(w);
    worker_frame frame;
    if (w->answer.used < sizeof frame)
        return;
    memcpy(&frame, w->answer.text, sizeof frame);
    if (is_note(&frame))
        return;
    w->heard_ns = os_now_ns();
    if (frame.magic != WORKER_MAGIC || frame.bytes > MAX_ANSWER)
        fail_task(p, w, "crashed: the worker's answer is malformed");
    else if (w->answer.used >= sizeof frame + frame.bytes)
        take_answer(p, w, &frame);
}

/* The pool ---------------------------------------------------------------------------------- */

static bool start_tasks(pool *p, err *e) {
    for (int i = 0; i < p->jobs; i++) {
        worker *w = &p->workers[i];
        size_t next;
        if (w->busy || !find_task(p, &next))
            continue;
        if (w->child.pid == 0 && !start_worker(p, w, e))
            return false;
        give_task(p, w, next);
    }
    return true;
}

/* Waits a moment for any worker to send something. */
static void hear_workers(pool *p, int wait_ms) {
    struct pollfd watch[MAX_JOBS];
    int owner[MAX_JOBS];
    nfds_t count = 0;
    for (int i = 0; i < p->jobs; i++)
        if (p->workers[i].child.pid) {
            owner[count] = i;
            watch[count++] = (struct pollfd){.fd = p->workers[i].from, .events = POLLIN};
        }
    if (poll(watch, count, wait_ms) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++)
        if (watch[i].revents)
            hear_worker(p, &p->workers[owner[i]]);
}

static void give_up_silent_ones(pool *p) {
    uint64_t now = os_now_ns();
    for (int i = 0; i < p->jobs; i++) {
        worker *w = &p->workers[i];
        bool is_compiling = strcmp(w->note, WORKER_COMPILER) == 0;
        double limit_s =
            is_compiling ? fmax(p->plan->timeout_s, WORKER_COMPILER_S) : p->plan->timeout_s;
        if (!w->child.pid || !w->busy || (double)(now - w->heard_ns) * 1e-9 < limit_s)
            continue;
        char why[80];
        snprintf(why, sizeof why, "timed out after %g s", limit_s);
        bool is_oracle = strncmp(w->note, WORKER_ORACLE, strlen(WORKER_ORACLE)) == 0;
        fail_task(p, w, why);
        if (is_oracle) /* that of one shape may take longer than that of another */
            continue;
        /* A kernel that hangs once will hang again: the rest of its group is not tried. */
        snprintf(why, sizeof why, "%.50s timed out", p->plan->tasks[w->task]);
        give_up_others(p, w->task, GROUP, why);
    }
}

/* Hangs up, so that idle workers exit by themselves; ends the others. */
static void end_workers(pool *p) {
    for (int i = 0; i < p->jobs; i++)
        if (p->workers[i].child.pid) {
            close(p->workers[i].to);
            p->workers[i].to = -1;
        }
    for (int i = 0; i < p->jobs; i++) {
        if (p->workers[i].child.pid)
            end_worker(p, &p->workers[i], p->workers[i].busy);
        free(p->workers[i].answer.text);
    }
}

static bool run_pool(pool *p, err *e) {
    while (p->done < p->plan->count) {
        if (!start_tasks(p, e))
            return false;
        hear_workers(p, TICK_MS);
        give_up_silent_ones(p);
        if (p->fault.text[0] || !deliver_outcomes(p, e))
            return false;
        progress_update(p->plan->progress, p->done);
        if (os_stop_signal)
            return err_set(e, EXIT_INTERRUPTED, "interrupted after %zu of %zu %s", p->done,
                           p->plan->count, p->plan->progress ? p->plan->progress->what : "tasks");
    }
    return true;
}

int worker_count_jobs(int most) {
    int cpus = os_count_cpus();
    return cpus < most ? cpus : most;
}

bool worker_run(const worker_plan *plan, err *e) {
    assert(plan->jobs >= 1);
    pool *p = array_new(1, sizeof *p);
    p->plan = plan;
    p->jobs = plan->jobs < MAX_JOBS ? plan->jobs : MAX_JOBS;
    p->tasks = array_new(plan->count + 1, sizeof *p->tasks);
    find_groups(p);
    size_t count = 0;
    while (plan->arguments[count])
        count++;
    p->arguments = array_new(count + 2, sizeof *p->arguments);
    p->arguments[0] = p->program;
    memcpy(p->arguments + 1, plan->arguments, count * sizeof *p->arguments);
    bool ok = os_find_self(p->program, sizeof p->program, e);
    if (ok) {
        void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* a dead worker must not end us */
        os_watch_stop(true);
        ok = run_pool(p, e);
        end_workers(p);
        if (p->fault.text[0]) {
            if (e)
                *e = p->fault;
            ok = err_blame_machine(e);
        }
        progress_hide(plan->progress);
        os_watch_stop(false);
        signal(SIGPIPE, before);
    }
    for (size_t i = 0; i < plan->count; i++)
        free(p->tasks[i].outcome.answer);
    free(p->tasks);
    free(p->arguments);
    free(p);
    return ok;
}

bool worker_cut_task(char *text, char **fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fields[i] = text;
        char *tab = i + 1 < count ? strchr(text, '\t') : NULL;
        if (i + 1 < count && !tab)
            return false;
        if (tab)
            *tab = 0;
        text = tab ? tab + 1 : text;
    }
    return true;
}

/* The side of the worker ----------------------------------------------------------------------
 *
 * Tasks are read by a thread of their own, which hands them on, and which ends the process and any compiler it
 * started when the other side hangs up during a task. So no worker outlives the program that started it, not even
 * one in an endless loop. */

enum { TASK_BYTES = 1024 };

static atomic_bool is_busy;

static void end_process_group(void) {
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(EXIT_INCONCLUSIVE);
}

static void *hand_on_tasks(void *argument) {
    const int *to = argument;
    char line[TASK_BYTES];
    FILE *in = fdopen(WORKER_IN, "r");
    while (in && fgets(line, sizeof line, in)) {
        is_busy = true;
        (void)os_write_all(*to, line, strlen(line));
    }
    if (is_busy)
        end_process_group();
    (void)os_write_all(*to, "\n", 1); /* the end: other processes may have the pipe open */
    return NULL;
}

void *worker_pack(const void *head, size_t head_bytes, memory_file *text, size_t *bytes) {
    fflush(text->out);
    *bytes = head_bytes + text->bytes;
    char *answer = array_new(*bytes, 1);
    memcpy(answer, head, head_bytes);
    if (text->bytes > 0)
        memcpy(answer + head_bytes, text->text, text->bytes);
    memory_file_free(text);
    return answer;
}

const char *worker_unpack(const worker_outcome *o, void *head, size_t head_bytes, err *e) {
    if (o->failure[0] || o->bytes < head_bytes)
        return err_null(e, o->failure[0] ? EXIT_WRONG : EXIT_CANNOT, "%s",
                        o->failure[0] ? o->failure : WORKER_OTHER_BUILD);
    memcpy(head, o->answer, head_bytes);
    return (const char *)o->answer + head_bytes; /* a NUL follows it */
}

static bool is_serving;

bool worker_is_served(void) {
    return is_serving;
}

static void send_note(uint32_t magic, const char *what) {
    struct {
        worker_frame frame;
        char text[WORKER_NOTE_BYTES];
    } note = {.frame = {.magic = magic, .bytes = strlen(what)}};
    if (!is_serving || note.frame.bytes >= sizeof note.text)
        return;
    memcpy(note.text, what, (size_t)note.frame.bytes);
    (void)os_write_all(WORKER_OUT, &note, sizeof note.frame + (size_t)note.frame.bytes);
}

static char reached[WORKER_NOTE_BYTES];

void worker_set_reached(const char *text) {
    snprintf(reached, sizeof reached, "%s", text);
}

void worker_note(const char *what) {
    char text[2 * WORKER_NOTE_BYTES];
    const bool is_run = strcmp(what, WORKER_KERNEL) == 0 || strcmp(what, WORKER_ORACLE) == 0;
    snprintf(text, sizeof text, "%s%s", what, is_run ? reached : "");
    send_note(WORKER_NOTE, text);
}

void worker_note_place(const char *place) {
    send_note(WORKER_PLACE, place);
}

bool worker_serve(worker_task run, void *context, err *e) {
    if (fcntl(WORKER_IN, F_SETFD, FD_CLOEXEC) != 0 || fcntl(WORKER_OUT, F_SETFD, FD_CLOEXEC) != 0)
        return err_set(e, EXIT_USAGE, "--worker is used by assay itself, not by hand");
    static int tasks[2];
    pthread_t reader;
    if (!child_make_pipe(tasks, WORKER_OUT + 1, e))
        return false;
    int failed = pthread_create(&reader, NULL, hand_on_tasks, &tasks[1]);
    if (failed)
        return err_set(e, EXIT_CANNOT, "cannot start a thread: %s", strerror(failed));
    pthread_detach(reader);
    is_serving = true;
    FILE *in = fdopen(tasks[0], "r");
    char line[TASK_BYTES];
    bool retire = false, ok = true;
    while (ok && !retire && in && fgets(line, sizeof line, in) && line[0] != '\n') {
        size_t bytes = 0;
        line[strcspn(line, "\n")] = 0;
        void *answer = run(context, line, &bytes, &retire);
        /* After the answer is out, a hang-up means the end: exit in order and flush stderr. */
        is_busy = false;
        const err *fault = err_get_machine_fault();
        retire |= fault != NULL;
        worker_frame frame = {.magic = WORKER_MAGIC,
                              .retire = fault ? WORKER_FAULT : retire,
                              .bytes = fault ? sizeof *fault : bytes};
        ok = os_write_all(WORKER_OUT, &frame, sizeof frame) &&
             os_write_all(WORKER_OUT, fault ? (const void *)fault : answer, (size_t)frame.bytes);
        free(answer);
    }
    return ok || err_set(e, EXIT_CANNOT, "cannot write an answer: %s", strerror(errno));
}
