/* The PTX that clang makes of kernels; transcripts/cuda.txt has the CUDA device on the command line. What kernels
 * compute is tested by the suites that run with ASSAY_DEVICE=cuda. */
#include <greatest.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/cuda/ptx.h"
#include "support.h"
#include "transcript.h"

SUITE_EXTERN(cuda_suite);

static err e;

/* NULL where this machine has no libdevice: the tests below are skipped. */
static ptx_compiler *compiler;

/* The PTX stands until the next, with its signature. */
static char *ptx;
static msl_signature signature;

static bool compile(const char *file, const char *kernel) {
    msl_unit *u = msl_load_with(support_get_path(file), &(msl_extras){0}, &e);
    char *text = u ? msl_rewrite(u, kernel, NULL, 0, &e) : NULL;
    free(ptx);
    ptx = text ? ptx_compile(compiler, text, kernel, MATH_SAFE, NULL, 0, &e) : NULL;
    if (ptx) {
        signature = *msl_find_kernel(u, kernel, NULL);
        for (size_t i = 0; i < signature.count; i++)
            signature.params[i].value_bytes = 0;
        ptx_complete_signature(ptx, msl_find_kernel(u, kernel, NULL), &signature);
    }
    free(text);
    msl_free(u);
    return ptx != NULL;
}

#define NEEDS_COMPILER()                                                                           \
    do {                                                                                           \
        if (!compiler)                                                                             \
            SKIPm(e.text);                                                                         \
    } while (0)

/* The PTX of a kernel has each of the texts of `has`, and none of `lacks`; both end in NULL. */
static enum greatest_test_res ptx_says(const char *file, const char *kernel, const char *const *has,
                                       const char *const *lacks) {
    NEEDS_COMPILER();
    ASSERTm(e.text, compile(file, kernel));
    for (; *has; has++)
        ASSERTm(*has, strstr(ptx, *has));
    for (; *lacks; lacks++)
        ASSERT_FALSEm(*lacks, strstr(ptx, *lacks));
    PASS();
}

