/* Kernels written in PTX and run by NVIDIA's driver itself, or by its double: instructions and launches that only
 * some kernels need. Products of a warp, pairs of halves, the clock, much shared memory; copies with their
 * barriers, in bulk or by one thread, and values that blocks of a cluster send each other. */
#include <greatest.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "harness/device/cuda/driver.h"
#include "harness/device/elem.h"
#include "support.h"

SUITE_EXTERN(cuda_ptx_suite);
SUITE_EXTERN(cuda_copies_suite);

enum { MAX_DYNAMIC_BYTES = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static const cuda_driver *driver;
static bool is_double;

/* With ASSAY_DEVICE=cuda, on a GPU or on the double of its driver; what is undefined on a GPU, on the
 * double only. */
static void begin(void) {
    char name[64] = "";
    if (strncmp(support_get_device_name(), "cuda", 4) == 0)
        driver = cuda_find_driver(NULL);
    if (driver)
        driver->device_name(name, (int)sizeof name, 0);
    is_double = strcmp(name, "CUDA double") == 0;
}

#define NEEDS_DRIVER()                                                                             \
    do {                                                                                           \
        if (!driver)                                                                               \
            SKIPm("only with ASSAY_DEVICE=cuda");                                                  \
    } while (0)

#define NEEDS_DOUBLE()                                                                             \
    do {                                                                                           \
        if (!is_double)                                                                            \
            SKIPm("only on the double of NVIDIA's driver");                                        \
    } while (0)

/* One launch of one block, or of `blocks`. data (words long) is copied to the GPU and back; its
 * address there is the first parameter, `given` the next two. granted: dynamic bytes that the
 * function asks to be allowed. */
typedef struct {
    const char *ptx;
    uint32_t blocks, threads, dynamic_bytes, granted;
    uint32_t given[2];
    uint32_t *data;
    size_t words;
} trial;

/* A kernel with its address in %rd1, its two numbers in %r1 and %r2, its thread in %r3. */
#define KERNEL(variables, body) KERNEL_WITH("", variables, body)
#define KERNEL_WITH(directives, variables, body)                                                   \
    ".version 8.1\n.target sm_90\n.address_size 64\n" variables                                    \
    ".visible .entry trial(.param .align 8 .b8 trial_param_0[16])\n" directives "{\n"              \
    ".reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"                                   \
    "ld.param.u64 %rd1, [trial_param_0];\ncvta.to.global.u64 %rd1, %rd1;\n"                        \
    "ld.param.u32 %r1, [trial_param_0+8];\nld.param.u32 %r2, [trial_param_0+12];\n"                \
    "mov.u32 %r3, %tid.x;\n" body "ret;\n}\n"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (!result)                                                                               \
            result = call;                                                                         \
    } while (0)

static CUresult run_on(const trial *t, CUmodule module, CUstream stream, CUdeviceptr memory) {
    CUfunction function = NULL;
    CUgraph graph = NULL;
    CUgraphNode node;
    CUgraphExec made = NULL;
    struct {
        CUdeviceptr memory;
        uint32_t given[2];
    } params = {memory, {t->given[0], t->given[1]}};
    CUresult result = driver->module_function(&function, module, "trial");
    if (t->granted)
        TRY(driver->function_set_attribute(function, MAX_DYNAMIC_BYTES, (int)t->granted));
    CUDA_KERNEL_NODE_PARAMS what = {.func = function,
                                    .gridDimX = t->blocks ? t->blocks : 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = t->threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = t->dynamic_bytes,
                                    .kernelParams = (void *[]){&params}};
    TRY(driver->graph_new(&graph, 0));
    TRY(driver->graph_add_kernel(&node, graph, NULL, 0, &what));
    TRY(driver->graph_instantiate(&made, graph, 0));
    TRY(driver->copy_in(memory, t->data, t->words * sizeof *t->data, stream));
    TRY(driver->graph_launch(made, stream));
    TRY(driver->copy_out(t->data, memory, t->words * sizeof *t->data, stream));
    TRY(driver->stream_wait(stream));
    if (made)
        driver->graph_drop(made);
    if (graph)
        driver->graph_free(graph);
    return result;
}

