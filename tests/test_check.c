/* Tests of the checks, second half: kernels of tests/kernels/broken.metal, each with one bug,
 * played on the software device. check_tape must refuse every one, for the right reason. */
#include <greatest.h>
#include <string.h>

#include "harness/check/check.h"
#include "support.h"

SUITE(check_suite);

enum { COUNT = 30 };

static check_result result;
static err e;
static slice x, out;

/* A bug that shows only in the second run: the oracle, which is asked between the two, moves this.
 */
static uint32_t runs;

static void double_it(const launch *l, oracle_io *io) {
    (void)l;
    const float *in = io->in[0];
    for (size_t i = 0; i < oracle_u32(io, 2); i++)
        io->out[1].value[i] = 2.0 * (double)in[i];
    runs++;
}

static void double_it_exactly(const launch *l, oracle_io *io) {
    double_it(l, io);
    io->out[1].exact = true;
}

static void begin(void *unused) {
    (void)unused;
    const float zeros[COUNT] = {0};
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i == 9 ? -0.0f : (float)(i * i) * 0.37f - 20.0f;
    runs = 0;
    x = support_buffer(values, sizeof values);
    out = support_buffer(zeros, sizeof zeros);
}

static launch *prepare(launch *l, slice from, slice to) {
    if (!l)
        return NULL;
    launch_bind(l, 0, from, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, to, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, COUNT);
    launch_set_threads_rounded(l, COUNT, 32);
    l->oracle = double_it;
    return l;
}

/* The first launch of the tape, and one after it. */
static launch *start(const char *name, slice to) {
    return prepare(support_launch("broken.metal", name), x, to);
}

static launch *add(const char *name, slice from, slice to) {
    return prepare(tape_add(support_get_tape(), "broken.metal", name, &e), from, to);
}

static bool check(bool is_unordered) {
    const check_options options = {.unordered = is_unordered};
    return check_tape(support_get_tape(), &options, &result, &e);
}

enum { EXACT = 1, UNORDERED = 2, PRIVATE = 4, SLICE = 8 /* the middle of the buffer */, BOTH = 16 };

/* One kernel of broken.metal, and what check_tape must find. */
typedef struct {
    const char *kernel, *reason;      /* NULL: it passes */
    size_t bad, unwritten, nonfinite; /* bad 0: whatever they are */
    int how;
} trial;

static const trial trials[] = {
    {"right", NULL, 0, 0, 0, 0},
    {"right", NULL, 0, 0, 0, PRIVATE},
    {"gives_nan", "element 5 is nan", 1, 0, 1, 0},
    {"gives_infinity", "element 5 is inf", 1, 0, 1, 0},
    {"writes_nothing", "element 0 was never written", COUNT, COUNT, COUNT, 0},
    {"leaves_tail", "element 28 was never written", 2, 2, 2, 0},
    {"leaves_tail", "element 28 is 0", 2, 0, 0, BOTH}, /* what it does not write stays */
    {"one_row_wrong", "element 16 is", 8, 0, 0, 0},
    {"rows_swapped", "element 0 is", 0, 0, 0, 0},
    {"past_the_end", "past its end", 0, 0, 0, 0},
    {"past_the_end", "outside the slice", 0, 0, 0, SLICE},
    {"before_the_start", "before its start", 0, 0, 0, 0},
    {"changes_input", "changed its input 'test' (buffer 0): element 7", 0, 0, 0, 0},
    {"loses_sign", "element 9 is 0, expected -0", 1, 0, 0, EXACT},
    {"keeps_results", "reads 'test' (buffer 1), which it may only write", 0, 0, 0, 0},
    {"keeps_results", "reads 'test' (buffer 1)", 0, 0, 0, UNORDERED},
    {"keeps_signed_results", "reads 'test' (buffer 1), which it may only write", 0, 0, 0, 0},
};

