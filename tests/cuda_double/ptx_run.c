/* ptx_run: the threads of a launch: cluster after cluster, block after block, warp after warp.
 *
 * The lanes of a warp run one after the other, each until it stops where lanes meet: activemask,
 * an exchange, a vote, a barrier, a question whether a phase of a barrier has ended. Lanes that
 * stopped at an exchange go on when all of its mask that have not ended are there, a product only
 * when all lanes are. Where none can, the lanes at a question get their answer, and where it is
 * no, the lanes at the earliest activemask are those that are active there: lanes before it may
 * still join those after it, not the other way round. A warp in which only answers of no are left
 * lets the other warps run. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"

enum { LANES = 32 };
#define BUDGET ((uint64_t)1 << 31) /* instructions of a launch */
#define PATIENCE 1000              /* turns of a block in which threads only ask, in vain */

typedef struct {
    ptx_block *block; /* that runs now */
    uint32_t turns_in_vain;
    CUresult fault;
} run;

static const ptx_insn *find_insn(const run *r, const ptx_thread *t) {
    const ptx_program *p = r->block->launch->program;
    assert(t->pc < p->count);
    return &p->code[t->pc];
}

static bool needs_warp(ptx_op op) {
    return op == OP_MMA || op == OP_MOVMATRIX || op == OP_WGMMA;
}

static bool is_meeting(ptx_op op) {
    return op == OP_ACTIVEMASK || op == OP_SHFL || op == OP_VOTE || op == OP_BARWARP ||
           op == OP_BAR || needs_warp(op) || op == OP_BARRIER_ASK || op == OP_CLUSTER_WAIT;
}

/* Have all threads of its cluster arrived? */
static bool has_cluster_met(const ptx_block *b) {
    return b->cluster->arrivals >= b->cluster->count * b->count;
}

/* Or has ended, and is not awaited there. */
static bool is_at_barrier(const run *r, const ptx_thread *t) {
    return t->has_ended || find_insn(r, t)->op == OP_BAR;
}

static bool is_at_cluster_barrier(const run *r, const ptx_thread *t) {
    return !t->has_ended && find_insn(r, t)->op == OP_CLUSTER_WAIT;
}

static bool is_off(const run *r, const ptx_thread *t, const ptx_insn *i) {
    (void)r;
    return i->unless && (t->registers[i->predicate] & 1) != (i->unless > 0);
}

/* Until it stops at a meeting or ends. */
static void advance(run *r, ptx_thread *t) {
    while (!t->has_ended && !r->fault) {
        const ptx_insn *i = find_insn(r, t);
        if (i->op == OP_BRA || i->op == OP_CALL)
            t->way = t->way * 31 + 2 * t->pc + is_off(r, t, i);
        if (r->block->steps++ > BUDGET)
            r->fault = CUDA_ERROR_LAUNCH_TIMEOUT;
        bool has_met = i->op == OP_CLUSTER_WAIT && has_cluster_met(r->block);
        t->has_met = t->has_met || has_met;
        if (has_met || is_off(r, t, i))
            t->pc++;
        else if (is_meeting(i->op))
            return;
        else
            ptx_step(r->block, t, i, &r->fault);
    }
}

/* Meetings of a warp ---------------------------------------------------------------------------- */

static uint32_t find_lanes_at(const ptx_thread *lanes, uint32_t count, uint32_t pc) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!lanes[i].has_ended && lanes[i].pc == pc)
            found |= 1u << i;
    return found;
}

static uint32_t find_live(const ptx_thread *lanes, uint32_t count) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found |= lanes[i].has_ended ? 0 : 1u << i;
    return found;
}

static uint32_t find_source(const ptx_insn *i, uint32_t lane, uint32_t b) {
    uint32_t source = i->how[0] == 'i'   ? b & 31
                      : i->how[0] == 'b' ? lane ^ b
                      : i->how[0] == 'u' ? lane - b
                                         : lane + b;
    return source < LANES ? source : lane;
}

