/* map_guard: see map_guard.h. The handler does only what a signal handler may. */
#include "map_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "os.h"

enum { GUARDED = 16 };

static struct {
    const char *volatile at; /* NULL: free */
    size_t bytes;
    int file;
    char sentence[400];
} guarded[GUARDED];
static struct sigaction before;

static void handle(int number, siginfo_t *info, void *context) {
    (void)context;
    for (int i = 0; i < GUARDED; i++) {
        const char *at = guarded[i].at;
        if (!at || (uintptr_t)info->si_addr - (uintptr_t)at >= guarded[i].bytes)
            continue;
        os_write_all(STDERR_FILENO, guarded[i].sentence, strlen(guarded[i].sentence));
        _exit(EXIT_CANNOT);
    }
    sigaction(number, &before, NULL); /* the fault happens again and is the other handler's */
}

void map_guard_add(const void *at, size_t bytes, const char *name, int file) {
    static bool is_installed;
    int i = 0;
    while (i < GUARDED && guarded[i].at)
        i++;
    if (i == GUARDED)
        return;
    guarded[i].bytes = bytes;
    guarded[i].file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    snprintf(guarded[i].sentence, sizeof guarded[i].sentence,
             "\nassay: %.300s became shorter while it was being read: run again when it is whole\n",
             name);
    guarded[i].at = at;
    if (is_installed)
        return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    is_installed = sigaction(SIGBUS, &action, &before) == 0;
}

void map_guard_remove(const void *at) {
    for (int i = 0; i < GUARDED; i++) {
        if (!at || guarded[i].at != at)
            continue;
        guarded[i].at = NULL;
        if (guarded[i].file >= 0)
            close(guarded[i].file);
    }
}

int map_guard_find(const void *memory, size_t bytes, const char **at, size_t *map_bytes) {
    for (int i = 0; i < GUARDED; i++) {
        size_t offset = (size_t)((uintptr_t)memory - (uintptr_t)guarded[i].at);
        if (!guarded[i].at || offset > guarded[i].bytes || bytes > guarded[i].bytes - offset)
            continue;
        *at = guarded[i].at;
        *map_bytes = guarded[i].bytes;
        return guarded[i].file;
    }
    return -1;
}
