/* synth: see synth.h. Owns the shapes, the vocabularies, how weights are drawn, and what a file of
 * each family has.
 *
 * The vectors of an RWKV-7 are drawn from where those of trained models are: decays from 0.55 to nearly 1,
 * so that a head remembers from one token to hundreds; keys, rates and gates of the size that
 * the equations give them. Types are those of published files. */
#include "synth.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/check/fill.h"
#include "runner/tokenizer/bpe.h"
#include "runner/tokenizer/unicode.h"

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

/* --- a vocabulary that any bytes can be written with ---
 *
 * Two letters make a token, and two of those make one of four: as all are of one length, no two
 * merges make the same token. Frequent letters are merged first, so English comes out shorter. */

enum { LETTERS = 26, FIRSTS = LETTERS + 1, PAIRS = FIRSTS * LETTERS };
enum { TOKEN_ROOM = 8, MERGE_ROOM = 2 * TOKEN_ROOM + 1 }; /* bytes; a symbol has at most two */

static const char alphabet[] = " etaoinshrdlcumwfgypbvkjxqz"; /* a space can only be the first */

static char *put_byte(char *at, unsigned byte) {
    return at + unicode_encode(bpe_map_byte((unsigned char)byte), at);
}

static char *put_text(char *at, gguf_text text) {
    memcpy(at, text.data, text.bytes);
    return at + text.bytes;
}

/* Cell k of a table of rows and columns that is walked along its diagonals: (0, 0), (0, 1), (1, 0),
 * (0, 2), ... */
static void find_cell(size_t k, size_t rows, size_t columns, size_t *row, size_t *column) {
    for (size_t sum = 0;; sum++) {
        size_t first = sum < columns ? 0 : sum - columns + 1, last = sum < rows ? sum : rows - 1;
        assert(first <= last);
        if (k <= last - first) {
            *row = first + k;
            *column = sum - *row;
            return;
        }
        k -= last - first + 1;
    }
}

/* Byte tokens are in the order of their characters. */
static void add_bytes(synth_vocab *v, char **at) {
    for (int round = 0; round < 2; round++)
        for (unsigned byte = 0; byte < 256; byte++) {
            bool is_moved = bpe_map_byte((unsigned char)byte) != byte;
            if (is_moved != (round > 0))
                continue;
            char *start = *at;
            *at = put_byte(*at, byte);
            v->types[v->count] = 1;
            v->tokens[v->count++] = (gguf_text){start, (size_t)(*at - start)};
        }
}

static void add_merge(synth_vocab *v, gguf_text a, gguf_text b, char **at) {
    char *start = *at;
    *at = put_text(*at, a);
    *(*at)++ = ' ';
    *at = put_text(*at, b);
    v->merges[v->merge_count++] = (gguf_text){start, (size_t)(*at - start)};
    start = *at;
    *at = put_text(put_text(start, a), b);
    v->types[v->count] = 1;
    v->tokens[v->count++] = (gguf_text){start, (size_t)(*at - start)};
}

static void add_merges(synth_vocab *v, size_t count, char **at) {
    gguf_text symbols[FIRSTS], pairs[PAIRS], seconds[PAIRS];
    char written[FIRSTS][UNICODE_BYTES];
    size_t inner = 0, i, j;
    for (i = 0; i < FIRSTS; i++) {
        char *end = put_byte(written[i], (unsigned char)alphabet[i]);
        symbols[i] = (gguf_text){written[i], (size_t)(end - written[i])};
    }
    for (size_t k = 0; v->count < count && k < PAIRS; k++) {
        find_cell(k, FIRSTS, LETTERS, &i, &j);
        add_merge(v, symbols[i], symbols[1 + j], at);
        pairs[k] = v->tokens[v->count - 1];
        if (i > 0)
            seconds[inner++] = pairs[k];
    }
    for (size_t k = 0; v->count < count; k++) {
        find_cell(k, PAIRS, inner, &i, &j);
        add_merge(v, pairs[i], seconds[j], at);
    }
}