static void exchange(run *r, ptx_thread *lanes, uint32_t count, uint32_t party) {
    uint64_t posted[LANES] = {0};
    for (uint32_t n = 0; n < count; n++) {
        const ptx_insn *i = party >> n & 1 ? find_insn(r, &lanes[n]) : NULL;
        if (i) /* six: d|p */
            posted[n] = ptx_read(r->block, &lanes[n], &i->args[i->count == 6 ? 2 : 1]);
    }
    for (uint32_t n = 0; n < count; n++) {
        if (!(party >> n & 1))
            continue;
        const ptx_insn *i = find_insn(r, &lanes[n]);
        const bool has_predicate = i->count == 6;
        uint32_t b = (uint32_t)ptx_read(r->block, &lanes[n], &i->args[has_predicate ? 3 : 2]);
        uint32_t source = find_source(i, n, b);
        /* What a lane that takes no part gives is not defined. */
        lanes[n].registers[i->args[0].index] =
            (party >> source & 1 ? posted[source] : 0xDEADBEEF) & 0xFFFFFFFF;
        if (has_predicate)
            lanes[n].registers[i->args[1].index] = 1;
    }
}

static void vote(run *r, ptx_thread *lanes, uint32_t count, uint32_t party) {
    uint32_t yes = 0;
    for (uint32_t n = 0; n < count; n++)
        if (party >> n & 1 && ptx_read(r->block, &lanes[n], &find_insn(r, &lanes[n])->args[1]) & 1)
            yes |= 1u << n;
    for (uint32_t n = 0; n < count; n++)
        if (party >> n & 1)
            lanes[n].registers[find_insn(r, &lanes[n])->args[0].index] = yes;
}

static void release(ptx_thread *lanes, uint32_t count, uint32_t party) {
    for (uint32_t n = 0; n < count; n++)
        lanes[n].pc += party >> n & 1;
}

/* Lanes that met go on together. */
static void join(ptx_block *b, ptx_thread *lanes, uint32_t count, uint32_t party) {
    b->joins++;
    for (uint32_t n = 0; n < count; n++)
        if (party >> n & 1)
            lanes[n].way = (b->joins << 32) + lanes[n].pc;
}

/* Lanes at such an instruction, wherever it stands, with the same mask. */
static uint32_t find_lanes_in(const run *r, const ptx_thread *lanes, uint32_t count,
                              const ptx_insn *i, uint64_t mask) {
    uint32_t found = 0;
    for (uint32_t n = 0; n < count; n++) {
        const ptx_insn *other = lanes[n].has_ended ? NULL : find_insn(r, &lanes[n]);
        if (other && other->op == i->op && strcmp(other->how, i->how) == 0 &&
            ptx_read(r->block, &lanes[n], &other->args[other->count - 1]) == mask)
            found |= 1u << n;
    }
    return found;
}

/* The exchange, vote or barrier that a lane is at, if all of its mask have come. */
static bool serve(run *r, ptx_thread *lanes, uint32_t count, uint32_t lane) {
    const ptx_insn *i = find_insn(r, &lanes[lane]);
    if (i->op == OP_ACTIVEMASK || i->op == OP_BAR || i->op == OP_BARRIER_ASK ||
        i->op == OP_CLUSTER_WAIT)
        return false;
    const ptx_arg *last = &i->args[i->count - 1];
    const uint64_t mask = ptx_read(r->block, &lanes[lane], last);
    uint32_t party = needs_warp(i->op) ? UINT32_MAX : (uint32_t)mask & find_live(lanes, count);
    uint32_t here = needs_warp(i->op) ? find_lanes_at(lanes, count, lanes[lane].pc)
                                      : find_lanes_in(r, lanes, count, i, mask);
    if ((here & party) != party || !(party >> lane & 1))
        return false;
    if (i->op == OP_SHFL)
        exchange(r, lanes, count, party);
    else if (i->op == OP_VOTE)
        vote(r, lanes, count, party);
    else if (i->op == OP_MMA)
        ptx_multiply(r->block, lanes, i);
    else if (i->op == OP_MOVMATRIX)
        ptx_transpose(r->block, lanes, i);
    else if (i->op == OP_WGMMA)
        ptx_multiply_group(r->block, lanes, i, &r->fault);
    release(lanes, count, party);
    join(r->block, lanes, count, party);
    return true;
}

