/* What experiments conclude from rows with known numbers in them is what these numbers say. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/experiment.h"

SUITE(conclusions_suite);

#define ASSERT_NEAR(want, got, part)                                                               \
    ASSERTm("a number is not what it must be",                                                     \
            fabs((double)(want) - (double)(got)) <= (part)*fabs((double)(want)))

static sheet *made; /* of the test that runs */

static void start_sheet(void *unused) {
    (void)unused;
    sheet_free(made);
    made = sheet_new();
}

static void put_times(const char *regime, const char *cache, const char *variant, int batch,
                      double us) {
    sheet_add_row(made);
    sheet_put_text(made, "variant", variant);
    sheet_put_text(made, "matrix", "576x576");
    sheet_put_text(made, "regime", regime);
    sheet_put_text(made, "cache", cache);
    sheet_put(made, "batch", batch);
    sheet_put(made, "launch_ns", 2e3);
    sheet_put(made, "time_ns", 1e3 * (us + 2));
}

static void put_batches(double submit, double cold, double warm, const double *compute) {
    static const char *const variants[] = {"token_outer", "reuse"};
    for (int v = 0; v < 2; v++)
        for (int b = 1; b <= 32; b *= 2) {
            double work = b * compute[v];
            put_times("single", "cold", variants[v], b, submit + cold + work);
            put_times("single", "warm", variants[v], b, submit + warm + work);
            put_times("chained", "cold", variants[v], b, cold + work);
            put_times("chained", "warm", variants[v], b, warm + work);
        }
    experiment_find("batch_scaling")->conclude(made);
}

TEST a_batch_that_saves_the_submit_is_said_to(void) {
    put_batches(100, 8, 3, (double[]){1, 0.2});
    ASSERT_NEAR(100, sheet_get_metric(made, "submit_us_576x576_token_outer"), 1e-3);
    ASSERT_NEAR(8, sheet_get_metric(made, "stream_cold_us_576x576_token_outer"), 1e-3);
    ASSERT_NEAR(3, sheet_get_metric(made, "stream_warm_us_576x576_token_outer"), 1e-3);
    ASSERT_NEAR(1, sheet_get_metric(made, "compute_us_576x576_token_outer"), 1e-3);
    ASSERT_NEAR(0.2, sheet_get_metric(made, "compute_us_576x576_reuse"), 1e-3);
    ASSERT_NEAR(4 * 106.0 / 109, sheet_get_metric(made, "speedup_4"), 1e-3);
    ASSERT_NEAR(8 * 106.0 / 113, sheet_get_metric(made, "speedup_8"), 1e-3);
    ASSERT_NEAR(4 * 11.0 / 14, sheet_get_metric(made, "speedup_4_chained"), 1e-3);
    ASSERT(strstr(sheet_get_conclusion(made, 0), "95 % is submit, 2 % launch and 3 % weights"));
    ASSERT_NEAR(1e5, sheet_find(made, "fit_submit_ns", "regime", "single", NULL), 1e-3);
    ASSERT_EQ(0, sheet_find(made, "fit_submit_ns", "regime", "chained", NULL));
    ASSERT_EQ(2e3, sheet_find(made, "fit_launch_ns", "regime", "chained", NULL));
    PASS();
}

TEST a_batch_that_saves_the_stream_is_said_to(void) {
    put_batches(1, 200, 97, (double[]){0.5, 0.5});
    ASSERT(strstr(sheet_get_conclusion(made, 0), "1 % is submit, 2 % launch and 97 % weights"));
    ASSERT(strstr(sheet_get_conclusion(made, 1), "200 µs from memory, 97 from caches"));
    ASSERT(sheet_get_metric(made, "speedup_4_chained") > 3.8);
    PASS();
}

