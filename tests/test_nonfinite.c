/* A NaN in a model is found and named: in the weights before anything runs, and in the launch that
 * wrote the first one. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "runner/generate/generate.h"
#include "runner/model/check.h"
#include "runner/model/nonfinite.h"

static err e;

#define TENSOR "blk.1.ffn_up.weight"
enum { ROW = 5, BLOCK = 1 };

/* A tiny model with one NaN in a tensor: a scale of block BLOCK of row ROW, or that element. */
static gguf *make_model(const char *type, bool has_nan) {
    gguf *g = models_make("tiny", type, 7, &e);
    if (!g || !has_nan)
        return g;
    const gguf_tensor *t = gguf_find_tensor(g, TENSOR);
    const uint8_t nan16[] = {0x01, 0x7E}, nan32[] = {0, 0, 0xC0, 0x7F};
    bool is_f32 = t->type->format == &format_f32;
    size_t per_row = t->dim[0] / t->type->values;
    size_t at =
        (size_t)((const uint8_t *)t->data - g->map) + (ROW * per_row + BLOCK) * t->type->bytes;
    FILE *f = fopen(g->path, "r+b");
    bool ok = f && fseek(f, (long)at, SEEK_SET) == 0 &&
              fwrite(is_f32 ? nan32 : nan16, is_f32 ? 4 : 2, 1, f) == 1;
    if (f)
        fclose(f);
    return ok ? models_keep(gguf_open(g->path, &e)) : NULL;
}

TEST a_nan_in_the_weights_is_named_with_tensor_row_and_block(const char *type) {
    gguf *good = make_model(type, false);
    ASSERT_OK(good);
    ASSERT_OK(nonfinite_scan(good, &e));
    gguf *bad = make_model(type, true);
    ASSERT_OK(bad);
    ASSERT_FALSE(nonfinite_scan(bad, &e));
    ASSERT_EQ(EXIT_WRONG, e.code);
    ASSERT_OK(strstr(e.text, TENSOR) && strstr(e.text, "row 5, block 1"));
    PASS();
}

/* Every format a file can have: the scan must see what decoding sees. */
TEST the_scan_agrees_with_decoding_for_every_format(void) {
    static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1",
                                        "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const gguf_type *type = gguf_find_type_name(types[i]);
        const weight_format *f = type->format;
        enum { BLOCKS = 3 };
        uint8_t data[BLOCKS * 1024];
        gguf_tensor t = {.name = "t", .type = type, .dims = 1, .elements = BLOCKS * f->values};
        t.dim[0] = t.elements;
        t.data = data;
        gguf g = {.tensors = &t, .tensor_count = 1, .map = data};
        for (size_t byte = 0; byte + 1 < f->bytes; byte++) {
            double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES];
            bool is_finite = true;
            memset(data, 1, sizeof data);
            memset(data + f->bytes + byte, 0xFF, 2);
            f->decode(data + f->bytes, values, magnitudes);
            for (size_t k = 0; k < f->values; k++)
                is_finite &= values[k] - values[k] == 0;
            ASSERT_EQm(types[i], is_finite, nonfinite_scan(&g, &e));
            if (!is_finite)
                ASSERT_OK(strstr(e.text, "block 1,"));
        }
    }
    PASS();
}

static bool hear(void *context, uint32_t token) {
    (void)token;
    ++*(size_t *)context;
    return true;
}

TEST logits_that_are_not_finite_name_the_first_launch(double temperature) {
    model *m = models_open(make_model("Q4_0", true), &(model_options){.context = 32}, &e);
    ASSERT_OK(m);
    const uint32_t prompt[] = {4, 5, 6};
    size_t heard = 0;
    sampler_settings settings = SAMPLER_DEFAULTS;
    settings.temperature = temperature;
    sampler *s = sampler_new(&settings, model_get_shape(m)->vocab);
    generate_options o = {.max_tokens = 8, .emit = hear, .context = &heard};
    generate_report r;
    ASSERT_FALSE(generate(m, s, prompt, 3, &o, &r, &e));
    ASSERT_EQ(EXIT_WRONG, e.code);
    ASSERT_EQ(0, heard);
    ASSERT_OK(strstr(e.text, "layer 1") && strstr(e.text, "with " TENSOR) &&
              strstr(e.text, "'up'"));
    sampler_free(s);
    PASS();
}

TEST a_check_names_the_weight_and_the_launch(void) {
    model *m = models_open(make_model("Q8_0", true), &(model_options){.context = 32}, &e);
    ASSERT_OK(m);
    const uint32_t prompt[] = {4, 5, 6};
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = 3, .tokens = 2, .reference_tokens = 2};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    ASSERT_FALSE(report.passed);
    bool names_weight = false, names_launch = false;
    for (size_t i = 0; i < report.count; i++) {
        names_weight |= strstr(report.rows[i].found, TENSOR " (Q8_0), row 5") != NULL;
        names_launch |= strstr(report.rows[i].found, "layer 1, launch") != NULL;
    }
    ASSERT(names_weight);
    ASSERT(names_launch);
    PASS();
}

TEST a_model_without_nan_has_nothing_to_trace(void) {
    model *m = models_open(make_model("Q4_0", false), &(model_options){.context = 32}, &e);
    ASSERT_OK(m);
    const uint32_t prompt[] = {4, 5, 6};
    nonfinite n;
    ASSERT_OK(model_trace(m, prompt, 3, &n, &e));
    ASSERT_FALSE(n.found);
    ASSERT_EQ(3, model_get_position(m));
    PASS();
}

SUITE(nonfinite_suite) {
    if (!models_begin(&e))
        return;
    RUN_TESTp(a_nan_in_the_weights_is_named_with_tensor_row_and_block, "Q4_0");
    RUN_TESTp(a_nan_in_the_weights_is_named_with_tensor_row_and_block, "Q8_0");
    RUN_TESTp(a_nan_in_the_weights_is_named_with_tensor_row_and_block, "F16");
    RUN_TESTp(a_nan_in_the_weights_is_named_with_tensor_row_and_block, "F32");
    RUN_TEST(the_scan_agrees_with_decoding_for_every_format);
    RUN_TESTp(logits_that_are_not_finite_name_the_first_launch, 0.0);
    RUN_TESTp(logits_that_are_not_finite_name_the_first_launch, 1.0);
    RUN_TEST(a_check_names_the_weight_and_the_launch);
    RUN_TEST(a_model_without_nan_has_nothing_to_trace);
    models_end();
}