/* Is an array in memory, besides the path (shim/ptx/exchange.h)? */
static bool has_array(void) {
    static const char path[] = "__local_depot0[256]";
    const char *depot = strstr(ptx, "__local_depot");
    return depot && strncmp(depot, path, strlen(path)) != 0;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST ptx_names_the_kernel_and_the_lines_of_its_file(void) {
    return ptx_says("tests/kernels/tape.metal", "advance",
                    LIST(".entry msl_advance(", "tests/kernels/tape.metal\"", ".target sm_90"),
                    LIST(NULL));
}

TEST ptx_rounds_each_operation_once(void) { /* x * factor + step */
    return ptx_says("tests/kernels/tape.metal", "advance", LIST("mul.rn.f32", "add.rn.f32"),
                    LIST("fma.rn", ".ftz"));
}

TEST pointers_keep_the_space_they_point_to(void) {
    return ptx_says("tests/kernels/threads.metal", "two_level_sum",
                    LIST("ld.global.f32", "ld.shared.f32"), LIST("ld.f32", "st.f32"));
}

/* max_total_threads_per_threadgroup bounds registers, and two halves are one operand. */
TEST ptx_says_how_many_threads_must_find_room(void) {
    NEEDS_COMPILER();
    ASSERTm(e.text, compile("kernels/product/matvec_stream.metal", "matvec_q4_k_stream"));
    ASSERT(strstr(ptx, ".maxntid 512") && strstr(ptx, ".f16x2") && !has_array());
    PASS();
}

/* ptxas 13.0 forgets what is above the half. */
TEST two_times_a_half_is_no_product(void) {
    return ptx_says("tests/kernels/simd.metal", "turn_pairs", LIST("shfl.sync"), LIST(", 65537;"));
}

#define UPPER(sums, more, a, b)                                                                    \
    "\tmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {" sums ", " more "}, {" a ", %r9}, {" b   \
    "}, {" sums ", " more "}; " PTX_UPPER_ROWS "\n"
#define MERGED(columns, sums, a, b)                                                                \
    "\tmma.sync.aligned.m16n8k" columns ".row.col.f32.f16.f16.f32 {" sums "}, {" a "}, {" b        \
    "}, {" sums "};\n"
#define FIRST UPPER("%f1, %f2", "%f20, %f21", "%r1", "%r5")
#define SECOND UPPER("%f3, %f4", "%f22, %f23", "%r2", "%r5")
#define THIRD UPPER("%f1, %f2", "%f20, %f21", "%r3", "%r6")
#define FOURTH UPPER("%f3, %f4", "%f22, %f23", "%r4", "%r6")

static const struct {
    const char *ptx, *merged;
} merges[] = {
    {FIRST SECOND, MERGED("8", "%f1, %f2, %f3, %f4", "%r1, %r2", "%r5")},
    {FIRST SECOND THIRD FOURTH,
     MERGED("16", "%f1, %f2, %f3, %f4", "%r1, %r2, %r3, %r4", "%r5, %r6")},
    {FIRST "\tmov.b32 %r2, %r10;\n" SECOND,
     "\tmov.b32 %r2, %r10;\n" MERGED("8", "%f1, %f2, %f3, %f4", "%r1, %r2", "%r5")},
    {FIRST, FIRST},
    {FIRST THIRD, FIRST THIRD},
    {FIRST FOURTH, FIRST FOURTH},                                    /* another b */
    {FIRST "\tmov.f32 %f9, %f1;\n" SECOND, NULL},                    /* the sums are read */
    {FIRST "\tmov.f32 %f2, %f9;\n" SECOND, NULL},                    /* written */
    {FIRST "\tmov.b32 %r1, %r10;\n" SECOND, NULL},                   /* a is another one */
    {FIRST "\tld.shared.v2.u32 {%r7, %r5}, [%rd1];\n" SECOND, NULL}, /* so is b */
    {FIRST "$L__BB0_3:\n" SECOND, NULL},
    {FIRST "\t@%p1 bra $L__BB0_3;\n" SECOND, NULL},
    {FIRST SECOND "\tst.global.f32 [%rd1], %f4;\n" THIRD FOURTH,
     MERGED("8", "%f1, %f2, %f3, %f4", "%r1, %r2", "%r5") "\tst.global.f32 [%rd1], %f4;\n" MERGED(
         "8", "%f1, %f2, %f3, %f4", "%r3, %r4", "%r6")},
};

TEST products_of_the_same_matrix_are_merged_unless_something_between_them_matters(void) {
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        char *got = ptx_merge_text(merges[i].ptx);
        ASSERT_STR_EQ(merges[i].merged ? merges[i].merged : merges[i].ptx, got);
        free(got);
    }
    PASS();
}

TEST products_of_a_kernel_are_merged(void) {
    return ptx_says("tests/kernels/simd_matrix.metal", "tiles_half", LIST("m16n8k16"), LIST(NULL));
}

TEST the_host_learns_sizes_and_threadgroup_memory_from_the_ptx(void) {
    NEEDS_COMPILER();
    ASSERTm(e.text, compile("tests/kernels/tape.metal", "use_constants"));
    const uint32_t want[] = {4, 4, 24, 1, 2, 8, 0};
    ASSERT_EQ(7u, signature.count);
    for (size_t i = 0; i < signature.count; i++)
        ASSERT_EQ_FMT(want[i], signature.params[i].value_bytes, "%u");
    ASSERT_EQ(0u, ptx_count_shared(ptx));
    ASSERTm(e.text, compile("tests/kernels/tape.metal", "too_much_memory"));
    ASSERT_EQ_FMT(40000u, ptx_count_shared(ptx), "%u");
    ASSERTm(e.text,
            compile("tests/kernels/threads.metal", "two_level_sum")); /* float[32] and a float */
    ASSERT_EQ_FMT(132u, ptx_count_shared(ptx), "%u");
    PASS();
}

TEST the_host_learns_from_the_ptx_what_a_kernel_loads_early(void) {
    NEEDS_COMPILER();
    uint32_t buffers = 0, caches = 1;
    ASSERTm(e.text, compile("tests/kernels/tape.metal", "copy_early"));
    ASSERT(ptx_find_early_loads(ptx, &buffers, &caches));
    ASSERT_EQ_FMT(1u, buffers, "%u");
    ASSERT_EQ_FMT(0u, caches, "%u");
    ASSERTm(e.text, compile("kernels/decode_attention.metal", "decode_attention_spread"));
    ASSERT(ptx_find_early_loads(ptx, &buffers, &caches));
    ASSERT_EQ_FMT(0u, buffers, "%u");
    ASSERT_EQ_FMT(1u << 1 | 1u << 2, caches, "%u");
    ASSERTm(e.text, compile("tests/kernels/tape.metal", "advance"));
    ASSERT_FALSE(ptx_find_early_loads(ptx, &buffers, &caches));
    PASS();
}

