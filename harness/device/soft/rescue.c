/* rescue: signal handlers that jump, not return.
 *
 * A fault or a timer finds the kernel anywhere in its own code. The handler runs on a stack of its
 * own, asks what to do, and then rewrites the interrupted context so that, when it returns, the
 * thread goes on in end_lane or give_up, on the stack of the fiber that was running. */
#if defined(__linux__)
#define _GNU_SOURCE /* register names of ucontext */
#endif
#include "rescue.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/ucontext.h> /* the other one is for programs of XOPEN only */
#else
#include <ucontext.h>
#endif

#include "harness/base/array.h"
#include "harness/base/child.h"

enum { ALTERNATE_BYTES = 65536, RESCUE_SIGNALS = 6 };

static const int faults[RESCUE_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGUSR2};

struct soft_rescue {
    soft_worker *worker;
    rescue_fn call;
    void *context;
    pthread_t runner;
    char *alternate;
    stack_t stack_before;
    struct sigaction before[RESCUE_SIGNALS];
    bool active;

    pthread_t timer;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn;               /* counts launches; odd: one is running */
    atomic_uint_fast64_t groups; /* counts threadgroups */
    double seconds;
    bool closing;
};

/* Signals carry no context of ours: one checked device at a time runs kernels in a process. */
static _Atomic(soft_rescue *) current;

/* AddressSanitizer marks frames until they return; some never do. */
void __asan_unpoison_memory_region(const volatile void *at, size_t bytes);

void soft_end_lane(soft_worker *w) {
    soft_simdgroup *g = w->running;
    const soft_u32 lane = g->current, bit = 1u << lane;
    g->fresh &= ~bit;
    g->live &= ~bit;
    g->party &= ~bit;
    g->ended |= bit;
    const soft_u32 todo = g->todo &= ~bit;
    const uintptr_t stack = (uintptr_t)__builtin_frame_address(0) & -(uintptr_t)SOFT_STACK_BYTES;
    if (CHILD_FAULT > 0)
        __asan_unpoison_memory_region((const void *)stack, SOFT_STACK_BYTES);
    if (todo) {
        const soft_u32 next = (soft_u32)__builtin_ctz(todo);
        g->current = next;
        SOFT_SWITCH(&g->lane[lane], &g->lane[next]);
    } else {
        w->settle(w);
    }
    abort(); /* a lane that ended is never resumed */
}

static void end_here(void) {
    soft_end_lane(soft_here());
}

static void give_up_here(void) {
    soft_worker *w = soft_here();
    w->given_up = 1;
    if (CHILD_FAULT > 0)
        __asan_unpoison_memory_region((char *)w + SOFT_STACKS_AT,
                                      SOFT_REGION_BYTES - SOFT_STACKS_AT);
    SOFT_SWITCH(&w->running->lane[w->running->current], &w->scheduler);
    abort();
}

rescue_place rescue_get_place(const void *context) {
    const ucontext_t *u = context;
#if defined(__APPLE__) && defined(__aarch64__)
    return (rescue_place){u->uc_mcontext->__ss.__pc, u->uc_mcontext->__ss.__sp,
                          u->uc_mcontext->__ss.__fp};
#elif defined(__APPLE__)
    return (rescue_place){u->uc_mcontext->__ss.__rip, u->uc_mcontext->__ss.__rsp,
                          u->uc_mcontext->__ss.__rbp};
#elif defined(__aarch64__)
    return (rescue_place){u->uc_mcontext.pc, u->uc_mcontext.sp, u->uc_mcontext.regs[29]};
#else
    return (rescue_place){(uintptr_t)u->uc_mcontext.gregs[REG_RIP],
                          (uintptr_t)u->uc_mcontext.gregs[REG_RSP],
                          (uintptr_t)u->uc_mcontext.gregs[REG_RBP]};
#endif
}

static void set_place(ucontext_t *u, rescue_place p) {
#if defined(__APPLE__) && defined(__aarch64__)
    u->uc_mcontext->__ss.__pc = p.pc;
    u->uc_mcontext->__ss.__sp = p.sp;
#elif defined(__APPLE__)
    u->uc_mcontext->__ss.__rip = p.pc;
    u->uc_mcontext->__ss.__rsp = p.sp;
#elif defined(__aarch64__)
    u->uc_mcontext.pc = p.pc;
    u->uc_mcontext.sp = p.sp;
#else
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)p.pc;
    u->uc_mcontext.gregs[REG_RSP] = (greg_t)p.sp;
#endif
}

/* A stack pointer at the top of the running fiber's stack: what is on it is abandoned. */
static uintptr_t find_fresh_stack(uintptr_t sp) {
    uintptr_t top = (sp / SOFT_STACK_BYTES + 1) * SOFT_STACK_BYTES - 64;
#if defined(__x86_64__)
    top -= 8;
#endif
    return top;
}

/* Integer divisions trap on x86-64 alone. Elsewhere the quotient is 0 and the remainder is the dividend,
 * and so it is here, so that one run shows all findings on every CPU. False: not a division. */
