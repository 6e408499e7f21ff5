/* The model interface with a family that is not llama: a recurrent one, made here, whose state is
 * overwritten by every token and that has no limit of length. What model.h promises must hold for
 * it too: rewinding, keeping, tokens in flight, the whole check. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "reference/reference.h"
#include "runner/generate/generate.h"
#include "runner/gguf/synth.h"
#include "runner/model/check.h"
#include "runner/model/family.h"

static gguf *file; /* a tiny llama, of which only embedding and last norm are used */
static err e;

/* --- the family: s = norm(s + embedding[token]), logits = embedding s --- */

#define EPS 1e-5f

typedef struct {
    weight embedding, norm;
    slice x, sum, s;
} fold;

static bool read_shape(const gguf *g, model_shape *out, err *why) {
    const gguf_tensor *t = gguf_find_tensor(g, "token_embd.weight");
    if (!t)
        return err_set(why, EXIT_CANNOT, "the model has no embedding");
    *out = (model_shape){
        .family = "fold", .layers = 1, .hidden = (uint32_t)t->dim[0], .vocab = (uint32_t)t->dim[1]};
    return true;
}

static bool open_fold(model *m, err *why) {
    fold *f = m->own = calloc(1, sizeof *f);
    uint32_t d = m->shape.hidden;
    return model_find_matrix(m, "token_embd.weight", m->shape.vocab, d, &f->embedding, why) &&
           model_find_floats(m, "output_norm.weight", d, &f->norm, why) &&
           model_make(m, MEMORY_SCRATCH, "x", m->tile, d, &f->x, why) &&
           model_make(m, MEMORY_SCRATCH, "sum", 1, d, &f->sum, why) &&
           model_make(m, MEMORY_STATE, "s", 1, d, &f->s, why);
}

static bool record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                   bool has_head, err *why) {
    (void)attention;
    const fold *f = m->own;
    uint32_t d = m->shape.hidden;
    if (!model_record_embedding(m, t, &f->embedding, ids, f->x, tokens, why))
        return false;
    model_mark_layer(t, 0);
    for (uint32_t i = 0; i < tokens; i++)
        if (!residual_add_record(t, &residual_add_op.kernels[0], f->s, model_take_row(f->x, i, d),
                                 f->sum, d, why) ||
            !rmsnorm_record(t, &rmsnorm_op.kernels[0], f->sum, f->norm.at, f->s, 1, d, EPS, why))
            return false;
    tape_mark(t, "head");
    return !has_head || model_record_product(m, t, &f->embedding, f->s, m->logits, false, 1, why);
}

typedef struct {
    const gguf_tensor *embedding, *norm;
    double *s, *row, *scale;
    shaker *shaker;
} fold_reference;

static void *new_reference(const model *m, size_t count, reference_memory *memory, err *why) {
    (void)count;
    (void)why;
    fold_reference *r = reference_make(memory, 1, sizeof *r);
    size_t d = m->shape.hidden;
    *r = (fold_reference){gguf_find_tensor(m->file, "token_embd.weight"),
                          gguf_find_tensor(m->file, "output_norm.weight"),
                          reference_make(memory, d, sizeof(double)),
                          reference_make(memory, d, sizeof(double)),
                          reference_make(memory, d, sizeof(double)),
                          &memory->shaker};
    reference_decode_row(&format_f32, r->norm->data, 0, d, r->scale);
    return r;
}

static void step_reference(void *own, uint32_t token, double *logits) {
    fold_reference *r = own;
    size_t d = r->embedding->dim[0];
    shaken_sum squares = {0};
    reference_decode_row(r->embedding->type->format, r->embedding->data, token, d, r->row);
    for (size_t i = 0; i < d; i++) {
        r->s[i] = shake_few(r->shaker, r->s[i] + r->row[i]);
        shake_add(&squares, r->s[i] * r->s[i]);
    }
    double mean = shake_end(r->shaker, &squares) / (double)d;
    for (size_t i = 0; i < d; i++)
        r->s[i] = shake_few(r->shaker, r->s[i] * r->scale[i] / sqrt(mean + (double)EPS));
    for (size_t v = 0; logits && v < r->embedding->dim[1]; v++) {
        reference_decode_row(r->embedding->type->format, r->embedding->data, v, d, r->row);
        shaken_sum sum = {0};
        for (size_t i = 0; i < d; i++)
            shake_add(&sum, r->row[i] * r->s[i]);
        logits[v] = shake_end(r->shaker, &sum);
    }
}

