/* Checked mode of the software device: every canary is caught, wrong kernels are reported with the
 * right numbers. test_exact.c has right kernels, which give no findings, and many more wrong ones. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/check/suite.h"
#include "harness/device/soft/engine.h"
#include "support.h"

SUITE_EXTERN(checked_suite);

enum { N = 128 };

static buffer *in, *out;
static err last;

static float *contents(buffer *b) {
    return b->contents;
}

/* A checked device in place of the plain one of the other suites. */
static bool open_checked(const char *more) {
    char variables[96];
    snprintf(variables, sizeof variables, "MTL_SHADER_VALIDATION=1 ASSAY_LOOP_SECONDS=0.2 %s",
             more);
    return support_open(NULL, variables);
}

/* One launch over N threads in groups of 64; `in` counts up, `out` is as nothing had written it. */
static launch *prepare(const char *name) {
    launch *l = support_launch("checked.metal", name);
    if (!l)
        return NULL;
    in = support_buffer(NULL, N * 4).buffer;
    out = support_buffer(NULL, N * 4).buffer;
    for (int i = 0; i < N; i++)
        contents(in)[i] = (float)(i + 1);
    launch_set_groups(l, (size3){2, 1, 1}, (size3){N / 2, 1, 1});
    return l;
}

static launch *prepare_pair(const char *name) {
    launch *l = prepare(name);
    if (l) {
        launch_bind(l, 0, slice_whole(in), ACCESS_READ, ELEM_F32);
        launch_bind(l, 1, slice_whole(out), ACCESS_BOTH, ELEM_F32);
    }
    return l;
}

static const finding_list *play(void) {
    static const finding_list failed;
    device_clear_findings(support_get_device());
    return support_play() ? device_get_findings(support_get_device()) : &failed;
}

static const finding *find(const finding_list *list, finding_class what) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].what == what)
            return &list->items[i];
    return NULL;
}

static int find_line(const char *text) {
    char *file = os_read_file(support_get_path("tests/kernels/checked.metal"), NULL, &last);
    const char *found = file ? strstr(file, text) : NULL;
    int line = found ? 1 : 0;
    for (const char *p = file; found && p < found; p++)
        line += *p == '\n';
    free(file);
    return line;
}

static bool play_canary(const canary *c, bool *caught, char *message, size_t size) {
    library *lib = canary_new_library(support_get_device(), &last);
    bool ok = lib && canary_play(lib, c, caught, message, size, &last);
    library_free(lib);
    return ok;
}

TEST every_canary_is_caught_at_its_line(size_t i) {
    if (!canary_is_for(&canaries[i], device_get_facts(support_get_device())))
        SKIPm("it is for a build that traces values");
    bool caught = false;
    char message[200] = "";
    ASSERTm(last.text, play_canary(&canaries[i], &caught, message, sizeof message));
    ASSERTm(message, caught);
    PASS();
}

/* As on macOS. */
TEST an_index_that_leaves_its_binding_is_caught_where_kernels_run_in_a_thread(void) {
    size_t i = 0;
    while (strcmp(canaries[i].kernel, "canary_other_binding") != 0)
        i++;
    soft_engine_use_threads(true);
    bool caught = false;
    char message[200] = "";
    bool ok = play_canary(&canaries[i], &caught, message, sizeof message);
    soft_engine_use_threads(false);
    ASSERTm(last.text, ok);
    ASSERTm(message, caught);
    PASS();
}

TEST bad_loads_give_zero_and_bad_stores_are_dropped(int by) {
    launch *l = prepare_pair("far_outside");
    ASSERTm(support_get_error()->text, l);
    launch_set_bytes(l, 2, &by, sizeof by);
    const finding_list *found = play();
    const finding *load = find(found, FINDING_LOAD_OUTSIDE);
    const finding *store = find(found, FINDING_STORE_OUTSIDE);
    ASSERT(load && store);
    ASSERT_EQ_FMT(2u, (unsigned)found->count, "%u");
    ASSERT_EQ_FMT(find_line("out[i] = in[at]"), load->line, "%d");
    ASSERT_EQ_FMT(find_line("out[at] = 7"), store->line, "%d");
    ASSERT_EQ(0, load->buffer);
    ASSERT_EQ(1, store->buffer);
    ASSERT_STR_EQ("test", load->label);
    ASSERT_STR_EQ("checked.metal", load->file);
    const int64_t outside = by > 0 ? (by < N ? by : N) : (-by < N ? -by : N);
    ASSERT_EQ_FMT((long long)outside, (long long)load->count, "%lld");
    ASSERT_EQ_FMT((long long)(by > 0 ? (by < N ? N : by) : by), (long long)load->element, "%lld");
    for (int i = 0; i < N; i++) {
        bool inside = i + by >= 0 && i + by < N;
        ASSERT_EQ_FMT(inside ? (double)(i + by + 1) : 0.0, (double)contents(out)[i], "%g");
    }
    ptrdiff_t at;
    ASSERT(buffer_check_guards(out, &at, &last));
    ASSERT(buffer_check_guards(in, &at, &last));
    PASS();
}

