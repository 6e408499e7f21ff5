/* Tests of what models choose among: choices and their ways, the table of the fastest, the models
 * that follow it. Times are never judged. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "kernels/kernels.h"
#include "models.h"
#include "runner/choice/rules.h"
#include "runner/choice/tune.h"
#include "runner/model/check.h"
#include "support.h"

SUITE(tune_suite);

static err e;

/* "matvec q4_0 += 576x1536x8" */
static choice parse(const char *text) {
    char copy[CHOICE_TEXT], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", text);
    choice c = {.op = registry_find_op(strtok_r(rest, " ", &rest))};
    while ((word = strtok_r(rest, " ", &rest)))
        if (strcmp(word, "+=") == 0)
            c.accumulates = true;
        else if (!shape_parse(word, &c.shape))
            c.format = choice_find_format(word);
    return c;
}

/* --- choices --- */

static bool has_way(const char *text, const char *name) {
    choice c = parse(text);
    return choice_find_way(&c, name, &e) != NULL;
}

TEST every_way_that_takes_the_shape_is_listed(void) {
    static const char *const texts[] = {"matvec q4_0 96x64x1", "matvec q4_0 += 96x256x8",
                                        "matvec f32 5x7x1", "rmsnorm 3x64"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        choice c = parse(texts[i]);
        char text[CHOICE_TEXT];
        const kernel *ways[CHOICE_WAYS];
        size_t count = choice_list_ways(&c, ways), taken = 0;
        for (size_t k = 0; k < c.op->kernel_count; k++)
            taken += c.op->kernels[k].format == c.format &&
                     c.op->kernels[k].accumulates == c.accumulates &&
                     op_takes(c.op, &c.op->kernels[k], &c.shape, NULL);
        ASSERT_EQ_FMT(taken, count, "%zu");
        ASSERT(count > 1);
        choice_get_text(&c, text, sizeof text);
        ASSERT_STR_EQ(texts[i], text);
    }
    ASSERT(has_way("gate_up_silu q4_0 96x64x1", "apart"));
    ASSERT(has_way("decode_attention 100x4x2x64", "attention_ranges:8"));
    ASSERT_FALSE(has_way("decode_attention 100x4x2x20", "attention_ranges:8"));
    ASSERT(has_way("decode_attention 100x4x2x64", "attention_ranges_shared:8"));
    ASSERT_FALSE(has_way("decode_attention 100x4x2x96", "attention_ranges_shared:8"));
    ASSERT(has_way("decode_attention 100x4x2x64", "attention_ranges_mma:8"));
    ASSERT_FALSE(has_way("matvec q4_0 96x64x1", "apart"));
    ASSERT_FALSE(has_way("rmsnorm 1x64", "attention_ranges:8"));
    ASSERT_FALSE(has_way("matvec q4_0 96x64x8", "matvec_q4_0")); /* it takes one token */
    ASSERT(strstr(e.text, "needs 'batch' to be 1, not 8"));
    PASS();
}

/* The device kinds of the columns of golden/choices.csv: an Apple GPU of 10 cores, an H200. */
static const device_facts kinds[] = {
    {.kind = DEVICE_SOFT, .emulated = true, .offers = FEATURE_MATRICES},
    {.kind = DEVICE_METAL, .cores = 10, .offers = FEATURE_MATRICES},
    {.kind = DEVICE_CUDA,
     .cores = 132,
     .offers = FEATURE_MATRICES | FEATURE_BULK_COPIES | FEATURE_WARPGROUPS}};

/* What models of several sizes choose: a rule that changes shows here what else it changes. */
TEST the_rules_choose_what_is_listed_for_three_kinds_of_devices(void) {
    csv_file *f = csv_read(support_get_path("tests/golden/choices.csv"), &e);
    ASSERT_OK(f);
    ASSERT(csv_count_rows(f) > 200);
    for (size_t i = 0; i < csv_count_rows(f); i++) {
        const char *text = csv_get_text(f, i, 0);
        choice c = parse(text);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const kernel *way = rules_find(&kinds[k], &c, &e);
            ASSERT_STR_EQm(text, csv_get_text(f, i, k + 1), way ? way->name : e.text);
        }
    }
    csv_file_free(f);
    PASS();
}

