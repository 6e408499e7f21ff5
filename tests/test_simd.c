/* Every simdgroup and quadgroup function of the software device against a scalar model, with all
 * lanes and with some. The numbers of the operations are those of tests/kernels/simd.metal. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

SUITE_EXTERN(simd_suite);

/* A simdgroup's functions and, from QUAD on, a quadgroup's; those of integers only from BITS on. */
enum { LANES = 32, BITS = 18, OPS = 21, VOTES = 5, QUAD = 32 };

/* The lanes of a mask without gaps are all that the threadgroup has. */
static const uint32_t masks[] = {0xFFFFFFFF, 0x7FFFFFFF, 0x000FFFFF, 0x00000001, 0x0000FFFF,
                                 0x55555555, 0x80000001, 0x00000100, 0xF0F0F0F0, 0x12345678};
enum { MASKS = sizeof masks / sizeof *masks };

static uint32_t count_threads(uint32_t mask) {
    uint32_t n = 0;
    while (n < LANES && mask >> n & 1)
        n++;
    return (mask & (mask + 1)) == 0 ? n : LANES;
}

static const uint32_t arguments[] = {0, 1, 3, 5, 16, 31};
enum { ARGUMENTS = sizeof arguments / sizeof *arguments };

/* What the model says about one lane: a value, or that MSL leaves it open. */
typedef struct {
    bool defined;
    double value;
} model;

static bool is_in(uint32_t mask, int lane) {
    return lane >= 0 && lane < LANES && mask >> lane & 1;
}

static double fold(uint32_t how, double a, double b) {
    switch (how) {
    case 0:
        return a + b;
    case 1:
        return fmax(a, b);
    case 2:
        return fmin(a, b);
    case 3:
        return a * b;
    case BITS:
        return (double)((int64_t)a & (int64_t)b);
    case BITS + 1:
        return (double)((int64_t)a | (int64_t)b);
    default:
        return (double)((int64_t)a ^ (int64_t)b);
    }
}

/* Over the active lanes first..last-1; `none` where there is none. */
static model model_reduce(const double *x, uint32_t mask, uint32_t how, int first, int last,
                          double none) {
    model m = {true, none};
    bool is_first = true;
    for (int i = first; i < last; i++)
        if (is_in(mask, i)) {
            m.value = is_first ? x[i] : fold(how, m.value, x[i]);
            is_first = false;
        }
    return m;
}

static model model_from(const double *x, uint32_t mask, int lane) {
    return is_in(mask, lane) ? (model){true, x[lane]} : (model){false, 0};
}

/* The filling value comes from a lane too, counted round the end. */
static model model_fill(uint32_t mask, int lane) {
    return (model){is_in(mask, lane), 77};
}

static model model_lane(const double *x, uint32_t mask, uint32_t op, int arg, int lane) {
    const int group = op >= QUAD ? 4 : LANES, first = lane / group * group, place = lane % group;
    const bool is_over = place + arg >= group, is_under = place < arg;
    const int up = is_under ? lane - arg + group : lane - arg;
    const int down = is_over ? lane + arg - group : lane + arg;
    op %= QUAD;
    switch (op) {
    case 9:
        for (int i = first;; i++)
            if (is_in(mask, i))
                return (model){true, x[i]};
    case 10:
        return model_reduce(x, mask, 0, first, lane + 1, 0);
    case 11:
        return model_reduce(x, mask, 0, first, lane, 0);
    case 12:
        return model_reduce(x, mask, 3, first, lane + 1, 1);
    case 13:
        return model_reduce(x, mask, 3, first, lane, 1);
    default:
        if (op < 4 || op >= BITS)
            return model_reduce(x, mask, op, first, first + group, 0);
    }
    if (arg >= group)
        return (model){false, 0};
    switch (op) {
    case 5:
        return model_from(x, mask, first + (place ^ arg));
    case 6:
        return model_from(x, mask, is_under ? lane : up);
    case 7:
        return model_from(x, mask, is_over ? lane : down);
    case 14:
        return model_from(x, mask, up);
    case 15:
        return model_from(x, mask, down);
    case 16:
        return is_under ? model_fill(mask, up) : model_from(x, mask, up);
    case 17:
        return is_over ? model_fill(mask, down) : model_from(x, mask, down);
    default: /* shuffle, broadcast */
        return model_from(x, mask, first + arg);
    }
}

