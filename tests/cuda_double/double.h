/* double: a libcuda.so.1 for machines without an NVIDIA GPU, for tests.
 *
 * It has the driver calls that the CUDA device uses (driver.c: memory is the process's own, streams
 * are queues that run when something waits for them) and runs the PTX that clang makes (ptx_parse.c
 * reads it, ptx_step.c does one instruction, ptx_run.c runs the threads of a launch, warp by warp;
 * ptx_copy.c has copies and their barriers).
 * It knows the instructions that clang emits for kernels and names the first that it does not. It is
 * slow, and its times mean nothing. */
#ifndef ASSAY_CUDA_DOUBLE_H
#define ASSAY_CUDA_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/device/cuda/driver.h"

/* Programs -------------------------------------------------------------------------------------- */

/* By the first word; an instruction that is known in one form only, by all of it. */
/* clang-format off */
#define PTX_OPS(X) \
    X(ABS, "abs") X(ACTIVEMASK, "activemask") X(ADD, "add") X(ADDC, "addc") X(AND, "and") \
    X(ASYNC_COPY, "cp.async.cg.shared.global") X(ASYNC_CLOSE, "cp.async.commit_group") \
    X(ASYNC_LEAVE, "cp.async.wait_group") X(ASYNC_WAIT, "cp.async.wait_all") X(ATOM, "atom") X(BAR, "bar") \
    X(BARRIER_ARRIVE, "mbarrier.arrive.expect_tx.shared.b64") \
    X(BARRIER_ASK, "mbarrier.try_wait.parity.shared.b64") X(BARRIER_INIT, "mbarrier.init.shared.b64") \
    X(BARWARP, "bar.warp") X(BFE, "bfe") X(BFI, "bfi") X(BRA, "bra") X(BREV, "brev") X(CLZ, "clz") \
    X(CALL, "call") X(BULK_COPY, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes") \
    X(CLUSTER_ARRIVE, "barrier.cluster.arrive.release.aligned") \
    X(CLUSTER_WAIT, "barrier.cluster.wait.acquire.aligned") X(CVT, "cvt") X(CVTA, "cvta") X(DIV, "div") \
    X(EX2, "ex2") X(EXIT, "exit") X(FENCE, "fence") X(FMA, "fma") X(LD, "ld") X(LG2, "lg2") X(MAD, "mad") X(MADC, "madc") \
    X(MAPA, "mapa.shared::cluster.u64") X(MAX, "max") X(MIN, "min") X(MMA, "mma") X(MOV, "mov") \
    X(MOVMATRIX, "movmatrix.sync.aligned.m8n8.trans.b16") X(MUL, "mul") X(NEG, "neg") X(NOT, "not") \
    X(OR, "or") X(POPC, "popc") X(PRMT, "prmt") X(RCP, "rcp") X(REM, "rem") X(RET, "ret") X(RSQRT, "rsqrt") \
    X(SELP, "selp") X(SEND, "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32") X(SETP, "setp") \
    X(SHF, "shf") X(SHFL, "shfl") X(SHL, "shl") X(SHR, "shr") X(SQRT, "sqrt") X(ST, "st") X(SUB, "sub") X(TRAP, "trap") \
    X(VOTE, "vote") X(WGMMA, "wgmma") X(XOR, "xor")
#define PTX_NAME_OP(op, text) OP_##op,
typedef enum { PTX_OPS(PTX_NAME_OP) OP_COUNT } ptx_op;
/* clang-format on */

typedef struct {
    char kind; /* u, s, f, b, p (predicate), x (bfloat), h (two halves), t (tf32) */
    uint8_t bits;
} ptx_type;

typedef enum { ARG_REGISTER, ARG_VALUE, ARG_SPECIAL, ARG_SYMBOL } ptx_arg_kind;

enum {
    SPECIAL_TID,
    SPECIAL_NTID = 3,
    SPECIAL_CTAID = 6,
    SPECIAL_NCTAID = 9,
    SPECIAL_LANE = 12,
    SPECIAL_CLOCK
};

typedef struct {
    ptx_arg_kind kind;
    uint32_t index; /* of the register, special register or symbol */
    int64_t value;  /* or what is added to the address in it */
} ptx_arg;

enum { PTX_ARGS = 74 }; /* wgmma */

typedef enum { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP } ptx_rounding;

typedef struct {
    ptx_op op;
    ptx_type type, from; /* from: what cvt converts and mma multiplies */
    int8_t unless;       /* 0: always; 1: if the predicate; -1: if not */
    uint32_t predicate;
    uint8_t width; /* of a vector; the depth of a product, the columns of one of a warpgroup */
    ptx_rounding rounding; /* also of cvt to integers */
    bool to_integer;       /* cvt.rni.f32.f32 */
    bool saturates, is_wide, is_high, sets_carry, wraps;
    bool unpacks;    /* mov.b64 {a, b}, c */
    char how[8];     /* comparison, atomic, shuffle, permutation: as written */
    uint8_t count;   /* of args */
    uint32_t target; /* of a branch */
    ptx_arg args[PTX_ARGS];
    uint32_t line; /* in the PTX */
} ptx_insn;

/* SPACE_CALL: local memory, for what functions are given and give. */
typedef enum {
    SPACE_DATA,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_DYNAMIC,
    SPACE_CALL
} ptx_space;

typedef struct {
    char name[160];
    ptx_space space;
    size_t at; /* offset in the memory of its space */
} ptx_symbol;

typedef struct {
    char entry[160];
    ptx_insn *code;
    size_t count;
    uint32_t first; /* where the entry begins */
    ptx_symbol *symbols;
    size_t symbol_count;
    uint32_t registers;
    uint32_t cluster; /* blocks of a cluster, neighbours along x */
    uint8_t *data;    /* constants and variables of the module */
    size_t data_bytes, shared_bytes, local_bytes, param_bytes;
} ptx_program;

/* NULL with a sentence in log. */
ptx_program *ptx_parse(const char *text, char *log, size_t size);
void ptx_free(ptx_program *p);

/* Running --------------------------------------------------------------------------------------- */

typedef struct {
    const ptx_program *program;
    uint32_t grid[3], block[3];
    uint32_t dynamic_bytes;
    const uint8_t *params;
} ptx_launch;

enum { PTX_CALLS = 4 };

/* Where a thread is in its block and what it has. */
typedef struct {
    uint64_t *registers;
    uint8_t *local;
    uint32_t pc, position[3];
    uint64_t way; /* that it has gone since it met others: of two lanes, the same or another */
    uint32_t back[PTX_CALLS], calls; /* where functions that run were called, and how many do */
    bool has_ended, carry;
    bool has_met; /* the other blocks of its cluster, which have all begun */
} ptx_thread;

typedef struct ptx_copies ptx_copies; /* of a cluster, that are under way */
typedef struct ptx_cluster ptx_cluster;

typedef struct {
    const ptx_launch *launch;
    ptx_cluster *cluster;
    uint32_t block_position[3];
    uint8_t *shared;
    ptx_thread *threads;
    uint32_t count;
    uint64_t joins; /* of lanes, so far */
    uint64_t steps; /* instructions of such blocks so far, which is what their clock shows */
} ptx_block;

/* Blocks that run at the same time: all others run one after another. */
struct ptx_cluster {
    ptx_block *blocks;
    uint32_t count;
    uint32_t arrivals; /* at its barrier, which has one phase only */
    ptx_copies *copies;
};

/* One instruction that needs no other thread. *fault: the driver's error, if it is one. */
void ptx_step(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault);
uint64_t ptx_read(const ptx_block *b, const ptx_thread *t, const ptx_arg *a);

/* The memory that an operand addresses: anything that the thread may touch, shared memory of its block or of any
 * of the cluster, or global memory. *fault: it is misaligned, or not there. */
typedef enum { PLACE_ANY, PLACE_SHARED, PLACE_REMOTE, PLACE_GLOBAL } ptx_place;
uint8_t *ptx_find(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, ptx_place where,
                  size_t bytes, size_t align, CUresult *fault);

/* mma and movmatrix, by all lanes of a warp; wgmma, by those of one of its four warps. */
void ptx_multiply(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i);
void ptx_transpose(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i);
void ptx_multiply_group(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i, CUresult *fault);

size_t ptx_get_shared_bytes(const ptx_launch *l); /* of a block */

/* ptx_copy.c: copies, and init and arrivals of their barriers. */
void ptx_step_copy(const ptx_block *b, const ptx_thread *t, const ptx_insn *i, CUresult *fault);
/* try_wait of the lanes of party: has the phase that they ask for ended, for any of them? */
bool ptx_ask(const ptx_block *b, ptx_thread *lanes, uint32_t party, const ptx_insn *i,
             CUresult *fault);
ptx_copies *ptx_copies_new(void);
bool ptx_end_copies(ptx_copies *c); /* of blocks that have ended; false: not all had come */
void ptx_copies_free(ptx_copies *c);

CUresult ptx_run(const ptx_launch *l);

/* driver.c: is this memory of the device, or the module's? */
bool double_has_memory(const void *at, size_t bytes);

#endif
