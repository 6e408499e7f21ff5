#include "poison.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/device/device.h"

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

enum { ALIGNMENT = 16384 };
#define LEAST_LAZY ((size_t)4 << 20)
#define FILE_BYTES ((size_t)16 << 20) /* as few mappings as possible for as little disk */

/* In front of the memory. */
typedef struct {
    size_t mapped; /* bytes, this header included; 0: from malloc */
} header;

static int pattern_file = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What nothing wrote reads as NaN, and the same in every run. */
static void fill(char *at, size_t bytes) {
    for (size_t i = 0; i + 1 < bytes; i += 2)
        memcpy(at + i, &(uint16_t){POISON_PATTERN}, 2);
}

/* Without a name; -1 stays where it cannot be made. */
static void make_file(void) {
    char *text = array_new(1, FILE_BYTES);
    fill(text, FILE_BYTES);
    int fd = os_open_unnamed();
    if (fd >= 0 && os_write_all(fd, text, FILE_BYTES))
        pattern_file = fd;
    else if (fd >= 0)
        close(fd);
    free(text);
}

/* Pages may be smaller than ALIGNMENT: more is mapped, and what is too much given back. */
static char *map_aligned(size_t all) {
    char *at = mmap(NULL, all + ALIGNMENT, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT;
    if (before > 0)
        munmap(at, before);
    munmap(at + before + all, ALIGNMENT - before);
    return at + before;
}

static char *map_lazily(size_t all) {
    pthread_once(&once, make_file);
    char *at = pattern_file < 0 ? NULL : map_aligned(all);
    if (!at)
        return NULL;
    for (size_t done = ALIGNMENT; done < all; done += FILE_BYTES) {
        size_t part = all - done < FILE_BYTES ? all - done : FILE_BYTES;
        if (mmap(at + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 pattern_file, 0) == MAP_FAILED) {
            munmap(at, all);
            return NULL;
        }
    }
    return at;
}

void *soft_poison_allocate(size_t bytes) {
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t all = ALIGNMENT + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *at = bytes >= LEAST_LAZY ? map_lazily(all) : NULL;
    bool is_mapped = at != NULL;
    if (!at) {
        void *eager;
        if (posix_memalign(&eager, ALIGNMENT, all) != 0)
            return NULL;
        at = eager;
        fill(at + ALIGNMENT, bytes);
    }
    *(header *)(void *)at = (header){is_mapped ? all : 0};
    return at + ALIGNMENT;
}

void soft_poison_free(void *memory) {
    if (!memory)
        return;
    char *at = (char *)memory - ALIGNMENT;
    const header *h = (const header *)(const void *)at;
    if (h->mapped)
        munmap(at, h->mapped);
    else
        free(at);
}
