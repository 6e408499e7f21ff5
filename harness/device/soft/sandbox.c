/* sandbox: takes from the calling process what a kernel does not need, for good.
 *
 * Files: it may read what is below one folder and nothing else (Landlock). System calls: memory, signals
 * to itself, waiting, and reading and writing what is open already (seccomp). No other process, no
 * network, no new thread. A call that is not on the list ends the process with SIGSYS.
 *
 * On systems without one of them the rest still holds; on macOS there is none. */
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "engine.h"

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Files: the numbers are those of <linux/landlock.h>, which older systems do not have. ------------ */

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, GET_VERSION = 1, BENEATH = 1 };
enum { READ_FILE = 1 << 2 };

typedef struct {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed)) beneath;

bool sandbox_close_files(const char *readable) {
    const struct rlimit none = {0, 0};
    if (CHILD_FAULT < 0) /* a sanitizer's report may go to a file */
        setrlimit(RLIMIT_FSIZE, &none);
    setrlimit(RLIMIT_CORE, &none);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    long version = syscall(CREATE_RULESET, NULL, 0, GET_VERSION);
    if (version < 1)
        return false;
    /* Each version but the fourth brought one more kind of access; from the fifth on there are 16. */
    const int kinds = version == 1 ? 13 : version == 2 ? 14 : version < 5 ? 15 : 16;
    const uint64_t all = (UINT64_C(1) << kinds) - 1;
    int rules = (int)syscall(CREATE_RULESET, &all, sizeof all, 0);
    beneath one = {READ_FILE, open(readable, O_PATH | O_CLOEXEC)};
    bool ok = rules >= 0 && one.folder >= 0 && syscall(ADD_RULE, rules, BENEATH, &one, 0) == 0 &&
              syscall(RESTRICT_SELF, rules, 0) == 0;
    close(one.folder);
    close(rules);
    return ok;
}

/* Calls ----------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Whatever their arguments are: memory, waiting, and what is open already. */
static const int plain[] = {
    SYS_futex,
    SYS_read,
    SYS_pread64,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_lseek,
    SYS_munmap,
    SYS_madvise,
    SYS_brk,
    SYS_mremap,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_sched_yield,
    SYS_gettid,
    SYS_getpid,
    SYS_exit,
    SYS_exit_group,
    SYS_getrandom,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_ppoll,
    SYS_rseq,
    SYS_statx,
#if defined(SYS_poll)
    SYS_poll,
#endif
#if defined(ASSAY_SANITIZED) /* what its runtime does to find a thread's stack, and to report */
    SYS_sched_getaffinity,
    SYS_ioctl,
    SYS_pipe2,
    SYS_write,
    SYS_readlinkat,
#if defined(SYS_open)
    SYS_open,
    SYS_readlink,
#endif
#endif
};

enum { MOST_STEPS = 160, NAME_MEMORY = 0x53564d41 /* PR_SET_VMA */ };

typedef struct {
    struct sock_filter steps[MOST_STEPS];
    unsigned short count;
} program;

static void add(program *p, unsigned short code, uint32_t value, uint8_t yes, uint8_t no) {
    p->steps[p->count++] = (struct sock_filter){code, yes, no, value};
}

/* The lower half of an argument: what counts of flags and descriptors. */
static void load_argument(program *p, unsigned n) {
    add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * n), 0, 0);
}

static void load_call(program *p) {
    add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

static void end(program *p, uint32_t result) {
    add(p, BPF_RET | BPF_K, result, 0, 0);
}

/* The call, if none of these bits is in argument n. */
static void allow_without(program *p, int call, unsigned n, uint32_t bits) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
    load_argument(p, n);
    add(p, BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
    end(p, SECCOMP_RET_ALLOW);
    end(p, SECCOMP_RET_TRAP);
}

/* The call, if argument n is one of two values. */
static void allow_if(program *p, int call, unsigned n, uint32_t one, uint32_t other) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5);
    load_argument(p, n);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1);
    end(p, SECCOMP_RET_ALLOW);
    end(p, SECCOMP_RET_TRAP);
}

/* mmap: executable only as a part of a file, and never writable at the same time. */
static void allow_mmap(program *p) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 7);
    load_argument(p, 2);
    add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3);
    add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_WRITE, 3, 0);
    load_argument(p, 3);
    add(p, BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0);
    end(p, SECCOMP_RET_ALLOW);
    end(p, SECCOMP_RET_TRAP);
}

static void build(program *p, int in, int out) {
    const uint32_t writing =
        O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
    add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    end(p, SECCOMP_RET_KILL_PROCESS);
    load_call(p);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)plain[i], 0, 1);
        end(p, SECCOMP_RET_ALLOW);
    }
    allow_without(p, SYS_openat, 2, writing);
    allow_without(p, SYS_mprotect, 2, PROT_EXEC);
    allow_if(p, SYS_write, 0, (uint32_t)out, STDERR_FILENO);
    allow_if(p, SYS_recvmsg, 0, (uint32_t)in, (uint32_t)in);
    allow_if(p, SYS_tgkill, 0, (uint32_t)getpid(), (uint32_t)getpid());
    allow_if(p, SYS_prctl, 0, NAME_MEMORY, NAME_MEMORY);
    allow_mmap(p);
    end(p, SECCOMP_RET_TRAP);
}

static volatile int *noted;

static void note_call(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (noted)
        *noted = info->si_syscall;
    signal(SIGSYS, SIG_DFL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSYS);
}

void sandbox_note_calls(volatile int *number) {
    const struct sigaction action = {.sa_sigaction = note_call,
                                     .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    noted = number;
    sigaction(SIGSYS, &action, NULL);
}

bool sandbox_close_calls(int in, int out) {
    program p = {.count = 0};
    build(&p, in, out);
    struct sock_fprog all = {p.count, p.steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0;
}
#else
bool sandbox_close_files(const char *readable) {
    (void)readable;
    return false;
}

bool sandbox_close_calls(int in, int out) {
    (void)in, (void)out;
    return false;
}

void sandbox_note_calls(volatile int *number) {
    (void)number;
}
#endif
