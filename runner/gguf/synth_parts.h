/* synth_parts: what the files that invent models share. synth.c has the llama, synth_rwkv7.c
 * the RWKV-7. */
#pragma once

#include "synth.h"

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

/* A tensor of this name, drawn by it. One row is a vector. */
bool synth_add(synthesis *s, const char *name, const gguf_type *type, uint64_t columns,
               uint64_t rows, synth_values v);
bool synth_add_shaped(synthesis *s, const char *name, const gguf_type *type, const uint64_t *dim,
                      uint32_t dims, synth_values v);
uint32_t synth_count_layers(const synthesis *s);

typedef struct {
    const char *name; /* general.architecture */
    void (*add_shape)(synthesis *s);
    bool (*add_tokenizer)(synthesis *s);
    bool (*add_tensors)(synthesis *s);
} synth_family;

extern const synth_family synth_rwkv7;
