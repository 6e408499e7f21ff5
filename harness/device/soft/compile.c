/* compile: runs clang on rewritten MSL and loads the result. Compiled once and kept (code_cache.h). */
#include "compile.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "counted.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/toolchain.h"
#include "harness/device/code_cache.h"
#include "harness/device/ir.h"
#include "harness/device/msl/msl.h"
#include "object.h"

/* The options of clang and the linker for every kernel ------------------------------------------ */

#if defined(__APPLE__) && defined(__aarch64__)
#define SOFT_TARGET "-arch", "arm64"
#elif defined(__APPLE__)
#define SOFT_TARGET "-arch", "x86_64"
#elif defined(__aarch64__)
#define SOFT_TARGET "--target=aarch64-linux-gnu"
#else
#define SOFT_TARGET "--target=x86_64-linux-gnu"
#endif

/* Pattern-initialised variables: a kernel that uses one it never set gives the same wrong answer
 * every time, and floats start as NaN. */
/* clang-format off */
static const char *const common_flags[] = {
    "-x", "c++", "-std=c++17", "-fdeclspec", "-gdwarf-4", "-gline-tables-only", "-fPIC",
    "-fdebug-compilation-dir=/", /* or files are named from what their folder and the current one share */
    "-fvisibility=hidden", "-fclang-abi-compat=14", /* packed structs of vectors are packed */
    "-fsigned-char", "-fno-strict-aliasing", "-fno-operator-names",
    "-fno-exceptions", "-fno-rtti", "-fno-finite-loops",
    "-fno-math-errno", "-fno-stack-protector", "-fno-threadsafe-statics",
    "-ftrivial-auto-var-init=pattern", "-fno-delete-null-pointer-checks", "-fno-caret-diagnostics",
    "-fstack-usage", "-w", "-Xclang", "-cl-single-precision-constant",
    SOFT_TARGET,
#if defined(__linux__) && defined(__aarch64__)
    "-mno-outline-atomics",
#endif
#if defined(__x86_64__)
    "-march=x86-64-v3", "-Xclang", "-ffloat16-excess-precision=none",
    "-mrecip=none", /* an estimate of 1 / infinity, improved, is NaN; no GPU divides so */
#endif
    NULL,
};

/* A descriptor of Metal 4's tensor operations is a template argument, and their elements have several
 * indices: newer C++ than the rest of the language is. */
static const char *const tensor_flags[] = {"-std=c++2b", "-DASSAY_TENSORS=1", NULL};

/* A function that ends without its value is stopped, or it would run on into the next one. */
static const char *const fast_flags[] = {"-O2", "-fsanitize=return", "-fsanitize-trap=return", NULL};

/* Nothing hoisted, sunk or merged: each line of the text keeps its own instructions. */
#define LINES_APART                                                                                \
    "-Xclang", "-fconvergent-functions", "-mllvm", "-enable-tail-merge=0", "-mllvm",               \
        "-simplifycfg-hoist-common=0", "-mllvm", "-simplifycfg-sink-common=0"

/* Every access to memory calls shim/cpu/checked.h; so do the mistakes that the compiler can see coming.
 * Atomics come there by themselves. Vectorised code would hide which element an access is. */
#define MISTAKES                                                                                   \
    "alignment,array-bounds,integer-divide-by-zero,shift-exponent,float-cast-overflow,"            \
    "signed-integer-overflow"
static const char *const checked_flags[] = {
    "-O1", LINES_APART, "-fno-vectorize", "-fno-slp-vectorize", "-DASSAY_CHECKED=1", "-fsanitize=thread",
    "-fno-elide-constructors", /* each variable has its own place */
    "-fsanitize=return," MISTAKES, "-fsanitize-recover=" MISTAKES,
    "-fsanitize=local-bounds", /* traps: pointers into arrays and tables that are seen to leave */
    "-fno-omit-frame-pointer", "-fno-unroll-loops",
    "-mllvm", "-instcombine-code-sinking=0", /* a load above its guard stays there */
    "-mllvm", "-disable-lsr", /* a seventh of the time to compile, for addresses that only hooks use */
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm",
    "-tsan-instrument-read-before-write=1", "-mllvm", "-tsan-instrument-atomics=0",
    NULL,
};