/* Room for `count` tokens and merges. */
static void make_room(synth_vocab *v, uint32_t count) {
    *v = (synth_vocab){.tokens = array_new(count, sizeof *v->tokens),
                       .merges = array_new(count, sizeof *v->merges),
                       .types = array_new(count, sizeof *v->types),
                       .letters = array_new(count, TOKEN_ROOM + MERGE_ROOM)};
}

void synth_vocab_make(synth_vocab *v, uint32_t count) {
    static const char *const specials[SYNTH_SPECIALS] = {"<|endoftext|>", "<|im_start|>",
                                                         "<|im_end|>"};
    assert(count >= SYNTH_MIN_VOCAB && count <= SYNTH_MAX_VOCAB);
    make_room(v, count);
    for (; v->count < SYNTH_SPECIALS; v->count++) {
        v->tokens[v->count] = gguf_to_text(specials[v->count]);
        v->types[v->count] = 3; /* control */
    }
    char *at = v->letters;
    add_bytes(v, &at);
    add_merges(v, count, &at);
}

/* --- a World vocabulary --- */

static void add_world(synth_vocab *v, int32_t type, char *at, int bytes) {
    v->types[v->count] = type;
    v->tokens[v->count++] = (gguf_text){at, (size_t)bytes};
}

/* As Python writes bytes. */
static int print_byte(char *at, unsigned byte) {
    switch (byte) {
    case '\t':
        return sprintf(at, "\\t");
    case '\n':
        return sprintf(at, "\\n");
    case '\r':
        return sprintf(at, "\\r");
    case '\\':
        return sprintf(at, "\\\\");
    default:
        return byte >= ' ' && byte <= '~' ? sprintf(at, "%c", (int)byte)
                                          : sprintf(at, "\\x%02x", byte);
    }
}

void synth_vocab_make_world(synth_vocab *v, uint32_t count) {
    assert(count >= SYNTH_WORLD_MIN + SYNTH_WORLD_PADDING && count <= SYNTH_MAX_VOCAB);
    make_room(v, count);
    char *at = v->letters, pairs[PAIRS][2], seconds[PAIRS][2];
    size_t words = count - SYNTH_WORLD_MIN - SYNTH_WORLD_PADDING, inner = 0, i, j;
    int bytes = sprintf(at, "<s>");
    add_world(v, 3, at, bytes);
    at += bytes;
    for (unsigned byte = 0; byte < 256; byte++, at += bytes)
        add_world(v, 1, at, bytes = print_byte(at, byte));
    for (size_t k = 0; k < PAIRS; k++) {
        find_cell(k, FIRSTS, LETTERS, &i, &j);
        memcpy(pairs[k], (char[2]){alphabet[i], alphabet[1 + j]}, 2);
        if (i > 0)
            memcpy(seconds[inner++], pairs[k], 2);
    }
    for (size_t k = 0; k < words; k++, at += bytes) {
        bytes = k < PAIRS ? 2 : 4;
        if (k >= PAIRS)
            find_cell(k - PAIRS, PAIRS, inner, &i, &j);
        memcpy(at, pairs[k < PAIRS ? k : i], 2);
        if (k >= PAIRS)
            memcpy(at + 2, seconds[j], 2);
        add_world(v, 1, at, bytes);
    }
    for (; v->count < count; at += bytes)
        add_world(v, 5, at, bytes = sprintf(at, "[PAD%zu]", v->count));
}

void synth_vocab_free(synth_vocab *v) {
    free(v->tokens);
    free(v->merges);
    free(v->types);
    free(v->letters);
    *v = (synth_vocab){.count = 0};
}

/* --- weights --- */

typedef struct {
    const synth_shape *shape;
    const synth_options *options;
    weight_stream out;
    bool is_writing; /* tensors are first announced, then written: the same walk twice */
    err *e;
} synthesis;