TEST attention_is_cut_into_as_many_ranges_as_there_is_room_for(void) {
    variants_basis v = {.facts = &kinds[2]};
    shape s = {{1900, 9, 3, 64}};
    ASSERT_EQ(8, choice_count_ranges(variants_pick_decode_attention(&v, NULL, s, 8)));
    ASSERT_STR_EQ("decode_attention_spread", variants_pick_decode_attention(&v, NULL, s, 7)->name);
    for (uint32_t n = 2; n <= 32; n++)
        ASSERT(choice_count_ranges(choice_find_ranges(NULL, "ranges", n)) >= n);
    ASSERT_EQ(32, choice_count_ranges(choice_find_ranges(NULL, "ranges", 99)));
    ASSERT_EQ(44, choice_count_ranges(choice_find_ranges(NULL, "shared", 99)));
    static const struct {
        shape s;
        const weight_format *cache;
        const char *way;
    } deep[] = {{{{1900, 32, 4, 64}}, NULL, "attention_ranges:4"},
                {{{4096, 32, 4, 64}}, NULL, "attention_ranges_mma:32"},
                {{{1900, 32, 8, 128}}, NULL, "attention_ranges_shared:16"},
                {{{1900, 32, 4, 64}}, &format_f16, "attention_ranges_f16:4"},
                {{{4096, 32, 4, 64}}, &format_f16, "attention_ranges_mma_f16:32"},
                {{{4096, 32, 8, 128}}, &format_f16, "attention_ranges_mma_f16:16"},
                {{{32768, 32, 32, 128}}, NULL, "attention_ranges:4"},
                {{{300, 32, 4, 64}}, &format_f16, "decode_attention_spread_f16"}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        ASSERT_STR_EQ(deep[i].way,
                      variants_pick_decode_attention(&v, deep[i].cache, deep[i].s, 99)->name);
    v.facts = &(const device_facts){.kind = DEVICE_CUDA, .cores = 108}; /* without bulk copies */
    ASSERT_STR_EQ("attention_ranges_shared:16",
                  variants_pick_decode_attention(&v, NULL, deep[1].s, 99)->name);
    for (uint32_t keys = 1; keys < 5000; keys++) {
        uint32_t end = variants_round_keys(keys);
        ASSERT(end >= keys && end - keys < (keys < 1024 ? 64 : keys / 8));
        ASSERT_EQ(end, variants_round_keys(end));
    }
    ASSERT_EQ(UINT32_MAX, variants_round_keys(UINT32_MAX));
    PASS();
}

/* A file that is aligned to 8 bytes. */
TEST weights_that_are_less_aligned_get_a_kernel_that_takes_them(void) {
    static const device_facts cuda = {
        .kind = DEVICE_CUDA, .cores = 132, .offers = FEATURE_MATRICES};
    variants_basis v = {.facts = &cuda};
    const kernel *k = variants_pick_matvec(&v, &format_q4_0, false, 64, 4096, 4096, 1, &e);
    ASSERT_STR_EQ("matvec_q4_0_stream", k->name);
    k = variants_pick_matvec(&v, &format_q4_0, false, 72, 4096, 4096, 1, &e);
    ASSERT_STR_EQ("matvec_q4_0_vec16", k->name);
    k = variants_pick_matvec(&v, &format_f16, false, 72, 4096, 4096, 1, &e);
    ASSERT_STR_EQ("matvec_f16", k->name);
    PASS();
}

/* --- the table --- */

static void put(tuned *t, const char *text, const char *way) {
    tuned_row r = {.choice = parse(text)};
    r.way = choice_find_way(&r.choice, way, &e);
    tuned_put(t, &r);
}

static const char *find(const tuned *t, const char *text) {
    choice c = parse(text);
    const kernel *k = tuned_find(t, &c);
    return k ? k->name : "";
}

TEST a_row_holds_for_about_as_many_tokens_and_keys(void) {
    static const char *const near[][2] = {
        {"matvec q4_0 96x64x1", "multi_token_matvec_q4_0_per_thread"},
        {"matvec q4_0 96x64x2", ""},
        {"matvec q4_0 96x64x7", "multi_token_matvec_q4_0_reuse"},
        {"matvec q4_0 96x64x8", "multi_token_matvec_q4_0_reuse"},
        {"matvec q4_0 96x64x9", "multi_token_matvec_q4_0_tiled"}, /* 10 is nearer than 8 */
        {"matvec q4_0 96x64x12", "multi_token_matvec_q4_0_tiled"},
        {"matvec q4_0 96x64x20", ""},
        {"matvec q4_0 += 96x64x8", ""},
        {"matvec q8_0 96x64x8", ""},
        {"matvec q4_0 95x64x8", ""},
        {"decode_attention 64x4x2x64", "decode_attention"},
        {"decode_attention 80x4x2x64", "decode_attention"},
        {"decode_attention 512x4x2x64", "attention_ranges:4"}, /* the row of any number */
        {"decode_attention 1000x4x2x64", "attention_ranges:8"},
        {"decode_attention 512x4x2x32", ""},
        {"prefill_attention 8x0x4x2x64", "prefill_attention"},
        {"prefill_attention 8x64x4x2x64", ""},
    };
    tuned *t = tuned_new();
    put(t, "matvec q4_0 96x64x10", "multi_token_matvec_q4_0_tiled");
    put(t, "matvec q4_0 96x64x8", "multi_token_matvec_q4_0_reuse");
    put(t, "matvec q4_0 96x64x1", "multi_token_matvec_q4_0_per_thread");
    put(t, "decode_attention 1024x4x2x64", "attention_ranges:8");
    put(t, "decode_attention 64x4x2x64", "decode_attention");
    put(t, "decode_attention 0x4x2x64", "attention_ranges:4");
    put(t, "prefill_attention 8x0x4x2x64", "prefill_attention");
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        ASSERT_STR_EQm(near[i][0], near[i][1], find(t, near[i][0]));
    choice near_both = parse("matvec q4_0 96x64x9");
    tuned_drop_near(t, &near_both);
    ASSERT_EQ(5, t->count);
    ASSERT_STR_EQ("", find(t, "matvec q4_0 96x64x8"));
    tuned_free(t);
    PASS();
}

static const results_meta *make_meta(void) {
    static results_meta m;
    m = results_meta_new("test", device_get_facts(support_get_device()), 1);
    return &m;
}

/* Rows come in one order. Measured ones hold only as long as both kernels are what they were. */
TEST a_table_is_written_and_read_back_without_stale_rows(void) {
    char path[700];
    snprintf(path, sizeof path, "%s", models_get_path("new/a.csv"));
    choice c = parse("rmsnorm 1x64");
    const kernel *rule = rules_find(device_get_facts(support_get_device()), &c, &e);
    tuned *t = tuned_new();
    put(t, "rmsnorm 1x96", "rmsnorm_rows"); /* by hand: it always holds */
    put(t, "rmsnorm 1x64", "rmsnorm_simdgroup");
    put(t, "matvec q4_0 96x64x8", "multi_token_matvec_q4_0_reuse");
    tuned_row r = *tuned_get(t, &c);
    snprintf(r.gain, sizeof r.gain, "1.25");
    snprintf(r.test, sizeof r.test, "a, \"quoted\" test");
    snprintf(r.rule, sizeof r.rule, "%s", rule->name);
    ASSERT_OK(tuned_find_made_of(models_get_library(), &c, r.way, rule, r.made_of, &e));
    tuned_put(t, &r); /* in place of the other */
    ASSERT_EQ(3, t->count);
    ASSERT_OK(tuned_write(t, make_meta(), path, &e));
    tuned *back = tuned_read(path, models_get_library(), &e);
    ASSERT_OK(back);
    ASSERT(back->count == 3 && back->stale == 0);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_EQ(0, choice_compare(&t->items[i].choice, &back->items[i].choice));
        ASSERT_EQ(t->items[i].way, back->items[i].way);
        ASSERT_STR_EQ(t->items[i].made_of, back->items[i].made_of);
        ASSERT_STR_EQ(t->items[i].test, back->items[i].test);
        ASSERT_STR_EQ(t->items[i].gain, back->items[i].gain);
    }
    tuned_free(back);
    snprintf(r.made_of, sizeof r.made_of, "0123");
    tuned_put(t, &r);
    ASSERT_OK(tuned_write(t, make_meta(), path, &e) &&
              (back = tuned_read(path, models_get_library(), &e)));
    ASSERT(back->count == 2 && back->stale == 1 && !tuned_get(back, &c));
    tuned_free(back);
    t->count = 0; /* one without rows has no file */
    ASSERT_OK(tuned_write(t, make_meta(), path, &e) && access(path, F_OK) != 0);
    ASSERT_OK(tuned_write(t, make_meta(), path, &e));
    tuned_free(t);
    PASS();
}