/* In a context of its own: a fault ends with it. */
static CUresult run_trial(const trial *t) {
    char log[256] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUresult result = driver->context_retain(&context, 0);
    TRY(driver->context_set(context));
    TRY(driver->module_load(&module, t->ptx, 2, options, values));
    TRY(driver->stream_new(&stream, CU_STREAM_NON_BLOCKING));
    TRY(driver->memory_new(&memory, t->words * sizeof *t->data));
    if (!result)
        result = run_on(t, module, stream, memory);
    if (log[0])
        fprintf(stderr, "%s\n", log);
    if (memory)
        driver->memory_free(memory);
    if (stream)
        driver->stream_free(stream);
    if (module)
        driver->module_unload(module);
    driver->context_release(0);
    return result;
}

enum { INVALID_VALUE = 1, WORDS = 256 };

/* Products -------------------------------------------------------------------------------------- */

enum { LANES = 32, PER_LANE = 14, FIRST_OF_B = 4, FIRST_OF_C = 6, FIRST_OF_D = 10, DEPTH = 32 };

/* Each lane has 14 words: 4 of a, 2 of b, 4 of c, 4 of d. */
#define PRODUCT(form, sum, a, b)                                                                   \
    KERNEL("", ".reg ." sum " %d<4>, %c<4>;\nmul.wide.u32 %rd2, %r3, 56;\n"                        \
               "add.s64 %rd3, %rd1, %rd2;\n"                                                       \
               "ld.global.b32 %r10, [%rd3];\nld.global.b32 %r11, [%rd3+4];\n"                      \
               "ld.global.b32 %r12, [%rd3+8];\nld.global.b32 %r13, [%rd3+12];\n"                   \
               "ld.global.b32 %r14, [%rd3+16];\nld.global.b32 %r15, [%rd3+20];\n"                  \
               "ld.global." sum " %c0, [%rd3+24];\nld.global." sum " %c1, [%rd3+28];\n"            \
               "ld.global." sum " %c2, [%rd3+32];\nld.global." sum " %c3, [%rd3+36];\n"            \
               "mma.sync.aligned." form "\n\t{%d0, %d1, %d2, %d3}, {" a "}, {" b                   \
               "}, {%c0, %c1, %c2, %c3};\n"                                                        \
               "st.global." sum " [%rd3+40], %d0;\nst.global." sum " [%rd3+44], %d1;\n"            \
               "st.global." sum " [%rd3+48], %d2;\nst.global." sum " [%rd3+52], %d3;\n")

typedef struct {
    const char *ptx;
    uint32_t depth;
    elem type;    /* of an element of a and b */
    int32_t more; /* added to those of a, whose bytes then have no sign */
} product;

/* Small integers, that all types hold; the integers of 8 bits reach both ends. */
static int32_t choose(const product *p, uint32_t n) {
    int32_t v = (int32_t)(n * 2654435761u >> 24) - 128;
    return elem_is_float(p->type) ? v / 16 : v;
}

static uint32_t encode(elem type, int32_t v) {
    uint32_t bits = type == ELEM_I8 ? (uint8_t)v : 0; /* with a sign or without */
    if (type != ELEM_I8)
        elem_write(type, &bits, 0, v);
    return bits;
}

/* A lane's word: the elements of one row (or column) from `first` on. */
static uint32_t pack(const product *p, const int32_t *values, uint32_t stride, uint32_t first) {
    uint32_t word = 0, bits = 8 * (uint32_t)elem_get_bytes(p->type);
    for (uint32_t n = 0; n < 32 / bits; n++)
        word |= encode(p->type, values[(first + n) * stride]) << n * bits;
    return word;
}

