/* reference: the pass in double precision, as families step it, and the products that they have in common. */
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "harness/base/array.h"
#include "harness/base/share.h"
#include "reference/reference.h"

struct model_reference {
    const model_family *family;
    reference_memory memory;
    void *own;
};

void *reference_make(reference_memory *r, size_t count, size_t item_bytes) {
    return *ARRAY_ADD(r->items, r->count, r->capacity) = array_new(count, item_bytes);
}

model_reference *model_reference_new(const model *m, size_t tokens, bool is_shaken, err *e) {
    model_reference *r = array_new(1, sizeof *r);
    r->family = m->family;
    r->memory.shaker = (shaker){is_shaken, rng_new(1, "shake")};
    r->own = m->family->new_reference(m, tokens, &r->memory, e);
    if (r->own)
        return r;
    model_reference_free(r);
    return NULL;
}

void model_reference_free(model_reference *r) {
    if (!r)
        return;
    for (size_t i = 0; i < r->memory.count; i++)
        free(r->memory.items[i]);
    free(r->memory.items);
    free(r);
}

void model_reference_step(model_reference *r, uint32_t token, double *logits) {
    r->family->step_reference(r->own, token, logits);
}

/* --- products --- */

typedef struct {
    const gguf_tensor *w;
    size_t first;
    const double *x;
    shaken_sum *sums;
} row_sums;

static void add_rows(void *context, size_t from, size_t to) {
    const row_sums *p = context;
    size_t columns = p->w->dim[0];
    double *row = array_new(columns, sizeof *row);
    for (size_t i = from; i < to; i++) {
        reference_decode_row(p->w->type->format, p->w->data, p->first + i, columns, row);
        for (size_t j = 0; j < columns; j++)
            shake_add(&p->sums[i], row[j] * p->x[j]);
    }
    free(row);
}

void model_reference_multiply(shaker *s, const gguf_tensor *w, const gguf_tensor *bias,
                              size_t first, size_t rows, const double *x, bool accumulates,
                              double *y) {
    enum { WORTH_A_THREAD = 1 << 20 };
    row_sums p = {w, first, x, array_new(rows, sizeof *p.sums)};
    share_run(rows, WORTH_A_THREAD / (w->dim[0] + 1) + 1, add_rows, &p);
    for (size_t i = 0; i < rows; i++) {
        if (bias) {
            float b;
            memcpy(&b, (const char *)bias->data + (first + i) * sizeof b, sizeof b);
            shake_add(&p.sums[i], (double)b);
        }
        if (accumulates)
            shake_add(&p.sums[i], y[i]);
        y[i] = shake_end(s, &p.sums[i]);
    }
    free(p.sums);
}
