/* Tests of the checks, second half: kernels of tests/kernels/broken.metal, each with one bug,
 * played on the software device. check_tape must refuse every one, for the right reason. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/check/check.h"
#include "support.h"

SUITE(check_suite);

enum { COUNT = 30 };

/* What one test plays with. */
typedef struct {
    device *device;
    library *lib;
    tape *tape;
    buffer *x, *out, *last;
    check_result result;
    err e;
} bench;

/* A bug that shows only in the second run: the oracle, which is asked between the two, moves this.
 */
static uint32_t runs;

static void double_it(const launch *l, oracle_io *io) {
    (void)l;
    const float *x = io->in[0];
    for (size_t i = 0; i < oracle_u32(io, 2); i++)
        io->out[1].value[i] = 2.0 * (double)x[i];
    runs++;
}

static void double_it_exactly(const launch *l, oracle_io *io) {
    double_it(l, io);
    io->out[1].exact = true;
}

static bool bench_open(bench *b, storage_mode storage, size_t out_count) {
    *b = (bench){0};
    runs = 0;
    char home[1024], folder[1100];
    float x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = i == 9 ? -0.0f : (float)(i * i) * 0.37f - 20.0f;
    if (!os_find_home(home, sizeof home, &b->e) ||
        !(b->device = device_open(support_get_device_name(), &b->e)))
        return false;
    snprintf(folder, sizeof folder, "%s/tests/kernels", home);
    if (!(b->lib = library_new(b->device, folder, &b->e)))
        return false;
    b->tape = tape_new(b->lib);
    b->x = device_new_buffer(b->device, sizeof x, STORAGE_SHARED, "x", &b->e);
    b->out = device_new_buffer(b->device, out_count * 4, storage, "out", &b->e);
    b->last = device_new_buffer(b->device, sizeof x, STORAGE_SHARED, "last", &b->e);
    float *zeros = calloc(out_count, 4);
    bool ok = b->x && b->out && b->last && zeros && buffer_upload(b->x, 0, x, sizeof x, &b->e) &&
              buffer_upload(b->out, 0, zeros, out_count * 4, &b->e);
    free(zeros);
    return ok;
}

static void bench_close(bench *b) {
    tape_free(b->tape);
    buffer_free(b->x);
    buffer_free(b->out);
    buffer_free(b->last);
    library_free(b->lib);
    device_close(b->device);
}

static launch *bench_add(bench *b, const char *name, buffer *from, slice to) {
    launch *l = tape_add(b->tape, "broken.metal", name, &b->e);
    if (!l)
        return NULL;
    launch_bind(l, 0, slice_whole(from), ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, to, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, COUNT);
    launch_set_threads_rounded(l, COUNT, 32);
    l->oracle = double_it;
    return l;
}

static bool bench_check(bench *b) {
    const check_options options = {.unordered = false};
    return check_tape(b->tape, &options, &b->result, &b->e);
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
    {"changes_input", "changed its input 'x' (buffer 0): element 7", 0, 0, 0, 0},
    {"loses_sign", "element 9 is 0, expected -0", 1, 0, 0, EXACT},
    {"keeps_results", "reads 'out' (buffer 1), which it may only write", 0, 0, 0, 0},
    {"keeps_results", "reads 'out' (buffer 1)", 0, 0, 0, UNORDERED},
    {"keeps_signed_results", "reads 'out' (buffer 1), which it may only write", 0, 0, 0, 0},
};

TEST a_kernel_is_refused_for_its_bug(const trial *t) {
    bench b;
    const check_options how = {.unordered = t->how & UNORDERED};
    ASSERTm(b.e.text, bench_open(&b, t->how & PRIVATE ? STORAGE_PRIVATE : STORAGE_SHARED,
                                 t->how & SLICE ? 3 * COUNT : COUNT));
    slice to = t->how & SLICE ? slice_part(b.out, COUNT * 4, COUNT * 4) : slice_whole(b.out);
    launch *l = bench_add(&b, t->kernel, b.x, to);
    ASSERTm(b.e.text, l);
    l->oracle = t->how & EXACT ? double_it_exactly : double_it;
    if (t->how & BOTH)
        launch_bind(l, 1, to, ACCESS_BOTH, ELEM_F32);
    ASSERTm(b.e.text, check_tape(b.tape, &how, &b.result, &b.e));
    const comparison *c = &b.result.worst;
    ASSERT_EQm(t->kernel, t->reason ? CHECK_FAIL : CHECK_PASS, b.result.verdict);
    ASSERTm(b.result.message, !t->reason || strstr(b.result.message, t->reason));
    ASSERTm(b.result.message, t->reason || (c->count == COUNT && c->max_abs == 0));
    if (t->bad > 0)
        ASSERTm(b.result.message,
                c->bad == t->bad && c->unwritten == t->unwritten && c->nonfinite == t->nonfinite);
    bench_close(&b);
    PASS();
}