/* Nearly normal around 0, or uniform where there is no spread. */
typedef struct {
    double spread, low, width;
} synth_values;

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

static void draw_uniform(rng *r, const synth_values *v, float *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(v->low + v->width * rng_uniform(r));
}

/* The encoded piece again, from block `first` on. */
static bool write_rotated(synthesis *s, const gguf_type *type, size_t first, size_t blocks) {
    const uint8_t *at = s->out.blocks;
    size_t whole = WEIGHT_PIECE / type->values, from = first * type->bytes,
           front = whole - first < blocks ? whole - first : blocks;
    return weight_stream_write(&s->out, at + from, front * type->bytes, s->e) &&
           weight_stream_write(&s->out, at, (blocks - front) * type->bytes, s->e);
}

/* Drawing and encoding take longer than writing. Of a large tensor every 16th piece is drawn; those after it
 * repeat it, each from a block further on, so that rows differ. */
static bool write_tensor(synthesis *s, const char *name, const gguf_type *type, uint64_t elements,
                         const synth_values *v) {
    enum { SAME = 16 };
    rng r = rng_new(s->options->seed, name);
    size_t piece = 0;
    for (uint64_t left = elements; left > 0; piece++) {
        size_t count = left < WEIGHT_PIECE ? (size_t)left : WEIGHT_PIECE;
        left -= count;
        if (piece % SAME > 0) {
            if (!write_rotated(s, type, piece % SAME, count / type->values))
                return false;
            continue;
        }
        if (v->spread > 0)
            draw_weights(&r, v->spread, s->out.values, count);
        else
            draw_uniform(&r, v, s->out.values, count);
        if (!weight_stream_encode(&s->out, type, count, s->e))
            return false;
    }
    return true;
}

/* A tensor of this name, drawn by it. */
static bool add_shaped(synthesis *s, const char *name, const gguf_type *type, const uint64_t *dim,
                       uint32_t dims, synth_values v) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dims; i++)
        elements *= dim[i];
    if (s->is_writing)
        return write_tensor(s, name, type, elements, &v);
    weight_stream_add(&s->out, name, type, dim, dims);
    return true;
}

/* One row is a vector. */
static bool add(synthesis *s, const char *name, const gguf_type *type, uint64_t columns,
                uint64_t rows, synth_values v) {
    return add_shaped(s, name, type, (uint64_t[]){columns, rows}, rows > 1 ? 2 : 1, v);
}

/* Of a layer. */
static bool add_tensor(synthesis *s, uint32_t layer, const char *part, const gguf_type *type,
                       uint64_t columns, uint64_t rows, synth_values v) {
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.%s", layer, part);
    return add(s, name, type, columns, rows, v);
}

/* Vectors are drawn from values, matrices so that y = W x is as large as x. */
typedef struct {
    const char *name;
    uint32_t columns, rows;
    synth_values values;
} layer_part;

static bool add_parts(synthesis *s, uint32_t layer, const layer_part *parts, size_t count) {
    for (const layer_part *p = parts; p < parts + count; p++) {
        bool is_vector = p->rows == 1;
        synth_values even = {.spread = 1 / sqrt((double)p->columns)};
        if (!add_tensor(s, layer, p->name,
                        is_vector ? gguf_find_format(&format_f32)
                                  : convert_fit_type(s->options->type, p->columns),
                        p->columns, p->rows, is_vector ? p->values : even))
            return false;
    }
    return true;
}

static const synth_values matrix = {0, 0, 0}, norm = {.low = 0.9, .width = 0.2},
                          bias = {.low = -0.1, .width = 0.2};

static synth_values draw_wide(const synthesis *s) { /* of embedding and head */
    return (synth_values){.spread = 3 / sqrt((double)s->shape->hidden)};
}

static uint32_t count_layers(const synthesis *s) {
    return s->options->layers ? s->options->layers : s->shape->layers;
}

/* --- a llama --- */

