/* What a llama file can hold: weights of every type, fused or with biases, rotary factors, a head
 * of its own; and what is refused. Each file is a copy of a small model of random weights with
 * something changed; what comes out is held against the whole forward pass in double precision. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "models.h"
#include "runner/gguf/synth.h"
#include "runner/gguf/write.h"
#include "runner/llama/llama.h"
#include "runner/model/check.h"

static gguf *base; /* the model that the others are copies of, all in F32 */
static err e;

static model *open_model(const gguf *g) {
    return models_open(g, &(model_options){.context = 48}, &e);
}

/* --- files that are refused --- */

/* How a copy of a model differs from it. */
typedef struct {
    const char *without;                   /* a tensor or key that is left out */
    const char *key;                       /* a value that is added or replaced */
    const char *text;                      /* which is this text, */
    float real;                            /* or this, if it is not 0, */
    uint32_t value;                        /* or this */
    const char *added;                     /* a tensor of one float */
    const char *renamed_from, *renamed_to; /* a tensor */
} change;

/* A copy of a model with one thing changed. */
static gguf *change_model(const gguf *g, const change *c) {
    const char *path = models_get_path("changed.gguf");
    gguf_writer *w = gguf_writer_new(path, &e);
    for (size_t i = 0; i < g->value_count; i++)
        if (!(c->key && gguf_text_equals(g->values[i].key, c->key)) &&
            !(c->without && gguf_text_equals(g->values[i].key, c->without)))
            gguf_writer_add_copy(w, &g->values[i]);
    if (c->key && c->text)
        gguf_writer_add_text(w, c->key, (gguf_text){c->text, strlen(c->text)});
    else if (c->key && c->real != 0)
        gguf_writer_add_f32(w, c->key, c->real);
    else if (c->key)
        gguf_writer_add_u32(w, c->key, c->value);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        bool is_renamed = c->renamed_from && strcmp(t->name, c->renamed_from) == 0;
        if (!c->without || strcmp(t->name, c->without) != 0)
            gguf_writer_add_tensor(w, is_renamed ? c->renamed_to : t->name, t->type, t->dim,
                                   t->dims);
    }
    if (c->added)
        gguf_writer_add_tensor(w, c->added, gguf_find_type_name("F32"), (uint64_t[]){1}, 1);
    bool ok = gguf_writer_finish_header(w, &e);
    for (size_t i = 0; ok && i < g->tensor_count; i++)
        if (!c->without || strcmp(g->tensors[i].name, c->without) != 0)
            ok = gguf_writer_write(w, g->tensors[i].data, g->tensors[i].bytes, &e);
    if (ok && c->added)
        ok = gguf_writer_write(w, &(float){1}, sizeof(float), &e);
    ok = ok && gguf_writer_finish(w, &e);
    gguf_writer_free(w);
    return ok ? gguf_open(path, &e) : NULL;
}

