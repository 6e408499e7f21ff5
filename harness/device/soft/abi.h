/* abi: what a compiled kernel and the software device's scheduler share, in C and in C++.
 *
 * GPU threads are fibers. All fibers of one worker (an OS thread that runs one threadgroup at a
 * time) have their stacks in one region that is aligned to its own size, and the worker's state
 * stands at its start: a kernel finds it by masking the stack pointer, with no argument, no
 * thread-local and no register kept for it.
 *
 * The lanes of a simdgroup run one after the other, each until it stops at a *meeting*: a simdgroup
 * function, or a barrier. A round is over when every live lane has stopped. If all stopped at the
 * same simdgroup call, the last one to arrive computes the results for all and the round starts
 * anew: this is the fast path, inlined in the kernel (shim/cpu/meet.h). If they stopped at different
 * places, choose (pool.c) finds those whose *path* is the smallest, makes them post their values
 * again and lets the last of them compute. Lanes that returned take no part.
 *
 * The path of a lane says where it is in the structure of its program, from the kernel inwards: a word
 * for each loop around the call, its position in the text above the number of the iteration, and a word
 * for the position of the call; then the same for the function that was called. A lane's path only
 * grows, so no lane comes later to a meeting that has the smallest: all lanes that structured code brings
 * there are there. converge.c makes kernels keep it.
 *
 * A switch clobbers every register (the compiler spills only what is live at that
 * point), and a lane that returns hands its stack to the next lane that has not started, so a
 * kernel without meetings is a plain loop. */
#pragma once

#include "../msl/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SOFT_ABI_VERSION = 12,
    SOFT_LANES = MSL_LANES,
    SOFT_MAX_THREADS = MSL_MAX_THREADS,
    SOFT_MAX_GROUPS = SOFT_MAX_THREADS / SOFT_LANES,
    SOFT_STACK_BYTES = 256 << 10,
    SOFT_STACK_USABLE = 216 << 10, /* less guard page, stagger, and what our own code needs */
    SOFT_PATH = 64,                /* words of a path */
    SOFT_PATH_SUM = 0,             /* tells paths apart at a glance; odd */
    SOFT_PATH_END = 1,             /* address of the next function's first word */
    SOFT_PATH_WORDS = 2,
    SOFT_PATH_STEP = 16,             /* of one function, at most */
    SOFT_EXCHANGE_BYTES = 64,        /* largest value a lane can post at a meeting */
    SOFT_THREADGROUP_ROOM = 8 << 20, /* what we can hold, to report by how much a kernel is over */
    /* Unused memory before and after it, and in checked mode between variables: an index that is
     * wrong by all the memory a threadgroup can have is still nearest to its own variable. */
    SOFT_THREADGROUP_GAP = 2 * MSL_THREADGROUP_BYTES,
    SOFT_BUFFERS = MSL_BUFFERS,
    SOFT_INLINE_BYTES = 256,
    SOFT_DYNAMIC = MSL_THREADGROUPS,
};

/* State first, then the stacks, half each; 2^29 bytes of address space, touched only where used. */
#define SOFT_REGION_BYTES (1ull << 29)
#define SOFT_STACKS_AT (1ull << 28)

/* Odd numbers without a pattern, of which sums of paths are made. */
#define SOFT_PATH_FACTOR 0x9e3779b97f4a7c15ull

/* Private arrays of checked mode: address space for each fiber, and as much for its marks. */
#define SOFT_FIBERS ((SOFT_REGION_BYTES - SOFT_STACKS_AT) / SOFT_STACK_BYTES)
#define SOFT_ROOM_BYTES (1ull << 20)
#define SOFT_ROOMS_BYTES (SOFT_FIBERS * SOFT_ROOM_BYTES)

typedef unsigned int soft_u32;
typedef unsigned long long soft_u64;

/* Where a fiber goes on. */
typedef struct {
    void *sp, *pc, *fp, *bx; /* bx: the base-pointer register (x19, rbx), which inline asm may not
                                name as clobbered */
} soft_context;

typedef struct {
    soft_context lane[SOFT_LANES];
    const char *site[SOFT_LANES]; /* address of each lane's call; checked mode only */
    soft_u32 fresh;               /* lanes that have not started */
    soft_u32 todo;                /* lanes that have not stopped in this round */
    soft_u32 present;             /* lanes that the threadgroup has: fewer in its last simdgroup */
    soft_u32 live; /* lanes that take part: started or not, not returned, not parked at a barrier */
    soft_u32 parked;  /* lanes at a threadgroup barrier */
    soft_u32 party;   /* lanes whose meeting is being settled the slow way; 0 on the fast path */
    soft_u32 current; /* the lane that runs */
    soft_u32 ended;   /* lanes that a bad access ended: they reach nothing any more */
    soft_u64 first;   /* sum of the first path that a lane stopped at in this round; 0: none has */
    soft_u64 differs; /* non-zero if lanes of this round stopped at different places */
    soft_u32 index;   /* simdgroup index in the threadgroup */
    /* Of each lane: the sum of its path, its end, its words. */
    soft_u64 path[SOFT_PATH_WORDS + SOFT_PATH][SOFT_LANES];
} soft_simdgroup;

