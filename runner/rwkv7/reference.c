/* rwkv7/reference: the forward pass in double precision, see model_reference_new. Written to be
 * read next to the equations of the model. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "reference/reference.h"
#include "rwkv7.h"

typedef struct {
    double *time_shift, *channel_shift; /* (hidden) */
    double *s;                          /* (heads, head_size, head_size): value, then key */
} layer_state;

/* Names of vectors (hidden) are those of the equations. */
typedef struct {
    const gguf *file;
    rwkv7_shape shape;
    shaker *shaker;
    layer_state *states;
    double *x, *n, *mixed, *r, *w, *k, *v, *a, *g, *kk, *share, *v_first, *y;
    double *low, *u; /* (the longest row of any tensor) */
    double *vector;  /* (MIXES, hidden) */
} rwkv7_reference;

static size_t find_longest(const gguf *g) {
    size_t longest = 0;
    for (size_t i = 0; i < g->tensor_count; i++)
        for (size_t d = 0; d < GGUF_DIMS; d++)
            if (g->tensors[i].dim[d] > longest && strncmp(g->tensors[i].name, "blk.", 4) == 0)
                longest = (size_t)g->tensors[i].dim[d];
    return longest;
}

void *rwkv7_reference_new(const model *m, size_t tokens, reference_memory *memory, err *e) {
    (void)tokens; /* a recurrence keeps nothing per token */
    (void)e;
    rwkv7_reference *r = reference_make(memory, 1, sizeof *r);
    r->file = m->file;
    r->shaker = &memory->shaker;
    r->shape = ((const rwkv7 *)m->own)->shape;
    size_t d = r->shape.hidden, longest = find_longest(m->file);
    double **const vectors[] = {&r->x, &r->n, &r->mixed, &r->r,     &r->w,       &r->k, &r->v,
                                &r->a, &r->g, &r->kk,    &r->share, &r->v_first, &r->y};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = reference_make(memory, d, sizeof(double));
    r->low = reference_make(memory, longest, sizeof(double));
    r->u = reference_make(memory, longest, sizeof(double));
    r->vector = reference_make(memory, MIXES * d, sizeof(double));
    r->states = reference_make(memory, r->shape.layers, sizeof *r->states);
    for (uint32_t i = 0; i < r->shape.layers; i++)
        r->states[i] = (layer_state){
            reference_make(memory, d, sizeof(double)), reference_make(memory, d, sizeof(double)),
            reference_make(memory, d * r->shape.head_size, sizeof(double))};
    return r;
}

/* All values of a tensor as one vector, until the next call. */
static const double *read_vector(const rwkv7_reference *r, const gguf_tensor *t) {
    reference_decode_row(t->type->format, t->data, 0, t->elements, r->vector);
    return r->vector;
}

static const double *read_part(const rwkv7_reference *r, uint32_t layer, const char *part) {
    return read_vector(r, model_find_part(r->file, layer, part, "weight"));
}

/* y (rows of W) = W x; returns the number of rows */
static size_t multiply(const rwkv7_reference *r, const gguf_tensor *w, const double *x, double *y) {
    size_t rows = w->elements / w->dim[0];
    model_reference_multiply(r->shaker, w, NULL, 0, rows, x, false, y);
    return rows;
}

static size_t multiply_part(const rwkv7_reference *r, uint32_t layer, const char *part,
                            const double *x, double *y) {
    return multiply(r, model_find_part(r->file, layer, part, "weight"), x, y);
}

/* y = (x - mean) / sqrt(variance + eps) for each of the groups of x, times w plus b */
static void normalise(const rwkv7_reference *r, const gguf_tensor *w, const gguf_tensor *b,
                      size_t groups, double eps, const double *x, double *y) {
    size_t size = r->shape.hidden / groups;
    for (size_t g = 0; g < groups; g++) {
        shaken_sum sum = {0}, squares = {0};
        for (size_t i = g * size; i < (g + 1) * size; i++)
            shake_add(&sum, x[i] / (double)size);
        double mean = shake_end(r->shaker, &sum);
        for (size_t i = g * size; i < (g + 1) * size; i++)
            shake_add(&squares, (x[i] - mean) * (x[i] - mean) / (double)size);
        double variance = shake_end(r->shaker, &squares);
        for (size_t i = g * size; i < (g + 1) * size; i++)
            y[i] = (x[i] - mean) / sqrt(variance + eps);
    }
    const double *scale = read_vector(r, w);
    for (size_t i = 0; i < r->shape.hidden; i++)
        y[i] = shake_few(r->shaker, y[i] * scale[i]);
    const double *bias = read_vector(r, b);
    for (size_t i = 0; i < r->shape.hidden; i++)
        y[i] = shake(r->shaker, y[i] + bias[i], y[i] * y[i]);
}

