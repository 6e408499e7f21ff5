/* agx_driver FILE.spv ENTRY: makes Mesa compile a kernel for an M1. The module is built and its kernel is
 * made through OpenCL (rusticl); nothing is launched. There is no such GPU here: Mesa's own
 * libasahi_noop_drm_shim.so stands in for one. Mesa prints the machine code on stdout and its statistics
 * on stderr, once at clBuildProgram and again at clCreateKernel: what follows the line "== ENTRY" counts.
 *
 * tools/agx_setup.sh builds it, without headers or libraries of OpenCL, with -rdynamic: the functions
 * that it replaces must be found here first. harness/agx/compile.c runs it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
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
    if (argc != 3) {
        fprintf(stderr, "usage: agx_driver FILE.spv ENTRY\n");
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
