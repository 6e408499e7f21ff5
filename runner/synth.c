/* synth: see synth.h. Owns the shapes and the weights; the vocabulary is synth_vocab.c. */
#include "synth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/check/fill.h"

/* Another shape is another row. */
static const synth_shape shapes[] = {
    /* name, about, layers, hidden, heads, kv heads, ffn, vocab, context, eps, rope base, tied */
    {"tiny", "for tests", 2, 64, 4, 2, 160, 512, 512, 1e-5f, 1e4f, true},
    {"smollm-135m", "SmolLM-135M", 30, 576, 9, 3, 1536, 49152, 2048, 1e-5f, 1e4f, true},
    {"smollm2-135m", "SmolLM2-135M", 30, 576, 9, 3, 1536, 49152, 8192, 1e-5f, 1e5f, true},
    {"smollm2-360m", "SmolLM2-360M", 32, 960, 15, 5, 2560, 49152, 8192, 1e-5f, 1e5f, true},
    {"1b", "a llama of 1.1 billion", 22, 2048, 32, 4, 5632, 32000, 2048, 1e-5f, 1e4f, false},
    {"7b", "a llama of 7.2 billion", 32, 4096, 32, 8, 14336, 32000, 8192, 1e-5f, 1e4f, false},
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

const synth_shape *synth_get_shape(size_t i) {
    return i < SHAPE_COUNT ? &shapes[i] : NULL;
}

const synth_shape *synth_find_shape(const char *name, err *e) {
    char valid[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
        used += (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "",
                                 shapes[i].name);
    }
    err_set(e, EXIT_USAGE, "no shape '%.40s' (valid: %s)", name, valid);
    return NULL;
}

typedef struct {
    const synth_shape *shape;
    const synth_options *options;
    weight_stream out;
    bool is_writing; /* tensors are first announced, then written: the same walk twice */
    err *e;
} synthesis;

/* --- the weights --- */

/* A sum of four whole numbers of 16 bits, drawn together: nearly normal, and the same everywhere.
 * Its mean is 131070, its spread 65536 / sqrt(3). */
static void draw_weights(rng *r, double spread, float *out, size_t count) {
    float scale = (float)(spread * sqrt(3.0) / 65536);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = rng_next(r);
        int sum = (int)(bits & 0xffff) + (int)(bits >> 16 & 0xffff) + (int)(bits >> 32 & 0xffff) +
                  (int)(bits >> 48);
        out[i] = (float)(sum - 131070) * scale;
    }
}

static void draw_norm(rng *r, float *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(0.9 + 0.2 * rng_uniform(r));
}

static bool write_tensor(synthesis *s, const char *name, const gguf_type *type, uint64_t columns,
                         uint64_t rows, double spread) {
    rng r = rng_new(s->options->seed, name);
    for (uint64_t left = columns * rows; left > 0;) {
        size_t count = left < WEIGHT_PIECE ? (size_t)left : WEIGHT_PIECE;
        if (spread > 0)
            draw_weights(&r, spread, s->out.values, count);
        else
            draw_norm(&r, s->out.values, count);
        if (!weight_stream_encode(&s->out, type, count, s->e))
            return false;
        left -= count;
    }
    return true;
}

/* A tensor of this name; a spread of 0 makes the weights of a norm, around 1. */
static bool add(synthesis *s, const char *name, const gguf_type *type, uint64_t columns,
                uint64_t rows, double spread) {
    if (s->is_writing)
        return write_tensor(s, name, type, columns, rows, spread);
    const uint64_t dim[] = {columns, rows};
    weight_stream_add(&s->out, name, type, dim, rows > 1 ? 2 : 1);
    return true;
}

static bool add_layer(synthesis *s, uint32_t layer) {
    const synth_shape *h = s->shape;
    uint32_t q = h->hidden, kv = h->hidden / h->heads * h->kv_heads;
    const struct {
        const char *name;
        uint32_t columns, rows;
    } tensors[] = {
        {"attn_norm", q, 1},     {"attn_q", q, q},      {"attn_k", q, kv},
        {"attn_v", q, kv},       {"attn_output", q, q}, {"ffn_norm", q, 1},
        {"ffn_gate", q, h->ffn}, {"ffn_up", q, h->ffn}, {"ffn_down", h->ffn, q},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char name[GGUF_NAME_BYTES];
        bool is_norm = tensors[i].rows == 1;
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, tensors[i].name);
        if (!add(s, name,
                 is_norm ? gguf_find_format(&format_f32)
                         : convert_fit_type(s->options->type, tensors[i].columns),
                 tensors[i].columns, tensors[i].rows,
                 is_norm ? 0 : 1 / sqrt((double)tensors[i].columns)))
            return false;
    }
    return true;
}

