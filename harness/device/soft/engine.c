/* engine: see engine.h. The program's side: starts the engine, loads kernels, runs jobs. engine_serve.c has the
 * other. */
#if defined(__linux__)
#define _GNU_SOURCE /* prlimit */
#endif
#include "engine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/macro_place.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "object.h"

/* The most jobs that may be unanswered: their answers fit into a pipe, and neither side waits for the
 * other to read. */
enum { MOST_OPEN = 64, MOST_FINDINGS = 1 << 16, MOST_COUNTS = 1 << 22 };

static bool use_threads;

void soft_engine_use_threads(bool yes) {
    use_threads = yes;
}

/* Starting and ending -------------------------------------------------------------------------- */

/* Orders go through a socket: writing to one whose reader is gone is an error, not a signal. */
static bool open_ends(bool is_socket, int *reads, int *writes, err *e) {
    int ends[2];
    if ((is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0)
        return err_set(e, EXIT_CANNOT, "cannot make a %s: %s", is_socket ? "socket" : "pipe",
                       strerror(errno));
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    *reads = ends[0];
    *writes = ends[1];
#if defined(SO_NOSIGPIPE)
    if (is_socket)
        setsockopt(*writes, SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    return true;
}

static bool write_orders(const soft_engine *g, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        ssize_t n = send(g->orders, at, bytes, ENGINE_NO_SIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static void close_end(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void *serve(void *side) {
    engine_serve(side);
    return NULL;
}

static bool start(soft_engine *g, err *e) {
    engine_side *s = &g->side;
#if defined(__linux__)
    s->is_thread = use_threads;
#else
    s->is_thread = true;
#endif
    if (s->is_thread) {
        s->is_thread = pthread_create(&g->thread, NULL, serve, s) == 0;
        return s->is_thread || err_set(e, EXIT_CANNOT, "the software device cannot start a thread");
    }
    g->process.pid = fork(); /* not child_start: it shares this process's memory */
    if (g->process.pid == 0) {
        engine_serve(s);
        _exit(0);
    }
    close_end(&s->orders);
    close_end(&s->answers);
    close_end(&s->life);
    host_add_process(g->process.pid);
    return g->process.pid > 0 ||
           err_set(e, EXIT_CANNOT, "the software device cannot start a process");
}

/* What kernels have filled; weights are pages of a file, and are not counted. */
static size_t get_memory_mb(pid_t pid) {
    static const char *const names[] = {"RssAnon:", "RssShmem:"};
    char path[64];
    size_t kb = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    char *text = os_read_file(path, NULL, NULL);
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(text, names[i]);
        kb += at ? strtoul(at + strlen(names[i]), NULL, 10) : 0;
    }
    free(text);
    return kb >> 10;
}

enum { COUNT_SECONDS = 120, GOODBYE_MS = 5000, KERNEL_MB = 1024 };
enum { STACKS_MB = ((int64_t)SOFT_MAX_THREADS * SOFT_STACK_BYTES) >> 20 };

soft_engine *soft_engine_new(int threads, pool_mode mode, bool cpu_clock, const char *readable,
                             err *e) {
    soft_engine *g = array_new(1, sizeof *g);
    engine_side *s = &g->side;
    *s = (engine_side){.orders = -1, .answers = -1, .life = -1};
    s->threads = threads;
    s->mode = mode;
    const char *given = getenv("ASSAY_COUNT_SECONDS");
    g->seconds = given && atoi(given) > 0 ? (unsigned)atoi(given) : COUNT_SECONDS;
    /* Beside the buffers: the stacks of all fibers, tables of checked mode and findings. */
    const char *most = getenv("ASSAY_KERNEL_MB");
    g->most_mb =
        most && atoi(most) > 0 ? (size_t)atoi(most) : KERNEL_MB + (size_t)threads * STACKS_MB;
    s->cpu_clock = cpu_clock;
    snprintf(s->readable, sizeof s->readable, "%s", readable);
    g->orders = g->answers = g->life = -1;
    g->queued_end = &g->queued;
    g->images = array_new(ENGINE_IMAGES, sizeof *g->images);
    answer_ready ready;
    s->arena = soft_arena_new(engine_is_checked(s), e);
    bool ok = s->arena && (s->notes = soft_arena_take(s->arena, sizeof *s->notes, 0)) &&
              open_ends(true, &s->orders, &g->orders, e) &&
              open_ends(false, &g->answers, &s->answers, e) &&
              open_ends(false, &s->life, &g->life, e);
    if (ok)
        s->notes->call = -1;
    ok = ok && start(g, e);
    if (ok && !engine_read(g->answers, &ready, sizeof ready))
        ok = err_set(e, EXIT_CANNOT, "the process of the software device ended at its start");
    else if (ok && !ready.ok)
        ok = err_set(e, EXIT_CANNOT, "%.199s", ready.problem);
    if (ok) {
        g->sandbox = ready.sandbox;
        g->most_mb += get_memory_mb(g->process.pid); /* what it has of this process */
        return g;
    }
    soft_engine_free(g);
    return NULL;
}

static void free_jobs(soft_job *j) {
    for (soft_job *next; j; j = next) {
        next = j->next;
        free(j);
    }
}

void soft_engine_free(soft_engine *g) {
    if (!g)
        return;
    close_end(&g->orders);
    if (g->side.is_thread)
        pthread_join(g->thread, NULL);
    if (g->process.pid > 0) {
        host_remove_process(g->process.pid);
        child_stop(&g->process, GOODBYE_MS);
    }
    int *ends[] = {&g->answers, &g->life, &g->side.orders, &g->side.answers, &g->side.life};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        close_end(ends[i]);
    free_jobs(g->queued);
    free_jobs(g->finished);
    free_jobs(g->spare);
    finding_free(&g->findings);
    soft_arena_free(g->side.arena);
    free(g->shared);
    free(g->counts);
    free(g->images);
    free(g);
}

/* The kernel that was running. What the engine left is only a hint: it is cut to what can be. */
static const engine_image *find_running(const soft_engine *g) {
    const soft_job *j = g->queued;
    int i = g->side.notes->running;
    if (!j || i < 0 || (size_t)i >= j->count)
        return NULL;
    uint32_t image = j->items[i].image;
    return image < ENGINE_IMAGES && g->images[image].is_used ? &g->images[image] : NULL;
}

/* Checked mode has a record of who touched each word last, of up to 12 times its size. */
static size_t get_most_mb(const soft_engine *g) {
    const size_t times = engine_is_checked(&g->side) ? 24 : 4;
    return g->most_mb + (times * soft_arena_get_taken(g->side.arena) >> 20);
}

/* The engine has hung up. It is as if the kernel had run here: the same signal ends this process. */
static bool bury(soft_engine *g, err *e) {
    if (g->ended.code == EXIT_OK) {
        host_remove_process(g->process.pid);
        const int status = g->process.pid > 0 ? child_stop(&g->process, GOODBYE_MS) : 0;
        const engine_image *image = find_running(g);
        const char *name = image ? image->name : "?";
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0, call = g->side.notes->call;
        if (child_get_status(status) == CHILD_FAULT)
            _exit(CHILD_FAULT);
#define END(...) err_set(&g->ended, EXIT_WRONG, "kernel '%.80s' " __VA_ARGS__)
        if (number == SIGSYS && call >= 0)
            END("tried to call the operating system (call %d): it was stopped", name, call);
        else if (number == SIGSYS)
            END("tried to call the operating system: it was stopped", name);
        else if (g->is_late)
            END("was stopped after %u s of counting: if it is not an endless loop, raise --timeout "
                "or count a part with --sample",
                name, g->seconds);
        else if (g->is_large)
            END("used more than %zu MB of memory: it was stopped (see ASSAY_KERNEL_MB)", name,
                get_most_mb(g));
        else if (g->is_forged)
            END("answered in place of the device: it was stopped", name);
        else if (number == 0 || number == SIGKILL)
            END("ended the process that it ran in", name);
        else if (g->side.mode == POOL_COUNTED && number != SIGBUS)
            END("crashed (%s); assay launch --validate says where", name, strsignal(number));
#undef END
        else {
            if (number == SIGBUS)
                for (size_t i = 0; i < g->shared_count;
                     i++) /* whoever guards a file that became shorter says so */
                    if (g->shared[i].uses > 0)
                        (void)*(const volatile char *)&g->shared[i].here[g->shared[i].bytes - 1];
            signal(number, SIG_DFL);
            raise(number);
        }
    }
    *e = g->ended;
    return false;
}

bool engine_give_order(soft_engine *g, const order *o, err *e) {
    if (g->ended.code != EXIT_OK || !write_orders(g, o, sizeof *o))
        return bury(g, e);
    return true;
}

static void keep_findings(soft_engine *g, uint32_t count) {
    finding f;
    for (uint32_t i = 0; i < count && engine_read(g->answers, &f, sizeof f); i++) {
        f.kernel[sizeof f.kernel - 1] = f.file[sizeof f.file - 1] = 0;
        f.label[sizeof f.label - 1] = f.text[sizeof f.text - 1] = 0;
        if ((unsigned)f.what < FINDING_CLASSES && f.count > 0)
            finding_add(&g->findings, &f);
    }
}

static bool keep_counts(soft_engine *g, const answer_done *done) {
    free(g->counts);
    g->counts = array_new(done->counts + 1u, sizeof *g->counts);
    g->count_rows = done->counts;
    g->threadgroup_bytes = done->threadgroup_bytes;
    return engine_read(g->answers, g->counts, done->counts * sizeof *g->counts);
}

enum { FIRST_LOOK_MS = 250, NEXT_LOOK_MS = 10, MEMORY_LOOK_MS = 50, WAIT_MS = 2 };
enum { IMAGE_BYTES = 1 << 24 /* far larger than any kernel's object */ };

static bool spell_place(const engine_image *image, uintptr_t at, char *text, size_t size) {
    char file[128] = "";
    int line = 0;
    const uintptr_t offset = at - 1 - image->begin;
    if (offset >= IMAGE_BYTES || !soft_find_line(image->object, offset, file, sizeof file, &line) ||
        line <= 0 || !strchr(file, '.') || strncmp(file, DWARF_SHIM, strlen(DWARF_SHIM)) == 0)
        return false;
    macro_place_cut(file, &(macro_place){.line = 0});
    snprintf(text, size, "%.40s:%d", file, line);
    return true;
}

/* Tells whoever waits for this process (worker.h) at which line it is. */
static bool look_where(const soft_engine *g) {
    const engine_image *image = find_running(g);
    char text[WORKER_NOTE_BYTES * 2];
    engine_notes *n = g->side.notes;
    if (!image || !worker_is_served())
        return false;
    n->frame_count = 0;
    kill(g->process.pid, SIGUSR1);
    poll(NULL, 0, WAIT_MS);
    const int count = n->frame_count < ENGINE_FRAMES ? n->frame_count : ENGINE_FRAMES;
    for (int i = 0; i < count; i++)
        if (spell_place(image, n->frames[i], text, sizeof text)) {
            worker_note_place(text);
            return true;
        }
    return false;
}

/* A kernel that takes long is asked for its line, later and later, so that whoever ends this process
 * can tell it. One that counts runs in no worker that would be stopped: it is stopped here. */
static void wait_for_answer(soft_engine *g) {
    struct pollfd answer = {.fd = g->answers, .events = POLLIN};
    const uint64_t start_ns = os_now_ns(), ms = 1000000;
    const bool counts = g->side.mode == POOL_COUNTED;
    uint64_t look_ms = FIRST_LOOK_MS, wait_ms = MEMORY_LOOK_MS;
    while (poll(&answer, 1, (int)wait_ms) <= 0) {
        const uint64_t spent_ms = (os_now_ns() - start_ns) / ms;
        g->is_late = counts && spent_ms >= g->seconds * UINT64_C(1000);
        g->is_large = get_memory_mb(g->process.pid) > get_most_mb(g);
        if (g->is_late || g->is_large) {
            kill(g->process.pid, SIGKILL);
            return;
        }
        const bool is_known = spent_ms < look_ms || counts || look_where(g);
        if (spent_ms >= look_ms)
            look_ms = is_known ? 2 * spent_ms : spent_ms + NEXT_LOOK_MS;
        wait_ms = is_known ? MEMORY_LOOK_MS : NEXT_LOOK_MS;
    }
}

static bool refuse_answer(soft_engine *g, err *e) {
    g->is_forged = g->process.pid > 0;
    if (g->is_forged)
        kill(g->process.pid, SIGKILL);
    return bury(g, e);
}

/* The answer to the first job that waits for one. */
static bool receive(soft_engine *g, err *e) {
    answer_done done;
    if (g->process.pid > 0)
        wait_for_answer(g);
    if (!engine_read(g->answers, &done, sizeof done))
        return bury(g, e);
    if (done.number != g->queued->number || done.findings > MOST_FINDINGS ||
        done.counts > MOST_COUNTS)
        return refuse_answer(g, e);
    keep_findings(g, done.findings);
    if (g->side.mode == POOL_COUNTED && !keep_counts(g, &done))
        return bury(g, e);
    soft_job *j = g->queued;
    g->queued = j->next;
    if (!g->queued)
        g->queued_end = &g->queued;
    done.problem[sizeof done.problem - 1] = 0;
    snprintf(j->problem, sizeof j->problem, "%s", done.problem);
    j->work_ns = done.work_ns;
    j->next = g->finished;
    g->finished = j;
    g->open_count--;
    return true;
}

static bool receive_all(soft_engine *g, err *e) {
    while (g->open_count > 0)
        if (!receive(g, e))
            return false;
    struct pollfd more = {.fd = g->answers, .events = POLLIN}; /* an answer to no order */
    return g->ended.code != EXIT_OK || poll(&more, 1, 0) <= 0 || !(more.revents & POLLIN) ||
           refuse_answer(g, e);
}

bool engine_ask(soft_engine *g, const order *o, int file, void **at, err *e) {
    answer_memory answer;
    if (!receive_all(g, e) || !engine_give_order(g, o, e))
        return false;
    if (!engine_send_file(g->orders, file) || !engine_read(g->answers, &answer, sizeof answer))
        return bury(g, e);
    *at = answer.at;
    return true;
}

/* Kernels -------------------------------------------------------------------------------------- */

bool soft_engine_load(soft_engine *g, const char *object, const char *name, soft_loaded *out,
                      err *e) {
    uint32_t image = 0;
    while (image < ENGINE_IMAGES && g->images[image].is_used)
        image++;
    if (image == ENGINE_IMAGES)
        return err_set(e, EXIT_CANNOT, "more than %d kernels are loaded", ENGINE_IMAGES);
    order_file file = {.name = ""};
    answer_loaded answer;
    snprintf(file.name, sizeof file.name, "%s", name);
    snprintf(file.object, sizeof file.object, "%s", object);
    if (!receive_all(g, e) || !engine_give_order(g, &(order){ORDER_LOAD, image, NULL, 0}, e))
        return false;
    if (!write_orders(g, &file, sizeof file) || !engine_read(g->answers, &answer, sizeof answer))
        return bury(g, e);
    answer.problem[sizeof answer.problem - 1] = 0;
    if (!answer.ok)
        return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' cannot be loaded: %.140s", name,
                       answer.problem);
    *out = (soft_loaded){.image = image,
                         .count = answer.count < MSL_PARAMS ? answer.count : MSL_PARAMS};
    memcpy(out->object, file.object, sizeof out->object);
    memcpy(out->value_bytes, answer.value_bytes, sizeof out->value_bytes);
    engine_image *kept = &g->images[image];
    memcpy(kept->name, file.name, sizeof file.name);
    memcpy(kept->object, file.object, sizeof file.object);
    kept->begin = answer.begin;
    kept->is_used = true;
    return true;
}

void soft_engine_unload(soft_engine *g, uint32_t image) {
    err unused;
    if (g->ended.code == EXIT_OK)
        engine_give_order(g, &(order){ORDER_UNLOAD, image, NULL, 0}, &unused);
    g->images[image].is_used = false;
}

/* Jobs ----------------------------------------------------------------------------------------- */

/* A limit of CPU time is one of kernels: they have it, too. */
static void pass_limits(const soft_engine *g) {
#if defined(__linux__)
    struct rlimit limit;
    if (g->process.pid > 0 && getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        prlimit(g->process.pid, RLIMIT_CPU, &limit, NULL);
#else
    (void)g;
#endif
}

bool soft_engine_queue(soft_engine *g, soft_job *j, uint64_t *id, err *e) {
    pass_limits(g);
    bool ok = true;
    while (ok && g->open_count >= MOST_OPEN)
        ok = receive(g, e);
    j->id = *id = ++g->last_id;
    *g->queued_end = j;
    g->queued_end = &j->next;
    g->open_count++;
    if (getentropy(&j->number, sizeof j->number) != 0)
        return err_set(e, EXIT_CANNOT, "the system has no random numbers: %s", strerror(errno));
    return ok && engine_give_order(g, &(order){ORDER_RUN, 0, j->items, j->count}, e) &&
           (write_orders(g, &j->number, sizeof j->number) || bury(g, e));
}

bool soft_engine_wait(soft_engine *g, uint64_t id, uint64_t *work_ns, err *e) {
    soft_job **at;
    for (;;) {
        for (at = &g->finished; *at && (*at)->id != id; at = &(*at)->next)
            continue;
        if (*at)
            break;
        if (g->ended.code != EXIT_OK || !receive(g, e))
            return bury(g, e);
    }
    soft_job *j = *at;
    *at = j->next;
    *work_ns = j->work_ns;
    bool ok = !j->problem[0] || err_set(e, EXIT_WRONG, "%s", j->problem);
    j->next = g->spare;
    g->spare = j;
    return ok;
}
