/* ptx_copy: copies of memory in bulk, values sent to another block of a cluster, and the barriers in
 * shared memory that count their bytes; and copies by one thread, which it awaits without one.
 *
 * A copy is done as late as a kernel may rely on: its destination is spoilt when it starts, and
 * the bytes come after a thread has asked its barrier in vain. So a kernel that reads without
 * waiting, that asks once instead of in a loop, or that fills memory which others still read,
 * computes nonsense here and not only now and then on a GPU.
 *
 * Wrong use of a barrier (before its init, with more arrivals than it has, with bytes that were not
 * expected or that have not come when the block ends) is undefined on a GPU and
 * CUDA_ERROR_LAUNCH_FAILED here, as is a value that is sent to a block which may not have begun; a
 * wait for what never comes is CUDA_ERROR_LAUNCH_TIMEOUT. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"

enum { TAG = 0xBA5, MOST_ARRIVALS = (1 << 14) - 1, MOST_BYTES = (1 << 20) - 1 };

/* A barrier's 8 bytes: 14 bits of count, 14 of pending, 23 of bytes, the parity, 12 of TAG. */
typedef struct {
    uint32_t count;   /* arrivals of a phase */
    uint32_t pending; /* of them, those to come */
    int32_t bytes;    /* expected and not copied yet */
    uint32_t parity;  /* of the phase that is not complete */
} barrier;

typedef struct {
    uint8_t *to;
    uint8_t *barrier;        /* NULL: the thread waits for it */
    const ptx_thread *owner; /* whose copy it is */
    const uint8_t *from;     /* NULL: values */
    size_t bytes;
    size_t zeros; /* after those */
    uint32_t values[4];
    uint32_t closed; /* groups of its owner that ended after it was started */
} copy;

struct ptx_copies {
    copy *copies; /* that have not come */
    size_t count;
    uint8_t **barriers; /* all that were made */
    size_t barrier_count;
};

/* Barriers -------------------------------------------------------------------------------------- */

static bool read_barrier(const uint8_t *at, barrier *b) {
    uint64_t v;
    memcpy(&v, at, sizeof v);
    *b = (barrier){.count = (uint32_t)v & MOST_ARRIVALS,
                   .pending = (uint32_t)(v >> 14) & MOST_ARRIVALS,
                   .bytes = (int32_t)((int64_t)(v << 13) >> 41),
                   .parity = (uint32_t)(v >> 51) & 1};
    return v >> 52 == TAG;
}

/* With a phase that has become complete ended, and the next one begun. */
static bool write_barrier(uint8_t *at, barrier b) {
    bool is_wrong = b.bytes < -MOST_BYTES || b.bytes > MOST_BYTES || (!b.pending && b.bytes < 0);
    if (!b.pending && !b.bytes) {
        b.pending = b.count;
        b.parity ^= 1;
    }
    uint64_t v = (uint64_t)TAG << 52 | (uint64_t)b.parity << 51 |
                 ((uint64_t)b.bytes & 0x7FFFFF) << 28 | (uint64_t)b.pending << 14 | b.count;
    memcpy(at, &v, sizeof v);
    return !is_wrong;
}

static void start_barrier(const ptx_block *b, uint8_t *at, uint64_t count, CUresult *fault) {
    ptx_copies *c = b->cluster->copies;
    if (count < 1 || count > MOST_ARRIVALS) {
        *fault = CUDA_ERROR_LAUNCH_FAILED;
        return;
    }
    write_barrier(at, (barrier){.count = (uint32_t)count, .pending = (uint32_t)count});
    c->barriers = realloc(c->barriers, (c->barrier_count + 1) * sizeof *c->barriers);
    assert(c->barriers);
    c->barriers[c->barrier_count++] = at;
}

/* Bytes are expected before the arrival counts. */
static void arrive(uint8_t *at, barrier state, uint32_t bytes, CUresult *fault) {
    if (!state.pending || bytes > MOST_BYTES) {
        *fault = CUDA_ERROR_LAUNCH_FAILED;
        return;
    }
    state.bytes += (int32_t)bytes;
    state.pending--;
    if (!write_barrier(at, state))
        *fault = CUDA_ERROR_LAUNCH_FAILED;
}

/* Copies ---------------------------------------------------------------------------------------- */

static void add_copy(ptx_copies *c, copy made) {
    memset(made.to, 0xFF, made.bytes + made.zeros);
    c->copies = realloc(c->copies, (c->count + 1) * sizeof *c->copies);
    assert(c->copies);
    c->copies[c->count++] = made;
}

/* cp.async.bulk [to], [from], bytes, [barrier]; cp.async [to], [from], bytes, and how many of them;
 * st.async [to], values, [barrier] */
