#include "load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/child.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/toolchain.h"
#include "harness/device/code_cache.h"

enum { COMPILE_SECONDS = 120 };

/* ASSAY_CC, or the machine's own. */
static bool find_compiler(char *path, size_t size, err *e) {
    const char *given = getenv("ASSAY_CC");
    if (given && *given)
        return os_find_program(given, path, size) ||
               err_set(e, EXIT_CANNOT, "ASSAY_CC is %.120s, which is not a program", given);
    static const char *const names[] = {"cc", "gcc", "clang"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (os_find_program(names[i], path, size))
            return true;
    return toolchain_find_clang(path, size, NULL, 0, NULL) ||
           err_set(e, EXIT_CANNOT,
                   "no C compiler found: descriptions of ops are compiled with cc; install gcc or "
                   "clang");
}

/* The first line of a compiler's output that reports an error, for the sentence. */
static void find_error(const char *output, char *line, size_t size) {
    const char *at = strstr(output, "error: ");
    if (!at)
        at = strstr(output, "undefined reference");
    while (at && at > output && at[-1] != '\n')
        at--;
    snprintf(line, size, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
}

typedef struct {
    const load_source *source;
    char compiler[PATH_MAX];
    char home[PATH_MAX - 64];
} compile_context;

static bool compile(void *context, const char *source, const char *object, err *e) {
    const compile_context *c = context;
    char root[PATH_MAX], include[PATH_MAX], beside[PATH_MAX];
    snprintf(root, sizeof root, "-I%s", c->home);
    snprintf(include, sizeof include, "-I%s/include", c->home);
    const char *path = c->source->path;
    const size_t folder = (size_t)(path_get_name(path) - path);
    snprintf(beside, sizeof beside, "-iquote%.*s.", (int)folder, path);
    const char *const argv[] = {
        c->compiler,
        "-std=gnu11",
        "-O2",
        "-g",
        "-fPIC",
        "-shared",
        "-ffp-contract=off",
        "-Wall",
        beside,
        include,
        root,
#if defined(__APPLE__)
        "-undefined",
        "dynamic_lookup",
#endif
        "-o",
        object,
        "-x",
        "c",
        c->source->is_made ? source : path,
        NULL
    };
    char *output = NULL, line[160];
    int status = -1;
    if (!child_run_for(argv, COMPILE_SECONDS, &output, &status, e))
        return false;
    bool ok = status == 0;
    if (!ok) {
        find_error(output ? output : "", line, sizeof line);
        err_set(e, EXIT_USAGE, "the description %.80s does not compile%s%s", path_get_name(path),
                line[0] ? ": " : "", line);
        err_set_detail(e, output ? output : "");
    }
    free(output);
    return ok;
}

static bool find_object(const load_source *s, char *object, size_t size, err *e) {
    static const assay_abi_facts abi = ASSAY_ABI_FACTS;
    compile_context c = {.source = s};
    code_cache cache;
    char build[64];
    if (!find_compiler(c.compiler, sizeof c.compiler, e) || !os_find_home(c.home, sizeof c.home, e))
        return false;
    host_get_build(build, sizeof build);
    const char *const texts[] = {c.compiler, c.home, s->path, s->key, build};
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, &abi, sizeof abi);
    code_cache_hash_texts(&h, texts, sizeof texts / sizeof *texts);
    return code_cache_open(&cache, "ops", &h, e) &&
           code_cache_find(&cache, s->text, 0, ".so", compile, &c, object, size, e);
}

static bool check_abi(const load_source *s, void *object, err *e) {
    static const assay_abi_facts own = ASSAY_ABI_FACTS;
    const assay_abi_facts *abi = dlsym(object, "assay_abi");
    const char *name = path_get_name(s->path);
    if (!abi)
        return err_set(e, EXIT_USAGE,
                       "the description %.80s does not include assay.h: begin it with #include "
                       "<assay.h>",
                       name);
    if (abi->version != own.version)
        return err_set(e, EXIT_CANNOT,
                       "the description %.80s was compiled against headers of ABI %u, and this "
                       "program has ABI %u: use the headers installed with it (ASSAY_HOME)",
                       name, abi->version, own.version);
    return memcmp(abi, &own, sizeof own) == 0 ||
           err_set(e, EXIT_CANNOT,
                   "the description %.80s was compiled against headers of another build of assay: "
                   "use those installed with this program (ASSAY_HOME)",
                   name);
}

/* ASSAY_OPS, or else NAME_op of NAME.c. */
static bool find_ops(const load_source *s, void *object, const op *const **ops, err *e) {
    char symbol[128];
    const char *name = path_get_name(s->path), *dot = strrchr(name, '.');
    if ((*ops = dlsym(object, "assay_ops")))
        return true;
    snprintf(symbol, sizeof symbol, "%.*s_op", dot ? (int)(dot - name) : (int)strlen(name), name);
    const op *only = dlsym(object, symbol);
    const op **list = calloc(2, sizeof *list);
    if (!only || !list) {
        free(list);
        return err_set(e, EXIT_USAGE,
                       "the description %.80s has no op: define `const op %.80s = {...};` or list "
                       "its ops with ASSAY_OPS",
                       name, symbol);
    }
    list[0] = only;
    *ops = list;
    return true;
}

static void *open_object(const load_source *s, err *e) {
    char path[PATH_MAX];
    if (!find_object(s, path, sizeof path, e))
        return NULL;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        err_set(e, EXIT_USAGE,
                "the description %.80s cannot be loaded: it uses a function that "
                "neither it nor assay has",
                path_get_name(s->path));
        err_set_detail(e, why ? why : "");
        return NULL;
    }
    return check_abi(s, object, e) ? object : NULL;
}

bool load_ops(const load_source *s, const op *const **ops, err *e) {
    void *object = open_object(s, e);
    return object && find_ops(s, object, ops, e);
}

bool load_oracle(const load_source *s, oracle_fn *out, err *e) {
    void *object = open_object(s, e);
    const oracle_fn *found = object ? dlsym(object, "assay_oracle") : NULL;
    if (found)
        *out = *found;
    return found || (object && err_set(e, EXIT_USAGE, "the description %.80s has no oracle",
                                       path_get_name(s->path)));
}
