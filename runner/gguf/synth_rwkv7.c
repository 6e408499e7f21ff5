/* synth_rwkv7: an RWKV-7 with random weights, see synth.h. Types are those of published files.
 *
 * The vectors are drawn from where those of trained models are: decays from 0.55 to nearly 1,
 * so that a head remembers from one token to hundreds; keys, rates and gates of the size that
 * the equations give them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth_parts.h"

enum { HEAD_SIZE = 64, MIXES = 6 };

typedef struct {
    const char *name;
    synth_values values;
} vector_part;

static const vector_part vectors[] = {
    {"attn_norm.weight", {0, 0.9, 0.2}},      {"attn_norm.bias", {0, -0.1, 0.2}},
    {"attn_norm_2.weight", {0, 0.9, 0.2}},    {"attn_norm_2.bias", {0, -0.1, 0.2}},
    {"time_mix_w0.weight", {0, -6, 5}},       {"time_mix_a0.weight", {0, -1, 2}},
    {"time_mix_v0.weight", {0, -1, 2}},       {"time_mix_k_k.weight", {0, 0.6, 0.4}},
    {"time_mix_k_a.weight", {0, 0.8, 0.4}},   {"time_mix_r_k.weight", {0, -0.25, 0.5}},
    {"time_mix_ln.weight", {0, 0.9, 0.2}},    {"time_mix_ln.bias", {0, -0.1, 0.2}},
    {"channel_mix_lerp_k.weight", {0, 0, 1}},
};

static bool add_part(synthesis *s, uint32_t layer, const char *part, const gguf_type *type,
                     uint64_t columns, uint64_t rows, synth_values v) {
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s", layer, part);
    return synth_add(s, name, type, columns, rows, v);
}

/* The first layer has nothing to mix its value with: files hold other adapters in its place. */
static bool add_adapters(synthesis *s, uint32_t layer) {
    static const char letters[] = "wavg";
    const synth_shape *h = s->shape;
    for (int i = 0; i < 4; i++) {
        uint32_t rank = h->ranks[layer == 0 && letters[i] == 'v' ? 1 : i];
        const gguf_type *type = gguf_find_format(letters[i] == 'w' ? &format_f32 : &format_f16);
        if (s->options->type->format == &format_f32)
            type = s->options->type;
        char down[32], up[32];
        snprintf(down, sizeof down, "time_mix_%c1.weight", letters[i]);
        snprintf(up, sizeof up, "time_mix_%c2.weight", letters[i]);
        if (!add_part(s, layer, down, type, h->hidden, rank,
                      (synth_values){.spread = 1 / sqrt((double)h->hidden)}) ||
            !add_part(s, layer, up, type, rank, h->hidden,
                      (synth_values){.spread = 1 / sqrt((double)rank)}))
            return false;
    }
    return true;
}

/* Readers expect just these dimensions. */
static bool add_mixes(synthesis *s, uint32_t layer) {
    char name[GGUF_NAME_BYTES];
    const uint64_t dim[] = {s->shape->hidden, 1, 1, MIXES};
    snprintf(name, sizeof name, "blk.%u.time_mix_lerp_fused.weight", layer);
    return synth_add_shaped(s, name, gguf_find_format(&format_f32), dim, 4,
                            (synth_values){.low = 0, .width = 1});
}

static bool add_layer(synthesis *s, uint32_t layer) {
    const synth_shape *h = s->shape;
    const struct {
        const char *name;
        uint32_t columns, rows;
    } matrices[] = {
        {"time_mix_receptance.weight", h->hidden, h->hidden},
        {"time_mix_key.weight", h->hidden, h->hidden},
        {"time_mix_value.weight", h->hidden, h->hidden},
        {"time_mix_output.weight", h->hidden, h->hidden},
        {"channel_mix_key.weight", h->hidden, h->ffn},
        {"channel_mix_value.weight", h->ffn, h->hidden},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (!add_part(s, layer, vectors[i].name, gguf_find_format(&format_f32), h->hidden, 1,
                      vectors[i].values))
            return false;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (!add_part(s, layer, matrices[i].name,
                      convert_fit_type(s->options->type, matrices[i].columns), matrices[i].columns,
                      matrices[i].rows,
                      (synth_values){.spread = 1 / sqrt((double)matrices[i].columns)}))
            return false;
    return add_adapters(s, layer) && add_mixes(s, layer);
}

static bool add_tensors(synthesis *s) {
    const synth_shape *h = s->shape;
    const gguf_type *floats = gguf_find_format(&format_f32), *type = s->options->type;
    const synth_values weight = {.low = 0.9, .width = 0.2}, bias = {.low = -0.1, .width = 0.2};
    const synth_values wide = {.spread = 3 / sqrt((double)h->hidden)};
    if (!synth_add(s, "token_embd.weight", convert_fit_type(type, h->hidden), h->hidden, h->vocab,
                   wide) ||
        !synth_add(s, "token_embd_norm.weight", floats, h->hidden, 1, weight) ||
        !synth_add(s, "token_embd_norm.bias", floats, h->hidden, 1, bias) ||
        !synth_add(s, "output_norm.weight", floats, h->hidden, 1, weight) ||
        !synth_add(s, "output_norm.bias", floats, h->hidden, 1, bias) ||
        !synth_add(s, "output.weight", convert_fit_head(type, h->hidden), h->hidden, h->vocab,
                   wide))
        return false;
    for (uint32_t i = 0; i < synth_count_layers(s); i++)
        if (!add_layer(s, i))
            return false;
    return true;
}

static void add_shape(synthesis *s) {
    const synth_shape *h = s->shape;
    gguf_writer *w = s->out.file;
    gguf_writer_add_u32(w, "rwkv7.block_count", synth_count_layers(s));
    gguf_writer_add_u32(w, "rwkv7.context_length", h->context);
    gguf_writer_add_u32(w, "rwkv7.embedding_length", h->hidden);
    gguf_writer_add_u32(w, "rwkv7.feed_forward_length", h->ffn);
    gguf_writer_add_f32(w, "rwkv7.attention.layer_norm_epsilon", h->eps);
    gguf_writer_add_u32(w, "rwkv7.attention.head_count", 0);
    gguf_writer_add_u32(w, "rwkv7.wkv.head_size", HEAD_SIZE);
    gguf_writer_add_u32(w, "rwkv7.attention.decay_lora_rank", h->ranks[0]);
    gguf_writer_add_u32(w, "rwkv7.attention.iclr_lora_rank", h->ranks[1]);
    gguf_writer_add_u32(w, "rwkv7.attention.value_residual_mix_lora_rank", h->ranks[2]);
    gguf_writer_add_u32(w, "rwkv7.attention.gate_lora_rank", h->ranks[3]);
}

static bool add_tokenizer(synthesis *s) {
    gguf_writer *w = s->out.file;
    synth_vocab v;
    if (!synth_vocab_make_world(&v, s->shape->vocab, s->e))
        return false;
    gguf_writer_add_text(w, "tokenizer.ggml.model", (gguf_text){"rwkv", 4});
    gguf_writer_add_texts(w, "tokenizer.ggml.tokens", v.tokens, v.count);
    gguf_writer_add_i32s(w, "tokenizer.ggml.token_type", v.types, v.count);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 0);
    synth_vocab_free(&v);
    return true;
}

const synth_family synth_rwkv7 = {"rwkv7", add_shape, add_tokenizer, add_tensors};