/* Halves are converted by functions of shim/cpu/checked.h, one at a time. */
static const char *const traced_flags[] = {
    "-O0",
#if defined(__x86_64__)
    "-mno-f16c",
#endif
    NULL,
};

/* As cuda/ptx.c does it, so that what is counted is near what a GPU would do. Loops that copy or fill
 * stay loops: GPUs have no memcpy to call, and how much it would move is not known before it runs.
 * Where a GPU waits for the launch before (kernels/prefetch.h), no load moves past it. Vectors are not combined as
 * this CPU would like it: GPUs have none, and counts are to be the same on every CPU. */
#define NOTHING_MOVES "__asm__ volatile(\"\" ::: \"memory\")"
static const char *const counted_flags[] = {
    "-O3", LINES_APART, "-fno-vectorize", "-fno-slp-vectorize", "-DASSAY_COUNTED=1", "-mllvm", "-unroll-threshold=4000",
    "-ftrivial-auto-var-init=uninitialized", "-mllvm", "-disable-loop-idiom-all", "-mllvm", "-disable-vector-combine",
    "-DASSAY_EARLY_LOADS(buffers)=" NOTHING_MOVES, "-DASSAY_EARLY_ROWS(buffers)=" NOTHING_MOVES,
    NULL,
};

/* The sanitizers' hooks are the shim's: linking knows nothing of them, so that no runtime comes in.
 * Apple's linker wants every dynamic library to have libSystem; and two functions that happen to be
 * equal must stay two, because lines are found by the name of the function. */
static const char *const link_flags[] = {
#if defined(__APPLE__)
    SOFT_TARGET, "-shared", "-nostdlib", "-w",
    "-lSystem", "-undefined", "dynamic_lookup", "-Wl,-no_deduplicate",
#else
    "-shared", "-z", "separate-code", "-z", "noexecstack", /* data cannot be run */
#endif
    NULL,
};
/* clang-format on */

static const char *const *const lists[] = {common_flags, tensor_flags,  fast_flags, checked_flags,
                                           traced_flags, counted_flags, link_flags};

/* What not every CPU of its kind has and kernels ask for (shim/cpu/eight.h); NULL: nothing. */
static const char *find_cpu_flag(void) {
#if defined(HWCAP2_I8MM)
    return getauxval(AT_HWCAP2) & HWCAP2_I8MM ? "-march=armv8-a+i8mm" : NULL;
#else
    return NULL;
#endif
}

/* Does the CPU run what these flags make? */
static bool check_cpu(err *e) {
#if defined(__x86_64__)
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")))
        return err_set(e, EXIT_CANNOT, "the software device needs a CPU with AVX2 and F16C");
#endif
    (void)e;
    return true;
}

/* The compiler ---------------------------------------------------------------------------------- */

struct soft_compiler {
    char clang[PATH_MAX];
    char version[128];
    int major;              /* Apple's numbers are others */
    bool has_native_bfloat; /* as shim/types.h says */
    const char *cpu_flag;   /* of this CPU, or NULL */
    char name[256];
    char linker[PATH_MAX];     /* that clang would call: calling it saves clang's own start */
    char shim[PATH_MAX];       /* the header that every kernel is compiled with */
    char folders[2][PATH_MAX]; /* where its headers are, as options */
    code_cache cache;
    precompiled headers[2][BUILD_COUNT][MATH_COUNT], syntax_headers[3]; /* with tensors, the last */
};

/* Does the line table stay in the object file? Then that is kept beside the linked kernel. */
#if defined(__APPLE__)
static const bool keeps_object = true;
#else
static const bool keeps_object = false;
#endif

