/* worker_serve: the side of worker.h that runs tasks.
 *
 * Tasks are read by a thread of their own, which ends the process and any compiler it started when
 * the other side hangs up during a task. So no worker outlives the program that started it, not
 * even one in an endless loop. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

#include "os.h"

enum { TASK_BYTES = 1024 };

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char task[TASK_BYTES];
    bool has_task, busy, hung_up;
} inbox;

/* A line without its end. False when there are no more. */
static bool read_line(char *line, size_t size) {
    size_t used = 0;
    for (;;) {
        char c;
        ssize_t n = read(WORKER_IN, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if (c == '\n') {
            line[used] = 0;
            return true;
        }
        if (used + 1 < size)
            line[used++] = c;
    }
}

static void end_process_group(void) {
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(EXIT_INCONCLUSIVE);
}

static void *read_tasks(void *argument) {
    inbox *box = argument;
    char line[TASK_BYTES];
    while (read_line(line, sizeof line)) {
        pthread_mutex_lock(&box->lock);
        strcpy(box->task, line);
        box->has_task = true;
        pthread_cond_signal(&box->changed);
        pthread_mutex_unlock(&box->lock);
    }
    pthread_mutex_lock(&box->lock);
    if (box->busy || box->has_task)
        end_process_group();
    box->hung_up = true;
    pthread_cond_signal(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

static bool wait_for_task(inbox *box, char *task) {
    pthread_mutex_lock(&box->lock);
    while (!box->has_task && !box->hung_up)
        pthread_cond_wait(&box->changed, &box->lock);
    bool has_task = box->has_task;
    if (has_task)
        strcpy(task, box->task);
    box->busy = has_task;
    box->has_task = false;
    pthread_mutex_unlock(&box->lock);
    return has_task;
}

static void set_idle(inbox *box) {
    pthread_mutex_lock(&box->lock);
    box->busy = false;
    pthread_mutex_unlock(&box->lock);
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

void worker_note(const char *what) {
    send_note(WORKER_NOTE, what);
}

void worker_note_place(const char *place) {
    send_note(WORKER_PLACE, place);
}

bool worker_serve(worker_task run, void *context, err *e) {
    if (fcntl(WORKER_IN, F_SETFD, FD_CLOEXEC) != 0 || fcntl(WORKER_OUT, F_SETFD, FD_CLOEXEC) != 0)
        return err_set(e, EXIT_USAGE, "--worker is used by assay itself, not by hand");
    static inbox box = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t reader;
    int failed = pthread_create(&reader, NULL, read_tasks, &box);
    if (failed)
        return err_set(e, EXIT_CANNOT, "cannot start a thread: %s", strerror(failed));
    pthread_detach(reader);
    is_serving = true;
    char task[TASK_BYTES];
    bool retire = false, ok = true;
    while (ok && !retire && wait_for_task(&box, task)) {
        size_t bytes = 0;
        void *answer = run(context, task, &bytes, &retire);
        /* After the answer is out, a hang-up means the end: exit in order and flush stderr. */
        set_idle(&box);
        worker_frame frame = {.magic = WORKER_MAGIC, .retire = retire, .bytes = bytes};
        ok = os_write_all(WORKER_OUT, &frame, sizeof frame) &&
             os_write_all(WORKER_OUT, answer, bytes);
        free(answer);
    }
    return ok || err_set(e, EXIT_CANNOT, "cannot write an answer: %s", strerror(errno));
}
