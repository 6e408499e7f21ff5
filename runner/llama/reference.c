/* llama/reference: the forward pass in double precision, see model_reference_new. Written to be read
 * next to the equations of the model. */
#include <assert.h>
#include <math.h>

#include "llama.h"
#include "reference/reference.h"

typedef struct {
    const gguf *file;
    llama_shape shape;
    shaker *shaker;
    size_t context, position;
    bool has_halves;       /* keys and values are rounded to them */
    double *freqs;         /* (head_dim / 2) turns per position */
    double *keys, *values; /* (layers, context, kv_heads, head_dim) */
    double *x, *h, *q, *attention, *gate, *up, *row, *scores;
} llama_reference;

void *llama_reference_new(const model *m, size_t context, reference_memory *memory, err *e) {
    const gguf *g = m->file;
    const llama_shape *s = &((const llama *)m->own)->shape;
    float freqs[LLAMA_MAX_HEAD_DIM / 2];
    bool needed;
    if (!llama_read_freqs(g, s, freqs, &needed, e))
        return NULL;
    llama_reference *r = reference_make(memory, 1, sizeof *r);
    size_t kv_dim = (size_t)s->kv_heads * s->head_dim, q_dim = (size_t)s->heads * s->head_dim;
    r->file = g;
    r->shaker = &memory->shaker;
    r->shape = *s;
    r->context = context;
    r->has_halves = m->cache != NULL;
    const struct {
        double **at;
        size_t count;
    } parts[] = {{&r->freqs, s->head_dim / 2},
                 {&r->keys, s->layers * context * kv_dim},
                 {&r->values, s->layers * context * kv_dim},
                 {&r->x, s->hidden},
                 {&r->h, s->hidden},
                 {&r->row, s->hidden},
                 {&r->q, q_dim},
                 {&r->attention, q_dim},
                 {&r->gate, s->ffn},
                 {&r->up, s->ffn},
                 {&r->scores, context}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i].at = reference_make(memory, parts[i].count, sizeof(double));
    for (uint32_t i = 0; i < s->head_dim / 2; i++)
        r->freqs[i] = needed ? (double)freqs[i] : pow(s->rope_base, -2.0 * i / s->head_dim);
    return r;
}

/* A product by the name of its layer's tensor, "attn_q". */
static void multiply_part(const llama_reference *r, uint32_t layer, const char *part, size_t rows,
                          const double *x, bool accumulates, double *y) {
    model_reference_multiply(r->shaker, model_find_part(r->file, layer, part, "weight"),
                             model_find_part(r->file, layer, part, "bias"), 0, rows, x, accumulates,
                             y);
}

static void normalise(const llama_reference *r, const gguf_tensor *w, const double *x, double *y) {
    shaken_sum squares = {0};
    for (size_t i = 0; i < r->shape.hidden; i++)
        shake_add(&squares, x[i] * x[i]);
    double mean = shake_end(r->shaker, &squares) / r->shape.hidden;
    double scale = 1 / sqrt(mean + (double)r->shape.eps);
    reference_decode_row(&format_f32, w->data, 0, r->shape.hidden, r->row);
    for (size_t i = 0; i < r->shape.hidden; i++)
        y[i] = shake_few(r->shaker, x[i] * scale * r->row[i]);
}

static void turn(const llama_reference *r, double *heads, size_t count) {
    size_t half = r->shape.head_dim / 2;
    for (size_t i = 0; i < count * half; i++) {
        double angle = shake_few(r->shaker, (double)r->position * r->freqs[i % half]);
        double a = heads[2 * i], b = heads[2 * i + 1];
        heads[2 * i] = shake(r->shaker, a * cos(angle) - b * sin(angle), 2 * (a * a + b * b));
        heads[2 * i + 1] = shake(r->shaker, a * sin(angle) + b * cos(angle), 2 * (a * a + b * b));
    }
}