TEST a_warp_multiplies_matrices(const product *p) {
    NEEDS_DRIVER();
    int32_t a[16][DEPTH], b[DEPTH][8], c[16][8];
    uint32_t data[LANES * PER_LANE];
    const uint32_t each = 4 / (uint32_t)elem_get_bytes(p->type);
    const elem sums = elem_is_float(p->type) ? ELEM_F32 : ELEM_I32;
    for (uint32_t k = 0; k < DEPTH; k++) {
        for (uint32_t row = 0; row < 16; row++)
            a[row][k] = p->more + choose(p, 1 + k * 16 + row);
        for (uint32_t column = 0; column < 8; column++)
            b[k][column] = choose(p, 7777 + k * 8 + column);
    }
    for (uint32_t n = 0; n < 128; n++) /* near the end, so that sums of integers wrap */
        c[n / 8][n % 8] = sums == ELEM_F32 ? choose(p, n) : INT32_MAX - (int32_t)n * 300;
    memset(data, 0xEE, sizeof data);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *word = data + lane * PER_LANE, g = lane / 4, t = lane % 4;
        for (uint32_t n = 0; n < p->depth / (4 * each); n++) {
            uint32_t k = n * 4 * each + t * each;
            word[2 * n] = pack(p, a[g], 1, k);
            word[2 * n + 1] = pack(p, a[g + 8], 1, k);
            word[FIRST_OF_B + n] = pack(p, &b[0][g], 8, k);
        }
        for (uint32_t n = 0; n < 4; n++)
            word[FIRST_OF_C + n] = encode(sums, c[g + n / 2 * 8][2 * t + n % 2]);
    }
    const trial run_it = {.ptx = p->ptx, .threads = LANES, .data = data, .words = LANES * PER_LANE};
    ASSERT_EQ_FMT(CUDA_SUCCESS, run_trial(&run_it), "%d");
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t n = 0; n < 4; n++) {
            uint32_t row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
            int64_t sum = c[row][column];
            for (uint32_t k = 0; k < p->depth; k++)
                sum += a[row][k] * b[k][column];
            uint32_t want = sums == ELEM_F32 ? encode(sums, (int32_t)sum) : (uint32_t)sum;
            ASSERT_EQ_FMTm(elem_get_name(p->type), want, data[lane * PER_LANE + FIRST_OF_D + n],
                           "%08x");
        }
    PASS();
}

#define LONG_A "%r10, %r11, %r12, %r13"
#define LONG_B "%r14, %r15"
static const product products[] = {
    {PRODUCT("m16n8k32.row.col.s32.s8.s8.s32", "s32", LONG_A, LONG_B), 32, ELEM_I8, 0},
    {PRODUCT("m16n8k32.row.col.s32.u8.s8.s32", "s32", LONG_A, LONG_B), 32, ELEM_I8, 128},
    {PRODUCT("m16n8k16.row.col.s32.s8.s8.s32", "s32", "%r10, %r11", "%r14"), 16, ELEM_I8, 0},
    {PRODUCT("m16n8k16.row.col.f32.bf16.bf16.f32", "f32", LONG_A, LONG_B), 16, ELEM_BF16, 0},
    {PRODUCT("m16n8k16.row.col.f32.f16.f16.f32", "f32", LONG_A, LONG_B), 16, ELEM_F16, 0},
    {PRODUCT("m16n8k8.row.col.f32.tf32.tf32.f32", "f32", LONG_A, LONG_B), 8, ELEM_F32, 0},
};

/* Halves ---------------------------------------------------------------------------------------- */

/* Each thread makes its third word of the first two, %r10 and %r11. */
#define OF_TWO(body)                                                                               \
    KERNEL("", "mul.wide.u32 %rd2, %r3, 12;\nadd.s64 %rd3, %rd1, %rd2;\n"                          \
               "ld.global.b32 %r10, [%rd3];\nld.global.b32 %r11, [%rd3+4];\n" body                 \
               "st.global.b32 [%rd3+8], %r12;\n")

enum { NAN_HALF = 0x7FFF }; /* any NaN is as good */

static bool is_half(uint32_t want, uint32_t got) {
    return want == NAN_HALF ? (got & 0x7FFF) > 0x7C00 : got == want;
}

/* cases: two operands and the two halves expected of them. */
static enum greatest_test_res makes_halves(const char *ptx, const uint32_t (*cases)[3],
                                           uint32_t count) {
    uint32_t data[WORDS];
    memcpy(data, cases, count * sizeof *cases);
    const trial t = {.ptx = ptx, .threads = count, .data = data, .words = 3 * count};
    for (uint32_t i = 0; i < count; i++)
        data[3 * i + 2] = ~cases[i][2];
    ASSERT_EQ_FMT(CUDA_SUCCESS, run_trial(&t), "%d");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t want = cases[i][2], got = data[3 * i + 2];
        if (!is_half(want >> 16, got >> 16) || !is_half(want & 0xFFFF, got & 0xFFFF))
            ASSERT_EQ_FMT(want, got, "%08x");
    }
    PASS();
}