static const struct {
    const char *kernel;
    elem type;
    int width;
} typed[] = {
    {"simd_float", ELEM_F32, 1},  {"simd_half", ELEM_F16, 1},   {"simd_bfloat", ELEM_BF16, 1},
    {"simd_float4", ELEM_F32, 4}, {"simd_half2", ELEM_F16, 2},  {"simd_char", ELEM_I8, 1},
    {"simd_uchar", ELEM_U8, 1},   {"simd_short", ELEM_I16, 1},  {"simd_ushort", ELEM_U16, 1},
    {"simd_int", ELEM_I32, 1},    {"simd_uint", ELEM_U32, 1},   {"simd_long", ELEM_I64, 1},
    {"simd_ulong", ELEM_U64, 1},  {"simd_ushort4", ELEM_U16, 4}};

static bool is_integer(elem type) {
    return type < ELEM_F16;
}
static bool is_unsigned(elem type) {
    return type == ELEM_U8 || type == ELEM_U16 || type == ELEM_U32 || type == ELEM_U64;
}

/* Integers wrap. */
static void put(elem type, void *at, size_t i, double value) {
    const size_t bytes = elem_get_bytes(type);
    const int64_t whole = (int64_t)value;
    if (is_integer(type))
        memcpy((char *)at + i * bytes, &whole, bytes);
    else
        elem_write(type, at, i, value);
}

/* Values whose sums and products are exact in every type, so that order does not matter; the
 * largest and smallest are those of numbers whose exponentials vanish. */
static double make_input(elem type, uint32_t op, int lane, int component) {
    const double odd = is_unsigned(type) ? 3 : -1;
    if (op % QUAD == 3 || op % QUAD == 12 || op % QUAD == 13)
        return (lane + component) % 9 == 4 ? 2 : (lane + component) % 5 == 1 ? odd : 1;
    const int least = is_unsigned(type) ? 0 : op % QUAD == 1 || op % QUAD == 2 ? -116 : -11;
    return (lane * 7 + component * 3) % 23 + least;
}

/* A threadgroup for each function and argument. */
enum { GROUPS = 2 * OPS * ARGUMENTS, ROOM = GROUPS * LANES * 16 };

static bool run_all(int which, uint32_t mask, uint32_t groups, slice in, slice out, slice asked) {
    return support_run("simd.metal", typed[which].kernel,
                       ((size3){groups * count_threads(mask), 1, 1}),
                       ((size3){count_threads(mask), 1, 1}), READS(in, typed[which].type),
                       WRITES(out, typed[which].type), NUMBER(mask), READS(asked, ELEM_U32));
}

/* Compares one threadgroup with the model; the message of the first difference, or NULL. */
static const char *compare_op(int which, uint32_t mask, uint32_t op, int arg, const void *in,
                              const void *out) {
    static char text[160];
    const int width = typed[which].width;
    for (int c = 0; c < width; c++) {
        double x[LANES];
        for (int i = 0; i < LANES; i++)
            x[i] = elem_read(typed[which].type, in, (size_t)(i * width + c));
        for (int i = 0; i < LANES; i++) {
            char bits[8];
            double got = elem_read(typed[which].type, out, (size_t)(i * width + c));
            model want = is_in(mask, i) ? model_lane(x, mask, op, arg, i) : (model){true, -5};
            put(typed[which].type, bits, 0, want.value);
            want.value = elem_read(typed[which].type, bits, 0);
            if (want.defined && !(got == want.value)) {
                snprintf(text, sizeof text, "%s op %u arg %d mask %08x lane %d: want %g, got %g",
                         typed[which].kernel, (unsigned)op, arg, (unsigned)mask, i, want.value,
                         got);
                return text;
            }
        }
    }
    return NULL;
}

