/* model/build: what families are built of, see family.h: buffers, weights, and the launches
 * that all of them have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "harness/base/array.h"
#include "harness/base/size.h"
#include "reference/reference.h"
#include "runner/choice/rules.h"

/* --- memory --- */

/* Takes over b; NULL fails with e as it is. */
static bool own(model *m, buffer *b, memory_kind kind, slice *out) {
    if (!b)
        return false;
    *ARRAY_ADD(m->buffers, m->buffer_count, m->buffer_capacity) =
        (model_buffer){.buffer = b, .kind = kind};
    m->is_recurrent |= kind == MEMORY_STATE;
    *out = slice_whole(b);
    return true;
}

static bool make(model *m, memory_kind kind, const char *label, size_t rows, size_t columns,
                 size_t each, slice *out, err *e) {
    size_t count, bytes;
    if (!size_multiply_checked(rows, columns, &count) ||
        !size_multiply_checked(count, each, &bytes))
        return err_set(e, EXIT_CANNOT, "%s: %zu x %zu values are too many", label, rows, columns);
    if (!m->device) {
        m->planned_bytes += bytes < UINT64_MAX - m->planned_bytes ? bytes : 0;
        return true;
    }
    bool is_shared = kind == MEMORY_VISIBLE || (kind == MEMORY_SCRATCH && m->shared_scratch);
    storage_mode storage = is_shared ? STORAGE_SHARED : STORAGE_PRIVATE;
    return own(m, device_new_buffer(m->device, bytes, storage, label, e), kind, out);
}

bool model_make(model *m, memory_kind kind, const char *label, size_t rows, size_t columns,
                slice *out, err *e) {
    return make(m, kind, label, rows, columns, sizeof(float), out, e);
}

bool model_make_scratch(model *m, const scratch_part *parts, size_t count, err *e) {
    for (const scratch_part *p = parts; p < parts + count; p++)
        if (p->columns > 0 &&
            !model_make(m, MEMORY_SCRATCH, p->label, m->tile, p->columns, p->at, e))
            return false;
    return true;
}

bool model_make_cache(model *m, const char *label, size_t columns, slice *out, err *e) {
    return make(m, MEMORY_CACHE, label, m->context, columns,
                m->cache ? m->cache->bytes : sizeof(float), out, e);
}

bool model_make_table(model *m, const char *label, const float *values, size_t count, slice *out,
                      err *e) {
    return model_make(m, MEMORY_VISIBLE, label, 1, count, out, e) &&
           (!m->device || buffer_upload(out->buffer, 0, values, out->bytes, e));
}

/* --- weights --- */

const gguf_tensor *model_claim_tensor(model *m, const char *name) {
    const gguf_tensor *t = gguf_find_tensor(m->file, name);
    if (t)
        m->is_claimed[t - m->file->tensors] = true;
    return t;
}

bool model_find_matrix(model *m, const char *name, uint32_t rows, uint32_t columns, weight *out,
                       err *e) {
    const gguf_tensor *t = model_claim_tensor(m, name);
    if (!t)
        return err_set(e, EXIT_USAGE, "the model has no tensor %s", name);
    if (t->dim[0] != columns || t->elements != (uint64_t)rows * columns)
        return err_set(e, EXIT_USAGE, "the tensor %s is %llu x %llu, expected %u x %u", name,
                       (unsigned long long)t->dim[0],
                       (unsigned long long)(t->dim[0] ? t->elements / t->dim[0] : 0), columns,
                       rows);
    if (!t->type->format)
        return err_set(e, EXIT_USAGE, "the tensor %s is in %s, which no kernel reads", name,
                       t->type->name);
    *out = (weight){.format = t->type->format, .rows = rows, .columns = columns};
    return !m->device || own(m, device_wrap_memory(m->device, t->data, t->bytes, name, e),
                             MEMORY_WEIGHTS, &out->at);
}

bool model_find_floats(model *m, const char *name, uint32_t count, weight *out, err *e) {
    if (!model_find_matrix(m, name, 1, count, out, e))
        return false;
    if (out->format != &format_f32)
        return err_set(e, EXIT_USAGE, "the tensor %s is in %s; it must be F32", name,
                       out->format->name);
    return true;
}