static bool add_llama_layer(synthesis *s, uint32_t layer) {
    const synth_shape *h = s->shape;
    uint32_t q = h->hidden, kv = h->hidden / h->heads * h->kv_heads;
    const layer_part parts[] = {
        {"attn_norm.weight", q, 1, norm},       {"attn_q.weight", q, q, matrix},
        {"attn_k.weight", q, kv, matrix},       {"attn_v.weight", q, kv, matrix},
        {"attn_output.weight", q, q, matrix},   {"ffn_norm.weight", q, 1, norm},
        {"ffn_gate.weight", q, h->ffn, matrix}, {"ffn_up.weight", q, h->ffn, matrix},
        {"ffn_down.weight", h->ffn, q, matrix},
    };
    return add_parts(s, layer, parts, sizeof parts / sizeof *parts);
}

static bool add_llama_ends(synthesis *s) {
    const synth_shape *h = s->shape;
    const gguf_type *type = s->options->type;
    if (type->values > 1)
        type = gguf_find_format(&format_q8_0);
    return add(s, "token_embd.weight", type, h->hidden, h->vocab, draw_wide(s)) &&
           add(s, "output_norm.weight", gguf_find_format(&format_f32), h->hidden, 1, norm) &&
           (h->is_tied || add(s, "output.weight", type, h->hidden, h->vocab, draw_wide(s)));
}

static void add_llama_shape(synthesis *s) {
    const synth_shape *h = s->shape;
    gguf_writer *w = s->out.file;
    gguf_writer_add_u32(w, "llama.block_count", count_layers(s));
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

static void add_llama_tokenizer(synthesis *s) {
    gguf_writer *w = s->out.file;
    synth_vocab v;
    synth_vocab_make(&v, s->shape->vocab);
    gguf_writer_add_text(w, "tokenizer.ggml.model", gguf_to_text("gpt2"));
    gguf_writer_add_text(w, "tokenizer.ggml.pre", gguf_to_text("smollm"));
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
}

/* --- an RWKV-7 --- */

enum { HEAD_SIZE = 64, MIXES = 6 };

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
        if (!add_tensor(s, layer, down, type, h->hidden, rank,
                        (synth_values){.spread = 1 / sqrt((double)h->hidden)}) ||
            !add_tensor(s, layer, up, type, rank, h->hidden,
                        (synth_values){.spread = 1 / sqrt((double)rank)}))
            return false;
    }
    return true;
}

static bool add_rwkv7_layer(synthesis *s, uint32_t layer) {
    uint32_t d = s->shape->hidden, ffn = s->shape->ffn;
    const layer_part parts[] = {
        {"attn_norm.weight", d, 1, norm},
        {"attn_norm.bias", d, 1, bias},
        {"attn_norm_2.weight", d, 1, norm},
        {"attn_norm_2.bias", d, 1, bias},
        {"time_mix_w0.weight", d, 1, {0, -6, 5}},
        {"time_mix_a0.weight", d, 1, {0, -1, 2}},
        {"time_mix_v0.weight", d, 1, {0, -1, 2}},
        {"time_mix_k_k.weight", d, 1, {0, 0.6, 0.4}},
        {"time_mix_k_a.weight", d, 1, {0, 0.8, 0.4}},
        {"time_mix_r_k.weight", d, 1, {0, -0.25, 0.5}},
        {"time_mix_ln.weight", d, 1, norm},
        {"time_mix_ln.bias", d, 1, bias},
        {"channel_mix_lerp_k.weight", d, 1, {0, 0, 1}},
        {"time_mix_receptance.weight", d, d, matrix},
        {"time_mix_key.weight", d, d, matrix},
        {"time_mix_value.weight", d, d, matrix},
        {"time_mix_output.weight", d, d, matrix},
        {"channel_mix_key.weight", d, ffn, matrix},
        {"channel_mix_value.weight", ffn, d, matrix},
    };
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%u.time_mix_lerp_fused.weight", layer);
    return add_parts(s, layer, parts, sizeof parts / sizeof *parts) && add_adapters(s, layer) &&
           /* readers expect just these dimensions */
           add_shaped(s, name, gguf_find_format(&format_f32), (uint64_t[]){d, 1, 1, MIXES}, 4,
                      (synth_values){.low = 0, .width = 1});
}

