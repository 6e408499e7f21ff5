/* Copies with their barriers, in bulk or by one thread, and values that blocks of a cluster send each
 * other: instructions that only the kernels of kernels/cuda need, written in PTX. */
#include <greatest.h>
#include <string.h>

#include "ptx_trial.h"

SUITE_EXTERN(cuda_copies_suite);

enum { WORDS = 256 };

/* Bulk copies ----------------------------------------------------------------------------------- */

#define TILE                                                                                       \
    ".shared .align 16 .b8 tile[512];\n.shared .align 8 .b8 barrier[8];\n"                         \
    ".shared .align 8 .b8 other[8];\n"

#define ADDRESSES                                                                                  \
    "mov.u64 %rd2, tile;\nmov.u64 %rd3, barrier;\nmov.u64 %rd4, other;\n"                          \
    "mul.wide.u32 %rd5, %r3, 4;\n" /* a word per thread */                                         \
    "setp.ne.s32 %p1, %r3, 63;\n"  /* the last thread, of the last warp, copies */

#define INIT                                                                                       \
    "@%p1 bra $L_ready;\nmbarrier.init.shared.b64 [%rd3], 1;\n"                                    \
    "mbarrier.init.shared.b64 [%rd4], 1;\nfence.proxy.async.shared::cta;\n"                        \
    "$L_ready:\nbar.sync 0;\n"

/* r1 bytes from r2 bytes into the memory on; `expected` of them awaited. */
#define COPY(label, barrier, expected)                                                             \
    "@%p1 bra " label ";\n"                                                                        \
    "mbarrier.arrive.expect_tx.shared.b64 _, [" barrier "], " expected ";\n"                       \
    "cvt.u64.u32 %rd6, %r2;\nadd.s64 %rd6, %rd1, %rd6;\n"                                          \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "                           \
    "[%rd2], [%rd6], %r1, [" barrier "];\n" label ":\n"

#define ASK(barrier, parity)                                                                       \
    "mov.u32 %r5, " parity ";\n"                                                                   \
    "{ .reg .pred done; mbarrier.try_wait.parity.shared.b64 done, [" barrier                       \
    "], %r5; selp.u32 %r4, 1, 0, done; }\n"

#define WAIT(label, barrier, parity)                                                               \
    label ":\n" ASK(barrier, parity) "setp.eq.s32 %p2, %r4, 0;\n@%p2 bra " label ";\n"

/* Each thread puts its word of the tile at a place in the memory. */
#define PUT(place)                                                                                 \
    "add.s64 %rd7, %rd2, %rd5;\nld.shared.b32 %r6, [%rd7];\n"                                      \
    "add.s64 %rd8, %rd1, %rd5;\nst.global.b32 [%rd8+" place "], %r6;\n"

static uint32_t data[WORDS]; /* of the last kernel: what it was given, and what it made of it */

static void fill(void) {
    for (uint32_t i = 0; i < WORDS; i++)
        data[i] = i * 2654435761u;
}

/* r1 and r2 of the kernel are `bytes` and `from`. */
static CUresult run(const char *ptx, uint32_t blocks, uint32_t threads, uint32_t bytes,
                    uint32_t from) {
    const trial t = {ptx, blocks, threads, 0, 0, {bytes, from}, data, WORDS};
    fill();
    return ptx_trial_run(&t);
}

/* Two phases of a barrier: words 64 to 127 go to 128, then words 68 to 131 to 192. */
TEST a_bulk_copy_is_there_after_its_barrier_was_awaited(void) {
    NEEDS_DRIVER();
    uint32_t want[WORDS];
    static const char ptx[] = KERNEL(
        TILE, "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n" ADDRESSES INIT COPY(
                  "$L_first", "%rd3", "%r1") WAIT("$L_ask", "%rd3", "0")
                  PUT("512") "add.s32 %r2, %r2, 16;\nbar.sync 0;\n" COPY("$L_second", "%rd3", "256")
                      WAIT("$L_again", "%rd3", "1") PUT("768"));
    fill();
    memcpy(want, data, sizeof want);
    memcpy(want + 128, want + 64, 256);
    memcpy(want + 192, want + 68, 256); /* its last four were written by the first */
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(ptx, 1, 64, 256, 256), "%d");
    ASSERT_MEM_EQ(want, data, sizeof want);
    PASS();
}

