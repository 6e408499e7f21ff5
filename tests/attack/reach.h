/* Finds syscall() of the C library by its machine code, near memcpy, and calls it. 9999: not found.
 * ON_AARCH64: the host is one; texts are not told by the compiler. */
#pragma once

extern "C" void *memcpy(void *, const void *, unsigned long);

#ifdef ON_AARCH64
enum { NR_OPENAT = 56, NR_READ = 63, NR_EXECVE = 221, NR_CLONE = 220, NR_SOCKET = 198, NR_KILL = 129,
       NR_MPROTECT = 226, NR_PTRACE = 117 };
#else
enum { NR_OPENAT = 257, NR_READ = 0, NR_EXECVE = 59, NR_CLONE = 56, NR_SOCKET = 41, NR_KILL = 62,
       NR_MPROTECT = 10, NR_PTRACE = 101 };
#endif

static ulong find_call() {
#ifdef ON_AARCH64
    const uint first = 0xaa0103e0, second = 0xaa0203e1, third = 0xaa0303e2; /* mov x0, x1... */
    const ulong least = 4, most = 8; /* before it, mov w8, w0, and a nop in some C libraries */
#else
    const uint first = 0x48f88948, second = 0x8948f789, third = 0xca8948d6; /* mov %rdi, %rax... */
    const ulong least = 0, most = 0;
#endif
    volatile ulong start = (ulong)&memcpy;
    for (ulong away = 0; away < 0x90000; away += 16)
        for (int side = 0; side < 2; side++)
            for (ulong before = least; before <= most; before += 4) {
                ulong at = (start & ~15ul) + before + (side ? away : -away);
                if (*(device const uint *)at == first && *(device const uint *)(at + 4) == second &&
                    *(device const uint *)(at + 8) == third)
                    return at - before;
            }
    return 0;
}

template <typename A, typename B, typename C, typename D> long reach(long number, A a, B b, C c, D d) {
    ulong at = find_call();
    return at ? ((long (*)(long, ulong, ulong, ulong, ulong))at)(number, (ulong)a, (ulong)b, (ulong)c,
                                                                 (ulong)d)
              : 9999;
}