TEST functions_agree_with_the_model_for_any_active_lanes(math_mode math, int which) {
    static char in[ROOM], before[ROOM], out[ROOM];
    uint32_t asked[GROUPS][2], groups = 0;
    support_set_math(math);
    const elem type = typed[which].type;
    const int width = typed[which].width, count = LANES * width;
    const size_t bytes = (size_t)count * elem_get_bytes(type);
    for (uint32_t op = 0; op < QUAD + OPS; op++)
        for (int a = 0; a < ARGUMENTS; a++) {
            if (op % QUAD >= (is_integer(type) && width == 1 ? OPS : BITS))
                continue;
            for (int i = 0; i < count; i++) {
                const size_t at = groups * (size_t)count + (size_t)i;
                put(type, in, at, make_input(type, op, i / width, i % width));
                put(type, before, at, -5);
            }
            asked[groups][0] = op;
            asked[groups++][1] = arguments[a];
        }
    slice from = support_buffer(in, groups * bytes), to = support_buffer(NULL, groups * bytes),
          ops = support_buffer(asked, sizeof asked);
    for (int m = 0; m < MASKS; m++) {
        support_write(to, before, groups * bytes);
        ASSERTm(support_get_error()->text, run_all(which, masks[m], groups, from, to, ops));
        memcpy(out, support_read(to), groups * bytes);
        for (uint32_t g = 0; g < groups; g++) {
            const char *wrong = compare_op(which, masks[m], asked[g][0], (int)asked[g][1],
                                           in + g * bytes, out + g * bytes);
            if (wrong)
                FAILm(wrong);
        }
    }
    PASS();
}

static uint32_t model_vote(const uint32_t *x, uint32_t mask, uint32_t op, int lane) {
    const int group = op >= QUAD ? 4 : LANES, first = lane / group * group;
    uint32_t ballot = 0, there = 0;
    for (int i = group - 1; i >= 0; i--) {
        there = there << 1 | is_in(mask, first + i);
        ballot = ballot << 1 | (is_in(mask, first + i) && x[first + i] & 1);
    }
    const uint32_t below = (1u << lane % group) - 1;
    const uint32_t table[VOTES] = {ballot, ballot != 0, ballot == there, !(there & below), there};
    return table[op % QUAD];
}

TEST votes_agree_with_the_model(void) {
    uint32_t x[LANES], out[LANES];
    for (int pattern = 0; pattern < 3; pattern++) {
        for (int i = 0; i < LANES; i++)
            x[i] = pattern == 0 ? (uint32_t)i * 2654435761u : pattern == 1 ? 1 : 0xFFFFFFFE;
        slice from = support_buffer(x, sizeof x), to = support_buffer(NULL, sizeof out);
        for (uint32_t op = 0; op < QUAD + VOTES; op++)
            for (int m = 0; m < MASKS && op % QUAD < VOTES; m++) {
                ASSERT_PLAYS("simd.metal", "simd_votes", ((size3){count_threads(masks[m]), 1, 1}),
                             ((size3){count_threads(masks[m]), 1, 1}), READS(from, ELEM_U32),
                             UPDATES(to, ELEM_U32), NUMBER(masks[m]), NUMBER(op));
                memcpy(out, support_read(to), sizeof out);
                for (int i = 0; i < LANES; i++)
                    if (is_in(masks[m], i))
                        ASSERT_EQ_FMT(model_vote(x, masks[m], op, i), out[i], "%u");
            }
        support_end();
    }
    PASS();
}

static bool run_plain(const char *kernel, slice in, slice out, const uint32_t *mask) {
    launch *l = support_launch("simd.metal", kernel);
    if (!l)
        return false;
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    if (mask)
        launch_set_u32(l, 2, *mask);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){LANES, 1, 1});
    return support_play();
}