/* One launch, as compiled code sees it. */
typedef struct {
    void *buffer[SOFT_BUFFERS];
    soft_u32 dynamic_bytes[SOFT_DYNAMIC];
    soft_u32 grid_threads[3]; /* threads_per_grid */
    soft_u32 grid_groups[3];
    soft_u32 group_nominal[3]; /* dispatch_threads_per_threadgroup */
    soft_u32 tensor_layout;    /* of cooperative tensors in registers (shim/cpu/tensor.h) */
} soft_launch;

/* How a kernel touches memory. */
enum {
    SOFT_LOAD = 0,
    SOFT_STORE = 1,
    SOFT_ATOMIC = 2, /* with SOFT_STORE when it also writes */
    SOFT_UPDATE = 4, /* an atomic store that depends on what was there */
    SOFT_BITS = 8,   /* a bit-field: the store of the memory that it shares follows */
};

/* What is wrong beyond memory. */
enum {
    SOFT_MISALIGNED, /* value: the address */
    SOFT_DIVIDE,
    SOFT_SHIFT, /* value: the count */
    SOFT_CONVERT,
    SOFT_INDEX,    /* value: the index; text: the array's type */
    SOFT_OVERFLOW, /* text: the operation */
    SOFT_CLAMP,
    SOFT_EDGES,     /* of smoothstep, the wrong way round */
    SOFT_FIELD,     /* of bits, outside of its type; value: where it ends */
    SOFT_NO_RETURN, /* a function's end without the value it must return */
    SOFT_VARIES,    /* a lane, delta or mask that is not the same for all; text: the function */
    SOFT_INACTIVE,  /* a value of a lane that takes no part; value: the lane; text: the function */
    SOFT_SPIN,      /* an attempt to take a lock, in a loop; value: its address */
    SOFT_NO_LANE,   /* a value from outside the simdgroup; likewise */
    SOFT_SCOPE,     /* a tensor operation of n simdgroups where there are m; value: n, m << 16 */
};

/* Who a meeting is for. A product of matrices needs what all lanes loaded before: like a barrier of
 * the simdgroup, it puts those loads in front of what comes after. */
enum { SOFT_MEET_ANY = 1, SOFT_MEET_ALL, SOFT_MEET_PRODUCT, SOFT_MEET_BARRIER };

/* Marks of the bytes of private memory; 0: nothing is known against it. */
enum {
    SOFT_MARK_UNSET = 1, /* given no value */
    SOFT_MARK_MAYBE = 2, /* given no value, or padding */
    SOFT_MARK_EDGE = 3,  /* between arrays; this and the next are not to be accessed at all */
    SOFT_MARK_ENDED = 4, /* of a variable whose life has ended */
};

/* A table of constants of a checked kernel: nothing else lies this close to it. */
enum { SOFT_TABLE_GAP = 1024 };
typedef struct {
    const void *begin;
    soft_u64 bytes;
} soft_table;

enum { SOFT_PAGE_SHIFT = 14, SOFT_PAGES = 1024 };

/* Memory that the running launch may touch. */
typedef struct {
    soft_u64 begin, bytes;
    soft_u32 plain; /* a load inside it is right: it is read only, and all of it was written */
} soft_region;

/* A cast to a pointer that is not aligned as its type demands: nothing wrong until an object of that
 * type is copied through it, which the compiler does not check. */
typedef struct {
    soft_u64 at;
    soft_u32 bytes, align; /* of the type; bytes 0: there was no such cast */
} soft_miscast;

struct soft_worker;

enum { SOFT_SLOTS = 17, SOFT_SLOT_BYTES = 64 };

/* Checked mode (checked.c). A kernel compiled for it calls these for every access; the loads that
 * are obviously right are recognised in shim/cpu/checked.h and do not. */
