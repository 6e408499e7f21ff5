/* The RWKV-7 model: what its tapes compute against numbers that another runner confirmed,
 * prompts in tiles of any size, weights of any type, and which files it takes and which it
 * refuses. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/elem.h"
#include "models.h"
#include "runner/generate/generate.h"
#include "runner/gguf/convert.h"
#include "runner/gguf/write.h"
#include "runner/model/check.h"
#include "runner/rwkv7/rwkv7.h"
#include "support.h"

static err e;

/* --- the golden model --- */

/* A small RWKV-7 whose weights are given by a formula, and what it must compute. The numbers were confirmed with
 * llama.cpp's CPU backend on the same file. 2 layers of 2 heads of 64, a feed-forward of 512, a vocabulary of 32,
 * adapters of rank 32 and 64 (the gate), all in F32. */
enum { GOLDEN_HIDDEN = 128, GOLDEN_LAYERS = 2, GOLDEN_VOCAB = 32, GOLDEN_TOKENS = 4 };

/* Ways in which writers of such files differ, and what may be wrong with one. */
typedef struct {
    bool no_dummies;     /* no value residual in the first layer */
    bool more_dims;      /* vectors have dimensions of 1, or are (heads, head size) */
    bool half_vectors;   /* mixes and r_k are F16 */
    const char *without; /* a tensor that is not there; NULL: all are */
    const char *cut;     /* a tensor with half the rows; NULL: none */
    uint32_t head_size;  /* 0: 64 */
    const char *key;     /* a number that is added; NULL: none */
    uint32_t value;
} golden_options;

/* After each token: the first 8 logits, the largest, the sum of all. */
typedef struct {
    double logits[8], sum;
    uint32_t best;
} golden_output;

/* After the last: the first values of the state, S[1][5][9], the sum of |S|, and the shifts. */
typedef struct {
    double first[4], other, sum, time_shift[4], channel_shift[4];
} golden_state;

enum { D = GOLDEN_HIDDEN, FFN = 512, RANK = 32, GATE_RANK = 64 };

static const uint32_t golden_tokens[GOLDEN_TOKENS] = {3, 7, 7, 1};

static const golden_output golden_outputs[GOLDEN_TOKENS] = {
    {{0.242932, 1.569904, -0.014708, -0.214165, 0.37087, 0.340813, 0.525131, 0.239874},
     6.000047,
     1},
    {{-0.102774, 0.759855, -0.07574, -0.901815, 1.302723, 2.087072, -0.266727, 0.404954},
     -0.364504,
     5},
    {{0.007732, 0.994584, -0.22587, -1.034643, 1.388307, 1.603758, -0.068823, 0.222859},
     0.079913,
     5},
    {{-1.078256, -0.138045, -0.61183, 0.910036, 0.057387, -1.112598, -0.055631, 0.505099},
     -0.143396,
     12}};

static const golden_state golden_states[GOLDEN_LAYERS] = {
    {{0.135841, -0.247583, 0.080678, -0.174173},
     -0.076185,
     966.74053,
     {1.048564, 0.653368, 1.52079, 1.100001},
     {0.739854, 0.624503, 1.472477, 1.017972}},
    {{0.06603, 0.01097, -0.006942, -0.022411},
     -0.191224,
     841.9506,
     {0.889869, 0.520291, 1.422862, 1.056531},
     {1.33929, 0.451122, 1.001226, 0.980868}}};

static double draw(uint32_t seed, uint32_t i) {
    uint32_t x = i * 2654435761u + seed * 40503u + 97u;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    return (double)x / 4294967296.0 * 2 - 1;
}

/* A vector is base + amplitude * draw(seed, i), a matrix draw / sqrt(columns), the embedding draw.
 */
typedef struct {
    const char *name;
    uint32_t seed, rows, columns;
    double base, amplitude;
} tensor;

#define VECTOR(name, seed, base, amplitude)                                                        \
    { name, seed, 1, D, base, amplitude }
#define MATRIX(name, seed, rows, columns)                                                          \
    { name, seed, rows, columns, 0, 0 }