static void put_op(const char *kind, const char *name, double launches, double us, double wall) {
    sheet_add_row(made);
    sheet_put_text(made, "kind", kind);
    sheet_put_text(made, "op", name);
    sheet_put(made, "launches", launches);
    sheet_put(made, "gpu_ns", 1e3 * us);
    sheet_put(made, "wall_ns", 1e3 * wall);
}

/* 20 launches of 0.5 us; 4 us of idle. */
static void put_token(double short_op, double long_op) {
    start_sheet(NULL);
    put_op("op", "short", 10, short_op + 5, NAN);
    put_op("op", "long", 10, long_op + 5, NAN);
    put_op("token", "token", 20, 96, 100);
    put_op("ops", "ops", 20, 0, NAN);
    put_op("launches_alone", "launches_alone", 20, 120, NAN);
    put_op("empty_launches", "empty_launches", 20, 10, NAN);
    const experiment *x = experiment_find("op_breakdown");
    x->conclude(made);
}

TEST parts_that_add_up_are_said_to(void) {
    put_token(30, 55);
    ASSERT_NEAR(85, sheet_get_metric(made, "kernels_pct"), 1e-6);
    ASSERT_NEAR(10, sheet_get_metric(made, "launches_pct"), 1e-6);
    ASSERT_NEAR(4, sheet_get_metric(made, "idle_pct"), 1e-6);
    ASSERT_NEAR(1, sheet_get_metric(made, "missing_pct"), 1e-6);
    ASSERT(strstr(sheet_get_conclusion(made, 0), "longest op is long with 55 %"));
    ASSERT(strstr(sheet_get_conclusion(made, 1), "add up to the token within 1 %"));
    ASSERT_EQ(1, sheet_find(made, "rank", "op", "long", NULL));
    ASSERT_NEAR(55e3, sheet_find(made, "start_ns", "op", "short", NULL), 1e-6);
    ASSERT_NEAR(85e3, sheet_find(made, "end_ns", "op", "short", NULL), 1e-6);
    PASS();
}

TEST parts_that_do_not_add_up_are_said_not_to(void) {
    put_token(30, 40);
    ASSERT(
        strstr(sheet_get_conclusion(made, 1), "do not add up: 16 % of the token is unaccounted"));
    put_token(50, 60);
    ASSERT(
        strstr(sheet_get_conclusion(made, 1), "do not add up: op by op the parts take 24 % more"));
    PASS();
}

static void put_launches(const char *variant, int n, double gpu, double wall) {
    sheet_add_row(made);
    sheet_put_text(made, "variant", variant);
    sheet_put(made, "launches", n);
    sheet_put(made, "gpu_ns", 1e3 * gpu);
    sheet_put(made, "wall_ns", 1e3 * wall);
}

TEST launch_submit_and_switch_are_told_apart(void) {
    static const int counts[] = {1, 10, 100, 302, 1000};
    for (size_t i = 0; i < 5; i++) {
        int n = counts[i];
        put_launches("chain", n, 1.27 * n, 100 + 1.27 * n);
        put_launches("independent", n, 0.5 * n, 100 + 0.5 * n);
        put_launches("sorted", n, 2.0 * n, 100);
        put_launches("alternating", n, 2.0 * n + 0.25 * (n - 2), 100);
    }
    put_launches("token", 302, 1900, 2131);
    experiment_find("dispatch_overhead")->conclude(made);
    ASSERT_NEAR(1.27, sheet_get_metric(made, "launch_us"), 1e-3);
    ASSERT_NEAR(0.5, sheet_get_metric(made, "launch_independent_us"), 1e-3);
    ASSERT_NEAR(100, sheet_get_metric(made, "submit_us"), 1e-3);
    ASSERT_NEAR(0.25, sheet_get_metric(made, "switch_us"), 1e-3);
    ASSERT_NEAR(383.54, sheet_get_metric(made, "chain_302_us"), 1e-3);
    ASSERT_NEAR(18, sheet_get_metric(made, "launch_share_pct"), 1e-3);
    PASS();
}

