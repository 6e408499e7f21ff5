/* agx_driver FILE.spv ENTRY [lines]: makes Mesa compile a kernel for an M1. The module is built and its kernel is
 * made through OpenCL (rusticl); nothing is launched. There is no such GPU here: Mesa's own
 * libasahi_noop_drm_shim.so stands in for one. Mesa prints the machine code on stdout and its statistics
 * on stderr, once at clBuildProgram and again at clCreateKernel: what follows the line "== ENTRY" counts.
 *
 * tools/agx_setup.sh builds it, without headers or libraries of OpenCL, with -rdynamic: the functions
 * that it replaces must be found here first. harness/agx/compile.c runs it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libdrm's own fails: the stand-in for a GPU has no fence to export, and Mesa wants one when it uploads
 * the constant data of a kernel. */
int drmSyncobjExportSyncFile(int fd, uint32_t handle, int *file);
int drmSyncobjExportSyncFile(int fd, uint32_t handle, int *file) {
    (void)fd, (void)handle;
    *file = dup(STDERR_FILENO);
    return 0;
}

/* The paths of libclc's files are fixed in Mesa; they are below AGX_ROOT. */
static int open_next(const char *next, const char *path, int flags, int mode) {
    char moved[4096];
    const char *root = getenv("AGX_ROOT");
    if (root && strstr(path, "/clc/")) {
        snprintf(moved, sizeof moved, "%s%s", root, path);
        path = moved;
    }
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, next))(path, flags, mode);
}
#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...);                                                    \
    int name(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        int mode = va_arg(rest, int);                                                              \
        va_end(rest);                                                                              \
        return open_next(#name, path, flags, mode);                                                \
    }
OPEN(open)
OPEN(open64)

/* Lines ------------------------------------------------------------------------------------------
 *
 * Mesa can carry a place in the module (an offset in bytes) from each instruction of the module to the
 * instructions of its last form, which it prints, but rusticl does not ask for that, and Mesa's driver
 * drops the places when it packs a kernel. These functions see Mesa's allocations. Where Mesa is about to
 * translate or pack a kernel they find its settings on the stack, by their shape, and ask; where it has
 * unpacked one, they give back the places of arithmetic, which its reader forgets. The shapes are those of
 * Mesa 26 on 64-bit machines. Where they are not found, Mesa prints no places. */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

typedef struct { /* hash_table: the objects that are packed, and their numbers */
    void *owner;
    struct {
        uint64_t hash;
        char *key;
        uint64_t number;
    } *entries;
    void *rest[3];
    uint32_t size, rehash;
    uint64_t magic[2];
    uint32_t most, size_index, count, deleted;
} object_table;
enum { FIRST_ENTRIES = 19 };

static bool is_asked, is_given;  /* by the caller; of Mesa */
static __thread bool is_looking; /* what looks may allocate */

/* Kernels are packed by one thread and unpacked by others. */
static __thread object_table *packed; /* what is being packed, on Mesa's stack */
static __thread char **unpacked;      /* what is being unpacked: objects by number */
static __thread uint32_t unpacked_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { /* of arithmetic, by kernel: one is known by its number of objects, the last such one counts */
    uint32_t count, *items;
} places[64];

static char *find_stack_end(void) {
    static __thread char *end;
    pthread_attr_t a;
    void *base;
    size_t size;
    if (!end && pthread_getattr_np(pthread_self(), &a) == 0) {
        pthread_attr_getstack(&a, &base, &size);
        pthread_attr_destroy(&a);
        end = (char *)base + size - 1024;
    }
    return end;
}

/* spirv_to_nir_options: ..., bool printf (true), bool debug_info, a pointer, nine forms of addresses, of which
 * rusticl sets shared, global, temporary and constant, and two numbers that are 0. */
static void ask_translator(void) {
    enum { SHARED = 4, GLOBAL = 6, TEMPORARY = 7, CONSTANT = 8, FORMS = 11, MOST = 32 };
    char *end = find_stack_end();
    for (char *p = __builtin_frame_address(0); p < end; p += 8) {
        uint32_t form[FORMS];
        memcpy(form, p + 8, sizeof form);
        if (form[0] | form[1] | form[2] | form[3] | form[5] | form[9] | form[10] ||
            !form[SHARED] || form[SHARED] >= MOST || !form[GLOBAL] || form[GLOBAL] >= MOST ||
            form[TEMPORARY] != form[SHARED] || form[CONSTANT] != form[GLOBAL])
            continue;
        if (p[-6] == 1 && p[-5] == 0)
            p[-5] = is_given = true;
    }
}

/* write_ctx: two pointers, the table, whose entries are in itself at first, and zeros up to bool strip (true)
 * and bool debug_info. */
static void ask_packer(void) {
    enum { AFTER = 32 /* more fields */, MOST_ZEROS = 200 };
    char *end = find_stack_end();
    for (char *p = __builtin_frame_address(0); p < end; p += 8) {
        object_table *t = (object_table *)p;
        if ((char *)t->entries != p + sizeof *t || t->count != 0 || t->owner)
            continue;
        char *field = p + sizeof *t + FIRST_ENTRIES * sizeof *t->entries, *last = field + MOST_ZEROS;
        for (field += AFTER; field < last && !*field; field++)
            ;
        if (field < last && field[0] == 1 && field[1] == 0) {
            field[1] = true;
            packed = t;
        }
    }
}

/* A value (nir_def) follows its instruction (nir_instr, 32 bytes), which follows its place. */
static uint32_t *find_place(char *value) {
    enum { ARITHMETIC = 0, PHI = 8, LOWEST = 1 << 20 };
    if ((uintptr_t)value % 8 || (uintptr_t)value < LOWEST || (uintptr_t)value >> 48)
        return NULL; /* what was allocated is not such a table */
    const char type = value[-8], has_place = value[-6], bits = value[21];
    bool is_value = (type == ARITHMETIC || type == PHI) && has_place == 1 &&
                    (bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64);
    return is_value ? (uint32_t *)(void *)(value - 48) : NULL;
}

static uint32_t *find_places(uint32_t count, bool is_new) {
    const size_t most = sizeof places / sizeof *places;
    size_t i = 0;
    while (i < most && places[i].count && places[i].count != count)
        i++;
    if (i == most || (!places[i].count && !is_new))
        return NULL;
    places[i].count = count;
    places[i].items = is_new ? __libc_calloc(count, sizeof *places[i].items) : places[i].items;
    return places[i].items;
}

static void keep_places(void) {
    const uint32_t count = packed->count;
    pthread_mutex_lock(&lock);
    uint32_t *kept = count ? find_places(count, true) : NULL;
    for (uint32_t i = 0; kept && i < packed->size; i++) {
        char *object = packed->entries[i].key;
        uint64_t number = packed->entries[i].number;
        const uint32_t *place = object && number < count ? find_place(object) : NULL;
        if (place)
            kept[number] = *place;
    }
    pthread_mutex_unlock(&lock);
    packed = NULL;
}

static void give_places_back(void) {
    pthread_mutex_lock(&lock);
    const uint32_t *kept = find_places(unpacked_count, false);
    for (uint32_t i = 0; kept && i < unpacked_count; i++) {
        uint32_t *place = kept[i] && unpacked[i] ? find_place(unpacked[i]) : NULL;
        if (place && *place == 0)
            *place = kept[i];
    }
    pthread_mutex_unlock(&lock);
    unpacked = NULL;
}

void *malloc(size_t size) {
    enum { SMALLEST = 400 }; /* of what the translator allocates first */
    if (is_asked && size > SMALLEST && !is_looking) {
        is_looking = true;
        ask_translator();
        is_looking = false;
    }
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    enum { FEWEST = 32 }; /* objects: smaller tables are not told from others of that size */
    void *p = __libc_calloc(count, size);
    if (is_given && size == sizeof(void *) && count >= FEWEST && count < UINT32_MAX) {
        pthread_mutex_lock(&lock);
        if (find_places((uint32_t)count, false)) {
            unpacked = p;
            unpacked_count = (uint32_t)count;
        }
        pthread_mutex_unlock(&lock);
    }
    return p;
}

void *realloc(void *p, size_t size) {
    enum { FIRST = 4096 }; /* of what the packer writes to */
    if (is_given && !p && size == FIRST && !is_looking) {
        is_looking = true;
        ask_packer();
        is_looking = false;
    }
    return __libc_realloc(p, size);
}

void free(void *p) {
    enum { MOST_BEFORE = 96 }; /* bytes of Mesa's allocator before what it allocates */
    if (packed && (char *)packed < (char *)__builtin_frame_address(0))
        packed = NULL; /* that function has returned */
    if (p && packed && (char *)packed->entries > (char *)p &&
        (char *)packed->entries <= (char *)p + MOST_BEFORE)
        keep_places();
    if (p && p == (void *)unpacked)
        give_places_back();
    __libc_free(p);
}

static void stop(const char *what, int code) {
    fprintf(stderr, "agx_driver: %s: OpenCL error %d\n", what, code);
    fflush(stdout);
    _exit(1);
}

static void *library;
static void *find(const char *name) {
    void *f = library ? dlsym(library, name) : NULL;
    if (!f)
        stop(name, 0);
    return f;
}
#define CALL(type, name, ...) ((type(*)(__VA_ARGS__))find(#name))

static uint32_t *read_words(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    uint32_t *words = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *bytes = (size_t)ftell(f);
        rewind(f);
        words = calloc(1, *bytes + 4);
        if (words && fread(words, 1, *bytes, f) != *bytes)
            words = NULL;
    }
    if (!words)
        stop(path, 0);
    fclose(f);
    return words;
}

