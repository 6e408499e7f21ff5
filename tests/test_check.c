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

/* Checks one kernel and returns its verdict, or what is not as expected. */
static const char *check_kernel(const char *name, check_verdict verdict, const char *reason,
                                check_result *result) {
    static char why[900];
    bench b;
    bool ok = bench_open(&b, STORAGE_SHARED, COUNT) &&
              bench_add(&b, name, b.x, slice_whole(b.out)) && bench_check(&b);
    why[0] = 0;
    if (!ok)
        snprintf(why, sizeof why, "%s\n%.500s", b.e.text, b.e.detail);
    else if (b.result.verdict != verdict)
        snprintf(why, sizeof why, "%s: the verdict is %s", name,
                 b.result.verdict == CHECK_PASS ? "pass" : b.result.message);
    else if (!strstr(b.result.message, reason))
        snprintf(why, sizeof why, "'%s' does not say '%s'", b.result.message, reason);
    if (result)
        *result = b.result;
    bench_close(&b);
    return why[0] ? why : NULL;
}

#define ASSERT_REFUSED(kernel, reason, result)                                                     \
    do {                                                                                           \
        const char *why_ = check_kernel(kernel, CHECK_FAIL, reason, result);                       \
        ASSERTm(why_, !why_);                                                                      \
    } while (0)

TEST a_right_kernel_passes(void) {
    check_result r;
    const char *why = check_kernel("right", CHECK_PASS, "", &r);
    ASSERTm(why, !why);
    ASSERT(r.worst.count == COUNT && r.worst.max_abs == 0);
    PASS();
}

TEST a_nan_in_an_output_is_refused(void) {
    check_result r;
    ASSERT_REFUSED("gives_nan", "element 5 is nan", &r);
    ASSERT(r.worst.nonfinite == 1 && r.worst.bad == 1);
    PASS();
}

TEST an_infinity_in_an_output_is_refused(void) {
    check_result r;
    ASSERT_REFUSED("gives_infinity", "element 5 is inf", &r);
    ASSERT(r.worst.nonfinite == 1 && r.worst.bad == 1);
    PASS();
}

TEST an_output_that_nothing_wrote_is_refused(void) {
    check_result r;
    ASSERT_REFUSED("writes_nothing", "element 0 was never written", &r);
    ASSERT(r.worst.unwritten == COUNT);
    PASS();
}

TEST an_unwritten_tail_is_refused(void) {
    check_result r;
    ASSERT_REFUSED("leaves_tail", "element 28 was never written", &r);
    ASSERT(r.worst.unwritten == 2);
    PASS();
}

TEST one_wrong_row_is_refused(void) {
    check_result r;
    ASSERT_REFUSED("one_row_wrong", "element 16 is", &r);
    ASSERT(r.worst.bad == 8);
    PASS();
}

TEST swapped_rows_are_refused(void) {
    check_result r;
    ASSERT_REFUSED("rows_swapped", "element 0 is", &r);
    PASS();
}

TEST a_write_past_the_end_is_refused(void) {
    ASSERT_REFUSED("past_the_end", "past its end", NULL);
    PASS();
}

TEST a_write_before_the_start_is_refused(void) {
    ASSERT_REFUSED("before_the_start", "before its start", NULL);
    PASS();
}

TEST a_changed_input_is_refused(void) {
    ASSERT_REFUSED("changes_input", "changed its input 'x' (buffer 0): element 7", NULL);
    PASS();
}