TEST a_fixed_cost_is_not_taken_for_bandwidth(void) {
    static const struct {
        const char *shape;
        double bytes;
    } sizes[] = {{"192x576", 65e3}, {"576x576", 191e3}, {"1536x576", 506e3}, {"49152x576", 16.1e6}};
    for (int i = 0; i < 8; i++) {
        double bytes = sizes[i / 2].bytes, us = bytes * 1e-3 / 100, wall = us + 100;
        sheet_add_row(made);
        sheet_put_text(made, "variant", i % 2 ? "chained" : "alone");
        sheet_put_text(made, "matrix", sizes[i / 2].shape);
        sheet_put(made, "bytes", bytes);
        sheet_put(made, "gpu_ns", 1e3 * us);
        sheet_put(made, "gb_s", bytes / us * 1e-3);
        sheet_put(made, "wall_ns", 1e3 * wall);
        sheet_put(made, "gb_s_wall", bytes / wall * 1e-3);
    }
    experiment_find("small_matrix")->conclude(made);
    ASSERT_NEAR(100, sheet_get_metric(made, "fixed_us"), 1e-3);
    ASSERT_NEAR(100, sheet_get_metric(made, "gb_s_without_fixed"), 1e-3);
    ASSERT_NEAR(0.646, sheet_get_metric(made, "gb_s_192x576"), 1e-2);
    ASSERT(sheet_get_metric(made, "time_ratio_1536_192") < 1.1);
    ASSERT(strstr(sheet_get_conclusion(made, 0), "a fixed cost of 100 µs is 99 %"));
    PASS();
}

TEST the_fastest_variant_of_each_shape_is_named(void) {
    static const char *const variants[] = {"matvec_q4_0", "matvec_q4_0_vec4",
                                           "matvec_q4_0_rowblock"};
    static const double us[2][3] = {{30, 10, 20}, {40, 30, 20}};
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 3; k++) {
            sheet_add_row(made);
            sheet_put_text(made, "variant", variants[k]);
            sheet_put_text(made, "matrix", s ? "4096x4096" : "576x576");
            sheet_put_text(made, "cache", "cold");
            sheet_put(made, "gpu_ns", 1e3 * us[s][k]);
            sheet_put(made, "gb_s", 100 / us[s][k]);
        }
    experiment_find("matvec_ladder")->conclude(made);
    ASSERT_STR_EQ("Fastest: 576x576 cold: vec4 (10 GB/s); 4096x4096 cold: rowblock (5 GB/s).",
                  sheet_get_conclusion(made, 0));
    ASSERT(strstr(sheet_get_conclusion(made, 1), "No single variant wins"));
    ASSERT_EQ(2, sheet_get_metric(made, "winners"));
    PASS();
}

TEST the_end_of_a_cache_is_found_in_the_curve(void) {
    static const double gb_s[] = {300, 310, 305, 300, 120, 118, 117};
    for (int i = 0; i < 7; i++) {
        sheet_add_row(made);
        sheet_put_text(made, "sweep", "size");
        sheet_put_text(made, "variant", "read_f32");
        sheet_put(made, "size_mb", 2 << i);
        sheet_put(made, "gb_s", gb_s[i]);
    }
    static const struct {
        const char *variant;
        double threads, gb_s;
    } reads[] = {{"read_q4_0", 32, 1.5},
                 {"read_q4_0", 65536, 2},
                 {"read_f32", 32, 5},
                 {"read_f32", 65536, 70}};
    for (int i = 0; i < 4; i++) {
        sheet_add_row(made);
        sheet_put_text(made, "sweep", "occupancy");
        sheet_put_text(made, "variant", reads[i].variant);
        sheet_put(made, "threads", reads[i].threads);
        sheet_put(made, "gb_s", reads[i].gb_s);
    }
    experiment_find("bandwidth")->conclude(made);
    ASSERT_NEAR(310, sheet_get_metric(made, "read_best_gb_s"), 1e-9);
    ASSERT_NEAR(117, sheet_get_metric(made, "read_memory_gb_s"), 1e-9);
    ASSERT_NEAR(16, sheet_get_metric(made, "cache_step_mb"), 1e-9);
    ASSERT_NEAR(1.5, sheet_get_metric(made, "read_q4_0_one_simdgroup_gb_s"), 1e-9);
    ASSERT(strstr(sheet_get_conclusion(made, 0), "the last cache ends after 16 MB"));
    /* Of either format: f32 alone differs 14-fold here. */
    ASSERT_NEAR(14, sheet_get_metric(made, "threads_f32_best_over_worst"), 1e-9);
    ASSERTm(sheet_get_conclusion(made, 1),
            strstr(sheet_get_conclusion(made, 1),
                   "f32 goes from 5 (32 threads) to 70 GB/s (65536), 14-fold"));
    ASSERT(strstr(sheet_get_conclusion(made, 1), "how many threads read matters more"));
    PASS();
}

