/* The oracle of decode_attention and prefill_attention. */
#include <math.h>

#include "reference.h"

typedef struct {
    double value;
    double magnitude; /* the sum of the absolute values of its terms */
} score;

static score get_score(const float *q, const float *k, size_t head_dim, double scale) {
    score s = {0, 0};
    for (size_t d = 0; d < head_dim; d++) {
        double term = scale * (double)q[d] * (double)k[d];
        s.value += term;
        s.magnitude += fabs(term);
    }
    return s;
}

/* One head of one query. k and v point to the first row of its head in the caches, rows are
 * `stride` floats apart. The scores are computed three times, which needs no memory. */
static void attend(const float *q, const float *k, const float *v, size_t stride, size_t head_dim,
                   size_t kv_len, double scale, const attention_roundings *r, double *out,
                   double *magnitude) {
    const double roundoff = 0x1p-24;
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < kv_len; i++)
        largest = fmax(largest, get_score(q, k + i * stride, head_dim, scale).value);
    for (size_t i = 0; i < kv_len; i++)
        sum += exp(get_score(q, k + i * stride, head_dim, scale).value - largest);
    for (size_t d = 0; d < head_dim; d++)
        out[d] = magnitude[d] = 0;
    for (size_t i = 0; i < kv_len; i++) {
        double weight = exp(get_score(q, k + i * stride, head_dim, scale).value - largest) / sum;
        for (size_t d = 0; d < head_dim; d++) {
            out[d] += weight * (double)v[i * stride + d];
            magnitude[d] += weight * fabs((double)v[i * stride + d]);
        }
    }
    for (size_t i = 0; i < kv_len; i++) {
        score s = get_score(q, k + i * stride, head_dim, scale);
        double weight = exp(s.value - largest) / sum;
        double error = r->score * (s.magnitude + largest - s.value);
        if (weight <= roundoff) /* it may be lost whole, as in reference_softmax */
            error += 1 / roundoff;
        for (size_t d = 0; d < head_dim; d++)
            magnitude[d] += weight * fabs((double)v[i * stride + d] - out[d]) * error / r->sum;
    }
}

void reference_attention(const float *q, const float *k_cache, const float *v_cache,
                         const attention_sizes *n, size_t n_tokens, size_t start, double scale,
                         const attention_roundings *r, double *out, double *magnitude) {
    size_t stride = n->n_kv_heads * n->head_dim;
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t h = 0; h < n->n_heads; h++) {
            size_t at = (t * n->n_heads + h) * n->head_dim;
            size_t shared = h / (n->n_heads / n->n_kv_heads) * n->head_dim;
            attend(q + at, k_cache + shared, v_cache + shared, stride, n->head_dim, start + t + 1,
                   scale, r, out + at, magnitude + at);
        }
}