static const tensor ends[] = {
    {"token_embd.weight", 1, GOLDEN_VOCAB, D, 0, 1},
    VECTOR("token_embd_norm.weight", 2, 1, .1),
    VECTOR("token_embd_norm.bias", 3, 0, .1),
    VECTOR("output_norm.weight", 4, 1, .1),
    VECTOR("output_norm.bias", 5, 0, .1),
    MATRIX("output.weight", 6, GOLDEN_VOCAB, D),
};

static const tensor layer[] = {
    VECTOR("attn_norm.weight", 0, 1, .1),
    VECTOR("attn_norm.bias", 1, 0, .1),
    VECTOR("attn_norm_2.weight", 2, 1, .1),
    VECTOR("attn_norm_2.bias", 3, 0, .1),
    {"time_mix_lerp_fused.weight", 4, 6, D, .5, .5}, /* six vectors with seeds 4 to 9 */
    VECTOR("time_mix_w0.weight", 10, 0, 2),
    MATRIX("time_mix_w1.weight", 11, RANK, D),
    MATRIX("time_mix_w2.weight", 12, D, RANK),
    VECTOR("time_mix_a0.weight", 13, 0, 1),
    MATRIX("time_mix_a1.weight", 14, RANK, D),
    MATRIX("time_mix_a2.weight", 15, D, RANK),
    VECTOR("time_mix_v0.weight", 16, 0, 1),
    MATRIX("time_mix_v1.weight", 17, RANK, D),
    MATRIX("time_mix_v2.weight", 18, D, RANK),
    MATRIX("time_mix_g1.weight", 19, GATE_RANK, D),
    MATRIX("time_mix_g2.weight", 20, D, GATE_RANK),
    VECTOR("time_mix_k_k.weight", 21, .8, .2),
    VECTOR("time_mix_k_a.weight", 22, 1, .2),
    VECTOR("time_mix_r_k.weight", 23, 0, .5),
    MATRIX("time_mix_receptance.weight", 24, D, D),
    MATRIX("time_mix_key.weight", 25, D, D),
    MATRIX("time_mix_value.weight", 26, D, D),
    MATRIX("time_mix_output.weight", 27, D, D),
    VECTOR("time_mix_ln.weight", 28, 1, .1),
    VECTOR("time_mix_ln.bias", 29, 0, .1),
    VECTOR("channel_mix_lerp_k.weight", 30, .5, .5),
    MATRIX("channel_mix_key.weight", 31, FFN, D),
    MATRIX("channel_mix_value.weight", 32, D, FFN),
};

typedef struct {
    gguf_writer *file;
    const golden_options *options;
    bool is_writing; /* tensors are first announced, then written */
} writing;

static bool is_mixes(const tensor *t) {
    return t->rows == 6;
}

static bool write_values(writing *w, const tensor *t, uint32_t seed, uint32_t rows, bool is_half) {
    bool is_matrix = t->amplitude == 0;
    for (uint32_t i = 0; i < rows * t->columns; i++) {
        double u = is_mixes(t) ? draw(seed + i / D, i % D) : draw(seed, i);
        float x = (float)(is_matrix ? u / sqrt(t->columns) : t->base + t->amplitude * u);
        uint16_t half = half_from_float(x);
        if (!(is_half ? gguf_writer_write(w->file, &half, sizeof half, &e)
                      : gguf_writer_write(w->file, &x, sizeof x, &e)))
            return false;
    }
    return true;
}

static bool add(writing *w, const char *name, const tensor *t, uint32_t seed) {
    const golden_options *o = w->options;
    bool is_vector = t->rows == 1 || is_mixes(t);
    bool is_half = o->half_vectors && (is_mixes(t) || strstr(name, "r_k"));
    uint32_t rows = o->cut && strcmp(name, o->cut) == 0 ? t->rows / 2 : t->rows;
    if (o->without && strcmp(name, o->without) == 0)
        return true;
    if (w->is_writing)
        return write_values(w, t, seed, rows, is_half);
    uint64_t dim[4] = {t->columns, rows, 1, 1};
    uint32_t dims = rows > 1 ? 2 : 1;
    if (o->more_dims && is_vector) {
        dims = is_mixes(t) ? 4 : 3;
        if (is_mixes(t)) {
            dim[1] = 1;
            dim[3] = 6;
        }
        if (strstr(name, "r_k")) {
            dim[0] = 64;
            dim[1] = D / 64;
        }
    }
    gguf_writer_add_tensor(w->file, name, gguf_find_type(is_half ? 1 : 0), dim, dims);
    return true;
}