TEST fused_against_separate_is_counted_by_shape(void) {
    static const char *const shapes[] = {"192x256", "192x576", "layer"};
    static const double row[] = {0.8, 1.2, 1.05}, group[] = {0.7, 0.9, 0.95};
    for (int i = 0; i < 9; i++) {
        static const char *const ways[] = {"separate", "fused_row", "fused_group"};
        sheet_add_row(made);
        sheet_put_text(made, "variant", ways[i % 3]);
        sheet_put_text(made, "shape", shapes[i / 3]);
        sheet_put(made, "norms", i % 3 ? 4032 : 2);
        sheet_put(made, "gpu_ns", 10 * (i % 3 == 0 ? 1 : i % 3 == 1 ? row[i / 3] : group[i / 3]));
    }
    experiment_find("fusion")->conclude(made);
    ASSERT_NEAR(5, sheet_get_metric(made, "fused_row_slowdown_pct"), 1e-6);
    ASSERT_EQ(1, sheet_get_metric(made, "fused_row_wins"));
    ASSERT_EQ(2, sheet_get_metric(made, "fused_group_wins"));
    ASSERT_EQ(2, sheet_get_metric(made, "norms_a_layer_separate"));
    ASSERT_EQ(4032, sheet_get_metric(made, "norms_a_layer_fused_row"));
    PASS();
}

TEST rates_and_their_ratios_are_those_of_the_rows(void) {
    static const double rates[] = {480, 470, 460, 300};
    for (int i = 0; i < 4; i++) {
        sheet_add_row(made);
        sheet_put(made, "context", i == 3 ? 1900 : 0);
        sheet_put(made, "tokens", i == 0 ? 20 : i == 1 ? 64 : 128);
        sheet_put(made, "tok_s", rates[i]);
    }
    experiment_find("decode")->conclude(made);
    ASSERT_EQ(460, sheet_get_metric(made, "tok_s"));
    ASSERT_NEAR(480.0 / 470, sheet_get_metric(made, "n20_over_64"), 1e-9);
    ASSERT_EQ(300, sheet_get_metric(made, "tok_s_deepest"));
    start_sheet(NULL);
    put_launches("token", 1, NAN, 1e6 / 257);
    put_launches("layer", 1, NAN, 1e6 / 200);
    put_launches("third", 1, NAN, 1e6 / 100);
    put_launches("launch", 1, NAN, 1e6 / 75);
    for (size_t r = 0; r < 4; r++) {
        static const double buffers[] = {1, 32, 91, 423};
        sheet_put_at(made, r, "command_buffers", buffers[r]);
        sheet_put_at(made, r, "tok_s", 1e9 / sheet_get(made, r, "wall_ns"));
    }
    experiment_find("command_buffers")->conclude(made);
    ASSERT_NEAR(257, sheet_get_metric(made, "tok_s_one"), 1e-6);
    ASSERT_NEAR(75, sheet_get_metric(made, "tok_s_many"), 1e-6);
    ASSERT_NEAR(100, sheet_get_metric(made, "tok_s_three_per_layer"), 1e-6);
    ASSERT_EQ(91, sheet_get_metric(made, "buffers_three_per_layer"));
    ASSERT_EQ(423, sheet_get_metric(made, "buffers_a_token_per_op"));
    PASS();
}

