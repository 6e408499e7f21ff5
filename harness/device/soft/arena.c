/* arena: see arena.h. Blocks are kept in order of their addresses; a new one goes into the first hole
 * that it fits in. */
#if defined(__linux__)
#define _GNU_SOURCE /* memfd_create, fallocate */
#endif
#include "arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/device/device.h"

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

#if defined(ASSAY_SANITIZED)
#define MOST_BYTES ((size_t)1 << 34) /* every byte of address space has a shadow */
#else
#define MOST_BYTES ((size_t)1 << 40)
#endif

enum { ALIGNMENT = 16384, CHECKED_PARTS = 1 + SOFT_BUFFERS };

typedef struct {
    size_t begin, bytes, gap;
} block;

struct soft_arena {
    char *at;
    size_t bytes; /* of each part: memory, marks, views */
    int parts, file;
    block *blocks;
    size_t count, room;
};

void *soft_map(void *at, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE | (at ? MAP_FIXED : 0);
    void *made = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

/* A file without a name that holds this many zeros, in memory where the system can; -1: none could be made. */
static int open_file(size_t bytes) {
    int fd = -1;
    struct rlimit limit; /* beyond it, making a file longer is a signal */
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < bytes)
        return -1;
#if defined(__linux__)
    fd = memfd_create("assay buffers", MFD_CLOEXEC);
#endif
    if (fd < 0)
        fd = os_open_unnamed();
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* As much address space as there is; the memory and its marks are mapped, the views are not yet. */
static bool map_parts(soft_arena *a, size_t bytes) {
    const int access = PROT_READ | PROT_WRITE;
    const size_t all = bytes * (size_t)a->parts, mapped = a->parts > 1 ? 2 * bytes : bytes;
    char *at =
        mmap(NULL, all + ALIGNMENT, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    a->at = at + (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT;
    a->bytes = bytes;
    a->file = open_file(mapped);
    /* Without a file there are no views, which only checked mode needs. */
    const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE | (a->file < 0 ? MAP_ANON : 0);
    if ((a->file >= 0 || a->parts == 1) && mmap(a->at, mapped, access, flags, a->file, 0) == a->at)
        return true;
    if (a->file >= 0)
        close(a->file);
    munmap(at, all + ALIGNMENT);
    return false;
}

soft_arena *soft_arena_new(bool is_checked, err *e) {
    soft_arena *a = array_new(1, sizeof *a);
    a->parts = is_checked ? CHECKED_PARTS : 1;
    for (size_t bytes = MOST_BYTES; bytes >= (size_t)1 << 30; bytes /= 2)
        if (map_parts(a, bytes))
            return a;
    free(a);
    return err_null(e, EXIT_CANNOT, "the software device cannot reserve memory for buffers");
}

void soft_arena_free(soft_arena *a) {
    if (!a)
        return;
    munmap(a->at, a->bytes * (size_t)a->parts);
    if (a->file >= 0)
        close(a->file);
    free(a->blocks);
    free(a);
}

static size_t round_up(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Between block i - 1 and block i there is a hole: where a block with these gaps would begin. */
static size_t find_begin(const soft_arena *a, size_t i, size_t gap) {
    if (i == 0)
        return gap;
    const block *before = &a->blocks[i - 1];
    return before->begin + before->bytes + (before->gap > gap ? before->gap : gap);
}

static bool fits(const soft_arena *a, size_t i, const block *b) {
    size_t end = i < a->count ? a->blocks[i].begin : a->bytes;
    size_t gap = i < a->count && a->blocks[i].gap > b->gap ? a->blocks[i].gap : b->gap;
    return b->begin <= end && end - b->begin >= gap && b->bytes <= end - b->begin - gap;
}

void *soft_arena_take(soft_arena *a, size_t bytes, size_t gap) {
    if (bytes > a->bytes)
        return NULL;
    block b = {.bytes = round_up(bytes), .gap = round_up(gap)};
    for (size_t i = 0; i <= a->count; i++) {
        b.begin = find_begin(a, i, b.gap);
        if (!fits(a, i, &b))
            continue;
        *ARRAY_ADD(a->blocks, a->count, a->room) = b;
        memmove(&a->blocks[i + 1], &a->blocks[i], (a->count - 1 - i) * sizeof b);
        a->blocks[i] = b;
        return a->at + b.begin;
    }
    return NULL;
}

/* Gives the pages back to the system, and zeros in their place. */
static void clear(const soft_arena *a, size_t begin, size_t bytes) {
#if defined(__linux__)
    if (fallocate(a->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin,
                  (off_t)bytes) == 0)
        return;
#endif
    memset(a->at + begin, 0, bytes);
}

static block *find_block(const soft_arena *a, const void *at) {
    size_t begin = (size_t)((const char *)at - a->at);
    for (size_t i = 0; i < a->count; i++)
        if (a->blocks[i].begin == begin)
            return &a->blocks[i];
    return NULL;
}

size_t soft_arena_get_bytes(const soft_arena *a, const void *at) {
    const block *b = find_block(a, at);
    return b ? b->bytes : 0;
}

size_t soft_arena_get_taken(const soft_arena *a) {
    size_t bytes = 0;
    for (size_t i = 0; i < a->count; i++)
        bytes += a->blocks[i].bytes;
    return bytes;
}

void soft_arena_give(soft_arena *a, void *at) {
    block *b = find_block(a, at);
    if (!b)
        return;
    clear(a, b->begin, b->bytes);
    if (a->parts > 1)
        clear(a, a->bytes + b->begin, b->bytes);
    a->count--;
    memmove(b, b + 1, (size_t)(a->blocks + a->count - b) * sizeof *b);
}

unsigned char *soft_arena_get_marks(const soft_arena *a, const void *at) {
    return (unsigned char *)a->at + a->bytes + ((const char *)at - a->at);
}

void *soft_arena_get_view(const soft_arena *a, void *at, int n) {
    return (char *)at + (size_t)(n + 1) * a->bytes;
}

bool soft_arena_close_all(const soft_arena *a) {
    bool ok = mprotect(a->at, a->bytes, PROT_NONE) == 0;
    for (int part = 2; ok && part < a->parts; part++) {
        char *view = a->at + (size_t)part * a->bytes;
        ok = mmap(view, a->bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, a->file, 0) ==
             view;
    }
    return ok;
}

void soft_arena_open(const soft_arena *a, void *at, size_t bytes, bool is_open) {
    (void)a;
    mprotect(at, round_up(bytes), is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

int soft_arena_get_file(const soft_arena *a) {
    return a->file;
}