TEST a_bulk_copy_needs_aligned_memory_that_is_there(void) {
    NEEDS_DOUBLE();
    static const struct {
        uint32_t bytes, from;
        CUresult want;
    } cases[] = {{256, 0, CUDA_SUCCESS},
                 {256, 8, CUDA_ERROR_MISALIGNED_ADDRESS},
                 {248, 0, CUDA_ERROR_MISALIGNED_ADDRESS},
                 {256, WORDS * 4 - 128, CUDA_ERROR_ILLEGAL_ADDRESS},
                 {1008, 0, CUDA_ERROR_ILLEGAL_ADDRESS}}; /* more than there is shared memory */
    static const char ptx[] =
        KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") WAIT("$L_ask", "%rd3", "0"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_EQ_FMT(cases[i].want, run(ptx, 1, 64, cases[i].bytes, cases[i].from), "%d");
    PASS();
}

/* Each would be right now and then on a GPU. */
TEST a_kernel_that_does_not_wait_reads_no_copy(void) {
    NEEDS_DOUBLE();
    static const char *const kernels[] = {
        KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") PUT("512")
                         WAIT("$L_ask", "%rd3", "0")), /* too late */
        KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") ASK("%rd3", "0") PUT("512")
                         WAIT("$L_ask", "%rd3", "0")), /* only once */
        KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") WAIT("$L_ask", "%rd3", "1")
                         PUT("512") WAIT("$L_again", "%rd3", "0")), /* for another phase */
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        ASSERT_EQ_FMT(CUDA_SUCCESS, run(kernels[i], 1, 64, 256, 0), "%d");
        ASSERT_EQ_FMT(UINT32_MAX, data[128 + 5], "%u");
    }
    PASS();
}

TEST a_barrier_that_is_used_wrongly_is_a_fault(void) {
    NEEDS_DOUBLE();
    static const struct {
        const char *ptx;
        CUresult want;
    } cases[] = {
        {KERNEL(TILE, ADDRESSES WAIT("$L_ask", "%rd3", "0")), CUDA_ERROR_LAUNCH_FAILED},
        {KERNEL(TILE, ADDRESSES COPY("$L_copy", "%rd3", "%r1")), CUDA_ERROR_LAUNCH_FAILED},
        /* no wait; fewer bytes expected than come; more; two arrivals where the barrier has one */
        {KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1")), CUDA_ERROR_LAUNCH_FAILED},
        {KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "240") WAIT("$L_ask", "%rd3", "0")),
         CUDA_ERROR_LAUNCH_FAILED},
        {KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "272") WAIT("$L_ask", "%rd3", "0")),
         CUDA_ERROR_LAUNCH_TIMEOUT},
        {KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") COPY("$L_more", "%rd3", "%r1")
                          WAIT("$L_ask", "%rd3", "0")),
         CUDA_ERROR_LAUNCH_FAILED},
        /* the wrong barrier */
        {KERNEL(TILE, ADDRESSES INIT COPY("$L_copy", "%rd3", "%r1") WAIT("$L_ask", "%rd4", "0")),
         CUDA_ERROR_LAUNCH_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_EQ_FMT(cases[i].want, run(cases[i].ptx, 1, 64, 256, 0), "%d");
    PASS();
}

/* Copies of one thread -------------------------------------------------------------------------- */

/* Each of 32 threads copies 16 bytes for itself. */
#define OWN_COPY                                                                                   \
    "mul.wide.u32 %rd6, %r3, 16;\nadd.s64 %rd7, %rd2, %rd6;\nadd.s64 %rd8, %rd1, %rd6;\n"          \
    "cp.async.cg.shared.global [%rd7], [%rd8], 16;\n"
#define OWN_PUT "ld.shared.b32 %r6, [%rd7+4];\nst.global.b32 [%rd8+512], %r6;\n"

TEST a_thread_has_its_own_copies_after_it_waited(void) {
    NEEDS_DRIVER();
    uint32_t want[WORDS];
    fill();
    memcpy(want, data, sizeof want);
    for (size_t i = 0; i < 32; i++)
        want[128 + 4 * i] = want[4 * i + 1];
    static const char ptx[] = KERNEL(TILE, ADDRESSES OWN_COPY "cp.async.wait_all;\n" OWN_PUT);
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(ptx, 1, 32, 0, 0), "%d");
    ASSERT_MEM_EQ(want, data, sizeof want);
    PASS();
}

TEST a_thread_that_does_not_wait_has_no_copy(void) {
    NEEDS_DOUBLE();
    ASSERT_EQ_FMT(CUDA_SUCCESS,
                  run(KERNEL(TILE, ADDRESSES OWN_COPY OWN_PUT "cp.async.wait_all;\n"), 1, 32, 0, 0),
                  "%d");
    ASSERT_EQ_FMT(UINT32_MAX, data[128], "%u");
    /* It has not come when the block ends. */
    ASSERT_EQ_FMT(CUDA_ERROR_LAUNCH_FAILED, run(KERNEL(TILE, ADDRESSES OWN_COPY), 1, 32, 0, 0),
                  "%d");
    PASS();
}

