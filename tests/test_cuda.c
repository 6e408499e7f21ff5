/* The CUDA device where there is no GPU: what is said about what is missing, and the PTX that clang
 * makes of kernels. What kernels compute is tested by the suites that run with ASSAY_DEVICE=cuda. */
#include <greatest.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/cuda/ptx.h"
#include "support.h"

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

TEST a_machine_without_the_driver_says_so(void) {
    ASSERT_RUN("ASSAY_DEVICE=soft ASSAY_LIBCUDA=/nowhere/libcuda.so \"$A\" info", 0);
    ASSERT_SAYS("the device 'cuda' cannot be used");
    ASSERT_SAYS("/nowhere/libcuda.so");
    ASSERT_RUN("ASSAY_LIBCUDA=/nowhere/libcuda.so \"$A\" check rmsnorm --device cuda", 3);
    ASSERT_SAYS("/nowhere/libcuda.so");
    ASSERT_RUN("ASSAY_LIBCUDA=libm.so.6 \"$A\" check rmsnorm --device cuda", 3);
    ASSERT_SAYS("cuInit");
    PASS();
}

TEST what_the_compiler_lacks_is_named(void) {
    ASSERT_RUN("ASSAY_LIBDEVICE=/nowhere/x.bc \"$A\" lint --ptx \"$H/tests/kernels/tape.metal\"",
               3);
    ASSERT_SAYS("ASSAY_LIBDEVICE");
    ASSERT_RUN("ASSAY_CLANG=/nowhere/clang \"$A\" lint --ptx \"$H/tests/kernels/tape.metal\"", 3);
    ASSERT_SAYS("ASSAY_CLANG");
    /* A clang without the target, and one that is too old: what --print-targets and --version say. */
    ASSERT_RUN(
        "printf '#!/bin/sh\\n[ $1 = --version ] && echo clang version 19.1.0 || echo x86\\n' "
        "> \"$T.clang\" && chmod 755 \"$T.clang\" && "
        "ASSAY_CLANG=\"$T.clang\" \"$A\" lint --ptx \"$H/tests/kernels/tape.metal\"",
        3);
    ASSERT_SAYS("NVPTX");
    ASSERT_RUN("printf '#!/bin/sh\\necho clang version 15.0.7\\n' > \"$T.clang\" && chmod 755 "
               "\"$T.clang\" && "
               "ASSAY_CLANG=\"$T.clang\" \"$A\" lint --ptx \"$H/tests/kernels/tape.metal\"; s=$?; "
               "rm \"$T.clang\"; exit $s",
               3);
    ASSERT_SAYS("16");
    PASS();
}

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
    return ptx_says("kernels/product/matvec_stream.metal", "matvec_q4_k_stream",
                    LIST(".maxntid 512", ".f16x2"), LIST("_depot"));
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
    ASSERT(strstr(ptx, ".version 8.1") && !strstr(ptx, "_depot"));
    ASSERT_EQ_FMT(1u, ptx_count_cluster(ptx), "%u");
    ASSERT_FALSE(strstr(ptx, ".reqnctapercluster"));
    ASSERTm(e.text,
            compile("kernels/cuda/skinny_bulk.metal", "multi_token_matvec_q4_0_tiled_bulk"));
    ASSERT_EQ_FMT(2u, ptx_count_cluster(ptx), "%u");
    const char *entry = strstr(ptx, ".entry"),
               *cluster = strstr(ptx, ".reqnctapercluster 2, 1, 1\n{");
    ASSERT(cluster && entry && entry < cluster && !strstr(ptx, "_depot"));
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

#define NEEDS_DEVICE()                                                                             \
    do {                                                                                           \
        if (strncmp(support_get_device_name(), "cuda", 4) != 0)                                    \
            SKIPm("only with ASSAY_DEVICE=cuda");                                                  \
    } while (0)

/* kernels/cuda: other devices do not offer them, so `make test` does not run them elsewhere. */
TEST kernels_for_nvidia_gpus_agree_with_their_oracles(void) {
    NEEDS_DEVICE();
    ASSERT_RUN("\"$A\" check --device $D 'matvec_*_bulk/1x*/normal' 'matvec_*_bulk/7x*/large' "
               "'matvec_*_bulk/33x*/normal' 'multi_token*_bulk/7x*/large' "
               "'multi_token*_bulk/33x1024x9/normal' 'multi_token*_bulk/32x4096x7/normal' "
               "'matvec_*_bulk_chunks/33x*/normal' 'multi_token*_bulk_cluster/31x*/normal' "
               "'matvec_*_bulk_cluster/17x*/normal'",
               0);
    ASSERT_SAYS("117 passed, 0 failed");
    ASSERT_RUN("\"$A\" check --device $D 'rmsnorm_*_bulk/7x*/large' 'gate_up*_bulk/7x*/large' "
               "'qkv*_bulk/3x*/large' 'rmsnorm_*_q4_0_bulk/97x*/normal' "
               "'gate_up*_q4_0_bulk/49x*/normal' 'qkv*_q4_0_bulk/[02]x*/normal' "
               "'gate_up*_tiled_bulk/49x*/normal' 'qkv*_q4_0_tiled_bulk/2x*/normal'",
               0);
    ASSERT_SAYS("51 passed, 0 failed");
    PASS();
}