TEST files_that_cannot_be_run_are_one_sentence(void) {
    static const struct {
        change change;
        const char *says;
    } cases[] = {
        {{.without = "blk.1.ffn_up.weight"}, "no tensor blk.1.ffn_up.weight"},
        {{.without = "output_norm.weight"}, "no tensor output_norm.weight"},
        {{.without = "llama.block_count"}, "llama.block_count"},
        {{.without = "general.architecture"}, "general.architecture"},
        {{.key = "llama.expert_count", .value = 8}, "llama.expert_count is 8"},
        {{.key = "llama.block_count", .value = 0}, "block_count is 0"},
        {{.key = "llama.block_count", .value = 3}, "no tensor blk.2."},
        {{.key = "llama.attention.head_count", .value = 0}, "heads"},
        {{.key = "llama.attention.head_count_kv", .value = 3}, "multiple"},
        {{.key = "llama.attention.key_length", .value = 2000}, "head size"},
        {{.key = "llama.feed_forward_length", .value = 33}, "expected"},
        {{.key = "llama.rope.dimension_count", .value = 6}, "rope.dimension_count"},
        {{.renamed_from = "blk.0.attn_norm.weight", .renamed_to = "blk.0.attn_qkv.weight"},
         "blk.0.attn_norm.weight"},
        {{.added = "blk.0.attn_q_norm.weight"}, "the tensor blk.0.attn_q_norm.weight"},
        {{.added = "blk.1.attn_q.scale"}, "the tensor blk.1.attn_q.scale"},
        {{.added = "blk.2.attn_q.weight"}, "the tensor blk.2.attn_q.weight"},
        {{.key = "llama.rope.scaling.attn_factor", .real = 1.5f}, "attn_factor is 1.5"},
        {{.key = "llama.rope.scaling.type", .text = "yarn"}, "rope scaling 'yarn'"},
        {{.key = "llama.attention.scale", .real = 0.3f}, "llama.attention.scale is 0.3"},
        {{.key = "llama.logit_scale", .real = 16}, "llama.logit_scale is 16"},
        {{.key = "llama.attention.sliding_window", .value = 4096}, "sliding_window is 4096"},
        {{.key = "llama.attention.causal", .value = 0}, "llama.attention.causal is 0"},
        {{.key = "llama.new_trick", .value = 0}, "the file has llama.new_trick"},
        {{.key = "tokenizer.ggml.new_trick", .value = 0}, "the file has tokenizer.ggml.new_trick"},
        {{.key = "tokenizer.ggml.suppress_tokens", .value = 7}, "suppress_tokens is 7"},
        {{.key = "split.count", .value = 2}, "split.count is 2, which means several files"},
        {{.key = "general.type", .text = "adapter"}, "general.type is adapter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf *changed = change_model(base, &cases[i].change);
        ASSERT_OK(changed);
        e = (err){0};
        model *m = open_model(changed);
        ASSERTm(cases[i].says, m == NULL);
        ASSERT_EQ_FMT(EXIT_USAGE, e.code, "%d");
        ASSERTm(e.text, strstr(e.text, cases[i].says));
        gguf_free(changed);
    }
    PASS();
}

TEST every_verb_refuses_the_same_files(void) {
    static const char *const verbs[] = {"run -p x -n 1", "model check",
                                        "model bench -p 4 -n 0 -r 1", "tune --budget 1",
                                        "experiment decode --smoke --out $T"};
    gguf *changed = change_model(base, &(change){.added = "blk.0.attn_q_norm.weight"});
    ASSERT_OK(changed);
    setenv("M", changed->path, 1);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char line[200];
        snprintf(line, sizeof line, "\"$A\" %s --device $D -m $M", verbs[i]);
        ASSERT_RUN(line, 2);
        ASSERT_SAYS("the file has the tensor blk.0.attn_q_norm.weight, which is not known here");
    }
    ASSERT_RUN("rm -rf \"$T\"; \"$A\" model info $M", 3);
    ASSERT_SAYS("no: the file has the tensor blk.0.attn_q_norm.weight, which is not known here");
    gguf_free(changed);
    PASS();
}