static void normalise_part(const rwkv7_reference *r, uint32_t layer, const char *part,
                           size_t groups, double eps, const double *x, double *y) {
    normalise(r, model_find_part(r->file, layer, part, "weight"),
              model_find_part(r->file, layer, part, "bias"), groups, eps, x, y);
}

/* mixed = n + (before - n) * mu, of the vector mu that starts `mix` rows into a tensor */
static void shift(const rwkv7_reference *r, uint32_t layer, const char *part, size_t mix,
                  const double *before) {
    size_t d = r->shape.hidden;
    const double *mu = read_part(r, layer, part) + mix * d;
    for (size_t i = 0; i < d; i++)
        r->mixed[i] = shake(r->shaker, r->n[i] + (before[i] - r->n[i]) * mu[i],
                            r->n[i] * r->n[i] + before[i] * before[i]);
}

static double keep(double x) {
    return x;
}

/* out = outer(bias + up inner(down mixed)) */
static void adapt(const rwkv7_reference *r, uint32_t layer, const char *const parts[3],
                  double (*inner)(double), double (*outer)(double), double *out) {
    size_t rank = multiply_part(r, layer, parts[1], r->mixed, r->low);
    for (size_t i = 0; i < rank; i++)
        r->low[i] = shake_few(r->shaker, inner(r->low[i]));
    multiply_part(r, layer, parts[2], r->low, out);
    const double *bias = parts[0] ? read_part(r, layer, parts[0]) : NULL;
    for (size_t i = 0; i < r->shape.hidden; i++)
        out[i] = shake_few(r->shaker, outer(out[i] + (bias ? bias[i] : 0)));
}

/* r, w, k, v, a, g of a token */
static void project(rwkv7_reference *r, uint32_t layer, const double *before) {
    static const char fused[] = "time_mix_lerp_fused";
    static const char *const w[] = {"time_mix_w0", "time_mix_w1", "time_mix_w2"};
    static const char *const a[] = {"time_mix_a0", "time_mix_a1", "time_mix_a2"};
    static const char *const v[] = {"time_mix_v0", "time_mix_v1", "time_mix_v2"};
    static const char *const g[] = {NULL, "time_mix_g1", "time_mix_g2"};
    size_t d = r->shape.hidden;
    shift(r, layer, fused, MIX_R, before);
    multiply_part(r, layer, "time_mix_receptance", r->mixed, r->r);
    shift(r, layer, fused, MIX_W, before);
    adapt(r, layer, w, tanh, reference_decay, r->w);
    shift(r, layer, fused, MIX_K, before);
    multiply_part(r, layer, "time_mix_key", r->mixed, r->k);
    shift(r, layer, fused, MIX_V, before);
    multiply_part(r, layer, "time_mix_value", r->mixed, r->v);
    if (layer == 0) {
        memcpy(r->v_first, r->v, d * sizeof *r->v);
    } else {
        adapt(r, layer, v, keep, reference_sigmoid, r->share);
        for (size_t i = 0; i < d; i++)
            r->v[i] = shake(r->shaker, r->v[i] + (r->v_first[i] - r->v[i]) * r->share[i],
                            r->v[i] * r->v[i] + r->v_first[i] * r->v_first[i]);
    }
    shift(r, layer, fused, MIX_A, before);
    adapt(r, layer, a, keep, reference_sigmoid, r->a);
    shift(r, layer, fused, MIX_G, before);
    adapt(r, layer, g, reference_sigmoid, keep, r->g);
}

/* kk from the key as it was projected, then the key that the state gets. */
static void make_keys(rwkv7_reference *r, uint32_t layer) {
    size_t d = r->shape.hidden, size = r->shape.head_size;
    const double *k_k = read_part(r, layer, "time_mix_k_k");
    for (size_t at = 0; at < d; at += size) {
        double squares = 0;
        for (size_t i = at; i < at + size; i++) {
            r->kk[i] = r->k[i] * k_k[i];
            squares += r->kk[i] * r->kk[i];
        }
        for (size_t i = at; i < at + size; i++)
            r->kk[i] = shake_few(r->shaker, r->kk[i] / fmax(sqrt(squares), RWKV7_KEY_EPS));
    }
    const double *k_a = read_part(r, layer, "time_mix_k_a");
    for (size_t i = 0; i < d; i++)
        r->k[i] = shake_few(r->shaker, r->k[i] * (1 + (r->a[i] - 1) * k_a[i]));
}