static bool add_all(writing *w) {
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!add(w, ends[i].name, &ends[i], ends[i].seed))
            return false;
    for (uint32_t l = 0; l < GOLDEN_LAYERS; l++)
        for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
            char name[GGUF_NAME_BYTES];
            snprintf(name, sizeof name, "blk.%u.%s", l, layer[i].name);
            if (l == 0 && w->options->no_dummies && strstr(name, "time_mix_v") &&
                !strstr(name, "value"))
                continue;
            if (!add(w, name, &layer[i], 100 * (l + 1) + layer[i].seed))
                return false;
        }
    return true;
}

static gguf *open_golden(const golden_options *o) {
    const char *path = models_get_path("golden.gguf");
    writing w = {.file = gguf_writer_new(path, &e), .options = o};
    if (!w.file)
        return NULL;
    gguf_writer_add_text(w.file, "general.architecture", (gguf_text){"rwkv7", 5});
    gguf_writer_add_u32(w.file, "rwkv7.context_length", 1048576);
    gguf_writer_add_u32(w.file, "rwkv7.embedding_length", D);
    gguf_writer_add_u32(w.file, "rwkv7.block_count", GOLDEN_LAYERS);
    gguf_writer_add_u32(w.file, "rwkv7.feed_forward_length", FFN);
    gguf_writer_add_f32(w.file, "rwkv7.attention.layer_norm_epsilon", 1e-5f);
    gguf_writer_add_u32(w.file, "rwkv7.attention.head_count", 0);
    gguf_writer_add_u32(w.file, "rwkv7.wkv.head_size", o->head_size ? o->head_size : 64);
    if (o->key)
        gguf_writer_add_u32(w.file, o->key, o->value);
    bool ok = add_all(&w) && gguf_writer_finish_header(w.file, &e);
    w.is_writing = true;
    ok = ok && add_all(&w) && gguf_writer_finish(w.file, &e);
    gguf_writer_free(w.file);
    return ok ? models_keep(gguf_open(path, &e)) : NULL;
}

static model_fusion fusion; /* of the models that are opened */

static model *open_model(const gguf *g, uint32_t tile) {
    return models_open(g, &(model_options){.tile = tile, .fusion = fusion}, &e);
}

/* The numbers have six digits. */
static bool is_near(double got, double want) {
    return fabs(got - want) <= 4e-6 + 1e-6 * fabs(want);
}

/* --- what is computed --- */

static enum greatest_test_res is_golden(const float *logits, size_t token) {
    const golden_output *want = &golden_outputs[token];
    double sum = 0;
    for (size_t i = 0; i < GOLDEN_VOCAB; i++)
        sum += (double)logits[i];
    for (size_t i = 0; i < 8; i++)
        ASSERT(is_near((double)logits[i], want->logits[i]));
    ASSERT(fabs(sum - want->sum) <= 4e-5);
    ASSERT_EQ(want->best, sampler_find_largest(logits, GOLDEN_VOCAB));
    PASS();
}

static enum greatest_test_res has_golden_state(const model *m) {
    const rwkv7 *own = m->own;
    for (size_t l = 0; l < GOLDEN_LAYERS; l++) {
        const golden_state *want = &golden_states[l];
        const rwkv7_state *s = &own->states[l];
        float shifts[2][GOLDEN_HIDDEN], *heads = malloc(s->heads.bytes);
        ASSERT_OK(buffer_download(s->heads.buffer, 0, heads, s->heads.bytes, &e));
        ASSERT_OK(buffer_download(s->time_shift.buffer, 0, shifts[0], sizeof *shifts, &e));
        ASSERT_OK(buffer_download(s->channel_shift.buffer, 0, shifts[1], sizeof *shifts, &e));
        double sum = 0;
        for (size_t i = 0; i < (size_t)GOLDEN_HIDDEN * 64; i++)
            sum += fabs((double)heads[i]);
        ASSERT(fabs(sum - want->sum) <= 1e-3);
        ASSERT(is_near((double)heads[(64 + 5) * 64 + 9], want->other));
        for (size_t i = 0; i < 4; i++) {
            ASSERT(is_near((double)heads[i], want->first[i]));
            ASSERT(is_near((double)shifts[0][i], want->time_shift[i]));
            ASSERT(is_near((double)shifts[1][i], want->channel_shift[i]));
        }
        free(heads);
    }
    PASS();
}

