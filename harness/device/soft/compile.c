/* compile: runs clang on rewritten MSL and loads the result.
 *
 * A compiled kernel is named by the hash of everything that made it: text, shim, flags, compiler.
 * So a changed kernel is another file and a stale one is never looked at. It is written beside and
 * renamed, so two processes that compile the same kernel do not disturb each other; a checksum
 * stands next to it, so a damaged file is compiled again and never loaded. */
#include "compile.h"

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/sha256.h"
#include "harness/device/toolchain.h"
#include "inspect.h"

struct soft_compiler {
    char clang[PATH_MAX];
    char version[128];
    int major;
    char name[256];
    char shim[PATH_MAX]; /* the header that every kernel is compiled with */
    char cache[PATH_MAX];
    char base_hash[65]; /* of compiler, flags and shim */
};

/* -ffp-contract=off: the reference is each operation rounded once, as written. Pattern-initialised
 * variables: a kernel that uses one it never set gives the same wrong answer every time, and floats
 * start as NaN. Convergent functions, nothing hoisted, sunk or merged: the optimiser may not make
 * one simdgroup call out of the two arms of a branch. */
/* clang-format off */
static const char *const flags[] = {
    "-x", "c++", "-std=c++17", "-fdeclspec", "-gdwarf-4", "-gline-tables-only", "-fPIC", "-shared",
    "-nostdlib", "-fvisibility=hidden", "-fsigned-char", "-fno-strict-aliasing",
    "-fno-operator-names", "-fno-exceptions", "-fno-rtti", "-fno-finite-loops",
    "-ffp-contract=off", "-fno-math-errno", "-fno-stack-protector", "-fno-threadsafe-statics",
    "-ftrivial-auto-var-init=pattern", "-fno-delete-null-pointer-checks", "-fno-caret-diagnostics",
    "-fstack-usage", "-w", "-Xclang", "-cl-single-precision-constant", "-Xclang",
    "-fconvergent-functions", "-mllvm", "-enable-tail-merge=0", "-mllvm",
    "-simplifycfg-hoist-common=0", "-mllvm", "-simplifycfg-sink-common=0",
#if defined(__APPLE__)
    "-undefined", "dynamic_lookup",
#if defined(__aarch64__)
    "-arch", "arm64",
#else
    "-arch", "x86_64",
#endif
#elif defined(__aarch64__)
    "--target=aarch64-linux-gnu", "-mno-outline-atomics",
#else
    "--target=x86_64-linux-gnu",
#endif
#if defined(__x86_64__)
    "-march=x86-64-v3", "-Xclang", "-ffloat16-excess-precision=none",
#endif
};

static const char *const fast_flags[] = {"-O2"};

/* Every access to memory calls shim/checked.h; so do the mistakes that the compiler can see coming.
 * Atomics come there by themselves. Vectorised code would hide which element an access is. */
#define MISTAKES                                                                                   \
    "alignment,array-bounds,integer-divide-by-zero,shift-exponent,float-cast-overflow,"            \
    "signed-integer-overflow"
static const char *const checked_flags[] = {
    "-O1", "-fno-vectorize", "-fno-slp-vectorize", "-DASSAY_CHECKED=1", "-fsanitize=thread",
    "-ftrivial-auto-var-init=uninitialized", /* variables without a value are marked as such */
    "-fsanitize=" MISTAKES, "-fsanitize-recover=" MISTAKES,
    "-fsanitize=local-bounds", /* traps: pointers into arrays and tables that are seen to leave */
    "-fno-omit-frame-pointer", "-fno-unroll-loops",
    "-mllvm", "-instcombine-code-sinking=0", /* a load above its guard stays there */
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm",
    "-tsan-instrument-read-before-write=1", "-mllvm", "-tsan-instrument-atomics=0",
};
/* clang-format on */

enum {
    FLAG_COUNT = sizeof flags / sizeof *flags,
    FAST_COUNT = sizeof fast_flags / sizeof *fast_flags,
    CHECKED_COUNT = sizeof checked_flags / sizeof *checked_flags,
    MAX_SKIPS = 64,
    MAX_ARGUMENTS = FLAG_COUNT + CHECKED_COUNT + MAX_SKIPS + 16,
    COMPILE_SECONDS = 300,
};

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool hash_file(sha256 *h, const char *path, err *e) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, e);
    if (!text)
        return false;
    sha256_add(h, path, strlen(path) + 1);
    sha256_add(h, text, bytes);
    free(text);
    return true;
}

