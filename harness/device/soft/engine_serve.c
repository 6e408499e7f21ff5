/* engine_serve: the side of engine.h that runs kernels. At which line a kernel is that takes long, the program
 * asks by a signal: the addresses on the fiber that it interrupts are noted here, and the program looks them
 * up in the line table of the kernel that it loaded. */
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "rescue.h"

bool engine_read(int fd, void *data, size_t bytes) {
    for (char *at = data; bytes > 0;) {
        ssize_t n = read(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Descriptors ---------------------------------------------------------------------------------- */

typedef union { /* aligned as its head must be */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

/* A message of one byte, with room for a descriptor as a control message. */
#define MESSAGE(room, byte)                                                                        \
    {                                                                                              \
        .msg_iov = &(struct iovec){byte, 1}, .msg_iovlen = 1, .msg_control = (room)->bytes,        \
        .msg_controllen = sizeof(room)->bytes                                                      \
    }

bool engine_send_file(int socket, int file) {
    char byte = 0;
    control room = {.bytes = {0}};
    struct msghdr message = MESSAGE(&room, &byte);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    ssize_t n;
    do
        n = sendmsg(socket, &message, ENGINE_NO_SIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static int receive_file(int socket) {
    char byte;
    int file = -1;
    control room;
    struct msghdr message = MESSAGE(&room, &byte);
    ssize_t n;
    do
        n = recvmsg(socket, &message, 0);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof file))
        memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}

/* Where the kernel is -------------------------------------------------------------------------- */

static engine_notes *notes;
static const soft_pool *noted_pool;

/* Frames of the interrupted fiber, as far as its stack goes. */
static int note_frames(rescue_place p, uintptr_t *at) {
    const uintptr_t end = (p.sp / SOFT_STACK_BYTES + 1) * SOFT_STACK_BYTES;
    int n = 0;
    at[n++] = p.pc + 1; /* as if it were where a call returns to */
    while (n < ENGINE_FRAMES && p.fp >= p.sp && p.fp <= end - 16 && p.fp % 8 == 0) {
        uintptr_t frame[2];
        memcpy(frame, (const void *)p.fp, sizeof frame);
        at[n++] = frame[1];
        if (frame[0] <= p.fp)
            break;
        p.fp = frame[0];
    }
    return n;
}

static void note_place(int number, siginfo_t *info, void *context) {
    const rescue_place p = rescue_get_place(context);
    if (soft_pool_has_fiber(noted_pool, p.sp)) {
        notes->frame_count = note_frames(p, notes->frames);
    } else if (info->si_code == SI_USER) {
        soft_pool_signal_helpers(noted_pool, number); /* one of them may be in the kernel */
    }
}

/* From now on SIGUSR1 asks where the kernel is. */
static void note_places(engine_notes *n, const soft_pool *p) {
    const struct sigaction action = {.sa_sigaction = note_place,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    notes = n;
    noted_pool = p;
    sigaction(SIGUSR1, &action, NULL);
}

/* Before the first kernel ---------------------------------------------------------------------- */

/* The terminal's signals are for the program; faults are for whoever looks for them here. */
static void reset_signals(void) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static const int plain[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGCHLD, SIGXCPU};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        signal(plain[i], SIG_DFL);
}

/* Every descriptor but these: a result file or a pipe of the program is none of a kernel's. */
static void close_others(const int *kept, size_t count) {
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 2 + (CHILD_FAULT < 0) && nothing >= 0; fd++) /* 2: sanitizers report */
        dup2(nothing, fd);
    for (int from = 3;;) {
        int next = -1; /* the next one to keep */
        for (size_t i = 0; i < count; i++)
            if (kept[i] >= from && (next < 0 || kept[i] < next))
                next = kept[i];
        unsigned last = next < 0 ? ~0u : (unsigned)next - 1;
        bool is_done = next == from;
#if defined(SYS_close_range)
        is_done = is_done || syscall(SYS_close_range, (unsigned)from, last, 0) == 0;
#endif
        for (int fd = from; !is_done && fd < 4096 && (unsigned)fd <= last; fd++)
            close(fd);
        if (next < 0)
            return;
        from = next + 1;
    }
}

/* The program is gone: so is this process, even in the middle of an endless kernel. */
static void *watch_life(void *argument) {
    const engine_side *s = argument;
    char byte;
    engine_read(s->life, &byte, 1);
    _exit(0);
}

static soft_pool *start(const engine_side *s, answer_ready *ready) {
    err e = {.code = EXIT_OK};
    pthread_t life;
    if (!s->is_thread) {
        const int kept[] = {s->orders, s->answers, s->life, soft_arena_get_file(s->arena)};
        reset_signals();
        close_others(kept, sizeof kept / sizeof *kept);
    }
    bool ok = !engine_is_checked(s) || soft_arena_close_all(s->arena) ||
              err_set(&e, EXIT_CANNOT, "the software device cannot protect its memory");
    soft_arena_open(s->arena, s->notes, sizeof *s->notes, true);
    if (!s->is_thread) {
        close(soft_arena_get_file(s->arena));
        ready->sandbox.has_files = sandbox_close_files(s->readable);
    }
    soft_pool *pool = ok ? soft_pool_new(s->threads, s->mode, s->cpu_clock, &e) : NULL;
    if (pool && !s->is_thread) {
        note_places(s->notes, pool);
        if (pthread_create(&life, NULL, watch_life, (void *)(uintptr_t)s) != 0)
            _exit(1);
        sandbox_note_calls(&s->notes->call);
        ready->sandbox.has_calls = sandbox_close_calls(s->orders, s->answers);
    }
    ready->ok = pool != NULL;
    snprintf(ready->problem, sizeof ready->problem, "%.199s", e.text);
    return pool;
}

/* Orders --------------------------------------------------------------------------------------- */

static bool load(soft_image *image, const order_file *file, answer_loaded *out) {
    snprintf(image->name, sizeof image->name, "%s", file->name);
    snprintf(image->object, sizeof image->object, "%s", file->object);
    image->handle = dlopen(file->object, RTLD_NOW | RTLD_LOCAL);
    image->kernel = image->handle ? dlsym(image->handle, "assay_kernel") : NULL;
    if (image->kernel && image->kernel->abi == SOFT_ABI_VERSION) {
        image->sites = dlsym(image->handle, "assay_sites");
        Dl_info info;
        if (dladdr((const void *)(uintptr_t)image->kernel->fiber, &info))
            out->begin = (uintptr_t)info.dli_fbase;
        image->has_atomics = dlsym(image->handle, "assay_atomics") != NULL;
        for (; out->count < image->kernel->count && out->count < MSL_PARAMS; out->count++)
            out->value_bytes[out->count] = image->kernel->value_bytes[out->count];
        return true;
    }
    const char *why = dlerror();
    snprintf(out->problem, sizeof out->problem, "%.140s", why ? why : "it has no entry");
    if (image->handle)
        dlclose(image->handle);
    image->handle = NULL;
    return false;
}

static bool run(const engine_side *s, soft_pool *pool, const soft_image *images, const order *o) {
    answer_done done = {0};
    finding_list *found = soft_pool_get_findings(pool);
    done.work_ns = soft_pool_run(pool, o->at, o->count, images, &s->notes->running, done.problem);
    if (!engine_read(s->orders, &done.number, sizeof done.number))
        return false;
    done.findings = (uint32_t)found->count;
    size_t rows;
    const counted_row *counts = soft_pool_get_counts(pool, &rows, &done.threadgroup_bytes);
    done.counts = (uint32_t)rows;
    bool ok = os_write_all(s->answers, &done, sizeof done) &&
              os_write_all(s->answers, found->items, found->count * sizeof *found->items) &&
              os_write_all(s->answers, counts, rows * sizeof *counts);
    finding_clear(found);
    return ok;
}

static bool map_file(const engine_side *s, const order *o) {
    int file = receive_file(s->orders);
    void *at = mmap(NULL, o->count, PROT_READ, MAP_SHARED, file, 0);
    answer_memory answer = {at == MAP_FAILED ? NULL : at};
    if (file >= 0)
        close(file);
    return os_write_all(s->answers, &answer, sizeof answer);
}

static bool load_and_answer(const engine_side *s, soft_image *image) {
    order_file file;
    answer_loaded answer = {0};
    if (!engine_read(s->orders, &file, sizeof file))
        return false;
    answer.ok = load(image, &file, &answer);
    return os_write_all(s->answers, &answer, sizeof answer);
}

static bool obey(const engine_side *s, soft_pool *pool, soft_image *images, const order *o) {
    switch ((order_kind)o->kind) {
    case ORDER_RUN:
        return run(s, pool, images, o);
    case ORDER_LOAD:
        return load_and_answer(s, &images[o->image]);
    case ORDER_UNLOAD:
        if (images[o->image].handle)
            dlclose(images[o->image].handle);
        return true;
    case ORDER_OPEN:
    case ORDER_SHUT:
        soft_arena_open(s->arena, o->at, o->count, o->kind == ORDER_OPEN);
        return true;
    case ORDER_UNMAP:
        munmap(o->at, o->count);
        return true;
    case ORDER_MAP:
        return map_file(s, o);
    }
    return false;
}

void engine_serve(const engine_side *s) {
    answer_ready ready = {0};
    order o;
    soft_pool *pool = start(s, &ready);
    soft_image *images = array_new(ENGINE_IMAGES, sizeof *images);
    bool ok = os_write_all(s->answers, &ready, sizeof ready) && pool;
    while (ok && engine_read(s->orders, &o, sizeof o))
        ok = obey(s, pool, images, &o);
    for (size_t i = 0; i < ENGINE_IMAGES && s->is_thread; i++)
        if (images[i].handle)
            dlclose(images[i].handle);
    soft_pool_free(pool);
    free(images);
}