TEST an_index_that_underflows_is_reported_and_survived(const char *name, finding_class what,
                                                       int index) {
    launch *l = prepare_pair(name);
    ASSERTm(support_get_error()->text, l);
    const finding *f = find(play(), what);
    ASSERT(f);
    ASSERT_EQ(1u, f->count);
    ASSERT_EQ(0u, f->thread[0]);
    ASSERT_EQ_FMT(index, f->buffer, "%d");
    ASSERT_EQ_FMT(-1LL, (long long)f->element, "%lld");
    ASSERT_EQ(4, f->by);
    ASSERT_EQ(what == FINDING_LOAD_OUTSIDE ? 1.0f : 3.0f, contents(out)[1]);
    PASS();
}

/* A launch with atomics runs again with threads that take turns; that is what remains. */
TEST updates_are_lost_where_threads_take_turns(void) {
    const char *const named = ", when threads take turns at atomics";
    launch *l = prepare("counted_twice");
    ASSERTm(support_get_error()->text, l);
    memset(out->contents, 0, N * 4);
    launch_bind(l, 0, slice_whole(out), ACCESS_BOTH, ELEM_U32);
    const finding_list *found = play();
    const uint32_t *count = out->contents;
    ASSERT_EQ_FMT((unsigned)N, (unsigned)count[0], "%u");
    ASSERT_EQ_FMT(2u, (unsigned)count[1], "%u"); /* one for each threadgroup */
    ASSERT_EQ_FMT(2u, (unsigned)found->count, "%u");
    ASSERT(!strstr(found->items[0].text, named) && strstr(found->items[1].text, named));
    PASS();
}

TEST findings_are_folded_with_a_count(void) {
    int by = 1;
    launch *l = prepare_pair("far_outside");
    ASSERTm(support_get_error()->text, l);
    launch_set_bytes(l, 2, &by, sizeof by);
    play();
    const finding_list *found = device_get_findings(support_get_device());
    size_t kinds = found->count;
    ASSERT(support_play());
    ASSERT_EQ(kinds, found->count);
    ASSERT_EQ(2u, find(found, FINDING_LOAD_OUTSIDE)->count);
    device_clear_findings(support_get_device());
    ASSERT_EQ(0u, found->count);
    PASS();
}

/* On a device that traces values: one that cannot play it gives no finding. */
static const finding_list *play_traced(const char *name) {
    static const finding_list failed;
    return open_checked("ASSAY_TRACE_NAN=1") && prepare_pair(name) ? play() : &failed;
}

TEST the_birth_of_a_nan_is_traced_to_its_line(void) {
    const finding_list *found = play_traced("births");
    ASSERT_EQ_FMT(2u, (unsigned)found->count, "%u");
    const finding *nan = &found->items[0], *infinity = &found->items[1];
    ASSERT(nan->what == FINDING_NAN_BORN && infinity->what == FINDING_NAN_BORN);
    ASSERT_EQ_FMT(find_line("y = zero / zero"), nan->line, "%d");
    ASSERT_EQ_FMT(find_line("x / zero"), infinity->line, "%d");
    ASSERT(nan->thread[0] == 5 && infinity->thread[0] == 7);
    PASS();
}

TEST the_birth_of_a_nan_in_a_function_is_traced_to_its_return(void) {
    const finding_list *found = play_traced("births_in_returns");
    ASSERT_EQ_FMT(1u, (unsigned)found->count, "%u");
    ASSERT(found->items[0].what == FINDING_NAN_BORN);
    ASSERT_EQ_FMT(find_line("           x;\n}"), found->items[0].line, "%d");
    PASS();
}

TEST who_stored_a_wrong_element_is_found(void) {
    launch *l = open_checked("") ? prepare_pair("births") : NULL;
    ASSERTm(support_get_error()->text, l);
    l->watched = slice_part(out, 9 * 4, 4);
    const finding *f = find(play(), FINDING_WRONG);
    ASSERT(f);
    ASSERT_EQ_FMT(find_line("out[i] = y + z"), f->line, "%d");
    ASSERT_EQ_FMT(9, (int)f->element, "%d");
    ASSERT_EQ_FMT(9u, f->thread[0], "%u");
    PASS();
}

SUITE(checked_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    if (!open_checked(""))
        fprintf(stderr, "%s\n", support_get_error()->text);
    for (size_t i = 0; i < canary_count; i++)
        RUN_TESTp(every_canary_is_caught_at_its_line, i);
    RUN_TEST(an_index_that_leaves_its_binding_is_caught_where_kernels_run_in_a_thread);
    static const int by[] = {1, 3, 100000, -1, -3};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        RUN_TESTp(bad_loads_give_zero_and_bad_stores_are_dropped, by[i]);
    RUN_TESTp(an_index_that_underflows_is_reported_and_survived, "underflow", FINDING_LOAD_OUTSIDE,
              0);
    RUN_TESTp(an_index_that_underflows_is_reported_and_survived, "underflow_of_a_store",
              FINDING_STORE_OUTSIDE, 1);
    RUN_TEST(updates_are_lost_where_threads_take_turns);
    RUN_TEST(findings_are_folded_with_a_count);
    RUN_TEST(the_birth_of_a_nan_is_traced_to_its_line);
    RUN_TEST(the_birth_of_a_nan_in_a_function_is_traced_to_its_return);
    RUN_TEST(who_stored_a_wrong_element_is_found);
    support_close();
}