/* Clusters -------------------------------------------------------------------------------------- */

/* The last thread expects what the 64 of the other block send: 1000 times its number and theirs. */
#define PAIR(body) KERNEL_WITH(".reqnctapercluster 2, 1, 1\n", TILE, ADDRESSES body)
#define EXPECT_SENT                                                                                \
    "@%p1 bra $L_ready;\nmbarrier.init.shared.b64 [%rd3], 1;\n"                                    \
    "fence.mbarrier_init.release.cluster;\n"                                                       \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%rd3], 256;\n$L_ready:\nbar.sync 0;\n"
#define ARRIVE "barrier.cluster.arrive.relaxed.aligned;\n"
#define MEET "barrier.cluster.wait.acquire.aligned;\n"
#define SEND                                                                                       \
    "mov.u32 %r7, %ctaid.x;\nxor.b32 %r8, %r7, 1;\nmad.lo.s32 %r9, %r7, 1000, %r3;\n"              \
    "add.s64 %rd7, %rd2, %rd5;\nmapa.shared::cluster.u64 %rd9, %rd7, %r8;\n"                       \
    "mapa.shared::cluster.u64 %rd10, %rd3, %r8;\nmov.b32 %f1, %r9;\n"                              \
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%rd9], %f1, [%rd10];\n"
#define PUT_OF_PAIR                                                                                \
    "mad.lo.s32 %r10, %r7, 64, %r3;\nmul.wide.u32 %rd8, %r10, 4;\nadd.s64 %rd8, %rd1, %rd8;\n"     \
    "ld.shared.b32 %r6, [%rd7];\nst.global.b32 [%rd8], %r6;\n"
#define FLOATS ".reg .f32 %f<3>;\n"

TEST blocks_of_a_cluster_send_each_other_values(void) {
    NEEDS_DRIVER();
    static const char ptx[] =
        PAIR(FLOATS EXPECT_SENT ARRIVE MEET SEND WAIT("$L_ask", "%rd3", "0") PUT_OF_PAIR);
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(ptx, 2, 64, 0, 0), "%d");
    for (uint32_t i = 0; i < 128; i++)
        ASSERT_EQ_FMT(i < 64 ? 1000 + i : i - 64, data[i], "%u");
    PASS();
}

TEST a_block_that_sends_or_reads_too_soon_is_found(void) {
    NEEDS_DOUBLE();
    static const struct {
        const char *ptx;
        uint32_t blocks;
        CUresult want;
    } cases[] = {
        /* before the other one has begun */
        {PAIR(FLOATS EXPECT_SENT SEND WAIT("$L_ask", "%rd3", "0")), 2, CUDA_ERROR_LAUNCH_FAILED},
        /* one that never arrives is waited for in vain */
        {PAIR(FLOATS EXPECT_SENT MEET SEND), 2, CUDA_ERROR_LAUNCH_TIMEOUT},
        /* nothing is sent */
        {PAIR(EXPECT_SENT ARRIVE MEET WAIT("$L_ask", "%rd3", "0")), 2, CUDA_ERROR_LAUNCH_TIMEOUT},
        /* no block waits for what is sent */
        {PAIR(FLOATS EXPECT_SENT ARRIVE MEET SEND), 2, CUDA_ERROR_LAUNCH_FAILED},
        /* half a cluster */
        {PAIR(EXPECT_SENT), 3, CUDA_ERROR_LAUNCH_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_EQ_FMT(cases[i].want, run(cases[i].ptx, cases[i].blocks, 64, 0, 0), "%d");
    static const char soon[] =
        PAIR(FLOATS EXPECT_SENT ARRIVE MEET SEND PUT_OF_PAIR WAIT("$L_ask", "%rd3", "0"));
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(soon, 2, 64, 0, 0), "%d");
    ASSERT_EQ_FMT(UINT32_MAX, data[64 + 5], "%u");
    PASS();
}

SUITE(cuda_copies_suite) {
    ptx_trial_begin();
    RUN_TEST(a_bulk_copy_is_there_after_its_barrier_was_awaited);
    RUN_TEST(a_bulk_copy_needs_aligned_memory_that_is_there);
    RUN_TEST(a_kernel_that_does_not_wait_reads_no_copy);
    RUN_TEST(a_barrier_that_is_used_wrongly_is_a_fault);
    RUN_TEST(a_thread_has_its_own_copies_after_it_waited);
    RUN_TEST(a_thread_that_does_not_wait_has_no_copy);
    RUN_TEST(blocks_of_a_cluster_send_each_other_values);
    RUN_TEST(a_block_that_sends_or_reads_too_soon_is_found);
}
