#include "synth_parts.h"

#include <math.h>

#include "harness/check/fill.h"

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

bool synth_add_shaped(synthesis *s, const char *name, const gguf_type *type, const uint64_t *dim,
                      uint32_t dims, synth_values v) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dims; i++)
        elements *= dim[i];
    if (s->is_writing)
        return write_tensor(s, name, type, elements, &v);
    weight_stream_add(&s->out, name, type, dim, dims);
    return true;
}

bool synth_add(synthesis *s, const char *name, const gguf_type *type, uint64_t columns,
               uint64_t rows, synth_values v) {
    const uint64_t dim[] = {columns, rows};
    return synth_add_shaped(s, name, type, dim, rows > 1 ? 2 : 1, v);
}

uint32_t synth_count_layers(const synthesis *s) {
    return s->options->layers ? s->options->layers : s->shape->layers;
}