/* By hand: nothing but the columns that are needed. */
#define HEAD "op,format,accumulates,shape,kernel\n"

static tuned *read_text(const char *text) {
    const char *path = models_get_path("t.csv");
    return os_write_file(path, text, strlen(text), &e) ? tuned_read(path, models_get_library(), &e)
                                                       : NULL;
}

TEST a_table_that_is_not_right_is_answered_with_file_and_line(void) {
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"op,format\nmatvec,q4_0\n", "accumulates"},
        {HEAD "matvec,q4_0,no,96x64x1\n", "t.csv:2"},
        {HEAD "rmsnorm,,no,1x64,rmsnorm\nwhat,,no,1x64,rmsnorm\n", "t.csv:3: models have no"},
        {HEAD "buffer_copy,,no,64,buffer_copy\n", "t.csv:2: models have no choice of an op"},
        {HEAD "matvec,q9,no,96x64x1,matvec_q4_0\n", "no weight format is called 'q9'"},
        {HEAD "matvec,q4_0,maybe,96x64x1,matvec_q4_0\n", "accumulates is yes or no"},
        {HEAD "matvec,q4_0,no,96 by 64,matvec_q4_0\n", "is not a shape"},
        {HEAD "matvec,q4_0,no,96x64x1,matvec_q4_9\n", "t.csv:2: matvec has no kernel"},
        {HEAD "matvec,q4_0,yes,96x64x1,matvec_q4_0\n", "another format or accumulation"},
        {HEAD "matvec,q4_0,no,96x64x8,matvec_q4_0\n", "needs 'batch' to be 1, not 8"},
        {HEAD "rmsnorm,,no,1x64,rmsnorm\nrmsnorm,,no,1x64,rmsnorm\n", "t.csv:3: an earlier row"},
        {"# device: another\n" HEAD, "a table of another device: 'another'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ASSERT_FALSEm(wrong[i].text, read_text(wrong[i].text));
        ASSERTm(e.text, strstr(e.text, wrong[i].says));
        ASSERT_EQ(EXIT_USAGE, e.code);
    }
    PASS();
}