static enum greatest_test_res takes_tokens(model *m) {
    float logits[GOLDEN_VOCAB];
    ASSERT_OK(m);
    for (size_t i = 0; i < GOLDEN_TOKENS; i++) {
        ASSERT_OK(model_forward_token(m, golden_tokens[i], PLAY_WHOLE, logits, NULL, &e));
        CHECK_CALL(is_golden(logits, i));
    }
    return has_golden_state(m);
}

static enum greatest_test_res takes_prompt(model *m) {
    float logits[GOLDEN_VOCAB];
    ASSERT_OK(m);
    ASSERT_OK(model_forward_prompt(m, golden_tokens, GOLDEN_TOKENS, PLAY_WHOLE, logits, NULL, &e));
    CHECK_CALL(is_golden(logits, GOLDEN_TOKENS - 1));
    return has_golden_state(m);
}

TEST tokens_give_the_golden_logits_and_state(const golden_options *o) {
    return takes_tokens(open_model(open_golden(o), 0));
}

TEST a_prompt_gives_the_golden_logits_and_state(uint32_t tile) {
    return takes_prompt(open_model(open_golden(&(golden_options){0}), tile));
}

TEST the_reference_gives_the_golden_logits(void) {
    model *m = open_model(open_golden(&(golden_options){0}), 1);
    ASSERT_OK(m);
    model_reference *r = model_reference_new(m, GOLDEN_TOKENS, false, &e);
    ASSERT_OK(r);
    for (size_t i = 0; i < GOLDEN_TOKENS; i++) {
        double exact[GOLDEN_VOCAB];
        float logits[GOLDEN_VOCAB];
        model_reference_step(r, golden_tokens[i], exact);
        for (size_t k = 0; k < GOLDEN_VOCAB; k++)
            logits[k] = (float)exact[k];
        CHECK_CALL(is_golden(logits, i));
    }
    model_reference_free(r);
    PASS();
}

/* Launches with oracles, the whole pass with the one in double, and all ways to play it. */
static enum greatest_test_res passes_check(const gguf *g, uint32_t tile) {
    model *m = open_model(g, tile);
    ASSERT_OK(m);
    uint32_t prompt[11];
    rng r = rng_new(3, "rwkv7");
    for (size_t i = 0; i < 11; i++)
        prompt[i] = rng_below(&r, model_get_shape(m)->vocab);
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = 11, .tokens = 6, .reference_tokens = 11};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    ASSERT_EQ(6, report.count);
    PASS();
}

TEST a_model_of_any_type_passes_its_check(const char *type) {
    gguf *from = open_golden(&(golden_options){.half_vectors = true, .more_dims = true});
    ASSERT_OK(from);
    const char *path = models_get_path("converted.gguf");
    convert_options o = {.type = convert_find_type(type, &e), .is_pure = true};
    ASSERT_OK(convert_model(from, path, &o, &e));
    CHECK_CALL(passes_check(models_keep(gguf_open(path, &e)), 4));
    PASS();
}

/* The ops by themselves, 40 in a layer, and fused as on a GPU, 8 in a layer. */
TEST a_model_is_the_same_however_its_ops_are_fused(model_fusion how, size_t launches) {
    fusion = how;
    gguf *g = open_golden(&(golden_options){0});
    ASSERT_OK(g);
    model *m = open_model(g, 3);
    CHECK_CALL(takes_tokens(m));
    model_rewind(m, 0);
    CHECK_CALL(takes_prompt(m));
    tape *t = model_get_token_tape(m, false, &e);
    ASSERT_OK(t);
    ASSERT_EQ(launches, t->count);
    CHECK_CALL(passes_check(g, 4));
    fusion = FUSION_BEST;
    PASS();
}

static char *shipped(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s", support_get_path("models/assay-tiny-rwkv7.gguf"));
    return path;
}

