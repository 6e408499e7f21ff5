/* double: a libcuda.so.1 for machines without an NVIDIA GPU, for tests.
 *
 * It has the driver calls that the CUDA device uses (driver.c: memory is the process's own, streams
 * are queues that run when something waits for them) and runs the PTX that clang makes (ptx_parse.c
 * reads it, ptx_step.c does one instruction, ptx_run.c runs the threads of a launch, warp by warp;
 * ptx_product.c has the products of a warp, ptx_copy.c copies and their barriers).
 * It knows the instructions that clang emits for kernels and names the first that it does not. It is
 * slow, and its times mean nothing. */
#ifndef ASSAY_CUDA_DOUBLE_H
#define ASSAY_CUDA_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/device/cuda/driver.h"

/* Programs -------------------------------------------------------------------------------------- */

typedef enum {
    OP_ABS,
    OP_ACTIVEMASK,
    OP_ADD,
    OP_ADDC,
    OP_AND,
    OP_ASYNC_COPY,
    OP_ASYNC_CLOSE,
    OP_ASYNC_LEAVE,
    OP_ASYNC_WAIT,
    OP_ATOM,
    OP_BAR,
    OP_BARRIER_ARRIVE,
    OP_BARRIER_ASK,
    OP_BARRIER_INIT,
    OP_BARWARP,
    OP_BFE,
    OP_BFI,
    OP_BRA,
    OP_BREV,
    OP_CLZ,
    OP_BULK_COPY,
    OP_CLUSTER_ARRIVE,
    OP_CLUSTER_WAIT,
    OP_CVT,
    OP_CVTA,
    OP_DIV,
    OP_EX2,
    OP_FENCE,
    OP_FMA,
    OP_LD,
    OP_LG2,
    OP_MAD,
    OP_MADC,
    OP_MAPA,
    OP_MAX,
    OP_MIN,
    OP_MMA,
    OP_MOV,
    OP_MOVMATRIX,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_POPC,
    OP_PRMT,
    OP_RCP,
    OP_REM,
    OP_RET,
    OP_RSQRT,
    OP_SELP,
    OP_SEND,
    OP_SETP,
    OP_SHF,
    OP_SHFL,
    OP_SHL,
    OP_SHR,
    OP_SQRT,
    OP_ST,
    OP_SUB,
    OP_VOTE,
    OP_WGMMA,
    OP_XOR,
    OP_COUNT
} ptx_op;

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
    uint8_t width;         /* of a vector; the depth of a product, the columns of one of a warpgroup */
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

typedef enum { SPACE_DATA, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_DYNAMIC } ptx_space;

typedef struct {
    char name[160];
    ptx_space space;
    size_t at; /* offset in the memory of its space */
} ptx_symbol;

typedef struct {
    char entry[160];
    ptx_insn *code;
    size_t count;
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

/* Where a thread is in its block and what it has. */
typedef struct {
    uint64_t *registers;
    uint8_t *local;
    uint32_t pc, position[3];
    bool has_ended, carry;
    bool has_met; /* the other blocks of its cluster, which have all begun */
} ptx_thread;

typedef struct ptx_copies ptx_copies;   /* of a cluster, that are under way */
typedef struct ptx_cluster ptx_cluster;

typedef struct {
    const ptx_launch *launch;
    ptx_cluster *cluster;
    uint32_t block_position[3];
    uint8_t *shared;
    ptx_thread *threads;
    uint32_t count;
    uint64_t steps; /* instructions of such blocks so far, which is what their clock shows */
} ptx_block;

/* Blocks that run at the same time: all others run one after another. */
struct ptx_cluster {
    ptx_block *blocks;
    uint32_t count;
    uint32_t arrivals; /* at its barrier, which has one phase only */
    ptx_copies *copies;
};

/* The float in the lowest bits of a register. */
double ptx_to_float(uint64_t v, ptx_type t);

/* The result of an instruction that only computes; v are the values of its operands. */
uint64_t ptx_compute(const ptx_insn *i, ptx_thread *t, const uint64_t *v);

/* One instruction that needs no other thread. *fault: the driver's error, if it is one. */
void ptx_step(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault);
uint64_t ptx_read(const ptx_block *b, const ptx_thread *t, const ptx_arg *a);

/* The memory that an operand addresses. *fault: it is misaligned, or not there. */
uint8_t *ptx_find_shared(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, size_t bytes,
                         size_t align, CUresult *fault);
uint8_t *ptx_find_global(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, size_t bytes,
                         size_t align, CUresult *fault);

/* ptx_product.c: mma and movmatrix, by all lanes of a warp; wgmma, by those of one of its four warps. */
void ptx_multiply(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i);
void ptx_transpose(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i);
void ptx_multiply_group(const ptx_block *b, ptx_thread *lanes, const ptx_insn *i, CUresult *fault);

size_t ptx_get_shared_bytes(const ptx_launch *l); /* of a block */

/* Shared memory of any block of the cluster. */
uint8_t *ptx_find_remote(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, size_t bytes,
                         size_t align, CUresult *fault);

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