/* Every header of a folder, in a fixed order. */
static bool hash_headers(sha256 *h, const char *folder, err *e) {
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, by_name);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", folder);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        char path[PATH_MAX];
        if (ok && dot && strcmp(dot, ".h") == 0)
            ok = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) <
                     (int)sizeof path &&
                 hash_file(h, path, e);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static void hash_texts(sha256 *h, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        sha256_add(h, texts[i], strlen(texts[i]) + 1);
}

static bool hash_base(soft_compiler *c, const char *device_folder, err *e) {
    struct stat s;
    sha256 h;
    sha256_start(&h);
    hash_texts(&h, flags, FLAG_COUNT);
    hash_texts(&h, fast_flags, FAST_COUNT);
    hash_texts(&h, checked_flags, CHECKED_COUNT);
    sha256_add(&h, c->clang, strlen(c->clang) + 1);
    sha256_add(&h, c->version, strlen(c->version) + 1);
    if (stat(c->clang, &s) == 0)
        sha256_add(&h, &s.st_size, sizeof s.st_size);
    static const char *const rooms[] = {"msl", "shim", "soft"};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        char folder[PATH_MAX];
        if (snprintf(folder, sizeof folder, "%s/%s", device_folder, rooms[i]) >= (int)sizeof folder)
            return err_set(e, EXIT_CANNOT, "the path of the project is too long");
        if (!hash_headers(&h, folder, e))
            return false;
    }
    sha256_finish(&h, c->base_hash);
    return true;
}

soft_compiler *soft_compiler_new(err *e) {
    soft_compiler *c = calloc(1, sizeof *c);
    assert(c);
    char home[PATH_MAX - 64], cache[PATH_MAX - 64], folder[PATH_MAX];
    bool ok = toolchain_find_clang(c->clang, sizeof c->clang, c->version, sizeof c->version, e) &&
              os_find_home(home, sizeof home, e) && os_find_cache(cache, sizeof cache, e);
#if defined(__x86_64__)
    if (ok && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")))
        ok = err_set(e, EXIT_CANNOT, "the software device needs a CPU with AVX2 and F16C");
#endif
    if (ok) {
        snprintf(folder, sizeof folder, "%s/harness/device", home);
        snprintf(c->shim, sizeof c->shim, "%s/harness/device/shim/metal.h", home);
        snprintf(c->cache, sizeof c->cache, "%s/soft", cache);
        snprintf(c->name, sizeof c->name, "%.120s (%.120s)", c->version, c->clang);
        const char *number = strstr(c->version, "version ");
        c->major = number ? atoi(number + strlen("version ")) : 0;
        ok = os_make_folder(c->cache, e) && hash_base(c, folder, e);
    }
    if (ok)
        return c;
    free(c);
    return NULL;
}

void soft_compiler_free(soft_compiler *c) {
    free(c);
}

const char *soft_compiler_get_name(const soft_compiler *c) {
    return c->name;
}

static void hash_bytes(const void *data, size_t bytes, char hex[65]) {
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, data, bytes);
    sha256_finish(&h, hex);
}

/* Is the cached file there and whole? */
static bool is_whole(const char *object, const char *sum) {
    size_t bytes;
    char *want = os_read_file(sum, NULL, NULL);
    char *code = want ? os_read_file(object, &bytes, NULL) : NULL;
    char got[65];
    if (code)
        hash_bytes(code, bytes, got);
    bool whole = code && strcmp(want, got) == 0;
    free(want);
    free(code);
    return whole;
}

static int add_arguments(const char **argv, int n, const char *const *more, int count) {
    for (int i = 0; i < count; i++)
        argv[n++] = more[i];
    return n;
}

/* What checked mode adds and this kernel does without, as options of the compiler. */
typedef struct {
    char options[MAX_SKIPS][48];
    int count;
} omissions;