/* --- models --- */

static size_t count_launches(const tape *t, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += strcmp(t->launches[i].pipeline->kernel, name) == 0;
    return count;
}

static gguf *make_model(const char *shape_name) {
    return models_make(shape_name, "Q4_0", 7, &e);
}

/* None of these is what a rule takes on the device. */
TEST a_model_takes_what_its_table_says_and_is_still_right(void) {
    const char *const kernels[] = {
        "matvec_q4_0_accumulate_vec16_rows", "gate_up_silu_q4_0_tiled_skinny", "rmsnorm",
        support_is_emulated() ? "decode_attention_threadgroup" : "decode_attention"};
    enum { KERNELS = sizeof kernels / sizeof *kernels, LAYERS = 2, PROMPT = 9 };
    gguf *g = make_model("tiny");
    tuned *t = tuned_new();
    ASSERT_OK(g);
    put(t, "matvec q4_0 += 64x160x1", kernels[0]);
    put(t, "gate_up_silu q4_0 160x64x1", kernels[1]);
    put(t, "rmsnorm 1x64", kernels[2]);
    put(t, "decode_attention 64x4x2x16", kernels[3]);
    put(t, "matvec q4_0 += 64x160x8", "multi_token_matvec_q4_0_accumulate");
    model *plain = models_open(g, &(model_options){.context = 32}, &e);
    model *m = models_open(g, &(model_options){.context = 32, .tuned = t}, &e);
    ASSERT_OK(plain && m);
    tape *before = model_get_token_tape(plain, false, &e),
         *now = model_get_token_tape(m, false, &e);
    ASSERT_OK(before && now);
    for (size_t i = 0; i < KERNELS; i++) {
        ASSERT_EQ_FMTm(kernels[i], (size_t)0, count_launches(before, kernels[i]), "%zu");
        ASSERTm(kernels[i], count_launches(now, kernels[i]) >= 1);
    }
    ASSERT_EQ(LAYERS, count_launches(now, kernels[0]));
    uint32_t prompt[PROMPT] = {1, 5, 2, 7, 9, 4, 3, 8, 6};
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = PROMPT, .tokens = 4, .reference_tokens = PROMPT};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    tuned_free(t);
    PASS();
}