TEST the_shipped_model_passes_its_check(void) {
    gguf *g = models_keep(gguf_open(shipped(), &e));
    ASSERT_OK(g);
    CHECK_CALL(passes_check(g, 0));
    PASS();
}

/* Tiles of every size, from one token to all, and a prompt in two parts. */
TEST a_prompt_in_tiles_of_any_size_is_the_same(void) {
    enum { TOKENS = 23 };
    static const uint32_t tiles[] = {1, 2, 3, 7, 8, 22, 23, 64};
    uint32_t tokens[TOKENS], vocab = 0;
    float *want = NULL, *got = NULL;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        model *m = open_model(models_keep(gguf_open(shipped(), &e)), tiles[i]);
        ASSERT_OK(m);
        if (!want) {
            vocab = model_get_shape(m)->vocab;
            want = models_new_logits(m);
            got = models_new_logits(m);
            for (uint32_t k = 0; k < TOKENS; k++)
                tokens[k] = (300 + 37 * k) % vocab;
            for (uint32_t k = 0; k < TOKENS; k++)
                ASSERT_OK(model_forward_token(m, tokens[k], PLAY_WHOLE, want, NULL, &e));
            model_rewind(m, 0);
        }
        ASSERT_OK(model_forward_prompt(m, tokens, TOKENS, PLAY_WHOLE, got, NULL, &e));
        ASSERT(support_get_distance(got, want, vocab) <= 1e-5);
        model_rewind(m, 0);
        ASSERT_OK(model_forward_prompt(m, tokens, 9, PLAY_WHOLE, got, NULL, &e));
        ASSERT_OK(model_forward_prompt(m, tokens + 9, TOKENS - 9, PLAY_WHOLE, got, NULL, &e));
        ASSERT(support_get_distance(got, want, vocab) <= 1e-5);
    }
    PASS();
}

/* Its margins are clear: 1.4 between the best two logits at the least. */
TEST the_shipped_model_writes_sense(void) {
    static const char prompt[] = "How do I";
    static const char want[] = " find my way? Ask somebody, or look at the sun. In the morning it "
                               "is in the east, and in the evening it is in the west.";
    gguf *g = models_keep(gguf_open(shipped(), &e));
    ASSERT_OK(g);
    tokenizer *t = tokenizer_new(g, &e);
    ASSERT_OK(t);
    model *m = open_model(g, 0);
    ASSERT_OK(m);
    token_list tokens = {0};
    char text[400] = "";
    size_t used = 0;
    uint32_t next = 0;
    float *logits = models_new_logits(m);
    tokenizer_encode(t, prompt, sizeof prompt - 1, TOKENIZE_ADD_SPECIAL, &tokens);
    ASSERT_OK(model_forward_prompt(m, tokens.items, tokens.count, PLAY_WHOLE, logits, NULL, &e));
    next = sampler_find_largest(logits, model_get_shape(m)->vocab);
    for (int i = 0; i < 60 && !tokenizer_is_end(t, next); i++) {
        gguf_text piece = tokenizer_get_piece(t, next, false);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)piece.bytes, piece.data);
        ASSERT(used < sizeof text);
        ASSERT_OK(model_forward_greedy(m, next, PLAY_WHOLE, &next, NULL, &e));
    }
    ASSERT_STR_EQ(want, text);
    token_list_free(&tokens);
    tokenizer_free(t);
    PASS();
}

TEST memory_is_made_once_and_does_not_grow(void) {
    model *m = open_model(open_golden(&(golden_options){0}), 2);
    ASSERT_OK(m);
    model_memory before = model_get_memory(m), after;
    ASSERT_EQ((size_t)GOLDEN_LAYERS * (2 + 64) * GOLDEN_HIDDEN * sizeof(float), before.state);
    ASSERT_EQ(UINT32_MAX, model_get_room(m));
    float logits[GOLDEN_VOCAB];
    for (uint32_t i = 0; i < 40; i++)
        ASSERT_OK(model_forward_prompt(m, golden_tokens, 3, PLAY_WHOLE, logits, NULL, &e));
    after = model_get_memory(m);
    ASSERT_EQ(before.state, after.state);
    ASSERT_EQ(before.scratch, after.scratch);
    ASSERT_EQ(before.weights, after.weights);
    PASS();
}