/* Memory that Metal does not have, copies into it, which need another version of PTX, and no array in
 * memory. */
TEST the_host_learns_from_the_ptx_how_much_shared_memory_a_kernel_adds(void) {
    enum { STAGES = 2 * 16 * 8 * (2 * 144 + 4), DIGITS = 16 * (1024 + 8), SUMS = 4 * 3 * 256 };
    enum { SQUARES = 64, SUMS_OF_X = 16 * 32, BARRIERS = 128 };
    NEEDS_COMPILER();
    ASSERTm(e.text, compile("kernels/cuda/matvec_bulk.metal", "matvec_q4_k_bulk"));
    ASSERT_EQ_FMT(STAGES + DIGITS + SUMS + SQUARES + SUMS_OF_X + BARRIERS + 0u, ptx_count_bulk(ptx),
                  "%u");
    ASSERT(strstr(ptx, ".version 8.1") && !has_array());
    ASSERT_EQ_FMT(1u, ptx_count_cluster(ptx), "%u");
    ASSERT_FALSE(strstr(ptx, ".reqnctapercluster"));
    ASSERTm(e.text,
            compile("kernels/cuda/skinny_bulk.metal", "multi_token_matvec_q4_0_tiled_bulk"));
    ASSERT_EQ_FMT(2u, ptx_count_cluster(ptx), "%u");
    const char *entry = strstr(ptx, ".entry"),
               *cluster = strstr(ptx, ".reqnctapercluster 2, 1, 1\n{");
    ASSERT(cluster && entry && entry < cluster && !has_array());
    ASSERTm(e.text, compile("kernels/product/matvec_q4_k.metal", "matvec_q4_k_vec16"));
    ASSERT_EQ_FMT(0u, ptx_count_bulk(ptx), "%u");
    ASSERT(strstr(ptx, ".version 7.8"));
    PASS();
}

/* racecheck takes the relaxed load and store of a flag for a race. */
TEST under_racecheck_atomic_loads_and_stores_are_updates(void) {
    NEEDS_COMPILER();
    const char *file = "tests/kernels/right_threads.metal", *kernel = "released_many_times";
    ASSERTm(e.text, compile(file, kernel));
    ASSERT_FALSE(strstr(ptx, "atom.") || !strstr(ptx, "ld.volatile"));
    setenv("ASSAY_SANITIZER", "racecheck", 1);
    bool ok = compile(file, kernel);
    unsetenv("ASSAY_SANITIZER");
    ASSERTm(e.text, ok);
    ASSERT(strstr(ptx, "atom.") && strstr(ptx, ".exch"));
    ASSERT_FALSE(strstr(ptx, "ld.volatile") || strstr(ptx, "st.volatile"));
    PASS();
}

SUITE(cuda_suite) {
    compiler = ptx_compiler_new(90, &e);
    RUN_TEST(ptx_names_the_kernel_and_the_lines_of_its_file);
    RUN_TEST(ptx_rounds_each_operation_once);
    RUN_TEST(pointers_keep_the_space_they_point_to);
    RUN_TEST(ptx_says_how_many_threads_must_find_room);
    RUN_TEST(products_of_the_same_matrix_are_merged_unless_something_between_them_matters);
    RUN_TEST(two_times_a_half_is_no_product);
    RUN_TEST(products_of_a_kernel_are_merged);
    RUN_TEST(the_host_learns_sizes_and_threadgroup_memory_from_the_ptx);
    RUN_TEST(the_host_learns_from_the_ptx_what_a_kernel_loads_early);
    RUN_TEST(the_host_learns_from_the_ptx_how_much_shared_memory_a_kernel_adds);
    RUN_TEST(under_racecheck_atomic_loads_and_stores_are_updates);
    ptx_compiler_free(compiler);
    transcript_run("cuda");
}