bool model_find_vector(model *m, const char *name, uint32_t count, weight *out, err *e) {
    const gguf_tensor *t = model_claim_tensor(m, name);
    if (!t)
        return err_set(e, EXIT_USAGE, "the model has no tensor %s", name);
    if (t->elements != count)
        return err_set(e, EXIT_USAGE, "the tensor %s has %llu values, expected %u", name,
                       (unsigned long long)t->elements, count);
    if (t->type->format == &format_f32) {
        uint32_t columns = (uint32_t)t->dim[0];
        if (!model_find_matrix(m, name, count / columns, columns, out, e))
            return false;
        out->rows = 1;
        out->columns = count;
        return true;
    }
    if (!t->type->format)
        return err_set(e, EXIT_USAGE, "the tensor %s is in %s, which cannot be decoded", name,
                       t->type->name);
    double *values = array_new(count, sizeof *values);
    float *floats = array_new(count, sizeof *floats);
    reference_decode_row(t->type->format, t->data, 0, count, values);
    for (uint32_t i = 0; i < count; i++)
        floats[i] = (float)values[i];
    *out = (weight){.format = &format_f32, .rows = 1, .columns = count};
    bool ok = model_make_table(m, name, floats, count, &out->at, e);
    free(values);
    free(floats);
    return ok;
}

bool model_find_parts(model *m, uint32_t layer, const layer_part *parts, size_t count, err *e) {
    for (const layer_part *p = parts; p < parts + count; p++) {
        char name[GGUF_NAME_BYTES];
        model_name_tensor(name, layer, p->name, "weight");
        if (p->rows ? !model_find_matrix(m, name, p->rows, p->columns, p->out, e)
                    : !model_find_vector(m, name, p->columns, p->out, e))
            return false;
        model_name_tensor(name, layer, p->name, "bias");
        if (!p->bias || (p->rows && !gguf_find_tensor(m->file, name)))
            continue;
        if (p->rows ? !model_find_floats(m, name, p->rows, p->bias, e)
                    : !model_find_vector(m, name, p->columns, p->bias, e))
            return false;
    }
    return true;
}

bool model_refuse_size(err *e, const char *what, uint32_t value, const char *why) {
    return err_set(e, EXIT_USAGE, "the model's %s is %u: %s", what, value, why);
}

bool model_read_vocab(const gguf *g, uint32_t *vocab, err *e) {
    const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
    if (!embedding)
        return err_set(e, EXIT_USAGE, "the model has no tensor token_embd.weight");
    if (embedding->dim[1] > INT32_MAX)
        return err_set(e, EXIT_USAGE, "token_embd.weight has too many rows");
    *vocab = (uint32_t)embedding->dim[1];
    const gguf_value *tokens = gguf_find_value(g, "tokenizer.ggml.tokens");
    if (tokens && tokens->count != *vocab)
        return err_set(e, EXIT_USAGE, "the vocabulary has %zu tokens but the embedding %u rows",
                       tokens->count, *vocab);
    return true;
}

void model_name_tensor(char *text, uint32_t layer, const char *part, const char *kind) {
    snprintf(text, GGUF_NAME_BYTES, "blk.%u.%s.%s", layer, part, kind);
}

const gguf_tensor *model_find_part(const gguf *g, uint32_t layer, const char *part,
                                   const char *kind) {
    char name[GGUF_NAME_BYTES];
    model_name_tensor(name, layer, part, kind);
    return gguf_find_tensor(g, name);
}

static weight take(const weight *w, size_t offset, size_t bytes) {
    weight part = *w;
    if (w->at.buffer)
        part.at = slice_part(w->at.buffer, w->at.offset + offset, bytes);
    return part;
}

weight weight_take_rows(const weight *w, uint32_t first, uint32_t rows) {
    weight part = take(w, format_get_bytes(w->format, first, w->columns),
                       format_get_bytes(w->format, rows, w->columns));
    part.rows = rows;
    return part;
}

weight weight_take_values(const weight *v, uint32_t first, uint32_t count) {
    weight part = take(v, first * sizeof(float), count * sizeof(float));
    part.columns = count;
    return part;
}

/* --- launches --- */

param model_get_control(const model *m, control_word word) {
    slice s = m->control;
    return param_at(slice_part(s.buffer, s.offset + word * sizeof(uint32_t), sizeof(uint32_t)));
}

slice model_take_row(slice s, uint32_t row, uint32_t columns) {
    size_t bytes = columns * sizeof(float);
    return slice_part(s.buffer, s.offset + row * bytes, bytes);
}

static void name_layer(uint32_t layer, char name[32]) {
    snprintf(name, 32, "layer %u", layer);
}

void model_mark_layer(tape *t, uint32_t layer) {
    char name[32];
    name_layer(layer, name);
    tape_mark(t, name);
}