TEST the_synchronisations_of_an_rwkv7_are_told_apart_from_its_kernels(void) {
    put_launches("op", 1, NAN, 100e3);
    put_launches("layer", 1, NAN, 12.97e3);
    put_launches("token", 1, NAN, 10e3);
    put_launches("fused", 1, NAN, 5e3);
    put_launches("prompt", 1, NAN, 64e3);
    put_launches("first_token", 1, NAN, 9e3);
    for (size_t r = 0; r < 6; r++) {
        static const double buffers[] = {1001, 34, 1, 1, 1, 1}, tokens[] = {1, 1, 1, 1, 128, 16};
        sheet_put_at(made, r, "command_buffers", buffers[r]);
        sheet_put_at(made, r, "tok_s", 1e9 * tokens[r] / sheet_get(made, r, "wall_ns"));
        sheet_put_at(made, r, "ops_per_layer", 40);
        sheet_put_at(made, r, "fused_per_layer", 8);
        sheet_put_at(made, r, "memory_bytes", 2.1e9);
    }
    experiment_find("rwkv7_command_buffers")->conclude(made);
    ASSERT_NEAR(10, sheet_get_metric(made, "rwkv_tok_s_many"), 1e-6);
    ASSERT_NEAR(200, sheet_get_metric(made, "rwkv_tok_s_one"), 1e-6);
    ASSERT_NEAR(2000, sheet_get_metric(made, "rwkv_prefill_tok_s"), 1e-6);
    ASSERT_EQ(1280, sheet_get_metric(made, "rwkv_syncs"));
    ASSERT_EQ(1, sheet_get_metric(made, "rwkv_syncs_few"));
    ASSERT_NEAR(0.09, sheet_get_metric(made, "rwkv_sync_ms"), 1e-6);
    ASSERT_NEAR(9, sheet_get_metric(made, "rwkv_first_token_ms"), 1e-6);
    ASSERT_NEAR(2.1, sheet_get_metric(made, "rwkv_memory_gb"), 1e-9);
    PASS();
}

static void put_trial(double wanted, double planted, const char *verdict) {
    sheet_add_row(made);
    sheet_put(made, "wanted_pct", wanted);
    sheet_put(made, "planted_pct", planted);
    sheet_put_text(made, "verdict", verdict);
}

TEST shares_of_planted_slowdowns_are_counted(void) {
    for (int i = 0; i < 10; i++) {
        put_trial(0, 0, i == 3 ? "faster" : i < 2 ? "ambiguous" : "same");
        put_trial(5, 4.8, i == 0 ? "ambiguous" : "slower");
        put_trial(2, 2.1, i == 0 ? "slower" : "same");
    }
    experiment_find("sensitivity")->conclude(made);
    ASSERT_EQ(10, sheet_get_metric(made, "false_pct"));
    ASSERT_EQ(90, sheet_get_metric(made, "found_at_5_pct"));
    ASSERT_EQ(10, sheet_get_metric(made, "found_at_2_pct"));
    ASSERT(isnan(sheet_get_metric(made, "found_at_10_pct")));
    ASSERT_NEAR(4.8, sheet_get_metric(made, "smallest_found_pct"), 1e-9);
    /* Wilson's interval of 9 of 10. */
    ASSERT_NEAR(59.58, sheet_find(made, "slower_low", "wanted_pct", "5", NULL), 1e-3);
    ASSERT_NEAR(98.21, sheet_find(made, "slower_high", "wanted_pct", "5", NULL), 1e-3);
    PASS();
}

