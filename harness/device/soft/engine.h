/* engine: kernels run in a process of their own that can do nothing but compute.
 *
 * Kernel text is code from somewhere, and C++ has a hundred ways to reach what MSL does not have. The
 * process shares the buffers (arena.h) and two pipes with the program, and gives up everything else
 * before it loads the first kernel (sandbox.h). The program compiles, reads and writes files, and
 * believes nothing that comes back: results are numbers in buffers, times, and texts that it cuts.
 *
 * A process that faults takes the program along with the same signal, as if the kernel had run in it:
 * cases run in workers (worker.h), which is where crashes are told. One that was stopped by the
 * sandbox is an error that names the kernel.
 *
 * Where there is no sandbox (macOS) the same code is a thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "harness/base/err.h"
#include "harness/device/finding.h"
#include "harness/device/msl/msl.h"
#include "pool.h"
#include "sandbox.h"

typedef struct soft_engine soft_engine;

/* readable: the folder of compiled kernels. */
soft_engine *soft_engine_new(int threads, pool_mode mode, bool cpu_clock, const char *readable,
                             err *e);
void soft_engine_free(soft_engine *g); /* waits for what is queued */
sandbox_state soft_engine_get_sandbox(const soft_engine *g);
finding_list *soft_engine_get_findings(soft_engine *g);
/* Of the last launch that was waited for, and the bytes of its threadgroup memory. */
const counted_row *soft_engine_get_counts(const soft_engine *g, size_t *count, uint32_t *bytes);

/* Memory that kernels can be given; zeros. In checked mode there is a gap around it that no other
 * memory uses: an access far outside is still told to be this buffer's. */
void *soft_engine_take(soft_engine *g, size_t bytes);
void soft_engine_give(soft_engine *g, void *at);
/* The same with POISON_PATTERN in it. Of a large private one only the engine has the contents, and
 * only what is used of it takes memory: it is read and written with the functions below. */
void *soft_engine_take_poisoned(soft_engine *g, size_t bytes, bool is_private);
bool soft_engine_copy(soft_engine *g, void *block, size_t offset, void *host, size_t bytes,
                      bool to_engine, err *e);
bool soft_engine_fill(soft_engine *g, void *block, size_t offset, size_t bytes, uint16_t pattern,
                      err *e);
/* Memory of the program as kernels see it, to be read. NULL if they cannot: it must be a part of a file
 * that is mapped (map_guard.h). Once unshared for each time that it was shared, it is gone. */
void *soft_engine_share(soft_engine *g, const void *memory, size_t bytes);
void soft_engine_unshare(soft_engine *g, const void *memory);
/* Checked mode: notes which bytes were written; the marks; and the same memory at another address,
 * n from 1. */
void soft_engine_mark(soft_engine *g, void *at, size_t bytes, bool is_written);
unsigned char *soft_engine_get_marks(const soft_engine *g, const void *at);
void *soft_engine_get_view(soft_engine *g, void *at, int n);

/* Loads a compiled kernel: its number, and the sizes that the compiler knows of its parameters. */
typedef struct {
    uint32_t image, count;
    uint32_t value_bytes[MSL_PARAMS];
    char object[PATH_MAX];
} soft_loaded;
bool soft_engine_load(soft_engine *g, const char *object, const char *name, soft_loaded *out,
                      err *e);
void soft_engine_unload(soft_engine *g, uint32_t image);

/* Room for the items of a command buffer, to be filled and queued. */
typedef struct soft_job soft_job;
soft_job *soft_engine_new_job(soft_engine *g, size_t count, err *e);
soft_item *soft_job_get_item(soft_job *j, size_t i);
soft_bound *soft_job_get_bound(soft_job *j, size_t i); /* SOFT_BUFFERS of them; NULL: not checked */
bool soft_engine_queue(soft_engine *g, soft_job *j, uint64_t *id, err *e);
/* Waits for a queued job; gives the time its work took. */
bool soft_engine_wait(soft_engine *g, uint64_t id, uint64_t *work_ns, err *e);

/* For tests: engines that are made from now on are threads, as on macOS. */
void soft_engine_use_threads(bool yes);