TEST arms_of_a_divergent_branch_do_not_mix(void) {
    float x[LANES];
    for (int i = 0; i < LANES; i++)
        x[i] = (float)(i + 1);
    for (int m = 0; m < MASKS; m++) {
        slice in = support_buffer(x, sizeof x), out = support_buffer(NULL, sizeof x);
        ASSERTm(support_get_error()->text, run_plain("simd_both_arms", in, out, &masks[m]));
        const float *got = support_read(out);
        float inside = 0, outside = 0;
        for (int i = 0; i < LANES; i++)
            *(is_in(masks[m], i) ? &inside : &outside) += x[i];
        for (int i = 0; i < LANES; i++)
            ASSERT_EQ_FMT((double)(is_in(masks[m], i) ? inside : outside) + 32000, (double)got[i],
                          "%g");
        support_end();
    }
    PASS();
}

TEST lanes_that_left_a_loop_take_no_part_in_it(void) {
    float x[LANES];
    for (int i = 0; i < LANES; i++)
        x[i] = (float)(i * i);
    slice in = support_buffer(x, sizeof x), out = support_buffer(NULL, sizeof x);
    ASSERTm(support_get_error()->text, run_plain("simd_uneven_loop", in, out, NULL));
    const float *got = support_read(out);
    for (int i = 0; i < LANES; i++) {
        float want = 0;
        for (int k = 0; k < i; k++)
            for (int j = k + 1; j < LANES; j++)
                want += x[j];
        ASSERT_EQ_FMT((double)want, (double)got[i], "%g");
    }
    PASS();
}

TEST lanes_waiting_at_calls_of_different_types_keep_their_values(void) {
    float x[LANES];
    for (int i = 0; i < LANES; i++)
        x[i] = (float)i + 0.5f;
    slice in = support_buffer(x, sizeof x), out = support_buffer(NULL, sizeof x);
    ASSERTm(support_get_error()->text, run_plain("simd_mixed_types", in, out, NULL));
    const float *got = support_read(out);
    for (int i = 0; i < LANES; i++) {
        double want = i % 3 == 0 ? 11 : i % 3 == 1 ? 31 : i + 3 < LANES ? x[i + 3] : x[i];
        ASSERT_EQ_FMT(want, (double)got[i], "%g");
    }
    PASS();
}

/* What the kernels of rejoin.metal give to a lane. */
static uint32_t want_rejoin(int which, uint32_t lane) {
    if (which < 2)
        return 32;
    if (which == 2)
        return (lane % 2 ? 1608u : 16u) + (lane < 16 ? 0 : 1000000u) + 320000;
    /* of 24 to 31, two lanes leave at each k from 1 on, as long as enough are there */
    return (lane % 2 ? 2412u : 24u) * 100 + 24;
}

/* Where programs are nested in other ways, random ones show it: tests/smith_answer.c. */
TEST lanes_rejoin_as_the_program_is_nested(int which) {
    static const char *const kernels[] = {"rejoin_unlikely", "rejoin_dead", "rejoin_called",
                                          "rejoin_endless"};
    uint32_t x[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        x[i] = i;
    slice in = support_buffer(x, sizeof x), out = support_buffer(NULL, sizeof x);
    ASSERT_PLAYS("rejoin.metal", kernels[which], ((size3){LANES, 1, 1}), ((size3){LANES, 1, 1}),
                 READS(in, ELEM_U32), WRITES(out, ELEM_U32));
    const uint32_t *got = support_read(out);
    for (uint32_t i = 0; i < LANES && !(which == 3 && i >= 24); i++)
        ASSERT_EQ_FMT(want_rejoin(which, i), got[i], "%u");
    PASS();
}

SUITE(simd_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    for (int i = 0; i < 4; i++)
        RUN_TESTp(lanes_rejoin_as_the_program_is_nested, i);
    for (int i = 0; i < (int)(sizeof typed / sizeof *typed); i++)
        for (math_mode m = 0; m < (is_integer(typed[i].type) ? MATH_SAFE + 1 : MATH_COUNT); m++)
            RUN_TESTp(functions_agree_with_the_model_for_any_active_lanes, m, i);
    support_set_math(MATH_SAFE);
    RUN_TEST(votes_agree_with_the_model);
    RUN_TEST(arms_of_a_divergent_branch_do_not_mix);
    RUN_TEST(lanes_that_left_a_loop_take_no_part_in_it);
    RUN_TEST(lanes_waiting_at_calls_of_different_types_keep_their_values);
}
