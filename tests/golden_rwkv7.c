/* golden_rwkv7: see golden_rwkv7.h. */
#include "golden_rwkv7.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/elem.h"
#include "runner/gguf/write.h"

enum { D = GOLDEN_HIDDEN, FFN = 512, RANK = 32, GATE_RANK = 64 };

const uint32_t golden_tokens[GOLDEN_TOKENS] = {3, 7, 7, 1};

const golden_output golden_outputs[GOLDEN_TOKENS] = {
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

const golden_state golden_states[GOLDEN_LAYERS] = {{{0.135841, -0.247583, 0.080678, -0.174173},
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
    err *e;
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
        if (!(is_half ? gguf_writer_write(w->file, &half, sizeof half, w->e)
                      : gguf_writer_write(w->file, &x, sizeof x, w->e)))
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

bool golden_rwkv7_write(const char *path, const golden_options *o, err *e) {
    writing w = {.file = gguf_writer_new(path, e), .options = o, .e = e};
    if (!w.file)
        return false;
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
    bool ok = add_all(&w) && gguf_writer_finish_header(w.file, e);
    w.is_writing = true;
    ok = ok && add_all(&w) && gguf_writer_finish(w.file, e);
    gguf_writer_free(w.file);
    return ok;
}