static bool run_clang(soft_compiler *c, const char *source, const char *object, const char *name,
                      soft_build how, const omissions *without, err *e) {
    const char *argv[MAX_ARGUMENTS];
    int n = 0;
    argv[n++] = c->clang;
    n = add_arguments(argv, n, flags, FLAG_COUNT);
    if (how == BUILD_FAST)
        n = add_arguments(argv, n, fast_flags, FAST_COUNT);
    else
        n = add_arguments(argv, n, checked_flags, CHECKED_COUNT);
    if (how == BUILD_TRACED)
        argv[n++] = "-O0";
    for (int i = 0; i < without->count; i++)
        argv[n++] = without->options[i];
    if (how != BUILD_FAST && c->major >= 16)
        argv[n++] = "-fstrict-flex-arrays=3"; /* the last array of a struct has bounds too */
    if (c->major >= 18) { /* before, bfloat is a class of ours that rounds by itself */
        argv[n++] = "-Xclang";
        argv[n++] = "-fbfloat16-excess-precision=none";
    }
    argv[n++] = "-include";
    argv[n++] = c->shim;
    argv[n++] = source;
    argv[n++] = "-o";
    argv[n++] = object;
    argv[n] = NULL;
    char *output = NULL;
    int status;
    if (!os_run_for(argv, COMPILE_SECONDS, &output, &status, e))
        return false;
    if (status != 0) {
        err_set(e, EXIT_WRONG, "kernel '%.100s' does not compile", name);
        err_set_detail(e, output ? output : "");
    }
    free(output);
    return status == 0;
}

static void leave_out(omissions *without, const char *option) {
    for (int i = 0; i < without->count; i++)
        if (strcmp(without->options[i], option) == 0)
            return;
    if (without->count < MAX_SKIPS)
        snprintf(without->options[without->count++], sizeof *without->options, "%s", option);
}

/* Variables on the lines that the messages name are left as they were. False if there is none that
 * was not left out before. */
static bool leave_out_lines(omissions *without, const char *messages) {
    int before = without->count;
    for (const char *p = messages; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        size_t n = strcspn(p, "\n");
        const char *shim = strstr(p, "/device/shim/");
        const char *severity = strstr(p, ": error: ");
        if (!severity || severity > p + n)
            severity = strstr(p, ": note: ");
        if (!severity || severity > p + n || (shim && shim < severity))
            continue;
        const char *column = severity;
        while (column > p && column[-1] != ':')
            column--;
        const char *line = column - 1;
        while (line > p && line[-1] != ':')
            line--;
        char option[48];
        if (line > p && atoi(line) > 0) {
            snprintf(option, sizeof option, "-DASSAY_SKIP_%d=~,1", atoi(line));
            leave_out(without, option);
        }
    }
    return without->count > before && without->count < MAX_SKIPS;
}

/* Some C++ does not allow what checked mode adds: a jump past a variable, vectors in unions. Such
 * places are compiled without, one after the other: there, the use of a variable without a value or
 * a misaligned vector is not seen. */
static bool compile_checked(soft_compiler *c, const char *source, const char *object,
                            const char *name, soft_build how, err *e) {
    omissions without = {.count = 0};
    static const char *const steps[] = {"-DASSAY_PLAIN_VECTORS=1", "-DASSAY_CHECKED_LESS=1"};
    for (size_t step = 0;; step++) {
        if (run_clang(c, source, object, name, how, &without, e))
            return true;
        for (int round = 0; round < 3 && leave_out_lines(&without, e->detail); round++)
            if (run_clang(c, source, object, name, how, &without, e))
                return true;
        if (step == sizeof steps / sizeof *steps)
            return false;
        without.count = 0;
        for (size_t i = 0; i <= step; i++)
            leave_out(&without, steps[i]);
    }
}

/* A kernel that needs more private memory than a fiber's stack has would write over its neighbours.
 * The compiler lists what each function needs; MSL has no recursion, so their sum is enough. */
static bool check_stack(const char *object, const char *name, err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", object);
    char *dot = strrchr(path, '.');
    if (!dot || dot + 4 >= path + sizeof path)
        return true;
    memcpy(dot, ".su", 4);
    char *text = os_read_file(path, NULL, NULL);
    unlink(path);
    unsigned long long need = 0;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *tab = memchr(p, '\t', strcspn(p, "\n"));
        need += tab ? strtoull(tab + 1, NULL, 10) : 0;
    }
    free(text);
    if (need <= SOFT_STACK_USABLE)
        return true;
    return err_set(e, EXIT_WRONG,
                   "kernel '%.80s' needs %llu bytes of private memory a thread; there are %d", name,
                   need, SOFT_STACK_USABLE);
}