/* --- invented ones --- */

static gguf *open_tiny(const char *type) {
    return models_make("rwkv7-tiny", type, 3, &e);
}

TEST an_invented_model_passes_its_check(const char *type) {
    gguf *g = open_tiny(type);
    ASSERT_OK(g);
    CHECK_CALL(passes_check(g, 0));
    tokenizer *t = tokenizer_new(g, &e);
    ASSERT_OK(t);
    ASSERT_EQ(512, tokenizer_get_count(t));
    tokenizer_free(t);
    PASS();
}

TEST tensors_get_the_types_that_published_files_have(void) {
    gguf *g = open_tiny("Q4_0");
    ASSERT_OK(g);
    static const struct {
        const char *name, *type;
    } want[] = {{"token_embd.weight", "Q4_0"},
                {"output.weight", "Q8_0"}, /* rows of 128 are no blocks of 256 */
                {"blk.1.time_mix_key.weight", "Q4_0"},
                {"blk.1.channel_mix_value.weight", "Q4_0"},
                {"blk.1.time_mix_a1.weight", "F16"},
                {"blk.1.time_mix_v2.weight", "F16"},
                {"blk.1.time_mix_g2.weight", "F16"},
                {"blk.1.time_mix_w1.weight", "F32"},
                {"blk.1.time_mix_w2.weight", "F32"},
                {"blk.1.time_mix_lerp_fused.weight", "F32"},
                {"blk.1.time_mix_r_k.weight", "F32"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ASSERT_STR_EQ(want[i].type, gguf_find_tensor(g, want[i].name)->type->name);
    gguf *floats = open_tiny("F32"); /* and so does convert */
    ASSERT_OK(floats);
    convert_options o = {.type = gguf_find_type_name("Q4_0")};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ASSERT_STR_EQ(
            want[i].type,
            convert_choose_type(floats, gguf_find_tensor(floats, want[i].name), &o)->name);
    PASS();
}

static double find_largest_state(const model *m) {
    double largest = 0;
    for (size_t i = 0; i < m->buffer_count; i++) {
        buffer *b = m->buffers[i].buffer;
        if (m->buffers[i].kind != MEMORY_STATE)
            continue;
        float *values = malloc(b->bytes);
        if (!buffer_download(b, 0, values, b->bytes, &e))
            largest = INFINITY;
        for (size_t k = 0; k < b->bytes / sizeof *values; k++)
            largest = isfinite(values[k]) ? fmax(largest, fabs((double)values[k])) : INFINITY;
        free(values);
    }
    return largest;
}

/* What a state holds decays: it does not grow with the text. */
TEST a_state_stays_bounded_over_thousands_of_tokens(void) {
    enum { TOKENS = 4096, PARTS = 4 };
    model *m = open_model(open_tiny("Q8_0"), 64);
    ASSERT_OK(m);
    static uint32_t tokens[TOKENS];
    uint32_t vocab = model_get_shape(m)->vocab;
    float *logits = models_new_logits(m);
    rng r = rng_new(4, "long");
    double first = 0, last = 0;
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = rng_below(&r, vocab);
    for (size_t i = 0; i < PARTS; i++) {
        ASSERT_OK(model_forward_prompt(m, tokens + i * TOKENS / PARTS, TOKENS / PARTS, PLAY_WHOLE,
                                       logits, NULL, &e));
        for (uint32_t k = 0; k < vocab; k++)
            ASSERT(isfinite(logits[k]));
        last = find_largest_state(m);
        first = i == 0 ? last : first;
    }
    ASSERT(last > 0 && last <= 3 * first);
    ASSERT_EQ(TOKENS, model_get_position(m));
    PASS();
}

/* --- which files --- */

TEST a_file_is_refused(const golden_options *o, const char *says) {
    gguf *g = open_golden(o);
    ASSERT_OK(g);
    ASSERT_FALSE(model_check_file(g, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT_OK(strstr(e.text, says));
    PASS();
}

/* In a decay that is off by a thousandth no element of a token is off by more than that. */
TEST a_small_error_moves_logits_further_than_rounding_may(void) {
    ASSERT_RUN(
        "rm -rf \"$T\" && mkdir \"$T\" && cp -R \"$H/kernels\" \"$T/kernels\" && cd \"$T\" && "
        "sed -i.old 's/DECAY_RATE 0.606531f/DECAY_RATE 0.6071f/' kernels/activations.h && "
        "! cmp -s kernels/activations.h kernels/activations.h.old",
        0);
    ASSERT_RUN("cd \"$T\" && for seed in 1 2 3; do \"$A\" model synth rwkv7-tiny $seed.gguf --seed "
               "$seed --layers "
               "$((seed * 3)) && \"$A\" model check -m $seed.gguf --device $D --depth 0 --seed "
               "$seed || exit 9; done",
               0);
    ASSERT_RUN(
        "cd \"$T\" && for seed in 1 2 3; do ASSAY_KERNELS=\"$T/kernels\" \"$A\" model check -m "
        "$seed.gguf --device $D --depth 0 | grep 'whole pass vs double precision *wrong' || "
        "exit 9; done; rm -rf \"$T\"",
        0);
    PASS();
}

SUITE(rwkv7_suite) {
    if (!models_begin(&e))
        return;
    const golden_options plain = {0}, bare = {.no_dummies = true}, deep = {.more_dims = true};
    RUN_TESTp(tokens_give_the_golden_logits_and_state, &plain);
    RUN_TESTp(tokens_give_the_golden_logits_and_state, &bare);
    RUN_TESTp(tokens_give_the_golden_logits_and_state, &deep);
    for (uint32_t tile = 1; tile <= GOLDEN_TOKENS; tile++)
        RUN_TESTp(a_prompt_gives_the_golden_logits_and_state, tile);
    RUN_TEST(the_reference_gives_the_golden_logits);
    static const char *const types[] = {"q4_0", "q5_1", "q8_0", "q4_k", "q6_k", "f16"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        RUN_TESTp(a_model_of_any_type_passes_its_check, types[i]);
    RUN_TESTp(a_model_is_the_same_however_its_ops_are_fused, FUSION_NONE, 2 + 36 + 40 + 2);
    RUN_TESTp(a_model_is_the_same_however_its_ops_are_fused, FUSION_MOST, 2 + 8 + 8 + 2);
    fusion = FUSION_BEST; /* even where they failed */
    RUN_TEST(the_shipped_model_passes_its_check);
    RUN_TEST(a_prompt_in_tiles_of_any_size_is_the_same);
    RUN_TEST(the_shipped_model_writes_sense);
    RUN_TEST(memory_is_made_once_and_does_not_grow);
    RUN_TESTp(an_invented_model_passes_its_check, "Q4_0");
    RUN_TESTp(an_invented_model_passes_its_check, "F32");
    RUN_TEST(tensors_get_the_types_that_published_files_have);
    RUN_TEST(a_state_stays_bounded_over_thousands_of_tokens);
    const golden_options missing = {.without = "blk.1.time_mix_k_k.weight"},
                         cut = {.cut = "blk.1.channel_mix_value.weight"},
                         short_rank = {.cut = "blk.0.time_mix_a1.weight"},
                         heads = {.head_size = 48}, no_head = {.without = "output.weight"},
                         scaled = {.key = "rwkv7.rescale_every_n_layers", .value = 6},
                         unknown = {.key = "rwkv7.new_trick", .value = 0};
    RUN_TESTp(a_file_is_refused, &missing, "no tensor blk.1.time_mix_k_k.weight");
    RUN_TESTp(a_file_is_refused, &cut, "channel_mix_value.weight is 512 x 64, expected 512 x 128");
    RUN_TESTp(a_file_is_refused, &short_rank, "time_mix_a2.weight is 32 x 128, expected 16 x 128");
    RUN_TESTp(a_file_is_refused, &heads, "embedding_length is 128: it must be whole heads");
    RUN_TESTp(a_file_is_refused, &no_head, "no tensor output.weight");
    RUN_TESTp(a_file_is_refused, &scaled, "rescale_every_n_layers is 6, which changes the result");
    RUN_TESTp(a_file_is_refused, &unknown, "the file has rwkv7.new_trick");
    models_end();
    RUN_TEST(a_small_error_moves_logits_further_than_rounding_may);
}
