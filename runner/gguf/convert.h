/* convert: writes a model again with its weights in another type.
 *
 * Which tensors change follows the rule of llama-quantize, and the bytes of a block are those of
 * ggml's reference quantisation: matrices get the requested type; vectors, norms and small tensors
 * that lose too much stay as they are; with a quantised type the head (the embedding, in a model
 * without a separate head) gets Q6_K, or Q8_0 where its rows are not whole blocks of 256 or all
 * others are Q8_0, unless is_pure. Tensors already in the type are copied. The adapters of an
 * RWKV-7 become F16 where they are F32, as they are in the files that llama-quantize gets.
 *
 * Rows that are not whole blocks of a K type get Q5_0, Q5_1 or Q8_0, as there; F16 where that does
 * not fit either. Values that are not finite are refused. A
 * scale beyond fp16 is 65504, not ggml's infinity. */
#pragma once

#include "write.h"

typedef struct {
    const gguf_type *type;
    bool is_pure;            /* the head gets the type too */
    const char *const *kept; /* tensors whose names match one of these globs stay as they are */
    size_t kept_count;
    weight_watch watch; /* may be NULL */
    void *context;
} convert_options;

/* The type by its name on a command line; the names, "q4_0, q4_1, ...". */
const gguf_type *convert_find_type(const char *name, err *e);
void convert_list_types(char *text, size_t size);
/* The type itself, or what a matrix with rows of this many values gets instead. */
const gguf_type *convert_fit_type(const gguf_type *type, uint64_t columns);
/* The same for the head: with a quantised type six bits where rows are whole blocks, else eight. */
const gguf_type *convert_fit_head(const gguf_type *type, uint64_t columns);

/* The type that a tensor of g gets. */
const gguf_type *convert_choose_type(const gguf *g, const gguf_tensor *t, const convert_options *o);

bool convert_model(const gguf *g, const char *path, const convert_options *o, err *e);