static bool serve_active(run *r, ptx_thread *lanes, uint32_t count) {
    uint32_t first = UINT32_MAX;
    for (uint32_t n = 0; n < count; n++)
        if (!lanes[n].has_ended && find_insn(r, &lanes[n])->op == OP_ACTIVEMASK &&
            lanes[n].pc < first)
            first = lanes[n].pc;
    if (first == UINT32_MAX)
        return false;
    uint32_t party = find_lanes_at(lanes, count, first), together = 0;
    const uint64_t way = lanes[__builtin_ctz(party)].way;
    for (uint32_t n = 0; n < count; n++)
        together |= (party >> n & 1) && lanes[n].way == way ? 1u << n : 0;
    party = together;
    for (uint32_t n = 0; n < count; n++)
        if (party >> n & 1)
            lanes[n].registers[find_insn(r, &lanes[n])->args[0].index] = party;
    release(lanes, count, party);
    return true;
}

typedef enum { ANSWER_NONE, ANSWER_NO, ANSWER_YES } answer;

/* All lanes that ask are answered; yes: at least one may go on. */
static answer serve_questions(run *r, ptx_thread *lanes, uint32_t count) {
    answer found = ANSWER_NONE;
    uint32_t asking = 0;
    for (uint32_t n = 0; n < count; n++)
        if (!lanes[n].has_ended && find_insn(r, &lanes[n])->op == OP_BARRIER_ASK)
            asking |= 1u << n;
    for (uint32_t n = 0; n < count && !r->fault; n++) {
        if (!(asking >> n & 1))
            continue;
        uint32_t party = find_lanes_at(lanes, count, lanes[n].pc) & asking;
        bool is_yes = ptx_ask(r->block, lanes, party, find_insn(r, &lanes[n]), &r->fault);
        found = is_yes || found == ANSWER_YES ? ANSWER_YES : ANSWER_NO;
        release(lanes, count, party);
        asking &= ~party;
    }
    if (found == ANSWER_YES)
        r->turns_in_vain = 0;
    return found;
}

/* Until every lane has ended, waits for the whole block or cluster or has asked a barrier in vain. */
static void run_warp(run *r, ptx_thread *lanes, uint32_t count) {
    while (!r->fault) {
        bool is_waiting = true;
        for (uint32_t n = 0; n < count; n++) {
            advance(r, &lanes[n]);
            is_waiting = is_waiting && (r->fault || is_at_barrier(r, &lanes[n]) ||
                                        is_at_cluster_barrier(r, &lanes[n]));
        }
        if (is_waiting)
            return;
        bool is_served = false;
        for (uint32_t n = 0; n < count && !is_served && !r->fault; n++)
            is_served = !lanes[n].has_ended && serve(r, lanes, count, n);
        if (is_served || r->fault)
            continue;
        answer given = serve_questions(r, lanes, count);
        for (uint32_t n = 0; n < count && given == ANSWER_NO; n++)
            advance(r, &lanes[n]);
        if (r->fault || given == ANSWER_YES || serve_active(r, lanes, count))
            continue;
        if (given == ANSWER_NONE)
            r->fault = CUDA_ERROR_LAUNCH_TIMEOUT; /* they wait for each other for ever */
        return;
    }
}

/* Blocks ---------------------------------------------------------------------------------------- */

