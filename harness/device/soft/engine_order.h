/* engine_order: what the two sides of engine.h say to each other. Answers come in the order of the
 * orders that have one. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "engine.h"

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
    ORDER_POISON,  /* the file that follows in place of the arena's pages */
    ORDER_RESTORE, /* the arena's pages in their place again; its file follows */
    ORDER_COPY,
    ORDER_FILL,
    ORDER_RUN
} order_kind;

/* LOAD is followed by an order_file. MAP, POISON, RESTORE and COPY are answered by an answer_memory. RUN:
 * `count` items stand at `at`. */
typedef struct {
    uint32_t kind;
    uint32_t image; /* LOAD, UNLOAD; FILL: the pattern */
    void *at;
    uint64_t count;   /* of memory: bytes */
    const void *from; /* COPY */
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
    uint64_t work_ns;
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
static inline bool engine_side_is_checked(const engine_side *s) {
    return s->mode == POOL_CHECKED || s->mode == POOL_TRACED;
}

/* Takes orders until there are no more. */
void engine_serve(const engine_side *s);
bool engine_read(int fd, void *data, size_t bytes);
/* From now on SIGUSR1 asks where the kernel is. */
void engine_note_places(engine_notes *n, const soft_pool *p);

/* A descriptor, with a byte that the other side does not read otherwise; -1: none came. */
bool engine_send_file(int socket, int file);
int engine_receive_file(int socket);