TEST a_lost_sign_of_zero_is_refused_where_bits_must_agree(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    launch *l = bench_add(&b, "loses_sign", b.x, slice_whole(b.out));
    ASSERTm(b.e.text, l);
    l->oracle = double_it_exactly;
    ASSERTm(b.e.text, bench_check(&b));
    ASSERT(b.result.verdict == CHECK_FAIL);
    ASSERTm(b.result.message, strstr(b.result.message, "element 9 is 0, expected -0"));
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

TEST a_kernel_that_keeps_an_earlier_result_is_refused(void) {
    const check_options unordered = {.unordered = true};
    bench b;
    ASSERT_REFUSED("keeps_results", "reads 'out' (buffer 1), which it may only write", NULL);
    ASSERT_REFUSED("keeps_signed_results", "reads 'out' (buffer 1), which it may only write", NULL);
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    ASSERTm(b.e.text, bench_add(&b, "keeps_results", b.x, slice_whole(b.out)));
    ASSERTm(b.e.text, check_tape(b.tape, &unordered, &b.result, &b.e));
    ASSERT(b.result.verdict == CHECK_FAIL);
    ASSERTm(b.result.message, strstr(b.result.message, "reads 'out' (buffer 1)"));
    bench_close(&b);
    PASS();
}

TEST a_write_outside_the_bound_slice_is_refused(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, 3 * COUNT));
    slice middle = slice_part(b.out, COUNT * 4, COUNT * 4);
    ASSERTm(b.e.text, bench_add(&b, "past_the_end", b.x, middle));
    ASSERTm(b.e.text, bench_check(&b));
    ASSERT(b.result.verdict == CHECK_FAIL);
    ASSERTm(b.result.message, strstr(b.result.message, "outside the slice"));
    bench_close(&b);
    PASS();
}

TEST what_is_bound_for_both_keeps_what_is_not_written(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_SHARED, COUNT));
    launch *l = bench_add(&b, "leaves_tail", b.x, slice_whole(b.out));
    ASSERTm(b.e.text, l);
    launch_bind(l, 1, slice_whole(b.out), ACCESS_BOTH, ELEM_F32);
    ASSERTm(b.e.text, bench_check(&b));
    ASSERT(b.result.verdict == CHECK_FAIL && b.result.worst.unwritten == 0);
    ASSERTm(b.result.message, strstr(b.result.message, "element 28 is 0"));
    bench_close(&b);
    PASS();
}

TEST private_buffers_are_checked_like_shared_ones(void) {
    bench b;
    ASSERTm(b.e.text, bench_open(&b, STORAGE_PRIVATE, COUNT));
    ASSERTm(b.e.text, bench_add(&b, "right", b.x, slice_whole(b.out)));
    ASSERTm(b.e.text, bench_check(&b));
    ASSERTm(b.result.message, b.result.verdict == CHECK_PASS);
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
    RUN_TEST(a_right_kernel_passes);
    RUN_TEST(a_nan_in_an_output_is_refused);
    RUN_TEST(an_infinity_in_an_output_is_refused);
    RUN_TEST(an_output_that_nothing_wrote_is_refused);
    RUN_TEST(an_unwritten_tail_is_refused);
    RUN_TEST(one_wrong_row_is_refused);
    RUN_TEST(swapped_rows_are_refused);
    RUN_TEST(a_write_past_the_end_is_refused);
    RUN_TEST(a_write_before_the_start_is_refused);
    RUN_TEST(a_changed_input_is_refused);
    RUN_TEST(a_lost_sign_of_zero_is_refused_where_bits_must_agree);
    RUN_TEST(a_kernel_that_differs_from_run_to_run_is_refused);
    RUN_TEST(a_kernel_that_keeps_an_earlier_result_is_refused);
    RUN_TEST(a_write_outside_the_bound_slice_is_refused);
    RUN_TEST(what_is_bound_for_both_keeps_what_is_not_written);
    RUN_TEST(private_buffers_are_checked_like_shared_ones);
    RUN_TEST(each_launch_of_a_tape_is_checked_on_what_the_one_before_left);
    RUN_TEST(the_launch_that_is_wrong_is_named);
    RUN_TEST(a_launch_without_an_oracle_is_an_error_and_not_a_pass);
    RUN_TEST(an_empty_tape_is_an_error_and_not_a_pass);
}