/* --- tuning --- */

static tune_settings quick(void) {
    return (tune_settings){.seed = 1, .budget_s = 0.05, .min_effect = 3};
}

static bool has_choice(const choice_list *l, const char *text) {
    choice c = parse(text);
    for (size_t i = 0; i < l->count; i++)
        if (choice_compare(&l->items[i], &c) == 0)
            return true;
    return false;
}

TEST the_choices_of_a_model_are_those_of_its_tests(const char *shape_name, const char *prompt,
                                                   const char *token) {
    static const bench_test tests[] = {
        {.prompt = 8}, {.generate = 2, .depth = 70}, {.prompt = 999}};
    tuner t;
    tune_settings s = quick();
    gguf *g = make_model(shape_name);
    ASSERT_OK(g && tuner_open(&t, models_get_library(), g, tests, 3, tuned_new(), &s, &e));
    for (size_t i = 0; i < t.choices.count; i++)
        ASSERT_OK(rules_find(device_get_facts(support_get_device()), &t.choices.items[i], &e));
    ASSERTm(prompt, has_choice(&t.tests[0].choices, prompt));
    ASSERT_FALSE(has_choice(&t.tests[0].choices, token));
    ASSERTm(token, has_choice(&t.tests[1].choices, token));
    ASSERT(has_choice(&t.choices, prompt) && has_choice(&t.choices, token));
    tuner_close(&t);
    PASS();
}

/* Kernels of a GPU take many times as long on a CPU. */
TEST what_makes_the_model_slower_is_not_kept(void) {
    static const char *const slow = "gate_up_silu q4_0 160x64x1", *const unused = "rmsnorm 1x65";
    static const bench_test tests[] = {{.prompt = 8}, {.generate = 2}};
    if (!support_is_emulated())
        SKIPm("it is known of the software device alone which kernel is slow");
    tune_settings s = quick();
    tuner t;
    gguf *g = make_model("tiny");
    ASSERT_OK(g && tuner_open(&t, models_get_library(), g, tests, 2, tuned_new(), &s, &e));
    tune_comparison found;
    bool is_kept;
    tuned_row r = {.choice = parse(slow)};
    r.way = choice_find_way(&r.choice, "gate_up_silu_q4_0_tiled_skinny", &e);
    ASSERT_OK(tuner_try(&t, &r, &found, &is_kept, &e));
    ASSERT(!is_kept && found.is_slower && found.count == 1);
    ASSERT_STR_EQ("tg2", found.items[0].test); /* the prompt does not use it */
    ASSERT_EQ(0, t.table->count);
    r = (tuned_row){.choice = parse(unused)};
    r.way = choice_find_way(&r.choice, "rmsnorm", &e);
    ASSERT_OK(tuner_try(&t, &r, &found, &is_kept, &e));
    ASSERT(!is_kept && found.count == 0);
    tuner_close(&t);
    PASS();
}

SUITE(tune_suite) {
    if (!models_begin(&e))
        return;
    RUN_TEST(every_way_that_takes_the_shape_is_listed);
    RUN_TEST(the_rules_choose_what_is_listed_for_three_kinds_of_devices);
    RUN_TEST(attention_is_cut_into_as_many_ranges_as_there_is_room_for);
    RUN_TEST(weights_that_are_less_aligned_get_a_kernel_that_takes_them);
    RUN_TEST(a_row_holds_for_about_as_many_tokens_and_keys);
    RUN_TEST(a_table_is_written_and_read_back_without_stale_rows);
    RUN_TEST(a_table_that_is_not_right_is_answered_with_file_and_line);
    RUN_TEST(a_model_takes_what_its_table_says_and_is_still_right);
    RUN_TEST(what_makes_the_model_slower_is_not_kept);
    RUN_TESTp(the_choices_of_a_model_are_those_of_its_tests, "tiny", "matvec q4_0 += 64x160x8",
              "decode_attention 128x4x2x16");
    RUN_TESTp(the_choices_of_a_model_are_those_of_its_tests, "rwkv7-tiny",
              "matvec q4_0 += 128x256x8", "matvec q4_0 += 128x256x1");
    models_end();
}