static const model_family fold_family = {.name = "fold",
                                         .read_shape = read_shape,
                                         .open = open_fold,
                                         .close = free,
                                         .record = record,
                                         .new_reference = new_reference,
                                         .step_reference = step_reference};

/* --- what model.h promises --- */

enum { TOKENS = 12 };
static uint32_t tokens[TOKENS];
static float *logits[TOKENS + 1]; /* [n]: after n tokens, as they must be */
static size_t logit_bytes;

static model *open_fold_model(uint32_t tile) {
    return models_open(file, &(model_options){.tile = tile, .family = &fold_family}, &e);
}

static bool make_expected(void) {
    const char *path = models_get_path("fold.gguf");
    synth_options o = {.seed = 5, .type = gguf_find_type_name("Q4_0")};
    if (!synth_write_model(synth_find_shape("tiny", &e), path, &o, &e) ||
        !(file = gguf_open(path, &e)))
        return false;
    model *m = open_fold_model(0);
    rng r = rng_new(3, "fold");
    logit_bytes = m ? m->shape.vocab * sizeof(float) : 0;
    for (size_t i = 0; m && i < TOKENS; i++) {
        tokens[i] = rng_below(&r, m->shape.vocab);
        logits[i + 1] = malloc(logit_bytes);
        if (!model_forward_token(m, tokens[i], PLAY_WHOLE, logits[i + 1], NULL, &e))
            return false;
    }
    return m != NULL;
}

TEST a_recurrent_model_can_be_opened_and_run(void) {
    ASSERT_OK(make_expected());
    PASS();
}

TEST a_recurrent_model_passes_its_check(void) {
    model *m = open_fold_model(0);
    ASSERT_OK(m);
    model_check_options o = {
        .prompt = tokens, .prompt_tokens = TOKENS, .tokens = 9, .reference_tokens = TOKENS};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    ASSERT_EQ(6, report.count);
    PASS();
}

TEST a_model_without_a_limit_always_has_room(void) {
    model *m = open_fold_model(0);
    ASSERT_OK(m);
    ASSERT_EQ(0, model_get_shape(m)->context);
    ASSERT_EQ(UINT32_MAX, model_get_room(m));
    model_memory memory = model_get_memory(m);
    ASSERT_EQ(m->shape.hidden * sizeof(float), memory.state);
    ASSERT(memory.weights >= gguf_find_tensor(file, "token_embd.weight")->bytes);
    ASSERT(memory.scratch > logit_bytes);
    PASS();
}

/* The next token gives what it gives where nothing was ever taken back. */
static enum greatest_test_res goes_on_from(model *m, uint32_t position) {
    float *got = models_new_logits(m);
    ASSERT_EQ(position, model_get_position(m));
    ASSERT_OK(model_forward_token(m, tokens[position], PLAY_WHOLE, got, NULL, &e));
    ASSERT_MEM_EQ(logits[position + 1], got, logit_bytes);
    PASS();
}

TEST a_state_is_brought_back_from_any_position_to_any_before(bool keeps) {
    float *got = malloc(logit_bytes);
    for (uint32_t from = 1; from < TOKENS; from += 3)
        for (uint32_t to = 0; to <= from; to++) {
            model *m = open_fold_model(0);
            ASSERT_OK(m);
            for (uint32_t i = 0; i < from; i++) {
                ASSERT_OK(model_forward_token(m, tokens[i], PLAY_WHOLE, got, NULL, &e));
                ASSERT_OK(!keeps || i != from / 2 || model_keep(m, &e));
            }
            model_rewind(m, to);
            if (to % 2)
                ASSERT_OK(model_settle(m, &e)); /* else the play does */
            CHECK_CALL(goes_on_from(m, to));
        }
    free(got);
    PASS();
}

TEST a_kept_state_is_not_that_of_other_tokens(void) {
    model *m = open_fold_model(5);
    ASSERT_OK(m);
    float *got = models_new_logits(m);
    uint32_t others[7] = {9, 8, 7, 6, 5, 4, 3};
    ASSERT_OK(model_forward_prompt(m, others, 7, PLAY_WHOLE, got, NULL, &e));
    ASSERT_OK(model_keep(m, &e));
    model_rewind(m, 0);
    ASSERT_OK(model_forward_prompt(m, tokens, 8, PLAY_WHOLE, got, NULL, &e));
    ASSERT_MEM_EQ(logits[8], got, logit_bytes);
    model_rewind(m, 7);
    CHECK_CALL(goes_on_from(m, 7));
    PASS();
}