static void start_copy(const ptx_block *b, const ptx_thread *t, const ptx_insn *i,
                       CUresult *fault) {
    bool is_sent = i->op == OP_SEND, is_own = i->op == OP_ASYNC_COPY;
    copy made = {.owner = t, .bytes = is_sent ? 4u * i->width : (uint32_t)ptx_read(b, t, &i->args[2])};
    size_t align = is_sent ? made.bytes : 16;
    if (is_sent) {
        made.to = ptx_find(b, t, &i->args[0], PLACE_REMOTE, made.bytes, align, fault);
        for (uint32_t n = 0; n < i->width; n++)
            made.values[n] = (uint32_t)ptx_read(b, t, &i->args[1 + n]);
        made.barrier = ptx_find(b, t, &i->args[1 + i->width], PLACE_REMOTE, 8, 8, fault);
    } else {
        made.to = ptx_find(b, t, &i->args[0], PLACE_SHARED, made.bytes, align, fault);
        if (is_own && i->count > 3) {
            size_t present = (uint32_t)ptx_read(b, t, &i->args[3]);
            made.zeros = present < made.bytes ? made.bytes - present : 0;
            made.bytes -= made.zeros;
        }
        made.from = ptx_find(b, t, &i->args[1], PLACE_GLOBAL, made.bytes, align, fault);
        made.barrier = is_own ? NULL : ptx_find(b, t, &i->args[3], PLACE_SHARED, 8, 8, fault);
    }
    barrier state;
    if (is_sent && !t->has_met)
        *fault = CUDA_ERROR_LAUNCH_FAILED;
    if ((made.bytes + made.zeros) % align != 0)
        *fault = CUDA_ERROR_MISALIGNED_ADDRESS;
    if (!*fault && made.barrier &&
        (!read_barrier(made.barrier, &state) || made.bytes > MOST_BYTES))
        *fault = CUDA_ERROR_LAUNCH_FAILED;
    if (!*fault)
        add_copy(b->cluster->copies, made);
}

static void count_bytes(uint8_t *at, size_t bytes, CUresult *fault) {
    barrier state;
    bool is_right = read_barrier(at, &state);
    state.bytes -= is_right ? (int32_t)bytes : 0;
    if (!*fault && (!is_right || !write_barrier(at, state)))
        *fault = CUDA_ERROR_LAUNCH_FAILED;
}

/* A group of the copies of a thread ends. */
static void close_group(ptx_copies *c, const ptx_thread *owner) {
    for (size_t n = 0; n < c->count; n++)
        if (!c->copies[n].barrier && c->copies[n].owner == owner)
            c->copies[n].closed++;
}

/* The copies that a barrier counts come, or those of a thread that none counts, in the order in
 * which they were started; `closed`: after whose start at least this many groups have ended. */
static void finish_copies(ptx_copies *c, uint8_t *at, const ptx_thread *owner, uint64_t closed,
                          CUresult *fault) {
    size_t kept = 0;
    for (size_t n = 0; n < c->count; n++) {
        copy one = c->copies[n];
        if (one.barrier != at || (!at && (one.owner != owner || one.closed < closed))) {
            c->copies[kept++] = one;
            continue;
        }
        memcpy(one.to, one.from ? one.from : (const uint8_t *)one.values, one.bytes);
        memset(one.to + one.bytes, 0, one.zeros);
        if (at)
            count_bytes(at, one.bytes, fault);
    }
    c->count = kept;
}

/* Instructions ---------------------------------------------------------------------------------- */

void ptx_step_copy(const ptx_block *b, const ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    if (i->op == OP_ASYNC_CLOSE) {
        close_group(b->cluster->copies, t);
        return;
    }
    if (i->op == OP_ASYNC_WAIT || i->op == OP_ASYNC_LEAVE) {
        uint64_t closed = i->op == OP_ASYNC_WAIT ? 0 : ptx_read(b, t, &i->args[0]) + 1;
        finish_copies(b->cluster->copies, NULL, t, closed, fault);
        return;
    }
    if (i->op == OP_BULK_COPY || i->op == OP_ASYNC_COPY || i->op == OP_SEND) {
        start_copy(b, t, i, fault);
        return;
    }
    bool is_init = i->op == OP_BARRIER_INIT;
    uint8_t *at = ptx_find(b, t, &i->args[is_init ? 0 : 1], PLACE_SHARED, 8, 8, fault);
    barrier state;
    if (*fault)
        return;
    if (is_init)
        start_barrier(b, at, ptx_read(b, t, &i->args[1]), fault);
    else if (read_barrier(at, &state))
        arrive(at, state, (uint32_t)ptx_read(b, t, &i->args[2]), fault);
    else
        *fault = CUDA_ERROR_LAUNCH_FAILED;
}

/* All lanes ask before any copy comes, so that they learn the same. */
bool ptx_ask(const ptx_block *b, ptx_thread *lanes, uint32_t party, const ptx_insn *i,
             CUresult *fault) {
    uint8_t *in_vain[32];
    uint32_t count = 0;
    bool is_complete = false;
    for (uint32_t n = 0; n < 32 && !*fault; n++) {
        if (!(party >> n & 1))
            continue;
        barrier state;
        uint8_t *at = ptx_find(b, &lanes[n], &i->args[1], PLACE_SHARED, 8, 8, fault);
        if (!*fault && !read_barrier(at, &state))
            *fault = CUDA_ERROR_LAUNCH_FAILED;
        if (*fault)
            break;
        bool is_past = state.parity != (ptx_read(b, &lanes[n], &i->args[2]) & 1);
        lanes[n].registers[i->args[0].index] = is_past;
        is_complete = is_complete || is_past;
        if (!is_past)
            in_vain[count++] = at;
    }
    for (uint32_t n = 0; n < count && !*fault; n++)
        finish_copies(b->cluster->copies, in_vain[n], NULL, 0, fault);
    return is_complete;
}

/* The copies of a cluster ------------------------------------------------------------------------- */

ptx_copies *ptx_copies_new(void) {
    ptx_copies *c = calloc(1, sizeof *c);
    assert(c);
    return c;
}

bool ptx_end_copies(ptx_copies *c) {
    bool is_right = c->count == 0;
    for (size_t n = 0; n < c->barrier_count; n++) {
        barrier state;
        if (read_barrier(c->barriers[n], &state)) /* else the memory serves something else now */
            is_right = is_right && state.bytes == 0;
    }
    c->count = c->barrier_count = 0;
    return is_right;
}

void ptx_copies_free(ptx_copies *c) {
    free(c->copies);
    free(c->barriers);
    free(c);
}