/* The first becomes the upper half. */
TEST two_floats_become_halves_rounded_to_the_nearest(void) {
    NEEDS_DRIVER();
    static const uint32_t cases[][3] = {
        {0x3F800000, 0xC0000000, 0x3C00C000}, /* 1, -2 */
        {0x3F801000, 0x3F803000, 0x3C003C02}, /* between two halves: to the even one */
        {0x3F801001, 0x3F802FFF, 0x3C013C01}, /* and just beside that */
        {0x477FEFFF, 0x477FF000, 0x7BFF7C00}, /* the last that is not infinity, and the first */
        {0xF149F2CA, 0x7F800000, 0xFC007C00}, /* -1e30, infinity */
        {0x33800000, 0x33C00000, 0x00010002}, /* denormals: 1 and 1.5 times the smallest */
        {0x33000000, 0xB3000001, 0x00008001}, /* half of it, and a little more */
        {0x387FC000, 0x387FE000, 0x03FF0400}, /* the largest, and halfway to the next */
        {0x7FC00000, 0x80000000, NAN_HALF << 16 | 0x8000},
        {0x00000001, 0xFF800001, NAN_HALF}, /* a NaN in its last bit only */
    };
    return makes_halves(OF_TWO("cvt.rn.f16x2.f32 %r12, %r10, %r11;\n"), cases,
                        sizeof cases / sizeof *cases);
}

/* max.f16x2 of the first and of the magnitudes of the second. */
TEST the_larger_of_two_halves_is_a_number_if_one_of_them_is(void) {
    NEEDS_DRIVER();
    static const uint32_t cases[][3] = {
        {0x3C004000, 0x40003C00, 0x40004000}, /* 1 2, 2 1 */
        {0x3C003C00, 0xC000B800, 0x40003C00}, /* 1 1, -2 -0.5 */
        {0xC400FC00, 0x3C008001, 0x3C000001}, /* -4 -infinity, 1 and a denormal */
        {0x7BFF0001, 0xFC000002, 0x7C000002}, /* infinity */
        {0x3C007E00, 0x7E00BC00, 0x3C003C00}, /* 1 NaN, NaN -1 */
        {0x7E003C00, 0xFE003800, NAN_HALF << 16 | 0x3C00},
    };
    return makes_halves(OF_TWO("abs.f16x2 %r12, %r11;\nmax.f16x2 %r12, %r10, %r12;\n"), cases,
                        sizeof cases / sizeof *cases);
}

/* The clock ------------------------------------------------------------------------------------- */

TEST a_loop_that_waits_for_so_many_clocks_ends(void) {
    NEEDS_DRIVER();
    uint32_t data[2] = {0, 0}; /* clocks that went by, turns of the loop */
    const trial t = {.ptx = KERNEL("", "mov.u32 %r5, 0;\nmov.u32 %r6, %clock;\n$L_wait:\n"
                                       "add.s32 %r5, %r5, 1;\nmov.u32 %r7, %clock;\n"
                                       "sub.s32 %r8, %r7, %r6;\nsetp.lt.u32 %p1, %r8, %r1;\n"
                                       "@%p1 bra $L_wait;\nst.global.b32 [%rd1], %r8;\n"
                                       "st.global.b32 [%rd1+4], %r5;\n"),
                     .threads = 1,
                     .given = {3000, 0},
                     .data = data,
                     .words = 2};
    ASSERT_EQ_FMT(CUDA_SUCCESS, run_trial(&t), "%d");
    ASSERT(data[0] >= 3000);
    ASSERT(data[1] > 1 && data[1] < 3000); /* a turn takes more than a clock */
    PASS();
}

/* Shared memory --------------------------------------------------------------------------------- */

/* Writes and reads the word at r1 of the dynamic memory, beside 1024 static bytes. */
#define LAST_WORD                                                                                  \
    KERNEL(".shared .align 16 .b8 fixed[1024];\n.extern .shared .align 16 .b8 dynamic[];\n",       \
           "mov.u64 %rd2, dynamic;\nmov.u64 %rd5, fixed;\ncvt.u64.u32 %rd3, %r1;\n"                \
           "add.s64 %rd4, %rd2, %rd3;\nst.shared.b32 [%rd4], %r2;\n"                               \
           "st.shared.b32 [%rd5], %r1;\nld.shared.b32 %r6, [%rd4];\n"                              \
           "ld.shared.b32 %r7, [%rd5];\nst.global.b32 [%rd1], %r6;\n"                              \
           "st.global.b32 [%rd1+4], %r7;\n")