/* One head against the cache of its layer; keys and values point to its first row. */
static void attend(llama_reference *r, const double *q, const double *keys, const double *values,
                   double *out) {
    size_t d = r->shape.head_dim, stride = r->shape.kv_heads * d, length = r->position + 1;
    double largest = -INFINITY;
    shaken_sum sum = {0};
    for (size_t u = 0; u < length; u++) {
        shaken_sum score = {0};
        for (size_t i = 0; i < d; i++)
            shake_add(&score, q[i] * keys[u * stride + i]);
        r->scores[u] = shake_end(r->shaker, &score) / sqrt((double)d);
        largest = fmax(largest, r->scores[u]);
    }
    for (size_t u = 0; u < length; u++)
        shake_add(&sum, r->scores[u] = shake_few(r->shaker, exp(r->scores[u] - largest)));
    double total = shake_end(r->shaker, &sum);
    for (size_t i = 0; i < d; i++) {
        shaken_sum y = {0};
        for (size_t u = 0; u < length; u++)
            shake_add(&y, r->scores[u] / total * values[u * stride + i]);
        out[i] = shake_end(r->shaker, &y);
    }
}

static void make_qkv(llama_reference *r, uint32_t layer, double *k, double *v) {
    size_t q_dim = (size_t)r->shape.heads * r->shape.head_dim;
    size_t kv_dim = (size_t)r->shape.kv_heads * r->shape.head_dim;
    const gguf_tensor *all = model_find_part(r->file, layer, "attn_qkv", "weight");
    if (all) {
        const gguf_tensor *bias = model_find_part(r->file, layer, "attn_qkv", "bias");
        model_reference_multiply(r->shaker, all, bias, 0, q_dim, r->h, false, r->q);
        model_reference_multiply(r->shaker, all, bias, q_dim, kv_dim, r->h, false, k);
        model_reference_multiply(r->shaker, all, bias, q_dim + kv_dim, kv_dim, r->h, false, v);
        return;
    }
    multiply_part(r, layer, "attn_q", q_dim, r->h, false, r->q);
    multiply_part(r, layer, "attn_k", kv_dim, r->h, false, k);
    multiply_part(r, layer, "attn_v", kv_dim, r->h, false, v);
}

static void round_to_halves(double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        elem_write(ELEM_F16, &half, 0, values[i]);
        values[i] = elem_read(ELEM_F16, &half, 0);
    }
}

static void step_layer(llama_reference *r, uint32_t layer) {
    const llama_shape *s = &r->shape;
    size_t d = s->head_dim, kv_dim = s->kv_heads * d;
    double *keys = r->keys + (size_t)layer * r->context * kv_dim;
    double *values = r->values + (size_t)layer * r->context * kv_dim;
    double *k = keys + r->position * kv_dim;
    normalise(r, model_find_part(r->file, layer, "attn_norm", "weight"), r->x, r->h);
    make_qkv(r, layer, k, values + r->position * kv_dim);
    turn(r, r->q, s->heads);
    turn(r, k, s->kv_heads);
    if (r->has_halves) {
        round_to_halves(k, kv_dim);
        round_to_halves(values + r->position * kv_dim, kv_dim);
    }
    for (size_t head = 0; head < s->heads; head++) {
        size_t shared = head / (s->heads / s->kv_heads) * d;
        attend(r, r->q + head * d, keys + shared, values + shared, r->attention + head * d);
    }
    multiply_part(r, layer, "attn_output", s->hidden, r->attention, true, r->x);
    normalise(r, model_find_part(r->file, layer, "ffn_norm", "weight"), r->x, r->h);
    multiply_part(r, layer, "ffn_gate", s->ffn, r->h, false, r->gate);
    multiply_part(r, layer, "ffn_up", s->ffn, r->h, false, r->up);
    for (size_t i = 0; i < s->ffn; i++)
        r->gate[i] = shake_few(r->shaker, r->gate[i] / (1 + exp(-r->gate[i])) * r->up[i]);
    multiply_part(r, layer, "ffn_down", s->hidden, r->gate, true, r->x);
}

void llama_reference_step(void *own, uint32_t token, double *logits) {
    llama_reference *r = own;
    assert(r->position < r->context && token < r->shape.vocab);
    const gguf_tensor *table = gguf_find_tensor(r->file, "token_embd.weight");
    const gguf_tensor *head = r->shape.tied ? table : gguf_find_tensor(r->file, "output.weight");
    reference_decode_row(table->type->format, table->data, token, r->shape.hidden, r->x);
    for (uint32_t layer = 0; layer < r->shape.layers; layer++)
        step_layer(r, layer);
    r->position++;
    if (!logits)
        return;
    normalise(r, gguf_find_tensor(r->file, "output_norm.weight"), r->x, r->h);
    model_reference_multiply(r->shaker, head, NULL, 0, r->shape.vocab, r->h, false, logits);
}
