#include "poison.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "harness/device/device.h"

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

#define FILE_BYTES ((size_t)2 << 20) /* few mappings for little memory */

static int pattern_file = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void poison_fill(void *at, size_t bytes, uint16_t pattern) {
    for (size_t i = 0; i + 1 < bytes; i += 2)
        memcpy((char *)at + i, &pattern, sizeof pattern);
}

static void make_file(void) {
    int file = soft_arena_open_file(FILE_BYTES);
    void *at =
        file < 0 ? MAP_FAILED : mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        return;
    poison_fill(at, FILE_BYTES, POISON_PATTERN);
    munmap(at, FILE_BYTES);
    pattern_file = file;
}

int poison_get_file(void) {
    pthread_once(&once, make_file);
    return pattern_file;
}

bool poison_map(char *at, size_t bytes, int file) {
    const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    for (size_t done = 0; done < bytes; done += FILE_BYTES) {
        size_t part = bytes - done < FILE_BYTES ? bytes - done : FILE_BYTES;
        if (mmap(at + done, part, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED)
            return false;
    }
    return true;
}