enum { COMPILE_SECONDS = 300 };
static_assert(CHILD_FILE_MB == 64, "as judge says");

/* What every compiled kernel depends on. */
static bool open_cache(soft_compiler *c, err *e) {
    static const char *const rooms[] = {"msl/limits.h", "shim", "shim/cpu", "soft/abi.h"};
    sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const char *const *flag = lists[i]; *flag; flag++)
            code_cache_hash_texts(&h, flag, 1);
    code_cache_hash_texts(&h, &c->cpu_flag, c->cpu_flag ? 1 : 0);
    return code_cache_hash_compiler(&h, c->clang, c->version, rooms, sizeof rooms / sizeof *rooms,
                                    e) &&
           code_cache_open(&c->cache, "soft", &h, e);
}

soft_compiler *soft_compiler_new(err *e) {
    soft_compiler *c = array_new(1, sizeof *c);
    char home[PATH_MAX - 64];
    bool ok = toolchain_find_clang(c->clang, sizeof c->clang, c->version, sizeof c->version, e) &&
              os_find_home(home, sizeof home, e) && check_cpu(e);
    if (ok) {
        snprintf(c->shim, sizeof c->shim, "%s/harness/device/shim/metal.h", home);
        snprintf(c->folders[0], sizeof c->folders[0], "-iquote%s/harness/device/shim/cpu", home);
        snprintf(c->folders[1], sizeof c->folders[1], "-iquote%s/harness/device/shim", home);
        snprintf(c->name, sizeof c->name, "%.120s (%.120s)", c->version, c->clang);
        const char *number = strstr(c->version, "version ");
        c->major = number ? atoi(number + strlen("version ")) : 0;
        c->has_native_bfloat = c->major >= (strncmp(c->version, "Apple ", 6) == 0 ? 17 : 18);
        c->cpu_flag = find_cpu_flag();
        ok = open_cache(c, e);
    }
    if (ok)
        return c;
    free(c);
    return NULL;
}

void soft_compiler_free(soft_compiler *c) {
    free(c);
}

const char *soft_compiler_get_folder(const soft_compiler *c) {
    return c->cache.folder;
}

const char *soft_compiler_get_name(const soft_compiler *c) {
    return c->name;
}

/* Says what is wrong, if anything is. what: "compile", "link"; output: what clang said, which is freed. */
static bool judge(int status, char *output, const char *name, const char *what, err *e) {
    if (status != 0) {
        bool is_large = status == 128 + SIGXFSZ;
        const bool has_end = output && strstr(output, "__dso_handle");
        bool is_crash = is_large || !output || strstr(output, "PLEASE submit a bug report") ||
                        (!strstr(output, "error:") && strcmp(what, "compile") == 0);
        err_set(e, EXIT_WRONG, "kernel '%.100s' does not %s%s", name, what,
                is_large   ? ": its tables and code are larger than 64 MB"
                : has_end  ? ": a static variable has a destructor, which MSL does not have"
                : is_crash ? ": clang crashed, an expression in it may be too large"
                           : "");
        err_set_detail(e, output && !is_crash && !has_end ? output : "");
    }
    free(output);
    return status == 0;
}

static bool run(const soft_compiler *c, const command *line, const char *made, const char *name,
                const char *what, err *e) {
    char *output = NULL;
    int status;
    return compiler_run(c->clang, line->argv, made, COMPILE_SECONDS, &output, &status, e) &&
           judge(status, output, name, what, e);
}

/* One compile, as code_cache_find asks for it. */
typedef struct {
    soft_compiler *compiler;
    const char *name;
    soft_build how;
    math_mode math;
    bool packs; /* the text packs structs, and the build is checked */
    bool has_tensors;
    bool has_lanes;     /* that can meet */
    bool has_shifts;    /* by counts that need a mask */
    bool uses_elements; /* of simdgroup matrices, in a counted build: their places are Apple's */
} order;