/* What converters write besides, and values that mean that a feature is off. */
TEST keys_without_effect_are_no_reason_to_refuse(void) {
    static const change cases[] = {
        {.key = "general.base_model.0.name", .text = "x"},
        {.key = "general.sampling.temp", .real = 0.6f},
        {.key = "general.type", .text = "model"},
        {.key = "split.count", .value = 1},
        {.key = "quantize.imatrix.file", .text = "x"},
        {.key = "mradermacher.quantize_version", .text = "2"},
        {.key = "tokenizer.chat_template.tool_use", .text = "x"},
        {.key = "tokenizer.ggml.seperator_token_id", .value = 1},
        {.key = "tokenizer.ggml.add_space_prefix", .value = 0},
        {.key = "llama.vocab_size", .value = 512},
        {.key = "llama.attention.key_length", .value = 16},
        {.key = "llama.attention.value_length", .value = 16},
        {.key = "llama.attention.scale", .real = 0.25f},
        {.key = "llama.expert_count", .value = 0},
        {.key = "llama.expert_used_count", .value = 2},
        {.key = "llama.attention.sliding_window", .value = 0},
        {.key = "llama.rope.scaling.type", .text = "none"},
        {.key = "llama.rope.scaling.attn_factor", .real = 1},
        {.key = "llama.rope.scaling.original_context_length", .value = 64},
        {.key = "llama.logit_scale", .real = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf *changed = change_model(base, &cases[i]);
        ASSERT_OK(changed);
        ASSERT_OK(model_check_file(changed, &e));
        gguf_free(changed);
    }
    PASS();
}

/* --- files that run --- */

/* What a file has that the one it is copied from has not. */
typedef struct {
    const char *type; /* of all matrices; NULL: the types in turn */
    bool has_biases, is_fused, has_factors, has_scaling, has_head;
} variant;

enum { MAX_TENSORS = 128 };

/* A tensor of the new file: values in F32 that are encoded when it is written. */
typedef struct {
    char name[GGUF_NAME_BYTES];
    const gguf_type *type;
    uint64_t dim[2];
    uint32_t dims;
    float *values;
} part;

static part parts[MAX_TENSORS];
static size_t part_count;

static part *add_part(const char *name, const gguf_type *type, uint64_t columns, uint64_t rows) {
    part *p = &parts[part_count++];
    *p = (part){.type = type, .dim = {columns, rows}, .dims = rows > 1 ? 2 : 1};
    snprintf(p->name, sizeof p->name, "%s", name);
    p->values = calloc(columns * rows, sizeof *p->values);
    return p;
}

static void fill_part(part *p, float centre, float spread) {
    rng r = rng_new(3, p->name);
    for (size_t i = 0; i < p->dim[0] * p->dim[1]; i++)
        p->values[i] = centre + spread * (float)(2 * rng_uniform(&r) - 1);
}

static void copy_values(const gguf_tensor *t, float *out) {
    memcpy(out, t->data, t->bytes);
}

/* All types that matrices of rows of 64 can have, one after the other. */
static const gguf_type *next_type(void) {
    static const char *const names[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1",
                                        "Q8_0", "F16",  "BF16", "F32"};
    static size_t next;
    return gguf_find_type_name(names[next++ % (sizeof names / sizeof *names)]);
}

static void add_fused(const char *layer) {
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    const gguf_tensor *t[3];
    char name[GGUF_NAME_BYTES];
    uint64_t rows = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%.32s.%s.weight", layer, names[i]);
        t[i] = gguf_find_tensor(base, name);
        rows += t[i]->dim[1];
    }
    snprintf(name, sizeof name, "%.32s.attn_qkv.weight", layer);
    float *at = add_part(name, gguf_find_type_name("Q8_0"), t[0]->dim[0], rows)->values;
    for (int i = 0; i < 3; at += t[i]->elements, i++)
        copy_values(t[i], at);
    snprintf(name, sizeof name, "%.32s.attn_qkv.bias", layer);
    fill_part(add_part(name, gguf_find_type_name("F32"), rows, 1), 0, 0.5f);
}

static void plan_tensor(const variant *v, const gguf_tensor *t) {
    const gguf_type *f32 = gguf_find_type_name("F32");
    bool is_projection =
        strstr(t->name, ".attn_q.") || strstr(t->name, ".attn_k.") || strstr(t->name, ".attn_v.");
    char name[GGUF_NAME_BYTES];
    if (v->is_fused && is_projection) {
        snprintf(name, sizeof name, "%.*s", (int)(strstr(t->name, ".attn") - t->name), t->name);
        if (strstr(t->name, ".attn_q."))
            add_fused(name);
        return;
    }
    const gguf_type *type = t->dims < 2 ? f32
                            : v->type   ? gguf_find_type_name(v->type)
                                        : next_type();
    copy_values(t, add_part(t->name, type, t->dim[0], t->dim[1])->values);
    if (!v->has_biases || t->dims < 2 || strncmp(t->name, "blk.", 4) != 0)
        return;
    snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(t->name) - strlen(".weight")), t->name);
    fill_part(add_part(name, f32, t->dim[1], 1), 0, 0.5f);
}

static bool write_part(gguf_writer *w, const part *p) {
    const weight_format *f = p->type->format;
    size_t count = p->dim[0] * p->dim[1], bytes = count / f->values * f->bytes;
    unsigned char *data = malloc(bytes);
    for (size_t i = 0; i < count / f->values; i++)
        f->encode(p->values + i * f->values, data + i * f->bytes);
    bool ok = gguf_writer_write(w, data, bytes, &e);
    free(data);
    return ok;
}