TEST what_an_experiment_plays_leaves_no_trace(void) {
    model *m = open_fold_model(0);
    ASSERT_OK(m);
    float *got = models_new_logits(m);
    ASSERT_OK(model_forward_prompt(m, tokens, 4, PLAY_WHOLE, got, NULL, &e));
    ASSERT_OK(model_keep(m, &e));
    tape *t = model_get_token_tape(m, true, &e);
    ASSERT_OK(t);
    ASSERT_OK(model_place(m, tokens[4], &e));
    for (int i = 0; i < 3; i++) {
        play_times times;
        ASSERT_OK(tape_play(t, PLAY_LAUNCHES, &times, NULL, &e));
    }
    CHECK_CALL(goes_on_from(m, 4));
    PASS();
}

static bool count_down(void *context) {
    return (*(int *)context)-- > 0;
}

TEST a_prompt_can_be_stopped_between_tiles(void) {
    model *m = open_fold_model(3);
    ASSERT_OK(m);
    float *got = models_new_logits(m);
    int left = 2;
    model_set_watch(m, count_down, &left);
    ASSERT_FALSE(model_forward_prompt(m, tokens, TOKENS, PLAY_WHOLE, got, NULL, &e));
    ASSERT_EQ(EXIT_INCONCLUSIVE, e.code);
    ASSERT_OK(strstr(e.text, "after 6 of 12 tokens"));
    model_set_watch(m, NULL, NULL);
    CHECK_CALL(goes_on_from(m, 6));
    PASS();
}

typedef struct {
    uint32_t tokens[32];
    size_t count, most;
} heard;

static bool hear(void *context, uint32_t token) {
    heard *h = context;
    h->tokens[h->count++] = token;
    return h->count < h->most;
}

TEST tokens_in_flight_after_a_stop_are_forgotten(void) {
    model *m = open_fold_model(0);
    ASSERT_OK(m);
    sampler_settings greedy = SAMPLER_DEFAULTS;
    heard all = {.most = 32}, cut = {.most = 5};
    for (int i = 0; i < 2; i++) {
        sampler *s = sampler_new(&greedy, m->shape.vocab);
        generate_options o = {
            .max_tokens = 20, .in_flight = i ? 8 : 1, .emit = hear, .context = i ? &cut : &all};
        generate_report report;
        model_rewind(m, 0);
        ASSERT_OK(generate(m, s, tokens, 6, &o, &report, &e));
        sampler_free(s);
    }
    ASSERT_EQ(20, all.count);
    ASSERT_EQ(5, cut.count);
    ASSERT_EQ(10, model_get_position(m)); /* the fifth was chosen, not fed */
    ASSERT_MEM_EQ(all.tokens, cut.tokens, 5 * sizeof *cut.tokens);
    for (size_t i = 5; i < 20; i++) {
        ASSERT_OK(model_forward_greedy(m, cut.tokens[i - 1], PLAY_WHOLE, &cut.tokens[i], NULL, &e));
        ASSERT_EQ(all.tokens[i], cut.tokens[i]);
    }
    PASS();
}

TEST a_family_that_is_unknown_is_named_with_those_that_are_not(void) {
    ASSERT_FALSE(families_find((gguf_text){"mamba", 5}, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT(strstr(e.text, "'mamba'") && strstr(e.text, "llama"));
    PASS();
}

SUITE(model_suite) {
    if (!models_begin(&e))
        return;
    RUN_TEST(a_recurrent_model_can_be_opened_and_run);
    RUN_TEST(a_recurrent_model_passes_its_check);
    RUN_TEST(a_model_without_a_limit_always_has_room);
    RUN_TESTp(a_state_is_brought_back_from_any_position_to_any_before, false);
    RUN_TESTp(a_state_is_brought_back_from_any_position_to_any_before, true);
    RUN_TEST(a_kept_state_is_not_that_of_other_tokens);
    RUN_TEST(what_an_experiment_plays_leaves_no_trace);
    RUN_TEST(a_prompt_can_be_stopped_between_tiles);
    RUN_TEST(tokens_in_flight_after_a_stop_are_forgotten);
    RUN_TEST(a_family_that_is_unknown_is_named_with_those_that_are_not);
    for (size_t i = 1; i <= TOKENS; i++)
        free(logits[i]);
    gguf_free(file);
    models_end();
}