/* Everything but the headers, the source and what to make of it. */
static command get_options(const order *o, const char *less) {
    const soft_compiler *c = o->compiler;
    const bool is_counted = o->how == BUILD_COUNTED, is_fast = o->how == BUILD_FAST;
    const bool is_checked = !is_counted && !is_fast;
    command line = {.argv = {c->clang}, .count = 1};
    const struct {
        bool is_wanted;
        const char *const *flags;
    } rows[] = {
        {true, common_flags},
        /* counts are those of a GPU, which takes other ways */
        {!is_counted, (const char *const[]){c->cpu_flag, NULL}},
        {o->has_tensors, tensor_flags},
        {is_checked, checked_flags},
        {is_fast, fast_flags},
        {is_counted, counted_flags},
        {o->how == BUILD_TRACED, traced_flags},
        {true, math_mode_get_flags(o->math)},
        /* else an infinity becomes an integer unseen */
        {is_checked, (const char *const[]){"-fhonor-infinities", NULL}},
        {o->packs, (const char *const[]){"-DASSAY_PACKS=1", NULL}},
        {o->uses_elements, (const char *const[]){"-DASSAY_THREAD_ELEMENTS=1", NULL}},
        {true, (const char *const[]){less, NULL}},
        /* the last array of a struct has bounds too */
        {is_checked && c->major >= 16, (const char *const[]){"-fstrict-flex-arrays=3", NULL}},
        /* else it is a class of ours that rounds by itself */
        {c->has_native_bfloat,
         (const char *const[]){"-Xclang", "-fbfloat16-excess-precision=none", NULL}},
        {true, (const char *const[]){c->folders[0], c->folders[1], NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_wanted)
            command_add(&line, rows[i].flags);
    return line;
}

/* The code depends on how it is built and on math; so do the precompiled headers. */
static uint32_t get_key(soft_build how, math_mode math, bool has_tensors) {
    return (uint32_t)how | (uint32_t)math << 8 | (uint32_t)has_tensors << 16;
}

/* With the precompiled header where there is one. what: to make of the source, as options. */
static bool compile_source(const order *o, const char *source, const char *less,
                           const char *const *what, const char *made, err *e) {
    soft_compiler *c = o->compiler;
    const command options = get_options(o, less);
    command rest = {.count = 0};
    const bool is_plain = !less && !o->packs && !o->uses_elements;
    char *output = NULL;
    int status;
    command_add(&rest, what);
    COMMAND_ADD(&rest, "-o", made, source);
    return precompiled_run(is_plain ? &c->headers[o->has_tensors][o->how][o->math] : NULL,
                           &c->cache, get_key(o->how, o->math, o->has_tensors), &options,
                           (const char *const[]){"-include", c->shim, NULL}, rest.argv, made,
                           COMPILE_SECONDS, &output, &status, e) &&
           judge(status, output, o->name, "compile", e);
}

/* From a module's text to that of an optimised one, or to an object. */
static bool compile_module(const order *o, const char *module, const char *less,
                           const char *const *what, const char *made, err *e) {
    command c = get_options(o, less);
    command_add(&c, what);
    COMMAND_ADD(&c, "-o", made, "-x", "ir", module);
    return run(o->compiler, &c, made, o->name, "compile", e);
}

/* less: what checked mode adds and this kernel does without, as an option; NULL: nothing. Lanes that can
 * meet keep their paths, in every build; checked mode watches variables; counting sees what the
 * optimiser has left. */
static bool compile(const order *o, const char *source, const char *object, const char *less,
                    err *e) {
    const bool is_counted = o->how == BUILD_COUNTED, is_fast = o->how == BUILD_FAST;
    const bool is_changed = o->has_lanes || o->has_shifts;
    if (is_fast && !is_changed)
        return compile_source(o, source, less, (const char *const[]){"-c", NULL}, object, e);
    char module[PATH_MAX];
    if (!path_print(module, sizeof module, e, "%s.ll", object))
        return false;
    static const char *const text[] = {"-S", "-emit-llvm", NULL};
    static const char *const plain[] = {
        "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-fno-discard-value-names", NULL};
    const char *const code[] = {"-c", is_counted ? "-Xclang" : NULL, "-disable-llvm-passes", NULL};
    const bool is_plain = !is_counted || is_changed;
    bool ok = compile_source(o, source, less, is_plain ? plain : text, module, e) &&
              (is_counted || is_fast || ir_change_file(instrument_module, module, "", e)) &&
              (!o->has_shifts || ir_change_file(shift_mask_module, module, "", e)) &&
              (!o->has_lanes ||
               ir_change_file(keep_paths_in_state, module, "its loops are nested too deeply", e)) &&
              (!is_counted || !is_changed || compile_module(o, module, less, text, module, e)) &&
              (!is_counted || ir_change_file(count_module, module, "", e)) &&
              compile_module(o, module, less, code, object, e);
    unlink(module);
    return ok;
}

static bool find_linker(soft_compiler *c, err *e) {
#if defined(__APPLE__)
    (void)e;
    snprintf(c->linker, sizeof c->linker, "%s", c->clang);
    return true;
#else
    const char *const argv[] = {c->clang, SOFT_TARGET, "-print-prog-name=ld", NULL};
    char *output = NULL;
    int status = 1;
    bool ok = compiler_run(c->clang, argv, NULL, COMPILE_SECONDS, &output, &status, e);
    if (ok && status == 0)
        snprintf(c->linker, sizeof c->linker, "%.*s", (int)strcspn(output, "\n"), output);
    free(output);
    return ok && (c->linker[0] || err_set(e, EXIT_CANNOT, "%.160s knows no linker", c->clang));
#endif
}

/* Apart from compiling: clang in one step would on macOS bring the sanitizers' runtime and leave a
 * folder of debug information. */
static bool link_image(soft_compiler *c, const char *object, const char *hooks, const char *image,
                       const char *name, err *e) {
    if (!c->linker[0] && !find_linker(c, e))
        return false;
    command line = {.argv = {c->linker}, .count = 1};
    command_add(&line, link_flags);
    COMMAND_ADD(&line, object, "-o", image, *hooks ? hooks : NULL);
    return run(c, &line, image, name, "link", e);
}

/* Does the text pack structs? The compiler takes vectors in them for misaligned, which they may be. */
static bool has_packed_structs(const char *source) {
    char *text = os_read_file(source, NULL, NULL);
    bool found = text && (strstr(text, "(packed") || strstr(text, "__packed__") ||
                          strstr(text, "::packed") || strstr(text, "#pragma pack"));
    free(text);
    return found;
}

/* Some C++ does not allow what checked mode adds: vectors in unions. Such kernels are compiled
 * without; there a misaligned vector is not seen. */
static bool compile_checked(const order *o, const char *source, const char *object, err *e) {
    static const char *const steps[] = {NULL, "-DASSAY_PLAIN_VECTORS=1", "-DASSAY_CHECKED_LESS=1"};
    order checked = *o;
    checked.packs = has_packed_structs(source);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (compile(&checked, source, object, steps[i], e))
            return true;
    return false;
}

/* The object goes where object.c looks for it: HASH.o beside HASH.so. The image is still under the
 * name it is made as, HASH.so and more. */
static bool keep_object(const char *object, const char *image, err *e) {
    char path[PATH_MAX];
    const char *ending = strstr(strrchr(image, '/'), ".so");
    assert(ending);
    snprintf(path, sizeof path, "%.*s.o", (int)(ending - image), image);
    return rename(object, path) == 0 || os_refuse_write(path, errno, e) || err_blame_machine(e);
}

/* What the instrumentation of checked mode calls. */
static bool make_hooks(void *context, const char *source, const char *object, err *e) {
    const order *o = context;
    command c = get_options(o, NULL);
    COMMAND_ADD(&c, "-DASSAY_HOOKS=1", "-g0", "-fno-sanitize=all", "-c", "-o", object, "-include",
                o->compiler->shim, source);
    return run(o->compiler, &c, object, "hooks", "compile", e) &&
           soft_inspect_stack(object, "hooks", e);
}

static bool find_hooks(const order *o, char *path, size_t size, err *e) {
    order own = *o;
    own.has_tensors = false;
    path[0] = 0;
    return o->how == BUILD_FAST ||
           code_cache_find(&o->compiler->cache, "// hooks\n", get_key(o->how, o->math, false), ".o",
                           make_hooks, &own, path, size, e);
}

static bool make_image(void *context, const char *source, const char *image, err *e) {
    const order *o = context;
    char object[PATH_MAX], hooks[PATH_MAX];
    if (!path_print(object, sizeof object, e, "%s.o", image) ||
        !find_hooks(o, hooks, sizeof hooks, e))
        return false;
    bool is_plain = o->how == BUILD_FAST || o->how == BUILD_COUNTED;
    bool ok =
        (is_plain ? compile(o, source, object, NULL, e) : compile_checked(o, source, object, e)) &&
        soft_inspect_stack(object, o->name, e) &&
        link_image(o->compiler, object, hooks, image, o->name, e) &&
        soft_inspect(keeps_object ? object : image, o->name, e) &&
        (!keeps_object || keep_object(object, image, e));
    unlink(object);
    return ok;
}

bool soft_compile(soft_compiler *c, const char *text, const char *name, soft_build how,
                  math_mode math, char object[PATH_MAX], err *e) {
    order o = {.compiler = c,
               .name = name,
               .how = how,
               .math = math,
               .has_tensors = msl_text_has_tensors(text),
               .has_lanes =
                   strstr(text, "simd") || strstr(text, "quad") || msl_text_has_tensors(text),
               .has_shifts = shift_mask_is_needed(text),
               .uses_elements = how == BUILD_COUNTED && msl_text_uses_elements(text)};
    return code_cache_find(&c->cache, text, get_key(how, math, o.has_tensors), ".so", make_image,
                           &o, object, PATH_MAX, e);
}

bool soft_compiler_check_syntax(soft_compiler *c, const char *text, int language, bool *is_right,
                                char **messages, err *e) {
    char source[PATH_MAX];
    const int kind = msl_text_has_tensors(text) ? 2 : language >= 400;
    if (!path_print(source, sizeof source, e, "%s/syntax.%ld.cpp", c->cache.folder, (long)getpid()))
        return false;
    static const char *const versions[] = {"-std=c++14", "-std=c++17", "-DASSAY_TENSORS=1"};
    command line = {.argv = {c->clang}, .count = 1};
    int status = 1;
    command_add(&line, common_flags);
    /* With -w functions are not looked at for their return statements. */
    for (size_t i = 1; i < line.count; i++)
        line.argv[i] = strcmp(line.argv[i], "-w") == 0 ? "-Wno-everything" : line.argv[i];
    COMMAND_ADD(&line, "-Qunused-arguments", versions[kind], "-Werror=return-type", c->folders[0],
                c->folders[1], kind == 2 ? "-std=c++2b" : NULL);
    *messages = NULL;
    const double spare = child_begin_compile();
    bool ok = os_write_own(source, text, strlen(text), e) &&
              precompiled_run(
                  &c->syntax_headers[kind], &c->cache, get_key(BUILD_COUNT, (math_mode)kind, false),
                  &line, (const char *const[]){"-include", c->shim, NULL},
                  (const char *const[]){"-fsyntax-only", "-ferror-limit=0", source, NULL}, NULL,
                  COMPILE_SECONDS, messages, &status, e);
    child_end_compile(spare);
    unlink(source);
    *is_right = ok && status == 0;
    return ok;
}