bool model_find_layer(const tape *t, uint32_t layer, size_t *first, size_t *end) {
    char name[32];
    name_layer(layer, name);
    for (size_t i = 0; i < t->mark_count; i++)
        if (strcmp(t->marks[i].name, name) == 0) {
            *first = t->marks[i].at;
            *end = i + 1 < t->mark_count ? t->marks[i + 1].at : t->count;
            return true;
        }
    return false;
}

bool model_record_embedding(model *m, tape *t, const weight *table, slice ids, slice x,
                            uint32_t tokens, err *e) {
    const kernel *k = variants_pick_embedding(table->format, e);
    tape_mark(t, "embedding");
    return k && embedding_lookup_record(t, k, table->at, ids, x, tokens, table->columns,
                                        m->shape.vocab, e);
}

product_matrix weight_multiply(const weight *w, slice x, slice y) {
    return (product_matrix){
        .w = w->at, .x = x, .y = y, .format = w->format, .rows = w->rows, .columns = w->columns};
}

bool model_make_halves(model *m, uint32_t columns, err *e) {
    return !m->device || !device_offers(device_get_facts(m->device), FEATURE_WARPGROUPS, NULL) ||
           (model_make(m, MEMORY_SCRATCH, "halves", m->tile, split_halves_count(1, columns),
                       &m->halves, e) &&
            model_make(m, MEMORY_SCRATCH, "powers", m->tile, 1, &m->powers, e));
}

static bool record_alone(model *m, tape *t, const product_matrix *p, uint32_t tokens, err *e) {
    const variants_basis *v = &m->variants;
    const product one = {{*p}, .tokens = tokens};
    const kernel *k = p->bias.buffer || p->activation != ACTIVATION_NONE
                          ? variants_pick_activated(v, p->format, p->rows, p->columns, tokens, e)
                          : variants_pick_matvec(v, p->format, p->accumulates, p->w.offset, p->rows,
                                                 p->columns, tokens, e);
    return k && product_record(t, k, &one, e);
}

static bool can_split(const model *m, const product_matrix *p, uint32_t tokens) {
    return m->halves.buffer && tokens > 1 && !p->bias.buffer && p->w.offset % 16 == 0;
}

/* The first of them, and those after it that go with it in one launch; none if the first cannot be
 * split: it is recorded alone, and the others are asked again. */
static product gather(const model *m, const product_matrix *matrices, uint32_t count,
                      uint32_t tokens, bool *is_taken, shape *s) {
    product p = {.tokens = tokens, .powers = m->powers};
    *s = (shape){{0, 0, 0, matrices->columns, tokens, matrices->activation}};
    for (uint32_t i = 0; i < count && can_split(m, matrices, tokens); i++) {
        const product_matrix *one = &matrices[i];
        if (is_taken[i] || one->format != matrices->format ||
            one->activation != matrices->activation || !can_split(m, one, tokens))
            continue;
        is_taken[i] = true;
        s->dim[p.count] = one->rows;
        p.items[p.count++] = *one;
    }
    p.items[0].x = m->halves;
    return p;
}

bool model_record_matrices(model *m, tape *t, const product_matrix *matrices, uint32_t count,
                           uint32_t tokens, err *e) {
    bool is_taken[3] = {false}, is_split = false;
    for (uint32_t i = 0; i < count; i++) {
        const product_matrix *first = &matrices[i];
        shape s;
        if (is_taken[i])
            continue;
        bool was_taken[3] = {is_taken[0], is_taken[1], is_taken[2]};
        product p = gather(m, first, count - i, tokens, is_taken + i, &s);
        const kernel *k =
            p.count ? variants_pick_split(&m->variants, first->format, first->accumulates, s)
                    : NULL;
        if (!k) {
            memcpy(is_taken, was_taken, sizeof is_taken);
            if (!record_alone(m, t, first, tokens, e))
                return false;
            continue;
        }
        if (!is_split && !split_halves_record(t, &split_halves_op.kernels[0], first->x, m->halves,
                                              m->powers, tokens, first->columns, e))
            return false;
        is_split = true;
        if (!product_record(t, k, &p, e))
            return false;
    }
    return true;
}

bool model_record_product(model *m, tape *t, const weight *w, slice x, slice y, bool accumulates,
                          uint32_t tokens, err *e) {
    product_matrix p = weight_multiply(w, x, y);
    p.accumulates = accumulates;
    return model_record_matrices(m, t, &p, 1, tokens, e);
}

bool model_record_bias(tape *t, const weight *bias, slice y, uint32_t tokens, err *e) {
    return !bias->format ||
           bias_add_record(t, &bias_add_op.kernels[0], y, bias->at, tokens, bias->columns, e);
}