/* S = S w + v k - (S kk) (kk a), y = S r, for each head: rows are values, columns keys. */
static void recur(rwkv7_reference *r, double *s) {
    size_t size = r->shape.head_size;
    for (size_t row = 0; row < r->shape.hidden; row++, s += size) {
        size_t head = row / size * size;
        shaken_sum sum = {0}, y = {0};
        for (size_t j = 0; j < size; j++)
            shake_add(&sum, s[j] * r->kk[head + j]);
        double remembered = shake_end(r->shaker, &sum);
        for (size_t j = 0; j < size; j++) {
            size_t c = head + j;
            shaken_sum state = {0};
            shake_add(&state, s[j] * r->w[c]);
            shake_add(&state, r->v[row] * r->k[c]);
            shake_add(&state, -remembered * r->kk[c] * r->a[c]);
            s[j] = shake_end(r->shaker, &state);
            shake_add(&y, s[j] * r->r[c]);
        }
        r->y[row] = shake_end(r->shaker, &y);
    }
}

/* y = (norm(y) + (sum of r k r_k of the head) v) g */
static void finish(rwkv7_reference *r, uint32_t layer) {
    size_t d = r->shape.hidden, size = r->shape.head_size;
    normalise_part(r, layer, "time_mix_ln", r->shape.heads, (double)RWKV7_GROUP_EPS, r->y, r->y);
    const double *r_k = read_part(r, layer, "time_mix_r_k");
    for (size_t at = 0; at < d; at += size) {
        shaken_sum sum = {0};
        for (size_t i = at; i < at + size; i++)
            shake_add(&sum, r->r[i] * r->k[i] * r_k[i]);
        double bonus = shake_end(r->shaker, &sum);
        for (size_t i = at; i < at + size; i++)
            r->y[i] = shake_few(r->shaker, (r->y[i] + bonus * r->v[i]) * r->g[i]);
    }
}

/* x += W y, by way of n, which is not used any more */
static void add_product(rwkv7_reference *r, uint32_t layer, const char *part, const double *y) {
    multiply_part(r, layer, part, y, r->n);
    for (size_t i = 0; i < r->shape.hidden; i++)
        r->x[i] = shake(r->shaker, r->x[i] + r->n[i], r->x[i] * r->x[i]);
}

static void step_layer(rwkv7_reference *r, uint32_t layer) {
    layer_state *s = &r->states[layer];
    size_t bytes = r->shape.hidden * sizeof *r->n;
    double eps = (double)r->shape.eps;
    normalise_part(r, layer, "attn_norm", 1, eps, r->x, r->n);
    project(r, layer, s->time_shift);
    memcpy(s->time_shift, r->n, bytes);
    make_keys(r, layer);
    recur(r, s->s);
    finish(r, layer);
    add_product(r, layer, "time_mix_output", r->y);
    normalise_part(r, layer, "attn_norm_2", 1, eps, r->x, r->n);
    shift(r, layer, "channel_mix_lerp_k", 0, s->channel_shift);
    memcpy(s->channel_shift, r->n, bytes);
    multiply_part(r, layer, "channel_mix_key", r->mixed, r->u);
    for (size_t i = 0; i < r->shape.ffn; i++)
        r->u[i] = shake_few(r->shaker, reference_squared_relu(r->u[i]));
    add_product(r, layer, "channel_mix_value", r->u);
}

void rwkv7_reference_step(void *own, uint32_t token, double *logits) {
    rwkv7_reference *r = own;
    assert(token < r->shape.vocab);
    const gguf *g = r->file;
    double eps = (double)r->shape.eps;
    const gguf_tensor *table = gguf_find_tensor(g, "token_embd.weight");
    reference_decode_row(table->type->format, table->data, token, r->shape.hidden, r->n);
    normalise(r, gguf_find_tensor(g, "token_embd_norm.weight"),
              gguf_find_tensor(g, "token_embd_norm.bias"), 1, eps, r->n, r->x);
    for (uint32_t layer = 0; layer < r->shape.layers; layer++)
        step_layer(r, layer);
    if (!logits)
        return;
    normalise(r, gguf_find_tensor(g, "output_norm.weight"), gguf_find_tensor(g, "output_norm.bias"),
              1, eps, r->x, r->n);
    multiply(r, gguf_find_tensor(g, "output.weight"), r->n, logits);
}