/* Compiles into the cache. The object goes in before its checksum: readers that see the checksum
 * see the whole object. */
static bool compile_into(soft_compiler *c, const char *text, const char *object, const char *sum,
                         const char *name, soft_build how, err *e) {
    char source[PATH_MAX], beside[PATH_MAX];
    if (snprintf(source, sizeof source, "%s.%ld.cpp", object, (long)getpid()) >=
            (int)sizeof source ||
        snprintf(beside, sizeof beside, "%s.%ld.tmp", object, (long)getpid()) >= (int)sizeof beside)
        return err_set(e, EXIT_CANNOT, "the path of the cache folder is too long");
    bool ok = os_write_file(source, text, strlen(text), e) &&
              (how == BUILD_FAST ? run_clang(c, source, beside, name, how, &(omissions){0}, e)
                                 : compile_checked(c, source, beside, name, how, e)) &&
              check_stack(beside, name, e) && soft_inspect(beside, name, e);
    unlink(source);
    size_t bytes;
    char *code = ok ? os_read_file(beside, &bytes, e) : NULL;
    ok = code != NULL;
    if (ok) {
        char hex[65];
        hash_bytes(code, bytes, hex);
        ok = rename(beside, object) == 0 ? os_write_file(sum, hex, 64, e)
                                         : err_set(e, EXIT_CANNOT, "cannot write %.200s", object);
    }
    if (!ok)
        unlink(beside);
    free(code);
    return ok;
}

bool soft_compile(soft_compiler *c, const char *text, const char *name, soft_build how,
                  soft_loaded *out, err *e) {
    sha256 h;
    char hex[65], sum[PATH_MAX];
    sha256_start(&h);
    sha256_add(&h, c->base_hash, 64);
    sha256_add(&h, &how, sizeof how);
    sha256_add(&h, text, strlen(text));
    sha256_finish(&h, hex);
    if (snprintf(out->object, sizeof out->object, "%s/%s.so", c->cache, hex) >=
            (int)sizeof out->object ||
        snprintf(sum, sizeof sum, "%s/%s.sum", c->cache, hex) >= (int)sizeof sum)
        return err_set(e, EXIT_CANNOT, "the path of the cache folder is too long");
    if (!is_whole(out->object, sum) && !compile_into(c, text, out->object, sum, name, how, e))
        return false;
    out->handle = dlopen(out->object, RTLD_NOW | RTLD_LOCAL);
    out->kernel = out->handle ? dlsym(out->handle, "assay_kernel") : NULL;
    if (out->kernel && out->kernel->abi == SOFT_ABI_VERSION)
        return true;
    const char *why = dlerror();
    soft_unload(out);
    return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' cannot be loaded: %.140s", name,
                   why ? why : "it has no entry");
}

void soft_unload(soft_loaded *loaded) {
    if (loaded->handle)
        dlclose(loaded->handle);
    loaded->handle = NULL;
}

bool soft_compiler_check_syntax(const soft_compiler *c, const char *text, bool *is_right,
                                char **messages, err *e) {
    char source[PATH_MAX];
    if (snprintf(source, sizeof source, "%s/syntax.%ld.cpp", c->cache, (long)getpid()) >=
        (int)sizeof source)
        return err_set(e, EXIT_CANNOT, "the path of the cache folder is too long");
    const char *const more[] = {
        "-fsyntax-only", "-Qunused-arguments", "-ferror-limit=0", "-include", c->shim, source};
    const char *argv[MAX_ARGUMENTS] = {c->clang};
    int n = add_arguments(argv, 1, flags, FLAG_COUNT);
    n = add_arguments(argv, n, more, sizeof more / sizeof *more);
    argv[n] = NULL;
    int status = 0;
    bool ok = os_write_file(source, text, strlen(text), e) &&
              os_run_for(argv, COMPILE_SECONDS, messages, &status, e);
    unlink(source);
    *is_right = ok && status == 0;
    return ok;
}
