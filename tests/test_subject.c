/* Tapes made ready to be timed: what is timed computes what the tape does. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/meter.h"
#include "kernels/kernels.h"
#include "support.h"

SUITE(subject_suite);

static err e;

static library *kernels;

static bool open_case(kernel_case *c, const op *o, const char *name, shape s) {
    if (!kernels && support_get_device())
        kernels = library_new(support_get_device(), NULL, &e);
    *c = case_new(o, op_find_kernel(o, name), &s, INPUT_NORMAL);
    return kernels && case_open(c, kernels, 1, &e);
}

static const struct {
    const op *op;
    const char *kernel;
    shape shape;
} work[] = {
    {&ffn_silu_op, "ffn_silu", {{700}}},
    {&residual_add_inplace_op,
     "residual_add_inplace",
     {{700}}},                               /* a play finds the last's output */
    {&argmax_op, "argmax_reduce", {{5000}}}, /* two launches */
    {&dispatch_overhead_noop_op, "dispatch_overhead_noop", {{3}}}, /* a counter */
};

TEST every_regime_and_cache_state_computes_what_the_tape_does(void) {
    for (size_t w = 0; w < sizeof work / sizeof *work; w++)
        for (int r = 0; r < TIMING_REGIMES; r++)
            for (int cache = 0; cache < TIMING_CACHES; cache++) {
                kernel_case c;
                ASSERTm(e.text, open_case(&c, work[w].op, work[w].kernel, work[w].shape));
                subject_options o = {.regime = (timing_regime)r,
                                     .cache = (timing_cache)cache,
                                     .cache_bytes = 40000,
                                     .scrub = c.tape,
                                     .varies = true,
                                     .sample_s = 1e-4};
                subject *s = subject_new(c.tape, &o, &e);
                ASSERTm(e.text, s);
                ASSERTm(e.text, subject_check(s, &e));
                timing_source source = subject_get_source(s);
                timing_sample sample;
                for (int i = 0; i < 3; i++)
                    ASSERTm(e.text, source.take(source.context, &sample, &e));
                ASSERT(sample.wall_ns > 0);
                ASSERTm(e.text, subject_check_last(s, &e));
                subject_free(s);
                case_close(&c);
            }
    PASS();
}

TEST cold_has_copies_beyond_twice_the_cache(void) {
    kernel_case c;
    ASSERTm(e.text, open_case(&c, &ffn_silu_op, "ffn_silu", (shape){{1000}}));
    subject_options o = {.regime = TIMING_CHAINED, .cache = TIMING_COLD, .cache_bytes = 60000};
    subject *s = subject_new(c.tape, &o, &e);
    ASSERTm(e.text, s);
    ASSERT_EQ_FMT((size_t)12000, subject_get_facts(s).set_bytes, "%zu");
    ASSERT(subject_get_facts(s).copies * 12000 >= 2 * 60000 && subject_get_facts(s).copies < 12);
    ASSERT_EQ_FMT((size_t)0, subject_get_facts(s).repeats % subject_get_facts(s).copies, "%zu");
    subject_free(s);
    /* So small that no number of copies will do: then something must scrub. */
    o.cache_bytes = (size_t)64 << 20;
    ASSERT(!subject_new(c.tape, &o, &e));
    ASSERTm(e.text, strstr(e.text, "scrub"));
    case_close(&c);
    PASS();
}

TEST independent_plays_have_outputs_of_their_own(void) {
    kernel_case c;
    ASSERTm(e.text,
            open_case(&c, &residual_add_inplace_op, "residual_add_inplace", (shape){{100}}));
    subject_options o = {.regime = TIMING_INDEPENDENT, .cache = TIMING_WARM, .sample_s = 1};
    subject *s = subject_new(c.tape, &o, &e);
    ASSERTm(e.text, s);
    ASSERT_EQ_FMT(subject_get_facts(s).repeats, subject_get_facts(s).copies, "%zu");
    ASSERT(subject_get_facts(s).copies > 1);
    ASSERTm(e.text, subject_check(s, &e));
    subject_free(s);
    case_close(&c);
    PASS();
}

/* out = 2 * x, in tests/kernels/broken.metal. */
static void double_oracle(const launch *l, oracle_io *io) {
    (void)l;
    for (size_t i = 0; i < io->out[1].count; i++)
        io->out[1].value[i] = 2 * (double)((const float *)io->in[0])[i];
}

/* With room for kernels that hide something in the lowest bits. */
static void loose_oracle(const launch *l, oracle_io *io) {
    double_oracle(l, io);
    io->out[1].roundings = 1 << 13;
}