TEST a_kernel_is_refused_for_its_bug(const trial *t) {
    const float zeros[3 * COUNT] = {0};
    slice to = out;
    if (t->how & PRIVATE)
        to = support_private_buffer(zeros, COUNT * 4);
    if (t->how & SLICE)
        to = slice_part(support_buffer(zeros, sizeof zeros).buffer, COUNT * 4, COUNT * 4);
    launch *l = start(t->kernel, to);
    ASSERTm(support_get_error()->text, l);
    l->oracle = t->how & EXACT ? double_it_exactly : double_it;
    if (t->how & BOTH)
        launch_bind(l, 1, to, ACCESS_BOTH, ELEM_F32);
    ASSERTm(e.text, check(t->how & UNORDERED));
    const comparison *c = &result.worst;
    ASSERT_EQm(t->kernel, t->reason ? CHECK_FAIL : CHECK_PASS, result.verdict);
    ASSERTm(result.message, !t->reason || strstr(result.message, t->reason));
    ASSERTm(result.message, t->reason || (c->count == COUNT && c->max_abs == 0));
    if (t->bad > 0)
        ASSERTm(result.message,
                c->bad == t->bad && c->unwritten == t->unwritten && c->nonfinite == t->nonfinite);
    PASS();
}

TEST a_kernel_that_differs_from_run_to_run_is_refused(void) {
    SKIP_ON_MAC();
    if (!device_get_facts(support_get_device())->unified)
        SKIPm("it changes memory under the kernel, and this GPU has a copy of it");
    launch *l = start("differs_from_run_to_run", out);
    ASSERTm(support_get_error()->text, l);
    buffer *hidden = device_wrap_memory(support_get_device(), &runs, sizeof runs, "runs", &e);
    ASSERTm(e.text, hidden);
    launch_bind(l, 3, slice_whole(hidden), ACCESS_READ, ELEM_U32);
    ASSERTm(e.text, check(false));
    ASSERT(result.verdict == CHECK_FAIL);
    ASSERTm(result.message, strstr(result.message, "two runs from the same state differ: "
                                                   "element 3 of 'test' (buffer 1)"));
    runs = 0;
    ASSERTm(e.text, check(true));
    ASSERTm(result.message, result.verdict == CHECK_PASS);
    buffer_free(hidden);
    PASS();
}

TEST each_launch_of_a_tape_is_checked_on_what_the_one_before_left(void) {
    slice last = support_buffer(NULL, COUNT * 4);
    ASSERT(start("right", out) && add("right", out, last));
    ASSERTm(e.text, check(false));
    ASSERTm(result.message, result.verdict == CHECK_PASS);
    ASSERT(*(const float *)support_read(last) == -80.0f);
    PASS();
}

TEST the_launch_that_is_wrong_is_named(void) {
    ASSERT(start("right", out) && add("gives_nan", out, support_buffer(NULL, COUNT * 4)));
    ASSERTm(e.text, check(false));
    ASSERT(result.verdict == CHECK_FAIL);
    ASSERTm(result.message, strstr(result.message, "kernel gives_nan (launch 2 of 2)"));
    ASSERT_STR_EQ("'test' (buffer 1)", result.buffer);
    PASS();
}

TEST a_launch_without_an_oracle_is_an_error_and_not_a_pass(void) {
    launch *l = start("right", out);
    ASSERTm(support_get_error()->text, l);
    l->oracle = NULL;
    ASSERT_FALSE(check(false));
    ASSERTm(e.text, strstr(e.text, "no oracle"));
    PASS();
}

TEST an_empty_tape_is_an_error_and_not_a_pass(void) {
    const check_options options = {0};
    tape *empty = tape_new(support_get_library());
    ASSERT_FALSE(check_tape(empty, &options, &result, &e));
    tape_free(empty);
    PASS();
}

SUITE(check_suite) {
    SET_SETUP(begin, NULL);
    SET_TEARDOWN(support_end_test, NULL);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        RUN_TESTp(a_kernel_is_refused_for_its_bug, &trials[i]);
    RUN_TEST(a_kernel_that_differs_from_run_to_run_is_refused);
    RUN_TEST(each_launch_of_a_tape_is_checked_on_what_the_one_before_left);
    RUN_TEST(the_launch_that_is_wrong_is_named);
    RUN_TEST(a_launch_without_an_oracle_is_an_error_and_not_a_pass);
    RUN_TEST(an_empty_tape_is_an_error_and_not_a_pass);
}