/* Until its threads wait for each other, for another block or for copies. Is any of them left? */
static bool run_block(run *r) {
    ptx_block *b = r->block;
    bool is_running = false;
    for (uint32_t first = 0; first < b->count && !r->fault; first += LANES) {
        uint32_t count = b->count - first < LANES ? b->count - first : LANES;
        run_warp(r, b->threads + first, count);
    }
    bool is_together = !r->fault; /* all that live are at a barrier */
    for (uint32_t n = 0; n < b->count && is_together; n++)
        is_together = is_at_barrier(r, &b->threads[n]);
    for (uint32_t n = 0; n < b->count && !r->fault; n++)
        if (!b->threads[n].has_ended) {
            b->threads[n].pc += is_together;
            is_running = true;
        }
    if (is_running)
        r->turns_in_vain = is_together ? 0 : r->turns_in_vain + 1;
    return is_running;
}

static void run_cluster(run *r, ptx_cluster *c) {
    r->turns_in_vain = 0;
    for (bool is_running = true; is_running && !r->fault;) {
        is_running = false;
        for (uint32_t n = 0; n < c->count && !r->fault; n++) {
            r->block = &c->blocks[n];
            is_running = run_block(r) || is_running;
        }
        if (r->turns_in_vain > PATIENCE * c->count && !r->fault)
            r->fault = CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    if (!ptx_end_copies(c->copies) && !r->fault)
        r->fault = CUDA_ERROR_LAUNCH_FAILED;
}

/* registers, local: of its first thread. */
static void start_block(ptx_block *b, uint64_t *registers, uint8_t *local) {
    const ptx_program *p = b->launch->program;
    const uint32_t *size = b->launch->block;
    memset(registers, 0xA5, (size_t)b->count * p->registers * sizeof *registers);
    memset(local, 0xA5, (size_t)b->count * p->local_bytes);
    memset(b->shared, 0xFF, ptx_get_shared_bytes(b->launch));
    for (uint32_t n = 0; n < b->count; n++)
        b->threads[n] =
            (ptx_thread){.pc = p->first,
                         .registers = registers + (size_t)n * p->registers,
                         .local = local + (size_t)n * p->local_bytes,
                         .position = {n % size[0], n / size[0] % size[1], n / size[0] / size[1]}};
}

/* At the same place in every block, as far as swizzles look at addresses. */
static void *allocate(size_t bytes) {
    void *made = NULL;
    int failed = posix_memalign(&made, 1024, bytes + 1024);
    assert(!failed);
    return failed ? NULL : made;
}

CUresult ptx_run(const ptx_launch *l) {
    const ptx_program *p = l->program;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    if (l->grid[0] % p->cluster != 0)
        return CUDA_ERROR_LAUNCH_FAILED;
    run r = {0};
    ptx_cluster c = {.count = p->cluster, .copies = ptx_copies_new()};
    c.blocks = allocate(c.count * sizeof *c.blocks);
    uint64_t *registers = allocate((size_t)c.count * threads * p->registers * sizeof *registers);
    uint8_t *local = allocate((size_t)c.count * threads * p->local_bytes);
    for (uint32_t n = 0; n < c.count; n++)
        c.blocks[n] = (ptx_block){.launch = l,
                                  .cluster = &c,
                                  .shared = allocate(ptx_get_shared_bytes(l)),
                                  .threads = allocate(threads * sizeof *c.blocks->threads),
                                  .count = threads};
    uint32_t at[3];
    for (at[2] = 0; at[2] < l->grid[2] && !r.fault; at[2]++)
        for (at[1] = 0; at[1] < l->grid[1] && !r.fault; at[1]++)
            for (at[0] = 0; at[0] < l->grid[0] && !r.fault; at[0] += c.count) {
                c.arrivals = 0;
                for (uint32_t n = 0; n < c.count; n++) {
                    ptx_block *b = &c.blocks[n];
                    memcpy(b->block_position, at, sizeof at);
                    b->block_position[0] += n;
                    start_block(b, registers + (size_t)n * threads * p->registers,
                                local + (size_t)n * threads * p->local_bytes);
                }
                run_cluster(&r, &c);
            }
    for (uint32_t n = 0; n < c.count; n++) {
        free(c.blocks[n].shared);
        free(c.blocks[n].threads);
    }
    ptx_copies_free(c.copies);
    free(c.blocks);
    free(registers);
    free(local);
    return r.fault;
}
