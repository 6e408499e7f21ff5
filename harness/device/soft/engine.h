/* engine: kernels run in a process of their own that can do nothing but compute.
 *
 * Kernel text is code from somewhere, and C++ has a hundred ways to reach what MSL does not have. The
 * process shares the buffers (arena.h) and two pipes with the program, and gives up everything else
 * before it loads the first kernel (sandbox.c). The program compiles, reads and writes files, and
 * believes nothing that comes back: results are numbers in buffers, times, and texts that it cuts.
 *
 * A process that faults takes the program along with the same signal, as if the kernel had run in it:
 * cases run in workers (worker.h), which is where crashes are reported. One that was stopped by the
 * sandbox is an error that names the kernel.
 *
 * Where there is no sandbox (macOS) the same code is a thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "arena.h"
#include "harness/base/child.h"
#include "harness/base/err.h"
#include "harness/device/finding.h"
#include "harness/device/msl/msl.h"
#include "pool.h"

/* What kernels do without (sandbox.c) ------------------------------------------------------------- */

typedef struct {
    bool has_files, has_calls; /* what the system could do */
} sandbox_state;

/* In this order: files while the process has one thread, calls when it has all it needs. */
bool sandbox_close_files(const char *readable);
/* Descriptors come from `in` alone, and only `out` and stderr can be written to. */
bool sandbox_close_calls(int in, int out);

/* The number of the call that ended the process, kept where the parent can read it. */
void sandbox_note_calls(volatile int *number);

/* What the two sides say to each other: answers come in the order of the orders that have one -------- */

#if defined(MSG_NOSIGNAL)
#define ENGINE_NO_SIGNAL MSG_NOSIGNAL
#else
#define ENGINE_NO_SIGNAL 0
#endif

enum { ENGINE_IMAGES = 4096, ENGINE_FRAMES = 16 };

typedef enum {
    ORDER_LOAD,
    ORDER_UNLOAD,
    ORDER_OPEN,
    ORDER_SHUT,
    ORDER_MAP, /* the file that follows, to be read */
    ORDER_UNMAP,
    ORDER_RUN
} order_kind;

/* RUN is followed by a number that the answer repeats: it is read when the kernels have ended, so that none of them can
 * answer in the engine's place. LOAD is followed by an order_file. MAP is answered by an answer_memory. RUN: `count` items stand at `at`. */
typedef struct {
    uint32_t kind;
    uint32_t image; /* LOAD, UNLOAD */
    void *at;
    uint64_t count; /* of memory: bytes */
} order;

typedef struct {
    char name[128], object[PATH_MAX];
} order_file;

/* The first answer: the engine is ready. */
typedef struct {
    uint32_t ok;
    sandbox_state sandbox;
    char problem[200];
} answer_ready;

typedef struct {
    uint32_t ok, count, value_bytes[MSL_PARAMS];
    uintptr_t begin; /* of the image */
    char problem[200];
} answer_loaded;

typedef struct {
    void *at; /* NULL: it cannot be done */
} answer_memory;

typedef struct {
    uint64_t work_ns, number;
    uint32_t findings; /* how many follow */
    uint32_t counts;   /* rows that follow after them, of the last launch */
    uint32_t threadgroup_bytes;
    char problem[256];
} answer_done;

/* What the engine leaves for the program to read after its end; in the arena. */
typedef struct {
    volatile int running; /* item of the current job */
    volatile int call;    /* the system call that it was stopped at; -1: none */
    volatile int frame_count;
    uintptr_t frames[ENGINE_FRAMES]; /* of the kernel when it was last asked for its place */
} engine_notes;

typedef struct {
    soft_arena *arena;
    engine_notes *notes;
    int orders, answers, life; /* life closes when the program ends */
    int threads;
    pool_mode mode;
    bool cpu_clock, is_thread;
    char readable[PATH_MAX];
} engine_side;

/* Does every access go through checked mode? */
static inline bool engine_is_checked(const engine_side *s) {
    return s->mode == POOL_CHECKED || s->mode == POOL_TRACED;
}

/* Takes orders until there are no more. */
void engine_serve(const engine_side *s);
bool engine_read(int fd, void *data, size_t bytes);

/* A descriptor, with a byte that the other side does not read otherwise. */
bool engine_send_file(int socket, int file);

/* The program's side ------------------------------------------------------------------------------ */

typedef struct soft_engine soft_engine;

/* Room for the items of a command buffer, to be filled and queued. */
typedef struct soft_job soft_job;
struct soft_job {
    soft_job *next;
    uint64_t id, work_ns, number;
    soft_item *items; /* in the arena: a kernel may change them */
    soft_bound *bound;
    size_t count, capacity;
    char problem[256];
};

/* A file that both sides have mapped. */
typedef struct {
    const char *here;
    char *there;
    size_t bytes, uses;
} shared_file;

/* A loaded kernel, as the program knows it. */
typedef struct {
    bool is_used;
    char name[128], object[PATH_MAX];
    uintptr_t begin; /* in the engine */
} engine_image;

struct soft_engine {
    engine_side side;
    int orders, answers, life; /* our ends */
    child process;             /* none: a thread */
    unsigned seconds;          /* after which a launch that counts is stopped */
    bool is_late;              /* it was */
    size_t most_mb;            /* memory beside that for the buffers; more is stopped */
    bool is_large, is_forged;  /* it was; it answered itself */
    pthread_t thread;
    sandbox_state sandbox;
    err ended; /* why it takes no orders any more */
    engine_image *images;
    soft_job *queued, **queued_end, *finished, *spare;
    int open_count;
    uint64_t last_id;
    shared_file *shared;
    size_t shared_count, shared_room;
    finding_list findings;
    counted_row *counts; /* of the last launch */
    size_t count_rows;
    uint32_t threadgroup_bytes;
};

/* readable: the folder of compiled kernels. */
soft_engine *soft_engine_new(int threads, pool_mode mode, bool cpu_clock, const char *readable,
                             err *e);
void soft_engine_free(soft_engine *g); /* waits for what is queued */

/* An order without an answer, and one that is answered by an address; file: -1, or what goes with
 * it. */
bool engine_give_order(soft_engine *g, const order *o, err *e);
bool engine_ask(soft_engine *g, const order *o, int file, void **at, err *e);

/* Loads a compiled kernel: its number, and the sizes that the compiler knows of its parameters. */
typedef struct {
    uint32_t image, count;
    uint32_t value_bytes[MSL_PARAMS];
    char object[PATH_MAX];
} soft_loaded;
bool soft_engine_load(soft_engine *g, const char *object, const char *name, soft_loaded *out,
                      err *e);
void soft_engine_unload(soft_engine *g, uint32_t image);

bool soft_engine_queue(soft_engine *g, soft_job *j, uint64_t *id, err *e);
/* Waits for a queued job; gives the time its work took. */
bool soft_engine_wait(soft_engine *g, uint64_t id, uint64_t *work_ns, err *e);

/* For tests: engines that are made from now on are threads, as on macOS. */
void soft_engine_use_threads(bool yes);
