/* Instructions and launches that only some kernels need, written in PTX: products of a warp, pairs of
 * halves, the clock, much shared memory. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "harness/device/elem.h"
#include "ptx_trial.h"

SUITE_EXTERN(cuda_ptx_suite);

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
    ASSERT_EQ_FMT(CUDA_SUCCESS, ptx_trial_run(&run_it), "%d");
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
    ASSERT_EQ_FMT(CUDA_SUCCESS, ptx_trial_run(&t), "%d");
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
    ASSERT_EQ_FMT(CUDA_SUCCESS, ptx_trial_run(&t), "%d");
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
        ASSERT_EQ_FMT(cases[i].want, ptx_trial_run(&t), "%d");
        ASSERT_EQ_FMT(cases[i].want ? 0 : 4711u, data[0], "%u");
        ASSERT_EQ_FMT(cases[i].want ? 0 : last, data[1], "%u");
    }
    PASS();
}

SUITE(cuda_ptx_suite) {
    ptx_trial_begin();
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        RUN_TESTp(a_warp_multiplies_matrices, &products[i]);
    RUN_TEST(two_floats_become_halves_rounded_to_the_nearest);
    RUN_TEST(the_larger_of_two_halves_is_a_number_if_one_of_them_is);
    RUN_TEST(a_loop_that_waits_for_so_many_clocks_ends);
    RUN_TEST(much_shared_memory_must_be_asked_for);
}