static bool add_rwkv7_ends(synthesis *s) {
    const gguf_type *floats = gguf_find_format(&format_f32), *type = s->options->type;
    uint32_t d = s->shape->hidden, vocab = s->shape->vocab;
    return add(s, "token_embd.weight", convert_fit_type(type, d), d, vocab, draw_wide(s)) &&
           add(s, "token_embd_norm.weight", floats, d, 1, norm) &&
           add(s, "token_embd_norm.bias", floats, d, 1, bias) &&
           add(s, "output_norm.weight", floats, d, 1, norm) &&
           add(s, "output_norm.bias", floats, d, 1, bias) &&
           add(s, "output.weight", convert_fit_head(type, d), d, vocab, draw_wide(s));
}

static void add_rwkv7_shape(synthesis *s) {
    const synth_shape *h = s->shape;
    gguf_writer *w = s->out.file;
    gguf_writer_add_u32(w, "rwkv7.block_count", count_layers(s));
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

static void add_rwkv7_tokenizer(synthesis *s) {
    gguf_writer *w = s->out.file;
    synth_vocab v;
    synth_vocab_make_world(&v, s->shape->vocab);
    gguf_writer_add_text(w, "tokenizer.ggml.model", gguf_to_text("rwkv"));
    gguf_writer_add_texts(w, "tokenizer.ggml.tokens", v.tokens, v.count);
    gguf_writer_add_i32s(w, "tokenizer.ggml.token_type", v.types, v.count);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 0);
    synth_vocab_free(&v);
}

/* --- any --- */

typedef struct {
    const char *name; /* general.architecture */
    void (*add_shape)(synthesis *s);
    void (*add_tokenizer)(synthesis *s);
    bool (*add_ends)(synthesis *s); /* what is outside of the layers */
    bool (*add_layer)(synthesis *s, uint32_t layer);
} synth_family;

static const synth_family llama = {"llama", add_llama_shape, add_llama_tokenizer, add_llama_ends,
                                   add_llama_layer},
                          rwkv7 = {"rwkv7", add_rwkv7_shape, add_rwkv7_tokenizer, add_rwkv7_ends,
                                   add_rwkv7_layer};

static bool add_tensors(synthesis *s, const synth_family *f) {
    bool ok = f->add_ends(s);
    for (uint32_t i = 0; ok && i < count_layers(s); i++)
        ok = f->add_layer(s, i);
    return ok;
}

static bool write_all(synthesis *s) {
    const synth_family *f = s->shape->ranks[0] ? &rwkv7 : &llama;
    gguf_writer *w = s->out.file;
    char name[96];
    snprintf(name, sizeof name, "random weights in the shape of %s, seed %llu", s->shape->name,
             (unsigned long long)s->options->seed);
    gguf_writer_add_text(w, "general.architecture", gguf_to_text(f->name));
    gguf_writer_add_text(w, "general.name", gguf_to_text(name));
    f->add_shape(s);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    gguf_writer_add_u32(w, "general.file_type", s->options->type->file_type);
    f->add_tokenizer(s);
    if (!add_tensors(s, f) || !gguf_writer_finish_header(w, s->e))
        return false;
    s->is_writing = true;
    return add_tensors(s, f) && gguf_writer_finish(w, s->e);
}

bool synth_write_model(const synth_shape *shape, const char *path, const synth_options *o, err *e) {
    synthesis s = {.shape = shape, .options = o, .e = e};
    bool ok = weight_stream_open(&s.out, path, o->watch, o->context, e) && write_all(&s);
    weight_stream_close(&s.out);
    return ok;
}
