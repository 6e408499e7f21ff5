/* convert: see convert.h. Owns the rule of what changes; blocks are encoded in reference/quant, and
 * write.c has the file. */
#include "convert.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void convert_list_types(char *text, size_t size) {
    size_t used = 0;
    const gguf_type *type;
    text[0] = 0;
    for (size_t i = 0; (type = gguf_get_type(i)) && used < size; i++)
        if (type->word)
            used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", type->word);
}

const gguf_type *convert_find_type(const char *name, err *e) {
    const gguf_type *type = gguf_find_type_name(name);
    char valid[128];
    if (type && type->word)
        return type;
    convert_list_types(valid, sizeof valid);
    return err_null(e, EXIT_USAGE, "unknown type '%.40s' (valid: %s)", name, valid);
}

const gguf_type *convert_fit_type(const gguf_type *type, uint64_t columns) {
    const weight_format *instead = type->instead;
    assert(type->word);
    if (columns % type->values == 0)
        return type;
    return gguf_find_format(instead && columns % instead->values == 0 ? instead : &format_f16);
}

/* --- the rule --- */

/* Small, or only looked up, or sensitive: they stay as they are. */
static const char *const kept[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_lerp_fused.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_a0.weight",
    "attn_rel_b.weight",
    "position_embd",
    "token_types.weight",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
};

/* Adapters of low rank: published models have them as F16, from which no quantisation changes them. */
static const char *const halved[] = {"time_mix_a1.weight", "time_mix_a2.weight",
                                     "time_mix_v1.weight", "time_mix_v2.weight",
                                     "time_mix_g1.weight", "time_mix_g2.weight"};

static bool is_halved(const gguf_tensor *t) {
    for (size_t i = 0; i < sizeof halved / sizeof *halved; i++)
        if (strstr(t->name, halved[i]))
            return true;
    return false;
}

static bool is_kept(const gguf_tensor *t) {
    const char *end = "weight";
    size_t length = strlen(t->name), ends = strlen(end);
    if (t->elements == t->dim[0] || length < ends || strcmp(t->name + length - ends, end) != 0)
        return true;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(t->name, kept[i]))
            return true;
    return false;
}

static bool is_head(const gguf *g, const gguf_tensor *t) {
    return strcmp(t->name, gguf_find_tensor(g, "output.weight") ? "output.weight"
                                                                : "token_embd.weight") == 0;
}

const gguf_type *convert_fit_head(const gguf_type *type, uint64_t columns) {
    bool is_six = type->format != &format_q8_0 && columns % format_q6_k.values == 0;
    if (type->values > 1)
        type = gguf_find_format(is_six ? &format_q6_k : &format_q8_0);
    return convert_fit_type(type, columns);
}

const gguf_type *convert_choose_type(const gguf *g, const gguf_tensor *t,
                                     const convert_options *o) {
    if (is_kept(t))
        return t->type;
    for (size_t i = 0; i < o->kept_count; i++)
        if (fnmatch(o->kept[i], t->name, 0) == 0)
            return t->type;
    const gguf_type *type = o->type;
    bool is_quantised = type->values > 1;
    if (is_quantised && is_halved(t))
        return t->type->format == &format_f32 ? gguf_find_format(&format_f16) : t->type;
    if (!o->is_pure && is_head(g, t))
        return convert_fit_head(type, t->dim[0]);
    return convert_fit_type(type, t->dim[0]);
}

/* --- the bytes --- */

typedef struct {
    const gguf *g;
    const convert_options *options;
    weight_stream out;
    err *e;
} conversion;

static void decode(const weight_format *f, const uint8_t *blocks, size_t count, float *out) {
    double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES];
    for (size_t i = 0; i < count; i += f->values, blocks += f->bytes) {
        f->decode(blocks, values, magnitudes);
        for (size_t j = 0; j < f->values; j++)
            out[i + j] = (float)values[j];
    }
}

/* Blocks have no NaN and no infinity of their own: such a value would be lost without a word. */
static bool check_finite(conversion *c, const gguf_tensor *t, const gguf_type *type, uint64_t at,
                         size_t count) {
    for (size_t i = 0; type->values > 1 && i < count; i++)
        if (!isfinite(c->out.values[i]))
            return err_set(c->e, EXIT_WRONG,
                           "tensor %s: value %" PRIu64 " is not finite (%g) and cannot be written "
                           "as %s; keep the tensor with --keep",
                           t->name, at + i, (double)c->out.values[i], type->name);
    return true;
}

/* A piece is the same number of values in the old type and in the new one. */
static bool write_tensor(conversion *c, const gguf_tensor *t) {
    const gguf_type *type = convert_choose_type(c->g, t, c->options);
    const uint8_t *from = t->data;
    for (uint64_t at = 0; at < t->elements; at += WEIGHT_PIECE) {
        size_t count = t->elements - at < WEIGHT_PIECE ? (size_t)(t->elements - at) : WEIGHT_PIECE;
        size_t bytes = count / t->type->values * t->type->bytes;
        if (type != t->type)
            decode(t->type->format, from, count, c->out.values);
        if (type != t->type && !check_finite(c, t, type, at, count))
            return false;
        if (!(type == t->type ? weight_stream_write(&c->out, from, bytes, c->e)
                              : weight_stream_encode(&c->out, type, count, c->e)))
            return false;
        from += bytes;
    }
    return true;
}

static const char *const version_key = "general.quantization_version";
static const char *const type_key = "general.file_type";

static void add_metadata(conversion *c) {
    for (size_t i = 0; i < c->g->value_count; i++) {
        const gguf_value *v = &c->g->values[i];
        if (!gguf_text_equals(v->key, version_key) && !gguf_text_equals(v->key, type_key))
            gguf_writer_add_copy(c->out.file, v);
    }
    gguf_writer_add_u32(c->out.file, version_key, 2);
    gguf_writer_add_u32(c->out.file, type_key, c->options->type->file_type);
}

static bool add_tensors(conversion *c) {
    for (size_t i = 0; i < c->g->tensor_count; i++) {
        const gguf_tensor *t = &c->g->tensors[i];
        const gguf_type *type = convert_choose_type(c->g, t, c->options);
        if (type != t->type && !t->type->format)
            return err_set(c->e, EXIT_CANNOT, "tensor %s is of type %s, which cannot be decoded",
                           t->name, t->type->name);
        weight_stream_add(&c->out, t->name, type, t->dim, t->dims);
    }
    return true;
}

static bool write_all(conversion *c) {
    add_metadata(c);
    if (!add_tensors(c) || !gguf_writer_finish_header(c->out.file, c->e))
        return false;
    for (size_t i = 0; i < c->g->tensor_count; i++)
        if (!write_tensor(c, &c->g->tensors[i]))
            return false;
    return gguf_writer_finish(c->out.file, c->e);
}

bool convert_model(const gguf *g, const char *path, const convert_options *o, err *e) {
    conversion c = {.g = g, .options = o, .e = e};
    bool ok = weight_stream_open(&c.out, path, o->watch, o->context, e) && write_all(&c);
    weight_stream_close(&c.out);
    return ok;
}