static gguf *make_variant(const variant *v) {
    const char *path = models_get_path("variant.gguf");
    gguf_writer *w = gguf_writer_new(path, &e);
    llama_shape s;
    llama_read_sizes(base, &s, &e);
    for (size_t i = 0; i < base->value_count; i++)
        gguf_writer_add_copy(w, &base->values[i]);
    if (v->has_scaling)
        gguf_writer_add_f32(w, "llama.rope.scaling.factor", 4);
    part_count = 0;
    for (size_t i = 0; i < base->tensor_count; i++)
        plan_tensor(v, &base->tensors[i]);
    if (v->has_factors)
        fill_part(add_part("rope_freqs.weight", gguf_find_type_name("F32"), s.head_dim / 2, 1), 5,
                  4);
    if (v->has_head)
        fill_part(add_part("output.weight", gguf_find_type_name("Q4_1"), s.hidden, s.vocab), 0,
                  0.3f);
    for (size_t i = 0; i < part_count; i++)
        gguf_writer_add_tensor(w, parts[i].name, parts[i].type, parts[i].dim, parts[i].dims);
    bool ok = gguf_writer_finish_header(w, &e);
    for (size_t i = 0; i < part_count; i++) {
        ok = ok && write_part(w, &parts[i]);
        free(parts[i].values);
    }
    ok = ok && gguf_writer_finish(w, &e);
    gguf_writer_free(w);
    return ok ? gguf_open(path, &e) : NULL;
}

TEST it_runs(const char *name, const variant *v) {
    gguf *g = make_variant(v);
    ASSERT_OK(g);
    model *m = open_model(g);
    ASSERT_OK(m);
    uint32_t prompt[12];
    for (uint32_t i = 0; i < 12; i++)
        prompt[i] = 7 + 31 * i;
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = 12, .tokens = 4, .reference_tokens = 12};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    ASSERTm(name, report.passed);
    models_keep(g);
    PASS();
}

/* A reference and a tape that both overlook a thing would agree: the logits must change with it. */
TEST what_a_file_has_makes_a_difference(void) {
    static const variant variants[] = {{.type = "F32"},
                                       {.type = "F32", .has_biases = true},
                                       {.type = "F32", .has_factors = true},
                                       {.type = "F32", .has_scaling = true},
                                       {.type = "F32", .has_head = true},
                                       {.type = "F32", .is_fused = true}};
    enum { COUNT = sizeof variants / sizeof *variants };
    float first[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        gguf *g = make_variant(&variants[i]);
        ASSERT_OK(g);
        model *m = open_model(g);
        ASSERT_OK(m);
        const uint32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6};
        float *logits = models_new_logits(m);
        ASSERT_OK(model_forward_prompt(m, prompt, 8, PLAY_WHOLE, logits, NULL, &e));
        first[i] = logits[0];
        for (size_t j = 0; j < i; j++)
            ASSERT(first[i] != first[j]);
        models_keep(g);
    }
    PASS();
}

static bool set_up(void) {
    const char *path = models_get_path("base.gguf");
    synth_options o = {.seed = 11, .type = gguf_find_type_name("F32")};
    const synth_shape *s = synth_find_shape("tiny", &e);
    base = s && synth_write_model(s, path, &o, &e) ? gguf_open(path, &e) : NULL;
    return base != NULL;
}

TEST a_small_model_can_be_made(void) {
    ASSERT_OK(set_up());
    PASS();
}

SUITE(llama_file_suite) {
    if (!models_begin(&e))
        return;
    RUN_TEST(a_small_model_can_be_made);
    if (!base)
        return;
    RUN_TEST(files_that_cannot_be_run_are_one_sentence);
    RUN_TEST(every_verb_refuses_the_same_files);
    RUN_TEST(keys_without_effect_are_no_reason_to_refuse);
    RUN_TESTp(it_runs, "types in turn", (&(variant){.type = NULL}));
    RUN_TESTp(it_runs, "biases", (&(variant){.type = "Q8_0", .has_biases = true}));
    RUN_TESTp(it_runs, "fused", (&(variant){.type = "Q4_0", .is_fused = true}));
    RUN_TESTp(it_runs, "rotary factors", (&(variant){.type = "F16", .has_factors = true}));
    RUN_TESTp(it_runs, "linear scaling", (&(variant){.type = "F32", .has_scaling = true}));
    RUN_TESTp(it_runs, "a head of its own", (&(variant){.type = "Q4_0", .has_head = true}));
    RUN_TEST(what_a_file_has_makes_a_difference);
    gguf_free(base);
    models_end();
}