TEST a_kernel_that_differs_from_run_to_run_is_refused(void) {
    SKIP_ON_MAC();
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    if (!device_get_facts(b.device)->unified) {
        bench_close(&b);
        SKIPm("it changes memory under the kernel, and this GPU has a copy of it");
    }
    launch *l = bench_add(&b, "differs_from_run_to_run", b.x, slice_whole(b.out));
    ASSERTm(b.e.text, l);
    buffer *hidden = device_wrap_memory(b.device, &runs, sizeof runs, "runs", &b.e);
    ASSERTm(b.e.text, hidden);
    launch_bind(l, 3, slice_whole(hidden), ACCESS_READ, ELEM_U32);
    ASSERTm(b.e.text, bench_check(&b));
    ASSERT(b.result.verdict == CHECK_FAIL);
    ASSERTm(b.result.message, strstr(b.result.message, "two runs from the same state differ: "
                                                       "element 3 of 'out' (buffer 1)"));
    runs = 0;
    const check_options unordered = {.unordered = true};
    ASSERTm(b.e.text, check_tape(b.tape, &unordered, &b.result, &b.e));
    ASSERTm(b.result.message, b.result.verdict == CHECK_PASS);
    buffer_free(hidden);
    bench_close(&b);
    PASS();
}

TEST each_launch_of_a_tape_is_checked_on_what_the_one_before_left(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    ASSERTm(b.e.text, bench_add(&b, "right", b.x, slice_whole(b.out)));
    ASSERTm(b.e.text, bench_add(&b, "right", b.out, slice_whole(b.last)));
    ASSERTm(b.e.text, bench_check(&b));
    ASSERTm(b.result.message, b.result.verdict == CHECK_PASS);
    float four_times[COUNT];
    ASSERTm(b.e.text, buffer_download(b.last, 0, four_times, sizeof four_times, &b.e));
    ASSERT(four_times[0] == -80.0f);
    bench_close(&b);
    PASS();
}

TEST the_launch_that_is_wrong_is_named(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    ASSERTm(b.e.text, bench_add(&b, "right", b.x, slice_whole(b.out)));
    ASSERTm(b.e.text, bench_add(&b, "gives_nan", b.out, slice_whole(b.last)));
    ASSERTm(b.e.text, bench_check(&b));
    ASSERT(b.result.verdict == CHECK_FAIL);
    ASSERTm(b.result.message, strstr(b.result.message, "kernel gives_nan (launch 2 of 2)"));
    ASSERT_STR_EQ("'last' (buffer 1)", b.result.buffer);
    bench_close(&b);
    PASS();
}

TEST a_launch_without_an_oracle_is_an_error_and_not_a_pass(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    launch *l = bench_add(&b, "right", b.x, slice_whole(b.out));
    ASSERTm(b.e.text, l);
    l->oracle = NULL;
    ASSERT_FALSE(bench_check(&b));
    ASSERTm(b.e.text, strstr(b.e.text, "no oracle"));
    bench_close(&b);
    PASS();
}

TEST an_empty_tape_is_an_error_and_not_a_pass(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    ASSERT_FALSE(bench_check(&b));
    bench_close(&b);
    PASS();
}

SUITE(check_suite) {
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        RUN_TESTp(a_kernel_is_refused_for_its_bug, &trials[i]);
    RUN_TEST(a_kernel_that_differs_from_run_to_run_is_refused);
    RUN_TEST(each_launch_of_a_tape_is_checked_on_what_the_one_before_left);
    RUN_TEST(the_launch_that_is_wrong_is_named);
    RUN_TEST(a_launch_without_an_oracle_is_an_error_and_not_a_pass);
    RUN_TEST(an_empty_tape_is_an_error_and_not_a_pass);
}