TEST much_shared_memory_must_be_asked_for(void) {
    NEEDS_DRIVER();
    static const struct {
        uint32_t bytes, granted;
        CUresult want;
    } cases[] = {{48128, 0, CUDA_SUCCESS},       {48144, 0, INVALID_VALUE},
                 {90000, 0, INVALID_VALUE},      {90000, 90000, CUDA_SUCCESS},
                 {90016, 90000, INVALID_VALUE},  {231424, 231424, CUDA_SUCCESS},
                 {231440, 231440, INVALID_VALUE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t data[2] = {0, 0}, last = cases[i].bytes - 4;
        const trial t = {.ptx = LAST_WORD,
                         .threads = 1,
                         .dynamic_bytes = cases[i].bytes,
                         .granted = cases[i].granted,
                         .given = {last, 4711},
                         .data = data,
                         .words = 2};
        ASSERT_EQ_FMT(cases[i].want, run_trial(&t), "%d");
        ASSERT_EQ_FMT(cases[i].want ? 0 : 4711u, data[0], "%u");
        ASSERT_EQ_FMT(cases[i].want ? 0 : last, data[1], "%u");
    }
    PASS();
}

SUITE(cuda_ptx_suite) {
    begin();
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        RUN_TESTp(a_warp_multiplies_matrices, &products[i]);
    RUN_TEST(two_floats_become_halves_rounded_to_the_nearest);
    RUN_TEST(the_larger_of_two_halves_is_a_number_if_one_of_them_is);
    RUN_TEST(a_loop_that_waits_for_so_many_clocks_ends);
    RUN_TEST(much_shared_memory_must_be_asked_for);
}

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

static uint32_t words[WORDS]; /* of the last kernel: what it was given, and what it made of it */

static void fill(void) {
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
}

/* r1 and r2 of the kernel are `bytes` and `from`. */
static CUresult run(const char *ptx, uint32_t blocks, uint32_t threads, uint32_t bytes,
                    uint32_t from) {
    const trial t = {ptx, blocks, threads, 0, 0, {bytes, from}, words, WORDS};
    fill();
    return run_trial(&t);
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
    memcpy(want, words, sizeof want);
    memcpy(want + 128, want + 64, 256);
    memcpy(want + 192, want + 68, 256); /* its last four were written by the first */
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(ptx, 1, 64, 256, 256), "%d");
    ASSERT_MEM_EQ(want, words, sizeof want);
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
        ASSERT_EQ_FMT(UINT32_MAX, words[128 + 5], "%u");
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
    memcpy(want, words, sizeof want);
    for (size_t i = 0; i < 32; i++)
        want[128 + 4 * i] = want[4 * i + 1];
    static const char ptx[] = KERNEL(TILE, ADDRESSES OWN_COPY "cp.async.wait_all;\n" OWN_PUT);
    ASSERT_EQ_FMT(CUDA_SUCCESS, run(ptx, 1, 32, 0, 0), "%d");
    ASSERT_MEM_EQ(want, words, sizeof want);
    PASS();
}

TEST a_thread_that_does_not_wait_has_no_copy(void) {
    NEEDS_DOUBLE();
    ASSERT_EQ_FMT(CUDA_SUCCESS,
                  run(KERNEL(TILE, ADDRESSES OWN_COPY OWN_PUT "cp.async.wait_all;\n"), 1, 32, 0, 0),
                  "%d");
    ASSERT_EQ_FMT(UINT32_MAX, words[128], "%u");
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
        ASSERT_EQ_FMT(i < 64 ? 1000 + i : i - 64, words[i], "%u");
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
    ASSERT_EQ_FMT(UINT32_MAX, words[64 + 5], "%u");
    PASS();
}

SUITE(cuda_copies_suite) {
    begin();
    RUN_TEST(a_bulk_copy_is_there_after_its_barrier_was_awaited);
    RUN_TEST(a_bulk_copy_needs_aligned_memory_that_is_there);
    RUN_TEST(a_kernel_that_does_not_wait_reads_no_copy);
    RUN_TEST(a_barrier_that_is_used_wrongly_is_a_fault);
    RUN_TEST(a_thread_has_its_own_copies_after_it_waited);
    RUN_TEST(a_thread_that_does_not_wait_has_no_copy);
    RUN_TEST(blocks_of_a_cluster_send_each_other_values);
    RUN_TEST(a_block_that_sends_or_reads_too_soon_is_found);
}