static bool time_kernel(const char *name, timing_regime regime, timing_cache cache, bool varies) {
    float x[32];
    for (int i = 0; i < 32; i++)
        x[i] = (float)(1 + i * i);
    launch *l = support_launch("broken.metal", name);
    if (!l)
        return false;
    launch_bind(l, 0, support_buffer(x, sizeof x), ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, support_buffer(NULL, sizeof x), ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, 32);
    launch_set_threads_rounded(l, 32, 32);
    l->oracle = strstr(name, "keeps") ? loose_oracle : double_oracle;
    subject_options o = {.regime = regime,
                         .cache = cache,
                         .cache_bytes = 1 << 10,
                         .varies = varies,
                         .sample_s = 1e-5};
    e = (err){.code = EXIT_OK};
    subject *s = subject_new(support_get_tape(), &o, &e);
    bool ok = s && subject_get_facts(s).varies == varies && subject_check(s, &e);
    timing_sample sample;
    for (int i = 0; ok && i < 3; i++)
        ok = subject_get_source(s).take(subject_get_source(s).context, &sample, &e);
    ok = ok && subject_check_last(s, &e);
    subject_free(s);
    support_end();
    return ok;
}

TEST a_wrong_kernel_has_no_time(void) {
    ASSERTm(support_get_error()->text, time_kernel("right", TIMING_CHAINED, TIMING_WARM, false));
    ASSERT(!time_kernel("one_row_wrong", TIMING_CHAINED, TIMING_WARM, false));
    ASSERT_EQ(EXIT_WRONG, e.code);
    ASSERTm(e.text, strstr(e.text, "one_row_wrong"));
    ASSERT(!time_kernel("writes_nothing", TIMING_CHAINED, TIMING_WARM, false));
    ASSERT_EQ(EXIT_WRONG, e.code);
    PASS();
}

/* It is right when it is checked: only inputs that change show that it keeps results. */
TEST a_kernel_that_keeps_results_has_no_time_in_any_regime(void) {
    for (int r = 0; r < TIMING_REGIMES; r++)
        for (int cache = 0; cache < TIMING_CACHES; cache++) {
            timing_regime regime = (timing_regime)r;
            ASSERTm(e.text, time_kernel("right", regime, (timing_cache)cache, true));
            ASSERT(!time_kernel("keeps_results", regime, (timing_cache)cache, true));
            ASSERT_EQ(EXIT_WRONG, e.code);
            ASSERT(!time_kernel("keeps_placed_results", regime, (timing_cache)cache, true));
            ASSERT_EQ(EXIT_WRONG, e.code);
            ASSERTm(e.text, strstr(e.text, "leaves different bits"));
        }
    ASSERTm(e.text, time_kernel("keeps_placed_results", TIMING_CHAINED, TIMING_WARM, false));
    PASS();
}

/* The same kernel, with the bytes that it moves and with a million times as many. */
TEST a_time_that_memory_does_not_allow_is_an_error(void) {
    meter_options o = {.plan = timing_plan_new(), .sample_s = 1e-4, .roof_s = 0.002, .window_s = 5};
    o.plan.budget_s = 0.01;
    meter *m = NULL;
    for (int lies = 0; lies < 2; lies++) {
        measurement x = {.samples = 5};
        kernel_case c;
        ASSERTm(e.text, open_case(&c, &ffn_silu_op, "ffn_silu", (shape){{700}}));
        case_close(&c);
        m = m ? m : meter_new(kernels, &bandwidth_roof_kernels, &o);
        ASSERTm(e.text, measurement_open(&x, kernels, &c, 1, TIMING_CHAINED, TIMING_WARM, &e));
        x.tape->launches[0].bytes *= lies ? 1000000 : 1;
        e = (err){.code = EXIT_OK};
        ASSERT_EQm(e.text, !lies, meter_time(m, &x, 1, &e));
        ASSERT_EQ(lies ? EXIT_WRONG : EXIT_OK, e.code);
        ASSERTm(e.text, !lies || strstr(e.text, "GB/s is not possible where the fastest plain"));
        measurement_close(&x);
    }
    meter_free(m);
    PASS();
}

SUITE(subject_suite) {
    RUN_TEST(every_regime_and_cache_state_computes_what_the_tape_does);
    RUN_TEST(cold_has_copies_beyond_twice_the_cache);
    RUN_TEST(independent_plays_have_outputs_of_their_own);
    RUN_TEST(a_wrong_kernel_has_no_time);
    RUN_TEST(a_kernel_that_keeps_results_has_no_time_in_any_regime);
    RUN_TEST(a_time_that_memory_does_not_allow_is_an_error);
    library_free(kernels);
}