typedef struct soft_checks {
    const soft_region
        *page[SOFT_PAGES]; /* a region by the low bits of its pages; may be another's */
    soft_u64 inline_begin; /* small constants stand close together: by 16 bytes */
    const soft_region *inline_region[SOFT_INLINE_BYTES / 16];
    soft_u32 trace;   /* every access and every statement's end is reported */
    soft_u32 pending; /* something must be put back before the next access */
    soft_u32 spins;   /* the next atomic access takes a lock, in a loop */
    soft_u32 unset;   /* there are private variables with marks */
    soft_u32 ended;   /* there are some whose life has ended */
    /* Marks of what functions hand each other in registers: a result, then parameters. */
    unsigned char given[SOFT_SLOTS][SOFT_SLOT_BYTES];
    /* Where an array begins and ends that a parameter points to; ends at 0: not known. */
    soft_u64 bounds[SOFT_SLOTS][2];
    unsigned char *marks; /* a byte for each of the stacks' */
    /* Where private arrays stand, each far from the next; their marks follow after all rooms. What
     * lies at or above its fiber's top belongs to no array. */
    soft_u64 rooms;
    soft_u32 room_top[SOFT_FIBERS];
    soft_miscast miscast[SOFT_FIBERS]; /* of each fiber, the last */
    void (*access)(struct soft_worker *w, void *at, soft_u64 bytes, soft_u32 how, const void *pc);
    void (*mishap)(struct soft_worker *w, soft_u32 what, soft_u64 value, const char *text,
                   const void *pc);
    /* Room for a private array until its life ends; what: "'sum' of line 7". */
    void *(*reserve)(struct soft_worker *w, soft_u64 bytes, const char *what, const void *pc);
    /* A variable has no value from here on. values: SOFT_MARK_* of each byte of an element of
     * `period` bytes. */
    void (*unset_variable)(struct soft_worker *w, void *at, soft_u64 bytes,
                           const unsigned char *values, soft_u32 period, const char *what);
    void (*end)(struct soft_worker *w, void *at, soft_u64 bytes); /* of its life */
    void (*meet)(struct soft_worker *w, soft_u32 party, soft_u32 width, const void *pc);
    void (*park)(struct soft_worker *w, const void *pc);
    void (*fence)(struct soft_worker *w, soft_u32 flags, soft_u32 whole_threadgroup);
    /* atomic_thread_fence. */
    void (*sync)(struct soft_worker *w, soft_u32 flags, soft_u32 order, soft_u32 scope);
    void (*leave)(struct soft_worker *w, const void *pc); /* a return statement of the kernel */
    void (*turn)(struct soft_worker *w, const void *pc);  /* before an atomic access */
} soft_checks;

/* Counting (counted.c). What the lanes of the running simdgroup did at one place of the kernel since
 * they last met. */
typedef struct {
    soft_u32 times[SOFT_LANES];
    soft_u32 room; /* accesses of a lane that fit */
    soft_u32 is_used;
    soft_u64 *at; /* (lanes, room) addresses; NULL for a block */
} soft_site;

typedef struct soft_counts {
    soft_site *sites;
    soft_u32 *used; /* sites that lanes have come to since they last met, in order */
    soft_u32 used_count;
    soft_u32 last; /* lane that was here last */
    void (*fold)(struct soft_worker *w);
    soft_u32 (*grow)(struct soft_worker *w, soft_u32 site, soft_u32 n); /* 0: there is no room */
} soft_counts;

/* Orders and scopes as `sync` takes them. */
enum { SOFT_ACQUIRES = 1, SOFT_RELEASES = 2 };
enum { SOFT_SCOPE_THREAD, SOFT_SCOPE_SIMDGROUP, SOFT_SCOPE_THREADGROUP, SOFT_SCOPE_DEVICE };

typedef struct soft_worker {
    /* what a kernel reads */
    soft_simdgroup *running;
    const soft_launch *launch;
    soft_u32 group_position[3];
    soft_u32 group_threads[3]; /* the actual size: smaller at the edge of dispatchThreads */
    soft_u32 group_total;
    const unsigned short (*thread_position)[4]; /* by thread index in the threadgroup: x, y, z, 0 */
    void *dynamic[SOFT_DYNAMIC];
    void *slot[MSL_STATIC_SLOTS]; /* threadgroup variables, placed at first use */
    soft_checks *checks;          /* NULL unless the kernel was compiled for checked mode */
    soft_counts *counts;          /* NULL unless it was compiled to be counted */

    /* what it calls when the fast path does not do */
    void (*settle)(struct soft_worker *w);     /* end of a round whose last lane does not stop */
    soft_u32 (*choose)(struct soft_worker *w); /* end of one whose lanes are at several meetings */
    void *(*place)(struct soft_worker *w, soft_u32 slot, soft_u64 bytes, soft_u64 align,
                   const char *name, soft_u32 element_bytes);

    /* meetings: values posted, results to fetch; of whatever type the meeting has, packed */
    __attribute__((aligned(64))) unsigned char in[SOFT_LANES * SOFT_EXCHANGE_BYTES];
    __attribute__((aligned(64))) unsigned char out[SOFT_LANES * SOFT_EXCHANGE_BYTES];

    /* tensor operations of several simdgroups: what threads posted, how many each has reached, and the
     * last one's place */
    void *posted[SOFT_MAX_THREADS];
    soft_u32 tensor_runs[SOFT_MAX_GROUPS];
    const char *tensor_site;

    /* the scheduler's own */
    soft_context scheduler;
    soft_simdgroup group[SOFT_MAX_GROUPS];
    soft_u32 memory_used; /* threadgroup memory as Metal counts it */
    soft_u32 memory_top;  /* as it is laid out: checked mode leaves gaps between variables */
    soft_u32 over;        /* threadgroup memory wanted beyond what Metal gives; 0: fits */
    soft_u32 given_up;    /* the launch will not be finished: an endless loop */
    void *device;         /* the host's own */
    unsigned char gap_before[SOFT_THREADGROUP_GAP];
    __attribute__((aligned(64))) unsigned char threadgroup_memory[SOFT_THREADGROUP_ROOM];
    unsigned char gap_behind[SOFT_THREADGROUP_GAP];
} soft_worker;