static bool step_over_division(ucontext_t *u) {
#if defined(__x86_64__) && defined(__linux__)
    greg_t *registers = u->uc_mcontext.gregs, *a = &registers[REG_RAX];
    const unsigned char *p = (const unsigned char *)(uintptr_t)registers[REG_RIP];
    p += *p == 0x66;          /* 16 bits */
    p += (*p & 0xF0) == 0x40; /* 64 bits, or registers from r8 on */
    if ((*p & 0xFE) != 0xF6)  /* div and idiv, of bytes and of words */
        return false;
    const bool is_byte = *p == 0xF6;
    const unsigned mode = p[1] >> 6, base = p[1] & 7;
    const bool has_index = mode != 3 && base == 4;
    const bool has_place = mode == 0 && (base == 5 || (has_index && (p[2] & 7) == 5));
    p += 2 + has_index + (mode == 1 ? 1 : mode == 2 || has_place ? 4 : 0);
    if (!is_byte)
        registers[REG_RDX] = *a;
    *a = is_byte ? (*a & 0xFF) << 8 : 0;
    registers[REG_RIP] = (greg_t)(uintptr_t)p;
    return true;
#else
    (void)u;
    return false;
#endif
}

static void handle(int signal_number, siginfo_t *info, void *raw) {
    soft_rescue *r = atomic_load(&current);
    ucontext_t *u = raw;
    rescue_place p = rescue_get_place(u);
    uintptr_t stacks = r ? (uintptr_t)r->worker + SOFT_STACKS_AT : 0;
    bool on_fiber = r && r->active && p.sp - stacks < SOFT_REGION_BYTES - SOFT_STACKS_AT;
    if (!on_fiber) {
        if (signal_number == SIGUSR2)
            return; /* the timer came between two threadgroups: it will come again */
        signal(signal_number, SIG_DFL); /* not a kernel's: the fault happens again and ends us */
        return;
    }
    rescue_action next =
        r->call(r->context, signal_number, (const void *)p.pc, p.fp, info ? info->si_addr : NULL);
    if (next == RESCUE_GO_ON || (next == RESCUE_STEP_OVER && step_over_division(u)))
        return;
    void (*go)(void) = next == RESCUE_GIVE_UP ? give_up_here : end_here;
    set_place(u, (rescue_place){(uintptr_t)go, find_fresh_stack(p.sp), 0});
}

/* The processor's time, not the clock's: on a busy machine a kernel waits for its turn. */
static int64_t get_spent_ms(void) {
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (int64_t)spent.tv_sec * 1000 + spent.tv_nsec / 1000000;
}

/* Waits until the turn ends, or for so long. */
static void wait_ms(soft_rescue *r, uint64_t turn, int64_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = 0;
    while (!r->closing && r->turn == turn && !late)
        late = pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

static void *run_timer(void *argument) {
    soft_rescue *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->closing) {
        if (r->turn % 2 == 0) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        uint64_t turn = r->turn;
        uint64_t groups = atomic_load(&r->groups);
        int64_t end = get_spent_ms() + (int64_t)(1000 * r->seconds), left;
        while (!r->closing && r->turn == turn && groups == atomic_load(&r->groups) &&
               (left = end - get_spent_ms()) > 0)
            wait_ms(r, turn, left);
        if (groups != atomic_load(&r->groups))
            continue; /* it moves on */
        /* Again and again: a signal between two threadgroups finds no kernel to stop. */
        while (!r->closing && r->turn == turn) {
            pthread_kill(r->runner, SIGUSR2);
            wait_ms(r, turn, 5);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

soft_rescue *soft_rescue_new(soft_worker *w, rescue_fn call, void *context, err *e) {
    soft_rescue *r = array_new(1, sizeof *r);
    r->worker = w;
    r->call = call;
    r->context = context;
    r->alternate = array_new(1, ALTERNATE_BYTES);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (pthread_create(&r->timer, NULL, run_timer, r) == 0)
        return r;
    err_set(e, EXIT_CANNOT, "checked mode cannot start its timer");
    free(r->alternate);
    free(r);
    return NULL;
}

void soft_rescue_free(soft_rescue *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->timer, NULL);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r->alternate);
    free(r);
}

void soft_rescue_begin(soft_rescue *r, double seconds) {
    stack_t stack = {.ss_sp = r->alternate, .ss_size = ALTERNATE_BYTES};
    sigaltstack(&stack, &r->stack_before);
    const struct sigaction action = {.sa_sigaction = handle,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    r->runner = pthread_self();
    r->active = true;
    atomic_store(&current, r);
    for (int i = 0; i < RESCUE_SIGNALS; i++)
        sigaction(faults[i], &action, &r->before[i]);
    pthread_mutex_lock(&r->lock);
    r->turn++;
    r->seconds = seconds;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void soft_rescue_advance(soft_rescue *r) {
    atomic_fetch_add(&r->groups, 1);
}

void soft_rescue_end(soft_rescue *r) {
    pthread_mutex_lock(&r->lock);
    r->turn++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    r->active = false;
    sigaltstack(&r->stack_before, NULL);
    for (int i = 0; i < RESCUE_SIGNALS; i++)
        if (faults[i] != SIGUSR2) /* a late one finds nothing to do */
            sigaction(faults[i], &r->before[i], NULL);
}