/* LLVM writes Fast; Mesa (26.1) looks only at the bits of SPV_KHR_float_controls2 that Fast stands for,
 * and without them does not fuse a product and a sum. */
static void spell_fast(uint32_t *words, size_t count) {
    enum { HEADER = 5, DECORATE = 71, FAST_MATH_MODE = 40, FAST = 0x10, ALL_IT_MEANS = 0x70000 };
    for (size_t at = HEADER; at < count && words[at] >> 16; at += words[at] >> 16)
        if ((words[at] & 0xFFFF) == DECORATE && at + 3 < count && words[at + 2] == FAST_MATH_MODE &&
            words[at + 3] & FAST)
            words[at + 3] |= ALL_IT_MEANS;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: agx_driver FILE.spv ENTRY [lines]\n");
        return 2;
    }
    size_t bytes;
    uint32_t *words = read_words(argv[1], &bytes);
    void *platform, *device;
    int code;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16); /* code and statistics stay in order */
    spell_fast(words, bytes / 4);
    library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if ((code = CALL(int, clGetPlatformIDs, uint32_t, void **, uint32_t *)(1, &platform, NULL)) ||
        (code = CALL(int, clGetDeviceIDs, void *, uint64_t, uint32_t, void **, uint32_t *)(
             platform, UINT32_MAX, 1, &device, NULL)))
        stop("no device", code);
    void *context = CALL(void *, clCreateContext, const intptr_t *, uint32_t, void **, void *,
                         void *, int *)(NULL, 1, &device, NULL, NULL, &code);
    void *program = code ? NULL
                         : CALL(void *, clCreateProgramWithIL, void *, const void *, size_t, int *)(
                               context, words, bytes, &code);
    if (code)
        stop("clCreateProgramWithIL", code);
    is_asked = argc == 4;
    if ((code = CALL(int, clBuildProgram, void *, uint32_t, void **, const char *, void *, void *)(
             program, 1, &device, "", NULL, NULL)))
        stop("clBuildProgram", code);
    fprintf(stderr, "== %s\n", argv[2]);
    CALL(void *, clCreateKernel, void *, const char *, int *)(program, argv[2], &code);
    if (code)
        stop("clCreateKernel", code);
    fflush(stdout);
    _exit(0); /* rusticl's threads need not end */
}