/* Every compiled kernel exports one of these as `assay_kernel`. */
typedef struct {
    soft_u32 abi;
    void (*fiber)(void); /* where a fresh lane starts; never returns */
    soft_u32 count;      /* parameters */
    void *nothing;       /* what a parameter that is switched off refers to */
    /* of each parameter: sizeof what is pointed or referred to; 0 for positions */
    const soft_u32 *value_bytes;
    const soft_table *tables; /* the last has 0 bytes; NULL unless compiled for checked mode */
} soft_kernel;

/* nodebug: its instructions belong to the line of the .metal file that called for them. */
#if defined(__clang__)
#define SOFT_INLINE static inline __attribute__((always_inline, nodebug))
#else
#define SOFT_INLINE static inline __attribute__((always_inline))
#endif

SOFT_INLINE soft_worker *soft_here(void) {
    soft_u64 sp;
#if defined(__aarch64__)
    __asm__("mov %0, sp" : "=r"(sp));
#elif defined(__x86_64__)
    __asm__("movq %%rsp, %0" : "=r"(sp));
#else
#error "the software device knows aarch64 and x86-64"
#endif
    return (soft_worker *)(sp & ~(SOFT_REGION_BYTES - 1));
}

/* The address of the instruction that this becomes: a different one at each place. */
#if defined(__aarch64__)
#define SOFT_SITE(variable) __asm__ volatile("adr %0, ." : "=r"(variable))
#else
#define SOFT_SITE(variable) __asm__ volatile("1: leaq 1b(%%rip), %0" : "=r"(variable))
#endif

/* x18 is an ordinary register on Linux and the system's own on macOS. */
#if defined(__APPLE__)
#define SOFT_X18
#else
#define SOFT_X18 "x18",
#endif

/* Leave one context for another; comes back when somebody switches to `from`. The landing pads are
 * for CPUs that check indirect branches. Nothing is pushed: leaf functions may keep data below the
 * stack pointer. */
#if defined(__aarch64__)
#define SOFT_SWITCH(from, to)                                                                      \
    do {                                                                                           \
        register soft_context *from_ __asm__("x0") = (from);                                       \
        register soft_context *to_ __asm__("x1") = (to);                                           \
        __asm__ volatile(                                                                          \
            "mov x9, sp\n adr x10, 1f\n stp x9, x10, [x0]\n stp x29, x19, [x0, #16]\n"             \
            "ldp x9, x16, [x1]\n ldp x29, x19, [x1, #16]\n mov sp, x9\n br x16\n1: hint #38\n"     \
            : "+r"(from_), "+r"(to_)                                                               \
            :                                                                                      \
            : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",   \
              "x15", "x16", "x17", SOFT_X18 "x20", "x21", "x22", "x23", "x24", "x25", "x26",       \
              "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",     \
              "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",  \
              "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory",      \
              "cc");                                                                               \
    } while (0)
#else
#define SOFT_SWITCH(from, to)                                                                      \
    do {                                                                                           \
        register soft_context *from_ __asm__("rdi") = (from);                                      \
        register soft_context *to_ __asm__("rsi") = (to);                                          \
        __asm__ volatile("movq %%rsp, 0(%%rdi)\n leaq 1f(%%rip), %%rax\n movq %%rax, 8(%%rdi)\n"   \
                         "movq %%rbp, 16(%%rdi)\n movq %%rbx, 24(%%rdi)\n"                         \
                         "movq 0(%%rsi), %%rsp\n movq 16(%%rsi), %%rbp\n movq 24(%%rsi), %%rbx\n " \
                         "jmpq *8(%%rsi)\n"                                                        \
                         "1: endbr64\n"                                                            \
                         : "+r"(from_), "+r"(to_)                                                  \
                         :                                                                         \
                         : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",     \
                           "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",  \
                           "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",   \
                           "memory", "cc");                                                        \
    } while (0)
#endif

#ifdef __cplusplus
}
#endif