TEST kernels_for_nvidia_gpus_are_offered_to_no_other_device(void) {
    ASSERT_RUN("\"$A\" check --device soft matvec_q4_0_bulk", 3);
    ASSERT_SAYS(
        "matvec_q4_0_bulk needs bulk copies (TMA), mbarriers and clusters, which this device");
    ASSERT_RUN("\"$A\" bench --device soft matvec_q4_0_bulk", 3);
    ASSERT_SAYS(
        "matvec_q4_0_bulk needs bulk copies (TMA), mbarriers and clusters, which this device");
    ASSERT_RUN("\"$A\" list matvec_q4_0_bulk", 0);
    ASSERT_RUN("rm -rf $T; mkdir -p $T/k; cp -R $H/kernels/cuda $H/kernels/buffer_copy.metal $T/k; "
               "\"$A\" lint $T/k",
               0);
    ASSERT(!strstr(command_get_output(), "bulk"));
    PASS();
}

/* Where x goes in digits, a NaN has none. Of 256 values one is not 1. */
TEST what_is_not_finite_in_x_is_not_lost_in_a_product_of_bytes(const char *last, const char *says) {
    char command[600];
    NEEDS_DEVICE();
    snprintf(command, sizeof command,
             "mkdir -p $T; for i in $(seq 255); do printf '\\000\\000\\200\\077'; done > $T/x; "
             "printf '%s' >> $T/x; "
             "\"$A\" launch \"$H/kernels/cuda/matvec_bulk.metal\" matvec_q4_0_bulk --arg "
             "0=u8[432]:value:60 --arg 1=f32[256]:file:$T/x --arg 2=f32[3] --arg 3=u32:3 --arg "
             "4=u32:256 --grid 1 --group 512",
             last);
    ASSERT_RUN(command, 0);
    ASSERT_SAYS(says);
    PASS();
}

TEST a_mistake_is_reported_at_its_line(void) {
    NEEDS_COMPILER();
    ASSERT_RUN("\"$A\" lint --ptx \"$H/tests/kernels/uncompilable.metal\"", 1);
    ASSERT_SAYS("uncompilable.metal:5:");
    ASSERT_SAYS("[ptx]");
    PASS();
}

/* Every kernel of the registry is compiled by `make ptx`; these are the ones that lean most on what
 * differs between the targets. */
TEST kernels_compile_for_nvidia_gpus(void) {
    NEEDS_COMPILER();
    ASSERT_RUN("\"$A\" lint --ptx \"$H/tests/kernels/simd.metal\" \"$H/kernels/argmax.metal\" "
               "\"$H/kernels/product/matvec_mixed.metal\" \"$H/kernels/prefill_attention.metal\"",
               0);
    PASS();
}

/* Sticky errors end the context: the case fails and the next worker goes on. */
TEST a_kernel_that_crashes_the_gpu_is_one_failed_launch(void) {
    NEEDS_DEVICE();
    ASSERT_RUN("\"$A\" launch \"$H/tests/kernels/tape.metal\" write_outside --device cuda "
               "--arg 0=f32[4] --arg 1=i32:1000000000 --arg 2=u32:4 --grid 1 --group 1",
               1);
    ASSERT_SAYS("write_outside accessed memory that is not mapped");
    PASS();
}

SUITE(cuda_suite) {
    compiler = ptx_compiler_new(90, &e);
    RUN_TEST(a_machine_without_the_driver_says_so);
    RUN_TEST(what_the_compiler_lacks_is_named);
    RUN_TEST(ptx_names_the_kernel_and_the_lines_of_its_file);
    RUN_TEST(ptx_rounds_each_operation_once);
    RUN_TEST(pointers_keep_the_space_they_point_to);
    RUN_TEST(ptx_says_how_many_threads_must_find_room);
    RUN_TEST(products_of_the_same_matrix_are_merged_unless_something_between_them_matters);
    RUN_TEST(products_of_a_kernel_are_merged);
    RUN_TEST(the_host_learns_sizes_and_threadgroup_memory_from_the_ptx);
    RUN_TEST(the_host_learns_from_the_ptx_what_a_kernel_loads_early);
    RUN_TEST(the_host_learns_from_the_ptx_how_much_shared_memory_a_kernel_adds);
    RUN_TEST(under_racecheck_atomic_loads_and_stores_are_updates);
    RUN_TEST(kernels_for_nvidia_gpus_agree_with_their_oracles);
    RUN_TEST(kernels_for_nvidia_gpus_are_offered_to_no_other_device);
    RUN_TESTp(what_is_not_finite_in_x_is_not_lost_in_a_product_of_bytes, "\\000\\000\\200\\077",
              "-135.5");
    RUN_TESTp(what_is_not_finite_in_x_is_not_lost_in_a_product_of_bytes, "\\000\\000\\300\\177",
              "nan");
    RUN_TEST(a_mistake_is_reported_at_its_line);
    RUN_TEST(kernels_compile_for_nvidia_gpus);
    RUN_TEST(a_kernel_that_crashes_the_gpu_is_one_failed_launch);
    ptx_compiler_free(compiler);
}