static bool add_tensors(synthesis *s) {
    const synth_shape *h = s->shape;
    const gguf_type *ends = s->options->type; /* of embedding and head */
    if (ends->values > 1)
        ends = gguf_find_format(&format_q8_0);
    double spread = 3 / sqrt((double)h->hidden);
    if (!add(s, "token_embd.weight", ends, h->hidden, h->vocab, spread) ||
        !add(s, "output_norm.weight", gguf_find_format(&format_f32), h->hidden, 1, 0) ||
        (!h->is_tied && !add(s, "output.weight", ends, h->hidden, h->vocab, spread)))
        return false;
    uint32_t layers = s->options->layers ? s->options->layers : h->layers;
    for (uint32_t i = 0; i < layers; i++)
        if (!add_layer(s, i))
            return false;
    return true;
}

/* --- the metadata --- */

static gguf_text to_text(const char *text) {
    return (gguf_text){text, strlen(text)};
}

static void add_shape(synthesis *s) {
    const synth_shape *h = s->shape;
    gguf_writer *w = s->out.file;
    char name[96];
    snprintf(name, sizeof name, "random weights in the shape of %s, seed %llu", h->name,
             (unsigned long long)s->options->seed);
    gguf_writer_add_text(w, "general.architecture", to_text("llama"));
    gguf_writer_add_text(w, "general.name", to_text(name));
    gguf_writer_add_u32(w, "llama.block_count",
                        s->options->layers ? s->options->layers : h->layers);
    gguf_writer_add_u32(w, "llama.context_length", h->context);
    gguf_writer_add_u32(w, "llama.embedding_length", h->hidden);
    gguf_writer_add_u32(w, "llama.feed_forward_length", h->ffn);
    gguf_writer_add_u32(w, "llama.attention.head_count", h->heads);
    gguf_writer_add_u32(w, "llama.attention.head_count_kv", h->kv_heads);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", h->eps);
    gguf_writer_add_f32(w, "llama.rope.freq_base", h->rope_base);
    gguf_writer_add_u32(w, "llama.rope.dimension_count", h->hidden / h->heads);
    gguf_writer_add_u32(w, "llama.vocab_size", h->vocab);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    gguf_writer_add_u32(w, "general.file_type", convert_get_file_type(s->options->type));
}

static bool add_tokenizer(synthesis *s) {
    gguf_writer *w = s->out.file;
    synth_vocab v;
    if (!synth_vocab_make(&v, s->shape->vocab, s->e))
        return false;
    gguf_writer_add_text(w, "tokenizer.ggml.model", to_text("gpt2"));
    gguf_writer_add_text(w, "tokenizer.ggml.pre", to_text("smollm"));
    gguf_writer_add_texts(w, "tokenizer.ggml.tokens", v.tokens, v.count);
    gguf_writer_add_i32s(w, "tokenizer.ggml.token_type", v.types, v.count);
    gguf_writer_add_texts(w, "tokenizer.ggml.merges", v.merges, v.merge_count);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 2);
    gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.padding_token_id", 2);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", false);
    synth_vocab_free(&v);
    return true;
}

static bool write_all(synthesis *s) {
    add_shape(s);
    if (!add_tokenizer(s) || !add_tensors(s) || !gguf_writer_finish_header(s->out.file, s->e))
        return false;
    s->is_writing = true;
    return add_tensors(s) && gguf_writer_finish(s->out.file, s->e);
}

bool synth_write_model(const synth_shape *shape, const char *path, const synth_options *o, err *e) {
    synthesis s = {.shape = shape, .options = o, .e = e};
    bool ok = weight_stream_open(&s.out, path, o->watch, o->context, e) && write_all(&s);
    weight_stream_close(&s.out);
    return ok;
}