static void put_step(const char *name, double us, double gain, const char *verdict) {
    sheet_add_row(made);
    sheet_put_text(made, "variant", name);
    sheet_put(made, "wall_ns", 1e3 * us);
    sheet_put(made, "wall_q1_ns", 0.9e3 * us);
    sheet_put(made, "wall_q3_ns", 1.1e3 * us);
    sheet_put(made, "tok_s", 1e6 / us);
    sheet_put(made, "step_gain_pct", gain);
    sheet_put(made, "step_low_pct", gain - 1);
    sheet_put(made, "step_high_pct", gain + 1);
    sheet_put_text(made, "step_verdict", verdict);
}

TEST steps_of_the_stack_are_told_with_what_is_known_of_them(void) {
    put_step("separate", 8000, NAN, "");
    put_step("argmax", 7992, 0.1, "same");
    put_step("private", 8200, -2.5, "ambiguous");
    put_step("fused", 4100, 100, "faster");
    put_step("one_buffer", 500, 720, "faster");
    put_step("async", 625, -20, "slower");
    experiment_find("optimisation_stack")->conclude(made);
    ASSERT_NEAR(125, sheet_get_metric(made, "tok_s_separate"), 1e-6);
    ASSERT_NEAR(2000, sheet_get_metric(made, "tok_s_best"), 1e-6);
    ASSERT_NEAR(16, sheet_get_metric(made, "speedup_all"), 1e-6);
    ASSERT_NEAR(-20, sheet_get_metric(made, "gain_async_pct"), 1e-6);
    ASSERT_STR_EQ("From 125 to 2000 tok/s: 16 times as fast with all ideas up to one_buffer.",
                  sheet_get_conclusion(made, 0));
    ASSERT_STR_EQ("Each on top of those before it: argmax on the GPU +0.1 % (no difference), "
                  "private scratch -2.5 % (cannot be told), fused launches +100 %, one command "
                  "buffer per token +720 %, 4 tokens in flight -20 %.",
                  sheet_get_conclusion(made, 1));
    PASS();
}

/* put_step gives quartiles 10 % on both sides. */
TEST wide_quartiles_that_overlap_are_too_noisy_to_tell(void) {
    put_step("private", 810, NAN, "");
    put_step("shared", 890, NAN, "");
    experiment_find("storage_modes")->conclude(made);
    ASSERT_STR_EQ("The quartiles of the two are wide and overlap: too noisy to tell.",
                  sheet_get_conclusion(made, 1));
    PASS();
}

SUITE(conclusions_suite) {
    SET_SETUP(start_sheet, NULL);
    RUN_TEST(the_synchronisations_of_an_rwkv7_are_told_apart_from_its_kernels);
    RUN_TEST(shares_of_planted_slowdowns_are_counted);
    RUN_TEST(a_batch_that_saves_the_submit_is_said_to);
    RUN_TEST(a_batch_that_saves_the_stream_is_said_to);
    RUN_TEST(parts_that_add_up_are_said_to);
    RUN_TEST(parts_that_do_not_add_up_are_said_not_to);
    RUN_TEST(launch_submit_and_switch_are_told_apart);
    RUN_TEST(a_fixed_cost_is_not_taken_for_bandwidth);
    RUN_TEST(the_fastest_variant_of_each_shape_is_named);
    RUN_TEST(the_end_of_a_cache_is_found_in_the_curve);
    RUN_TEST(fused_against_separate_is_counted_by_shape);
    RUN_TEST(rates_and_their_ratios_are_those_of_the_rows);
    RUN_TEST(steps_of_the_stack_are_told_with_what_is_known_of_them);
    RUN_TEST(wide_quartiles_that_overlap_are_too_noisy_to_tell);
    sheet_free(made);
    made = NULL;
}
