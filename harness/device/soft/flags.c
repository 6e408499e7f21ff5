#include "flags.h"

#include <assert.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "harness/device/code_cache.h"

/* Pattern-initialised variables: a kernel that uses one it never set gives the same wrong answer
 * every time, and floats start as NaN. */
/* clang-format off */
static const char *const flags[] = {
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
};

/* A descriptor of Metal 4's tensor operations is a template argument, and their elements have several
 * indices: newer C++ than the rest of the language is. */
static const char *const tensor_flags[] = {"-std=c++2b", "-DASSAY_TENSORS=1"};

/* A function that ends without its value is stopped, or it would run on into the next one. */
static const char *const fast_flags[] = {"-O2", "-fsanitize=return", "-fsanitize-trap=return"};

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
};
/* clang-format on */

#define ROW(name)                                                                                  \
    { name, (int)(sizeof name / sizeof *name) }
static const struct {
    const char *const *items;
    int count;
} lists[FLAGS_KINDS] = {
    [FLAGS_COMMON] = ROW(flags),          [FLAGS_TENSORS] = ROW(tensor_flags),
    [FLAGS_FAST] = ROW(fast_flags),       [FLAGS_CHECKED] = ROW(checked_flags),
    [FLAGS_COUNTED] = ROW(counted_flags), [FLAGS_LINK] = ROW(link_flags),
};
static_assert(sizeof flags + sizeof tensor_flags + sizeof checked_flags <=
                  MOST_FLAGS * sizeof *flags,
              "the longest command");

int soft_flags_add(soft_flags kind, const char **argv, int n) {
    for (int i = 0; i < lists[kind].count; i++)
        argv[n++] = lists[kind].items[i];
    return n;
}

void soft_flags_hash(sha256 *h) {
    for (int kind = 0; kind < FLAGS_KINDS; kind++)
        code_cache_hash_texts(h, lists[kind].items, lists[kind].count);
}

const char *soft_flags_find_cpu(void) {
#if defined(HWCAP2_I8MM)
    return getauxval(AT_HWCAP2) & HWCAP2_I8MM ? "-march=armv8-a+i8mm" : NULL;
#else
    return NULL;
#endif
}

bool soft_flags_check_cpu(err *e) {
#if defined(__x86_64__)
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")))
        return err_set(e, EXIT_CANNOT, "the software device needs a CPU with AVX2 and F16C");
#endif
    (void)e;
    return true;
}
