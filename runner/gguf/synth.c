/* synth: see synth.h. Owns the shapes and the models of the llama family; synth_parts.c draws the
 * weights, synth_rwkv7.c has the models of RWKV-7, synth_vocab.c the vocabularies. */
#include "synth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth_parts.h"

#define RWKV7(name, about, layers, hidden, heads, ffn, vocab, w, a, v, g)                          \
    {                                                                                              \
        name, about, layers, hidden, heads, heads, ffn, vocab, 1048576, 1e-5f, 0, false, {         \
            w, a, v, g                                                                             \
        }                                                                                          \
    }

/* Another shape is another row. */
static const synth_shape shapes[] = {
    /* name, about, layers, hidden, heads, kv heads, ffn, vocab, context, eps, rope base, tied */
    {"tiny", "for tests", 2, 64, 4, 2, 160, 512, 512, 1e-5f, 1e4f, true, {0}},
    {"smollm-135m", "SmolLM-135M", 30, 576, 9, 3, 1536, 49152, 2048, 1e-5f, 1e4f, true, {0}},
    {"smollm2-135m", "SmolLM2-135M", 30, 576, 9, 3, 1536, 49152, 8192, 1e-5f, 1e5f, true, {0}},
    {"smollm2-360m", "SmolLM2-360M", 32, 960, 15, 5, 2560, 49152, 8192, 1e-5f, 1e5f, true, {0}},
    {"1b", "a llama of 1.1 billion", 22, 2048, 32, 4, 5632, 32000, 2048, 1e-5f, 1e4f, false, {0}},
    {"7b", "a llama of 7.2 billion", 32, 4096, 32, 8, 14336, 32000, 8192, 1e-5f, 1e4f, false, {0}},
    /* RWKV-7: name, about, layers, hidden, heads, ffn, vocab, ranks of w, a, v, g */
    RWKV7("rwkv7-tiny", "for tests", 2, 128, 2, 256, 512, 16, 32, 8, 24),
    RWKV7("rwkv7-0.1b", "RWKV-7 World 0.1B", 12, 768, 12, 3072, 65536, 64, 64, 32, 128),
    RWKV7("rwkv7-0.4b", "RWKV-7 World 0.4B", 24, 1024, 16, 4096, 65536, 64, 64, 32, 128),
    RWKV7("rwkv7-1.5b", "RWKV-7 World 1.5B", 24, 2048, 32, 8192, 65536, 96, 96, 64, 256),
    RWKV7("rwkv7-2.9b", "RWKV-7 World 2.9B", 32, 2560, 40, 10240, 65536, 96, 96, 64, 320),
    RWKV7("rwkv7-7.2b", "RWKV-7 World 7.2B", 32, 4096, 64, 16384, 65536, 128, 128, 96, 480),
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

const synth_shape *synth_get_shape(size_t i) {
    return i < SHAPE_COUNT ? &shapes[i] : NULL;
}

const synth_shape *synth_find_shape(const char *name, err *e) {
    char valid[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
        used += (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "",
                                 shapes[i].name);
    }
    return err_null(e, EXIT_USAGE, "no shape '%.40s' (valid: %s)", name, valid);
}

/* --- a llama --- */

static const synth_values norm = {.low = 0.9, .width = 0.2};

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
        synth_values matrix = {.spread = 1 / sqrt((double)tensors[i].columns)};
        if (!synth_add(s, name,
                       is_norm ? gguf_find_format(&format_f32)
                               : convert_fit_type(s->options->type, tensors[i].columns),
                       tensors[i].columns, tensors[i].rows, is_norm ? norm : matrix))
            return false;
    }
    return true;
}

static bool add_llama_tensors(synthesis *s) {
    const synth_shape *h = s->shape;
    const gguf_type *ends = s->options->type; /* of embedding and head */
    if (ends->values > 1)
        ends = gguf_find_format(&format_q8_0);
    synth_values v = {.spread = 3 / sqrt((double)h->hidden)};
    if (!synth_add(s, "token_embd.weight", ends, h->hidden, h->vocab, v) ||
        !synth_add(s, "output_norm.weight", gguf_find_format(&format_f32), h->hidden, 1, norm) ||
        (!h->is_tied && !synth_add(s, "output.weight", ends, h->hidden, h->vocab, v)))
        return false;
    for (uint32_t i = 0; i < synth_count_layers(s); i++)
        if (!add_layer(s, i))
            return false;
    return true;
}

static gguf_text to_text(const char *text) {
    return (gguf_text){text, strlen(text)};
}

static void add_llama_shape(synthesis *s) {
    const synth_shape *h = s->shape;
    gguf_writer *w = s->out.file;
    gguf_writer_add_u32(w, "llama.block_count", synth_count_layers(s));
    gguf_writer_add_u32(w, "llama.context_length", h->context);
    gguf_writer_add_u32(w, "llama.embedding_length", h->hidden);
    gguf_writer_add_u32(w, "llama.feed_forward_length", h->ffn);
    gguf_writer_add_u32(w, "llama.attention.head_count", h->heads);
    gguf_writer_add_u32(w, "llama.attention.head_count_kv", h->kv_heads);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", h->eps);
    gguf_writer_add_f32(w, "llama.rope.freq_base", h->rope_base);
    gguf_writer_add_u32(w, "llama.rope.dimension_count", h->hidden / h->heads);
    gguf_writer_add_u32(w, "llama.vocab_size", h->vocab);
}

static bool add_llama_tokenizer(synthesis *s) {
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

/* --- any --- */

static const synth_family llama = {"llama", add_llama_shape, add_llama_tokenizer,
                                   add_llama_tensors};

static bool write_all(synthesis *s) {
    const synth_family *f = s->shape->ranks[0] ? &synth_rwkv7 : &llama;
    gguf_writer *w = s->out.file;
    char name[96];
    snprintf(name, sizeof name, "random weights in the shape of %s, seed %llu", s->shape->name,
             (unsigned long long)s->options->seed);
    gguf_writer_add_text(w, "general.architecture", to_text(f->name));
    gguf_writer_add_text(w, "general.name", to_text(name));
    f->add_shape(s);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    gguf_writer_add_u32(w, "general.file_type", convert_get_file_type(s->options->type));
    if (!f->add_tokenizer(s) || !f->add_tensors(s) || !gguf_writer_finish_header(w, s->e))
        return false;
    s->is_writing = true;
    return f->add_tensors(s) && gguf_writer_finish(w, s->e);
}

bool synth_write_model(const synth_shape *shape, const char *path, const synth_options *o, err *e) {
    synthesis s = {.shape = shape, .options = o, .e = e};
    bool ok = weight_stream_open(&s.out, path, o->watch, o->context, e) && write_all(&s);
    weight_stream_close(&s.out);
    return ok;
}
