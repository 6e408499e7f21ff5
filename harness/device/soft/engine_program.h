/* engine_program: what the two files of the program's side share; engine.c starts the engine, loads
 * kernels and runs jobs, engine_memory.c has the memory. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "engine_order.h"
#include "harness/base/child.h"

struct soft_job {
    soft_job *next;
    uint64_t id, work_ns;
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
    pthread_t thread;
    sandbox_state sandbox;
    err ended; /* why it takes no orders any more */
    engine_image *images;
    soft_job *queued, **queued_end, *finished, *spare;
    int open_count;
    uint64_t last_id;
    shared_file *shared;
    size_t shared_count, shared_room;
    char *stage; /* what is copied to and from memory that only the engine has */
    finding_list findings;
    counted_row *counts; /* of the last launch */
    size_t count_rows;
    uint32_t threadgroup_bytes;
};

static inline bool engine_is_checked(const soft_engine *g) {
    return engine_side_is_checked(&g->side);
}

/* An order without an answer, and one that is answered by an address; file: -1, or what goes with
 * it. */
bool engine_give_order(soft_engine *g, const order *o, err *e);
bool engine_ask(soft_engine *g, const order *o, int file, void **at, err *e);

/* The kernel that is running; NULL if none is known. */
const engine_image *engine_find_running(const soft_engine *g);
/* Tells whoever waits for this process (worker.h) at which line it is. */
bool engine_look_where(const soft_engine *g);

/* The engine met SIGBUS: reads what is shared with it, so that whoever guards a file that became
 * shorter says so (map_guard.h). */
void engine_read_shared(const soft_engine *g);
